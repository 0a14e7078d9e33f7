"""Killed in the middle of indexing, whenever: the next run gives the bytes of an undisturbed one."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")

PROGRAM = """
import hashlib, json, sys, time
from pathlib import Path
import numpy as np
from retrievers import dense
from retrievers.meter import Meter
from retrievers.stores import StoreOptions, open_store
from retrievers.types import Document, Embedded, Query

def embed(texts, role):
    rows = [np.frombuffer(hashlib.shake_128(text.encode()).digest(64), np.uint8) for text in texts]
    vectors = np.stack(rows).astype(np.float32) - 127.5
    return Embedded(vectors, np.ones(len(texts), np.int64), np.array([len(text) % 3 for text in texts]))

dense.WINDOW = 2048
store = open_store(StoreOptions("edge"), "hashed-corpus", documents=30_000, folder=Path(sys.argv[1]), meter=Meter())
retriever = dense.DenseRetriever(embed, store, Meter())
print("indexing", flush=True)
retriever.index(Document(f"d{i}", "", f"text {i} " + "x" * (i % 5)) for i in range(30_000))
rankings = retriever.search([Query(str(i), f"question {i}") for i in range(50)], 20)
store.close()
print(json.dumps([[r.doc_ids, [s.hex() for s in r.scores.tolist()]] for r in rankings]), retriever.meter.notes())
"""


def run(folder):
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True)


def finished(folder):
    process = run(folder)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out


def test_killed_at_random_instants_and_resumed(tmp_path):
    started = time.perf_counter()
    undisturbed = finished(tmp_path / "undisturbed")
    whole = time.perf_counter() - started
    chance = random.Random(20)
    for _ in range(4):
        process = run(tmp_path / "killed")
        assert process.stdout.readline() == "indexing\n"
        time.sleep(chance.uniform(0, whole * 0.8))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert finished(tmp_path / "killed") == undisturbed
    assert finished(tmp_path / "killed") == undisturbed  # now from the finished collection
