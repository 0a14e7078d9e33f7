"""Time of Qdrant in memory, beside one matrix product of all queries.

    python -m benchmarks.store_in_memory [DOCUMENTS] [QUERIES]

Run it from the checkout with `-m`: as a file it measures the package that is installed,
which may be another checkout; the first line says which. Each way is timed five times;
the medians count. Filters accept a third of the documents.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import retrievers
from retrievers.embedded import DenseVectors
from retrievers.meter import Meter
from retrievers.ranking import Floats, ranked, round_scores, top_k_candidates
from retrievers.store import Store
from retrievers.stores.open import open_store
from retrievers.stores.options import MEMORY_LOCATION, StoreOptions

DIMENSIONS = 384
DEPTH = 100
ROUNDS = 5
LANGUAGES = ("de", "ja", "en")


def unit_vectors(count: int, seed: int) -> DenseVectors:
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((count, DIMENSIONS), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def filled_store(vectors: DenseVectors) -> Store:
    count = len(vectors)
    ids = [f"d{i}" for i in range(count)]
    fields = [{"language": LANGUAGES[i % len(LANGUAGES)]} for i in range(count)]
    store = open_store(
        StoreOptions(MEMORY_LOCATION),
        "benchmark",
        documents=count,
        folder=Path(),
        meter=Meter(),
    )
    store.create(DIMENSIONS)
    store.upsert(ids, vectors, fields)
    store.finish({})
    return store


def matrix_product(queries: DenseVectors, vectors: DenseVectors) -> None:
    """Rank all documents for each query by one product in 64 bits."""
    documents: Floats = vectors.astype(np.float64)
    products = queries.astype(np.float64) @ documents.T
    for scores in products:
        best = top_k_candidates(scores, DEPTH)
        ranked([f"d{row}" for row in best], round_scores(scores[best]), DEPTH)


class Times(NamedTuple):
    """Median seconds of a piece of work."""

    wall: float
    processor: float


def times(work: Callable[[], object]) -> Times:
    walls, processors = [], []
    for _ in range(ROUNDS):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return Times(statistics.median(walls), statistics.median(processors))


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    query_count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    vectors = unit_vectors(count, 1)
    queries = unit_vectors(query_count, 2)
    filters = [(("language", ("ja",)),)] * query_count
    store = filled_store(vectors)
    works = {
        "matrix product": lambda: matrix_product(queries, vectors),
        "memory": lambda: store.search(queries, DEPTH),
        "memory, filtered": lambda: store.search(queries, DEPTH, query_filters=filters),
    }
    print(f"measured: {retrievers.__file__}")
    print(f"{count:,} documents x {DIMENSIONS}, {query_count} queries, top {DEPTH}")
    print("| way | ms per query | of a processor |\n| --- | --- | --- |")
    for name, work in works.items():
        wall, processor = (each / query_count * 1e3 for each in times(work))
        print(f"| {name} | {wall:.2f} | {processor:.2f} |", flush=True)


if __name__ == "__main__":
    main()
