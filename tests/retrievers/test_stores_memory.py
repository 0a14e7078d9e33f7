"""Qdrant in memory, compared with NumPy."""

import numpy as np
import pytest

from retrievers.ragged import SparseVectors, TokenVectors
from retrievers.stores.local_ids import IDS_READ_BATCH
from retrievers.types import ranked, round_scores
from tests.retrievers.test_stores import products
from tests.support.qdrant_fake import store_at

LANGUAGES = ("de", "ja", "en")
DEPTH = 10
FILTERS = [(("language", ("de", "en")),), (("language", ("ja",)),), ()]


def dense(count, seed):
    random = np.random.default_rng(seed)
    return random.standard_normal((count, 384)).astype(np.float32)


def sparse(count, seed):
    rows = np.maximum(np.random.default_rng(seed).standard_normal((count, 384)) - 1, 0)
    return SparseVectors.from_dense(rows)


def tokens(count, seed):
    rows = np.random.default_rng(seed).standard_normal((count, 3, 32))
    return TokenVectors.from_matrices(list(rows.astype(np.float32)))


SIZES = [(dense, "dense", 5_000), (sparse, "sparse", 5_000)]
SIZES.append((tokens, "multivector", 1_000))


def filled(form, vectors):
    """Return a store in memory, its ids in an order of chance, and their languages."""
    numbers = np.random.default_rng(3).permutation(len(vectors))
    ids = [f"doc {number:04}" for number in numbers]
    languages = [LANGUAGES[i % len(LANGUAGES)] for i in range(len(vectors))]
    store = store_at(":memory:", form=form)
    store.create(vectors.shape[1])
    store.upsert(ids, vectors, [{"language": language} for language in languages])
    store.finish({})
    return store, ids, languages


def by_numpy(scores, ids, languages, query_filter):
    """Rank the documents that a filter accepts by 64-bit products."""
    accepted = dict(query_filter).get("language", LANGUAGES)
    rows = [i for i, language in enumerate(languages) if language in accepted]
    rows = [i for i in rows if scores[i] != 0]
    return ranked([ids[i] for i in rows], round_scores(scores[rows]), DEPTH)


@pytest.mark.parametrize(("vectors_of", "form", "count"), SIZES)
def test_the_engine_in_memory_ranks_as_numpy_with_and_without_filters(
    vectors_of, form, count
):
    vectors = vectors_of(count, 1)
    queries = vectors_of(3, 2)
    store, ids, languages = filled(form, vectors)
    scores = products(queries, vectors)
    for filters in ([()] * 3, FILTERS):
        rankings = store.search(queries, DEPTH, query_filters=filters)
        for row, ranking, query_filter in zip(scores, rankings, filters, strict=True):
            expected = by_numpy(row, ids, languages, query_filter)
            assert ranking.doc_ids == expected.doc_ids
            assert ranking.scores == pytest.approx(expected.scores, rel=3e-6)


@pytest.mark.parametrize(("vectors_of", "form"), [size[:2] for size in SIZES])
def test_of_41_equal_vectors_those_with_the_highest_ids_are_the_hits(vectors_of, form):
    one = vectors_of(1, 1)
    store, ids, languages = filled(form, one[[0] * 41])
    german = [ids[i] for i in range(41) if languages[i] == "de"]
    assert store.search(one, DEPTH)[0].doc_ids == tuple(sorted(ids)[: -DEPTH - 1 : -1])
    filtered = store.search(one, DEPTH, query_filters=[(("language", ("de",)),)])
    assert filtered[0].doc_ids == tuple(sorted(german)[: -DEPTH - 1 : -1])


def test_hits_are_requested_without_payload_and_vector(monkeypatch):
    store, _, _ = filled("dense", dense(IDS_READ_BATCH + 1, 1))
    requests = []
    query_hits = store._query_hits

    def remember(client, some_requests):
        requests.extend(some_requests)
        return query_hits(client, some_requests)

    monkeypatch.setattr(store, "_query_hits", remember)
    store.search(dense(2, 2), DEPTH)
    assert [(one.with_payload, one.with_vector) for one in requests] == [
        (False, False)
    ] * 2
