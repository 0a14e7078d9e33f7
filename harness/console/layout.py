"""Tables that fit the terminal, and the paired leaderboard in letters: which columns there is room for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from harness.english import MINUS, join, shared_beginning, short_p

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from harness.evaluation.evaluation import Board, BoardRow


GAP = 2
"""Cells between two columns."""
NARROWEST = 6
"""Cells of a name that are left in the narrowest terminal."""
LONG = 30
"""Cells from which on a column that holds no names may go on in the next line, too."""


class Column(NamedTuple):
    """One column of a table."""

    head: str
    cells: Sequence[str]
    left: bool = False
    """Words are at the left, numbers at the right."""
    bold: frozenset[int] = frozenset()
    """Rows that stand out."""
    rank: int = 0
    """Where the room is short, the highest rank is left out first; 0 stays."""
    name: bool = False
    """Where the room is short, the cells go on in the next line."""

    @property
    def width(self) -> int:
        """Cells that the widest line takes; Chinese, Japanese and Korean letters take two."""
        return max(map(cells_of, [*self.head.split("\n"), *self.cells]), default=0)


def cells_of(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def head_of(measure: str) -> str:
    r"""Return a measure's name in short lines: broken before the cutoff, and in parameters.

    >>> head_of("nDCG(dcg='exp-log2')@10").split("\n")
    ['nDCG(', 'dcg=', "'exp-log2')", '@10']
    """
    return "\n".join(re.split(r"(?=@)|(?<=[(=,])\s*", measure))


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """Return the columns for which there is room: names get at least half of it, and the highest ranks go first."""
    kept = list(columns)
    names = sum(column.name for column in columns)
    limit = max(NARROWEST, width // 2 // max(1, names))

    def taken() -> int:
        cells = sum(
            min(column.width, limit) if column.name else column.width for column in kept
        )
        return cells + GAP * (len(kept) - 1)

    while taken() > width and (ranked := [column for column in kept if column.rank]):
        kept.remove(max(ranked, key=lambda column: column.rank))
    return kept


def fitted(columns: Sequence[Column], width: int) -> Iterator[RenderableType]:
    """Yield the columns for which there is room as a table, and a line that names the others."""
    kept = fitting(columns, width)
    yield grid(kept)
    # Heads are broken between words, and within the names of measures.
    if out := [
        re.sub(r"(?<=[\w%])\n(?=\w)", " ", one.head).replace("\n", "")
        for one in columns
        if one not in kept
    ]:
        shows = f"A wider one or --json shows {'them' if out[1:] else 'it'}."
        yield text_line(f"Too wide for this terminal: {join(out)}. {shows}", "dim")


def side_by_side(
    first: Column, others: Sequence[Column], width: int
) -> Iterator[Table]:
    """Yield tables that begin with the same column, each with as many of the others as there is room for."""
    begin = min(first.width, width // 2) if first.name else first.width
    row, taken = [first], begin
    for column in others:
        taken += GAP + column.width
        if len(row) > 1 and taken > width:
            yield grid(row)
            row, taken = [first], begin + GAP + column.width
        row.append(column)
    yield grid(row)


def text_line(text: str, style: str = "") -> Text:
    """Return a line of text as it is: nothing in it is read as markup."""
    from rich.text import Text

    return Text(text, style)


def grid(columns: Sequence[Column]) -> Table:
    """Return columns as a table: heads over a rule, no frame."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, padding=(0, GAP - 1, 0, 0), pad_edge=False
    )
    for column in columns:
        side: Literal["left", "right"] = "left" if column.left else "right"
        table.add_column(
            Text(column.head),
            justify=side,
            overflow="fold",
            vertical="bottom",
            header_style="not bold dim",
            no_wrap=not column.name and column.width < LONG,
        )
    for number in range(len(columns[0].cells)):
        cells = (
            _number(cell) if not column.left else cell
            for column in columns
            for cell in [column.cells[number]]
        )
        bold = ("bold" if number in column.bold else "" for column in columns)
        table.add_row(*map(Text, cells, bold))
    return table


def _number(cell: str) -> str:
    """Numbers with the minus sign of the sentences."""
    return re.sub(r"(?<![\w-])-(?=[\d.])", MINUS, cell)


CHART = 110
"""Cells of a terminal from which on differences are drawn, too."""
TICK = 6
"""Cells from one number below the drawing to the next, or a few more."""
WIDEST, LEAST = 36, 15
"""Cells of the drawing."""


def forest(board: Board, *, width: int) -> Iterator[RenderableType]:
    """Yield a line a retriever: sign, mean, difference with its interval, queries won and lost, p, exact Wilcoxon p.

    Args:
        board: of one retriever or more.
        width: cells of the terminal; differences are drawn where there is room, and what does not fit is left out.
    """
    from harness.evaluation.wording import STANDINGS

    rows = board.rows
    beginning = shared_beginning([row.retriever for row in rows])
    names = [
        f"{STANDINGS[row.standing][0] or ' '} {row.retriever.removeprefix(beginning)}"
        for row in rows
    ]
    foot = (
        [""] if board.paired and width >= CHART else []
    )  # beside the numbers below the drawing
    columns = [
        Column(
            f"{beginning}…" if beginning else "", [*names, *foot], left=True, name=True
        ),
        Column(
            "mean",
            [
                *("failed" if row.mean is None else f"{row.mean:.3f}" for row in rows),
                *foot,
            ],
            rank=1,
        ),
    ]
    if board.paired:
        side = "ahead" if board.against_baseline else "behind"
        records = [
            "" if row.wins is None else f"{row.wins:,}–{row.losses:,}" for row in rows
        ]
        columns += [
            Column(
                f"{side} ({100 * board.level:.3g} % CI)",
                [*map(_difference, rows), *foot],
                left=True,
                rank=3,
            ),
            Column("won–lost", [*records, *foot]),
            Column("p", [*(short_p(row.p) for row in rows), *foot], rank=2),
        ]
        if board.exact:
            exact = [exact_p(row.p_wilcoxon, row.floor) for row in rows]
            columns.append(Column("Wilcoxon", [*exact, *foot], rank=4))
    kept = fitting(columns, width)
    if foot:
        taken = sum(
            min(one.width, width // 2) if one.name else one.width for one in kept
        )
        cells = min(WIDEST, width - taken - GAP * len(kept))
        if cells >= LEAST:
            drawn = [
                "" if row.mean is None else _drawn(row, board, cells) for row in rows
            ]
            margin = f"▒ margin {board.margin:g}" if board.margin else ""
            kept.append(Column(margin, [*drawn, _ruler(board, cells)], left=True))
    yield grid(kept)


def _difference(row: BoardRow) -> str:
    """A difference and its interval."""
    if row.difference is None:
        return ""
    ends = (
        ""
        if row.low is None or row.high is None
        else f" ({row.low:z.3f}, {row.high:z.3f})"
    )
    return _number(f"{row.difference:z.3f}{ends}")


def exact_p(p: float | None, floor: float | None) -> str:
    """The p of the exact test, with the smallest that it could have been where that decides nothing.

    >>> exact_p(0.216, None), exact_p(1.0, 0.25)
    ('.216', '1.00 (≥ .250)')
    """
    return short_p(p) if floor is None else f"{short_p(p)} (≥ {short_p(floor)})"


def _at(value: float, board: Board, cells: int) -> int:
    low, high = board.span
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
    from harness.report.axes import numbers, steps

    (low, high), line = board.span, [" "] * cells
    most = cells // TICK
    while len(ticks := steps(low, high, most)) < 3 and high > low:
        most += 1
    for value, number in sorted(
        zip(ticks, numbers(ticks, "-"), strict=True), key=lambda tick: abs(tick[0])
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
