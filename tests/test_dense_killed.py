"""Killed in the middle of indexing, whenever: the next run gives the bytes of an undisturbed one."""

import hashlib
import json
import multiprocessing
import random
import sys
import time
from contextlib import ExitStack

import numpy as np
import pytest

from retrievers import dense
from retrievers.meter import Meter
from retrievers.stores import StoreOptions, open_store
from retrievers.types import Document, Embedded, Query
from tests.qdrant_fake import fake_qdrant

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

KILLS = 20


class Digests:
    """Vectors that depend on the text alone."""

    def embed(self, texts, role, meter):
        rows = [np.frombuffer(hashlib.shake_128(text.encode()).digest(64), np.uint8) for text in texts]
        vectors = np.stack(rows).astype(np.float32) - 127.5
        return Embedded(vectors, np.ones(len(texts), np.int64), np.array([len(text) % 3 for text in texts]))


def run(place, location, documents, began):
    """Index, search, and write what came out beside the store."""
    dense.WINDOW = max(64, documents // 8)
    options = StoreOptions(location)
    store = open_store(options, "hashed-corpus", documents=documents, folder=place, meter=Meter())
    meter = Meter()
    retriever = dense.DenseRetriever(Digests(), lambda _: store)
    began.set()
    retriever.index((Document(f"d{i}", "", f"text {i} " + "x" * (i % 5)) for i in range(documents)), meter)
    rankings = retriever.search([Query(str(i), f"question {i}") for i in range(20)], 20, meter)
    store.close()
    found = [[ranking.doc_ids, [score.hex() for score in ranking.scores.tolist()]] for ranking in rankings]
    notes = {name: sorted(ids) for name, ids in meter.notes().items()}
    (place / "found.json").write_text(json.dumps([found, notes]), encoding="utf-8")


@pytest.fixture(params=["edge", "folder", "server"])
def started(request, tmp_path):
    """Returns how to begin a run in a process of its own, forked from one that has imported everything."""
    if request.param == "edge":
        pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.test_dense_killed", "qdrant_client"])
    documents = {"edge": 16_000, "folder": 120, "server": 4_000}[request.param]
    fakes = {}

    def start(name):
        place = tmp_path / name
        place.mkdir(exist_ok=True)
        location = request.param
        if location == "folder":
            location = str(place / "qdrant")
        if location == "server":
            if name not in fakes:
                fakes[name] = stack.enter_context(fake_qdrant())
            location = fakes[name].url
        began = context.Event()
        process = context.Process(target=run, args=(place, location, documents, began))
        process.start()
        assert began.wait(60)
        return process

    with ExitStack() as stack:
        yield start


def finished(started, place):
    process = started(place.name)
    process.join(120)
    assert process.exitcode == 0
    return (place / "found.json").read_text(encoding="utf-8")


def test_killed_at_twenty_random_instants_and_resumed(started, tmp_path):
    finished(started, tmp_path / "warm-up")
    begin = time.perf_counter()
    undisturbed = finished(started, tmp_path / "undisturbed")
    whole = time.perf_counter() - begin
    chance = random.Random(20)
    place, cut_short = tmp_path / "killed0", 0
    for turn in range(KILLS):
        process = started(place.name)
        time.sleep(chance.uniform(0, whole))
        process.kill()
        process.join()
        if (place / "found.json").exists():  # it came to its end before
            assert finished(started, place) == undisturbed
            place = tmp_path / f"killed{turn + 1}"
        else:
            cut_short += 1
    assert cut_short > KILLS // 4
    assert finished(started, place) == undisturbed
    assert finished(started, place) == undisturbed  # now from the finished collection
