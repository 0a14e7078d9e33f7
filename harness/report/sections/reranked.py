"""What rerankers make of what they are given: means before and after, and the ceiling."""

from __future__ import annotations

from typing import NamedTuple

from harness.report.browsed import reranked
from harness.report.figures import Section
from harness.report.view import View
from harness.stats.differences import differences
from harness.stats.intervals import mean

PLACE = 45


class RerunRow(NamedTuple):
    """One reranker beside what it reads again."""

    retriever: str
    of: str
    """The retriever that gave the candidates."""
    depth: int
    """Candidates that are read again."""
    before: float
    after: float
    ceiling: float | None
    """The mean of the best order of the candidates; None where grades alone do not make the measure."""
    better: int
    """Queries that score higher after than before."""
    equal: int
    worse: int


def section(view: View) -> Section | None:
    """A row for each reranker; None where no reranker stands beside what it reranks."""
    rows = rerun_rows(view)
    return Section("reranked", "Rerankers", {"rows": rows}) if rows else None


def rerun_rows(view: View) -> list[RerunRow]:
    """The rerankers by their mean, highest first."""
    rows = []
    for name, rerun in reranked(view).items():
        before, after = view.scores[view.primary][rerun.before], view.scores[view.primary][name]
        apart = differences(after, before)
        better, worse = int(apart.wins), int(apart.losses)
        rows.append(
            RerunRow(
                name, rerun.before, rerun.depth, view.conclusion.means[rerun.before], view.conclusion.means[name],
                None if rerun.ceiling is None else mean(rerun.ceiling, view.evaluation.scores.units.weights),
                better, len(after) - better - worse, worse,
            )
        )  # fmt: skip
    return rows
