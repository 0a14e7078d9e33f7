"""The means on every measure."""

from dataclasses import dataclass
from typing import NamedTuple

from harness.english import join_names
from harness.report.templates import Section
from harness.report.view import View, beaten_letters, retriever_letters
from harness.stats.summary import ScoreSummary


class MeanCell(NamedTuple):
    """One retriever on one measure."""

    summary: ScoreSummary | None
    """Statistics of its scores; None if it has no score."""
    is_best: bool
    beaten: str
    """The letters of those that it was shown to beat."""


class MeasuresRow(NamedTuple):
    """One retriever on every measure."""

    retriever: str
    letter: str
    cells: tuple[MeanCell, ...]
    """The cells in the order of the measures."""


@dataclass(frozen=True, slots=True)
class MeasuresContext:
    """The section's content."""

    rows: tuple[MeasuresRow, ...]
    """All, best mean on the primary measure first; report.md lists them."""
    listed: tuple[MeasuresRow, ...]
    folded: tuple[MeasuresRow, ...]
    """The other rows, which the page opens on demand."""
    sentence: str
    lettered: bool
    """Whether any retriever was shown to beat another."""


def measures_section(view: View) -> Section[MeasuresContext]:
    """The mean of each retriever on each measure."""
    folded = view.evaluation.board.folded
    rows = _rows(view)
    context = MeasuresContext(
        rows=rows,
        listed=tuple(row for row in rows if row.retriever not in folded),
        folded=tuple(row for row in rows if row.retriever in folded),
        sentence=measures_sentence(view),
        lettered=any(cell.beaten for row in rows for cell in row.cells),
    )
    return Section("measures", "All measures", context)


def _rows(view: View) -> tuple[MeasuresRow, ...]:
    letters = retriever_letters(view)
    cells: dict[str, list[MeanCell]] = {name: [] for name in view.ranked}
    for measure in view.measures:
        best = view.best_retrievers(measure)
        beaten = beaten_letters(view, measure)
        for name in view.ranked:
            summary = view.evaluation.summary[measure].get(name)
            cells[name].append(MeanCell(summary, name in best, beaten[name]))
    return tuple(
        MeasuresRow(name, letters[name], tuple(cells[name])) for name in view.ranked
    )


def measures_sentence(view: View) -> str:
    """Say on how many measures the leader has the best mean, and which one decides."""
    primary = view.names[view.primary].short
    decides = f"Only {primary} decides."
    if len(view.ranked) == 1 or len(view.measures) == 1:
        return decides
    leader = view.evaluation.leader
    measures_by_winner: dict[str, list[str]] = {}
    shared: list[str] = []
    for measure in view.measures:
        best = view.best_retrievers(measure)
        winner = leader if leader in best else best[0]
        if winner == leader and len(best) > 1:
            shared.append(view.names[measure].short)
        measures_by_winner.setdefault(winner, []).append(view.names[measure].short)
    led = len(measures_by_winner.pop(leader, ()))
    sentence = f"{leader} has the best mean on {led} of {len(view.measures)} measures"
    if shared:
        sentence += f", shared on {join_names(shared)}"
    others = [
        f"{name} on {join_names(measures)}"
        for name, measures in measures_by_winner.items()
    ]
    return f"{'; '.join([sentence, *others])}. {decides}"
