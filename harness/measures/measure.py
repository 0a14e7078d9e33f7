"""A measure as a value, named or written by the user."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from retrievers.errors import InputError, Problem
from retrievers.options.user_code import NamedObject

Parameter = str | int | float
OWN_PREFIX = "own."
"""Prefix of the names of measures that are functions of the user."""
CLAIM_MEASURES = frozenset({"ClaimRecall", "ClaimPrecision"})
"""Measures that are defined only for claims, and use no labels."""
SPAN_MEASURE = "IoU"
"""The measure that is defined only for labelled spans."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure's name, cutoff and parameters, in the grammar of ir_measures.

    `str()` is canonical: parameters with their default are left out, the others are in
    alphabetical order. `parse_measure` creates and checks it.

    >>> str(Measure("nDCG", 10, (("dcg", "exp-log2"), ("ideal", "retrieved"))))
    "nDCG(dcg='exp-log2', ideal='retrieved')@10"
    """

    name: str
    """A name in `MEASURES`, or own.NAME for a function of the user."""
    cutoff: int | None = None
    """How many of the first hits count; None for all that were stored."""
    params: tuple[tuple[str, Parameter], ...] = ()
    """Name and value of each parameter that does not have its default."""
    function: object = field(default=None, compare=False, repr=False)
    """The `OwnFunction` of a user's measure; None for ours, or in another process."""

    def __str__(self) -> str:
        text = self.name
        if self.params:
            arguments = [f"{key}={value!r}" for key, value in self.params]
            text += f"({', '.join(arguments)})"
        if self.cutoff is not None:
            text += f"@{self.cutoff}"
        return text

    def get(self, key: str) -> Parameter | None:
        """The parameter `key`; None if it has its default, or there is no such one."""
        return dict(self.params).get(key)

    @property
    def rel(self) -> int:
        """The smallest grade that counts as relevant."""
        return int(self.get("rel") or 1)

    @property
    def is_own(self) -> bool:
        """Whether it is a function of the user."""
        return self.name.startswith(OWN_PREFIX)

    @property
    def value_limits(self) -> tuple[float, float]:
        """The least and the largest value of the user's own measure; else 0 and 1."""
        low = self.get("low")
        high = self.get("high")
        return 0.0 if low is None else float(low), 1.0 if high is None else float(high)

    @property
    def uses_claims(self) -> bool:
        """Whether it uses claims of reference answers instead of labels."""
        return self.name in CLAIM_MEASURES or self.get("by") == "claims"

    @property
    def tokens(self) -> int | None:
        """The most tokens of passages that count; None without such a limit."""
        tokens = self.get("tokens")
        return None if tokens is None else int(tokens)

    @property
    def uses_spans(self) -> bool:
        """Whether it counts characters of labelled spans."""
        return self.name == SPAN_MEASURE or self.get("unit") == "chars"

    @property
    def uses_passages(self) -> bool:
        """Whether it reads passages, before they are collapsed to documents."""
        return self.uses_spans or self.tokens is not None


OWN_NAME_PATTERN = re.compile(r"[A-Za-z]\w{0,63}")
"""The name of a user's own measure, without its prefix."""


class OwnFunction(NamedTuple):
    """The function of a user's own measure, with the limits of its values."""

    function: Callable[[Mapping[str, int], Sequence[str]], float]
    low: float
    high: float


def measure(
    name: str,
    function: Callable[[Mapping[str, int], Sequence[str]], float],
    range: tuple[float, float] = (0, 1),
) -> str:
    """Return a measure of your own, to use among `measures` and test like any other.

    Args:
        name: a letter from A to Z, then letters, digits and underscores; results call
            it own.NAME.
        function: of {document: grade} of a query, and its ranking, ids best first. It
            is called for neither an empty ranking, which gets the least value, nor a
            query without labels, whose value is undefined if anything was ranked.
        range: the least value and the largest.

    Raises:
        InputError: the name or the range is invalid.

    >>> measure("first", lambda grades, ranking: float(grades.get(ranking[0], 0) > 0))
    'own.first'
    """
    if not OWN_NAME_PATTERN.fullmatch(name):
        problem = f"{name!r} is not a name of a measure"
        remedy = "a letter from A to Z, then letters, digits and underscores"
        raise InputError(Problem("name", problem, remedy))
    low, high = _value_range(range)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        remedy = "the least value and the largest: (0, 1)"
        raise InputError(Problem("range", f"{range} is not a range", remedy))
    limits: list[str] = []
    if high != 1:
        limits.append(f"high={high}")
    if low != 0:
        limits.append(f"low={low}")
    full_name = f"{OWN_PREFIX}{name}"
    if limits:
        full_name += f"({', '.join(limits)})"
    return NamedObject(full_name, OwnFunction(function, low, high))


def _value_range(range: tuple[float, float]) -> tuple[float, float]:
    """Return two numbers; not a number (NaN) twice for anything else."""
    try:
        low, high = map(float, range)
    except (TypeError, ValueError):
        return math.nan, math.nan
    return low, high


def own_value(
    measure: Measure, judged: Mapping[str, int], ranking: Sequence[str], query: str = ""
) -> float:
    """Score one ranking by a measure of the user's own.

    The least value for an empty ranking; else NaN if nothing is judged.

    Args:
        measure: with the user's function.
        judged: document id -> grade.
        ranking: document ids, best first.
        query: its id, for a message; "" if unknown.

    Raises:
        InputError: its function is not in this process, failed, or returned a number
            outside its range.
    """
    where = f"measure {str(measure)!r}"
    own_function = measure.function
    if not isinstance(own_function, OwnFunction):
        problem = "is a Python function, which only its own process has"
        remedy = "pass the measure itself (primary=own), or name other measures"
        raise InputError(Problem(where, problem, remedy))
    if not ranking:
        return own_function.low
    if not judged:
        return math.nan
    if query:
        where = f"{where}, query {query!r}"
    try:
        score = float(own_function.function(judged, list(ranking[: measure.cutoff])))
    except Exception as failure:
        problem = f"failed: {type(failure).__name__}: {failure}"
        raise InputError(Problem(where, problem)) from failure
    if not own_function.low <= score <= own_function.high:
        limits = f"{own_function.low:g} and {own_function.high:g}"
        problem = f"gave {score}, which is not between {limits}"
        raise InputError(Problem(where, problem, "say its range"))
    return score
