"""The leader within slices of the queries.

Every slice has its row, whether or not the retrievers differ more there than elsewhere;
*Where it fails* (`fails`) names only the slices that are shown to differ.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from harness.english import percent_text
from harness.evaluation.families import MAX_SLICED_RIVALS
from harness.evaluation.property_slices import (
    FIELD_PREFIX,
    PropertySlice,
    SliceName,
    slices_of_pair,
)
from harness.evaluation.verdict import TestRow
from harness.records import DOCUMENT_LENGTH, QUERY_LENGTH, RAREST_WORD
from harness.report.charts.figure import Figure
from harness.report.charts.forest import ForestRow, ForestTexts, forest_figure
from harness.report.charts.strip import StripAxis, fit_strip_axis
from harness.report.escape import shorten_text
from harness.report.numbers import difference_text, number_text, power_p_text
from harness.report.palette import GOOD_SHADE, UNDECIDED_SHADE, WORSE_SHADE
from harness.report.query_evidence import pack_json
from harness.report.templates import Section
from harness.report.view import View, main_rival
from harness.scoring.scores import QueryMask
from harness.stats.differences import SCORE_TOLERANCE, paired_differences
from harness.stats.intervals import mean, student_interval

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
ALL_QUERIES = "all queries"


class SliceComparison(NamedTuple):
    """One retriever against another within one part of the queries."""

    family: str
    """The property or field that divides the queries; "" for all queries."""
    slice: str
    queries: int
    weight: float
    """The sum of the query weights; their number if all weights are equal."""
    wins: int
    """Queries on which the first scores higher."""
    ties: int
    losses: int
    difference: float
    """Mean of the first minus mean of the second."""
    low: float | None
    """Both ends are None if no interval can be estimated."""
    high: float | None
    p_adjusted: float | None = None
    """Corrected p of the slice against the other queries; None without a test."""
    differs: bool = False
    """Whether that test shows that the slice differs from the other queries."""


class SlicePair(NamedTuple):
    """The leader against another, slice by slice."""

    a: str
    b: str
    rows: tuple[SliceComparison, ...]
    """All queries first."""


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


def slice_state(row: SliceComparison) -> str:
    """The colour of a slice: it follows its own interval."""
    if row.low is None or row.high is None or row.low <= 0 <= row.high:
        return "undecided"
    return "better" if row.low > 0 else "worse"


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


def view_slices(view: View) -> list[PropertySlice]:
    """Both sides of every slice of the shown pairs, the clearest first.

    That is by the tests of the leader against its first rival.
    """
    rivals = view.evaluation.rivals[:MAX_SLICED_RIVALS]
    leader = view.evaluation.leader
    slices = slices_of_pair(
        [view.query(i).query for i in range(view.n)],
        view.results.query_properties,
        view.results.manifest,
        pair=(leader, *rivals),
        cluster=view.settings.cluster,
    )
    tests = _slice_tests(view, leader, rivals[0])
    p_values = {name: row.p_adjusted for name, row in tests.items()}
    slices.sort(key=lambda group: p_values.get(_row_name(group.name), 1.0))
    sides: list[PropertySlice] = []
    for property_slice in slices:
        sides += property_slice.sides
    return sides


class RowName(NamedTuple):
    """How tests.csv names a slice."""

    family: str
    slice: str


def _row_name(name: SliceName) -> RowName:
    return RowName(name.property_name, name.label)


def compare_slices(
    view: View, a: str, b: str, slices: Sequence[PropertySlice]
) -> SlicePair:
    """One pair over all queries and within every slice.

    Slices of another pair than that of *Where it fails* are shown to differ only if one
    of its slices is, so that of pure noise the whole page speaks as rarely as one pair.
    """
    tests = _slice_tests(view, a, b)
    row_names = [_row_name(side.name) for side in slices]
    is_main = (a, b) == (view.evaluation.leader, main_rival(view))
    may_show = is_main or _main_pair_differs(view, row_names)
    everything = np.ones(view.n, dtype=np.bool_)
    rows = [compare_slice(view, (a, b), everything, RowName("", ALL_QUERIES))]
    for side, row_name in zip(slices, row_names, strict=True):
        row = compare_slice(view, (a, b), side.mask, row_name)
        test = tests.get(row_name)
        if test is not None:
            row = row._replace(
                p_adjusted=test.p_adjusted,
                differs=may_show and _is_shown(view, test),
            )
        rows.append(row)
    return SlicePair(a, b, tuple(rows))


def _main_pair_differs(view: View, row_names: Sequence[RowName]) -> bool:
    """Whether a slice of the pair of *Where it fails* is shown to differ."""
    tests = _slice_tests(view, view.evaluation.leader, main_rival(view))
    slice_tests = [tests[row_name] for row_name in row_names if row_name in tests]
    return any(_is_shown(view, test) for test in slice_tests)


def _is_shown(view: View, test: TestRow) -> bool:
    """Whether a slice is shown to differ from the other queries."""
    settings = view.settings
    may_show = settings.judged_by_people and not settings.alpha_spent
    return may_show and test.p_adjusted <= settings.alpha


def compare_slice(
    view: View, pair: tuple[str, str], mask: QueryMask, name: RowName
) -> SliceComparison:
    """One pair within some of the queries.

    Args:
        view: with the scores.
        pair: of retrievers.
        mask: (n,) which queries.
        name: the family, and the slice.
    """
    first, second = pair
    scores = view.values_by_measure[view.primary]
    # A mask keeps the order of the queries, which is also that of the units below.
    differences = paired_differences(scores[first][mask], scores[second][mask])
    units = view.scores.select_queries(mask).units
    queries = int(mask.sum())
    interval = student_interval(
        differences.values,
        view.settings.level,
        bounds=view.scores.difference_range(view.scores.primary),
        units=units,
    )
    return SliceComparison(
        family=name.family,
        slice=name.slice,
        queries=queries,
        weight=float(units.totals.sum()),
        wins=differences.wins,
        ties=queries - differences.wins - differences.losses,
        losses=differences.losses,
        difference=mean(differences.values, units.weights),
        low=interval.low,
        high=interval.high,
    )


def _slice_tests(view: View, a: str, b: str) -> dict[RowName, TestRow]:
    """The tests of a pair by slice."""
    return {
        RowName(row.family, row.note): row
        for row in view.evaluation.tests
        if (row.a, row.b) == (a, b) and row.note
    }


def reversed_slices(view: View, pair: SlicePair) -> Iterator[str]:
    """Yield a sentence for each slice that differs and has the opposite leader."""
    overall = pair.rows[0]
    measure = view.names[view.primary].short
    for row in pair.rows[1:]:
        if row.differs and row.difference * overall.difference < 0:
            better = pair.a if row.difference > 0 else pair.b
            yield (
                f"On the {row.queries:,} queries of {slice_name(row)}, {better} is "
                f"ahead by {abs(row.difference):.3f} in {measure}, unlike on the other "
                f"queries (adjusted p {power_p_text(row.p_adjusted)})."
            )


def decisive_slice(view: View, pair: SlicePair) -> SliceComparison | None:
    """The smallest slice without which the leader would not be ahead.

    It is shown to differ from the other queries, and has at most half the weight.
    """
    overall = pair.rows[0]
    total = overall.difference * overall.weight
    tolerance = SCORE_TOLERANCE * overall.weight
    if total <= tolerance:
        return None
    decisive = [
        row
        for row in pair.rows[1:]
        if row.differs
        and 2 * row.weight <= overall.weight
        and total - row.difference * row.weight <= tolerance
    ]
    return min(decisive, key=lambda row: row.weight, default=None)


def slice_name(row: SliceComparison) -> str:
    """The name of a slice in a sentence.

    >>> row = SliceComparison("field tags", "typo", 20, 20.0, 1, 18, 1, 0.0, None, None)
    >>> slice_name(row)
    'tags: typo'
    """
    return slice_label(row.family, row.slice) if row.family else row.slice


def slice_label(family: str, label: str) -> str:
    """The name of a slice with what divides the queries.

    >>> slice_label("field tags", "typo")
    'tags: typo'
    >>> slice_label("document length", "at most 1594")
    'document length: at most 1,594 characters'
    >>> slice_label("rarest word", "at most 3")
    'rarest word: in at most 3 documents'
    >>> slice_label("rarest word", "above 1")
    'rarest word: in more than 1 document'
    >>> slice_label("rarest word", "at most 0")
    'rarest word: in no document'
    """
    if family in (QUERY_LENGTH, DOCUMENT_LENGTH):
        label = _limit_with_unit(label, "character")
    elif family == RAREST_WORD:
        documents = _limit_with_unit(label.replace("above", "more than"), "document")
        label = "in no document" if label == "at most 0" else f"in {documents}"
    label = shorten_text(label, 4_000)  # for a page, on one line
    if len(label) > 60:
        # Long names often differ only at the end.
        label = f"{label[:30].rstrip()}…{label[-29:]}"
    return f"{shorten_text(family.removeprefix(FIELD_PREFIX), 40)}: {label}"


def _limit_with_unit(label: str, unit: str) -> str:
    relation, _, limit = label.rpartition(" ")
    plural = "" if limit == "1" else "s"
    return f"{relation} {number_text(float(limit))} {unit}{plural}"


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
