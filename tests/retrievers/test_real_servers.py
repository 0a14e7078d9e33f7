"""What was seen of real servers, asked again of any: pytest -m server --qdrant http://localhost:6333 (conftest.py).

The tests of every store (test_stores*.py, test_filters_brute_force.py) are asked of them as well.
"""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import combinations
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from harness.pipeline import run
from harness.running.options import Options
from retrievers.errors import InputError
from retrievers.ragged import AnyVectors
from retrievers.ranking import fuse
from retrievers.types import Ranking, Store, Vectors
from tests.support import small
from tests.support.store_places import Places

pytestmark = [pytest.mark.server, pytest.mark.slow]
RANDOM = np.random.default_rng(5)
ABOUT = 1e-5
"""Of the largest score: more than floats of 32 bits differ by between two engines."""


def filled(store: Store, vectors: AnyVectors, fields: Sequence[dict[str, str]] = ()) -> list[str]:
    ids = [f"d{number:06}" for number in range(len(vectors))]
    store.create(vectors.shape[1])
    for start in range(0, len(ids), 4096):
        some = slice(start, start + 4096)
        store.upsert(ids[some], vectors[some], fields[some])
    store.finish({})
    return ids


def units(count: int, dimensions: int = 64) -> Vectors:
    """Vectors that lie in heaps, as those of texts do."""
    centres = RANDOM.normal(size=(max(count // 50, 1), dimensions))
    made = centres[RANDOM.integers(0, len(centres), count)] + 0.7 * RANDOM.normal(size=(count, dimensions))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def products(queries: Vectors, documents: Vectors) -> Vectors:
    return queries.astype(np.float64) @ documents.T.astype(np.float64)


def check(rankings: Sequence[Ranking], scores: Vectors, ids: Sequence[str], limit: int) -> None:
    """The hits are the best, and in order, but where scores differ by less than floats do."""
    for row, ranking in zip(scores, rankings, strict=True):
        true, unit = dict(zip(ids, row.tolist(), strict=True)), ABOUT * float(np.abs(row).max())
        best = np.sort(row)[::-1][: len(ranking)]
        assert len(ranking) == min(limit, int((row > 0).sum()) if row.min() == 0 else len(ids))
        assert [true[id_] for id_ in ranking.doc_ids] == pytest.approx(best.tolist(), abs=unit)
        assert ranking.scores == pytest.approx(best.tolist(), abs=unit)


def test_a_large_collection_gives_what_edge_gives(places: Places) -> None:
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    documents, queries = units(60_000, 384), units(400, 384)
    both = []
    for store in (places("--qdrant", documents=60_000), places("edge", documents=60_000)):
        filled(store, documents)
        both.append(store.search(queries, 100))
    same = sum(one.doc_ids == other.doc_ids for one, other in zip(*both, strict=True))
    assert same >= 396  # a pair is swapped where scores differ by less than a millionth
    for one, other in zip(*both, strict=True):
        assert one.scores == pytest.approx(other.scores, abs=ABOUT)


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"m": 16}, 0.9),
        ({"quantization": "scalar"}, 0.9),
        ({"quantization": "product"}, 0.5),
        ({"quantization": "binary"}, 0.1),
    ],
)
def test_graphs_and_codes_are_built_and_find_most(places: Places, options: dict[str, object], least: float) -> None:
    store, documents, queries = places("--qdrant", **options), units(5000, 384), units(100, 384)
    filled(store, documents)
    exact = [set(one.doc_ids) for one in store.search(queries, 10, exact=True)]
    near = [set(one.doc_ids) for one in store.search(queries, 10)]
    found = sum(len(one & other) for one, other in zip(exact, near, strict=True)) / 1000
    assert least <= found <= 1
    assert store.facts["indexed_points"] == "5000"


UPLOAD = """
import sys
import numpy as np
from retrievers.meter import Meter
from retrievers.stores import StoreOptions, open_store
store = open_store(StoreOptions(sys.argv[1]), sys.argv[2], documents=1, folder=None, meter=Meter(), form="dense")
vectors = np.load(sys.argv[3])
ids = [f"d{number:06}" for number in range(len(vectors))]
if store.finished() is None:
    store.create(vectors.shape[1])
    for start in range(0, len(ids), 256):
        store.upsert(ids[start:start + 256], vectors[start:start + 256])
        print(start, flush=True)
    store.finish({})
"""


def test_an_upload_that_was_killed_is_taken_up_again(
    places: Places, real: Callable[[str], str], tmp_path: Path
) -> None:
    vectors, content = units(10_000, 384), uuid.uuid4().hex
    np.save(tmp_path / "vectors.npy", vectors)
    command = [sys.executable, "-c", UPLOAD, real("--qdrant"), content, str(tmp_path / "vectors.npy")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        while int(first.stdout.readline()) < 4096:
            pass
        first.send_signal(signal.SIGKILL)
    subprocess.run(command, check=True, capture_output=True)
    store = places("--qdrant", content=content)
    assert store.finished() is not None
    ids = [f"d{number:06}" for number in range(len(vectors))]
    check(store.search(vectors[:20], 10), products(vectors[:20], vectors), ids, 10)


class Relay(threading.Thread):
    """Hands connections on to a server, until it is away: then all are cut, and none is taken."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        target = urlsplit(url)
        self._target = target.hostname, target.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._until = 0.0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if time.monotonic() < self._until:
                    near.close()
                    continue
                far = socket.create_connection(self._target)
                self._pairs.append((near, far))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._hand_on, args=(one, other), daemon=True).start()

    def _hand_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def leave(self, seconds: float) -> None:
        """Be away for so long."""
        self._until = time.monotonic() + seconds
        for pair in self._pairs:
            for one in pair:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Take no more."""
        self._listener.close()


def test_a_server_that_is_away_for_eight_seconds_is_waited_for(places: Places, real: Callable[[str], str]) -> None:
    vectors, content = units(10_000, 384), uuid.uuid4().hex
    kept = places("--qdrant", content=content)  # so that what comes through the relay is removed
    relay = Relay(real("--qdrant"))
    relay.start()
    store = places(relay.url, content=content)
    ids = [f"d{number:06}" for number in range(len(vectors))]
    store.create(384)
    for start in range(0, len(ids), 1000):
        if start == 4000:
            relay.leave(8)
        store.upsert(ids[start : start + 1000], vectors[start : start + 1000])
    store.finish({})
    store.close()
    relay.end()
    assert kept.finished() is not None
    check(kept.search(vectors[:20], 10), products(vectors[:20], vectors), ids, 10)


@pytest.mark.parametrize("transport", ["--qdrant", "--qdrant-grpc"])
@pytest.mark.parametrize("key", ["no key of anybody", None])
def test_a_wrong_key_and_none_are_refused_with_the_remedy(
    places: Places, real: Callable[[str], str], key: str | None, transport: str
) -> None:
    real("--qdrant-key")
    with pytest.raises(InputError, match=r"the server refuses access .*set api_key"):
        places(transport, api_key=key).finished()


def test_a_key_for_reading_reads_and_writes_nothing(places: Places, real: Callable[[str], str]) -> None:
    reading, documents = real("--qdrant-read-key"), units(500)
    ids = filled(places("--qdrant"), documents)
    reader = places("--qdrant", api_key=reading)
    assert reader.finished() is not None
    check(reader.search(documents[:20], 10), products(documents[:20], documents), ids, 10)
    with pytest.raises(InputError, match="the server refuses access"):
        filled(places("--qdrant", content="another", api_key=reading), documents)


@pytest.mark.parametrize("stopped", [False, True])
def test_copies_on_several_nodes_rank_as_numpy_ranks(places: Places, real: Callable[[str], str], stopped: bool) -> None:
    """Six shards in two copies; last, another node is stopped amid the upload, and stays away."""
    store = places("--qdrant-cluster", shards=6, replication=2)
    stop = shlex.split(real("--qdrant-stop")) if stopped else []
    documents, queries = units(60_000, 384), units(400, 384)
    ids = [f"d{number:06}" for number in range(len(documents))]
    store.create(384)
    for start in range(0, len(ids), 4096):
        if stop and start == 12_288:
            subprocess.run(stop, check=True)
        store.upsert(ids[start : start + 4096], documents[start : start + 4096])
    store.finish({})
    check(store.search(queries, 10), products(queries, documents), ids, 10)


def test_rankings_are_fused_as_the_server_fuses_them(places: Places, real: Callable[[str], str]) -> None:
    from qdrant_client import QdrantClient, models

    store, documents = places("--qdrant"), units(300)
    filled(store, documents)
    with closing(QdrantClient(real("--qdrant"), check_compatibility=False)) as client:
        for a, b in zip(units(30), units(30), strict=True):
            lists = store.search(np.stack([a, b]), 100)
            asked = [models.Prefetch(query=one.tolist(), limit=100) for one in (a, b)]
            fused = models.RrfQuery(rrf=models.Rrf(k=61))
            collection = store.collection  # type: ignore[attr-defined]
            request = models.QueryRequest(prefetch=asked, query=fused, limit=10, with_payload=True)
            theirs = client.query_batch_points(collection, [request])[0].points
            ours = fuse(lists, 10)
            assert [point.score for point in theirs] == pytest.approx(list(ours.scores), rel=1e-5)
            tied = {one for one, other in combinations(ours.scores, 2) if one == other} | {ours.scores[-1]}
            for point, hit in zip(theirs, ours, strict=True):
                assert (point.payload or {})["id"] == hit.doc_id or hit.score in tied


def test_ollama_gives_the_same_vectors_twice(real: Callable[[str], str], tmp_path: Path) -> None:
    url, model = real("--ollama"), real("--ollama-model")
    block = f'[[retrievers]]\nname = "api"\nencoder = {{ kind = "openai", model = "{model}", base_url = "{url}/v1" }}\n'
    experiment = small.experiment(tmp_path, retrievers=block)
    first = run(experiment, Options(tmp_path / "first"))
    again = run(experiment, Options(tmp_path / "again", fresh=True))
    assert first.scores.equals(again.scores)
    assert first.summary["mean"].max() > 0.5
