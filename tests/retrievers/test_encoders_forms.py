"""Encoders of sparse vectors and of vectors of tokens, against sentence-transformers' own ways."""

import numpy as np
import pytest

from retrievers.embedding import Embedder
from retrievers.encoders.sentence_transformers import (
    LateInteractionEncoder,
    LearnedSparseEncoder,
    SentenceTransformerEncoder,
)
from retrievers.errors import BackendError, InputError
from retrievers.identity import keys
from retrievers.local_models import LocalModel
from retrievers.meter import Meter, single_call
from retrievers.ragged import SparseVectors, TokenVectors
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
from retrievers.types import Embedded
from tests.support import tiny
from tests.support.flat_vectors import flat

TEXTS = ["the cat sits", "a dog runs fast", "shock wave of the wing", "heat", "the", "slow body " * 8, "unheard of"]
ROLES = ("query", "document")
SPARSE = {
    "splade": tiny.splade,
    "prompted": lambda folder: tiny.splade(folder, {"query": "query ", "passage": "passage "}),
    "cosine": lambda folder: tiny.splade(folder, similarity_fn_name="cosine"),
    "few": lambda folder: tiny.splade(folder, max_active_dims=3),
    "inference-free": tiny.inference_free,
}
LATE = {
    "colbert": tiny.colbert,
    "attending": lambda folder: tiny.colbert(folder, attend=True),
    "plain": lambda folder: tiny.colbert(folder, expansion=False),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    made = {}

    def model(name):
        if name not in made:
            made[name] = (SPARSE | LATE)[name](tmp_path_factory.mktemp(name))
        return made[name]

    return model


def encoder(models, name, **options):
    cls = LearnedSparseEncoder if name in SPARSE else LateInteractionEncoder
    return cls(str(models(name)), device="cpu", **options)


def library(models, name):
    import sentence_transformers

    cls = "SparseEncoder" if name in SPARSE else "MultiVectorEncoder"
    return getattr(sentence_transformers, cls)(str(models(name)), device="cpu")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_vectors_are_those_of_the_library(models, name, role):
    embedded = encoder(models, name).embed(TEXTS, role, single_call())
    theirs = library(models, name)
    expected = getattr(theirs, f"encode_{role}")(TEXTS, show_progress_bar=False).to_dense().numpy()
    if name == "cosine":
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert isinstance(embedded.vectors, SparseVectors)
    assert np.allclose(np.stack(flat(embedded.vectors)), expected, atol=1e-6)
    assert (embedded.vectors.values != 0).all() and len(embedded.vectors.values) == (expected != 0).sum()
    if most := library(models, name).max_active_dims:  # releases before 6.2 do not save it
        assert np.diff(embedded.vectors.starts).max() == most


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", LATE)
def test_vectors_of_tokens_are_those_of_the_library(models, name, role):
    embedded = encoder(models, name).embed(TEXTS, role, single_call())
    expected = getattr(library(models, name), f"encode_{role}")(TEXTS, show_progress_bar=False, convert_to_numpy=True)
    assert isinstance(embedded.vectors, TokenVectors)
    for ours, theirs in zip(embedded.vectors.rows(), expected, strict=True):
        assert ours.shape == theirs.shape
        assert np.allclose(ours, theirs, atol=1e-5)


def test_queries_and_documents_of_an_inference_free_model_go_two_ways(models):
    one = encoder(models, "inference-free")
    (query,), (document,) = (flat(one.embed(["the cat"], role, single_call()).vectors) for role in ROLES)
    cat, the = 5 + tiny.WORDS.index("cat"), 5 + tiny.WORDS.index("the")
    assert np.flatnonzero(query).tolist() == sorted([the, cat])
    assert len(np.flatnonzero(document)) > 2


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", SPARSE | LATE)
def test_tokens_are_counted_without_the_model_as_it_reads_them(models, name, role, monkeypatch):
    embedded = encoder(models, name).embed(TEXTS, role, single_call())
    monkeypatch.setattr(LocalModel, "_load", lambda *_: pytest.fail("a model was loaded"))
    one = encoder(models, name)
    read, whole = one.count(TEXTS, role), one.lengths(TEXTS, role)
    assert read.exact and whole.exact
    assert read.counts.tolist() == embedded.tokens.tolist()
    assert np.maximum(whole.counts - read.counts, 0).tolist() == embedded.truncated_tokens.tolist()
    # Of sixteen words and the marks, 12 tokens are read; of a document of a ColBERT 10, of its query 8.
    if not (name == "inference-free" and role == "query"):
        assert embedded.tokens[5] == (12 if name in SPARSE or (name == "plain" and role == "query") else
                                      10 if role == "document" else 8)  # fmt: skip
    assert one.reads == (12 if name in SPARSE else 10)


@pytest.mark.parametrize("name", ("splade", "inference-free", "colbert"))
def test_nothing_is_embedded_twice_and_what_is_read_back_is_the_same(models, name, cache, monkeypatch):
    cold = Meter()
    first = {role: Embedder(encoder(models, name), cache).embed([*TEXTS, "heat"], role, cold) for role in ROLES}
    monkeypatch.setattr(LocalModel, "_load", lambda *_: pytest.fail("a model was loaded"))
    warm = Meter()
    for role in ROLES:
        again = Embedder(encoder(models, name), cache).embed([*TEXTS, "heat"], role, warm)
        assert type(again.vectors) is type(first[role].vectors)
        for ours, before in zip(flat(again.vectors), flat(first[role].vectors), strict=True):
            assert np.array_equal(ours, before)
        assert again.truncated_tokens.tolist() == first[role].truncated_tokens.tolist()
    assert cold.counts("")["texts"] == len(TEXTS) * 2 and not cold.counts("").get("cached")
    assert warm.counts("")["cached"] == warm.counts("")["texts"] == len(TEXTS) * 2


def test_vectors_of_other_dimensions_in_the_cache_are_refused(cache):
    names = keys("f", "document", ["a", "b"])
    one = np.ones(1, dtype=np.int64)
    for name, width in zip(names, (4, 5), strict=True):
        cache.put("f", [name], Embedded(SparseVectors.of(np.eye(1, width)), one, one))
    with pytest.raises(BackendError, match="several dimensions"):
        cache.get(names, "sparse")


@pytest.mark.parametrize("cls", (LearnedSparseEncoder, LateInteractionEncoder, CrossEncoderReranker))
def test_a_model_that_would_get_random_layers_is_refused(cls, tmp_path):
    folder = tiny.bi_encoder(tmp_path)
    with pytest.raises(InputError, match="layers with random weights would be put on top of it"):
        cls(str(folder))


def test_a_reranker_is_no_encoder(tmp_path):
    with pytest.raises(InputError, match="is not a SentenceTransformer: it scores pairs"):
        SentenceTransformerEncoder(str(tiny.cross_encoder(tmp_path)))


def test_a_masked_language_model_alone_is_taken_as_a_splade(tmp_path):
    tiny.splade(tmp_path)
    bare = LearnedSparseEncoder(str(tmp_path / "bert"), device="cpu").embed(["heat"], "document", single_call())
    saved = LearnedSparseEncoder(str(tmp_path / "model"), device="cpu").embed(["heat"], "document", single_call())
    assert np.allclose(np.stack(flat(bare.vectors)), np.stack(flat(saved.vectors)))


def test_other_likenesses_are_refused(tmp_path):
    folder = tiny.splade(tmp_path, similarity_fn_name="euclidean")
    with pytest.raises(InputError, match="compares vectors by euclidean"):
        LearnedSparseEncoder(str(folder), device="cpu").embed(["heat"], "query", single_call())


def test_the_fingerprint_changes_with_all_that_changes_a_vector(models):
    names = {
        encoder(models, "splade").fingerprint,
        encoder(models, "splade", max_active_dims=3).fingerprint,
        encoder(models, "splade", query_prompt="query ").fingerprint,
        encoder(models, "splade", dtype="bfloat16").fingerprint,
        encoder(models, "cosine").fingerprint,
        encoder(models, "colbert").fingerprint,
        encoder(models, "plain").fingerprint,
    }
    assert len(names) == 7
