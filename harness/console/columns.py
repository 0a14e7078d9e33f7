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
"""Characters between two columns."""
MIN_NAME_WIDTH = 6
"""The least width with which a column that wraps is counted."""
WRAPPED_WIDTH = 30
"""Width from which on a column wraps in any case."""


class TextColumn(NamedTuple):
    """One column of a table."""

    heading: str
    cells: Sequence[str]
    left_aligned: bool = False
    """Words are at the left, numbers at the right."""
    bold_rows: frozenset[int] = frozenset()
    """Rows that are printed in bold."""
    drop_rank: int = 0
    """If room is short, the column with the highest rank is left out first; 0 stays."""
    wraps: bool = False
    """If room is short, the cells go on in the next line."""

    @property
    def width(self) -> int:
        """Cells of the widest line; Chinese, Japanese and Korean letters take two."""
        return max(map(cell_width, [*self.heading.split("\n"), *self.cells]), default=0)

    def narrowest(self, limit: int) -> int:
        """Cells that the column needs; one that wraps needs at most a limit."""
        return min(self.width, limit) if self.wraps else self.width

    def cell_text(self, row: int) -> Text:
        """The cell of a row, as it is printed."""
        from rich.text import Text

        cell = self.cells[row]
        if not self.left_aligned:
            cell = with_minus_signs(cell)
        return Text(cell, "bold" if row in self.bold_rows else "")


def cell_width(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def measure_heading(measure: str) -> str:
    r"""Return a measure's name in short lines.

    It is broken before the cutoff, and in parameters.

    >>> measure_heading("nDCG(dcg='exp-log2')@10").split("\n")
    ['nDCG(', 'dcg=', "'exp-log2')", '@10']
    """
    return "\n".join(re.split(r"(?=@)|(?<=[(=,])\s*", measure))


def columns_that_fit(columns: Sequence[TextColumn], width: int) -> list[TextColumn]:
    """Return the columns for which there is room; those of rank 0 in any case.

    Columns that wrap, such as names, count with at most half of the width together, and
    the highest ranks are left out first.
    """
    fitting = list(columns)
    wrapping = sum(column.wraps for column in columns)
    limit = max(MIN_NAME_WIDTH, width // 2 // max(1, wrapping))
    while _table_width(fitting, limit) > width:
        droppable = [column for column in fitting if column.drop_rank]
        if not droppable:
            break
        fitting.remove(max(droppable, key=lambda column: column.drop_rank))
    return fitting


def _table_width(columns: Sequence[TextColumn], limit: int) -> int:
    """Return the cells of a table; a column that wraps takes at most a limit."""
    widths = [column.narrowest(limit) for column in columns]
    return sum(widths) + COLUMN_GAP * (len(columns) - 1)


def fit_table(columns: Sequence[TextColumn], width: int) -> Iterator[RenderableType]:
    """Yield the columns for which there is room, and a line that names the others."""
    fitting = columns_that_fit(columns, width)
    yield build_grid(fitting)
    # Heads are broken between words, and within the names of measures.
    omitted = [
        re.sub(r"(?<=[\w%])\n(?=\w)", " ", column.heading).replace("\n", "")
        for column in columns
        if column not in fitting
    ]
    if omitted:
        pronoun = "them" if len(omitted) > 1 else "it"
        yield text_line(
            f"Too wide for this terminal: {join_names(omitted)}. "
            f"A wider one or --json shows {pronoun}.",
            "dim",
        )


def split_table(
    first: TextColumn, others: Sequence[TextColumn], width: int
) -> Iterator[Table]:
    """Yield tables that begin with the same column.

    Each has as many of the others as there is room for, but one at least.
    """
    first_width = first.narrowest(width // 2)
    row = [first]
    row_width = first_width
    for column in others:
        row_width += COLUMN_GAP + column.width
        if len(row) > 1 and row_width > width:
            yield build_grid(row)
            row = [first]
            row_width = first_width + COLUMN_GAP + column.width
        row.append(column)
    yield build_grid(row)


def text_line(text: str, style: str = "") -> Text:
    """Return a line of text; nothing in it is read as markup."""
    from rich.text import Text

    return Text(text, style)


def command_line(command: str) -> Text:
    """Return a command on one line, which can be copied whole."""
    from rich.text import Text

    return Text(command, no_wrap=True, overflow="ignore")


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
        table.add_row(*(column.cell_text(number) for column in columns))
    return table


def with_minus_signs(cell: str) -> str:
    """Numbers with the minus sign of the sentences."""
    return re.sub(r"(?<![\w-])-(?=[\d.])", MINUS_SIGN, cell)
