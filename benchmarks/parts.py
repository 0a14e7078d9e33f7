"""How long do Parquet files of vectors take, and how much memory? Writes, lists and reads them in a scratch folder.

python -m benchmarks.parts 1000000 64       so many vectors of so many dimensions
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time

import numpy as np

from retrievers.shard_file import ShardWriter
from retrievers.storage import open_storage
from retrievers.types import Embedded
from retrievers.vector_shards import GROUP, VectorShards, vector_keys

ASKED = 2_000
"""Texts whose vectors are read in one go, as those of a window's requests are."""


def texts(start: int, count: int) -> list[str]:
    """Distinct texts."""
    return [f"text {number}" for number in range(start, start + count)]


def main(count: int, dimensions: int) -> None:
    """Print seconds of each step and the peak memory."""
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        storage = open_storage(folder)
        started = time.perf_counter()
        with ShardWriter(storage, "hashed", "document") as writer:
            for start in range(0, count, GROUP):
                size = min(GROUP, count - start)
                vectors = random.standard_normal((size, dimensions), dtype=np.float32)
                embedded = Embedded(vectors, np.ones(size, dtype=np.int64), np.zeros(size, dtype=np.int64))
                writer.add(vector_keys("hashed", "document", texts(start, size)), embedded)
        print(f"written: {count:,} x {dimensions} in {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        shards = VectorShards(storage, "hashed", "document")
        print(f"keys read: {len(shards):,} in {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        chosen = [f"text {number}" for number in random.integers(0, count, ASKED * 2).tolist()][:ASKED]
        positions, _ = shards.get(vector_keys("hashed", "document", sorted(set(chosen))))
        print(f"read: {len(positions):,} drawn at random in {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        read = sum(len(names) for names, _ in shards.all())
        print(f"read through: {read:,} in {time.perf_counter() - started:.1f} s")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
