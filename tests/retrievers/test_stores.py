"""Every store returns the same rankings, for vectors of every form."""

import itertools
import subprocess
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter
from retrievers.ragged import (
    SparseVectors,
    TokenVectors,
    concatenate_vectors,
    nonzero_rows,
)
from retrievers.stores import request_batches
from retrievers.stores.open import open_store
from retrievers.stores.options import StoreOptions
from retrievers.stores.points import (
    DOCUMENT_NAMESPACE,
    EngineHits,
    point_id,
    search_past_ties,
)
from retrievers.stores.request_batches import split_requests
from retrievers.types import SCORE_RESOLUTION, ranked
from retrievers.vector_bytes import from_bytes, to_bytes
from tests.support.flat_vectors import flat
from tests.support.store_places import KEEPING, LOCATIONS, REAL, fill, rows_of

FORMS = {"dense": LOCATIONS, "sparse": ("csr", *LOCATIONS), "multivector": LOCATIONS}
PLACES = rows_of(FORMS)


def random_vectors(count, dimensions, seed=1):
    return (
        np.random.default_rng(seed)
        .standard_normal((count, dimensions))
        .astype(np.float32)
    )


def vectors_of(form, rows):
    """Vectors of a form out of texts, tokens and dimensions."""
    if form == "multivector":
        return TokenVectors.from_matrices(list(rows))
    return (
        SparseVectors.from_dense(rows[:, 0])
        if form == "sparse"
        else rows[:, 0].astype(np.float32)
    )


def products(queries, documents):
    """Return every score (queries, documents), in 64 bits, by NumPy."""
    if isinstance(queries, TokenVectors):
        return max_sims(queries, documents)
    query_matrix = np.stack(flat(queries)).astype(np.float64)
    document_matrix = np.stack(flat(documents)).astype(np.float64)
    if not isinstance(queries, SparseVectors):
        query_matrix = query_matrix / row_lengths(query_matrix)
        document_matrix = document_matrix / row_lengths(document_matrix)
    return query_matrix @ document_matrix.T


def row_lengths(matrix):
    return np.linalg.norm(matrix, axis=1, keepdims=True)


def max_sims(queries, documents):
    """Return the sum of each query token's largest product, for every document."""
    score_rows = []
    for query in queries.rows():
        scores = []
        for document in documents.rows():
            token_products = query.astype(np.float64) @ document.astype(np.float64).T
            scores.append(token_products.max(axis=1).sum())
        score_rows.append(scores)
    return np.array(score_rows)


def check_rankings(rankings, scores, ids, limit, *, positive=False, rounded_sums=2):
    """Hits may be swapped if true scores differ by less than rounded 32-bit sums."""
    for row, ranking in zip(scores, rankings, strict=True):
        expected = ranked(ids, row, limit)
        count = int((expected.scores > 0).sum()) if positive else len(expected)
        true = dict(zip(ids, row.tolist(), strict=True))
        unit = SCORE_RESOLUTION * np.abs(row).max(initial=0)
        assert len(set(ranking.doc_ids)) == len(ranking) == count
        assert ranking.scores == pytest.approx(expected.scores[:count], abs=2 * unit)
        for ours, theirs in zip(ranking.doc_ids, expected.doc_ids[:count], strict=True):
            assert (
                ours == theirs or abs(true[ours] - true[theirs]) < rounded_sums * unit
            )


def near_and_equal(count, dimensions):
    """Vectors that are equal, that differ in length, and that are 1e-7 apart."""
    base = random_vectors(count // 4, dimensions)
    chance = random_vectors(count // 4, dimensions, seed=2)
    return np.concatenate(
        [base, base, base * np.float32(3), base + chance * np.float32(1e-7)]
    )


CORPORA = {
    "of some dimensions": random_vectors(300, 48),
    "of many dimensions": random_vectors(60, 384),
    "in a plane": random_vectors(100, 2),
    "near and equal": near_and_equal(160, 8),
    "with many ties": np.array(
        list(itertools.product((-1, 0, 1), repeat=5)), dtype=np.float32
    )[np.arange(243) != 121],  # without the vector of zeros
    "of one vector": random_vectors(1, 4),
    # Lengths that 32 bits cannot hold.
    "too long": random_vectors(150, 16) * np.float32(1e37),
    "too short": random_vectors(150, 16) * np.float32(1e-37),
}


def ragged(form, count, seed):
    """Texts of one to six tokens, whose numbers are often 0."""
    random = np.random.default_rng(seed)
    rows = np.maximum(random.standard_normal((count, 6, 24)) - 0.5, 0)
    if form == "multivector":
        return TokenVectors.from_matrices(
            [row[: random.integers(1, 7)] for row in rows]
        )
    return vectors_of(form, rows)


def check_store(store, vectors, queries, *, positive=False, rounded_sums=2):
    """Its rankings are those of all scores, for queries together and for each alone."""
    ids = [f"doc {i}" for i in np.random.default_rng(3).permutation(len(vectors))]
    fill(store, ids, vectors)
    scores = products(queries, vectors)
    for limit in (1, 10, 100, 1000):
        together = store.search(queries, limit)
        check_rankings(
            together,
            scores,
            ids,
            limit,
            positive=positive,
            rounded_sums=rounded_sums,
        )
        alone = [
            store.search(queries[i : i + 1], limit)[0] for i in range(len(queries))
        ]
        assert alone == together, f"scores depend on others of the batch: {limit=}"


FEW = 40
"""Vectors of a test in a folder, which commits each point by itself."""


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize(("form", "location"), rows_of({"dense": LOCATIONS}))
def test_every_store_ranks_dense_vectors_exactly_in_batches_of_any_size(
    places, form, location, corpus
):
    vectors = CORPORA[corpus][: FEW if location == "folder" else None]
    queries = np.concatenate([random_vectors(8, vectors.shape[1], seed=4), vectors[:3]])
    check_store(places(location, form), vectors, queries, rounded_sums=1)


@pytest.mark.parametrize(
    ("form", "location"),
    rows_of({form: FORMS[form] for form in ("sparse", "multivector")}),
)
def test_every_store_ranks_ragged_vectors_exactly_in_batches_of_any_size(
    places, form, location
):
    vectors = ragged(form, FEW if location == "folder" else 1000, 9)
    queries = ragged(form, 15, 4)
    check_store(places(location, form), vectors, queries, positive=form == "sparse")


@pytest.mark.parametrize(("form", "location"), PLACES)
def test_ties_at_the_limit_are_resolved_by_id_among_matching_points(
    places, form, location
):
    rows = np.repeat(
        np.random.default_rng(8).random((3, 4, 6)) + 0.1, 15, axis=0
    )  # each 15 times
    vectors = vectors_of(form, rows)
    ids = [f"{i:02}" for i in range(45)]
    fields = [{"language": ("de", "ja", "en")[i % 3]} for i in range(45)]
    store = places(location, form)
    store.create(6)
    store.upsert(ids, vectors, fields)
    store.finish({})
    scores = np.round(products(vectors[::15], vectors), 6)
    assert store.search(vectors[:1], 7)[0].doc_ids == ranked(ids, scores[0], 7).doc_ids
    query_filters = [(("language", ("de", "en")),), (("language", ("fr",)),), ()]
    for row, ranking, values in zip(
        scores,
        store.search(vectors[::15], 10, query_filters=query_filters),
        query_filters,
        strict=True,
    ):
        matching = [
            i for i in range(45) if not values or fields[i]["language"] in values[0][1]
        ]
        check_rankings([ranking], row[None, matching], [ids[i] for i in matching], 10)


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_point_that_is_added_twice_is_an_error_at_the_end(places, location):
    store = places(location)
    store.create(2)
    store.upsert(["a", "b"], np.array([[1, 0], [0, 1]], np.float32))
    store.upsert(["a"], np.array([[-1, 0]], np.float32))
    with pytest.raises(BackendError, match="2 points for 3 documents"):
        store.finish({})


@pytest.mark.parametrize(
    ("form", "location"), rows_of(dict.fromkeys(FORMS, (*KEEPING, *REAL)))
)
def test_collections_are_reused_if_finished_continued_if_not_and_rebuilt(
    places, form, location
):
    vectors = vectors_of(form, np.random.default_rng(8).random((20, 3, 6)) - 0.2)
    ids = [str(i) for i in range(20)]
    notes = {"truncated": ("3", "7"), "empty": ()}
    half = places(location, form)
    assert half.finished() is None
    half.create(6)
    half.upsert(ids[:8], vectors[:8])
    half.close()
    resumed = places(location, form)
    assert resumed.finished() is None
    fill(
        resumed,
        ids,
        vectors,
        {name: list(noted_ids) for name, noted_ids in notes.items()},
    )
    answers = resumed.search(vectors[:5], 20)
    check_rankings(
        answers, products(vectors[:5], vectors), ids, 20, positive=form == "sparse"
    )
    resumed.close()
    for _ in range(2):
        again = places(location, form)
        assert again.finished() == notes
        assert again.search(vectors[:5], 20) == answers
        again.close()
    anew = fill(places(location, form), ["c", "d", "e"], vectors[:3])
    few = products(vectors[:1], vectors[:3])
    check_rankings(
        anew.search(vectors[:1], 5), few, ["c", "d", "e"], 5, positive=form == "sparse"
    )


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the refused client leaves a file open
def test_a_collection_used_by_another_process_is_an_input_error(places, tmp_path):
    stores = {str(tmp_path / "qdrant"): places("folder"), "edge": places("edge")}
    for store in stores.values():
        fill(store, ["a"], random_vectors(1, 4)).close()
    holder = f"""
import sys
from pathlib import Path
from retrievers.meter import Meter
from retrievers.stores.open import open_store
from retrievers.stores.options import StoreOptions
known = dict(documents=1, folder=Path({str(tmp_path)!r}), meter=Meter())
opened = [
    open_store(StoreOptions(place), {places.content!r}, **known)
    for place in {list(stores)!r}
]
print([one.finished() for one in opened], flush=True)
sys.stdin.read()
"""
    piped = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
        "cwd": Path(__file__).parents[2],
    }
    process = subprocess.Popen([sys.executable, "-c", holder], **piped)
    try:
        assert process.stdout.readline() == f"{[{}] * len(stores)}\n"
        for store in stores.values():
            with pytest.raises(InputError, match="another process uses it"):
                store.finished()
    finally:
        process.communicate()
    assert all(store.finished() == {} for store in stores.values())


@pytest.mark.parametrize("location", ["folder", "edge"])
def test_a_file_instead_of_the_folder_is_an_input_error(tmp_path, location):
    path = tmp_path / "taken"
    path.write_text("")
    options = StoreOptions(str(path) if location == "folder" else location)
    with pytest.raises(InputError, match="cannot be read or written"):
        fill(
            open_store(options, "c", documents=9, folder=path, meter=Meter()),
            ["a"],
            random_vectors(1, 4),
        )


def test_a_collection_that_cannot_be_read_is_an_input_error(places, tmp_path):
    store = places("edge")
    fill(store, ["a"], random_vectors(1, 4))
    store.close()
    [ids_file] = tmp_path.rglob("ids.json")
    ids_file.unlink()
    ids_file.mkdir()
    with pytest.raises(InputError, match=r"cannot be read or written: .*ids\.json"):
        store.finished()


def test_retrievers_of_one_process_share_an_edge_collection(places):
    vectors = random_vectors(20, 4)
    first = places("edge", m=16)
    fill(first, [f"d{i}" for i in range(20)], vectors)
    second = places("edge", m=16, ef=64)
    assert second.finished() == {}
    nearest = [ranking.doc_ids for ranking in second.search(vectors[:2], 1)]
    assert nearest == [("d0",), ("d1",)]


def test_sparse_vectors_need_no_disk_for_their_whole_vocabulary(places, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=10**8))
    vectors = SparseVectors.from_dense(np.eye(3, dtype=np.float32))
    store = places("edge", "sparse")
    store.create(2**31)
    store.upsert(["a", "b", "c"], vectors)
    store.finish({})
    [nearest] = store.search(vectors[1:2], 1)
    assert nearest.doc_ids == ("b",)


def test_a_full_disk_is_reported_before_the_engine_dies(places, monkeypatch):
    vectors = random_vectors(20, 4)
    store = places("edge")
    fill(store, [f"d{i}" for i in range(20)], vectors)
    store.close()
    with monkeypatch.context() as full:
        full.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=50_000_000))
        with pytest.raises(
            InputError,
            match=r"needs \d+ MB of disk, and 50 MB are free \(free disk space",
        ):
            store.create(4)
    store.create(4)


@pytest.mark.parametrize(
    ("options", "least_recall", "most_recall", "files"),
    [
        ({"m": 16, "ef": 256}, 0.9, 1.0, ("matrix.dat", "links_compressed.bin")),
        ({"quantization": "scalar"}, 0.95, 1.0, ("quantized.data",)),
        (
            {"quantization": "product", "oversampling": 8.0},
            0.95,
            1.0,
            ("quantized.data",),
        ),
        (
            {"quantization": "binary", "oversampling": 8.0},
            0.6,
            0.99,  # bits alone lose hits, whatever is looked at again
            ("quantized.data",),
        ),
    ],
)
def test_approximate_search_has_the_recall_and_the_bytes_of_its_kind(
    places, tmp_path, options, least_recall, most_recall, files
):
    vectors = random_vectors(2000, 128)  # the engine keeps bits in words of 128
    ids = [str(i) for i in range(len(vectors))]
    queries = random_vectors(50, 128, seed=6)
    approximate = places("edge", **options)
    exact = fill(places(":memory:"), ids, vectors)
    fill(approximate, ids, vectors)
    expected = [ranking.doc_ids for ranking in exact.search(queries, 10)]
    assert approximate.approximate and not exact.approximate
    without_index = approximate.search(queries, 10, exact=True)
    assert [ranking.doc_ids for ranking in without_index] == expected
    recall = np.mean(
        [
            len(set(ranking.doc_ids) & set(exact_hits)) / 10
            for ranking, exact_hits in zip(
                approximate.search(queries, 10), expected, strict=True
            )
        ]
    )
    assert least_recall <= recall <= most_recall
    approximate.close()
    on_disk = sum(
        path.stat().st_size for name in files for path in tmp_path.rglob(name)
    )
    assert StoreOptions("edge", **options).search_bytes(2000, 128) == pytest.approx(
        on_disk, rel=0.15
    )


@given(st.sets(st.text(min_size=1), max_size=30), st.uuids())
def test_point_ids_are_uuids_and_differ_and_a_uuid_stays_as_it_is_spelt(ids, value):
    assert [point_id(document) for document in ids] == [
        str(uuid.uuid5(DOCUMENT_NAMESPACE, document)) for document in ids
    ]
    spellings = {value.hex, str(value).upper(), f"{{{value}}}"} - {str(value)}
    assert point_id(str(value)) == str(value)
    assert str(value) not in {point_id(spelling) for spelling in spellings}


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=200),
    st.integers(1, 20),
    st.randoms(use_true_random=False),
)
def test_ties_at_the_limit_are_resolved_in_any_order_of_the_engine(
    scores, limit, chance
):
    rows = [(f"d{i:03}", score / 3) for i, score in enumerate(scores)]

    def search(queries, limit):
        shuffled_rows = chance.sample(rows, len(rows))
        best = sorted(shuffled_rows, key=lambda row: -row[1])[:limit]
        doc_ids = [doc_id for doc_id, _ in best]
        best_scores = [score for _, score in best]
        return [EngineHits(doc_ids, best_scores) for _ in queries]

    [ranking] = search_past_ties(search, np.zeros((1, 2), dtype=np.float32), limit)
    ids, values = zip(*rows, strict=True)
    assert ranking.doc_ids == ranked(ids, values, limit).doc_ids


def test_requests_of_token_vectors_are_no_larger_than_a_server_accepts(monkeypatch):
    """They have 24, 20, 48 (one text), 8 and 4 numbers, and at most 2 texts."""
    monkeypatch.setattr(request_batches, "MAX_REQUEST_NUMBERS", 40)
    token_counts = (3, 3, 5, 12, 1, 1, 1)
    vectors = TokenVectors.from_matrices([np.ones((n, 4)) for n in token_counts])
    batches = [(batch.start, batch.stop) for batch in split_requests(vectors, 2)]
    assert batches == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 7)]


@pytest.mark.parametrize(
    ("dimensions", "sizes"), [(2, [4, 4, 1]), (20, [2, 2, 2, 2, 1]), (100, [1] * 9)]
)
def test_requests_of_dense_vectors_are_no_larger_than_a_server_accepts(
    monkeypatch, dimensions, sizes
):
    monkeypatch.setattr(request_batches, "MAX_REQUEST_NUMBERS", 40)
    batches = split_requests(np.ones((9, dimensions)), 4)
    assert [batch.stop - batch.start for batch in batches] == sizes


@pytest.mark.parametrize(
    ("form", "options", "message"),
    [
        ("dense", {"location": "csr"}, "'csr' does not keep dense vectors"),
        ("multivector", {"location": "csr"}, "'csr' does not keep multivector vectors"),
        (
            "sparse",
            {"location": "edge", "m": 16},
            "store.m: sparse vectors are searched exactly",
        ),
        (
            "multivector",
            {"location": "edge", "quantization": "binary"},
            "multivector vectors are searched exactly",
        ),
    ],
)
def test_options_that_do_not_suit_the_form_of_vectors_are_refused(
    tmp_path, form, options, message
):
    with pytest.raises(InputError, match=message):
        open_store(
            StoreOptions(**options),
            "c",
            documents=5,
            folder=tmp_path,
            meter=Meter(),
            form=form,
        )


@pytest.mark.parametrize(
    ("location", "in_process"),
    [
        (":memory:", True),
        ("csr", True),
        ("edge", False),
        ("./vectors", False),
        ("http://localhost:6333", False),
    ],
)
def test_collections_in_memory_end_with_the_process(location, in_process):
    assert StoreOptions(location).in_process is in_process


def test_a_matrix_with_an_id_that_occurs_twice_is_refused(tmp_path):
    store = open_store(
        StoreOptions("csr"),
        "c",
        documents=2,
        folder=tmp_path,
        meter=Meter(),
        form="sparse",
    )
    with pytest.raises(BackendError, match="occurs twice"):
        fill(store, ["a", "a"], SparseVectors.from_dense(np.eye(2)))


numbers = st.lists(
    st.lists(st.sampled_from([0.0, 1.0, -2.5, 1e-8]), min_size=5, max_size=5),
    min_size=1,
    max_size=12,
)
lengths = st.lists(st.integers(0, 4), min_size=12, max_size=12)


@given(numbers, lengths, st.data())
def test_ragged_vectors_are_taken_joined_and_packed_as_lists(rows, lengths, data):
    matrix = np.array(rows, dtype=np.float32)
    texts = [
        np.outer(np.arange(length) + 1, row).astype(np.float32)
        for row, length in zip(rows, lengths, strict=False)
    ]
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=20))
    for form, stored, flat_rows in (
        ("sparse", SparseVectors.from_dense(matrix), list(matrix)),
        (
            "multivector",
            TokenVectors.from_matrices(texts),
            [text.ravel() for text in texts],
        ),
    ):
        for vectors, expected in (
            (stored, flat_rows),
            (stored[chosen], [flat_rows[i] for i in chosen]),
            (from_bytes(form, to_bytes(stored)), flat_rows),
            (
                concatenate_vectors([stored[:2], stored[2:], stored]),
                flat_rows + flat_rows,
            ),
        ):
            assert len(vectors) == len(expected)
            assert all(
                np.array_equal(a, b)
                for a, b in zip(flat(vectors), expected, strict=True)
            )
        assert nonzero_rows(stored).tolist() == [bool(text.any()) for text in flat_rows]
