"""The harness's time to embed texts, against SentenceTransformer.encode.

    python -m benchmarks.embedding_overhead MODEL [FEWER MORE [WORDS]]

MODEL is a folder or a name of the hub; without one, all-MiniLM-L6-v2 of the `offline`
package. Both embed FEWER and MORE texts of WORDS words in turns; the difference of the
two times is compared, so that loading counts for nothing. Goal: at most 1.05. A warm
run takes all vectors from the cache.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from retrievers.cache import Cache
from retrievers.embedder import Embedder
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.local.weights import OFFLINE_MODEL, Weights
from retrievers.meter import Meter, single_call

ROUNDS = 3
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


def draw_texts(count: int, words: int) -> list[str]:
    """Texts of about so many words, all different."""
    random = np.random.default_rng(0)
    lengths = random.integers(words // 2, words * 3 // 2, size=count)
    return [
        " ".join(random.choice(WORDS, size=length)) + f" {i}"
        for i, length in enumerate(lengths)
    ]


def encode_seconds(model: Any, texts: list[str], batch_size: int) -> float:
    started = time.perf_counter()
    model.encode_document(
        texts,
        batch_size=batch_size,
        normalize_embeddings=True,
        show_progress_bar=False,
    )
    return time.perf_counter() - started


def embed_seconds(
    encoder: SentenceTransformerEncoder, texts: list[str]
) -> tuple[float, float]:
    """Seconds with an empty cache, and again with all vectors in it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Cache(Path(folder) / "cache") as cache,
    ):
        embedder = Embedder(encoder, cache)
        started = time.perf_counter()
        embedder.embed(texts, "document", Meter())
        cold = time.perf_counter() - started
        started = time.perf_counter()
        embedder.embed(texts, "document", Meter())
        return cold, time.perf_counter() - started


def main() -> None:
    from sentence_transformers import SentenceTransformer

    name = sys.argv[1] if len(sys.argv) > 1 else OFFLINE_MODEL
    fewer, more = map(int, sys.argv[2:4]) if len(sys.argv) > 3 else (250, 1_000)
    words = int(sys.argv[4]) if len(sys.argv) > 4 else 60
    model = SentenceTransformer(str(Weights(name).folder or name))
    model.encode(["warm"])
    for batch_size in (32, 1024):
        encoder = SentenceTransformerEncoder(name, batch_size=batch_size)
        encoder.embed(["warm"], "document", single_call())
        seconds: dict[str, list[float]] = {"encode": [], "cold": [], "warm": []}
        for _ in range(ROUNDS):
            differences = np.zeros(3)
            for count, sign in ((fewer, -1), (more, 1)):
                texts = draw_texts(count, words)
                plain = encode_seconds(model, texts, batch_size)
                cold, warm = embed_seconds(encoder, texts)
                differences += sign * np.array([plain, cold, warm])
            for kind, difference in zip(seconds, differences, strict=True):
                seconds[kind].append(float(difference))
        best = {kind: min(times) for kind, times in seconds.items()}
        per_text = 1e3 / (more - fewer)
        print(
            f"{Path(name).name}, {more - fewer:,} texts of {words} words, batch_size "
            f"{batch_size}: encode {best['encode'] * per_text:.3f} ms a text, harness "
            f"{best['cold'] / best['encode']:.2f} of it, a warm run "
            f"{best['warm'] / best['encode']:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
