"""The cache: what is kept comes back whole; a few texts are embedded again, so that no models mix in silence."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock, Timeout
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.pipeline import run as run_experiment
from harness.running.options import Options
from retrievers.cache import Cache, default_path
from retrievers.errors import BackendError, HarnessError, InputError
from retrievers.identity import keys
from retrievers.types import Embedded, PairScores
from tests.support import small


def embedded(n, d=4, seed=0):
    random = np.random.default_rng(seed)
    return Embedded(random.normal(size=(n, d)).astype(np.float32), np.arange(n) + 1, np.arange(n) % 2)


@pytest.fixture
def cache(tmp_path):
    with Cache(tmp_path / "deep" / "cache.sqlite") as opened:
        yield opened


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_what_is_stored_comes_back_in_full(cache):
    names = keys("model", "document", [str(i) for i in range(9000)])
    stored = embedded(9000)
    cache.put("model", names, stored)
    positions, found = cache.get([*keys("model", "query", ["0", "1"]), *names])
    order = np.argsort(positions)
    assert positions[order].tolist() == list(range(2, 9002))
    assert same([column[order] for column in found], stored)
    assert found.vectors.dtype == np.float32


def test_scores_come_back_in_full(cache):
    names = keys("judge", "pair", "abc")
    stored = PairScores(np.array([0.1, -7.25, 1e-300]), np.array([3, 4, 5]), np.array([0, 1, 0]))
    cache.put_scores("judge", names, stored)
    positions, found = cache.get_scores(names)
    assert same([column[np.argsort(positions)] for column in found], stored)


@settings(max_examples=20)
@given(st.lists(st.text(), unique=True, max_size=20), st.text(), st.text())
def test_keys_depend_on_every_part(texts, fingerprint, role):
    whole = keys(fingerprint, role, texts)
    assert len(set(whole)) == len(texts)
    assert not set(whole) & set(keys(fingerprint + "x", role, texts))
    assert not set(whole) & set(keys(fingerprint, role + "x", texts))


@pytest.mark.parametrize("change", ["value = zeroblob(16)", "lost = lost + 1", "key = :other"])
def test_a_damaged_row_counts_as_absent_and_is_replaced(cache, change):
    names = keys("model", "document", "abc")
    cache.put("model", names[:2], embedded(2))
    with closing(sqlite3.connect(cache.path)) as database, database:
        database.execute(f"UPDATE rows SET {change} WHERE key = :key", {"key": names[0], "other": names[2]})
    assert cache.get(names)[0].tolist() == [1]
    cache.put("model", names, embedded(3))
    assert sorted(cache.get(names)[0]) == [0, 1, 2]


@pytest.mark.parametrize(("change", "message"), [
    ("DROP TABLE rows", "no such table: rows .set HARNESS_CACHE"),
    ("PRAGMA user_version = 0", "already exists .set HARNESS_CACHE"),
    ("PRAGMA user_version = 2", "is a cache of version 2, this program reads 1 .move it away, or set HARNESS_CACHE"),
])  # fmt: skip
def test_a_cache_whose_tables_are_not_its_own_is_one_message(tmp_path, change, message):
    path = tmp_path / "cache.sqlite"
    Cache(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(change)
    with pytest.raises(HarnessError, match=message), Cache(path) as cache:
        cache.get([b"key"])


def test_a_fresh_cache_sees_only_what_it_stores_whatever_the_clock_says(cache, monkeypatch):
    names = keys("f", "query", ["a", "b"])
    cache.put("model", names, embedded(2))
    now = time.time_ns()
    monkeypatch.setattr("retrievers.cache.time.time_ns", lambda: now - 10**12)  # set back by 17 minutes
    with Cache(cache.path, fresh=True) as fresh:
        assert len(fresh.get(names)[0]) == 0
        fresh.put("model", names[1:], embedded(1, seed=5))
        assert fresh.get(names)[0].tolist() == [1]
    with Cache(cache.path) as again:
        assert sorted(again.get(names)[0].tolist()) == [0, 1]


def test_info_counts_by_model_and_clear_removes_one_or_all(cache):
    cache.put("b", keys("b", "document", "abc"), embedded(3))
    cache.put_scores("a", keys("a", "pair", "z"), PairScores(np.array([1.0]), np.array([1]), np.array([0])))
    assert [tuple(holding) for holding in cache.info()] == [("a", 1, 8), ("b", 3, 48)]
    assert cache.clear("b") == 3
    assert [holding.fingerprint for holding in cache.info()] == ["a"]
    assert cache.clear() == 1
    assert cache.info() == ()


def test_vectors_of_two_dimensions_under_one_model_are_refused(cache):
    names = keys("model", "document", "ab")
    cache.put("model", names[:1], embedded(1, d=4))
    cache.put("model", names[1:], embedded(1, d=5))
    with pytest.raises(BackendError, match="several dimensions"):
        cache.get(names)


def test_a_failed_store_leaves_nothing_behind(cache):
    names = keys("model", "document", "ab")
    with pytest.raises(ValueError, match="shorter"):
        cache.put("model", names, embedded(1))
    assert cache.info() == ()
    cache.put("model", names, embedded(2))
    assert len(cache.get(names)[0]) == 2


def test_a_file_that_is_no_cache_is_one_message(tmp_path):
    path = tmp_path / "cache.sqlite"
    path.write_text("not a database, but a long enough text to be read as one " * 20)
    with pytest.raises(InputError, match="is damaged"):
        Cache(path)


def test_a_folder_that_cannot_be_made_is_one_message(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="HARNESS_CACHE"):
        Cache(tmp_path / "file" / "cache.sqlite")


def test_the_environment_says_where_the_cache_lies(monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    assert default_path() == tmp_path / "cache.sqlite"
    monkeypatch.delenv("HARNESS_CACHE")
    assert default_path().name == "cache.sqlite"
    assert "retriever-harness" in str(default_path())


def test_a_file_is_prepared_by_one_process_at_a_time(monkeypatch, tmp_path):
    # SQLite does not wait where two begin a write-ahead log at once: one of them fails with "database is locked".
    path, prepare, refused = tmp_path / "cache.sqlite", Cache._prepare, []

    def prepared(cache):
        with pytest.raises(Timeout):
            FileLock(path.with_suffix(".lock")).acquire(timeout=0)
        refused.append(cache.path)
        prepare(cache)

    monkeypatch.setattr(Cache, "_prepare", prepared)
    Cache(path).close()
    Cache(path).close()
    assert refused == [path, path]


WRITER = """
import sys
from pathlib import Path
import numpy as np
from retrievers.cache import Cache
from retrievers.identity import keys
from retrievers.types import Embedded
path, who = Path(sys.argv[1]), int(sys.argv[2])
with Cache(path) as cache:
    for start in range(0, 400, 8):
        texts = [str(i) for i in range(start, start + 8)]
        vectors = np.array([[i, i] for i in range(start, start + 8)], dtype=np.float32)
        cache.put("model", keys("model", "document", texts), Embedded(vectors, *np.full((2, 8), who)))
"""


def test_two_processes_write_at_once(tmp_path):
    path = tmp_path / "cache.sqlite"
    root = Path(__file__).parents[2]
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(who)], cwd=root) for who in (1, 2)]
    assert [writer.wait(600) for writer in writers] == [0, 0]
    with Cache(path) as cache:
        positions, found = cache.get(keys("model", "document", map(str, range(400))))
        assert len(positions) == 400
        assert np.array_equal(found.vectors[:, 0], positions.astype(np.float32))


def test_a_full_cache_on_a_disk_that_takes_nothing_is_read(tmp_path, monkeypatch):
    results = run_experiment(small.experiment(tmp_path), Options(tmp_path / "first"))
    monkeypatch.setattr("retrievers.cache.os.access", lambda path, mode: False)
    again = run_experiment(small.experiment(tmp_path, name="again"), Options(tmp_path / "again"))
    assert again.scores.equals(results.scores)
    embedded = again.costs[again.costs["stage"].str.startswith("embed")]
    assert embedded["cached"].sum() == embedded["texts"].sum() > 0
    anew = run_experiment(small.experiment(tmp_path, name="anew"), Options(tmp_path / "anew", fresh=True))
    assert "readonly database" in anew.manifest.failed["hashing"]
