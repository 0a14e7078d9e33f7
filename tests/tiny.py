"""Tiny transformers with random weights, made by the tests that want one."""

import json
from pathlib import Path

WORDS = ("the", "a", "of", "wing", "shock", "wave", "flow", "heat", "query", "passage", "title", "body", "cat", "dog")
WORDS += ("sits", "runs", "fast", "slow")
LIMIT = 12


def _tokenizer():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: i for i, word in enumerate([*special, *WORDS, ":"])}
    bare = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    bare.normalizer = normalizers.Lowercase()
    bare.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bare.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bare,
        model_max_length=LIMIT,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _config(**more):
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(WORDS) + 6,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LIMIT,
        type_vocab_size=2,
        **more,
    )


def bi_encoder(folder: Path, prompts: dict[str, str] | None = None) -> Path:
    """Save a BERT of two layers with CLS pooling that reads LIMIT tokens."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from transformers import BertModel

    torch.manual_seed(1)
    BertModel(_config()).save_pretrained(folder / "bert")
    _tokenizer().save_pretrained(folder / "bert")
    body = Transformer(str(folder / "bert"), max_seq_length=LIMIT)
    SentenceTransformer(
        modules=[body, Pooling(body.get_embedding_dimension(), pooling_mode="cls")], prompts=prompts
    ).save(str(folder / "model"), create_model_card=False)
    return folder / "model"


def static(folder: Path) -> Path:
    """Save a model that averages one vector a token: the words above, and any other text letter by letter."""
    import numpy as np
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    pieces = dict.fromkeys(["[UNK]", *WORDS, *letters, *(f"##{letter}" for letter in letters)])
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rows = np.random.default_rng(3).normal(size=(len(pieces), 32)).astype(np.float32)
    body = StaticEmbedding(tokenizer, embedding_weights=rows)
    SentenceTransformer(modules=[body, Normalize()], device="cpu").save(str(folder), create_model_card=False)
    return folder


def cross_encoder(folder: Path, outputs: int = 1) -> Path:
    """Save a BERT of two layers that scores pairs."""
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(2)
    BertForSequenceClassification(_config(num_labels=outputs, initializer_range=0.3)).save_pretrained(folder)
    _tokenizer().save_pretrained(folder)
    assert "BertForSequenceClassification" in json.loads((folder / "config.json").read_text())["architectures"]
    return folder
