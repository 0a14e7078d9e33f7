"""What the retrievers answered, in one pass over the rankings: only what a page can show is kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness import measures
from harness.dataset import trec
from harness.measures import Measure
from harness.records import SHOWN, Results
from retrievers.types import Floats, Ranking

TIE = 1e-9
"""Scores this near, relative to the larger, are one: rankings carry rounded scores."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What one retriever answered."""

    heads: Mapping[str, tuple[str, ...]]
    """Query id -> the hits that the primary measure looks at, for every query that was scored."""
    top: Mapping[str, tuple[str, ...]]
    """Query id -> its first hits, for the queries that a page shows."""
    places: Mapping[str, Mapping[str, int]]
    """Query id -> relevant document -> rank, for the same queries; absent where it was not retrieved."""
    extra: Mapping[Measure, Floats]
    """Measures that the experiment did not ask for, (n,)."""
    tied: int
    """Queries whose last hit within the primary cutoff has the score of the next: the order of ids decided."""
    short: int
    """Queries with fewer hits than the primary cutoff."""


def read_answers(
    results: Results, grades: trec.Qrels, extra: Sequence[Measure], *, shown: Collection[str], primary: Measure
) -> dict[str, Answers]:
    """Read every retriever's rankings.

    Args:
        results: where they lie.
        grades: query id -> document id -> grade; only these queries count.
        extra: measures to compute on the side.
        shown: the queries whose hits are kept.
        primary: the measure that decides.
    """
    depth = results.manifest.resolved.depth
    cutoff = primary.cutoff or depth
    looked_at = depth if primary.get("ideal") == "retrieved-all" else cutoff
    ids = sorted(grades)
    judged = {qid: grades[qid] for qid in ids}
    relevant = {qid: frozenset(doc for doc, grade in of.items() if grade > 0) for qid, of in judged.items()}
    answers = {}
    for name in results.retrievers:
        rankings = {qid: ranking for qid, ranking in results.answers(name) if qid in judged}
        scored = measures.score(extra, judged, {qid: ranking.doc_ids for qid, ranking in rankings.items()})
        answers[name] = Answers(
            heads={qid: ranking.doc_ids[:looked_at] for qid, ranking in rankings.items()},
            top={qid: rankings[qid].doc_ids[:SHOWN] for qid in shown if qid in rankings},
            places={qid: _places(rankings[qid], relevant[qid]) for qid in shown if qid in rankings},
            extra={measure: scored.of(measure) for measure in extra},
            tied=sum(_tied(ranking.scores, cutoff) for ranking in rankings.values()),
            short=sum(len(ranking) < cutoff for ranking in rankings.values()),
        )
    return answers


def _places(ranking: Ranking, relevant: frozenset[str]) -> dict[str, int]:
    return {doc: ranking.doc_ids.index(doc) + 1 for doc in relevant.intersection(ranking.doc_ids)}


def _tied(scores: Floats, cutoff: int) -> bool:
    if len(scores) <= cutoff:
        return False
    last, after = scores[cutoff - 1], scores[cutoff]
    return bool(last - after <= TIE * max(abs(last), abs(after), np.finfo(float).tiny))
