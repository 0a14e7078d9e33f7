"""Rows of events; some of them are labels.

The conditions of `where` say which rows are ("click", say). `event_kinds` recognises a
column of events that no condition names, so that a problem can ask for one.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.dataset.cell_paths import MISSING_VALUE
from harness.dataset.columns import Columns
from harness.dataset.placed_row import PlacedRow
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row import Row
from harness.dataset.usual_names import normalised_name
from retrievers.errors import did_you_mean
from retrievers.remedy import Option, Remedy, Setting, compose_remedy

EVENT_NAMES = (
    "action",
    "actionname",
    "actiontype",
    "event",
    "eventname",
    "eventtype",
    "interaction",
    "interactiontype",
    "behavior",
    "behaviour",
)
"""Names of columns that say what happened."""
SHOWN_WORDS = (
    "view",
    "impression",
    "shown",
    "show",
    "display",
    "displayed",
    "exposure",
    "render",
    "seen",
    "served",
    "skip",
    "scroll",
    "hover",
)
"""Names of events that happen to every document that a system returns."""
CHOSEN_WORDS = (
    "click",
    "clicked",
    "tap",
    "select",
    "selected",
    "open",
    "opened",
    "download",
    "purchase",
    "purchased",
    "buy",
    "bought",
    "cart",
    "like",
    "liked",
    "save",
    "saved",
    "bookmark",
    "conversion",
)
"""Names of events that happen to a document that a person chooses."""
MAX_SHOWN_KINDS = 5
"""Kinds of events, at most, that a message shows: the most frequent."""
MAX_KIND_WORDS = 4
"""Words, at most, in the name of an event: a longer value is a text."""


def list_label_rows(rows: Iterable[PlacedRow], columns: Columns) -> Iterator[PlacedRow]:
    """Yield the rows that meet all conditions; it is a problem if none does."""
    if not columns.where:
        yield from rows
        return
    counts_by_column: dict[str, Counter[str]] = {
        column: Counter() for column in columns.where
    }
    last_row: PlacedRow | None = None
    any_label = False
    for row in rows:
        last_row = row
        for column, counts in counts_by_column.items():
            cell = row.row.value(column, MISSING_VALUE)
            if cell is not MISSING_VALUE:
                counts[str(cell)] += 1
        if columns.is_label_row(row.row):
            any_label = True
            yield row
    if last_row is not None and not any_label:
        _add_unmet_condition(last_row, columns, counts_by_column)


def choose_label_rows(
    rows: Sequence[Row],
    conditions: Mapping[str, tuple[str, ...]],
    where: str,
    problems: ReadProblems,
) -> list[Row]:
    """Return the rows of a table of labels that are labels.

    Args:
        rows: of the table.
        conditions: column -> the values of rows that are labels; empty if all are.
        where: the table's place in a message.
        problems: takes the problem of events of several kinds without a condition.
    """
    if conditions:
        columns = Columns(where=conditions)
        placed_rows = [PlacedRow(row, columns, problems) for row in rows]
        return [placed.row for placed in list_label_rows(placed_rows, columns)]
    for column in rows[0].cells if rows else ():
        kinds = event_kinds(str(column), [row.cells.get(column) for row in rows])
        if kinds:
            problems.add(
                where,
                f"{column!r} has {kinds}, and each of these rows would be a label",
                f'say which are: where={{"{column}": "click"}}, or several in a list',
            )
    return list(rows)


def _add_unmet_condition(
    row: PlacedRow,
    columns: Columns,
    counts_by_column: dict[str, Counter[str]],
) -> None:
    """Add the problem that no row meets all conditions, or has a column of one."""
    for column, counts in counts_by_column.items():
        if not counts:
            remedy = did_you_mean(column, map(str, row.row.cells))
            row.problems.add("dataset.where", f"no row has a column {column!r}", remedy)
            return
    values = " and ".join(
        f"{column} = {' or '.join(map(repr, wanted))}"
        for column, wanted in columns.where.items()
    )
    kinds = "; ".join(
        f"{column!r} has {kinds_text(counts)}"
        for column, counts in counts_by_column.items()
    )
    row.problems.add("dataset.where", f"no row has {values}", kinds)


def event_kinds(column: str, cells: Sequence[Any]) -> str:
    """Return the kinds of events in a column that nothing uses; empty if it has none.

    With a usual name a column needs two kinds, or one that happens to every document
    shown; with another name it needs one such kind and one of documents chosen.

    >>> event_kinds("action_name", ["view", "click", "view"])
    "'view' (2), 'click' (1)"
    >>> event_kinds("action_name", ["click"]), event_kinds("day", ["mon", "tue"])
    ('', '')
    >>> event_kinds("type", ["click", "view"]), event_kinds("type", ["web", "click"])
    ("'click' (1), 'view' (1)", '')
    """
    counts = Counter(str(cell) for cell in cells)
    is_shown = _any_kind_has(counts, SHOWN_WORDS)
    if normalised_name(column) in EVENT_NAMES:
        return kinds_text(counts) if is_shown or len(counts) > 1 else ""
    is_event = is_shown and _any_kind_has(counts, CHOSEN_WORDS)
    return kinds_text(counts) if is_event else ""


def _any_kind_has(counts: Counter[str], words: Sequence[str]) -> bool:
    """Whether a value is a short name with one of some words."""
    for kind in counts:
        parts = kind.casefold().replace("-", "_").replace(" ", "_").split("_")
        if len(parts) <= MAX_KIND_WORDS and not set(words).isdisjoint(parts):
            return True
    return False


def kinds_text(counts: Counter[str]) -> str:
    """Return values with how often each is seen, the most frequent first."""
    return ", ".join(
        f"{kind!r} ({count:,})" for kind, count in counts.most_common(MAX_SHOWN_KINDS)
    )


def where_declaration(column: str, kind: str) -> Remedy:
    """Return how an experiment and an option choose rows of one kind.

    >>> str(where_declaration("action_name", "click"))
    'where = { action_name = "click" } (--where action_name=click)'
    """
    return compose_remedy(
        Setting(column, kind, "where"),
        Option(f"--where {shlex.quote(f'{column}={kind}')}"),
    )
