"""The paired leaderboard in letters: every retriever against the leader or the baseline, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.console.layout import GAP, Column, fitting, grid

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.evaluation.board import Board, BoardRow

ROOMY = 70
"""Cells from which on heads stand in one line."""
LEGEND = ("good", "open", "worse", "better")
"""Standings whose signs are told; the others speak for themselves."""
WIDEST, WANTED, LEAST = 36, 24, 10
"""Cells of the drawing."""


def forest(board: Board, *, width: int) -> Iterator[RenderableType]:
    """Yield a line a retriever: its standing, mean, difference with its interval as a drawing, wins, adjusted p.

    Args:
        board: of one retriever or more.
        width: cells of the terminal; what does not fit is left out from the right, never the drawing and the wins.
    """
    from harness.english import shared_beginning, short_p
    from harness.evaluation.wording import STANDINGS

    rows = board.rows
    beginning = shared_beginning([row.retriever for row in rows])
    names = [f"{STANDINGS[row.standing][0]} {row.retriever.removeprefix(beginning)}" for row in rows]
    means = ["failed" if row.mean is None else f"{row.mean:.3f}" for row in rows]
    legend = "  ".join(" ".join(STANDINGS[one]) for one in LEGEND if any(row.standing == one for row in rows))
    head = "\n".join(filter(None, (legend, f"{beginning}…" if beginning else "")))
    columns = [
        Column(head, [*names, ""], left=True, name=True),
        Column("mean", [*means, ""], rank=1),
    ]
    if len(rows) > 1:
        records = ["" if row.wins is None else f"{row.wins}/{row.ties}/{row.losses}" for row in rows]
        ends = [
            "" if row.difference is None else f"{row.difference:.3f}" + (
                "" if row.low is None or row.high is None else f" ({row.low:.3f} to {row.high:.3f})"
            )
            for row in rows
        ]  # fmt: skip
        beside = [
            Column("queries won/tied/lost" if width >= ROOMY else "won/\ntied/\nlost", [*records, ""]),
            Column("adj. p", [*(short_p(row.p) for row in rows), ""], rank=2),
            Column(f"by ({100 * board.level:.3g} %)", [*ends, ""], left=True, rank=3),
        ]
        least = Column("", [" " * WANTED])
        kept = fitting([*columns, least, *beside], width)
        taken = sum(min(one.width, width // 2) if one.name else one.width for one in kept if one is not least)
        cells = max(LEAST, min(WIDEST, width - taken - GAP * len(kept)))
        place = kept.index(least)
        kept[place] = Column(
            _head(board, width), [*(_drawn(row, board, cells) for row in rows), _ruler(board, cells)], left=True
        )
        columns = kept
    yield grid(columns)


def _head(board: Board, width: int) -> str:
    if width < ROOMY:
        return "ahead" if board.against_baseline else "behind"
    if not board.margin:
        return f"ahead of {board.reference}" if board.against_baseline else "behind the leader"
    where = f"ahead of {board.reference}" if board.against_baseline else "behind"
    return f"{where} (▒ margin {board.margin:g})"


def _at(value: float, board: Board, cells: int) -> int:
    low, high = board.span
    return round((value - low) / ((high - low) or 1.0) * (cells - 1))


def _drawn(row: BoardRow, board: Board, cells: int) -> str:
    line = [" "] * cells
    zero, margin = _at(0.0, board, cells), board.margin or 0.0
    if margin:
        for place in range(
            _at(-margin if board.against_baseline else 0.0, board, cells), _at(margin, board, cells) + 1
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
    """Its ends and zero, in points of the measure."""
    line = [" "] * cells
    ends = (value for value in board.span if round(value, 2))  # nearer to 0 than a figure shows, it is no "-0"
    for value in sorted({*ends, 0.0}, key=abs):
        word = f"{value:.2f}".replace("0.", ".").replace(".00", "0") if value else "0"
        start = max(0, min(cells - len(word), _at(value, board, cells) - len(word) // 2))
        if all(letter == " " for letter in line[max(0, start - 1) : start + len(word) + 1]):
            line[start : start + len(word)] = word
    return "".join(line)
