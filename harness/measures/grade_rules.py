"""Grade rules, from lists of documents to grades."""

from collections.abc import Iterable
from typing import Literal

from retrievers.errors import InputError, Problem

Gain = Literal["linear", "exponential"]

RECIPROCAL_TOP_GRADE = 2520
"""The grade of the best document under `reciprocal`: divisible by 1 to 10."""
MAX_UNWARNED_GRADE = 5
"""Grade above which exponential gain has a warning."""
MAX_EXPONENTIAL_GRADE = 30
"""Grade above which exponential gain is an error."""


class GradeBuckets(tuple[tuple[int, int], ...]):
    """A grade rule: pairs (last rank, grade), best first; later documents get grade 0.

    >>> grade_documents("abcd", GradeBuckets([(1, 3), (3, 1)]))
    {'a': 3, 'b': 1, 'c': 1, 'd': 0}
    """

    __slots__ = ()


NamedRule = Literal["linear", "binary", "reciprocal"]
GradingRule = NamedRule | GradeBuckets
NAMED_RULES: tuple[NamedRule, ...] = ("linear", "binary", "reciprocal")


def grade_documents(
    documents_best_first: Iterable[str], rule: GradingRule
) -> dict[str, int]:
    """Grade an ordered list of relevant documents by their ranks.

    Of n documents (without repetitions), `linear` gives n, n-1, …, 1; `binary` gives 1
    to each; `reciprocal` gives round(2520 / rank), at least 1; `GradeBuckets` give what
    they declare.

    Raises:
        InputError: the buckets are not in order: see `_are_in_order`.

    >>> grade_documents(["b", "a", "b", "c"], "linear")
    {'b': 3, 'a': 2, 'c': 1}
    """
    documents = list(dict.fromkeys(documents_best_first))
    grades = _grades_by_rank(rule, len(documents))
    return dict(zip(documents, grades, strict=True))


def _grades_by_rank(rule: GradingRule, n: int) -> list[int]:
    """Return the grades of n documents, best first."""
    if isinstance(rule, GradeBuckets):
        return _bucket_grades(rule, n)
    if rule == "linear":
        return list(range(n, 0, -1))
    if rule == "binary":
        return [1] * n
    return [max(1, round(RECIPROCAL_TOP_GRADE / rank)) for rank in range(1, n + 1)]


def _bucket_grades(buckets: GradeBuckets, n: int) -> list[int]:
    if not _are_in_order(buckets):
        requirement = "last places must rise from 1 and grades must fall, none below 0"
        remedy = "for example [[1, 3], [3, 2], [10, 1]]"
        problem = Problem("grades: buckets", f"{list(buckets)}: {requirement}", remedy)
        raise InputError(problem)
    grades: list[int] = []
    for last_rank, grade in buckets:
        grades += [grade] * (min(last_rank, n) - len(grades))
    return grades + [0] * (n - len(grades))


def _are_in_order(buckets: GradeBuckets) -> bool:
    """Whether last ranks rise from 1 on and grades fall, none below 0; not if empty."""
    if not buckets or buckets[0][0] < 1 or buckets[-1][1] < 0:
        return False
    last_ranks = [last_rank for last_rank, _ in buckets]
    grades = [grade for _, grade in buckets]
    if last_ranks != sorted(set(last_ranks)):
        return False
    return grades == sorted(set(grades), reverse=True)


def gain_of(grade: int, gain: Gain) -> int:
    """The gain of a grade: the grade, or 2^grade - 1; 0 for a negative grade.

    >>> gain_of(3, "linear"), gain_of(3, "exponential"), gain_of(-1, "linear")
    (3, 7, 0)
    """
    positive_grade = max(grade, 0)
    return 2**positive_grade - 1 if gain == "exponential" else positive_grade


def gain_warning(rule: str, largest: int, gain: Gain) -> str:
    """Return the warning about grades of up to `largest` under a gain; "" for none.

    Args:
        rule: the grade rule as the experiment names it, for the message.
        largest: the largest grade.
        gain: "linear" or "exponential".

    Raises:
        InputError: exponential gain with `reciprocal`, or with a grade above 30.

    >>> gain_warning("linear", 10, "linear")
    ''
    >>> gain_warning("linear", 10, "exponential").partition(": ")[2]
    'with exponential gain the best document decides almost alone'
    """
    if gain == "linear" or (largest <= MAX_UNWARNED_GRADE and rule != "reciprocal"):
        return ""
    remedy = 'use gain = "linear"'
    if rule != "explicit":
        remedy += ', or grades = "explicit" or buckets with few levels'
    if rule == "reciprocal":
        problem = "grades = 'reciprocal' goes with linear gain only"
        raise InputError(Problem("[relevance]", problem, remedy))
    reached = f"grades = {rule!r} reaches {largest}"
    if largest > MAX_EXPONENTIAL_GRADE:
        limit = f"exponential gain is limited to grade {MAX_EXPONENTIAL_GRADE}"
        raise InputError(Problem("[relevance]", f"{reached}: {limit}", remedy))
    return f"{reached}: with exponential gain the best document decides almost alone"
