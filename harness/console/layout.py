"""Tables that fit the terminal: which columns there is room for, and how far names are shortened."""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

GAP = 2
"""Cells between two columns."""
NARROWEST = 6
"""Cells of a name that are left in the narrowest terminal."""


CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"  # what steers a terminal, or no terminal can show
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]"  # the direction of writing
    "|[\xad\u180e\u2060-\u2065\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"  # what nobody sees
    "|(?<![^\x00-\x7f])[\u200c\u200d]"  # beside other letters they belong to Persian, Indic scripts and emoji
    "|(?<![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])\u200b"  # Thai, Lao, Burmese and Khmer part words by it
)
"""What a reader of a terminal would be led astray by."""


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
    """Where the room is short, the middle of the cells is left out."""

    @property
    def width(self) -> int:
        """Cells that the widest line takes; Chinese, Japanese and Korean letters take two."""
        return max(map(cells_of, [*self.head.split("\n"), *self.cells]), default=0)


def visible(text: str, *, as_json: bool = False) -> str:
    r"""Return a text without control characters: ids, paths and what servers answer could move the cursor, or worse.

    What cannot be seen is shown too, else two ids could look the same. Line feeds and tabs stay.

    Args:
        text: what is shown.
        as_json: whether it is JSON, and has to stay it.

    >>> visible("a\x1b[31mb\u200b")
    'a\\x1b[31mb\\u200b'
    """
    return CONTROL.sub(lambda match: json.dumps(match[0])[1:-1] if as_json else _escaped(match[0]), text)


def _escaped(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def shortened(names: Sequence[str], width: int) -> list[str]:
    """Return names of at most `width` cells; the middle goes, or what else leaves them different.

    >>> shortened(["titan-v1", "text-embedding-3-small-reranked", "text-embedding-3-large-reranked"], 16)
    ['titan-v1', '…-small-reranked', '…-large-reranked']
    """
    for tail in (width // 2, width - 1, 0):
        short = [_cropped(name, width, tail) for name in names]
        if len(set(short)) == len(set(names)):
            return short
    start = len(os.path.commonprefix([name for name in names if cells_of(name) > width]))  # noqa: RUF071 - letters
    return [name if cells_of(name) <= width else _cropped("…" + name[start:], width, 0) for name in names]


def _cropped(name: str, width: int, tail: int) -> str:
    from rich.cells import set_cell_size

    if cells_of(name) <= width:
        return name
    end = name[len(name) - tail :]
    while cells_of(end) > tail:
        end = end[1:]
    return set_cell_size(name, width - 1 - cells_of(end)).rstrip() + "…" + end


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
    names = [column for column in columns if column.name]
    longest = max((column.width for column in names), default=0)
    limit = min(longest, max(NARROWEST, width // 2 // max(1, len(names))))

    def room() -> int:
        taken = sum(min(column.width, limit) if column.name else column.width for column in kept)
        return width - taken - GAP * (len(kept) - 1)

    while room() < 0 and (ranked := [column for column in kept if column.rank]):
        kept.remove(max(ranked, key=lambda column: column.rank))
    while room() < 0 and limit > NARROWEST:
        limit -= 1
    while room() >= len(names) and limit < longest:
        limit += 1
    cells = list(dict.fromkeys(cell for column in names for cell in column.cells))
    short = dict(zip(cells, shortened(cells, limit), strict=True))
    return [c._replace(cells=[short[cell] for cell in c.cells]) if c.name else c for c in kept]


def beside(first: Column, others: Sequence[Column], width: int) -> Iterator[Table]:
    """Yield tables that begin with the same column, each with as many of the others as there is room for."""
    row = [first]
    for column in others:
        if len(row) > 1 and sum(c.width + GAP for c in row) + column.width > width:
            yield grid(row)
            row = [first]
        row.append(column)
    yield grid(row)


def text_line(text: str, style: str = "") -> Text:
    """Return a line of text as it stands: nothing in it is read as markup."""
    from rich.text import Text

    return Text(visible(text), style)


def grid(columns: Sequence[Column]) -> Table:
    """Return columns as a table: heads over a rule, no frame."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, GAP - 1, 0, 0), pad_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "left" if column.left else "right"
        table.add_column(
            Text(visible(column.head)), justify=side, overflow="fold", vertical="bottom", header_style="not bold dim"
        )
    for number in range(len(columns[0].cells)):
        table.add_row(
            *(Text(visible(column.cells[number]), "bold" if number in column.bold else "") for column in columns)
        )
    return table
