"""How fast cached vectors are read: 1,000,000 of 384 dimensions, target 150 MB/s.

python benchmarks/embedding_cache.py [COUNT]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from retrievers.cache import Cache
from retrievers.identity import text_keys
from retrievers.types import Embedded

DIMENSIONS = 384
REQUEST = 256
WINDOW = 16_384


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    megabytes = count * DIMENSIONS * 4 / 1e6
    texts = [f"{i:07} of the texts of this benchmark" for i in range(count)]
    vectors = (
        np.random.default_rng(0).normal(size=(REQUEST, DIMENSIONS)).astype(np.float32)
    )
    counts = np.ones(REQUEST, dtype=np.int64)
    with (
        tempfile.TemporaryDirectory() as folder,
        Cache(Path(folder) / "cache.sqlite") as cache,
    ):
        started = time.perf_counter()
        for i in range(0, count, REQUEST):
            some = texts[i : i + REQUEST]
            part = Embedded(
                vectors[: len(some)], counts[: len(some)], counts[: len(some)]
            )
            cache.put("benchmark", text_keys("benchmark", "document", some), part)
        seconds = time.perf_counter() - started
        print(
            f"stored {count:,} vectors in {seconds:.1f} s, {megabytes / seconds:.0f} "
            f"MB/s, {REQUEST} a transaction"
        )
        for name, order in (
            ("as stored", texts),
            ("shuffled", np.random.default_rng(1).permutation(texts).tolist()),
        ):
            started = time.perf_counter()
            found = 0
            for i in range(0, count, WINDOW):
                positions, _ = cache.get(
                    text_keys("benchmark", "document", order[i : i + WINDOW])
                )
                found += len(positions)
            seconds = time.perf_counter() - started
            assert found == count
            print(
                f"read {found:,} vectors {name} in {seconds:.1f} s, "
                f"{megabytes / seconds:.0f} MB/s, keys and checks too"
            )


if __name__ == "__main__":
    main()
