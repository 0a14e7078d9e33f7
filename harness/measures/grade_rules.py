"""Grade rules, from lists of documents to grades.

Groups have two readings, which differ on purpose. `groups='autorag'` gives AutoRAG's own digits: a second alternative
is a further hit, and its nDCG wants every alternative, which its recall does not. `groups='first'` is ours: one member
satisfies a group, and further members are passed over as if they were not in the list.
"""

from collections.abc import Iterable
from typing import Literal

from retrievers.errors import InputError, Problem

Gain = Literal["linear", "exponential"]

RECIPROCAL_TOP_GRADE = 2520
"""The grade of the best document under `reciprocal`: divisible by every place down to the tenth."""
MAX_UNWARNED_GRADE, MAX_EXPONENTIAL_GRADE = 5, 30
"""Exponential gain: above the first grade a warning, above the second an error."""


class GradeBuckets(tuple[tuple[int, int], ...]):
    """A grade rule: pairs (last place, grade), best first; documents further down get grade 0.

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
    """Grade an ordered list of relevant documents by their places.

    Of n documents (repetitions taken out first), `linear` gives n, n-1, …, 1; `binary` gives 1 to each;
    `reciprocal` gives round(2520 / place), at least 1; `Buckets` give what they declare.

    Raises:
        InputError: its buckets are out of order.

    >>> grade_documents(["b", "a", "b", "c"], "linear")
    {'b': 3, 'a': 2, 'c': 1}
    """
    documents = list(dict.fromkeys(documents_best_first))
    n = len(documents)
    if isinstance(rule, GradeBuckets):
        grades = _bucket_grades(rule, n)
    elif rule == "linear":
        grades = list(range(n, 0, -1))
    elif rule == "binary":
        grades = [1] * n
    else:
        grades = [
            max(1, round(RECIPROCAL_TOP_GRADE / place)) for place in range(1, n + 1)
        ]
    return dict(zip(documents, grades, strict=True))


def gain_of(grade: int, gain: Gain) -> int:
    """The gain of a grade: the grade, or 2^grade - 1; 0 for a negative grade.

    >>> gain_of(3, "linear"), gain_of(3, "exponential"), gain_of(-1, "linear")
    (3, 7, 0)
    """
    up = max(grade, 0)
    return 2**up - 1 if gain == "exponential" else up


def gain_warning(rule: str, largest: int, gain: Gain) -> str:
    """Return what to tell about grades of up to `largest` under a gain; "" where there is nothing to tell.

    Args:
        rule: the grade rule as the experiment names it, for the message.
        largest: the largest grade.
        gain: "linear" or "exponential".

    Raises:
        InputError: exponential gain with `reciprocal`, or with a grade above 30.

    >>> gain_warning("linear", 10, "linear")
    ''
    >>> gain_warning("linear", 10, "exponential")
    "grades = 'linear' reaches 10: with exponential gain the best document decides almost alone"
    """
    if gain == "linear" or (largest <= MAX_UNWARNED_GRADE and rule != "reciprocal"):
        return ""
    remedy = 'use gain = "linear", or grades = "explicit" or buckets with few levels'
    if rule == "reciprocal":
        raise InputError(
            Problem(
                "[relevance]",
                "grades = 'reciprocal' goes with linear gain only",
                remedy,
            )
        )
    if largest > MAX_EXPONENTIAL_GRADE:
        what = f"grades = {rule!r} reaches {largest}: exponential gain is limited to grade {MAX_EXPONENTIAL_GRADE}"
        raise InputError(Problem("[relevance]", what, remedy))
    return f"grades = {rule!r} reaches {largest}: with exponential gain the best document decides almost alone"


def _bucket_grades(buckets: GradeBuckets, n: int) -> list[int]:
    places, grades = [up_to for up_to, _ in buckets], [g for _, g in buckets]
    falls = grades == sorted(set(grades), reverse=True) and places == sorted(
        set(places)
    )
    if not buckets or not falls or places[0] < 1 or grades[-1] < 0:
        what = f"{list(buckets)}: last places must rise from 1 and grades must fall, none below 0"
        raise InputError(
            Problem("grades: buckets", what, "for example [[1, 3], [3, 2], [10, 1]]")
        )
    listed = [
        g
        for (up_to, g), start in zip(buckets, [0, *places], strict=False)
        for _ in range(up_to - start)
    ]
    return (listed + [0] * n)[:n]
