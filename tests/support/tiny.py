"""Tiny transformers with random weights, made by the tests that want one."""

import json
from pathlib import Path

WORDS = (
    "the",
    "a",
    "of",
    "wing",
    "shock",
    "wave",
    "flow",
    "heat",
    "query",
    "passage",
    "title",
    "body",
    "cat",
    "dog",
)
WORDS += ("sits", "runs", "fast", "slow")
LIMIT = 12


def _tokenizer():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = {
        f"{name}_token": f"[{name.upper()}]"
        for name in ("pad", "unk", "cls", "sep", "mask")
    }
    vocabulary = {word: i for i, word in enumerate([*special.values(), *WORDS, ":"])}
    bare = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    bare.normalizer = normalizers.Lowercase()
    bare.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    bare.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", marks
    )
    names = ["input_ids", "token_type_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=bare,
        model_max_length=LIMIT,
        model_input_names=names,
        **special,
    )


def _saved(folder: Path, kind: str, seed: int, **more) -> Path:
    """Save a BERT of two layers with its tokenizer."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(WORDS) + 6,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LIMIT,
        type_vocab_size=2,
        **more,
    )
    getattr(transformers, kind)(config).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)
    return folder


def _kept(model, folder: Path) -> Path:
    """Save a model of sentence-transformers' in a folder of its own."""
    model.save(str(folder / "model"), create_model_card=False)
    return folder / "model"


def bi_encoder(folder: Path, prompts: dict[str, str] | None = None) -> Path:
    """Save a BERT of two layers with CLS pooling that reads LIMIT tokens."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    body = Transformer(
        str(_saved(folder / "bert", "BertModel", 1)), max_seq_length=LIMIT
    )
    modules = [body, Pooling(body.get_embedding_dimension(), pooling_mode="cls")]
    return _kept(SentenceTransformer(modules=modules, prompts=prompts), folder)


def static(folder: Path) -> Path:
    """Save a model that averages one vector a token: the words above, and any other
    text letter by letter.
    """
    import numpy as np
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    pieces = dict.fromkeys(
        ["[UNK]", *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    )
    tokenizer = Tokenizer(
        models.WordPiece(
            {piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"
        )
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rows = np.random.default_rng(3).normal(size=(len(pieces), 32)).astype(np.float32)
    body = StaticEmbedding(tokenizer, embedding_weights=rows)
    SentenceTransformer(modules=[body, Normalize()], device="cpu").save(
        str(folder), create_model_card=False
    )
    return folder


def cross_encoder(folder: Path, outputs: int = 1) -> Path:
    """Save a BERT of two layers that scores pairs."""
    return _saved(
        folder,
        "BertForSequenceClassification",
        2,
        num_labels=outputs,
        initializer_range=0.3,
    )


def padding_before(folder: Path) -> Path:
    """A model whose tokenizer is told to pad before texts, as those of decoders do."""
    for path in folder.rglob("tokenizer_config.json"):
        options = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**options, "padding_side": "left"}))
    return folder


def with_prompt(model: Path, folder: Path, prompt: str) -> Path:
    """Save a cross-encoder whose files name a prompt for all that it is asked."""
    from sentence_transformers import CrossEncoder

    prompted = CrossEncoder(
        str(model), device="cpu", prompts={"web": prompt}, default_prompt_name="web"
    )
    prompted.save_pretrained(str(folder), create_model_card=False)
    return folder


def _masked(folder: Path):
    """A BERT of two layers that predicts words: a SparseEncoder's first module."""
    from sentence_transformers.base.modules import Transformer

    bert = _saved(folder / "bert", "BertForMaskedLM", 4, initializer_range=0.3)
    return Transformer(str(bert), transformer_task="fill-mask", max_seq_length=LIMIT)


def splade(folder: Path, prompts: dict[str, str] | None = None, **options) -> Path:
    """Save a SPLADE of two layers that reads LIMIT tokens."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    return _kept(
        SparseEncoder(
            modules=[_masked(folder), SpladePooling()], prompts=prompts, **options
        ),
        folder,
    )


def inference_free(folder: Path) -> Path:
    """Save a SparseEncoder that looks the weights of a query's words up, and reads
    documents as the SPLADE above.
    """
    import torch
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sparse_encoder.modules import (
        SparseStaticEmbedding,
        SpladePooling,
    )

    body = _masked(folder)
    torch.manual_seed(5)
    weights = SparseStaticEmbedding(
        body.tokenizer, weight=torch.rand(len(WORDS) + 6), frozen=True
    )
    return _kept(
        SparseEncoder(
            modules=[Router.for_query_document([weights], [body, SpladePooling()])]
        ),
        folder,
    )


def colbert(folder: Path, *, attend: bool = False, expansion: bool = True) -> Path:
    """Save a MultiVectorEncoder of two layers: 10 tokens of a document, queries filled
    up to 8, "the" left out.
    """
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    bert = _saved(folder / "bert", "BertModel", 6, initializer_range=0.3)
    filled = {"strategy": "fixed", "attend": attend, "length": 8} if expansion else None
    body = Transformer(str(bert), document_length=10, query_expansion=filled)
    narrow = Dense(
        32,
        16,
        bias=False,
        activation_function=torch.nn.Identity(),
        module_input_name="token_embeddings",
    )
    modules = [
        body,
        narrow,
        MultiVectorMask(skiplist_words=["the"]),
        Normalize(module_input_name="token_embeddings"),
    ]
    prompts = {"query": "query ", "document": "passage "}
    return _kept(MultiVectorEncoder(modules=modules, prompts=prompts), folder)


def pylate(folder: Path, *, names_class: bool = True) -> Path:
    """Save the model of `colbert` as PyLate does: prompts and lengths are elsewhere.

    It named its class only since sentence-transformers 5.
    """
    model = colbert(folder)
    body_file = model / "sentence_bert_config.json"
    body_settings = json.loads(body_file.read_text())
    del body_settings["document_length"], body_settings["query_expansion"]
    body_file.write_text(json.dumps(body_settings))
    modules_file = model / "modules.json"
    body_and_dense = json.loads(modules_file.read_text())[:2]
    modules_file.write_text(json.dumps(body_and_dense))
    settings = {
        "prompts": {},
        "query_prefix": "query ",
        "document_prefix": "passage ",
        "query_length": 8,
        "document_length": 10,
        "do_query_expansion": True,
        "attend_to_expansion_tokens": False,
        "skiplist_words": ["the"],
    }
    if names_class:
        settings["model_type"] = "ColBERT"
    settings_file = model / "config_sentence_transformers.json"
    settings_file.write_text(json.dumps(settings))
    return model


def stanford_colbert(folder: Path) -> Path:
    """Save a ColBERT as Stanford's library does, with the lengths of `colbert`."""
    import torch
    from safetensors.torch import load_file, save_file

    _saved(folder, "BertModel", 6, initializer_range=0.3)
    config_file = folder / "config.json"
    config = json.loads(config_file.read_text())
    config_file.write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    weights_file = folder / "model.safetensors"
    weights = {f"bert.{name}": rows for name, rows in load_file(weights_file).items()}
    weights["linear.weight"] = torch.rand(16, 32) - 0.5
    save_file(weights, weights_file, metadata={"format": "pt"})
    metadata = {
        "query_maxlen": 8,
        "doc_maxlen": 10,
        "query_token_id": "query",
        "doc_token_id": "passage",
    }
    (folder / "artifact.metadata").write_text(json.dumps(metadata))
    return folder
