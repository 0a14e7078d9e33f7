"""The stores against the plain alternatives, each pair measured in one run, as ratios.

    python benchmarks/stores.py small
        50,000 x 384: edge, the in-memory client, a BLAS product
    python benchmarks/stores.py million
        1,000,000 x 384: edge, a BLAS product over memory-mapped blocks; growth
    python benchmarks/stores.py approximate
        recall, bytes and time of HNSW and quantisation

Vectors are synthetic: independent normal, or around 1,000 centres for `approximate`.
Two works are timed in turns, and the median taken of each round's ratio, since other
work on the machine comes and goes; in brackets stand processor seconds, user and
system, of all threads. Growth is in processor seconds; memory is RssAnon (Linux).
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
from typing import Any, NamedTuple

import numpy as np

from retrievers.meter import Meter
from retrievers.stores.open import open_store
from retrievers.stores.options import StoreOptions
from retrievers.types import DenseVectors, Store

DIMENSIONS = 384
WINDOW = 16_384
TOP = 10
BLOCK = 50_000
PAUSE = 0.2
"""Seconds until the threads of the work before, which spin in wait for more, are
asleep.
"""


def normal(count: int, seed: int) -> DenseVectors:
    return np.random.default_rng(seed).standard_normal(
        (count, DIMENSIONS), dtype=np.float32
    )


def row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


class Times(NamedTuple):
    """Seconds of one piece of work."""

    wall: float
    processor: float
    """Of all threads, user and system."""


def times(work: Callable[[], object]) -> Times:
    time.sleep(PAUSE)
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Times(time.perf_counter() - wall, time.process_time() - processor)


def medians(rounds: int, work: Callable[[], object]) -> Times:
    """Return the median times of some work, after one round that does not count."""
    work()
    return Times(
        *map(statistics.median, zip(*(times(work) for _ in range(rounds)), strict=True))
    )


def compare(
    label: str, rounds: int, *, ours: Callable[[], object], theirs: Callable[[], object]
) -> None:
    """Print the median times of two pieces of work in turns.

    With the medians of the rounds' ratios.
    """
    ours(), theirs()
    measured = np.array([(times(ours), times(theirs)) for _ in range(rounds)])
    mine, other = (
        f"{wall:.3f} s ({processor:.3f} s)"
        for wall, processor in np.median(measured, axis=0)
    )
    wall, processor = np.median(measured[:, 0] / measured[:, 1], axis=0)
    row(
        label,
        other,
        mine,
        f"{wall:.2f} ({processor:.2f})",
        f"{1 / wall:.1f} times faster",
    )


def anonymous_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


@contextmanager
def peak_memory(peak: list[float]) -> Iterator[None]:
    """Append the largest RssAnon of this process while the block runs, in MB.

    Sampled every 20 ms.
    """
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


def edge(folder: str, name: str, count: int, **options: Any) -> Store:
    return open_store(
        StoreOptions("edge", **options),
        name,
        documents=count,
        folder=Path(folder),
        meter=Meter(),
    )


def fill(store: Store, vectors: DenseVectors) -> None:
    """Build a collection as Dense does, window by window, with document ids."""
    store.create(DIMENSIONS)
    for start in range(0, len(vectors), WINDOW):
        some = np.asarray(vectors[start : start + WINDOW])
        store.upsert([f"d{i}" for i in range(start, start + len(some))], some)
    store.finish({})


def blas(queries: DenseVectors, units: DenseVectors) -> list[set[int]]:
    """Return the top hits of each query by a product over blocks of unit vectors."""
    scores: list[DenseVectors] = []
    places = []
    for start in range(0, len(units), BLOCK):
        product = queries @ units[start : start + BLOCK].T
        best = np.argpartition(-product, TOP, axis=1)[:, :TOP]
        places.append(best + start)
        scores.append(np.take_along_axis(product, best, axis=1))
    place, score = np.hstack(places), np.hstack(scores)
    best = np.argpartition(-score, TOP - 1, axis=1)[:, :TOP]
    return [set(row) for row in np.take_along_axis(place, best, axis=1).tolist()]


def same_ids(store: Store, queries: DenseVectors, units: DenseVectors) -> float:
    found = [
        {int(doc_id[1:]) for doc_id in ranking.doc_ids}
        for ranking in store.search(queries, TOP)
    ]
    return statistics.fmean(
        a == b for a, b in zip(found, blas(queries, units), strict=True)
    )


def small(folder: str) -> None:
    from qdrant_client import QdrantClient, models

    count = 50_000
    vectors, queries = normal(count, 1), normal(300, 2)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = list(range(count))
    payload = [{"id": f"d{i}"} for i in ids]

    def upload() -> QdrantClient:
        client = QdrantClient(":memory:")
        client.create_collection(
            "c", models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client.upload_collection("c", vectors=vectors, ids=ids, payload=payload)
        return client

    store, client = edge(folder, "small", count), upload()
    loop = partial(client.query_points, "c", limit=TOP)
    compare(
        "upsert; upload_collection in memory",
        5,
        ours=lambda: fill(store, vectors),
        theirs=upload,
    )
    compare(
        "300 queries; a loop of query_points",
        1,
        ours=lambda: store.search(queries, TOP),
        theirs=lambda: [loop(query=query) for query in queries],
    )
    compare(
        "300 queries one at a time; the same",
        1,
        ours=lambda: [store.search(query[None], TOP) for query in queries],
        theirs=lambda: [loop(query=query) for query in queries],
    )
    for asked in (queries, normal(1000, 3)):
        compare(
            f"{len(asked)} queries; BLAS and argpartition",
            9,
            ours=partial(store.search, asked, TOP),
            theirs=partial(blas, asked, units),
        )
    row("the same ids as BLAS", "", f"{same_ids(store, queries, units):.1%}", "", "")
    store.close()


def million(folder: str) -> None:
    count = 1_000_000
    before = anonymous_mb()
    vectors = np.lib.format.open_memmap(
        f"{folder}/v.npy", "w+", np.float32, (count, DIMENSIONS)
    )
    units = np.lib.format.open_memmap(
        f"{folder}/u.npy", "w+", np.float32, (count, DIMENSIONS)
    )
    for start in range(0, count, BLOCK):
        vectors[start : start + BLOCK] = normal(BLOCK, start)
        block = np.asarray(vectors[start : start + BLOCK])
        units[start : start + BLOCK] = block / np.linalg.norm(
            block, axis=1, keepdims=True
        )
    queries = normal(1000, 7)
    indexing: dict[int, float] = {}
    searching: dict[int, float] = {}
    peaks: list[float] = []
    store = edge(folder, "n0", 0)
    for size in (10_000, 100_000, count):
        store.close()
        store = edge(folder, f"n{size}", size)
        with peak_memory(peaks):
            built = times(partial(fill, store, vectors[:size]))
            indexing[size] = built.processor
            searching[size] = medians(
                3, partial(store.search, queries[:300], TOP)
            ).processor
            if size == count:
                whole = times(partial(store.search, queries, TOP))
    for name, taken in (("index", indexing), ("search", searching)):
        for low, high in ((10_000, 100_000), (100_000, count), (10_000, count)):
            power = math.log(taken[high] / taken[low]) / math.log(high / low)
            what = f"growth of {name}, {low:,} to {high:,}"
            row(
                what,
                "",
                f"{taken[low]:.2f} to {taken[high]:.2f} s",
                f"n^{power:.2f}",
                "",
            )
    row("upsert 1,000,000", "", f"{built.wall:.1f} s ({built.processor:.1f} s)", "", "")
    row(
        "1,000 queries in 1,000,000",
        "",
        f"{whole.wall:.1f} ms ({whole.processor:.1f} ms) a query",
        "",
        "",
    )
    row("peak RssAnon above the start", "", f"{max(peaks) - before:.0f} MB", "", "")
    for asked, rounds in ((queries[:300], 5), (queries, 3)):
        compare(
            f"{len(asked)} queries; BLAS over mapped blocks",
            rounds,
            ours=partial(store.search, asked, TOP),
            theirs=partial(blas, asked, units),
        )
    row(
        "the same ids as BLAS",
        "",
        f"{same_ids(store, queries[:100], units):.1%}",
        "",
        "",
    )
    store.close()


def approximate(folder: str) -> None:
    count = 50_000
    vectors, queries = clustered(count, 1), clustered(300, 2)
    exact = edge(folder, "exact", count)
    fill(exact, vectors)
    truth = exact.search(queries, TOP)
    whole = medians(3, partial(exact.search, queries, TOP)).wall
    full = StoreOptions("edge").search_bytes(count, DIMENSIONS)
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
        built = (
            f"{times(partial(fill, store, vectors)).wall:.1f}"
            if store.finished() is None
            else "as above"
        )
        search = partial(store.search, queries, TOP)
        took = medians(3, search).wall
        recall = statistics.fmean(
            len(set(a.doc_ids) & set(b.doc_ids)) / TOP
            for a, b in zip(search(), truth, strict=True)
        )
        needed = StoreOptions("edge", **options).search_bytes(count, DIMENSIONS)
        label = " ".join(f"{key}={value}" for key, value in options.items())
        row(
            label,
            f"{recall:.3f}",
            f"{took / 300 * 1e3:.2f}",
            f"{needed / 1e6:.1f}",
            built,
        )
        store.close()


def clustered(count: int, seed: int) -> DenseVectors:
    """Return vectors around 1,000 centres.

    Independent ones have no neighbours worth the name.
    """
    centres = normal(1000, 0)
    chosen = np.random.default_rng(seed).integers(0, len(centres), count)
    return np.asarray(centres[chosen] + np.float32(0.7) * normal(count, seed + 10))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        {"small": small, "million": million, "approximate": approximate}[sys.argv[1]](
            scratch
        )
