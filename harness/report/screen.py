"""The first screen: the verdict, what may change it, and the paired leaderboard, for the page and for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from harness.english import shared_beginning
from harness.evaluation.board import Board, BoardRow, board_of, said_of
from harness.evaluation.wording import STANDINGS
from harness.report.axes import numbers, steps
from harness.report.receipt import Clause, alerts, choice, facts, first_caveats
from harness.report.view import View


class Screen(NamedTuple):
    """What the first screen says, in its order."""

    headline: str
    lead: str
    """How far the first is ahead; may be empty."""
    notes: tuple[str, ...]
    """What to do next, and what to know of the tests; a line each."""
    alerts: tuple[Clause, ...]
    board: Board
    beginning: str
    """What all names begin with, which the head says once; "" for nothing."""
    facts: tuple[Clause, ...]
    failed: Mapping[str, str]
    standings: Mapping[str, tuple[str, str]] = STANDINGS

    def short(self, name: str) -> str:
        """A name without what all begin with."""
        return name.removeprefix(self.beginning)

    @property
    def signs(self) -> list[tuple[str, str]]:
        """The signs of the leaderboard, each with its word; a row without a mean says its own."""
        return list(dict.fromkeys(self.standings[row.standing] for row in self.board.rows if row.mean is not None))

    @property
    def axis(self) -> tuple[float, float]:
        """The ends of the forest's axis, with some room."""
        low, high = self.board.span
        room = (high - low) * 0.04 or 0.05
        return low - room, high + room


def screen_of(view: View) -> Screen:
    """Put the first screen together."""
    said, beginning = said_of(view.evaluation), shared_beginning(list(view.conclusion.means))

    def short(sentence: str) -> str:
        # The head of the leaderboard says once what all names begin with.
        spoken = view.spoken(sentence)
        return spoken.replace(beginning, "…") if beginning else spoken

    return Screen(
        headline=short(said.headline),
        lead=short(said.lead),
        notes=(*map(short, said.following), *choice(view), *first_caveats(view)),
        alerts=tuple(alert._replace(text=short(alert.text)) for alert in alerts(view)),
        board=board_of(view.evaluation),
        beginning=beginning,
        facts=tuple(clause._replace(text=short(clause.text)) for clause in facts(view)),
        failed=view.evaluation.failed,
    )


def strip(row: BoardRow, screen: Screen) -> Markup:
    """One row of the forest: the margin as a band, zero, and the difference on its interval."""
    board, (start, end) = screen.board, screen.axis

    def at(value: float) -> str:
        return f"{100 * (value - start) / (end - start):.2f}%"

    def wide(low: float, high: float) -> str:
        return f"{100 * (high - low) / (end - start):.2f}%"

    margin = board.margin or 0.0
    low = -margin if board.against_baseline else 0.0
    band = Markup('<rect class="band" x="{}" width="{}" y="0" height="100%"/>').format(at(low), wide(low, margin))
    parts = [band if margin else "", Markup('<line class="zero" x1="{0}" x2="{0}" y1="0" y2="100%"/>').format(at(0.0))]
    if row.difference is not None:
        if row.low is not None and row.high is not None:
            span = Markup('<line class="span" x1="{}" x2="{}" y1="50%" y2="50%"/>')
            cap = Markup('<line class="span" x1="{0}" x2="{0}" y1="30%" y2="70%"/>')
            parts += [span.format(at(row.low), at(row.high)), cap.format(at(row.low)), cap.format(at(row.high))]
        parts.append(Markup('<circle cx="{}" cy="50%" r="5"/>').format(at(row.difference)))
    return Markup('<svg class="strip" aria-hidden="true" focusable="false">{}</svg>').format(Markup("").join(parts))


def ruler(screen: Screen) -> Markup:
    """The forest's axis: round values below the rows."""
    start, end = screen.axis
    ticks = steps(start, end, 5)
    word = Markup('<text x="{:.2f}%" y="12" text-anchor="middle">{}</text>')
    words = [
        word.format(100 * (v - start) / (end - start), shown)
        for v, shown in zip(ticks, numbers(ticks, "-"), strict=True)
    ]
    return Markup('<svg class="ruler" aria-hidden="true" focusable="false">{}</svg>').format(Markup("").join(words))


def context(view: View) -> dict[str, Any]:
    """What `board.html` reads."""
    return {"screen": screen_of(view), "strip": strip, "ruler": ruler}
