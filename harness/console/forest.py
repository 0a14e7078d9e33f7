"""The paired leaderboard in letters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.console.columns import (
    COLUMN_GAP,
    TextColumn,
    build_grid,
    columns_that_fit,
    with_minus_signs,
)
from harness.console.cost_columns import cost_columns
from harness.english import common_prefix, percent_text, short_p_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.board import Board, BoardRow
    from harness.evaluation.costs import RetrieverCost

MIN_CHART_WIDTH = 110
"""Characters of the narrowest terminal in which differences are also drawn."""
TICK_SPACING = 6
"""Cells from one number below the drawing to the next, or a few more."""
MAX_HEADING_NAME = 16
"""Characters of the longest name in a heading."""
MAX_DRAWING_WIDTH = 36
MIN_DRAWING_WIDTH = 15
"""Characters of the drawing; with room for fewer there is none."""


def leaderboard_in_letters(
    board: Board, *, width: int, costs: Mapping[str, RetrieverCost] | None = None
) -> Iterator[RenderableType]:
    """Yield the leaderboard, with one line per retriever.

    A line has the sign, mean, difference with its interval, queries won and lost, p,
    exact Wilcoxon p, then the costs. If there is no room for all, the costs are a
    table of their own.

    Args:
        board: of one retriever or more.
        width: cells of the terminal; differences are drawn if there is room, and
            columns that do not fit are left out.
        costs: of the retrievers that finished; None if unknown.
    """
    is_drawn = board.has_pairs and width >= MIN_CHART_WIDTH
    foot = [""] if is_drawn else []  # beside the numbers below the drawing
    retrievers = [row.retriever for row in board.rows]
    scores = [_name_column(board, foot), *_score_columns(board, foot)]
    prices = cost_columns(retrievers, costs, foot) if costs else []
    columns = columns_that_fit([*scores, *prices], width)
    is_one_table = len(columns) == len(scores) + len(prices)
    if not is_one_table:
        columns = columns_that_fit(scores, width)
    if is_drawn:
        used = sum(column.narrowest(width // 2) for column in columns)
        cells = min(MAX_DRAWING_WIDTH, width - used - COLUMN_GAP * len(columns))
        if cells >= MIN_DRAWING_WIDTH:
            columns.append(_drawing_column(board, cells))
    yield build_grid(columns)
    if costs and not is_one_table:
        rows = tuple(row for row in board.rows if row.retriever in costs)
        prices = cost_columns([row.retriever for row in rows], costs)
        names = _name_column(replace(board, rows=rows), [])
        yield build_grid(columns_that_fit([names, *prices], width))


def _name_column(board: Board, foot: list[str]) -> TextColumn:
    """Return the signs and names; their shared start is in the heading."""
    from harness.wording.verdicts import STANDING_WORDS

    prefix = common_prefix([row.retriever for row in board.rows])
    names: list[str] = []
    for row in board.rows:
        sign = STANDING_WORDS[row.standing][0] or " "
        names.append(f"{sign} {row.retriever.removeprefix(prefix)}")
    heading = f"{prefix}…" if prefix else ""
    return TextColumn(heading, [*names, *foot], left_aligned=True, wraps=True)


def _score_columns(board: Board, foot: list[str]) -> list[TextColumn]:
    """Return the means and the comparisons; the foot is added to each column."""
    means = ["failed" if row.mean is None else f"{row.mean:.3f}" for row in board.rows]
    columns = [TextColumn("mean", [*means, *foot], drop_rank=1)]
    if board.has_pairs:
        columns += _pair_columns(board, foot)
    return columns


def _pair_columns(board: Board, foot: list[str]) -> list[TextColumn]:
    """Return the columns of the comparisons with the reference."""
    rows = board.rows
    reference = "leader"
    if board.against_baseline:
        is_short = len(board.reference) <= MAX_HEADING_NAME
        reference = board.reference if is_short else "baseline"
    exact = board.shows_exact_p
    differences = [_difference_text(row) for row in rows]
    records = [
        "" if row.wins is None else f"{row.wins:,}–{row.losses:,}" for row in rows
    ]
    p_values = [starred_p_text(row) for row in rows]
    columns = [
        TextColumn(
            f"gap to {reference}\n({percent_text(board.level)} % CI)",
            [*differences, *foot],
            left_aligned=True,
            drop_rank=3,
        ),
        TextColumn("won–lost", [*records, *foot]),
        TextColumn("p\n(mean)" if exact else "p", [*p_values, *foot], drop_rank=2),
    ]
    if exact:
        exact_p = [exact_p_text(row.p_wilcoxon, row.floor) for row in rows]
        columns.append(TextColumn("p\n(Wilcoxon)", [*exact_p, *foot], drop_rank=4))
    return columns


def _difference_text(row: BoardRow) -> str:
    """A difference and its interval."""
    if row.difference is None:
        return ""
    text = f"{row.difference:z.3f}"
    if row.low is not None and row.high is not None:
        text += f" ({row.low:z.3f}, {row.high:z.3f})"
    return with_minus_signs(text)


def starred_p_text(row: BoardRow) -> str:
    """Return an adjusted p, with a star if the choice of one needs no correction."""
    star = "" if row.p_single is None else "*"
    return f"{short_p_text(row.p)}{star}"


def exact_p_text(p: float | None, floor: float | None) -> str:
    """The p of the exact test.

    If the floor, the smallest p that was possible, decides nothing, it is added.

    >>> exact_p_text(0.216, None), exact_p_text(1.0, 0.25)
    ('.216', '1.00 (≥ .250)')
    """
    if floor is None:
        return short_p_text(p)
    return f"{short_p_text(p)} (≥ {short_p_text(floor)})"


def _drawing_column(board: Board, cells: int) -> TextColumn:
    drawings = [
        "" if row.mean is None else _draw_row(row, board, cells) for row in board.rows
    ]
    heading = f"▒ margin {board.margin:g}" if board.margin else ""
    return TextColumn(
        heading, [*drawings, _draw_ruler(board, cells)], left_aligned=True
    )


def _position(value: float, board: Board, cells: int) -> int:
    """Return the cell of a value."""
    low, high = board.axis_range
    return round((value - low) / ((high - low) or 1.0) * (cells - 1))


def _draw_row(row: BoardRow, board: Board, cells: int) -> str:
    """Return the drawing of one difference: ├──■──┤ over the margin ▒ and zero │."""
    line = [" "] * cells
    if board.margin:
        start = -board.margin if board.against_baseline else 0.0
        first = _position(start, board, cells)
        last = _position(board.margin, board, cells)
        for cell in range(first, last + 1):
            line[cell] = "▒"
    line[_position(0.0, board, cells)] = "│"
    if row.difference is not None:
        if row.low is not None and row.high is not None:
            low = _position(row.low, board, cells)
            high = _position(row.high, board, cells)
            interval = ["├", *"─" * (high - low - 1), "┤"]
            line[low : high + 1] = interval[: high - low + 1]
        line[_position(row.difference, board, cells)] = "■"
    return "".join(line)


def _draw_ruler(board: Board, cells: int) -> str:
    """Return the line of numbers below the drawing.

    The nearest to zero come first: a number that has no room is left out.
    """
    from harness.report.charts.axes import round_steps, tick_labels

    low, high = board.axis_range
    max_count = cells // TICK_SPACING
    ticks = round_steps(low, high, max_count)
    while len(ticks) < 3 and high > low:
        max_count += 1
        ticks = round_steps(low, high, max_count)
    labels = dict(zip(ticks, tick_labels(ticks, "-"), strict=True))
    line = [" "] * cells
    for tick in sorted(labels, key=abs):
        label = re.sub(r"\b0\.", ".", labels[tick])
        start = _position(tick, board, cells) - len(label) // 2
        start = max(0, min(cells - len(label), start))
        end = start + len(label)
        if set(line[max(0, start - 1) : end + 1]) == {" "}:
            line[start:end] = label
    return "".join(line)
