"""Tables of comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

from harness.console.columns import (
    TextColumn,
    columns_that_fit,
    fit_table,
    measure_heading,
    text_line,
)
from harness.console.score_tables import (
    SummaryByMeasure,
    score_cell,
    summarized_retrievers,
)
from harness.english import count_units, p_text, percent_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.verdict import Comparison
    from harness.stats.settings import Settings

NO_INTERVAL_TEXT = "not estimable"
"""The method of a missing interval, and the text in its place.

There is none if all values are equal: then their variance is unknown.
"""


def leaderboard_table(
    summary: SummaryByMeasure,
    primary: str,
    *,
    width: int,
    level: float = 0.95,
    clusters: int | None = None,
    low_is_good: AbstractSet[str] = frozenset(),
) -> Iterator[RenderableType]:
    """Means by retriever, best first by the primary measure, which has its interval.

    Args:
        summary: the measures are shown in their order, as many as fit.
        primary: the measure that decides.
        width: cells of the terminal.
        level: confidence of the intervals.
        clusters: number of clusters of queries, if they are declared.
        low_is_good: measures for which less is better.
    """
    table = _MeansTable(summary, primary, low_is_good)
    other_measures = dict.fromkeys(summary)
    other_measures.pop(primary, None)
    columns = [
        TextColumn("", table.order, left_aligned=True, wraps=True),
        table.means_column(primary, digits=4),
        TextColumn(
            f"{percent_text(level)} %\ninterval",
            _interval_cells(table.intervals(), "{:z.3f}"),
            drop_rank=1,
        ),
    ]
    for drop_rank, measure in enumerate(other_measures, start=2):
        columns.append(table.means_column(measure, digits=3, drop_rank=drop_rank))
    yield text_line(f"{primary} over {count_units(table.queries, clusters)}", "bold")
    yield from fit_table(columns, width)


class _MeansTable:
    """The means of retrievers, in the order of the primary measure."""

    def __init__(
        self,
        summary: SummaryByMeasure,
        primary: str,
        low_is_good: AbstractSet[str],
    ) -> None:
        self._summary = summary
        self._primary = primary
        self._low_is_good = low_is_good
        retrievers = summarized_retrievers(summary)
        self.order = list(self._means(primary, retrievers))

    @property
    def queries(self) -> int:
        """The number of queries of the primary measure."""
        return self._summary[self._primary][self.order[0]].count

    def intervals(self) -> list[_IntervalEnds]:
        """The interval of each retriever on the primary measure."""
        rows = [self._summary[self._primary][name] for name in self.order]
        return [_IntervalEnds(row.ci_low, row.ci_high, row.ci_method) for row in rows]

    def means_column(
        self, measure: str, *, digits: int, drop_rank: int = 0
    ) -> TextColumn:
        """The means on a measure; the best are bold."""
        from harness.scoring.scores import best_by_mean

        means = self._means(measure, self.order)
        values = [means.get(name) for name in self.order]
        best = best_by_mean(means, low_is_good=measure in self._low_is_good)
        bold_rows = [i for i, name in enumerate(self.order) if name in best]
        return TextColumn(
            measure_heading(measure),
            [score_cell(value, digits) for value in values],
            bold_rows=frozenset(bold_rows if len(values) > 1 else ()),
            drop_rank=drop_rank,
        )

    def _means(self, measure: str, retrievers: Sequence[str]) -> dict[str, float]:
        """Return the retrievers that have a mean on a measure, best first."""
        from harness.scoring.scores import order_by_mean

        rows = self._summary[measure]
        means = {name: rows[name].mean for name in retrievers if name in rows}
        return order_by_mean(means, low_is_good=measure in self._low_is_good)


def comparisons_table(
    family: Sequence[Comparison], *, width: int, settings: Settings, leader: str = ""
) -> Iterator[RenderableType]:
    """The tests of one measure's family: the difference and its interval before p.

    Args:
        family: its comparisons, one or more.
        width: cells of the terminal.
        settings: of the comparisons.
        leader: its pairs come first, then the closest; "": the closest come first.
    """
    from harness.wording.verdicts import verdict_cell, verdict_word

    rows = sorted(
        family, key=lambda row: (leader not in (row.a, row.b), abs(row.mean_difference))
    )
    baselines = {row.b for row in family}
    has_column_b = len(baselines) > 1 or len(family) == 1
    columns = [TextColumn("a", [row.a for row in rows], left_aligned=True, wraps=True)]
    if has_column_b:
        b = TextColumn("b", [row.b for row in rows], left_aligned=True, wraps=True)
        columns.append(b)
    columns += _test_columns(family, rows, settings)
    cells = [verdict_cell(row.finding) for row in rows]
    full_table = [*columns, _verdict_column(rows, cells)]
    words = [verdict_word(row.finding) for row in rows]
    short_table = [*columns, _verdict_column(rows, words)]
    measure = family[0].measure
    title = f"{measure}: a against b = {family[0].b}"
    if has_column_b:
        title = f"{measure}: a and b"
    yield text_line(title, "bold")
    fits = len(columns_that_fit(full_table, width)) == len(full_table)
    yield from fit_table(full_table if fits else short_table, width)


def _test_columns(
    family: Sequence[Comparison], rows: Sequence[Comparison], settings: Settings
) -> list[TextColumn]:
    """Return the differences, intervals, counts and p-values of some rows."""
    from harness.evaluation.board import smallest_wilcoxon_p

    floors = smallest_wilcoxon_p(family, settings)
    intervals = [_IntervalEnds(row.ci_low, row.ci_high, row.ci_method) for row in rows]
    return [
        TextColumn(
            "a - b", [f"{row.mean_difference:+z.4f}" for row in rows], drop_rank=1
        ),
        TextColumn(
            f"{percent_text(settings.level)} % CI,\npair alone",
            _interval_cells(intervals, "{:+z.3f}"),
            drop_rank=3,
        ),
        TextColumn(
            "won/tied/\nlost",
            [f"{row.wins:,}/{row.ties:,}/{row.losses:,}" for row in rows],
            drop_rank=5,
        ),
        TextColumn(
            "adjusted\np", [p_text(row.p_adjusted) for row in rows], drop_rank=2
        ),
        TextColumn(
            "exact\nWilcoxon p",
            [
                _exact_p(row.p_wilcoxon_adjusted, floors.get((row.a, row.b)))
                for row in rows
            ],
            drop_rank=4,
        ),
    ]


def _verdict_column(rows: Sequence[Comparison], verdicts: Sequence[str]) -> TextColumn:
    bold_rows = [i for i, row in enumerate(rows) if row.verdict.shows_difference]
    return TextColumn(
        "verdict", verdicts, left_aligned=True, bold_rows=frozenset(bold_rows)
    )


def _exact_p(p: float | None, floor: float | None) -> str:
    if p is None:
        return "–"
    return p_text(p) if floor is None else f"{p_text(p)} (≥ {p_text(floor)})"


class _IntervalEnds(NamedTuple):
    low: float | None
    high: float | None
    method: str


def _interval_cells(intervals: Sequence[_IntervalEnds], form: str) -> list[str]:
    """Return confidence intervals as text; a missing one is "not estimable"."""
    cells: list[str] = []
    for low, high, method in intervals:
        if method == NO_INTERVAL_TEXT or low is None or high is None:
            cells.append(NO_INTERVAL_TEXT)
        else:
            cells.append(f"{form.format(low)} … {form.format(high)}")
    return cells
