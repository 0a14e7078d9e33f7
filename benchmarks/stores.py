"""The stores against the plain alternatives, each pair measured in one run, as ratios.

    python benchmarks/stores.py small         50,000 x 384: edge, the in-memory client, a BLAS product
    python benchmarks/stores.py million       1,000,000 x 384: edge, a BLAS product over memory-mapped blocks; growth
    python benchmarks/stores.py approximate   recall, bytes and time of HNSW and quantisation

Vectors are synthetic: independent normal, or around 1,000 centres for `approximate`. Times are the fastest of
alternating rounds, since other work on the machine only ever adds; growth is in processor seconds; memory is RssAnon
(Linux).
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from retrievers.meter import Meter
from retrievers.stores import StoreOptions, open_store
from retrievers.types import Store, Vectors

DIMENSIONS = 384
WINDOW = 16_384
TOP = 10
BLOCK = 50_000


def normal(count: int, seed: int) -> Vectors:
    return np.random.default_rng(seed).standard_normal((count, DIMENSIONS), dtype=np.float32)


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    work()
    return clock() - started


def alternating(
    rounds: int, *works: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the least seconds of each work, after one round that does not count."""
    times = [[seconds(work, clock) for work in works] for _ in range(rounds + 1)][1:]
    return [min(column) for column in zip(*times, strict=True)]


def anonymous_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


@contextmanager
def peak_memory(peak: list[float]) -> Iterator[None]:
    """Append the largest RssAnon of this process, in MB, sampled every 20 ms while the block runs."""
    done = threading.Event()
    seen = [anonymous_mb()]

    def watch() -> None:
        while not done.wait(0.02):
            seen.append(anonymous_mb())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        peak.append(max(seen))


def edge(folder: str, name: str, count: int, **options: object) -> Store:
    return open_store(StoreOptions("edge", **options), name, documents=count, folder=Path(folder), meter=Meter())


def fill(store: Store, vectors: Vectors) -> None:
    """Build a collection as DenseRetriever does, window by window; document ids are made here."""
    store.create(DIMENSIONS)
    for start in range(0, len(vectors), WINDOW):
        some = np.asarray(vectors[start : start + WINDOW])
        store.upsert([f"d{i}" for i in range(start, start + len(some))], some)
    store.finish({})


def blas(queries: Vectors, units: Vectors) -> list[set[int]]:
    """Return the top hits of each query by a product over blocks of unit vectors, and argpartition."""
    scores: list[Vectors] = []
    places = []
    for start in range(0, len(units), BLOCK):
        product = queries @ units[start : start + BLOCK].T
        best = np.argpartition(-product, TOP, axis=1)[:, :TOP]
        places.append(best + start)
        scores.append(np.take_along_axis(product, best, axis=1))
    place, score = np.hstack(places), np.hstack(scores)
    best = np.argpartition(-score, TOP - 1, axis=1)[:, :TOP]
    return [set(row) for row in np.take_along_axis(place, best, axis=1).tolist()]


def same_ids(store: Store, queries: Vectors, units: Vectors) -> float:
    found = [{int(doc_id[1:]) for doc_id in ranking.doc_ids} for ranking in store.search(queries, TOP)]
    return statistics.fmean(a == b for a, b in zip(found, blas(queries, units), strict=True))


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def small(folder: str) -> None:
    from qdrant_client import QdrantClient, models

    count = 50_000
    vectors, queries = normal(count, 1), normal(300, 2)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = list(range(count))
    payload = [{"id": f"d{i}"} for i in ids]

    def upload() -> QdrantClient:
        client = QdrantClient(":memory:")
        client.create_collection("c", models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client.upload_collection("c", vectors=vectors, ids=ids, payload=payload)
        return client

    store, client = edge(folder, "small", count), upload()
    ours, theirs = alternating(3, lambda: fill(store, vectors), upload)
    row(
        "upsert 50,000", f"upload_collection in memory {theirs:.2f} s", f"{ours:.2f} s", f"{theirs / ours:.1f} x faster"
    )
    loop = partial(client.query_points, "c", limit=TOP)
    one_by_one = 3 * alternating(2, lambda: [loop(query=query) for query in queries[:100]])[0]
    ours, product = alternating(9, lambda: store.search(queries, TOP), lambda: blas(queries, units))
    row("300 queries", f"loop of query_points {one_by_one:.2f} s", f"{ours:.3f} s", f"{one_by_one / ours:.0f} x faster")
    row("300 queries", f"BLAS and argpartition {product:.3f} s", f"{ours:.3f} s", f"{ours / product:.2f} of its time")
    row("the same ids as BLAS", "", f"{same_ids(store, queries, units):.1%}", "")
    store.close()


def million(folder: str) -> None:
    count = 1_000_000
    before = anonymous_mb()
    vectors = np.lib.format.open_memmap(f"{folder}/v.npy", "w+", np.float32, (count, DIMENSIONS))
    units = np.lib.format.open_memmap(f"{folder}/u.npy", "w+", np.float32, (count, DIMENSIONS))
    for start in range(0, count, BLOCK):
        vectors[start : start + BLOCK] = normal(BLOCK, start)
        block = np.asarray(vectors[start : start + BLOCK])
        units[start : start + BLOCK] = block / np.linalg.norm(block, axis=1, keepdims=True)
    queries = normal(1000, 7)
    indexing: dict[int, float] = {}
    searching: dict[int, float] = {}
    peaks: list[float] = []
    store = edge(folder, "n0", 0)
    for size in (10_000, 100_000, count):
        store.close()
        store = edge(folder, f"n{size}", size)
        with peak_memory(peaks):
            started = time.perf_counter()
            indexing[size] = seconds(partial(fill, store, vectors[:size]), time.process_time)
            elapsed = time.perf_counter() - started
            search = partial(store.search, queries[:300], TOP)
            searching[size] = alternating(3, search, clock=time.process_time)[0]
    for name, times in (("index", indexing), ("search", searching)):
        for low, high in ((10_000, 100_000), (100_000, count), (10_000, count)):
            power = math.log(times[high] / times[low]) / math.log(high / low)
            row(
                f"growth of {name}, {low:,} to {high:,}",
                "",
                f"{times[low]:.2f} to {times[high]:.2f} s",
                f"n^{power:.2f}",
            )
    with peak_memory(peaks):
        whole = seconds(lambda: store.search(queries, TOP))
    row("1,000 queries in 1,000,000", "", f"{whole:.1f} s", f"{whole:.1f} ms a query")
    row("upsert 1,000,000", "", f"{elapsed:.1f} s, {indexing[count]:.1f} s of the processor", "")
    row("peak RssAnon above the start", "", f"{max(peaks) - before:.0f} MB", "")
    some = queries[:300]
    ours, product = alternating(3, lambda: store.search(some, TOP), lambda: blas(some, units))
    row("300 queries", f"BLAS over mapped blocks {product:.2f} s", f"{ours:.2f} s", f"{ours / product:.2f} of its time")
    row("the same ids as BLAS", "", f"{same_ids(store, queries[:100], units):.1%}", "")
    store.close()


def approximate(folder: str) -> None:
    count = 50_000
    vectors, queries = clustered(count, 1), clustered(300, 2)
    exact = edge(folder, "exact", count)
    fill(exact, vectors)
    truth = exact.search(queries, TOP)
    whole = alternating(3, partial(exact.search, queries, TOP))[0]
    full = StoreOptions("edge").bytes_read(count, DIMENSIONS)
    row("exact", "1.000", f"{whole / 300 * 1e3:.2f}", f"{full / 1e6:.1f}", "")
    for options in (
        {"m": 16, "ef": 64},
        {"m": 16, "ef": 256},
        {"quantization": "scalar"},
        {"quantization": "product"},
        {"quantization": "product", "oversampling": 8.0},
        {"quantization": "binary"},
        {"quantization": "binary", "oversampling": 8.0},
        {"m": 16, "ef": 256, "quantization": "scalar"},
    ):
        store = edge(folder, "a", count, **options)
        built = f"{seconds(partial(fill, store, vectors)):.1f}" if store.finished() is None else "as above"
        search = partial(store.search, queries, TOP)
        took = alternating(3, search)[0]
        recall = statistics.fmean(
            len(set(a.doc_ids) & set(b.doc_ids)) / TOP for a, b in zip(search(), truth, strict=True)
        )
        needed = StoreOptions("edge", **options).bytes_read(count, DIMENSIONS)
        label = " ".join(f"{key}={value}" for key, value in options.items())
        row(label, f"{recall:.3f}", f"{took / 300 * 1e3:.2f}", f"{needed / 1e6:.1f}", built)
        store.close()


def clustered(count: int, seed: int) -> Vectors:
    """Return vectors around 1,000 centres: independent ones have no neighbours worth the name."""
    centres = normal(1000, 0)
    chosen = np.random.default_rng(seed).integers(0, len(centres), count)
    return np.asarray(centres[chosen] + np.float32(0.7) * normal(count, seed + 10))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        {"small": small, "million": million, "approximate": approximate}[sys.argv[1]](scratch)
