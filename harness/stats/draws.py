"""Seeded random draws."""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from harness.stats.differences import Floats

Result = TypeVar("Result")
InputRow = TypeVar("InputRow")
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

SIGN_DRAWS = 100_000
"""Draws of all signs: the standard error of a p of 0.05 is 0.0007."""
MAX_ENUMERATED_UNITS = 16
"""Units up to which all their sign patterns are tried: 65,536, fewer than draws."""
PERMUTATION_DRAWS = 20_000
"""Draws of permutations, which are slower: the standard error of 0.05 is 0.0015."""
MIN_PERMUTATION_DRAWS = 2_000
"""Fewest draws, with many queries: the standard error of 0.05 is 0.005."""
MAX_PERMUTED_VALUES = 10_000_000
"""Values that are permuted for one family, if the fewest draws do not need more."""
MAX_BLOCK_SUMS = 1 << 17
"""Sums computed at once, few enough for a processor's cache; it changes no result."""
MAX_BLOCK_VALUES = 1 << 22
"""Signs, words of 64 signs, or permuted values, in one block.

Each core has a block of signs at once. The size changes sums by float noise alone.
"""
MAX_LOOKUP_COLUMNS = 128
"""Columns beyond which a product is faster than looking sums up."""


def seeded_generator(seed: int, purpose: str, units: int) -> np.random.Generator:
    """Return the PCG64 stream of a purpose.

    It is seeded by SHA-256 of (seed, purpose, number of queries or clusters), and by
    nothing else: all measures and pairs share the stream. Another retriever changes no
    draw, and no draw depends on earlier ones.

    Args:
        seed: of the experiment.
        purpose: what is drawn, such as "signs": each purpose has a stream of its own.
        units: how many queries or clusters there are.

    >>> first, second = (seeded_generator(0, "signs", 13) for _ in range(2))
    >>> bool(first.random() == second.random())
    True
    """
    digest = hashlib.sha256(f"{seed}/{purpose}/{units}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def enumerate_flipped_sums(rows: Floats) -> Floats:
    """Return the sums of rows under all patterns of their signs, the observed first.

    Args:
        rows: (n, …).

    Returns:
        (2 ** n, …)
    """
    sums = np.zeros((1, *rows.shape[1:]))
    for row in rows:
        sums = np.concatenate([sums + row, sums - row])
    return sums


def draw_flipped_sums(columns: Floats, seed: int) -> Iterator[Floats]:
    """Yield the sums of the columns under each draw of signs, in blocks: (draws, k).

    The signs are random bits; a bit that is set is a minus. The observed sums are not
    among them.

    Args:
        columns: (n, k), neither 0; one row for each query or cluster, whose values
            share a sign.
        seed: of the draws, which are the same for all columns.
    """
    n, k = columns.shape
    words = -(-n // 64)
    if k <= MAX_LOOKUP_COLUMNS:
        compute_sums = partial(_sums_by_lookup, columns)
        block_draws = min(MAX_BLOCK_SUMS // k, MAX_BLOCK_VALUES // words)
    else:
        compute_sums = partial(_sums_by_product, columns)
        block_draws = MAX_BLOCK_VALUES // max(n, k)
    generator = seeded_generator(seed, "signs", n)
    blocks = _draw_sign_bits(generator, words, max(1, block_draws))
    yield from _map_in_parallel(compute_sums, blocks)


def draw_permutations(values: Floats, seed: int) -> Iterator[Floats]:
    """Yield the values in the order of each drawn permutation, in blocks: (draws, n).

    Of more than 500 values there are fewer draws, at least 2,000.

    Args:
        values: (n,), at least one.
        seed: of the draws.
    """
    n = len(values)
    generator = seeded_generator(seed, "permutations", n)
    affordable_draws = max(MIN_PERMUTATION_DRAWS, MAX_PERMUTED_VALUES // n)
    all_draws = min(PERMUTATION_DRAWS, affordable_draws)
    block_draws = max(1, MAX_BLOCK_VALUES // n)
    for start in range(0, all_draws, block_draws):
        draws = min(block_draws, all_draws - start)
        yield generator.permuted(np.tile(values, (draws, 1)), axis=1)


def _draw_sign_bits(
    generator: np.random.Generator, words: int, block_draws: int
) -> Iterator[Bytes]:
    """Yield the bits of all draws, in blocks: (draws, 8 bytes for each word)."""
    for start in range(0, SIGN_DRAWS, block_draws):
        draws = min(block_draws, SIGN_DRAWS - start)
        bits: Words = generator.integers(0, 2**64, size=(draws, words), dtype=np.uint64)
        yield bits.astype("<u8").view(np.uint8)


def _map_in_parallel(
    compute: Callable[[InputRow], Result], rows: Iterable[InputRow]
) -> Iterator[Result]:
    """Yield the function's result for each row, in their order, computed on all cores.

    Only for large arrays: NumPy releases the interpreter while it computes, and threads
    with small steps wait for each other. Only a few rows are read ahead.
    """
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        futures = deque[Future[Result]]()
        for row in rows:
            futures.append(pool.submit(compute, row))
            if len(futures) > cores:
                yield futures.popleft().result()
        for future in futures:
            yield future.result()


def _sums_by_lookup(columns: Floats, bits: Bytes) -> Floats:
    """Return the sums of the columns under each draw, looked up byte by byte.

    Eight rows have 256 sign patterns, whose sums are computed once. With up to 20
    columns this takes a fifth to a tenth of the time of a product with the signs.
    """
    k = columns.shape[1]
    padded_rows = np.zeros((-(-len(columns) // 8), 8, k))
    padded_rows.reshape(-1, k)[: len(columns)] = columns
    sums = np.zeros((len(bits), k))
    byte_sums = np.empty_like(sums)
    patterns = np.ascontiguousarray(bits.T)
    # Bits are drawn in words of eight bytes: some bytes at the end have no rows.
    for eight_rows, pattern in zip(padded_rows, patterns, strict=False):
        pattern_sums = BYTE_SIGNS @ eight_rows
        # "clip" lets numpy write into `out` as it goes; no byte is beyond 255.
        sums += np.take(pattern_sums, pattern, axis=0, out=byte_sums, mode="clip")
    return sums


def _sums_by_product(columns: Floats, bits: Bytes) -> Floats:
    """Return the sums of the columns under each draw, as a product with the signs."""
    return _unpack_signs(bits, len(columns)) @ columns


def _unpack_signs(bits: Bytes, count: int | None = None) -> Floats:
    """Return the signs of the first bits of each row: -1 for a bit that is set."""
    signs = np.unpackbits(bits, axis=1, count=count).astype(np.float64)
    signs *= -2
    signs += 1
    return signs


BYTE_SIGNS = _unpack_signs(np.arange(256, dtype=np.uint8)[:, None])
"""(256, 8): the eight signs in each byte."""
