"""Rerankers: means before and after, and the best possible order."""

from typing import NamedTuple

from harness.evaluation.csv_views import candidates_read, perfect
from harness.measures import parse, score
from harness.report.charts import Section
from harness.report.view import View
from harness.stats.differences import differences
from harness.stats.intervals import mean
from retrievers.types import Floats

PLACE = 45


class Rerun(NamedTuple):
    """A retriever whose first hits were reranked."""

    before: str
    """The retriever that gave the candidates."""
    depth: int
    """Candidates that were reranked."""
    ceiling: Floats | None
    """(n,) scores of the candidates sorted by grade; None if the measure needs more than grades."""


def reranked(view: View) -> dict[str, Rerun]:
    """Reranked retriever -> its first stage, if the results include it."""
    pairs = {}
    for name in view.ranked:
        block = view.resolved.blocks[name]
        if block.get("kind") == "rerank" and block.get("of") in view.ranked:
            facts = view.manifest.retrievers[name]
            depth = candidates_read(facts.provenance) or view.resolved.depth
            pairs[name] = Rerun(str(block["of"]), depth, _ceiling(view, str(block["of"]), depth))
    return pairs


def _ceiling(view: View, before: str, depth: int) -> Floats | None:
    measure = parse(view.primary)
    if measure.claimed or measure.own or measure.get("groups") is not None:
        return None
    best = {
        query: perfect(ranking.doc_ids, view.grades[query], depth)
        for query, ranking in view.results.answers(before)
        if query in view.grades
    }
    return score([measure], dict(view.grades), best).of(measure)


class RerunRow(NamedTuple):
    """One reranker with its first stage."""

    retriever: str
    of: str
    """The retriever that gave the candidates."""
    depth: int
    """Candidates that are reranked."""
    before: float
    after: float
    ceiling: float | None
    """The mean of the best order of the candidates; None if the measure needs more than grades."""
    better: int
    """Queries that score higher after than before."""
    equal: int
    worse: int


def section(view: View) -> Section | None:
    """A row for each reranker; None if no reranker's first stage is in the results."""
    rows = rerun_rows(view)
    return Section("reranked", "Rerankers", {"rows": rows}) if rows else None


def rerun_rows(view: View) -> list[RerunRow]:
    """The rerankers by their mean, highest first."""
    rows = []
    for name, rerun in reranked(view).items():
        before, after = view.scores[view.primary][rerun.before], view.scores[view.primary][name]
        apart = differences(after, before)
        record = (apart.wins, len(after) - apart.wins - apart.losses, apart.losses)
        ceiling = None if rerun.ceiling is None else mean(rerun.ceiling, view.table.units.weights)
        means = view.evaluation.means
        rows.append(RerunRow(name, rerun.before, rerun.depth, means[rerun.before], means[name], ceiling, *record))
    return rows
