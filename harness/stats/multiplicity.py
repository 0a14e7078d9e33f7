"""More hypotheses than one: corrections for a family of tests."""

from collections.abc import Callable, Sequence

import numpy as np

from harness.stats.differences import Floats
from retrievers.errors import InputError, Problem, did_you_mean


def adjust(p_values: Sequence[float], method: str = "holm") -> tuple[float, ...]:
    """Return the adjusted p-values of one family, in the given order, none above 1.

    Args:
        p_values: one for each hypothesis of the family, 0 < p <= 1; an undefined test counts with p = 1.
        method: "holm" (Holm 1979) and "bonferroni" keep the chance of any false claim in the family at alpha; "bh"
            (Benjamini & Hochberg 1995) the expected share of false claims among all claims.

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


CORRECTIONS: dict[str, Callable[[Floats], Floats]] = {
    "holm": _holm,
    "bonferroni": _bonferroni,
    "bh": _bh,
}
"""Ours: importing statsmodels takes longer than a whole comparison; the tests compare both."""


def adjusted_floors(p_values: Sequence[float], floors: Sequence[float | None], method: str) -> tuple[float | None, ...]:
    """Return, for each hypothesis, the correction with its own p replaced by the smallest that it could have been.

    Args:
        p_values: one for each hypothesis of the family.
        floors: the smallest p of the first hypotheses; None where there is no such bound.
        method: as for `adjust`.

    >>> adjusted_floors([0.03, 0.04], [0.01, None], "holm")
    (0.02, None)
    """
    correct, placed = CORRECTIONS[method], np.sort(np.asarray(p_values, dtype=np.float64))
    found: list[float | None] = []
    for own, floor in zip(p_values, floors, strict=False):
        if floor is None:
            found.append(None)
            continue
        at = int(np.searchsorted(placed, floor))
        here = int(np.searchsorted(placed, own))
        family = np.insert(np.delete(placed, here), at - (here < at), floor)
        found.append(min(1.0, float(correct(family)[at - (here < at)])))
    return tuple(found)
