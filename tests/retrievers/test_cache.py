"""The cache, and texts that are embedded once, in requests independent of it."""

from __future__ import annotations

import hashlib
import math
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.cache import Cache, default_cache_path
from retrievers.embedder import Embedder
from retrievers.encoders.hashing import HashingEncoder
from retrievers.errors import BackendError, HarnessError, InputError
from retrievers.identity import text_keys
from retrievers.meter import Meter, single_call
from retrievers.ragged import SparseVectors
from retrievers.types import Embedded, Encoder, PairScores


def embedded(n, d=4, seed=0):
    random = np.random.default_rng(seed)
    return Embedded(
        random.normal(size=(n, d)).astype(np.float32),
        np.arange(n) + 1,
        np.arange(n) % 2,
    )


@pytest.fixture
def cache(tmp_path):
    with Cache(tmp_path / "deep" / "cache.sqlite") as opened:
        yield opened


def rows_of(cache):
    return sum(holding.rows for holding in cache.info())


SCORES_OF_PAIRS = PairScores(
    np.array([0.1, -7.25, 1e-300]), np.array([3, 4, 5]), np.array([0, 1, 0])
)
MANY_KEYS = text_keys("model", "document", [str(number) for number in range(9000)])
PAIR_KEYS = text_keys("model", "pair", "abc")
ABSENT = text_keys("model", "query", "01")


def check_stored(returned, stored):
    """All is there in full, beside two keys that are absent; rows in any order."""
    positions, columns = returned
    order = np.argsort(positions)
    assert positions[order].tolist() == list(range(2, len(stored[0]) + 2))
    assert [column.dtype for column in columns] == [column.dtype for column in stored]
    for column, expected in zip(columns, stored, strict=True):
        assert np.array_equal(column[order], expected)


def test_stored_vectors_are_returned_in_full(cache):
    cache.put("model", MANY_KEYS, embedded(9000))
    check_stored(cache.get([*ABSENT, *MANY_KEYS]), embedded(9000))


def test_stored_scores_are_returned_in_full(cache):
    cache.put_scores("reranker", PAIR_KEYS, SCORES_OF_PAIRS)
    check_stored(cache.get_scores([*ABSENT, *PAIR_KEYS]), SCORES_OF_PAIRS)


def test_stored_rows_are_counted_by_model_and_removed(cache):
    cache.put("model", MANY_KEYS, embedded(9000))
    cache.put_scores("reranker", PAIR_KEYS, SCORES_OF_PAIRS)
    # Four numbers of 32 bits a vector, one of 64 bits a pair.
    assert [tuple(holding) for holding in cache.info()] == [
        ("model", 9000, 9000 * 16),
        ("reranker", 3, 24),
    ]
    assert cache.clear("model") == 9000
    assert [holding.fingerprint for holding in cache.info()] == ["reranker"]
    assert cache.clear() == 3
    assert cache.info() == ()


@settings(max_examples=20)
@given(st.lists(st.text(), unique=True, max_size=20), st.text(), st.text())
def test_keys_depend_on_every_part(texts, fingerprint, role):
    all_keys = text_keys(fingerprint, role, texts)
    assert len(set(all_keys)) == len(texts)
    assert not set(all_keys) & {
        *text_keys(fingerprint + "x", role, texts),
        *text_keys(fingerprint, role + "x", texts),
    }


@pytest.mark.parametrize(
    "change", ["value = zeroblob(16)", "lost = lost + 1", "key = :other"]
)
def test_a_damaged_row_counts_as_absent_and_is_replaced(cache, change):
    names = text_keys("model", "document", "abc")
    cache.put("model", names[:2], embedded(2))
    with closing(sqlite3.connect(cache.path)) as database, database:
        database.execute(
            f"UPDATE rows SET {change} WHERE key = :key",
            {"key": names[0], "other": names[2]},
        )
    assert cache.get(names)[0].tolist() == [1]
    cache.put("model", names, embedded(3))
    assert sorted(cache.get(names)[0]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DROP TABLE rows", "no such table: rows .set HARNESS_CACHE"),
        ("PRAGMA user_version = 0", "already exists .set HARNESS_CACHE"),
        (
            "PRAGMA user_version = 2",
            "is a cache of version 2, this program reads 1 "
            ".move it away, or set HARNESS_CACHE",
        ),
    ],
)
def test_a_cache_with_foreign_tables_is_one_message(tmp_path, change, message):
    path = tmp_path / "cache.sqlite"
    Cache(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(change)
    with pytest.raises(HarnessError, match=message), Cache(path) as cache:
        cache.get([b"key"])


@pytest.mark.parametrize(
    ("make_file", "message"),
    [("cache", "is damaged"), ("cache/cache.sqlite", "HARNESS_CACHE")],
)
def test_a_file_that_is_not_a_cache_or_replaces_its_folder_is_one_message(
    tmp_path, make_file, message
):
    (tmp_path / "cache").write_text(
        "not a database, but a long enough text to be read as one " * 20
    )
    with pytest.raises(InputError, match=message):
        Cache(tmp_path / make_file)


def test_a_fresh_cache_reads_only_its_own_rows_at_any_clock_time(cache, monkeypatch):
    names = text_keys("f", "query", ["a", "b"])
    cache.put("model", names, embedded(2))
    now = time.time_ns()
    monkeypatch.setattr(
        "retrievers.cache.time.time_ns", lambda: now - 10**12
    )  # set back by 17 minutes
    with Cache(cache.path, fresh=True) as fresh:
        assert len(fresh.get(names)[0]) == 0
        fresh.put("model", names[1:], embedded(1, seed=5))
        assert fresh.get(names)[0].tolist() == [1]
    with Cache(cache.path) as again:
        assert sorted(again.get(names)[0].tolist()) == [0, 1]


def test_a_clock_in_the_year_9999_is_stored(cache, monkeypatch):
    monkeypatch.setattr(
        "retrievers.cache.time.time_ns", lambda: 253_402_214_400 * 10**9
    )
    names = text_keys("f", "query", ["a", "b"])
    with Cache(cache.path, fresh=True) as fresh:
        fresh.put("model", names, embedded(2))
        assert sorted(fresh.get(names)[0].tolist()) == [0, 1]


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_vectors_of_two_dimensions_under_one_model_are_refused(cache, form):
    keys = text_keys("model", "document", "ab")
    for key, width in zip(keys, (4, 5), strict=True):
        vectors = embedded(1, d=width)
        vectors = (
            vectors._replace(vectors=SparseVectors.from_dense(vectors.vectors))
            if form == "sparse"
            else vectors
        )
        cache.put("model", [key], vectors)
    with pytest.raises(BackendError, match="several dimensions"):
        cache.get(keys, form)


def test_the_environment_sets_the_folder_of_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    assert default_cache_path() == tmp_path / "cache.sqlite"
    monkeypatch.delenv("HARNESS_CACHE")
    assert default_cache_path().name == "cache.sqlite"
    assert "retriever-harness" in default_cache_path().parts


def test_any_thread_may_close_it(cache):
    """Any running thread may collect garbage, as in a server or a notebook."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(cache.close).exception() is None


def test_two_connections_write_at_once(tmp_path):
    def write(who):
        with Cache(tmp_path / "cache.sqlite") as cache:
            for start in range(0, 400, 8):
                vectors = np.tile(
                    np.arange(start, start + 8, dtype=np.float32)[:, None], 2
                )
                names = text_keys(
                    "model", "document", map(str, range(start, start + 8))
                )
                cache.put("model", names, Embedded(vectors, *np.full((2, 8), who)))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (1, 2)))
    with Cache(tmp_path / "cache.sqlite") as cache:
        positions, scores = cache.get(
            text_keys("model", "document", map(str, range(400)))
        )
    assert len(positions) == 400
    assert np.array_equal(scores.vectors[:, 0], positions.astype(np.float32))


class Counting(Encoder):
    """An encoder whose vectors identify their texts; it records its requests."""

    fingerprint = "counting"
    concurrency = 1

    def __init__(self, size=3, concurrency=1, spoil=None):
        self.batch_size = size
        self.concurrency = concurrency
        self.spoil = spoil
        self.sent = []

    def embed(self, texts, role, call):
        self.sent.append(tuple(texts))
        self.stopped = call.stopped
        call.meter.count(calls=1)
        vectors = self.truth(texts)
        if self.spoil:
            vectors = self.spoil(vectors, texts)
        return Embedded(
            vectors=vectors,
            tokens=np.full(len(texts), 7),
            truncated_tokens=np.zeros(len(texts), dtype=np.int64),
        )

    def truth(self, texts):
        return np.array(
            [[len(t), sum(map(ord, t)), hash(t) % 997] for t in texts], dtype=np.float32
        ).reshape(-1, 3)


@settings(max_examples=50)
@given(
    first=st.lists(st.text(min_size=1)),
    second=st.lists(st.text(min_size=1)),
    width=st.integers(1, 4),
)
def test_every_text_gets_its_own_vector_and_is_sent_once(
    tmp_path_factory, first, second, width
):
    encoder = Counting(concurrency=width)
    with Cache(tmp_path_factory.mktemp("c") / "c") as cache:
        for texts in (first, second, first + second):
            embedded = Embedder(encoder, cache).embed(texts, "document", Meter())
            assert np.array_equal(embedded.vectors.reshape(-1, 3), encoder.truth(texts))
            assert len(embedded.tokens) == len(embedded.truncated_tokens) == len(texts)
    assert sorted(text for request in encoder.sent for text in request) == sorted(
        {*first, *second}
    )


def test_cached_texts_are_counted_and_do_not_change_the_plan_of_requests(cache):
    meter = Meter()
    texts = [f"{i:02}" for i in range(12)]
    cold = Counting()
    warm = Counting()
    with meter.stage("cold"):
        Embedder(cold, cache).embed([*texts[3:6], "03", "98"], "query", meter)
    with meter.stage("warm"):
        Embedder(warm, cache).embed([*texts[::-1], "98"], "query", meter)
    assert cold.sent == [("03", "04", "05"), ("98",)]
    assert warm.sent == [("00", "01", "02"), ("06", "07", "08"), ("09", "10", "11")]
    assert meter.stages()["cold"].counts == {"texts": 4, "cached": 0, "calls": 2}
    assert meter.stages()["warm"].counts == {
        "texts": 13,
        "cached": 4,
        "cached_tokens": 28,
        "calls": 3,
    }


def test_one_text_bypasses_the_cache(cache):
    encoder = Counting()
    for _ in range(2):
        embedded = Embedder(encoder, cache).embed_uncached("abc", "query", Meter())
        assert np.array_equal(embedded.vectors, encoder.truth(["abc"]))
    assert len(encoder.sent) == 2 and cache.info() == ()


def narrower(vectors, texts):
    return vectors if texts[0] == "a" else vectors[:, :2]


@pytest.mark.parametrize(
    ("spoil", "message", "stored_rows"),
    [
        (lambda vectors, _: vectors[:2], "returned 2 vectors for 3", 0),
        (lambda vectors, _: vectors[[0, 1, 2, 2]], "returned 4 vectors for 3", 0),
        (lambda vectors, _: vectors[:, 0], r"returned vectors of shape \(3,\)", 0),
        (lambda vectors, _: vectors * [[1], [np.nan], [1]], "text 2 of 3 has NaN", 0),
        (narrower, "2 dimensions where others have 3", 3),
    ],
)
def test_spoilt_vectors_fail_and_are_not_stored(cache, spoil, message, stored_rows):
    with pytest.raises(BackendError, match=message):
        Embedder(Counting(spoil=spoil), cache).embed(
            list("abcdef"), "document", Meter()
        )
    assert rows_of(cache) == stored_rows
    if stored_rows:  # of another dimension than the cached
        with pytest.raises(BackendError, match=message):
            Embedder(Counting(spoil=spoil), cache).embed(
                list("abcdef"), "document", Meter()
            )


def test_answers_of_open_requests_are_stored_when_another_fails(cache):
    together = threading.Barrier(3)

    def spoil(vectors, texts):
        if texts[0] in "abc":
            together.wait(300)
        if texts[0] == "b":
            raise BackendError("no credit")
        encoder.stopped.wait(300)  # answered after the failure was noticed
        return vectors

    encoder = Counting(size=1, concurrency=3, spoil=spoil)
    with pytest.raises(BackendError, match="no credit"):
        Embedder(encoder, cache).embed(list("abcdefghi"), "document", Meter())
    assert set(encoder.sent) - {("d",)} == {
        ("a",),
        ("b",),
        ("c",),
    }  # b's thread may have begun the next by then
    again = Counting(size=1)
    Embedder(again, cache).embed(["a", "b", "c"], "document", Meter())
    assert again.sent == [("b",)]


def test_hashing_by_hand():
    expected = np.zeros(16)
    for gram in (" a", "ab", "b ", " ab", "ab ", " ab "):
        number = int.from_bytes(
            hashlib.blake2b(gram.encode(), digest_size=8).digest(), "little"
        )
        expected[number // 2 % 16] += (
            1 + math.log(2) if number % 2 else -1 - math.log(2)
        )  # each occurs twice
    embedded = HashingEncoder(dimensions=16).embed(
        ["Ab, ＡＢ!"], "query", single_call()
    )
    assert np.allclose(
        embedded.vectors[0], expected / np.linalg.norm(expected), atol=1e-7
    )
    assert embedded.tokens.tolist() == [12]
