"""Adjusted p-values of one family."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harness.stats.differences import Floats


def adjust_p_values(
    p_values: Sequence[float], method: str = "holm"
) -> tuple[float, ...]:
    """Return the adjusted p-values of one family, in the given order, none above 1.

    Args:
        p_values: one for each hypothesis of the family, 0 < p <= 1; an undefined test
            counts with p = 1.
        method: "holm" (Holm 1979) and "bonferroni" keep the chance of any false claim
            in the family at alpha; "bh" (Benjamini & Hochberg 1995) keeps the expected
            share of false claims among all claims.

    >>> adjust_p_values([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(CORRECTION_FORMULAS[method](p[order]), 1.0)
    return tuple(adjusted.tolist())


def _holm(p: Floats) -> Floats:
    stepped: Floats = np.maximum.accumulate(p * np.arange(len(p), 0, -1))
    return stepped


def _bonferroni(p: Floats) -> Floats:
    return p * len(p)


def _benjamini_hochberg(p: Floats) -> Floats:
    count = len(p)
    multiplied = p * (count / np.arange(1, count + 1))
    stepped: Floats = np.minimum.accumulate(multiplied[::-1])[::-1]
    return stepped


CORRECTION_FORMULAS: dict[str, Callable[[Floats], Floats]] = {
    "holm": _holm,
    "bonferroni": _bonferroni,
    "bh": _benjamini_hochberg,
}
"""Method -> the function from p-values in rising order to adjusted ones.

Importing statsmodels takes longer than a whole comparison; the tests compare both.
"""


def adjust_floors(
    p_values: Sequence[float], floors: Sequence[float | None], method: str
) -> tuple[float | None, ...]:
    """Return the smallest adjusted p-value that each hypothesis could have had.

    Its own p is replaced by the smallest that it could have been; the others stay.

    Args:
        p_values: one for each hypothesis of the family.
        floors: the smallest p of the first hypotheses, or of all; None where there is
            no bound.
        method: as for `adjust_p_values`.

    >>> adjust_floors([0.03, 0.04], [0.01, None], "holm")
    (0.02, None)
    """
    formula = CORRECTION_FORMULAS[method]
    rising = np.sort(np.asarray(p_values, dtype=np.float64))
    adjusted_floors: list[float | None] = []
    # Hypotheses at the end may have no floor: they are tests that were not made.
    for p_value, floor in zip(p_values, floors, strict=False):
        if floor is None:
            adjusted_floors.append(None)
            continue
        others = np.delete(rising, np.searchsorted(rising, p_value))
        rank = np.searchsorted(others, floor)
        adjusted = formula(np.insert(others, rank, floor))[rank]
        adjusted_floors.append(min(1.0, float(adjusted)))
    return tuple(adjusted_floors)
