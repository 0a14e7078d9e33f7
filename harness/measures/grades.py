"""From a list of relevant documents, or groups of alternatives (AutoRAG's `retrieval_gt`), to grades and gains.

Groups have two readings, which differ on purpose. `groups='autorag'` gives AutoRAG's own digits: a second alternative
is a further hit, and its nDCG wants every alternative, which its recall does not. `groups='first'` is ours: one member
satisfies a group, and further members are passed over as if they were not in the list.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal

from harness.measures.measure import Measure
from retrievers.errors import InputError, Problem

Gain = Literal["linear", "exponential"]

DIVISIBLE = 2520
"""The grade of the best document under `reciprocal`: divisible by every place down to the tenth."""
STEEP, STEEPEST = 5, 30
"""Exponential gain: above the first grade a warning, above the second an error."""


class Buckets(tuple[tuple[int, int], ...]):
    """A grade rule: pairs (last place, grade), best first; documents further down get grade 0.

    >>> grade("abcd", Buckets([(1, 3), (3, 1)]))
    {'a': 3, 'b': 1, 'c': 1, 'd': 0}
    """

    __slots__ = ()


Named = Literal["linear", "binary", "reciprocal"]
Rule = Named | Buckets
RULES: tuple[Named, ...] = ("linear", "binary", "reciprocal")


def grade(documents_best_first: Iterable[str], rule: Rule) -> dict[str, int]:
    """Grade an ordered list of relevant documents by their places.

    Of n documents (repetitions taken out first), `linear` gives n, n-1, …, 1; `binary` gives 1 to each;
    `reciprocal` gives round(2520 / place), at least 1; `Buckets` give what they declare.

    Raises:
        InputError: its buckets are out of order.

    >>> grade(["b", "a", "b", "c"], "linear")
    {'b': 3, 'a': 2, 'c': 1}
    """
    documents = list(dict.fromkeys(documents_best_first))
    n = len(documents)
    if isinstance(rule, Buckets):
        grades = _bucket_grades(rule, n)
    elif rule == "linear":
        grades = list(range(n, 0, -1))
    elif rule == "binary":
        grades = [1] * n
    else:
        grades = [max(1, round(DIVISIBLE / place)) for place in range(1, n + 1)]
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
    if gain == "linear" or (largest <= STEEP and rule != "reciprocal"):
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
    if largest > STEEPEST:
        what = f"grades = {rule!r} reaches {largest}: exponential gain is limited to grade {STEEPEST}"
        raise InputError(Problem("[relevance]", what, remedy))
    return f"grades = {rule!r} reaches {largest}: with exponential gain the best document decides almost alone"


def _bucket_grades(buckets: Buckets, n: int) -> list[int]:
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


Groups = Sequence[Sequence[str]]


def group_value(measure: Measure, groups: Groups, ranking: Sequence[str]) -> float:
    """Score one ranking against groups of alternatives.

    P, R, F1, RR, AP and nDCG, and the set forms SetP, SetR, SetF. Range 0 to 1. Ties: trec_eval's order. Documents
    in no group: not relevant. An empty list or no groups: 0.

    groups='autorag': P = distinct members of any group / returned (short lists by their own length); R = groups met
    / groups; F1 of the two; RR = mean over groups of 1 / rank of the group's first member; AP = mean over groups of
    the precisions at its members / members found; nDCG = gain 1 a member, its ideal one member a rank for every
    alternative, down to the end of the list. Source: AutoRAG, autorag/evaluation/metric/retrieval.py.

    groups='first': a member of a group not yet met is a hit with gain 1 (a document in several groups meets them
    all); further members of met groups count neither for nor against: those behind them move up. P@k = hits / k
    (SetP: / what is left of the list), R = groups met / groups, F1 of hits as ever, RR = 1 / rank of the first
    hit, AP = sum of P@i over the groups met / groups, nDCG's ideal one hit a rank for every group. Where one
    document meets several groups, nDCG stays below 1.

    Args:
        measure: one with the parameter `groups`.
        groups: the alternatives of one query.
        ranking: document ids, best first.

    >>> from harness.measures import parse
    >>> article = [["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"]
    >>> group_value(parse("nDCG(groups='autorag')@4"), *article)
    0.7039180890341347
    >>> group_value(parse("AP(groups='first')@4"), *article)
    0.5
    """
    top = list(ranking[: measure.cutoff])
    if not top or not any(groups):
        return 0.0
    return (_autorag if measure.get("groups") == "autorag" else _first)(
        measure, groups, top
    )


def _first(measure: Measure, groups: Groups, top: Sequence[str]) -> float:
    """The reading in which the first member of a group is the hit and the others are passed over."""
    unmet = [frozenset(group) for group in groups]
    met: list[int] = []
    """How many groups each document met, of those that are not passed over."""
    for document in top:
        left = [group for group in unmet if document not in group]
        if len(left) < len(unmet) or not any(document in group for group in groups):
            met.append(len(unmet) - len(left))
        unmet = left
    hits = [new > 0 for new in met]
    wanted = len(groups)
    size = (
        measure.cutoff
        if measure.cutoff and not measure.name.startswith("Set")
        else len(met)
    )
    match measure.name.removeprefix("Set"):
        case "P":
            return sum(hits) / size
        case "R":
            return sum(met) / wanted
        case "F" | "F1":
            return 2 * sum(hits) / (size + wanted)
        case "RR":
            return next(
                (1 / rank for rank, hit in enumerate(hits, start=1) if hit), 0.0
            )
        case "AP":
            return (
                math.fsum(
                    new * sum(hits[:rank]) / rank
                    for rank, new in enumerate(met, start=1)
                )
                / wanted
            )
        case _:
            return _dcg(hits) / _dcg([True] * min(wanted, measure.cutoff or wanted))


def _autorag(measure: Measure, groups: Groups, top: Sequence[str]) -> float:
    """AutoRAG's reading, in which every member of a group is a hit."""
    members = set(chain.from_iterable(groups))
    ranks = (
        [rank for rank, document in enumerate(top, start=1) if document in group]
        for group in groups
    )
    met = [of_group for of_group in ranks if of_group]
    wanted = len(groups)
    p, r = len(set(top) & members) / len(top), len(met) / wanted
    match measure.name.removeprefix("Set"):
        case "P":
            return p
        case "R":
            return r
        case "F" | "F1":
            return 2 * p * r / (p + r) if p + r else 0.0
        case "RR":
            return sum(1 / of_group[0] for of_group in met) / wanted
        case "AP":
            return (
                sum(
                    sum(i / rank for i, rank in enumerate(g, start=1)) / len(g)
                    for g in met
                )
                / wanted
            )
        case _:
            hits = [document in members for document in top]
            return _dcg(hits) / _dcg([True] * min(sum(map(len, groups)), len(top)))


def _dcg(hits: Sequence[bool]) -> float:
    return sum(1 / math.log2(rank + 1) for rank, hit in enumerate(hits, start=1) if hit)
