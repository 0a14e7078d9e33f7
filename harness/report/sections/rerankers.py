"""Rankings before against after reranking."""

from typing import NamedTuple

from harness.evaluation.families import ideal_reranking, reranker_depth
from harness.measures import measure_rankings, parse_measure
from harness.report.templates import Section, TemplateRow
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
    """(n,) scores of the candidates sorted by grade; None if the measure needs more than grades."""


def find_rerankings(view: View) -> dict[str, Reranking]:
    """Reranked retriever -> its first stage, if the results include it."""
    pairs = {}
    for name in view.ranked:
        block = view.resolved.retriever_tables[name]
        if block.get("kind") == "rerank" and block.get("of") in view.ranked:
            facts = view.manifest.retrievers[name]
            depth = reranker_depth(facts.provenance) or view.resolved.depth
            pairs[name] = Reranking(
                str(block["of"]), depth, _ceiling(view, str(block["of"]), depth)
            )
    return pairs


def _ceiling(view: View, before: str, depth: int) -> Floats | None:
    measure = parse_measure(view.primary)
    if measure.uses_claims or measure.is_own or measure.get("groups") is not None:
        return None
    best = {
        query: ideal_reranking(ranking.doc_ids, view.grades[query], depth)
        for query, ranking in view.results.iter_rankings(before)
        if query in view.grades
    }
    return measure_rankings([measure], dict(view.grades), best).values_of(measure)


def rerankers_section(view: View) -> Section | None:
    """A row for each reranker; None if no reranker's first stage is in the results."""
    rows = reranker_rows(view)
    return Section("reranked", "Rerankers", {"rows": rows}) if rows else None


def reranker_rows(view: View) -> list[TemplateRow]:
    """The rerankers by their mean, highest first."""
    rows, means = list[TemplateRow](), view.evaluation.means
    for name, rerun in find_rerankings(view).items():
        before, after = (
            view.values_by_measure[view.primary][rerun.first_stage],
            view.values_by_measure[view.primary][name],
        )
        apart = paired_differences(after, before)
        ceiling = (
            None
            if rerun.ceiling is None
            else mean(rerun.ceiling, view.scores.units.weights)
        )
        of = {
            "retriever": name,
            "of": rerun.first_stage,
            "depth": rerun.depth,
            "ceiling": ceiling,
        }
        record = {
            "better": apart.wins,
            "equal": len(after) - apart.wins - apart.losses,
            "worse": apart.losses,
        }
        rows.append(
            {**of, "before": means[rerun.first_stage], "after": means[name], **record}
        )
    return rows
