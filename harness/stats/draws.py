"""Seeded draws on all cores."""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from harness.stats.differences import Floats

Result = TypeVar("Result")
InputRow = TypeVar("InputRow")


def map_in_parallel(
    compute: Callable[[InputRow], Result], rows: Iterable[InputRow]
) -> Iterator[Result]:
    """Yield what a function gives of each row, in their order, computed on all cores.

    For large arrays alone: NumPy lets go of the interpreter while it computes, and threads of small steps wait for each
    other. No more than some rows are read ahead.
    """
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        waiting = deque[Future[Result]]()
        for row in rows:
            waiting.append(pool.submit(compute, row))
            if len(waiting) > cores:
                yield waiting.popleft().result()
        yield from (one.result() for one in waiting)


def seeded_generator(seed: int, purpose: str, queries: int) -> np.random.Generator:
    """Return the PCG64 stream of a purpose, seeded by SHA-256 of (seed, purpose, number of queries).

    Nothing else enters the seed: all measures and pairs share the stream, so that adding a retriever moves
    no other number, and the answer does not depend on what was drawn before.

    >>> bool(seeded_generator(0, "signs", 13).random() == seeded_generator(0, "signs", 13).random())
    True
    """
    digest = hashlib.sha256(f"{seed}/{purpose}/{queries}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


SIGN_DRAWS = 100_000


MAX_BLOCK_SUMS = 1 << 17
"""Sums made at once, few enough to stay in a processor's cache; it moves no result."""
MAX_BLOCK_SIGNS = 1 << 22
"""Words of 64 signs, or signs, held at once, which bounds the memory; it moves no result either."""
MAX_LOOKUP_COLUMNS = 128
"""Columns beyond which a product is faster than looking sums up."""
Bytes = npt.NDArray[np.uint8]


def enumerate_flipped_sums(rows: Floats) -> Floats:
    """The sums of rows under every pattern of their signs, the observed one first."""
    sums = np.zeros((1, *rows.shape[1:]))
    for row in rows:
        sums = np.concatenate([sums + row, sums - row])
    return sums


def draw_flipped_sums(columns: Floats, seed: int) -> Iterator[Floats]:
    """Yield the sums of the columns under each draw of signs, in blocks of draws; blocks move no sum.

    The signs are random bits, a set one is a minus.

    Args:
        columns: (n, k), a sign for each row.
        seed: of the draws, which are the same for all columns.
    """
    n, k = columns.shape
    words = -(-n // 64)
    rng = seeded_generator(seed, "signs", n)
    rows = max(
        1,
        min(MAX_BLOCK_SUMS // k, MAX_BLOCK_SIGNS // words)
        if k <= MAX_LOOKUP_COLUMNS
        else MAX_BLOCK_SIGNS // max(n, k),
    )
    drawn = (
        rng.integers(
            0, 2**64, size=(min(rows, SIGN_DRAWS - start), words), dtype=np.uint64
        )
        .astype("<u8")
        .view(np.uint8)
        for start in range(0, SIGN_DRAWS, rows)
    )
    yield from map_in_parallel(
        lambda bits: (
            _looked_up(bits, columns)
            if k <= MAX_LOOKUP_COLUMNS
            else _signs(bits, n) @ columns
        ),
        drawn,
    )


def _looked_up(bits: Bytes, columns: Floats) -> Floats:
    """Eight rows have 256 patterns: their sums are looked up by the byte that was drawn.

    With up to 20 columns that takes a fifth to a tenth of the time of a product with the signs.
    """
    eights = np.zeros((-(-len(columns) // 8), 8, columns.shape[1]))
    eights.reshape(-1, columns.shape[1])[: len(columns)] = columns
    sums = np.zeros((len(bits), columns.shape[1]))
    part = np.empty_like(sums)
    for eight, pattern in zip(eights, np.ascontiguousarray(bits.T), strict=False):
        # "clip" lets numpy write into `part` as it goes; no byte is beyond 255.
        sums += np.take(BYTE_SIGNS @ eight, pattern, axis=0, out=part, mode="clip")
    return sums


def _signs(bits: Bytes, count: int | None = None) -> Floats:
    signs = np.unpackbits(bits, axis=1, count=count).astype(np.float64)
    signs *= -2
    signs += 1
    return signs


BYTE_SIGNS = _signs(np.arange(256, dtype=np.uint8)[:, None])
"""(256, 8): the signs that each byte stands for."""
