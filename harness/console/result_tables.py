"""Tables of comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from harness.console.columns import (
    TextColumn,
    columns_that_fit,
    fit_table,
    measure_heading,
    text_line,
)
from harness.console.score_tables import SummaryRow, score_cell
from harness.english import count_units, p_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.verdict import Comparison
    from harness.stats.settings import Settings

NO_INTERVAL_TEXT = "not estimable"
"""Shown in place of an interval where all values are equal, which does not show how far they scatter."""


MAX_PRINTED_COMPARISONS = 20
"""Comparisons shown; `--json`, the CSV and the report hold them all."""


def leaderboard_table(
    summary: Sequence[SummaryRow],
    primary: str,
    *,
    width: int,
    level: float = 0.95,
    clusters: int | None = None,
    low_is_good: AbstractSet[str] = frozenset(),
) -> Iterator[RenderableType]:
    """Means by retriever, best first by the primary measure, which has its interval.

    Args:
        summary: rows of summary.csv; the measures are shown in their order, as many as fit.
        primary: the measure that decides.
        width: cells of the terminal.
        level: confidence of the intervals.
        clusters: of queries, where these are declared.
        low_is_good: measures for which less is better.
    """
    from harness.scoring.scores import order_by_mean

    by_cell = {(row["retriever"], row["measure"]): row for row in summary}
    own = {
        row["retriever"]: row["mean"] for row in summary if row["measure"] == primary
    }
    order = list(order_by_mean(own, low_is_good=primary in low_is_good))
    others = [
        measure
        for measure in dict.fromkeys(row["measure"] for row in summary)
        if measure != primary
    ]

    def means(measure: str, digits: int, rank: int) -> TextColumn:
        known = {
            name: by_cell[name, measure]["mean"]
            for name in order
            if (name, measure) in by_cell
        }
        known = order_by_mean(known, low_is_good=measure in low_is_good)
        values = [known.get(name) for name in order]
        top = next(iter(known.values()))
        best = frozenset(
            i for i, value in enumerate(values) if value == top and len(values) > 1
        )
        return TextColumn(
            measure_heading(measure),
            [score_cell(value, digits) for value in values],
            bold_rows=best,
            drop_rank=rank,
        )

    ends = [
        tuple(by_cell[name, primary][key] for key in ("ci_low", "ci_high", "ci_method"))
        for name in order
    ]
    intervals = _intervals(ends, "{:z.3f}", level, rank=1)
    measured = [means(measure, 3, rank) for rank, measure in enumerate(others, 2)]
    n = by_cell[order[0], primary]["count"]
    yield text_line(f"{primary} over {count_units(n, clusters)}", "bold")
    yield from fit_table(
        [
            TextColumn("", order, left_aligned=True, wraps=True),
            means(primary, 4, 0),
            intervals,
            *measured,
        ],
        width,
    )


def comparisons_table(
    family: Sequence[Comparison], *, width: int, settings: Settings, leader: str = ""
) -> Iterator[RenderableType]:
    """The tests of one measure's family: the difference and its interval before p.

    Args:
        family: its comparisons, one or more.
        width: cells of the terminal.
        settings: those that it was made with.
        leader: its pairs come first, then the closest.
    """
    from harness.evaluation.board import smallest_wilcoxon_p
    from harness.wording.verdicts import verdict_cell, verdict_word

    measure = family[0].measure
    shown = sorted(
        family, key=lambda row: (leader not in (row.a, row.b), abs(row.mean_difference))
    )[:MAX_PRINTED_COMPARISONS]
    baselines, floors = {row.b for row in family}, smallest_wilcoxon_p(family, settings)
    names = [TextColumn("a", [row.a for row in shown], left_aligned=True, wraps=True)]
    if len(baselines) > 1 or len(family) == 1:
        names.append(
            TextColumn("b", [row.b for row in shown], left_aligned=True, wraps=True)
        )
    columns = [
        *names,
        TextColumn(
            "a - b", [f"{row.mean_difference:+z.4f}" for row in shown], drop_rank=1
        ),
        _intervals(
            [(row.ci_low, row.ci_high, row.ci_method) for row in shown],
            "{:+z.3f}",
            settings.level,
            rank=3,
        ),
        TextColumn(
            "wins/ties/\nlosses",
            [f"{row.wins:,}/{row.ties:,}/{row.losses:,}" for row in shown],
            drop_rank=5,
        ),
        TextColumn(
            "adjusted\np", [p_text(row.p_adjusted) for row in shown], drop_rank=2
        ),
        TextColumn(
            "exact\nWilcoxon p",
            [
                _exact(row.p_wilcoxon_adjusted, floors.get((row.a, row.b)))
                for row in shown
            ],
            drop_rank=4,
        ),
    ]
    bold = frozenset(i for i, row in enumerate(shown) if row.verdict.shows_difference)
    whole = [
        *columns,
        TextColumn(
            "verdict",
            [verdict_cell(row.finding) for row in shown],
            left_aligned=True,
            bold_rows=bold,
        ),
    ]
    short = [
        *columns,
        TextColumn(
            "verdict",
            [verdict_word(row.finding) for row in shown],
            left_aligned=True,
            bold_rows=bold,
        ),
    ]
    yield text_line(
        f"{measure}: a and b"
        if len(names) > 1
        else f"{measure}: a against b = {family[0].b}",
        "bold",
    )
    yield from fit_table(
        whole if len(columns_that_fit(whole, width)) == len(whole) else short, width
    )
    if len(family) > len(shown):
        yield text_line(
            f"Here are {len(shown)} of {len(family)} comparisons: those of {leader}, then the closest. "
            "--json shows them all.",
            "dim",
        )


def _exact(p: float | None, floor: float | None) -> str:
    least = "" if floor is None else f" (≥ {p_text(floor)})"
    return "–" if p is None else f"{p_text(p)}{least}"


def _intervals(
    ends: Iterable[tuple[float | None, float | None, str]],
    form: str,
    level: float,
    *,
    rank: int,
) -> TextColumn:
    """Confidence intervals; what has no width is none."""
    cells = []
    for low, high, method in ends:
        none = method == NO_INTERVAL_TEXT or low is None or high is None
        cells.append(
            NO_INTERVAL_TEXT if none else f"{form.format(low)} … {form.format(high)}"
        )
    return TextColumn(f"{100 * level:.3g} %\ninterval", cells, drop_rank=rank)
