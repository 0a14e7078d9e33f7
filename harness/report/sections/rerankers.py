"""The gain of reranking, with what is left to gain.

What is shown here are means and counts; the tests of each reranker against its first
stage are in `evaluation.families`.
"""

from dataclasses import dataclass
from typing import NamedTuple

from harness.evaluation.families import ideal_reranking
from harness.measures import measure_rankings, parse_measure
from harness.measures.table import grades_decide
from harness.report.templates import Section
from harness.report.view import View
from harness.stats.differences import paired_differences
from harness.stats.intervals import mean
from retrievers.types import Floats


class Reranking(NamedTuple):
    """A retriever whose first hits were reranked."""

    first_stage: str
    """The retriever that gave the candidates."""
    depth: int
    """Candidates that were reranked."""
    ceiling: Floats | None
    """(n,) scores of the candidates sorted by grade.

    None if the measure needs more than grades.
    """


class RerankerRow(NamedTuple):
    """A reranked retriever against its first stage."""

    retriever: str
    first_stage: str
    depth: int
    """Candidates that were reranked."""
    ceiling: float | None
    """The mean of the candidates sorted by grade; None if unknown."""
    before: float
    after: float
    wins: int
    """How many queries score higher after reranking."""
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class RerankersContext:
    """The section's content."""

    rows: list[RerankerRow]


def rerankers_section(view: View) -> Section[RerankersContext] | None:
    """A row for each reranker; None if no reranker's first stage is in the results."""
    rows = reranker_rows(view)
    if not rows:
        return None
    return Section("reranked", "Rerankers", RerankersContext(rows))


def reranker_rows(view: View) -> list[RerankerRow]:
    """The rerankers by their mean, highest first."""
    means = view.evaluation.means
    scores = view.values_by_measure[view.primary]
    rows: list[RerankerRow] = []
    for retriever, reranking in find_rerankings(view).items():
        first_stage = reranking.first_stage
        differences = paired_differences(scores[retriever], scores[first_stage])
        ties = len(scores[retriever]) - differences.wins - differences.losses
        ceiling = None
        if reranking.ceiling is not None:
            ceiling = mean(reranking.ceiling, view.scores.units.weights)
        rows.append(
            RerankerRow(
                retriever,
                first_stage=first_stage,
                depth=reranking.depth,
                ceiling=ceiling,
                before=means[first_stage],
                after=means[retriever],
                wins=differences.wins,
                ties=ties,
                losses=differences.losses,
            )
        )
    return rows


def find_rerankings(view: View) -> dict[str, Reranking]:
    """Reranked retriever -> its first stage, if the results include it."""
    rerankings: dict[str, Reranking] = {}
    for retriever in view.ranked:
        record = view.resolved.retriever_by_name[retriever]
        first_stage = record.of
        if record.kind != "rerank" or not isinstance(first_stage, str):
            continue
        if first_stage not in view.ranked:
            continue
        reranker = view.manifest.retrievers[retriever].provenance.reranker
        depth = view.resolved.depth  # the first stage has no further hits
        if reranker is not None and reranker.depth:
            depth = min(depth, reranker.depth)
        ceiling = _ceiling(view, first_stage, depth)
        rerankings[retriever] = Reranking(first_stage, depth, ceiling)
    return rerankings


def _ceiling(view: View, first_stage: str, depth: int) -> Floats | None:
    """Return the scores of a perfect reranker; None if grades do not decide them."""
    measure = parse_measure(view.primary)
    if not grades_decide(measure):
        return None
    ideal_rankings = {
        query_id: ideal_reranking(ranking.doc_ids, view.grades[query_id], depth)
        for query_id, ranking in view.results.iter_rankings(first_stage)
        if query_id in view.grades
    }
    scores = measure_rankings([measure], dict(view.grades), ideal_rankings)
    return scores.values_of(measure)
