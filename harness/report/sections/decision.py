"""The first screen of the page, and its leaderboard as a figure for papers."""

from __future__ import annotations

from harness.report import text
from harness.report.charts import ForestRow
from harness.report.figures import Figure, Section, forest
from harness.report.screen import Screen, context
from harness.report.view import View

PLACE = 10


def section(view: View) -> Section:
    """The verdict, what may change it, the paired leaderboard, and what a choice hangs on."""
    read = context(view)
    screen: Screen = read["screen"]
    drawn = (_figure(view, screen),) if len(screen.board.rows) > 1 else ()
    return Section("decision", "Decision", {"headline": screen.headline, **read}, drawn)


def _figure(view: View, screen: Screen) -> Figure:
    """The paired forest as a figure that stands alone, with the figures of each row beside it."""
    board, name = screen.board, view.names[view.primary].short
    rows = [
        ForestRow(
            row.retriever, row.retriever, row.difference, row.low, row.high, board.n,
            f"{row.wins} / {row.ties} / {row.losses}", beside=f"{row.wins} / {row.ties} / {row.losses}",
        )
        for row in board.rows
        if row.difference is not None
    ]  # fmt: skip
    where = f"ahead of {board.reference}" if board.against_baseline else f"behind {board.reference}"
    differences = "; ".join(f"{row.label} {text.signed(row.difference)}" for row in rows)
    words = (
        "leaderboard",
        f"{name} {where}, with {100 * board.level:g} % intervals; queries better / equal / worse",
        f"Mean paired difference of {name}, {where}: {differences}.",
        f"{name} {where}",
    )
    return forest(words, {"": rows}, board.margin)
