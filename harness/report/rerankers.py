"""Reranked retrievers beside what they rerank, and the ceiling: what the best reranker could reach on each query."""

from __future__ import annotations

from typing import NamedTuple

from harness.evaluation.score_tables import candidates_read, perfect
from harness.measures import parse, score
from harness.report.view import View
from retrievers.types import Floats


class Rerun(NamedTuple):
    """A retriever whose first hits were put into another order."""

    before: str
    """The retriever that gave the candidates."""
    depth: int
    """Candidates that were read again."""
    ceiling: Floats | None
    """(n,) scores of the candidates in the order of their grades; None where grades alone do not make the measure."""


def reranked(view: View) -> dict[str, Rerun]:
    """Reranked retriever -> what it was made of, where that is in the results too."""
    pairs = {}
    for name in view.ranked:
        block = view.resolved.blocks[name]
        if block.get("kind") == "rerank" and block.get("of") in view.ranked:
            facts = view.manifest.retrievers[name]
            depth = candidates_read(facts.provenance, block.get("rerank") or {}) or view.resolved.depth
            pairs[name] = Rerun(str(block["of"]), depth, _ceiling(view, str(block["of"]), depth))
    return pairs


def _ceiling(view: View, before: str, depth: int) -> Floats | None:
    measure = parse(view.primary)
    if measure.claimed or measure.get("groups") is not None:
        return None
    best = {
        query: perfect(ranking.doc_ids, view.grades[query], depth)
        for query, ranking in view.results.answers(before)
        if query in view.grades
    }
    return score([measure], dict(view.grades), best).of(measure)
