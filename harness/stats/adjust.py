"""Corrections for testing more than one hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harness.stats.differences import Floats
from retrievers.errors import InputError, Problem, did_you_mean


def adjust(p_values: Sequence[float], method: str = "holm") -> tuple[float, ...]:
    """Return the adjusted p-values of one family, in the given order, none above 1.

    Args:
        p_values: one for each hypothesis of the family, 0 < p <= 1; an undefined test counts with p = 1.
        method: "holm" (Holm 1979), "hommel" (1988) and "bonferroni" keep the chance of any false claim in the
            family at alpha; "bh" (Benjamini & Hochberg 1995) the expected share of false claims among all claims.

    Raises:
        InputError: an unknown method.

    >>> adjust([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    if method not in CORRECTIONS:
        raise InputError(Problem("correction", f"unknown method {method!r}", did_you_mean(method, CORRECTIONS)))
    p = np.asarray(p_values, dtype=np.float64)
    if not p.size:
        return ()
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


def _hommel(p: Floats) -> Floats:
    # Closed testing with Simes' test. For each size i of an intersection, the smallest Simes bound over the
    # i largest p-values limits the rest from below (Wright 1992, algorithm for adjusted p-values).
    m = len(p)
    adjusted = np.full(m, float(np.min(p * m / np.arange(1, m + 1))))
    best = adjusted.copy()
    for size in range(m - 1, 1, -1):
        rest = m - size + 1
        bound = float(np.min(size * p[rest:] / np.arange(2, size + 1)))
        adjusted[:rest] = np.minimum(bound, size * p[:rest])
        adjusted[rest:] = adjusted[rest - 1]
        best = np.maximum(best, adjusted)
    highest: Floats = np.maximum(best, p)
    return highest


CORRECTIONS: dict[str, Callable[[Floats], Floats]] = {
    "holm": _holm,
    "hommel": _hommel,
    "bonferroni": _bonferroni,
    "bh": _bh,
}
