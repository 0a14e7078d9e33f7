"""The leader within slices of the queries.

Every slice has its row, whether or not the retrievers differ more there than elsewhere;
*Where it fails* (`fails`) names only the slices that are shown to differ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from harness.english import percent_text
from harness.evaluation.families import MAX_SLICED_RIVALS
from harness.evaluation.property_slices import (
    PropertySlice,
)
from harness.report.charts.figure import Figure
from harness.report.charts.forest import ForestRow, ForestTexts, forest_figure
from harness.report.charts.strip import StripAxis, fit_strip_axis
from harness.report.escape import shorten_text
from harness.report.numbers import difference_text
from harness.report.palette import GOOD_SHADE, UNDECIDED_SHADE, WORSE_SHADE
from harness.report.query_evidence import pack_json
from harness.report.slice_comparison import (
    SliceComparison,
    SlicePair,
    compare_slices,
    reversed_slices,
    slice_name,
    slice_state,
    view_slices,
)
from harness.report.templates import Section
from harness.report.view import View

MAX_SHOWN_SLICES = 5
"""Rows that are shown at first."""
MAX_FOREST_ROWS = 16
"""Rows of the figure; a longer one cannot be read."""
MAX_CHOSEN_RETRIEVERS = 12
"""Retrievers up to which any two can be chosen."""
SLICE_SHADES = {
    "better": GOOD_SHADE,
    "worse": WORSE_SHADE,
    "undecided": UNDECIDED_SHADE,
}


class SliceLead(NamedTuple):
    """The leader's lead over another on one slice."""

    comparison: SliceComparison
    state: str
    """Its class in the style sheet, without "is-", which sets its colour."""


class SliceTableRow(NamedTuple):
    """One slice of the table."""

    title: str
    queries: int
    leads: tuple[SliceLead, ...]
    """Its lead over each of the other retrievers that are shown."""


@dataclass(frozen=True, slots=True)
class SlicesContext:
    """The section's content."""

    pairs: Sequence[SlicePair]
    axis: StripAxis
    rows: Sequence[SliceTableRow]
    shown_rows: int
    """Rows of the table that are shown at first."""
    sentence: str
    reversals: list[str]
    slice_name: Callable[[SliceComparison], str]
    choices: str
    """The leads of any two retrievers, for the script."""


def slices_section(view: View) -> Section[SlicesContext] | None:
    """The leader against the others in every part of the queries.

    None without parts or others.
    """
    if len(view.retrievers) < 2:
        return None
    slices = view_slices(view)
    if not slices:
        return None
    leader = view.evaluation.leader
    pairs = [
        compare_slices(view, leader, other, slices) for other in view.evaluation.rivals
    ]
    shown_pairs = pairs[:MAX_SLICED_RIVALS]
    reversals: list[str] = []
    for pair in shown_pairs:
        reversals.extend(reversed_slices(view, pair))
    context = SlicesContext(
        pairs=shown_pairs,
        axis=_strip_axis(view, shown_pairs),
        rows=_table_rows(shown_pairs),
        shown_rows=MAX_SHOWN_SLICES,
        sentence=slices_sentence(shown_pairs[0]),
        reversals=reversals,
        slice_name=slice_name,
        choices=_slice_choices(view, slices, pairs),
    )
    return Section("slices", "Slices", context, (_forest_figure(view, shown_pairs),))


def slices_sentence(pair: SlicePair) -> str:
    """Where the leader's lead over the other is largest, and where it is smallest.

    A difference that reads 0.000 is no lead.
    """
    slices = pair.rows[1:]
    largest = max(slices, key=lambda row: row.difference)
    smallest = min(slices, key=lambda row: row.difference)
    lead = difference_text(largest.difference)
    ahead = f"{abs(smallest.difference):.3f}"
    if not float(ahead) and lead == "0.000":
        return f"{pair.a} and {pair.b} score the same on every slice. Exploratory."
    leader = pair.a if smallest.difference >= 0 else pair.b
    outcome = f"{leader} is ahead by {ahead}" if float(ahead) else "both score the same"
    return (
        f"{pair.a} leads {pair.b} most on “{slice_name(largest)}” ({lead}). "
        f"On “{slice_name(smallest)}” {outcome}. Exploratory."
    )


def _table_rows(pairs: Sequence[SlicePair]) -> list[SliceTableRow]:
    """The rows of the table, all queries first."""
    rows: list[SliceTableRow] = []
    for position, row in enumerate(pairs[0].rows):
        leads = [
            SliceLead(pair.rows[position], slice_state(pair.rows[position]))
            for pair in pairs
        ]
        rows.append(
            SliceTableRow(shorten_text(slice_name(row), 48), row.queries, tuple(leads))
        )
    return rows


def _strip_axis(view: View, pairs: Sequence[SlicePair]) -> StripAxis:
    """The scale of all rows and pairs."""
    ends = [0.0]
    for pair in pairs:
        for row in pair.rows:
            ends += [
                end for end in (row.difference, row.low, row.high) if end is not None
            ]
    return fit_strip_axis(ends, view.settings.margin, is_signed=True, max_ticks=4)


def _slice_choices(
    view: View, slices: Sequence[PropertySlice], pairs: Sequence[SlicePair]
) -> str:
    """The leads of any two retrievers, for the script.

    If there are many retrievers, only those of the leader.
    """
    all_pairs = list(pairs)
    if len(view.ranked) <= MAX_CHOSEN_RETRIEVERS:
        for a, b in combinations(view.ranked[1:], 2):
            all_pairs.append(compare_slices(view, a, b, slices))
    rows = [
        [view.ranked.index(pair.a), view.ranked.index(pair.b), _rounded_leads(pair)]
        for pair in all_pairs
    ]
    return pack_json({"retrievers": view.ranked, "pairs": rows})


def _rounded_leads(pair: SlicePair) -> list[list[int | None]]:
    """Each slice's difference and interval in thousandths, as the page prints them."""
    leads: list[list[int | None]] = []
    for row in pair.rows:
        difference = round(1000 * row.difference)
        leads.append([difference, _rounded_end(row.low), _rounded_end(row.high)])
    return leads


def _rounded_end(end: float | None) -> int | None:
    """An end of an interval in thousandths; its sign decides, and so never becomes 0.

    >>> _rounded_end(0.0004), _rounded_end(-0.0124), _rounded_end(0.0)
    (1, -12, 0)
    """
    if end is None:
        return None
    rounded = round(1000 * end)
    if rounded or not end:
        return rounded
    return 1 if end > 0 else -1


def _forest_figure(view: View, pairs: Sequence[SlicePair]) -> Figure:
    """One panel per pair, on one axis."""
    measure = view.names[view.primary].short
    leader = pairs[0].a
    panels: dict[str, list[ForestRow]] = {}
    descriptions: list[str] = []
    for pair in pairs:
        title = f"ahead of {shorten_text(pair.b, 30)}" if len(pairs) > 1 else ""
        panels[title] = [_forest_row(row) for row in pair.rows[:MAX_FOREST_ROWS]]
        differences = [
            f"{slice_name(row)} {difference_text(row.difference)}"
            for row in pair.rows[:MAX_FOREST_ROWS]
        ]
        descriptions.append(f"{pair.b}: {', '.join(differences)}")
    others = ", ".join(pair.b for pair in pairs)
    texts = ForestTexts(
        name="slices",
        title=(
            f"{leader} − {others} in {measure}, by slice, with "
            f"{percent_text(view.settings.level)} % intervals"
        ),
        description=(
            f"Mean difference of each slice, right of zero {leader} is better. "
            f"{'; '.join(descriptions)}."
        ),
        axis_title=f"{measure}: right of 0 {leader} is better",
    )
    return forest_figure(texts, panels, view.settings.margin)


def _forest_row(row: SliceComparison) -> ForestRow:
    short_name = shorten_text(slice_name(row), 48)
    return ForestRow(
        label=f"{short_name} ({row.queries:,})",
        difference=row.difference,
        low=row.low,
        high=row.high,
        queries=row.queries,
        record=f"{row.wins} / {row.ties} / {row.losses}",
        color=SLICE_SHADES[slice_state(row)].light,
    )
