"""A run after one that was killed while indexing has the bytes of any other."""

import hashlib
import json
import random
import signal
import sys
from contextlib import ExitStack

import numpy as np
import pytest

from retrievers import embedder
from retrievers.meter import Meter
from retrievers.stores.open import open_store
from retrievers.stores.options import StoreOptions
from retrievers.types import Document, Query
from tests.support.mortal import NEVER, forking, live
from tests.support.over_store import Numbers, OverStore
from tests.support.qdrant_fake import fake_qdrant

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL"),
]

KILLS = 20
WAIT = 600
"""Seconds for one run, however busy the machine is."""


def digest(text):
    """A row that depends on the text alone."""
    return np.frombuffer(hashlib.shake_128(text.encode()).digest(64), np.uint8) - 127.5


def run(folder, location, documents, last_call):
    """Index, search, write rankings and the number of calls; killed at `last_call`."""
    calls = live(lambda: index_and_search(folder, location, documents), last_call)
    (folder / "calls").write_text(str(calls))


def index_and_search(folder, location, documents):
    embedder.EMBEDDING_WINDOW = max(64, documents // 8)
    options = StoreOptions(location)
    store = open_store(
        options, "hashed-corpus", documents=documents, folder=folder, meter=Meter()
    )
    meter = Meter()
    retriever = OverStore(
        Numbers(digest, lost=lambda text: len(text) % 3), lambda _: store
    )
    retriever.index(
        (Document(f"d{i}", "", f"text {i} " + "x" * (i % 5)) for i in range(documents)),
        meter,
    )
    rankings = retriever.search(
        [Query(str(i), f"question {i}") for i in range(20)], 20, meter
    )
    store.close()
    rows = [
        [ranking.doc_ids, [score.hex() for score in ranking.scores.tolist()]]
        for ranking in rankings
    ]
    notes = {name: sorted(ids) for name, ids in meter.notes().items()}
    (folder / "found.json").write_text(json.dumps([rows, notes]), encoding="utf-8")


@pytest.fixture(params=["edge", "folder", "server"])
def started(request, tmp_path):
    """A function that starts a run in a process forked from one with all imports."""
    if request.param == "edge":
        pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    context = forking()
    documents = {"edge": 2_000, "folder": 60, "server": 800}[request.param]
    fakes = {}

    def start(name, last_call=NEVER):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        location = request.param
        if location == "folder":
            location = str(folder / "qdrant")
        if location == "server":
            if name not in fakes:
                fakes[name] = stack.enter_context(fake_qdrant())
            location = fakes[name].url
        process = context.Process(
            target=run, args=(folder, location, documents, last_call)
        )
        process.start()
        process.join(WAIT)
        return process.exitcode

    with ExitStack() as stack:
        yield start


def finished(started, folder):
    assert started(folder.name) == 0
    return (folder / "found.json").read_text(encoding="utf-8")


def test_killed_at_twenty_random_calls_and_resumed(started, tmp_path):
    undisturbed = finished(started, tmp_path / "undisturbed")
    calls = int((tmp_path / "undisturbed" / "calls").read_text())
    chance = random.Random(20)
    folder, cut_short = tmp_path / "killed0", 0
    for turn in range(KILLS):
        exitcode = started(folder.name, chance.randrange(1, calls))
        if exitcode == 0:  # it came to its end before: less was left to do
            assert finished(started, folder) == undisturbed
            folder = tmp_path / f"killed{turn + 1}"
        else:
            assert exitcode == -signal.SIGKILL
            cut_short += 1
    assert cut_short > KILLS // 2
    assert finished(started, folder) == undisturbed
    assert finished(started, folder) == undisturbed  # now from the finished collection
