"""The max-T test of many pairs of the same retrievers."""

from collections.abc import Sequence

import numpy as np

from harness.stats.differences import SCORE_TOLERANCE, Floats
from harness.stats.draws import draw_flipped_sums
from harness.stats.max_t import STATISTIC_TOLERANCE, is_enumerable, max_t_family


def max_t_pair_family(
    sums: Sequence[Floats], pairs: Sequence[tuple[int, int]], *, seed: int = 0
) -> list[float]:
    """Return the two-sided p-values of all pairs in all slices, corrected over these.

    It is `max_t_family` of the differences. Sums under flips are drawn for each
    retriever, and subtracted: 20 retrievers have 190 pairs.

    Args:
        sums: of each slice, (units, m) scores of the retrievers; zero where a unit is
            not in the slice.
        pairs: columns of two retrievers.
        seed: of the draws.

    Returns:
        The p-values of the first slice's pairs, then of the second's, and so on.

    >>> scores = np.tile([[0.5, 0.2, 0.2], [0.4, 0.2, 0.3]], (15, 1))
    >>> p_values = max_t_pair_family([scores], [(0, 1), (1, 2)])
    >>> [round(p, 4) for p in p_values]
    [0.0, 0.0001]
    """
    first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    differences = np.hstack([part[:, first] - part[:, second] for part in sums])
    slack = SCORE_TOLERANCE * max(1.0, float(np.abs(differences).max(initial=0.0)))
    differences[np.abs(differences) <= slack] = 0.0
    if is_enumerable(differences):
        return max_t_family(differences, seed=seed)
    roots = np.sqrt((differences**2).sum(axis=0))
    varies = roots > 0
    columns = np.hstack(sums)
    offsets = np.arange(len(sums))[:, None] * sums[0].shape[1]
    firsts = (offsets + first).ravel()[varies]
    seconds = (offsets + second).ravel()[varies]
    maxima = [
        np.abs((flips[:, firsts] - flips[:, seconds]) / roots[varies]).max(axis=1)
        for flips in draw_flipped_sums(columns, seed)
    ]
    rising = np.sort(np.concatenate(maxima))
    p_values = np.ones(len(roots))
    observed = np.abs(differences[:, varies].sum(axis=0)) / roots[varies]
    reached = np.searchsorted(rising, observed - STATISTIC_TOLERANCE)
    # The observed signs are one more than those drawn.
    p_values[varies] = (len(rising) - reached + 1) / (len(rising) + 1)
    return p_values.tolist()
