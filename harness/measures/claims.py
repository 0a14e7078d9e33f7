"""Measures by the claims of reference answers."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.measures.measure import Measure

Truth = bool | None
"""A verdict; None if it is unknown."""


def any_true(verdicts: Iterable[Truth]) -> Truth:
    """Whether any verdict is true; false without verdicts.

    Unknown if none is true and one is unknown.

    >>> any_true([None, True]), any_true([None, False]), any_true([])
    (True, None, False)
    """
    has_unknown = False
    for verdict in verdicts:
        if verdict:
            return True
        if verdict is None:
            has_unknown = True
    return None if has_unknown else False


def both_true(first: Truth, second: Truth) -> Truth:
    """Whether both are true: false if one is false, else unknown if one is unknown.

    >>> both_true(None, False), both_true(None, True), both_true(True, True)
    (False, None, True)
    """
    if first is False or second is False:
        return False
    if first is None or second is None:
        return None
    return True


def not_true(verdict: Truth) -> Truth:
    """The opposite; unknown stays unknown.

    >>> not_true(None), not_true(False)
    (None, True)
    """
    return None if verdict is None else not verdict


def true_share(verdicts: Sequence[Truth]) -> float | None:
    """The share of true verdicts; None without verdicts, or if one is unknown.

    >>> true_share([True, False]), true_share([True, None]), true_share([])
    (0.5, None, None)
    """
    if not verdicts or None in verdicts:
        return None
    return sum(bool(verdict) for verdict in verdicts) / len(verdicts)


def rank_precision(verdicts: Sequence[Truth], epsilon: float = 0.0) -> float | None:
    """The sum of the precision at each true verdict / (their number + epsilon).

    0 without any, None if unknown verdicts make a difference. RAGAS's epsilon is 1e-10.

    >>> rank_precision([True, False, True]) == (1 + 2 / 3) / 2
    True
    >>> rank_precision([None]), rank_precision([True, None])
    (None, 1.0)
    """
    if None in verdicts:
        return _precision_with_unknown(verdicts, epsilon)
    hits = 0
    total = 0.0
    for rank, verdict in enumerate(verdicts, start=1):
        if verdict:
            hits += 1
            total += hits / rank
    return total / (hits + epsilon) if hits else 0.0


def _precision_with_unknown(verdicts: Sequence[Truth], epsilon: float) -> float | None:
    """Return the precision; None if an unknown verdict makes a difference."""
    index = list(verdicts).index(None)
    before = verdicts[:index]
    after = verdicts[index + 1 :]
    if_false = rank_precision([*before, False, *after], epsilon)
    if if_false is None:
        return None
    if_true = rank_precision([*before, True, *after], epsilon)
    if if_true is None or not math.isclose(if_false, if_true):
        return None
    return if_false


class QueryClaims(NamedTuple):
    """The claims of one query's reference answer, and which documents entail them."""

    claims: tuple[str, ...]
    entailed_by: Mapping[str, tuple[Truth, ...]]
    """Document id -> for each claim, whether the document entails it.

    A document that is absent was not judged.
    """


NO_CLAIMS = QueryClaims((), {})
"""A query without claims."""


def claim_value(
    measure: Measure, claimed: QueryClaims, ranking: Sequence[str]
) -> float:
    """Score one ranking by the claims of its query's reference answer.

    ClaimRecall@k: claims that any of the first k documents entails / claims
    (RAGChecker's claim recall). ClaimPrecision@k: documents among the first k that
    entail any claim / documents among the first k that were returned (RAGChecker's
    context precision). ContextPrecision(by='claims')@k: the mean of the precisions at
    the documents that entail a claim (RAGAS' rank-aware form, without its 1e-10), 0 if
    none does.

    Range 0 to 1. Undefined (NaN) for a query without claims; if an unknown verdict
    makes a difference; for ClaimPrecision also if nothing was returned. An empty
    ranking recalls nothing: 0.

    Args:
        measure: one of the three.
        claimed: the claims and the verdicts.
        ranking: document ids, best first.

    >>> from harness.measures import parse_measure
    >>> fee = QueryClaims(
    ...     ("monthly", "in advance"), {"a": (True, False), "b": (False, False)}
    ... )
    >>> claim_value(parse_measure("ClaimRecall@2"), fee, ["b", "a"])
    0.5
    >>> claim_value(parse_measure("ClaimPrecision@2"), fee, ["b", "a"])
    0.5
    >>> claim_value(parse_measure("ClaimRecall@1"), fee, ["unjudged"])
    nan
    """
    if not claimed.claims:
        return math.nan
    unjudged: tuple[Truth, ...] = (None,) * len(claimed.claims)
    top = ranking[: measure.cutoff]
    verdicts = [claimed.entailed_by.get(document, unjudged) for document in top]
    if measure.name == "ClaimRecall":
        claims = range(len(claimed.claims))
        share = true_share([_is_recalled(claim, verdicts) for claim in claims])
    else:
        useful = [any_true(row) for row in verdicts]
        is_set_measure = measure.name == "ClaimPrecision"
        share = true_share(useful) if is_set_measure else rank_precision(useful)
    return math.nan if share is None else share


def _is_recalled(claim: int, verdicts: Sequence[tuple[Truth, ...]]) -> Truth:
    """Return whether any of the top documents entails a claim."""
    return any_true(row[claim] for row in verdicts)
