"""What a measure could be under other orders of documents with equal scores.

trec_eval breaks ties by document id, which is one order among many. Here are the worst, the best and the mean value
over all of them, each order of tied documents being equally likely (McSherry & Najork 2008).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations, product
from typing import Literal, NamedTuple

import numpy as np

from harness.measures.batch import UNJUDGED, Floats, Ints
from harness.measures.expected import Block, Case, expected
from harness.measures.groups import Groups
from harness.measures.measure import Measure
from harness.measures.scores import Judgments, Precision, groups_for, largest_grade

ENUMERABLE = 7
"""Up to so many tied documents, every order is tried where there is no closed form."""
ORDERS = 10_000
"""So many seeded orders are drawn where there are more."""

Method = Literal["none", "exact", "enumerated", "sampled"]


class TieRange(NamedTuple):
    """What one query's value could be."""

    query_id: str
    worst: float
    """The lowest value over the orders of tied documents (of the drawn ones where `method` is "sampled")."""
    best: float
    """The highest."""
    expected: float
    """The mean."""
    method: Method
    """"none": no order matters; "exact": in closed form; "enumerated": every order; "sampled": 10,000 of them."""


def tie_ranges(
    measure: Measure,
    judgments: Judgments,
    run: Mapping[str, Mapping[str, float]],
    *,
    groups: Mapping[str, Groups] | None = None,
    precision: Precision = "single",
    seed: int = 0,
) -> list[TieRange]:
    """Return the worst, best and expected value of each judged query over the orders of tied documents.

    In closed form, but for ERR, Bpref, measures with `groups=`, and nDCG(ideal='retrieved') where its cutoff splits
    a tie: those try every order of up to 7 tied documents, else draw 10,000.

    Args:
        measure: the measure.
        judgments: query id -> document id -> grade.
        run: query id -> document id -> score.
        groups: as in `score`, for a measure with `groups=`.
        precision: how scores are compared, as in `score_run`.
        seed: for the drawn orders.

    >>> from harness.measures import parse
    >>> tie_ranges(parse("P@1"), {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}})
    [TieRange(query_id='q', worst=0.0, best=1.0, expected=0.5, method='exact')]
    """
    largest = largest_grade([measure], judgments)
    members = groups_for(measure, judgments, groups) if measure.get("groups") else {}
    ranges = []
    for query_id, judged in judgments.items():
        ids, scores = _by_score(run.get(query_id, {}), np.float32 if precision == "single" else np.float64)
        case = Case(
            measure,
            ids,
            np.array([judged.get(d, UNJUDGED) for d in ids] or [UNJUDGED], dtype=np.int64),
            np.array(sorted(judged.values(), reverse=True) or [UNJUDGED], dtype=np.int64),
            largest,
            members.get(query_id, ()),
        )
        ranges.append(TieRange(query_id, *_range(case, _blocks(scores), f"{seed} ties {query_id}")))
    return ranges


def _range(case: Case, blocks: Sequence[Block], seed: str) -> tuple[float, float, float, Method]:
    measure = case.measure
    loose = [block for block in blocks if block[0] < case.cutoff and _matters(case, block)]
    if not loose:
        value = float(case.values(case.as_it_is()[None, :])[0])
        return value, value, value, "none"
    split = any(start < case.cutoff < end for start, end in loose)
    if measure.get("groups") or (measure.get("ideal") == "retrieved" and split):
        orders, method = _orders(case, loose, seed)
        values = case.values(orders)
        return float(values.min()), float(values.max()), float(values.mean()), method
    ends = case.values(_extremes(case, loose))
    if measure.name in {"ERR", "Bpref"}:
        orders, method = _orders(case, loose, seed)
        return float(ends.min()), float(ends.max()), float(case.values(orders).mean()), method
    return float(ends.min()), float(ends.max()), expected(case, blocks), "exact"


def _matters(case: Case, block: Block) -> bool:
    """Whether a measure can tell two orders of a block apart."""
    if case.measure.get("groups"):
        return block[1] - block[0] > 1
    return len(set(case.grades[slice(*block)].tolist())) > 1


def _extremes(case: Case, loose: Sequence[Block]) -> Ints:
    """Orders among which are the worst and the best: in each block the grades rise, or fall.

    No more is needed but for ContextPrecision, which a further hit can lower: there a block that the cutoff splits
    is tried with every number of hits above the cutoff.
    """
    orders = []
    for sign in (-1, 1):
        order = case.as_it_is()
        for start, end in loose:
            order[start:end] = start + np.argsort(sign * case.grades[start:end], kind="stable")
        orders.append(order)
        start, end = loose[-1]
        if case.measure.name == "ContextPrecision" and case.cutoff < end:
            inside = order[start:end]
            relevant = case.grades[inside] >= case.measure.rel
            hits, others, taken = inside[relevant], inside[~relevant], case.cutoff - start
            for x in range(max(0, taken - len(others)), min(taken, len(hits)) + 1):
                above = [hits[:x], others[: taken - x]][::-sign]
                orders.append(np.concatenate([order[:start], *above, hits[x:], others[taken - x :], order[end:]]))
    return np.array(orders)


def _orders(case: Case, loose: Sequence[Block], seed: str) -> tuple[Ints, Method]:
    """Every order of the tied documents where they are few, else 10,000 that are drawn."""
    if sum(end - start for start, end in loose) <= ENUMERABLE:
        choices = list(product(*(permutations(range(*block)) for block in loose)))
        orders = np.tile(case.as_it_is(), (len(choices), 1))
        for i, (start, end) in enumerate(loose):
            orders[:, start:end] = [choice[i] for choice in choices]
        return orders, "enumerated"
    digest = hashlib.sha256(seed.encode()).digest()
    random = np.random.Generator(np.random.PCG64(int.from_bytes(digest)))
    orders = np.tile(case.as_it_is(), (ORDERS, 1))
    for start, end in loose:
        orders[:, start:end] = random.permuted(orders[:, start:end], axis=1)
    return orders, "sampled"


def _by_score(hits: Mapping[str, float], kind: type[np.floating]) -> tuple[tuple[str, ...], Floats]:
    """Document ids in trec_eval's order, and their scores."""
    by_id = sorted(hits, reverse=True)
    with np.errstate(over="ignore"):
        scores = np.array([hits[d] for d in by_id], dtype=np.float64).astype(kind)
    order = np.argsort(-scores, kind="stable")
    return tuple(by_id[i] for i in order), scores[order]


def _blocks(scores: Floats) -> list[Block]:
    """The blocks of equal scores, in order."""
    cuts = [0, *(np.flatnonzero(scores[1:] != scores[:-1]) + 1).tolist(), len(scores)]
    return [block for block in pairwise(cuts) if block[0] < block[1]]
