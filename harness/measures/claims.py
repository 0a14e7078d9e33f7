"""Measures by the claims of reference answers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.measures.measure import Measure

Truth = bool | None


def any_true(values: Iterable[Truth]) -> Truth:
    """Whether one of the values is true: unknown where none is true and one is unknown; false for no values.

    >>> any_true([None, True]), any_true([None, False]), any_true([])
    (True, None, False)
    """
    answer: Truth = False
    for value in values:
        if value:
            return True
        if value is None:
            answer = None
    return answer


def both_true(first: Truth, second: Truth) -> Truth:
    """Whether both are true: false where one is false, else unknown where one is unknown.

    >>> both_true(None, False), both_true(None, True), both_true(True, True)
    (False, None, True)
    """
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def not_true(value: Truth) -> Truth:
    """The opposite; unknown stays unknown.

    >>> not_true(None), not_true(False)
    (None, True)
    """
    return None if value is None else not value


def true_share(values: Sequence[Truth]) -> float | None:
    """The share of true values: undefined (None) for no values, and where one of them is unknown.

    >>> true_share([True, False]), true_share([True, None]), true_share([])
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


class QueryClaims(NamedTuple):
    """The claims of one query's reference answer, and which documents entail them."""

    claims: tuple[str, ...]
    entailed_by: Mapping[str, tuple[Truth, ...]]
    """Document id -> for each claim, whether the document entails it; a document that is absent was not judged."""


NO_CLAIMS = QueryClaims((), {})
"""A query without claims."""


def claim_value(
    measure: Measure, claimed: QueryClaims, ranking: Sequence[str]
) -> float:
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

    >>> from harness.measures import parse_measure
    >>> fee = QueryClaims(("monthly", "in advance"), {"a": (True, False), "b": (False, False)})
    >>> claim_value(parse_measure("ClaimRecall@2"), fee, ["b", "a"]), claim_value(parse_measure("ClaimPrecision@2"), fee, ["b", "a"])
    (0.5, 0.5)
    >>> claim_value(parse_measure("ClaimRecall@1"), fee, ["unjudged"])
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
            true_share(
                [any_true(row[i] for row in rows) for i in range(len(claimed.claims))]
            )
        )
    useful = [any_true(row) for row in rows]
    if measure.name == "ClaimPrecision":
        return _defined(true_share(useful))
    return _defined(rank_precision(useful))


def _defined(value: float | None) -> float:
    return math.nan if value is None else value
