"""Runs side by side with one cache: nothing is paid twice, and nobody waits for the dead."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from retrievers.cache import Cache, keys
from retrievers.embedding import Embedder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError
from retrievers.meter import Meter
from retrievers.types import Embedded
from tests.servers import OpenAIProvider, real_vectors, serving

TEXTS = [f"text number {i}" for i in range(40)]
NAMES = keys("f", "document", TEXTS)


def row(value=1.0):
    return Embedded(np.full((1, 2), value, dtype=np.float32), np.array([1]), np.array([0]))


def encoder(provider, **more):
    return OpenAIEncoder("m", base_url=provider.url, **{"batch_size": 4, "concurrency": 2, "patience": 0.1, **more})


def test_what_one_claims_another_does_not_get(tmp_path):
    with Cache(tmp_path / "c") as one, Cache(tmp_path / "c") as two:
        assert one.claim(NAMES[:3], 60) == set(NAMES[:3])
        assert two.claim(NAMES[2:5], 60) == set(NAMES[3:5])
        one.put("f", NAMES[:1], row())
        assert two.claim(NAMES[:2], 60) == set()  # one is there, one is on its way
        one.give_up()
        assert two.claim(NAMES[:2], 60) == {NAMES[1]}


def test_a_claim_expires(tmp_path):
    with Cache(tmp_path / "c") as one, Cache(tmp_path / "c") as two:
        one.claim(NAMES[:1], -1)
        assert two.claim(NAMES[:1], 60) == {NAMES[0]}


def test_a_closed_cache_leaves_nothing(tmp_path):
    with Cache(tmp_path / "c") as one:
        one.claim(NAMES, 60)
        assert list(tmp_path.glob("claims-*.lock"))
    assert not list(tmp_path.glob("claims-*.lock"))
    with sqlite3.connect(tmp_path / "c") as database:
        assert database.execute("SELECT count(*) FROM claims").fetchone() == (0,)
    database.close()


def test_the_claims_of_a_killed_process_are_free_at_once(tmp_path):
    code = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from retrievers.cache import Cache
        cache = Cache(Path(sys.argv[1]))
        cache.claim([bytes.fromhex(sys.argv[2])], 3600)
        print("claimed", flush=True)
        time.sleep(3600)
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "c", NAMES[0].hex()], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "claimed\n"
    with Cache(tmp_path / "c") as cache:
        assert cache.claim(NAMES[:1], 60) == set()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert cache.claim(NAMES[:1], 60) == {NAMES[0]}


def test_runs_side_by_side_pay_once(tmp_path):
    answers, failures = {}, []

    def run(number, url):
        try:
            with Cache(tmp_path / "c") as cache:
                meter = Meter()
                own = OpenAIEncoder("m", base_url=url, batch_size=4, concurrency=2)
                answers[number] = (Embedder(own, cache).embed(TEXTS, "document", meter), meter.counts(""))
        except BaseException as failure:
            failures.append(failure)

    with serving(OpenAIProvider(latency=0.05)) as provider:
        threads = [threading.Thread(target=run, args=(number, provider.url)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert sorted(provider.embedded) == sorted(TEXTS)
    for embedded, counts in answers.values():
        assert np.array_equal(embedded.vectors, real_vectors(TEXTS))
        assert counts["texts"] == 40
    assert sum(counts["texts"] - counts["cached"] for _, counts in answers.values()) == 40


def test_what_another_run_gives_up_is_embedded_here(tmp_path):
    with serving(OpenAIProvider()) as provider, Cache(tmp_path / "c") as other:
        own = encoder(provider)
        other.claim(keys(own.fingerprint, "document", TEXTS[:6]), 3600)

        def run():
            with Cache(tmp_path / "c") as cache:
                done.append(Embedder(own, cache).embed(TEXTS, "document", Meter()))

        done = []
        thread = threading.Thread(target=run)
        thread.start()
        while len(provider.embedded) < 34:
            time.sleep(0.02)
        assert thread.is_alive()
        other.give_up()
        thread.join()
        assert np.array_equal(done[0].vectors, real_vectors(TEXTS))
        assert sorted(provider.embedded) == sorted(TEXTS)


def test_a_failure_gives_up_its_claims(tmp_path):
    with serving(OpenAIProvider(["", "missing"])) as provider, Cache(tmp_path / "c") as cache:
        with pytest.raises(BackendError):
            Embedder(encoder(provider, concurrency=1), cache).embed(TEXTS, "document", Meter())
        with Cache(tmp_path / "c") as other:
            names = keys(encoder(provider).fingerprint, "document", TEXTS)
            assert len(other.claim(names, 60)) == 36


def test_vectors_without_dimensions_are_neither_kept_nor_read(tmp_path):
    empty = Embedded(np.zeros((1, 0), dtype=np.float32), np.array([1]), np.array([0]))
    with Cache(tmp_path / "c") as cache:
        with pytest.raises(ValueError, match="cannot be kept"):
            cache.put("f", NAMES[:1], empty)
        cache.put("f", NAMES[:2], Embedded(np.ones((2, 2), dtype=np.float32), np.ones(2, int), np.zeros(2, int)))
    with sqlite3.connect(tmp_path / "c") as database:  # as an earlier version kept it
        from retrievers.cache import _checksum

        checksum = _checksum(NAMES[0], 1, 0, b"")
        database.execute("UPDATE rows SET value = ?, checksum = ? WHERE key = ?", (b"", checksum, NAMES[0]))
    database.close()
    with Cache(tmp_path / "c") as cache:
        assert cache.held(NAMES) == {NAMES[1]}
        positions, embedded = cache.get(NAMES)
        assert positions.tolist() == [1]
        assert embedded.vectors.shape == (1, 2)
        assert cache.claim(NAMES[:2], 60) == {NAMES[0]}
