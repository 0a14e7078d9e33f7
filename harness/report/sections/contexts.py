"""Recall within contexts of the same size."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.evaluation.warning_sentences import warning_sentence
from harness.evaluation.warnings import WarningKind
from harness.measures import Measure, measure_rankings, parse_measure
from harness.measures.score import RankedPassages
from harness.report.charts.figure import Figure, draw_figure
from harness.report.charts.recall_curve import (
    RecallCurve,
    RecallPoint,
    draw_recall_curves,
)
from harness.report.numbers import score_text
from harness.report.palette import standing_shade
from harness.report.templates import Section
from harness.report.view import View
from retrievers.types import Passage, Span

BUDGET_STEPS = (1, 2, 5)
"""Contexts have so many tokens, times a power of ten."""
CONTEXT_WARNINGS = (
    WarningKind.ESTIMATED_TOKENS,
    WarningKind.SHORT_CONTEXTS,
    WarningKind.WHOLE_DOCUMENTS,
)


@dataclass(frozen=True, slots=True)
class SameContext:
    """The section's content."""

    figure: Figure
    budgets: list[int]
    """Tokens of the contexts."""
    recalls: Mapping[str, Mapping[int, float]]
    """Retriever -> tokens -> mean recall."""
    notes: list[str]


def contexts_section(view: View) -> Section[SameContext] | None:
    """Recall against the tokens of a context.

    None if no measure reads passages, or they fill no context.
    """
    measures = [parse_measure(name) for name in view.measures]
    if not any(measure.uses_passages for measure in measures):
        return None
    spans = labelled_spans(view)
    passages = {name: read_passages(view, name) for name in view.ranked}
    budgets = token_budgets(
        passages, [measure.tokens for measure in measures if measure.tokens]
    )
    curves: dict[str, list[RecallPoint]] = {}
    for name in view.ranked:
        points = _recall_points(view, passages[name], budgets, spans)
        if points:
            curves[name] = points
    if not curves:
        return None
    figure = _draw_curves(view, curves, has_spans=bool(spans))
    context = SameContext(
        figure,
        budgets,
        recalls={name: dict(points) for name, points in curves.items()},
        notes=[
            warning_sentence(warning)
            for warning in view.evaluation.warnings
            if warning.kind in CONTEXT_WARNINGS
        ],
    )
    return Section("contexts", "The same context", context, (figure,))


def _draw_curves(
    view: View, curves: Mapping[str, Sequence[RecallPoint]], *, has_spans: bool
) -> Figure:
    """Return the figure of recall within a context of rising length."""
    colors = {
        row.retriever: standing_shade(row.standing).light
        for row in view.evaluation.board.rows
    }
    counted = "labelled characters" if has_spans else "relevant documents"
    last_points = "; ".join(
        f"{name}: {score_text(points[-1].recall)} at {points[-1].tokens:,}"
        for name, points in curves.items()
    )
    return draw_figure(
        "recall-tokens",
        f"Recall of {counted} against tokens",
        f"Mean recall of {counted} within a context; {last_points}.",
        lambda width: draw_recall_curves(
            {name: RecallCurve(colors[name], curves[name]) for name in curves}, width
        ),
    )


def read_passages(view: View, retriever: str) -> RankedPassages:
    """Return the passages of one retriever's scored queries."""
    passages: dict[str, Sequence[Passage]] = {}
    for query_id, ranking in view.results.iter_rankings(retriever):
        if query_id in view.grades:
            passages[query_id] = ranking.passages or ()
    return passages


def labelled_spans(view: View) -> dict[str, tuple[Span, ...]]:
    """Return the labelled characters of the scored queries that have any."""
    spans: dict[str, tuple[Span, ...]] = {}
    for query_id in view.ids:
        query_spans = view.results.queries[query_id].labels.spans
        if query_spans:
            spans[query_id] = query_spans
    return spans


def count_tokens(passages: Sequence[Passage]) -> int:
    """Return the tokens of all passages of a query."""
    return sum(passage.tokens for passage in passages)


def token_budgets(
    passages: Mapping[str, RankedPassages], declared: Sequence[int]
) -> list[int]:
    """Return round numbers of tokens from one passage to all, and the declared ones."""
    totals = [*declared, 1]
    first_tokens: list[int] = []
    for ranked_passages in passages.values():
        for query_passages in ranked_passages.values():
            totals.append(count_tokens(query_passages))
            first_tokens += [passage.tokens for passage in query_passages[:1]]
    largest = max(totals)
    smallest = min(filter(None, first_tokens), default=1)
    budgets = set(declared)
    for power in range(math.ceil(math.log10(largest)) + 1):
        budgets.update(step * 10**power for step in BUDGET_STEPS)
    return sorted(
        budget
        for budget in budgets
        if budget in declared or smallest <= budget <= largest
    )


def _recall_points(
    view: View,
    passages: RankedPassages,
    budgets: Sequence[int],
    spans: Mapping[str, Sequence[Span]],
) -> list[RecallPoint]:
    """Return the mean recall within each context that the kept passages can fill."""
    depth = view.resolved.depth
    cut_totals = [
        count_tokens(query_passages)
        for query_passages in passages.values()
        if len(query_passages) >= depth
    ]
    limit = min(cut_totals, default=math.inf)
    fillable = [budget for budget in budgets if budget <= limit]
    unit = (("unit", "chars"),) if spans else ()
    measures = [Measure("R", None, (("tokens", budget), *unit)) for budget in fillable]
    grades = {query_id: dict(view.grades[query_id]) for query_id in view.ids}
    measured = measure_rankings(measures, grades, {}, passages=passages, spans=spans)
    means = measured.means(view.scores.weight_of)
    return [
        RecallPoint(budget, means[measure])
        for budget, measure in zip(fillable, measures, strict=True)
        if not math.isnan(means[measure])
    ]
