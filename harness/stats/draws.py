"""Where every random number of the statistics comes from: one seeded stream for each purpose."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int, purpose: str, queries: int) -> np.random.Generator:
    """Return the PCG64 stream of a purpose, seeded by SHA-256 of (seed, purpose, number of queries).

    Nothing else enters the seed: all measures and pairs share the stream, so that adding a retriever moves
    no other number, and the answer does not depend on what was drawn before.

    >>> bool(generator(0, "signs", 13).random() == generator(0, "signs", 13).random())
    True
    """
    digest = hashlib.sha256(f"{seed}/{purpose}/{queries}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
