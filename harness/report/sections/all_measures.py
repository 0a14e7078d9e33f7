"""The means on every measure."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.english import join_names
from harness.evaluation.evaluation import Evaluation
from harness.report.templates import Section
from harness.report.view import View, beaten_letters, retriever_letters
from harness.stats.summary import ScoreSummary


@dataclass(frozen=True, slots=True)
class MeasuresContext:
    """The section's content."""

    listed: list[str]
    folded: list[str]
    """The retrievers whose rows are opened on demand."""
    sentence: str
    best: Mapping[str, float]
    """Measure -> its best mean."""
    summary: Mapping[str, Mapping[str, ScoreSummary]]
    """Measure -> retriever -> its statistics."""
    letters: Mapping[str, str]
    beaten: Mapping[str, Mapping[str, str]]
    """Measure -> the letters of those that each retriever was shown to beat."""
    lettered: bool


def measures_section(view: View) -> Section[MeasuresContext]:
    """The mean of each retriever on each measure."""
    beaten = {measure: beaten_letters(view, measure) for measure in view.measures}
    folded = view.evaluation.board.folded
    context = MeasuresContext(
        listed=[name for name in view.ranked if name not in folded],
        folded=[name for name in view.ranked if name in folded],
        sentence=measures_sentence(view),
        best={measure: best_mean(view, measure) for measure in view.measures},
        summary=view.evaluation.summary,
        letters=retriever_letters(view),
        beaten=beaten,
        lettered=any(any(letters.values()) for letters in beaten.values()),
    )
    return Section("measures", "All measures", context)


def best_mean(view: View, measure: str) -> float:
    """The best mean on a measure."""
    means = [row.mean for row in view.evaluation.summary[measure].values()]
    return min(means) if _is_low_good(view.evaluation, measure) else max(means)


def measures_sentence(view: View) -> str:
    """On how many measures the leader has the best mean, and which one decides."""
    primary = view.names[view.primary].short
    decides = f"Only {primary} decides."
    if len(view.ranked) == 1 or len(view.measures) == 1:
        return decides
    leader = view.evaluation.leader
    measures_by_winner: dict[str, list[str]] = {}
    for measure in view.measures:
        best = best_mean(view, measure)
        winner = next(
            name
            for name, row in view.evaluation.summary[measure].items()
            if row.mean == best
        )
        leader_row = view.evaluation.summary[measure].get(leader)
        if leader_row is not None and leader_row.mean == best:
            winner = leader
        measures_by_winner.setdefault(winner, []).append(view.names[measure].short)
    led = len(measures_by_winner.pop(leader, ()))
    sentence = f"{leader} has the best mean on {led} of {len(view.measures)} measures"
    others = [
        f"{name} on {join_names(measures)}"
        for name, measures in measures_by_winner.items()
    ]
    return f"{'; '.join([sentence, *others])}. {decides}"


def _is_low_good(evaluation: Evaluation, measure: str) -> bool:
    return measure in evaluation.low_is_good
