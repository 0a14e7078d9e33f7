"""A measure as a value, named or written by the user.

And measures by claims: does what was retrieved hold the statements of a reference answer?
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from retrievers.errors import InputError, Problem
from retrievers.options.user_code import NamedObject

Parameter = str | int | float
OWN_PREFIX = "own."
"""Begins the names of measures that are functions of the user's own."""
CLAIM_MEASURES = frozenset({"ClaimRecall", "ClaimPrecision"})
"""Measures that know nothing of labels."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What to compute: a name of the field, a cutoff and parameters, in the grammar of ir_measures.

    `str()` is canonical: parameters that hold their default are left out, the others are in alphabetical
    order. Made by `parse`, which checks it.

    >>> str(Measure("nDCG", 10, (("dcg", "exp-log2"), ("ideal", "retrieved"))))
    "nDCG(dcg='exp-log2', ideal='retrieved')@10"
    """

    name: str
    cutoff: int | None = None
    """How many of the first hits count; None for all that were kept."""
    params: tuple[tuple[str, Parameter], ...] = ()
    function: object = field(default=None, compare=False, repr=False)
    """What computes a measure of one's own, where it is of this process."""

    def __str__(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self.params)
        at = "" if self.cutoff is None else f"@{self.cutoff}"
        return self.name + (f"({inside})" if inside else "") + at

    def get(self, key: str) -> Parameter | None:
        """The parameter `key`, or None where the measure holds its default."""
        return next((value for name, value in self.params if name == key), None)

    @property
    def rel(self) -> int:
        """The smallest grade that counts as relevant."""
        return int(self.get("rel") or 1)

    @property
    def is_own(self) -> bool:
        """Whether it is a function of the user's own."""
        return self.name.startswith(OWN_PREFIX)

    @property
    def value_limits(self) -> tuple[float, float]:
        """The least and the largest value of a measure of one's own."""
        low, high = self.get("low"), self.get("high")
        return 0.0 if low is None else float(low), 1.0 if high is None else float(high)

    @property
    def uses_claims(self) -> bool:
        """Whether it is measured by the claims of reference answers, and not by labels of documents."""
        return self.name in CLAIM_MEASURES or self.get("by") == "claims"


OWN_NAME_PATTERN = re.compile(r"[A-Za-z]\w{0,63}")


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
    """A measure of one's own, to use among `measures`; it is tested as any other.

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
    if not OWN_NAME_PATTERN.fullmatch(name):
        raise InputError(
            Problem(
                "name",
                f"{name!r} is not a name of a measure",
                "letters, digits and underscores",
            )
        )
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(
            Problem(
                "range",
                f"{range} is not a range",
                "the least value and the largest: (0, 1)",
            )
        )
    limits = [f"high={high}"] * (high != 1) + [f"low={low}"] * (low != 0)
    return NamedObject(
        f"{OWN_PREFIX}{name}" + (f"({', '.join(limits)})" if limits else ""),
        OwnFunction(function, low, high),
    )


def own_value(
    measure: Measure, judged: Mapping[str, int], ranking: Sequence[str], query: str = ""
) -> float:
    """Score one ranking by a measure of one's own.

    Raises:
        InputError: its function is not here, failed, or gave what is no number of its range.
    """
    where = f"measure {str(measure)!r}"
    if not isinstance(measure.function, OwnFunction):
        raise InputError(
            Problem(
                where,
                "is a function of another process",
                "name other measures, or run it again in Python",
            )
        )
    function, low, high = measure.function
    if not ranking:
        return low
    at = f"{where}, query {query!r}" if query else where
    try:
        value = float(function(judged, list(ranking[: measure.cutoff])))
    except Exception as failure:
        raise InputError(
            Problem(at, f"failed: {type(failure).__name__}: {failure}")
        ) from failure
    if not low <= value <= high:
        raise InputError(
            Problem(
                at,
                f"gave {value}, which is not between {low:g} and {high:g}",
                "say its range",
            )
        )
    return value
