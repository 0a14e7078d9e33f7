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
"""Most pairs times queries that the page computes, in half a second; `harness compare --json` has more."""
MAX_TEST_ROWS = 200
"""Most rows that the page shows; if there are more, only those of the leader and the baseline."""
MAX_SMALL_SLICES = 20
"""Most small slices that are named: a field may have a different value for each query."""


def statistics_section(view: View) -> Section:
    """The means of every measure, and the tests if there are two or more retrievers."""
    summary = view.evaluation.summary
    means = {
        name: {one: summary[one][name] for one in view.measures if name in summary[one]}
        for name in view.ranked
    }
    best = {
        measure: max(row.mean for row in summary[measure].values())
        for measure in view.measures
    }
    several = len(view.retrievers) > 1
    beaten = {measure: beaten_letters(view, measure) for measure in view.measures}
    lettered = any(letters for row in beaten.values() for letters in row.values())
    known = {
        "means": means,
        "best": best,
        "letters": retriever_letters(view),
        "beaten": beaten,
        "lettered": lettered,
    }
    return (
        Section("tests", "Tests", known | tests_context(view))
        if several
        else Section("tests", "Measures", known | {"rows": []})
    )


def tests_context(view: View) -> dict[str, Any]:
    """The comparisons of the primary measure, further evidence, the other tests."""
    beside, small, families = (
        diagnose_view_pairs(view),
        _small_slices(view),
        other_families(view),
    )
    rows = _listed(view, view.comparisons[view.primary])
    return {
        "settings": settings_sentence(view.settings),
        "details": [
            view.with_short_names(one) for one in verdict_lines(view.evaluation).details
        ],
        "rows": rows,
        "left": len(view.comparisons[view.primary]) - len(rows),
        "floors": smallest_wilcoxon_p(view.comparisons[view.primary], view.settings),
        "evidence": beside,
        "evidence_left_out": len(view.retrievers) * (len(view.retrievers) - 1) // 2
        - len(beside),
        "other": families,
        "small_slices": small[:MAX_SMALL_SLICES],
        "small_left": len(small[MAX_SMALL_SLICES:]),
        "other_left": len(view.evaluation.tests) - sum(map(len, families.values())),
        "signs": VERDICT_SIGNS,
        "word": verdict_word,
        "reason": reason_words,
    }


def other_families(view: View) -> dict[str, list[TestRow]]:
    """The rows of the families that no other section shows; only those of the leader and the baseline."""
    found: dict[str, list[TestRow]] = {}
    for row in view.evaluation.tests:
        if row.family in TEST_FAMILIES and _about(view, row.a, row.b):
            found.setdefault(TEST_FAMILIES[row.family], []).append(row)
    return found


def _listed(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The rows of the primary measure that the page lists; of many, those of the leader and the baseline."""
    return order_comparisons(
        view,
        [
            row
            for row in rows
            if len(rows) <= MAX_TEST_ROWS or _about(view, row.a, row.b)
        ],
    )


def _about(view: View, a: object, b: object) -> bool:
    """Whether a row includes the leader or the baseline."""
    return not {view.evaluation.leader, view.baseline}.isdisjoint((a, b))


def _small_slices(view: View) -> list[tuple[str, int]]:
    """The slices with too few queries for a test, with the number of queries."""
    kinds = slice_labels(
        [view.query(place).query for place in range(view.n)], view.settings.cluster
    )
    return [
        (slice_label(family, kind), number)
        for family, labels in kinds.items()
        if len(set(labels)) > 1
        for kind, number in small_slices(labels).items()
    ]


def order_comparisons(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The leader's pairs first, then those of the next; a is the one with the higher mean on the primary measure."""
    place = {name: i for i, name in enumerate(view.ranked)}
    turned = [row.swapped if place[row.b] < place[row.a] else row for row in rows]
    return sorted(turned, key=lambda row: (place[row.a], place[row.b]))


def diagnose_view_pairs(view: View) -> list[PairDiagnostics]:
    """Return the evidence on the pairs, the leader's first; on all pairs unless that takes too long."""
    pairs = pairs_to_inspect(view.ranked, view.baseline, view.n, MAX_PAIR_QUERIES)
    return diagnose_pairs(view.scores, pairs)
