"""What a measure could be under other orders of documents with equal scores: the worst and the best value.

trec_eval breaks ties by document id, which is one order among many.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise, permutations, product
from typing import Literal, NamedTuple

import numpy as np

from harness.measures.batch import UNJUDGED, Floats, Ints
from harness.measures.claims import NONE, Claimed
from harness.measures.compute import Judgments, groups_for, largest_grade, score
from harness.measures.groups import Groups
from harness.measures.measure import Measure
from harness.measures.table import row_of
from harness.measures.tie_ends import TieCase, TieGroup, Ties
from retrievers.types import Ranking

ENUMERABLE = 7
"""Up to so many tied documents, every order is tried where no closed form is declared."""
ORDERS = 10_000
"""So many seeded orders are drawn where there are more."""
Method = Literal["none", "exact", "enumerated", "sampled"]


class QueryTieRange(NamedTuple):
    """What one query's value could be."""

    query_id: str
    worst: float
    """The lowest value over the orders of tied documents (of the drawn ones where `method` is "sampled")."""
    best: float
    """The highest."""
    method: Method
    """"none": no order matters; "exact": by the orders that are known to be the ends; "enumerated": every order;
    "sampled": 10,000 of them."""


def tie_ranges(
    measure: Measure,
    judgments: Judgments,
    run: Mapping[str, Mapping[str, float]] | Mapping[str, Ranking],
    *,
    groups: Mapping[str, Groups] | None = None,
    claims: Mapping[str, Claimed] | None = None,
    seed: int = 0,
) -> list[QueryTieRange]:
    """Return the worst and the best value of each judged query over the orders of tied documents.

    By the orders that the measure's row in the table declares to be the ends; else every order of up to 7 tied
    documents is tried, and 10,000 are drawn of more. Measures with `groups=` or by claims declare none, nor does
    nDCG(ideal='retrieved') where its cutoff splits a tie.

    Args:
        measure: the measure.
        judgments: query id -> document id -> grade.
        run: query id -> document id -> score, or its ranking; scores are compared as they are, in 64 bits.
        groups: as in `score`, for a measure with `groups=`.
        claims: as in `score`, for a measure by claims; its value is NaN where it is undefined.
        seed: for the drawn orders.

    >>> from harness.measures import parse
    >>> tie_ranges(parse("P@1"), {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}})
    [QueryTieRange(query_id='q', worst=0.0, best=1.0, method='exact')]
    """
    row = row_of(measure)
    largest = largest_grade([measure], judgments)
    members = groups_for(measure, judgments, groups) if measure.get("groups") else {}
    ranges: dict[str, QueryTieRange | None] = {}
    untied: dict[str, Sequence[str]] = {}
    for query_id, judged in judgments.items():
        hits = run.get(query_id, {})
        if measure.by_grades and (ordered := _untied(hits)) is not None:  # scored below, all at once
            ranges[query_id], untied[query_id] = None, ordered
            continue
        ids, scores = _by_score(dict(hits))  # one after the other: of all rankings they take gigabytes
        case = TieCase(
            measure,
            row.compute,
            ids,
            np.array([judged.get(d, UNJUDGED) for d in ids] or [UNJUDGED], dtype=np.int64),
            np.array(sorted(judged.values(), reverse=True) or [UNJUDGED], dtype=np.int64),
            largest,
            members.get(query_id, ()),
            (claims or {}).get(query_id, NONE),
            judged,
        )
        declared = None if measure.get("groups") else row.ties
        ranges[query_id] = QueryTieRange(query_id, *_range(case, declared, _blocks(scores), f"{seed} ties {query_id}"))
    values = score([measure], judgments, untied) if untied else None
    known = {} if values is None else dict(zip(values.query_ids, values.of(measure).tolist(), strict=True))
    return [one or QueryTieRange(query, known[query], known[query], "none") for query, one in ranges.items()]


def _range(case: TieCase, declared: Ties | None, blocks: Sequence[TieGroup], seed: str) -> tuple[float, float, Method]:
    loose = [block for block in blocks if block[0] < case.cutoff and _matters(case, block)]
    method: Method = "none"
    orders = case.as_it_is()[None, :]
    if loose and declared is not None and declared.holds(case, loose):
        orders, method = declared.ends(case, loose), "exact"
    elif loose:
        orders, method = _orders(case, loose, seed)
    values = case.values(orders)
    return float(values.min()), float(values.max()), method


def _matters(case: TieCase, block: TieGroup) -> bool:
    """Whether a measure can tell two orders of a block apart."""
    if not case.measure.by_grades:
        return block[1] - block[0] > 1
    return len(set(case.grades[slice(*block)].tolist())) > 1


def _orders(case: TieCase, loose: Sequence[TieGroup], seed: str) -> tuple[Ints, Method]:
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


def _untied(hits: Mapping[str, float] | Ranking) -> Sequence[str] | None:
    """Document ids, best first, where no two have the same score; else None."""
    if isinstance(hits, Ranking):
        return hits.doc_ids if (hits.scores[1:] < hits.scores[:-1]).all() else None
    return sorted(hits, key=hits.__getitem__, reverse=True) if len({*hits.values()}) == len(hits) else None


def _by_score(hits: Mapping[str, float]) -> tuple[tuple[str, ...], Floats]:
    """Document ids in trec_eval's order, and their scores."""
    by_id = sorted(hits, reverse=True)
    scores = np.array([hits[d] for d in by_id], dtype=np.float64)
    order = np.argsort(-scores, kind="stable")
    return tuple(by_id[i] for i in order), scores[order]


def _blocks(scores: Floats) -> list[TieGroup]:
    """The blocks of equal scores, in order."""
    cuts = [0, *(np.flatnonzero(scores[1:] != scores[:-1]) + 1).tolist(), len(scores)]
    return [block for block in pairwise(cuts) if block[0] < block[1]]
