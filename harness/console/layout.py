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
    """Words stand at the left, numbers at the right."""
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
        cells = sum(min(column.width, limit) if column.name else column.width for column in kept)
        return cells + GAP * (len(kept) - 1)

    while taken() > width and (ranked := [column for column in kept if column.rank]):
        kept.remove(max(ranked, key=lambda column: column.rank))
    return kept


def fitted(columns: Sequence[Column], width: int) -> Iterator[RenderableType]:
    """Yield the columns for which there is room as a table, and a line that names the others."""
    kept = fitting(columns, width)
    yield grid(kept)
    # Heads are broken between words, and within the names of measures.
    if out := [re.sub(r"(?<=[\w%])\n(?=\w)", " ", one.head).replace("\n", "") for one in columns if one not in kept]:
        shows = f"A wider one or --json shows {'them' if out[1:] else 'it'}."
        yield text_line(f"Too wide for this terminal: {join(out)}. {shows}", "dim")


def side_by_side(first: Column, others: Sequence[Column], width: int) -> Iterator[Table]:
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
    """Return a line of text as it stands: nothing in it is read as markup."""
    from rich.text import Text

    return Text(text, style)


def grid(columns: Sequence[Column]) -> Table:
    """Return columns as a table: heads over a rule, no frame."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, GAP - 1, 0, 0), pad_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "left" if column.left else "right"
        table.add_column(
            Text(column.head), justify=side, overflow="fold", vertical="bottom", header_style="not bold dim",
            no_wrap=not column.name and column.width < LONG,
        )  # fmt: skip
    for number in range(len(columns[0].cells)):
        cells = (_number(cell) if not column.left else cell for column in columns for cell in [column.cells[number]])
        bold = ("bold" if number in column.bold else "" for column in columns)
        table.add_row(*map(Text, cells, bold))
    return table


def _number(cell: str) -> str:
    """Numbers with the minus sign of the sentences."""
    return re.sub(r"(?<![\w-])-(?=[\d.])", MINUS, cell)


ROOMY, WIDE = 70, 100
"""Cells from which on heads stand in one line, without and with the p of two tests."""
LEGEND = ("good", "open", "same", "worse", "better")
"""Standings whose signs are told; the others speak for themselves."""
LEGEND_ROOM = 20
"""Cells that they may take in one line where all names are shorter."""
TICK = 6
"""Cells from one number below the drawing to the next, or a few more."""
WIDEST, WANTED, NARROW, LEAST = 36, 24, 15, 10
"""Cells of the drawing; the third beside the p of two tests."""


def forest(board: Board, *, width: int) -> Iterator[RenderableType]:
    """Yield a line a retriever: its standing, mean, difference with its interval as a drawing, wins, adjusted p.

    Args:
        board: of one retriever or more.
        width: cells of the terminal; what does not fit is left out from the right, never the drawing and the wins.
    """
    from harness.evaluation.wording import STANDINGS

    rows = board.rows
    beginning = shared_beginning([row.retriever for row in rows])
    names = [f"{STANDINGS[row.standing][0]} {row.retriever.removeprefix(beginning)}" for row in rows]
    means = ["failed" if row.mean is None else f"{row.mean:.3f}" for row in rows]
    signs = [" ".join(STANDINGS[one]) for one in LEGEND if any(row.standing == one for row in rows)]
    legend = _lines(signs, max(LEGEND_ROOM, *map(cells_of, names)))
    head = "\n".join([*legend, *([f"{beginning}…"] if beginning else [])])
    foot = [""] if board.paired else []  # beside the numbers below the drawing
    columns = [
        Column(head, [*names, *foot], left=True, name=True),
        Column("mean", [*means, *foot], rank=1),
    ]
    if board.paired:
        records = ["" if row.wins is None else f"{row.wins:,}/{row.ties:,}/{row.losses:,}" for row in rows]
        ends = [
            "" if row.difference is None else f"{row.difference:z.3f}" + (
                "" if row.low is None or row.high is None else f" ({row.low:z.3f} to {row.high:z.3f})"
            )
            for row in rows
        ]  # fmt: skip
        # Where the first head takes two lines this one may, and the columns beside it have more room.
        record = "queries\nwon/tied/lost" if "\n" in head or (board.exact and width < WIDE) else "queries won/tied/lost"
        beside = [
            Column(record if width >= ROOMY else "won/\ntied/\nlost", [*records, ""]),
            Column("adj. p", [*(short_p(row.p) for row in rows), ""], rank=2),
            *(
                [Column("Wilcoxon", [*(exact_p(row.p_wilcoxon, row.floor) for row in rows), ""], rank=3)]
                if board.exact
                else []
            ),
            Column(f"by ({100 * board.level:.3g} %)", [*ends, ""], left=True, rank=4),
        ]
        least = Column("", [" " * (NARROW if board.exact else WANTED)])
        kept = fitting([*columns, least, *beside], width)
        taken = sum(min(one.width, width // 2) if one.name else one.width for one in kept if one is not least)
        cells = max(LEAST, min(WIDEST, width - taken - GAP * len(kept)))
        place = kept.index(least)
        kept[place] = Column(
            _head(board, width, cells),
            [*("" if row.mean is None else _drawn(row, board, cells) for row in rows), _ruler(board, cells)],
            left=True,
        )
        columns = kept
    yield grid(columns)


def exact_p(p: float | None, floor: float | None) -> str:
    """The p of the exact test, with the smallest that it could have been where that decides nothing.

    >>> exact_p(0.216, None), exact_p(1.0, 0.25)
    ('.216', '1.00 (≥ .250)')
    """
    return short_p(p) if floor is None else f"{short_p(p)} (≥ {short_p(floor)})"


def _head(board: Board, width: int, cells: int) -> str:
    """What is drawn, in no more cells than the drawing takes: in two lines, else in a word."""
    short = "ahead" if board.against_baseline else "behind"
    margin = f"(▒ margin {board.margin:g})" if board.margin else ""
    where = f"ahead of {board.reference}" if board.against_baseline else short if margin else "behind the leader"
    heads = (f"{where} {margin}".rstrip(), f"{where}\n{margin}".rstrip())
    return next((head for head in heads if width >= ROOMY and Column(head, ()).width <= cells), short)


def _lines(words: Sequence[str], room: int) -> list[str]:
    """Words side by side, in as few lines as they fit into."""
    lines: list[str] = []
    for word in words:
        if lines and cells_of(f"{lines[-1]}  {word}") <= room:
            lines[-1] += f"  {word}"
        else:
            lines.append(word)
    return lines


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
    """Zero and round values, in points of the measure; zero first, where not all have room."""
    from harness.report.axes import numbers, steps

    (low, high), line = board.span, [" "] * cells
    most = cells // TICK
    while len(ticks := steps(low, high, most)) < 3 and high > low:
        most += 1
    for value, number in sorted(zip(ticks, numbers(ticks, "-"), strict=True), key=lambda tick: abs(tick[0])):
        word = re.sub(r"\b0\.", ".", number)
        start = max(0, min(cells - len(word), _at(value, board, cells) - len(word) // 2))
        if all(letter == " " for letter in line[max(0, start - 1) : start + len(word) + 1]):
            line[start : start + len(word)] = word
    return "".join(line)
