"""What the retrievers answered, in one pass over the rankings: only what a page can show is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness import measures
from harness.dataset import trec
from harness.measures import Measure, parse
from harness.records import SHOWN, Results
from retrievers.types import Floats, Ranking

TIE = 1e-9
"""Scores this near, relative to the larger, are one: rankings carry rounded scores."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What one retriever answered to the queries that were scored, in the order of their ids where it is an array."""

    heads: Mapping[str, tuple[str, ...]]
    """Query id -> the hits that the primary measure looks at."""
    top: Mapping[str, Ranking]
    """Query id -> its first hits, as many as a page shows."""
    places: Mapping[str, Mapping[str, int]]
    """Query id -> relevant document -> rank; absent where it was not retrieved."""
    first: Floats
    """(n,) rank of the first relevant hit; infinite where there is none."""
    judged: Floats
    """(n,) Judged@k at the primary cutoff."""
    tied: int
    """Queries whose last hit within the primary cutoff has the score of the next: the order of ids decided."""
    short: int
    """Queries with fewer hits than the primary cutoff."""


NOTHING = Ranking((), np.zeros(0))


def read_answers(results: Results, grades: trec.Qrels, primary: Measure) -> dict[str, Answers]:
    """Read every retriever's rankings.

    Args:
        results: where they lie.
        grades: query id -> document id -> grade; only these queries count.
        primary: the measure that decides.
    """
    depth = results.manifest.resolved.depth
    cutoff = primary.cutoff or depth
    looked_at = depth if primary.get("ideal") == "retrieved-all" else cutoff
    judged = {query: grades[query] for query in sorted(grades)}
    relevant = {query: frozenset(doc for doc, grade in of.items() if grade > 0) for query, of in judged.items()}
    answers = {}
    for name in results.retrievers:
        rankings = {query: ranking for query, ranking in results.answers(name) if query in judged}
        heads = {query: ranking.doc_ids[:looked_at] for query, ranking in rankings.items()}
        places = {query: _places(ranking, relevant[query]) for query, ranking in rankings.items()}
        share = parse(f"Judged@{cutoff}")
        answers[name] = Answers(
            heads=heads,
            top={query: Ranking(one.doc_ids[:SHOWN], one.scores[:SHOWN].copy()) for query, one in rankings.items()},
            places=places,
            first=np.array([min(places.get(query, {}).values(), default=np.inf) for query in judged]),
            judged=measures.score([share], judged, {query: head[:cutoff] for query, head in heads.items()}).of(share),
            tied=sum(_tied(ranking.scores, cutoff) for ranking in rankings.values()),
            short=sum(len(ranking) < cutoff for ranking in rankings.values()),
        )
    return answers


def _places(ranking: Ranking, relevant: frozenset[str]) -> dict[str, int]:
    return {doc: ranking.doc_ids.index(doc) + 1 for doc in relevant.intersection(ranking.doc_ids)}


def _tied(scores: Floats, cutoff: int) -> bool:
    if len(scores) <= cutoff:
        return False
    last, after = scores[cutoff - 1 : cutoff + 1].tolist()
    return bool(last - after <= TIE * max(abs(last), abs(after), np.finfo(float).tiny))
