"""Many hypotheses: corrections, the best of many (cross-fitted), slices of the queries, several data sets."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import Floats, ScoreTable, Units, highest
from harness.stats.intervals import NONE, Interval, deviation, mean, student
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip


def adjust(p_values: Sequence[float], method: str = "holm") -> tuple[float, ...]:
    """Return the adjusted p-values of one family, in the given order, none above 1.

    Args:
        p_values: one for each hypothesis of the family, 0 < p <= 1; an undefined test counts with p = 1.
        method: "holm" (Holm 1979) and "bonferroni" keep the chance of any false claim in the family at alpha; "bh"
            (Benjamini & Hochberg 1995) the expected share of false claims among all claims.

    >>> adjust([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(CORRECTIONS[method](p[order]), 1.0)
    return tuple(adjusted.tolist())


def _holm(p: Floats) -> Floats:
    stepped: Floats = np.maximum.accumulate(p * np.arange(len(p), 0, -1))
    return stepped


def _bonferroni(p: Floats) -> Floats:
    return p * len(p)


def _bh(p: Floats) -> Floats:
    m = len(p)
    stepped: Floats = np.minimum.accumulate((p * (m / np.arange(1, m + 1)))[::-1])[::-1]
    return stepped


CORRECTIONS: dict[str, Callable[[Floats], Floats]] = {
    "holm": _holm,
    "bonferroni": _bonferroni,
    "bh": _bh,
}
"""Ours: importing statsmodels takes longer than a whole comparison; the tests compare both."""


def adjusted_floors(
    p_values: Sequence[float], floors: Sequence[float | None], method: str
) -> tuple[float | None, ...]:
    """Return, for each hypothesis, the correction with its own p replaced by the smallest that it could have been.

    Args:
        p_values: one for each hypothesis of the family.
        floors: the smallest p of the first hypotheses; None where there is no such bound.
        method: as for `adjust`.

    >>> adjusted_floors([0.03, 0.04], [0.01, None], "holm")
    (0.02, None)
    """
    correct, placed = (
        CORRECTIONS[method],
        np.sort(np.asarray(p_values, dtype=np.float64)),
    )

    def adjusted(own: float, floor: float) -> float:
        others = np.delete(placed, np.searchsorted(placed, own))
        at = np.searchsorted(others, floor)
        return min(1.0, float(correct(np.insert(others, at, floor))[at]))

    pairs = zip(p_values, floors, strict=False)
    return tuple(
        None if floor is None else adjusted(own, floor) for own, floor in pairs
    )


PARTS = 5
"""Of the queries, for cross-fitting."""


def cross_fitted(
    scores: ScoreTable, ids: Sequence[str], units: Units, *, seed: int = 0
) -> float | None:
    """Estimate the mean, on new queries, of what has the highest mean on these: cross-fitted, never tested.

    The queries fall into five parts by SHA-256 of (seed, id); clusters stay whole, by the id of their first query. The
    retriever with the highest mean over four parts is measured on the fifth; the estimate is the mean over all queries.
    None where all queries fall into one part.

    Args:
        scores: retriever -> (n,) scores of one measure.
        ids: (n,) the queries.
        units: clusters and weights of the queries.
        seed: of the parts.
    """
    first: dict[int, str] = {}
    for unit, query in zip(units.members.tolist(), ids, strict=True):
        first[unit] = min(query, first.get(unit, query))
    part = np.array([_part(seed, first[unit]) for unit in units.members.tolist()])
    table = np.column_stack(list(scores.values()))
    weights = np.ones(len(ids)) if units.weights is None else units.weights
    if not np.ptp(part):
        return None
    left_out = np.zeros(len(ids))
    for one in np.unique(part):
        held = part == one
        chosen = highest(weights[~held] @ table[~held] / weights[~held].sum())
        left_out[held] = table[held, chosen]
    return mean(left_out, units.weights)


def _part(seed: int, query: str) -> int:
    return (
        int.from_bytes(hashlib.sha256(f"{seed}/parts/{query}".encode()).digest(), "big")
        % PARTS
    )


FEWEST = 10
"""Queries below which a slice is not tested."""


def large_slices(labels: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of the queries of each slice that is large enough.

    >>> large_slices(["en"] * 10 + ["ja"] * 9 + [""] * 10)
    {'en': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
    """
    kinds = [
        kind
        for kind, count in sorted(Counter(labels).items())
        if kind and count >= FEWEST
    ]
    return {
        kind: [place for place, own in enumerate(labels) if own == kind]
        for kind in kinds
    }


def small_slices(labels: Sequence[str]) -> dict[str, int]:
    """Return the slices that are too small to be tested, with their numbers of queries.

    >>> small_slices(["en"] * 12 + ["ja"] * 3)
    {'ja': 3}
    """
    return {
        kind: count
        for kind, count in sorted(Counter(labels).items())
        if kind and count < FEWEST
    }


def length_slices(texts: Sequence[str]) -> list[str]:
    """Return each query's slice by its length in characters: thirds, equal lengths together.

    >>> length_slices(["a", "bb", "ccc"])
    ['short (up to 1)', 'medium (2 to 2)', 'long (3 or more)']
    """
    lengths = np.array([*map(len, texts)])
    short, medium = (
        int(x) for x in np.quantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf")
    )
    names = np.array(
        [
            f"short (up to {short})",
            f"medium ({short + 1} to {medium})",
            f"long ({medium + 1} or more)",
        ]
    )
    return list(names[(lengths > short).astype(int) + (lengths > medium)].tolist())


FEWEST_SETS = 5
"""Sets from which anything is said of sets like these."""


class SetsLikeThese(NamedTuple):
    """The difference on sets like these, which are treated as a sample of them."""

    t: float
    p_value: float
    """Two-sided, of Student's t with one degree of freedom less than there are sets."""
    interval: Interval
    """Of the mean over all such sets."""
    new_set: Interval
    """Of the difference on one more set (Higgins, Thompson & Spiegelhalter 2009)."""

    @property
    def turned(self) -> SetsLikeThese:
        """The same of the opposite difference."""
        return self._replace(
            t=-self.t, interval=self.interval.turned, new_set=self.new_set.turned
        )


def sets_like_these(
    means: Sequence[float], level: float = 0.95
) -> SetsLikeThese | None:
    """Return what the mean differences of several sets say of others; None below five sets, or where all are equal.

    Args:
        means: the mean difference of each set.
        level: confidence of the intervals.

    >>> found = sets_like_these([0.02, 0.05, -0.01, 0.04, 0.03, 0.06])
    >>> round(found.t, 4), round(found.p_value, 5)
    (3.1236, 0.02615)
    >>> [round(end, 3) for end in found.interval[:2]], [round(end, 3) for end in found.new_set[:2]]
    ([0.006, 0.058], [-0.037, 0.101])
    """
    values = np.array(means, dtype=np.float64)
    interval = student(values, level) if len(values) >= FEWEST_SETS else NONE
    if interval.low is None:
        return None
    count, centre, spread = len(values), mean(values), deviation(values)
    t = centre / spread * math.sqrt(count)
    reach = (
        float(special.stdtrit(count - 1, (1 + level) / 2))
        * spread
        * math.sqrt(1 + 1 / count)
    )
    new_set = Interval(centre - reach, centre + reach, "t")
    return SetsLikeThese(
        t, 2 * float(special.stdtr(count - 1, -abs(t))), interval, new_set
    )


def these_sets(
    sets: Sequence[Floats], contrasts: Sequence[Contrast], seed: int = 0
) -> list[FlipTest]:
    """Test the mean of the sets' mean differences by flips within the sets: each set counts alike.

    Args:
        sets: (units, k) of each set: what each query, or cluster, adds to the mean of each of k retrievers there.
        contrasts: which retrievers to compare.
        seed: of the draws.

    >>> one, other = np.array([[0.4, 0.1], [0.6, 0.2]]), np.array([[0.9, 0.5], [0.2, 0.1], [0.3, 0.2]])
    >>> these_sets([one / 2, other / 3], [Contrast(0, 1)])[0].two_sided * 2**5  # all five differ the same way
    2.0
    """
    scale = sum(map(len, sets)) / len(
        sets
    )  # the means' summands are small where float noise is told beside 1
    return sign_flip(np.concatenate([units * scale for units in sets]), contrasts, seed)
