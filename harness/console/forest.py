"""The paired leaderboard in letters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.console.columns import (
    COLUMN_GAP,
    TextColumn,
    build_grid,
    columns_that_fit,
    with_minus_signs,
)
from harness.english import common_prefix, short_p_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.board import Board, BoardRow

MIN_CHART_WIDTH = 110
"""Cells of a terminal from which on differences are drawn, too."""
TICK_SPACING = 6
"""Cells from one number below the drawing to the next, or a few more."""
MAX_DRAWING_WIDTH, MIN_DRAWING_WIDTH = 36, 15
"""Cells of the drawing."""


def leaderboard_in_letters(board: Board, *, width: int) -> Iterator[RenderableType]:
    """Yield a line a retriever: sign, mean, difference with its interval, queries won and lost, p, exact Wilcoxon p.

    Args:
        board: of one retriever or more.
        width: cells of the terminal; differences are drawn where there is room, and what does not fit is left out.
    """
    from harness.wording.verdicts import STANDING_WORDS

    rows = board.rows
    beginning = common_prefix([row.retriever for row in rows])
    names = [
        f"{STANDING_WORDS[row.standing][0] or ' '} {row.retriever.removeprefix(beginning)}"
        for row in rows
    ]
    foot = (
        [""] if board.has_pairs and width >= MIN_CHART_WIDTH else []
    )  # beside the numbers below the drawing
    columns = [
        TextColumn(
            f"{beginning}…" if beginning else "",
            [*names, *foot],
            left_aligned=True,
            wraps=True,
        ),
        TextColumn(
            "mean",
            [
                *("failed" if row.mean is None else f"{row.mean:.3f}" for row in rows),
                *foot,
            ],
            drop_rank=1,
        ),
    ]
    if board.has_pairs:
        side = "ahead" if board.against_baseline else "behind"
        records = [
            "" if row.wins is None else f"{row.wins:,}–{row.losses:,}" for row in rows
        ]
        columns += [
            TextColumn(
                f"{side} ({100 * board.level:.3g} % CI)",
                [*map(_difference, rows), *foot],
                left_aligned=True,
                drop_rank=3,
            ),
            TextColumn("won–lost", [*records, *foot]),
            TextColumn(
                "p", [*(short_p_text(row.p) for row in rows), *foot], drop_rank=2
            ),
        ]
        if board.shows_exact_p:
            exact = [exact_p_text(row.p_wilcoxon, row.floor) for row in rows]
            columns.append(TextColumn("Wilcoxon", [*exact, *foot], drop_rank=4))
    kept = columns_that_fit(columns, width)
    if foot:
        taken = sum(
            min(one.width, width // 2) if one.wraps else one.width for one in kept
        )
        cells = min(MAX_DRAWING_WIDTH, width - taken - COLUMN_GAP * len(kept))
        if cells >= MIN_DRAWING_WIDTH:
            drawn = [
                "" if row.mean is None else _drawn(row, board, cells) for row in rows
            ]
            margin = f"▒ margin {board.margin:g}" if board.margin else ""
            kept.append(
                TextColumn(margin, [*drawn, _ruler(board, cells)], left_aligned=True)
            )
    yield build_grid(kept)


def _difference(row: BoardRow) -> str:
    """A difference and its interval."""
    if row.difference is None:
        return ""
    ends = (
        ""
        if row.low is None or row.high is None
        else f" ({row.low:z.3f}, {row.high:z.3f})"
    )
    return with_minus_signs(f"{row.difference:z.3f}{ends}")


def exact_p_text(p: float | None, floor: float | None) -> str:
    """The p of the exact test, with the smallest that it could have been where that decides nothing.

    >>> exact_p_text(0.216, None), exact_p_text(1.0, 0.25)
    ('.216', '1.00 (≥ .250)')
    """
    return (
        short_p_text(p)
        if floor is None
        else f"{short_p_text(p)} (≥ {short_p_text(floor)})"
    )


def _at(value: float, board: Board, cells: int) -> int:
    low, high = board.axis_range
    return round((value - low) / ((high - low) or 1.0) * (cells - 1))


def _drawn(row: BoardRow, board: Board, cells: int) -> str:
    line = [" "] * cells
    zero, margin = _at(0.0, board, cells), board.margin or 0.0
    if margin:
        for place in range(
            _at(-margin if board.against_baseline else 0.0, board, cells),
            _at(margin, board, cells) + 1,
        ):
            line[place] = "▒"
    line[zero] = "│"
    if row.difference is not None:
        if row.low is not None and row.high is not None:
            low, high = _at(row.low, board, cells), _at(row.high, board, cells)
            line[low : high + 1] = ["├", *"─" * (high - low - 1), "┤"][: high - low + 1]
        line[_at(row.difference, board, cells)] = "■"
    return "".join(line)


def _ruler(board: Board, cells: int) -> str:
    """Zero and round values, in points of the measure; zero first, where not all have room."""
    from harness.report.charts.axes import round_steps, tick_labels

    (low, high), line = board.axis_range, [" "] * cells
    most = cells // TICK_SPACING
    while len(ticks := round_steps(low, high, most)) < 3 and high > low:
        most += 1
    for value, number in sorted(
        zip(ticks, tick_labels(ticks, "-"), strict=True), key=lambda tick: abs(tick[0])
    ):
        word = re.sub(r"\b0\.", ".", number)
        start = max(
            0, min(cells - len(word), _at(value, board, cells) - len(word) // 2)
        )
        if all(
            letter == " " for letter in line[max(0, start - 1) : start + len(word) + 1]
        ):
            line[start : start + len(word)] = word
    return "".join(line)
