"""Tables that fit the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from harness.english import MINUS_SIGN, join_names

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

COLUMN_GAP = 2
"""Cells between two columns."""
MIN_NAME_WIDTH = 6
"""Cells of a name that are left in the narrowest terminal."""
WRAPPED_WIDTH = 30
"""Cells from which on a column that holds no names may go on in the next line, too."""


class TextColumn(NamedTuple):
    """One column of a table."""

    heading: str
    cells: Sequence[str]
    left_aligned: bool = False
    """Words are at the left, numbers at the right."""
    bold_rows: frozenset[int] = frozenset()
    """Rows that stand out."""
    drop_rank: int = 0
    """Where the room is short, the highest rank is left out first; 0 stays."""
    wraps: bool = False
    """Where the room is short, the cells go on in the next line."""

    @property
    def width(self) -> int:
        """Cells that the widest line takes; Chinese, Japanese and Korean letters take two."""
        return max(map(cell_width, [*self.heading.split("\n"), *self.cells]), default=0)


def cell_width(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def measure_heading(measure: str) -> str:
    r"""Return a measure's name in short lines: broken before the cutoff, and in parameters.

    >>> measure_heading("nDCG(dcg='exp-log2')@10").split("\n")
    ['nDCG(', 'dcg=', "'exp-log2')", '@10']
    """
    return "\n".join(re.split(r"(?=@)|(?<=[(=,])\s*", measure))


def columns_that_fit(columns: Sequence[TextColumn], width: int) -> list[TextColumn]:
    """Return the columns for which there is room: names get at least half of it, and the highest ranks go first."""
    kept = list(columns)
    names = sum(column.wraps for column in columns)
    limit = max(MIN_NAME_WIDTH, width // 2 // max(1, names))

    def taken() -> int:
        cells = sum(
            min(column.width, limit) if column.wraps else column.width
            for column in kept
        )
        return cells + COLUMN_GAP * (len(kept) - 1)

    while taken() > width and (
        ranked := [column for column in kept if column.drop_rank]
    ):
        kept.remove(max(ranked, key=lambda column: column.drop_rank))
    return kept


def fit_table(columns: Sequence[TextColumn], width: int) -> Iterator[RenderableType]:
    """Yield the columns for which there is room as a table, and a line that names the others."""
    kept = columns_that_fit(columns, width)
    yield build_grid(kept)
    # Heads are broken between words, and within the names of measures.
    if out := [
        re.sub(r"(?<=[\w%])\n(?=\w)", " ", one.heading).replace("\n", "")
        for one in columns
        if one not in kept
    ]:
        shows = f"A wider one or --json shows {'them' if out[1:] else 'it'}."
        yield text_line(
            f"Too wide for this terminal: {join_names(out)}. {shows}", "dim"
        )


def split_table(
    first: TextColumn, others: Sequence[TextColumn], width: int
) -> Iterator[Table]:
    """Yield tables that begin with the same column, each with as many of the others as there is room for."""
    begin = min(first.width, width // 2) if first.wraps else first.width
    row, taken = [first], begin
    for column in others:
        taken += COLUMN_GAP + column.width
        if len(row) > 1 and taken > width:
            yield build_grid(row)
            row, taken = [first], begin + COLUMN_GAP + column.width
        row.append(column)
    yield build_grid(row)


def text_line(text: str, style: str = "") -> Text:
    """Return a line of text as it is: nothing in it is read as markup."""
    from rich.text import Text

    return Text(text, style)


def build_grid(columns: Sequence[TextColumn]) -> Table:
    """Return columns as a table: heads over a rule, no frame."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, COLUMN_GAP - 1, 0, 0),
        pad_edge=False,
    )
    for column in columns:
        side: Literal["left", "right"] = "left" if column.left_aligned else "right"
        table.add_column(
            Text(column.heading),
            justify=side,
            overflow="fold",
            vertical="bottom",
            header_style="not bold dim",
            no_wrap=not column.wraps and column.width < WRAPPED_WIDTH,
        )
    for number in range(len(columns[0].cells)):
        cells = (
            with_minus_signs(cell) if not column.left_aligned else cell
            for column in columns
            for cell in [column.cells[number]]
        )
        bold = ("bold" if number in column.bold_rows else "" for column in columns)
        table.add_row(*map(Text, cells, bold))
    return table


def with_minus_signs(cell: str) -> str:
    """Numbers with the minus sign of the sentences."""
    return re.sub(r"(?<![\w-])-(?=[\d.])", MINUS_SIGN, cell)
