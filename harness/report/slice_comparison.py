"""Two retrievers compared within slices of the queries."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from harness.evaluation.families import MAX_SLICED_RIVALS
from harness.evaluation.property_slices import (
    FIELD_PREFIX,
    PropertySlice,
    SliceName,
    slices_of_pair,
)
from harness.evaluation.verdict import TestRow
from harness.records import DOCUMENT_LENGTH, QUERY_LENGTH, RAREST_WORD
from harness.report.escape import shorten_text
from harness.report.numbers import number_text, power_p_text
from harness.report.view import View, main_rival
from harness.scoring.scores import QueryMask
from harness.stats.differences import SCORE_TOLERANCE, paired_differences
from harness.stats.intervals import mean, student_interval

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


def slice_state(row: SliceComparison) -> str:
    """The colour of a slice: it follows its own interval."""
    if row.low is None or row.high is None or row.low <= 0 <= row.high:
        return "undecided"
    return "better" if row.low > 0 else "worse"


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
