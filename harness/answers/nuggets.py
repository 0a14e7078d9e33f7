"""Nuggets (TREC; formulas as in `core/metrics.py` of castorini/nuggetizer): the facts that an answer ought to hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.records import Support

WORTH = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}


class Nugget(NamedTuple):
    """One fact of the reference, and whether the answer holds it."""

    vital: bool
    support: Support | None
    """None where the verdict is missing or cannot be read."""


def all_nuggets(nuggets: Sequence[Nugget]) -> float | None:
    """Nuggets, all: (supported + partially supported / 2) / nuggets.

    Range 0 to 1; undefined without a nugget, or where the support of one is unknown.

    >>> all_nuggets([Nugget(True, "support"), Nugget(False, "partial_support")])
    0.75
    """
    return _mean(nuggets, strict=False)


def vital_nuggets(nuggets: Sequence[Nugget]) -> float | None:
    """Nuggets, vital: the same over the vital nuggets alone; undefined where none is vital."""
    return _mean([one for one in nuggets if one.vital], strict=False)


def strict_nuggets(nuggets: Sequence[Nugget]) -> float | None:
    """Nuggets, strict: fully supported nuggets / nuggets; partial support counts nothing.

    >>> strict_nuggets([Nugget(True, "support"), Nugget(False, "partial_support")])
    0.5
    """
    return _mean(nuggets, strict=True)


def strict_vital_nuggets(nuggets: Sequence[Nugget]) -> float | None:
    """Nuggets, strict and vital: fully supported vital nuggets / vital nuggets; undefined where none is vital."""
    return _mean([one for one in nuggets if one.vital], strict=True)


def _mean(nuggets: Sequence[Nugget], *, strict: bool) -> float | None:
    if not nuggets or any(one.support is None for one in nuggets):
        return None
    worth = [1.0 if one.support == "support" else 0.0 for one in nuggets] if strict else [
        WORTH[one.support or "not_support"] for one in nuggets
    ]  # fmt: skip
    return sum(worth) / len(worth)
