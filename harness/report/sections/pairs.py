"""Every pair of retrievers.

Also the tests of equivalence and of rerankers, and the slices that are too small for a
test.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.evaluation.board import smallest_wilcoxon_p
from harness.evaluation.pair_diagnostics import (
    PairDiagnostics,
    diagnose_pairs,
    pairs_to_inspect,
)
from harness.evaluation.property_slices import small_slices
from harness.evaluation.verdict import Comparison, Finding, Reason, TestRow, Verdict
from harness.report.slice_comparison import slice_label
from harness.report.templates import Section
from harness.report.view import View
from harness.wording.verdicts import (
    VERDICT_SIGNS,
    choice_sentence,
    reason_words,
    settings_sentence,
    short_settings_sentence,
    verdict_word,
)

TEST_FAMILIES = {
    "equivalence": "Equivalence within the margin",
    "rerank uplift": "Reranked against its first stage",
}
"""The families of tests.csv that are shown here; slices have their own section."""
MAX_PAIR_QUERIES = 4_000
"""Largest pairs x queries for which the page computes diagnostics: half a second.

`harness compare --json` has more.
"""
MAX_TEST_ROWS = 200
"""Pairs up to which all are listed; of more, those of the leader and the baseline."""
MAX_LISTED_NAMES = 6
"""Retrievers above which pairs are a matrix of signs."""
STATE_BY_VERDICT = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.EQUIVALENT: "good",
    Verdict.UNDECIDED: "undecided",
}
MAX_SMALL_SLICES = 20
"""Small slices that are named, at most: a field may have a different value for each
query."""


class MatrixCell(NamedTuple):
    """The verdict of one pair."""

    sign: str
    state: str
    """Its word for screen readers."""


class MatrixRow(NamedTuple):
    """One retriever against all."""

    number: int
    retriever: str
    cells: tuple[MatrixCell | None, ...]
    """A cell for each row's retriever; None for the retriever itself."""


class SmallSlice(NamedTuple):
    """A slice with too few queries for a test."""

    name: str
    queries: int


@dataclass(frozen=True, slots=True)
class PairsContext:
    """The section's content."""

    sentence: str
    settings: str
    rows: list[Comparison]
    matrix: Sequence[MatrixRow]
    """Signs of all pairs of many retrievers; empty if the pairs are listed."""
    unlisted: int
    """How many pairs are not listed."""
    floors: Mapping[tuple[str, str], float]
    """(a, b) -> the smallest possible p of the exact test, if above the level."""
    diagnostics: list[PairDiagnostics]
    """The leader's pairs first. No overlap is None: a folder has all rankings."""
    undiagnosed: int
    """How many pairs have no diagnostics, which would have taken too long."""
    families: Mapping[str, Sequence[TestRow]]
    """Further families of tests, by their titles."""
    small_slices: Sequence[SmallSlice]
    """Slices with too few queries for a test, as far as they are named."""
    unnamed_slices: int
    """How many more there are."""
    unlisted_tests: int
    """Rows of tests.csv that are not here: slices, the sweep, other retrievers."""
    signs: Mapping[Verdict, str]
    word: Callable[[Finding], str]
    reason: Callable[[Reason | None], str]


def pairs_section(view: View) -> Section[PairsContext] | None:
    """Every pair on the primary measure; None without a second retriever."""
    if len(view.retrievers) < 2:
        return None
    comparisons = view.comparisons[view.primary]
    rows = _listed_comparisons(view, comparisons)
    diagnostics = diagnose_view_pairs(view)
    pair_count = len(view.retrievers) * (len(view.retrievers) - 1) // 2
    small = _small_slices(view)
    families = other_families(view)
    family_rows = sum(len(family) for family in families.values())
    is_matrix = view.evaluation.baseline == "" and len(view.ranked) > MAX_LISTED_NAMES
    context = PairsContext(
        sentence=_pairs_sentence(view, comparisons, is_matrix=is_matrix),
        settings=settings_sentence(view.settings),
        rows=rows,
        matrix=_matrix_rows(view, comparisons) if is_matrix else (),
        unlisted=len(comparisons) - len(rows),
        floors=smallest_wilcoxon_p(comparisons, view.settings),
        diagnostics=diagnostics,
        undiagnosed=pair_count - len(diagnostics),
        families=families,
        small_slices=small[:MAX_SMALL_SLICES],
        unnamed_slices=len(small[MAX_SMALL_SLICES:]),
        unlisted_tests=len(view.evaluation.tests) - family_rows,
        signs=VERDICT_SIGNS,
        word=verdict_word,
        reason=reason_words,
    )
    return Section("pairs", "All pairs", context)


def _pairs_sentence(
    view: View, comparisons: Sequence[Comparison], *, is_matrix: bool
) -> str:
    """How the pairs were decided; of a matrix, how many differ."""
    choice = choice_sentence(view.evaluation.leader, view.evaluation.board)
    if not is_matrix:
        settings = short_settings_sentence(view.settings, len(comparisons))
        return f"{settings} {choice}".rstrip()
    decided = sum(row.verdict.shows_difference for row in comparisons)
    equal = sum(row.verdict is Verdict.EQUIVALENT for row in comparisons)
    undecided = len(comparisons) - decided - equal
    verb = "differs" if decided == 1 else "differ"
    sentence = f"{decided} of {len(comparisons)} pairs {verb} significantly"
    if equal:
        sentence += f"; {equal} {'is' if equal == 1 else 'are'} as good"
    if undecided:
        sentence += f"; {undecided} {'is' if undecided == 1 else 'are'} undecided"
    if choice:
        sentence += f": p is corrected for all pairs. {choice.removesuffix('.')}"
    return f"{sentence}. ▲ the row scores higher, ▼ lower."


def _matrix_rows(
    view: View, comparisons: Sequence[Comparison]
) -> tuple[MatrixRow, ...]:
    """The verdict of each pair, as seen from the row."""
    cells: dict[tuple[str, str], MatrixCell] = {}
    for comparison in comparisons:
        for row in (comparison, comparison.swapped):
            cells[row.a, row.b] = MatrixCell(
                VERDICT_SIGNS[row.verdict], STATE_BY_VERDICT[row.verdict]
            )
    rows: list[MatrixRow] = []
    for number, name in enumerate(view.ranked, start=1):
        row_cells = tuple(cells.get((name, other)) for other in view.ranked)
        rows.append(MatrixRow(number, name, row_cells))
    return tuple(rows)


def other_families(view: View) -> dict[str, list[TestRow]]:
    """The rows of the leader and the baseline in families without a section."""
    families: dict[str, list[TestRow]] = {}
    for row in view.evaluation.tests:
        title = TEST_FAMILIES.get(row.family)
        if title is not None and _has_leader_or_baseline(view, row):
            families.setdefault(title, []).append(row)
    return families


def _listed_comparisons(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The rows of the primary measure that the page lists.

    If there are many, only those of the leader and the baseline.
    """
    if len(rows) > MAX_TEST_ROWS:
        rows = [row for row in rows if _has_leader_or_baseline(view, row)]
    return order_comparisons(view, rows)


def _has_leader_or_baseline(view: View, row: Comparison | TestRow) -> bool:
    return not {view.evaluation.leader, view.baseline}.isdisjoint((row.a, row.b))


def _small_slices(view: View) -> list[SmallSlice]:
    """The slices with too few queries for a test, with the number of queries."""
    small = small_slices(
        [view.query(i).query for i in range(view.n)],
        view.results.query_properties,
        view.settings.cluster,
    )
    return [
        SmallSlice(slice_label(name.property_name, name.label), queries)
        for name, queries in small
    ]


def order_comparisons(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The leader's pairs first, then those of the next.

    a has the higher mean on the primary measure.
    """
    ranks = {retriever: rank for rank, retriever in enumerate(view.ranked)}
    higher_first = [row.swapped if ranks[row.b] < ranks[row.a] else row for row in rows]
    return sorted(higher_first, key=lambda row: (ranks[row.a], ranks[row.b]))


def diagnose_view_pairs(view: View) -> list[PairDiagnostics]:
    """Return the diagnostics of the pairs, the leader's first.

    If all pairs would take too long, it is as many as there is time for.
    """
    pairs = pairs_to_inspect(view.ranked, view.baseline, view.n, MAX_PAIR_QUERIES)
    return diagnose_pairs(view.scores, pairs)
