"""Measures of one's own: a function of a query's grades and of what was returned for it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.measures.measure import OWN, Measure
from retrievers.errors import InputError, Problem
from retrievers.held import Held

NAME = re.compile(r"[A-Za-z]\w{0,63}")


class OwnFunction(NamedTuple):
    """What computes a measure of one's own, and between which values."""

    function: Callable[[Mapping[str, int], Sequence[str]], float]
    low: float
    high: float


def measure(
    name: str,
    function: Callable[[Mapping[str, int], Sequence[str]], float],
    range: tuple[float, float] = (0, 1),
) -> str:
    """A measure of one's own, to stand among `measures`; it is tested as any other.

    Args:
        name: letters, digits and underscores; results call it own.NAME.
        function: of {document: grade} of a query, and its ranking, ids best first; no empty ranking is asked for: it
            is worth the least.
        range: the least value and the largest.

    Raises:
        InputError: the name or the range is none.

    >>> measure("first", lambda grades, ranking: float(grades.get(ranking[0], 0) > 0))
    'own.first'
    """
    low, high = map(float, range)
    if not NAME.fullmatch(name):
        raise InputError(Problem("name", f"{name!r} is no name of a measure", "letters, digits and underscores"))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(Problem("range", f"{range} is no range", "the least value and the largest: (0, 1)"))
    limits = [f"high={high}"] * (high != 1) + [f"low={low}"] * (low != 0)
    return Held(f"{OWN}{name}" + (f"({', '.join(limits)})" if limits else ""), OwnFunction(function, low, high))


def own_value(measure: Measure, judged: Mapping[str, int], ranking: Sequence[str], query: str = "") -> float:
    """Score one ranking by a measure of one's own.

    Raises:
        InputError: its function is not here, failed, or gave what is no number of its range.
    """
    where = f"measure {str(measure)!r}"
    if not isinstance(measure.function, OwnFunction):
        raise InputError(
            Problem(where, "is a function of another process", "name other measures, or run it again in Python")
        )
    function, low, high = measure.function
    if not ranking:
        return low
    at = f"{where}, query {query!r}" if query else where
    try:
        value = float(function(judged, list(ranking[: measure.cutoff])))
    except Exception as failure:
        raise InputError(Problem(at, f"failed: {type(failure).__name__}: {failure}")) from failure
    if not low <= value <= high:
        raise InputError(Problem(at, f"gave {value}, which is not between {low:g} and {high:g}", "say its range"))
    return value
