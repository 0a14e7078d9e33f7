"""The tables of tests."""

from collections.abc import Sequence
from typing import Any

from harness.evaluation.board import smallest_wilcoxon_p
from harness.evaluation.pair_diagnostics import (
    PairDiagnostics,
    diagnose_pairs,
    pairs_to_inspect,
)
from harness.evaluation.query_slices import slice_labels, small_slices
from harness.evaluation.verdict import Comparison, TestRow
from harness.report.sections.slices import slice_label
from harness.report.templates import Section
from harness.report.view import View, beaten_letters, retriever_letters
from harness.wording.conclusion import verdict_lines
from harness.wording.verdicts import (
    VERDICT_SIGNS,
    reason_words,
    settings_sentence,
    verdict_word,
)

TEST_FAMILIES = {
    "equivalence": "Equivalence within the margin",
    "rerank uplift": "Reranked against its first stage",
}
"""The families of tests.csv that are shown here; slices have their own section."""
MAX_PAIR_QUERIES = 4_000
"""Most pairs times queries that the page computes, in half a second.

`harness compare --json` has more.
"""
MAX_TEST_ROWS = 200
"""Most rows that the page shows.

If there are more, only those of the leader and the baseline.
"""
MAX_SMALL_SLICES = 20
"""Most small slices that are named: a field may have a different value for each
query."""


def statistics_section(view: View) -> Section:
    """The means of every measure, and the tests if there are two or more retrievers."""
    beaten = {measure: beaten_letters(view, measure) for measure in view.measures}
    context: dict[str, Any] = {
        "means": {retriever: _summaries(view, retriever) for retriever in view.ranked},
        "best": {measure: _highest_mean(view, measure) for measure in view.measures},
        "letters": retriever_letters(view),
        "beaten": beaten,
        "lettered": any(any(letters.values()) for letters in beaten.values()),
    }
    if len(view.retrievers) < 2:
        return Section("tests", "Measures", {**context, "rows": []})
    return Section("tests", "Tests", context | tests_context(view))


def _summaries(view: View, retriever: str) -> dict[str, Any]:
    """Return measure -> the retriever's summary, for measures that have one."""
    summary = view.evaluation.summary
    return {
        measure: summary[measure][retriever]
        for measure in view.measures
        if retriever in summary[measure]
    }


def _highest_mean(view: View, measure: str) -> float:
    return max(row.mean for row in view.evaluation.summary[measure].values())


def tests_context(view: View) -> dict[str, Any]:
    """The comparisons of the primary measure, further evidence, the other tests."""
    comparisons = view.comparisons[view.primary]
    rows = _listed_comparisons(view, comparisons)
    diagnostics = diagnose_view_pairs(view)
    pair_count = len(view.retrievers) * (len(view.retrievers) - 1) // 2
    small = _small_slices(view)
    families = other_families(view)
    family_rows = sum(len(family) for family in families.values())
    details = verdict_lines(view.evaluation).details
    return {
        "settings": settings_sentence(view.settings),
        "details": [view.with_short_names(sentence) for sentence in details],
        "rows": rows,
        "left": len(comparisons) - len(rows),
        "floors": smallest_wilcoxon_p(comparisons, view.settings),
        "evidence": diagnostics,
        "evidence_left_out": pair_count - len(diagnostics),
        "other": families,
        "small_slices": small[:MAX_SMALL_SLICES],
        "small_left": len(small[MAX_SMALL_SLICES:]),
        "other_left": len(view.evaluation.tests) - family_rows,
        "signs": VERDICT_SIGNS,
        "word": verdict_word,
        "reason": reason_words,
    }


def other_families(view: View) -> dict[str, list[TestRow]]:
    """The rows of the families that no other section shows.

    Only those of the leader and the baseline.
    """
    families: dict[str, list[TestRow]] = {}
    for row in view.evaluation.tests:
        title = TEST_FAMILIES.get(row.family)
        if title is not None and _has_leader_or_baseline(view, row):
            families.setdefault(title, []).append(row)
    return families


def _listed_comparisons(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The rows of the primary measure that the page lists.

    Of many, those of the leader and the baseline.
    """
    if len(rows) > MAX_TEST_ROWS:
        rows = [row for row in rows if _has_leader_or_baseline(view, row)]
    return order_comparisons(view, rows)


def _has_leader_or_baseline(view: View, row: Comparison | TestRow) -> bool:
    return not {view.evaluation.leader, view.baseline}.isdisjoint((row.a, row.b))


def _small_slices(view: View) -> list[tuple[str, int]]:
    """The slices with too few queries for a test, with the number of queries."""
    queries = [view.query(i).query for i in range(view.n)]
    slices: list[tuple[str, int]] = []
    for family, labels in slice_labels(queries, view.settings.cluster).items():
        if len(set(labels)) > 1:
            for label, number in small_slices(labels).items():
                slices.append((slice_label(family, label), number))
    return slices


def order_comparisons(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The leader's pairs first, then those of the next.

    a has the higher mean on the primary measure.
    """
    ranks = {retriever: rank for rank, retriever in enumerate(view.ranked)}
    higher_first = [row.swapped if ranks[row.b] < ranks[row.a] else row for row in rows]
    return sorted(higher_first, key=lambda row: (ranks[row.a], ranks[row.b]))


def diagnose_view_pairs(view: View) -> list[PairDiagnostics]:
    """Return the evidence on the pairs, the leader's first.

    On all pairs unless that takes too long.
    """
    pairs = pairs_to_inspect(view.ranked, view.baseline, view.n, MAX_PAIR_QUERIES)
    return diagnose_pairs(view.scores, pairs)
