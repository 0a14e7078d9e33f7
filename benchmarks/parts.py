"""How long do Parquet parts take, and how much memory? Writes, lists and reads vectors; a folder that is removed.

python -m benchmarks.parts 1000000 64       so many vectors of so many dimensions
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time

import numpy as np

from retrievers.parts import Parts
from retrievers.roots import open_root
from retrievers.sharding import PART_TEXTS
from retrievers.types import Embedded
from retrievers.vectors import part_keys, write_part

ASKED = 2_000
"""Texts whose vectors are read in one go, as those of a window's requests are."""


def texts(start: int, count: int) -> list[str]:
    """Distinct texts."""
    return [f"text {number}" for number in range(start, start + count)]


def main(count: int, dimensions: int) -> None:
    """Print seconds of each step and the peak memory."""
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        root = open_root(folder)
        started = time.perf_counter()
        for start in range(0, count, PART_TEXTS):
            size = min(PART_TEXTS, count - start)
            vectors = random.standard_normal((size, dimensions), dtype=np.float32)
            embedded = Embedded(vectors, np.ones(size, dtype=np.int64), np.zeros(size, dtype=np.int64))
            write_part(root, "hashed", "document", part_keys("hashed", "document", texts(start, size)), embedded)
        print(f"written: {count:,} x {dimensions} in {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        parts = Parts(root, "hashed", "document")
        print(f"keys read: {len(parts):,} in {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        chosen = [f"text {number}" for number in random.integers(0, count, ASKED * 2).tolist()][:ASKED]
        rows = parts.get(part_keys("hashed", "document", sorted(set(chosen))))
        print(f"read: {len(rows.positions):,} drawn at random in {time.perf_counter() - started:.1f} s")
        started = time.perf_counter()
        read = sum(len(names) for names, _ in parts.all())
        print(f"read through: {read:,} in {time.perf_counter() - started:.1f} s")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
