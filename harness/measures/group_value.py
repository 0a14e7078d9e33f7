"""One ranking scored by groups of alternatives.

Groups have two readings, which differ on purpose. `groups='autorag'` gives AutoRAG's
own digits: a second alternative is another hit, and its nDCG requires every
alternative, which its recall does not. `groups='first'` is ours: one member satisfies a
group, and further members are ignored, though they fill places within the cutoff.
"""

import math
from collections.abc import Sequence
from itertools import chain

from harness.measures.measure import Measure

AlternativeGroups = Sequence[Sequence[str]]


def group_value(
    measure: Measure, groups: AlternativeGroups, ranking: Sequence[str]
) -> float:
    """Score one ranking against groups of alternatives.

    P, R, F1, RR, AP and nDCG, and the set forms SetP, SetR, SetF. Range 0 to 1. Ties:
    trec_eval's order. Documents in no group: not relevant. An empty list or no groups:
    0.

    groups='autorag': P = distinct members of any group / returned (short lists by their
    own length); R = groups met / groups; F1 of the two; RR = mean over groups of
    1 / rank of the group's first member; AP = mean over groups of the precisions at its
    members / members in the list; nDCG = gain 1 for each member, its ideal one member
    at each rank for every alternative, down to the end of the list. Source: AutoRAG,
    autorag/evaluation/metric/retrieval.py.

    groups='first': a member of a group not yet met is a hit with gain 1 (a document in
    several groups meets them all); further members of met groups count neither for nor
    against: those behind them move up, but none from below the cutoff. P@k = hits / k
    (SetP: / what is left of the list), R = groups met / groups, F1 of hits as ever, RR
    = 1 / rank of the first hit, AP = sum of P@i over the groups met / groups, nDCG's
    ideal one hit at each rank for every group. If one document meets several groups,
    nDCG stays below 1.

    Args:
        measure: one with the parameter `groups`.
        groups: the alternatives of one query.
        ranking: document ids, best first.

    >>> from harness.measures import parse_measure
    >>> groups = [["test-1", "test-2"], ["test-3"]]
    >>> ranking = ["test-1", "pred-1", "test-2", "pred-3"]
    >>> group_value(parse_measure("nDCG(groups='autorag')@4"), groups, ranking)
    0.7039180890341347
    >>> group_value(parse_measure("AP(groups='first')@4"), groups, ranking)
    0.5
    """
    top = list(ranking[: measure.cutoff])
    if not top or not any(groups):
        return 0.0
    if measure.get("groups") == "autorag":
        return _value_by_autorag(measure, groups, top)
    return _value_by_first_member(measure, groups, top)


def _value_by_first_member(
    measure: Measure, groups: AlternativeGroups, top: Sequence[str]
) -> float:
    """Return the value if the first member of a group is a hit, others are ignored."""
    met = _newly_met_groups(groups, top)
    hits = [new_groups > 0 for new_groups in met]
    size = len(met)
    if measure.cutoff and not measure.name.startswith("Set"):
        size = measure.cutoff
    match measure.name.removeprefix("Set"):
        case "P":
            return sum(hits) / size
        case "R":
            return sum(met) / len(groups)
        case "F" | "F1":
            return 2 * sum(hits) / (size + len(groups))
        case "RR":
            return 1 / (hits.index(True) + 1) if any(hits) else 0.0
        case "AP":
            precisions = [
                new_groups * sum(hits[:rank]) / rank
                for rank, new_groups in enumerate(met, start=1)
            ]
            return math.fsum(precisions) / len(groups)
        case _:
            ideal_hits = min(len(groups), measure.cutoff or len(groups))
            return _dcg(hits) / _dcg([True] * ideal_hits)


def _newly_met_groups(groups: AlternativeGroups, top: Sequence[str]) -> list[int]:
    """Return how many groups each document meets first.

    Documents that are only further members of met groups are left out.
    """
    unmet = [frozenset(group) for group in groups]
    met: list[int] = []
    for document in top:
        still_unmet = [group for group in unmet if document not in group]
        new_groups = len(unmet) - len(still_unmet)
        is_member = any(document in group for group in groups)
        if new_groups or not is_member:
            met.append(new_groups)
        unmet = still_unmet
    return met


def _value_by_autorag(
    measure: Measure, groups: AlternativeGroups, top: Sequence[str]
) -> float:
    """Return AutoRAG's value, with every member of a group as a hit."""
    members = set(chain.from_iterable(groups))
    met = _member_ranks(groups, top)
    p = len(set(top) & members) / len(top)
    recall = len(met) / len(groups)
    match measure.name.removeprefix("Set"):
        case "P":
            return p
        case "R":
            return recall
        case "F" | "F1":
            return 2 * p * recall / (p + recall) if p + recall else 0.0
        case "RR":
            return sum(1 / ranks[0] for ranks in met) / len(groups)
        case "AP":
            return sum(map(_precision_at_members, met)) / len(groups)
        case _:
            hits = [document in members for document in top]
            ideal_hits = min(sum(map(len, groups)), len(top))
            return _dcg(hits) / _dcg([True] * ideal_hits)


def _member_ranks(groups: AlternativeGroups, top: Sequence[str]) -> list[list[int]]:
    """Return the ranks of the members of each group that is met."""
    met: list[list[int]] = []
    for group in groups:
        ranks = [
            rank for rank, document in enumerate(top, start=1) if document in group
        ]
        if ranks:
            met.append(ranks)
    return met


def _precision_at_members(ranks: Sequence[int]) -> float:
    """Return the mean of the precisions at the ranks of one group's members."""
    return sum(i / rank for i, rank in enumerate(ranks, start=1)) / len(ranks)


def _dcg(hits: Sequence[bool]) -> float:
    return sum(1 / math.log2(rank + 1) for rank, hit in enumerate(hits, start=1) if hit)
