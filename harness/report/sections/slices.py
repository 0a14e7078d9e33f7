"""The leader within slices of the queries."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from harness.english import percent_text
from harness.evaluation.query_slices import slice_labels
from harness.evaluation.verdict import Finding, TestRow
from harness.report.charts.figure import Figure
from harness.report.charts.forest import ForestRow, ForestTexts, forest_figure
from harness.report.charts.strip import StripAxis, fit_strip_axis
from harness.report.escape import shorten_text
from harness.report.numbers import difference_text, power_p_text
from harness.report.palette import GOOD_SHADE, UNDECIDED_SHADE, WORSE_SHADE
from harness.report.query_evidence import pack_json
from harness.report.templates import Section
from harness.report.view import View
from harness.stats.differences import SCORE_TOLERANCE, paired_differences
from harness.stats.intervals import mean, student_interval

MIN_SLICE_QUERIES = 10
"""Fewest queries of a slice, here and in the tests."""
SHOWN_PAIRS = 2
"""Pairs with a column; a script offers any other."""
MAX_SHOWN_SLICES = 5
"""Rows that are shown at first."""
MAX_CHOSEN_RETRIEVERS = 12
"""Retrievers up to which any two can be chosen."""
SLICE_SHADES = {
    "better": GOOD_SHADE,
    "worse": WORSE_SHADE,
    "undecided": UNDECIDED_SHADE,
}
ALL_QUERIES = "all queries"
LENGTH_FAMILY = "query length"
"""The family of slices by query length."""
LENGTH_SLICES = ("short", "medium", "long")
"""The start of their names."""
EQUAL_LENGTHS = re.compile(r"\b(\d+) to \1\b")
"""A range of one length."""
LENGTH_UNIT = " characters)"
"""The unit of lengths: the table shows it; a chart has no room for it."""


class SliceName(NamedTuple):
    """A part of the queries."""

    family: str
    """The field that divides the queries; "" for all queries."""
    slice: str


class SliceComparison(NamedTuple):
    """One retriever against another within one part of the queries."""

    family: str
    """The field that divides the queries; "" for all queries."""
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
    """Of the deciding test, within the family of slices; None without a test."""
    finding: Finding | None = None
    """The finding about the first, by the rule of every verdict; None without a
    test."""
    p_wilcoxon: float | None = None
    """Of the exact signed-rank test, adjusted in the same way."""


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
    """The name of its colour in the style sheet."""


class SliceTableRow(NamedTuple):
    """One slice of the table."""

    title: str
    queries: int
    leads: tuple[SliceLead, ...]
    """Over each of the shown others."""


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
    others: int
    """Pairs that are not shown."""
    choices: str
    """The leads of any two retrievers, for the script."""


def slices_section(view: View) -> Section[SlicesContext] | None:
    """The leader against the others in every part of the queries.

    None without parts or others.
    """
    families = labels_by_family(view)
    if len(view.retrievers) < 2 or not families:
        return None
    pairs = [
        compare_slices(view, view.evaluation.leader, other, families)
        for other in compared_retrievers(view)
    ]
    shown_pairs = pairs[:SHOWN_PAIRS]
    reversals: list[str] = []
    for pair in pairs:
        reversals.extend(reversed_slices(view, pair))
    context = SlicesContext(
        pairs=shown_pairs,
        axis=_strip_axis(view, shown_pairs),
        rows=_table_rows(shown_pairs),
        shown_rows=MAX_SHOWN_SLICES,
        sentence=slices_sentence(shown_pairs[0]),
        reversals=reversals,
        slice_name=slice_name,
        others=len(pairs) - len(shown_pairs),
        choices=_slice_choices(view, families, pairs),
    )
    return Section("slices", "Slices", context, (_forest_figure(view, shown_pairs),))


def slice_state(row: SliceComparison) -> str:
    """The colour of a slice: it follows its own interval."""
    if row.low is None or row.high is None or row.low <= 0 <= row.high:
        return "undecided"
    return "better" if row.low > 0 else "worse"


def slices_sentence(pair: SlicePair) -> str:
    """Where the lead over the next is largest, and where it is none."""
    slices = pair.rows[1:]
    largest = max(slices, key=lambda row: row.difference)
    smallest = min(slices, key=lambda row: row.difference)
    lead = difference_text(largest.difference)
    sentence = f"{pair.a} leads {pair.b} most on “{largest.slice}” ({lead})."
    leader = pair.a if smallest.difference >= 0 else pair.b
    ahead = f"{abs(smallest.difference):.3f}"
    return (
        f"{sentence} On “{smallest.slice}” {leader} is ahead by {ahead}. Exploratory."
    )


def _table_rows(pairs: Sequence[SlicePair]) -> list[SliceTableRow]:
    """The rows of the table, all queries first."""
    labels = Counter(row.slice for row in pairs[0].rows)
    rows: list[SliceTableRow] = []
    for position, row in enumerate(pairs[0].rows):
        title = row.slice if labels[row.slice] == 1 else slice_name(row)
        leads = [
            SliceLead(pair.rows[position], slice_state(pair.rows[position]))
            for pair in pairs
        ]
        rows.append(SliceTableRow(shorten_text(title, 48), row.queries, tuple(leads)))
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
    view: View, families: Mapping[str, Sequence[str]], pairs: Sequence[SlicePair]
) -> str:
    """The leads of any two retrievers, for the script.

    If there are many retrievers, only those of the leader.
    """
    all_pairs = list(pairs)
    if len(view.ranked) <= MAX_CHOSEN_RETRIEVERS:
        for a, b in combinations(view.ranked[1:], 2):
            all_pairs.append(compare_slices(view, a, b, families))
    rows = [
        [view.ranked.index(pair.a), view.ranked.index(pair.b), _rounded_leads(pair)]
        for pair in all_pairs
    ]
    return pack_json({"retrievers": view.ranked, "pairs": rows})


def _rounded_leads(pair: SlicePair) -> list[list[float | None]]:
    leads: list[list[float | None]] = []
    for row in pair.rows:
        ends = (row.difference, row.low, row.high)
        leads.append([None if end is None else round(end, 4) for end in ends])
    return leads


def labels_by_family(view: View) -> dict[str, list[str]]:
    """Family -> each query's slice, for families with two slices of ten queries."""
    queries = [view.query(i).query for i in range(view.n)]
    families = slice_labels(queries, view.settings.cluster)
    return {
        family: labels
        for family, labels in families.items()
        if len(_large_slices(family, labels)) > 1
    }


def _large_slices(family: str, labels: Sequence[str]) -> list[str]:
    """The slices with enough queries."""
    counts = Counter(labels)
    return [
        label
        for label in order_slices(family, labels)
        if counts[label] >= MIN_SLICE_QUERIES
    ]


def compared_retrievers(view: View) -> list[str]:
    """The retrievers compared with the leader.

    They are the runner-up, the baseline, then the others by mean.
    """
    others = list(view.ranked[1:])
    if view.baseline in others[1:]:
        others.remove(view.baseline)
        others.insert(1, view.baseline)
    return others


def compare_slices(
    view: View, a: str, b: str, families: Mapping[str, Sequence[str]]
) -> SlicePair:
    """One pair over all queries and within every slice."""
    tests = _slice_tests(view, a, b)
    all_queries = SliceName("", ALL_QUERIES)
    rows = [compare_slice(view, (a, b), range(view.n), all_queries)]
    for family, labels in families.items():
        for label in _large_slices(family, labels):
            indices = [i for i, other in enumerate(labels) if other == label]
            name = SliceName(family, label)
            row = compare_slice(view, (a, b), indices, name)
            test = tests.get(name)
            if test is not None:
                row = row._replace(
                    p_adjusted=test.p_adjusted,
                    finding=test.finding,
                    p_wilcoxon=test.p_wilcoxon_adjusted,
                )
            rows.append(row)
    return SlicePair(a, b, tuple(rows))


def compare_slice(
    view: View, pair: tuple[str, str], indices: Sequence[int], name: SliceName
) -> SliceComparison:
    """One pair within some of the queries.

    Args:
        view: with the scores.
        pair: of retrievers.
        indices: of the queries, in any order.
        name: the family, and the slice.
    """
    mask = np.zeros(view.n, dtype=np.bool_)
    mask[indices] = True
    first, second = pair
    scores = view.values_by_measure[view.primary]
    # The mask has the scores in the order of their weights.
    differences = paired_differences(scores[first][mask], scores[second][mask])
    units = view.scores.select_queries(mask).units
    queries = int(mask.sum())
    interval = student_interval(
        differences.values,
        view.settings.level,
        bounds=view.scores.gap_range,
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
        low=interval[0],
        high=interval[1],
    )


def _slice_tests(view: View, a: str, b: str) -> dict[SliceName, TestRow]:
    """The tests of a pair by slice, with findings about the first."""
    tests: dict[SliceName, TestRow] = {}
    for row in view.evaluation.tests:
        if {row.a, row.b} != {a, b} or not row.note:
            continue
        finding = row.finding
        if finding is not None and row.a != a:
            finding = finding.swapped
        name = SliceName(row.family, row.note)
        tests[name] = replace(row, finding=finding)
    return tests


def reversed_slices(view: View, pair: SlicePair) -> Iterator[str]:
    """The slices with a significant difference opposite to that of all queries."""
    overall = pair.rows[0]
    measure = view.names[view.primary].short
    for row in pair.rows[1:]:
        if row.finding is None or row.difference * overall.difference >= 0:
            continue
        if row.finding.verdict.shows_difference:
            better = pair.a if row.difference > 0 else pair.b
            yield (
                f"On the {row.queries:,} queries of {slice_name(row)}, {better} is "
                f"ahead by {abs(row.difference):.3f} in {measure}, opposite to all "
                f"queries (adjusted p {power_p_text(row.p_adjusted)})."
            )


def decisive_slice(view: View, pair: SlicePair) -> SliceComparison | None:
    """The smallest slice without which the leader would not be ahead.

    It has at most half the weight.
    """
    overall = pair.rows[0]
    total = overall.difference * overall.weight
    tolerance = SCORE_TOLERANCE * overall.weight
    if total <= tolerance:
        return None
    decisive = [
        row
        for row in pair.rows[1:]
        if 2 * row.weight <= overall.weight
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
    """The name of a slice with its family.

    >>> slice_label("field tags", "typo")
    'tags: typo'
    >>> slice_label("query length", "medium (20 to 20)")
    'query length: medium (20 characters)'
    """
    if family == LENGTH_FAMILY:
        label = EQUAL_LENGTHS.sub(r"\1", label).replace(")", LENGTH_UNIT)
    label = shorten_text(label, 4_000)
    if len(label) > 60:
        # Long names often differ only at the end.
        label = f"{label[:30].rstrip()}…{label[-29:]}"
    return f"{shorten_text(slice_field(family), 40)}: {label}"


def slice_field(family: str) -> str:
    """The field of a family of slices.

    >>> slice_field("field tags"), slice_field("query length")
    ('tags', 'query length')
    """
    return family.removeprefix("field ")


def order_slices(family: str, labels: Sequence[str]) -> list[str]:
    """The slices of a family.

    Lengths are from short to long, others in the order of their first query.

    >>> order_slices("query length", ["long (3 or more)", "", "short (up to 1)"])
    ['short (up to 1)', 'long (3 or more)']
    """
    distinct = [label for label in dict.fromkeys(labels) if label]
    if family != LENGTH_FAMILY:
        return distinct
    return sorted(distinct, key=lambda label: LENGTH_SLICES.index(label.split()[0]))


def _forest_figure(view: View, pairs: Sequence[SlicePair]) -> Figure:
    """One panel per pair, on one axis."""
    measure = view.names[view.primary].short
    leader = pairs[0].a
    panels: dict[str, list[ForestRow]] = {}
    descriptions: list[str] = []
    for pair in pairs:
        title = f"ahead of {shorten_text(pair.b, 30)}" if len(pairs) > 1 else ""
        panels[title] = [_forest_row(row) for row in pair.rows]
        differences = [
            f"{slice_name(row)} {difference_text(row.difference)}" for row in pair.rows
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
    short_name = shorten_text(slice_name(row).replace(LENGTH_UNIT, ")"), 48)
    return ForestRow(
        label=f"{short_name} ({row.queries:,})",
        difference=row.difference,
        low=row.low,
        high=row.high,
        queries=row.queries,
        record=f"{row.wins} / {row.ties} / {row.losses}",
        color=SLICE_SHADES[slice_state(row)].light,
    )
