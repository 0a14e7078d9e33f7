"""One ranking scored by groups of alternatives."""

import math
from collections.abc import Sequence
from itertools import chain

from harness.measures.measure import Measure

AlternativeGroups = Sequence[Sequence[str]]


def group_value(
    measure: Measure, groups: AlternativeGroups, ranking: Sequence[str]
) -> float:
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

    >>> from harness.measures import parse_measure
    >>> article = [["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"]
    >>> group_value(parse_measure("nDCG(groups='autorag')@4"), *article)
    0.7039180890341347
    >>> group_value(parse_measure("AP(groups='first')@4"), *article)
    0.5
    """
    top = list(ranking[: measure.cutoff])
    if not top or not any(groups):
        return 0.0
    return (_autorag if measure.get("groups") == "autorag" else _first)(
        measure, groups, top
    )


def _first(measure: Measure, groups: AlternativeGroups, top: Sequence[str]) -> float:
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


def _autorag(measure: Measure, groups: AlternativeGroups, top: Sequence[str]) -> float:
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
