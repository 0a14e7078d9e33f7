"""What the harness adds to SentenceTransformer.encode on the same texts.

Target at most 2 %; warm: at most 3 %.

Both are timed in turns, and the fastest of each counts. Without a model's folder:
all-MiniLM-L6-v2 of the `offline` package; texts are drawn from a fixed list of words,
with the lengths of abstracts.

python benchmarks/embedding_overhead.py [MODEL [TEXTS]]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from retrievers.cache import Cache
from retrievers.embedder import Embedder
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.local.weights import OFFLINE_MODEL, Weights
from retrievers.meter import Meter, single_call

ROUNDS = 4
WORDS = (
    "retrieval",
    "of",
    "the",
    "survey",
    "template",
    "measures",
    "employee",
    "and",
    "customer",
    "engagement",
)


def texts(count: int) -> list[str]:
    random = np.random.default_rng(0)
    lengths = random.integers(20, 300, size=count)
    return [
        " ".join(random.choice(WORDS, size=length)) + f" {i}"
        for i, length in enumerate(lengths)
    ]


def main() -> None:
    from sentence_transformers import SentenceTransformer

    name = sys.argv[1] if len(sys.argv) > 1 else OFFLINE_MODEL
    corpus = texts(int(sys.argv[2]) if len(sys.argv) > 2 else 256)
    plain = SentenceTransformer(str(Weights(name).folder or name))
    encoder = SentenceTransformerEncoder(name)
    encoder.embed(["warm"], "document", single_call())
    plain.encode(["warm"])
    seconds: dict[str, list[float]] = {"plain": [], "harness": [], "warm": []}
    for _ in range(ROUNDS):
        started = time.perf_counter()
        expected = plain.encode(
            corpus, normalize_embeddings=True, show_progress_bar=False
        )
        seconds["plain"].append(time.perf_counter() - started)
        with (
            tempfile.TemporaryDirectory() as folder,
            Cache(Path(folder) / "c") as cache,
        ):
            embedder = Embedder(encoder, cache)
            for kind in ("harness", "warm"):
                started = time.perf_counter()
                found = embedder.embed(corpus, "document", Meter())
                seconds[kind].append(time.perf_counter() - started)
        assert np.allclose(found.vectors, expected, atol=1e-5)
    best = {kind: min(times) for kind, times in seconds.items()}
    print(
        f"{name}, {len(corpus)} texts: encode {best['plain']:.2f} s, harness "
        f"{best['harness']:.2f} s"
    )
    print(
        f"overhead {best['harness'] / best['plain'] - 1:+.1%}, a warm run takes "
        f"{best['warm'] / best['plain']:.2%}"
    )


if __name__ == "__main__":
    main()
