"""Sparse vectors and vectors of tokens in every store: the same answers as a product of all with all."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.embedding import Embedder
from retrievers.encoders.sentence_transformers import LateInteractionEncoder, LearnedSparseEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter
from retrievers.ragged import SparseVectors, TokenVectors, joined, packed, unpacked, with_direction
from retrievers.stores import StoreOptions, open_store, qdrant
from retrievers.types import RESOLUTION, ranked
from tests.support import tiny
from tests.support.flat_vectors import flat
from tests.support.store_places import KEEPING, LOCATIONS, REAL, fill, with_first

pytestmark = pytest.mark.slow

COUNT = 1000
FORMS = {"sparse": ("csr", *LOCATIONS), "multivector": LOCATIONS}
PLACES = [with_first(form, location) for form, locations in FORMS.items() for location in locations]
MODELS = {"splade": tiny.splade, "inference-free": tiny.inference_free, "colbert": tiny.colbert}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """The vectors of 1,000 texts and 15 queries by a model."""
    random = np.random.default_rng(9)
    texts = [" ".join(random.choice(tiny.WORDS, random.integers(1, 9))) for _ in range(COUNT)]
    queries = [" ".join(random.choice(tiny.WORDS, random.integers(1, 4))) for _ in range(15)]
    made = {}

    def vectors(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            cls = LateInteractionEncoder if name == "colbert" else LearnedSparseEncoder
            embedder = Embedder(cls(str(MODELS[name](folder)), device="cpu"), None)
            made[name] = tuple(
                embedder.embed(some, role, Meter()).vectors for some, role in ((texts, "document"), (queries, "query"))
            )
        return made[name]

    return vectors


def vectors_of(form, rows):
    return SparseVectors.of(rows[:, 0]) if form == "sparse" else TokenVectors.of(list(rows))


def products(queries, documents):
    """Every score, in 64 bits, by NumPy."""
    if isinstance(queries, SparseVectors):
        q, d = (np.stack(flat(side)).astype(np.float64) for side in (queries, documents))
        return q @ d.T
    sides = [[row.astype(np.float64) for row in side.rows()] for side in (queries, documents)]
    return np.array([[(q @ d.T).max(axis=1).sum() for d in sides[1]] for q in sides[0]])


def check_rankings(rankings, scores, ids, limit, *, positive):
    """A swap passes where the true scores differ by less than 2e-6 of the largest: both are rounded 32-bit sums."""
    for row, ranking in zip(scores, rankings, strict=True):
        expected = ranked(ids, row, limit)
        count = int((expected.scores > 0).sum()) if positive else len(expected)
        true = dict(zip(ids, row.tolist(), strict=True))
        unit = RESOLUTION * np.abs(row).max(initial=0)
        assert len(set(ranking.doc_ids)) == len(ranking) == count
        assert ranking.scores == pytest.approx(expected.scores[:count], abs=2 * unit)
        for ours, theirs in zip(ranking.doc_ids, expected.doc_ids[:count], strict=True):
            assert ours == theirs or abs(true[ours] - true[theirs]) < 2 * unit


@pytest.mark.parametrize("limit", (1, 10, COUNT))
@pytest.mark.parametrize(
    ("name", "location"),
    [with_first(name, place) for name in MODELS for place in FORMS["multivector" if name == "colbert" else "sparse"]],
)
def test_rankings_are_those_of_a_product_of_all_with_all(places, embedded, name, location, limit):
    documents, queries = embedded(name)
    count = 60 if location == "folder" else COUNT  # a folder commits each point by itself
    documents = documents[:count]
    ids = [f"doc {i}" for i in np.random.default_rng(3).permutation(count)]
    form = "multivector" if name == "colbert" else "sparse"
    rankings = fill(places(location, form), ids, documents).search(queries, limit)
    check_rankings(rankings, products(queries, documents), ids, limit, positive=form == "sparse")


@pytest.mark.parametrize("location", FORMS["sparse"])
def test_what_shares_nothing_with_the_query_is_no_answer(places, location):
    rows = np.zeros((6, 9))
    rows[0, 0], rows[1, [0, 1]], rows[2, 5], rows[3, [0, 1]], rows[4, 0] = 1, (1, -1), 2, (1, -2), 3
    rows[5, [0, 1]] = 0.5, 0.5
    ids = ["one", "cancelled", "other", "negative", "three", "tied"]
    query = np.zeros((2, 9))
    query[0, [0, 1]], query[1, 8] = 1, 1
    store = fill(places(location, "sparse"), ids, SparseVectors.of(rows))
    first, none = store.search(SparseVectors.of(query), 10)
    assert first.doc_ids == ("three", "tied", "one") and first.scores.tolist() == pytest.approx([3, 1, 1], abs=3e-6)
    assert none.doc_ids == ()


@pytest.mark.parametrize(("form", "location"), PLACES)
def test_ties_at_the_limit_are_resolved_by_id(places, form, location):
    base = np.random.default_rng(8).random((3, 4, 6)) + 0.1
    rows = np.repeat(base, 15, axis=0)  # each 15 times
    vectors = vectors_of(form, rows)
    ids = [f"{i:02}" for i in range(45)]
    (ranking,) = fill(places(location, form), ids, vectors).search(vectors[:1], 7)
    scores = products(vectors[:1], vectors)[0]
    assert ranking.doc_ids == ranked(ids, np.round(scores, 6), 7).doc_ids


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("location", (*KEEPING, *REAL))
def test_a_collection_that_is_kept_is_found_again(places, form, location):
    vectors = vectors_of(form, np.random.default_rng(8).random((20, 3, 6)))
    ids = [str(i) for i in range(20)]
    first = fill(places(location, form), ids, vectors, {"numbers": ["20", "120"]})
    before = first.search(vectors[:5], 20)
    first.close()
    again = places(location, form)
    assert again.finished() == {"numbers": ("20", "120")}
    assert again.search(vectors[:5], 20) == before


@pytest.mark.parametrize(("form", "location"), PLACES)
def test_only_what_is_wanted_is_an_answer(places, form, location):
    vectors = vectors_of(form, np.random.default_rng(8).random((40, 3, 6)))
    ids = [f"{i:02}" for i in range(40)]
    fields = [{"language": ("de", "ja", "en")[i % 3]} for i in range(40)]
    store = places(location, form)
    store.create(6)
    store.upsert(ids, vectors, fields)
    store.finish({})
    wanted = [(("language", ("de",)),), (("language", ("de", "en")),), (("language", ("fr",)),)]
    rankings = store.search(vectors[:3], 10, wanted=wanted)
    for row, ranking, values in zip(products(vectors[:3], vectors), rankings, wanted, strict=True):
        kept = [i for i in range(40) if fields[i]["language"] in values[0][1]]
        check_rankings([ranking], row[None, kept], [ids[i] for i in kept], 10, positive=False)


@pytest.mark.parametrize("form", ("sparse", "multivector"))
def test_an_upload_is_taken_up_again(places, form):
    vectors = vectors_of(form, np.random.default_rng(8).random((20, 3, 6)))
    ids = [str(i) for i in range(20)]
    cut = places("server", form)
    cut.create(6)
    cut.upsert(ids[:10], vectors[:10])
    again = fill(places("server", form), ids, vectors)
    check_rankings(again.search(vectors[:3], 5), products(vectors[:3], vectors), ids, 5, positive=False)


def test_requests_hold_no_more_than_a_server_takes(monkeypatch):
    monkeypatch.setattr(qdrant, "NUMBERS", 40)
    vectors = TokenVectors.of([np.ones((count, 4)) for count in (3, 3, 5, 12, 1, 1, 1)])
    batches = [(batch.start, batch.stop) for batch in qdrant._requests(vectors, 2)]
    assert batches == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 7)]  # 24, 20, 48 alone, 8, 4 numbers; at most 2 texts
    sizes = {d: [len(range(9)[batch]) for batch in qdrant._requests(np.ones((9, d)), 4)] for d in (2, 20, 100)}
    assert sizes == {2: [4, 4, 1], 20: [2, 2, 2, 2, 1], 100: [1] * 9}


def test_a_document_that_stands_twice_is_an_error(places):
    with pytest.raises(BackendError, match="occurs twice"):
        fill(places("csr", "sparse"), ["a", "a"], SparseVectors.of(np.eye(2)))


@pytest.mark.parametrize(
    ("form", "options", "message"),
    [
        ("dense", {"location": "csr"}, "'csr' does not keep dense vectors"),
        ("multivector", {"location": "csr"}, "'csr' does not keep multivector vectors"),
        ("sparse", {"location": "edge", "m": 16}, "store.m: sparse vectors are searched exactly"),
        ("multivector", {"location": "edge", "quantization": "binary"}, "multivector vectors are searched exactly"),
    ],
)
def test_options_that_do_not_suit_the_vectors_are_refused(form, options, message):
    with pytest.raises(InputError, match=message):
        open_store(StoreOptions(**options), "c", documents=5, folder=Path(), meter=Meter(), form=form)


ragged = st.lists(st.lists(st.sampled_from([0.0, 1.0, -2.5, 1e-8]), min_size=5, max_size=5), min_size=1, max_size=12)


@given(ragged, st.data())
def test_sparse_vectors_are_taken_joined_and_packed_as_dense_ones(rows, data):
    whole = np.array(rows, dtype=np.float32)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=20))
    kept = SparseVectors.of(whole)
    assert np.array_equal(np.reshape(flat(kept[chosen]), (-1, 5)), whole[chosen])
    assert with_direction(kept).tolist() == whole.any(axis=1).tolist()
    assert np.array_equal(flat(unpacked("sparse", packed(kept))), whole)
    assert np.array_equal(flat(joined([kept[:2], kept[2:], kept])), np.concatenate([whole, whole]))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.data())
def test_vectors_of_tokens_are_taken_joined_and_packed_as_lists(lengths, data):
    texts = [np.arange(length * 3, dtype=np.float32).reshape(length, 3) + i for i, length in enumerate(lengths)]
    chosen = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=20))
    kept = TokenVectors.of(texts)

    def same(vectors, wanted):
        assert len(vectors) == len(wanted)
        assert all(np.array_equal(a, b) for a, b in zip(vectors.rows(), wanted, strict=True))

    same(kept[chosen], [texts[i] for i in chosen])
    same(unpacked("multivector", packed(kept)), texts)
    same(joined([kept[:1], kept[1:]]), texts)
    assert with_direction(kept).tolist() == [bool(text.any()) for text in texts]
