"""A measure as a value, parsed once, printed canonically, hashable; and measures of one's own: functions of a query.

And measures by claims: does what was retrieved hold the statements of a reference answer?
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from retrievers.errors import InputError, Problem
from retrievers.user_objects import NamedObject

Parameter = str | int | float
OWN = "own."
"""Begins the names of measures that are functions of the user's own."""
BY_CLAIMS = frozenset({"ClaimRecall", "ClaimPrecision"})
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
    def own(self) -> bool:
        """Whether it is a function of the user's own."""
        return self.name.startswith(OWN)

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value of a measure of one's own."""
        low, high = self.get("low"), self.get("high")
        return 0.0 if low is None else float(low), 1.0 if high is None else float(high)

    @property
    def claimed(self) -> bool:
        """Whether it is measured by the claims of reference answers, and not by labels of documents."""
        return self.name in BY_CLAIMS or self.get("by") == "claims"


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
    if not NAME.fullmatch(name):
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
        f"{OWN}{name}" + (f"({', '.join(limits)})" if limits else ""),
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


Truth = bool | None


def any_of(values: Iterable[Truth]) -> Truth:
    """Whether one of the values is true: unknown where none is true and one is unknown; false for no values.

    >>> any_of([None, True]), any_of([None, False]), any_of([])
    (True, None, False)
    """
    answer: Truth = False
    for value in values:
        if value:
            return True
        if value is None:
            answer = None
    return answer


def both(first: Truth, second: Truth) -> Truth:
    """Whether both are true: false where one is false, else unknown where one is unknown.

    >>> both(None, False), both(None, True), both(True, True)
    (False, None, True)
    """
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def negated(value: Truth) -> Truth:
    """The opposite; unknown stays unknown.

    >>> negated(None), negated(False)
    (None, True)
    """
    return None if value is None else not value


def share(values: Sequence[Truth]) -> float | None:
    """The share of true values: undefined (None) for no values, and where one of them is unknown.

    >>> share([True, False]), share([True, None]), share([])
    (0.5, None, None)
    """
    if not values or None in values:
        return None
    return sum(bool(value) for value in values) / len(values)


def rank_precision(values: Sequence[Truth], epsilon: float = 0.0) -> float | None:
    """The sum of the precision at each true value / (their number + epsilon): 0 without any, None where it is open.

    >>> rank_precision([True, False, True]) == (1 + 2 / 3) / 2, rank_precision([None]), rank_precision([True, None])
    (True, None, 1.0)
    """
    if (
        None in values
    ):  # open unless both verdicts come to the same; two that do not settle it at once
        place = list(values).index(None)
        untrue = rank_precision([*values[:place], False, *values[place + 1 :]], epsilon)
        true = (
            None
            if untrue is None
            else rank_precision([*values[:place], True, *values[place + 1 :]], epsilon)
        )
        return (
            None
            if untrue is None or true is None or not math.isclose(untrue, true)
            else untrue
        )
    hits, total = 0, 0.0
    for rank, one in enumerate(values, start=1):
        hits += bool(one)
        total += hits / rank if one else 0.0
    return total / (hits + epsilon) if hits else 0.0


class Claimed(NamedTuple):
    """The claims of one query's reference answer, and which documents entail them."""

    claims: tuple[str, ...]
    entailed_by: Mapping[str, tuple[Truth, ...]]
    """Document id -> for each claim, whether the document entails it; a document that is absent was not judged."""


NONE = Claimed((), {})
"""A query without claims."""


def claim_value(measure: Measure, claimed: Claimed, ranking: Sequence[str]) -> float:
    """Score one ranking by the claims of its query's reference answer.

    ClaimRecall@k: claims that any of the first k documents entails / claims (RAGChecker's claim recall).
    ClaimPrecision@k: documents among the first k that entail any claim / documents among the first k that came back
    (RAGChecker's context precision). ContextPrecision(by='claims')@k: the mean of the precision at each document that
    entails a claim, divided by their number (RAGAS' rank-aware form, without its 1e-10), 0 where none does.

    Range 0 to 1. Undefined (NaN) for a query without claims; where an unknown verdict leaves the value open; for
    ClaimPrecision also where nothing came back. An empty ranking recalls nothing: 0.

    Args:
        measure: one of the three.
        claimed: the claims and the verdicts.
        ranking: document ids, best first.

    >>> from harness.measures import parse
    >>> fee = Claimed(("monthly", "in advance"), {"a": (True, False), "b": (False, False)})
    >>> claim_value(parse("ClaimRecall@2"), fee, ["b", "a"]), claim_value(parse("ClaimPrecision@2"), fee, ["b", "a"])
    (0.5, 0.5)
    >>> claim_value(parse("ClaimRecall@1"), fee, ["unjudged"])
    nan
    """
    if not claimed.claims:
        return math.nan
    unknown: tuple[Truth, ...] = (None,) * len(claimed.claims)
    rows = [
        claimed.entailed_by.get(document, unknown)
        for document in ranking[: measure.cutoff]
    ]
    if measure.name == "ClaimRecall":
        return _defined(
            share([any_of(row[i] for row in rows) for i in range(len(claimed.claims))])
        )
    useful = [any_of(row) for row in rows]
    if measure.name == "ClaimPrecision":
        return _defined(share(useful))
    return _defined(rank_precision(useful))


def _defined(value: float | None) -> float:
    return math.nan if value is None else value
