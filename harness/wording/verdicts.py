"""Verdicts in words, of pairs or gates.

No other file turns the enums and numbers of an evaluation into sentences, and none reads them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.english import (
    count_queries,
    count_units,
    join_names,
    p_relation,
    p_text,
    with_minus_sign,
)
from harness.evaluation.abstention import Abstention
from harness.evaluation.evaluation import Ceilings
from harness.evaluation.gate import Gate
from harness.evaluation.verdict import Comparison, Finding, Reason, Verdict
from harness.stats.settings import Settings

REASON_WORDS = {
    Reason.IDENTICAL: "identical on these queries",
    Reason.NOTHING_MEASURED: "nothing was measured",
    Reason.NO_QUERY_DIFFERS: "no query differs",
    Reason.UNDEFINED: "undefined, all differences are equal",
    Reason.TOO_FEW: "too few queries",
    Reason.NOT_SHOWN: "no difference shown",
    Reason.MODEL_ALONE: "judged by a model alone",
    Reason.ALPHA_SPENT: "alpha is spent",
}
"""As the column `verdict` of comparisons.csv has them."""
VERDICT_SIGNS = {
    Verdict.BETTER: "▲",
    Verdict.WORSE: "▼",
    Verdict.EQUIVALENT: "●",
    Verdict.UNDECIDED: "?",
}
STANDING_WORDS = {
    "leader": ("●", "highest mean"),
    "good": ("●", "as good"),
    "open": ("?", "undecided"),
    "same": ("?", "undecided"),
    "worse": ("▼", "worse"),
    "baseline": ("", "the baseline"),
    "better": ("▲", "better"),
    "failed": ("×", "failed"),
}
"""A sign and a word for each standing of the leaderboard: never a colour alone. Pairs have the same signs."""
TEST_NAMES = {
    "wilcoxon": "the exact Wilcoxon signed-rank test",
    "randomization": "the sign-flip test of the mean",
    "t": "Student's paired t-test",
}
CORRECTION_NAMES = {
    "holm": "Holm",
    "bonferroni": "Bonferroni",
    "bh": "Benjamini-Hochberg",
}


def verdict_word(finding: Finding) -> str:
    """Return a verdict without its reason.

    >>> verdict_word(Finding(Verdict.BETTER, negligible=True))
    'better but negligible'
    """
    return finding.verdict.value + (" but negligible" if finding.negligible else "")


def reason_words(reason: Reason | None) -> str:
    """Return a reason as comparisons.csv has it; "" for none."""
    return "" if reason is None else REASON_WORDS[reason]


def verdict_cell(finding: Finding) -> str:
    """Return a verdict as comparisons.csv has it.

    >>> verdict_cell(Finding(Verdict.UNDECIDED, Reason.TOO_FEW))
    'undecided: too few queries'
    """
    return ": ".join(
        part for part in (verdict_word(finding), reason_words(finding.reason)) if part
    )


def settings_sentence(settings: Settings) -> str:
    """Return which test is behind the verdicts."""
    drops = ", zero differences dropped" if settings.test == "wilcoxon" else ""
    correction = f"p adjusted within each measure by {CORRECTION_NAMES[settings.correction]}; level {settings.alpha:.3g}."
    return f"Decided by {TEST_NAMES[settings.test]}{drops}; {correction}"


def p_phrase(p: float) -> str:  # noqa: D103
    return p_relation(p_text(p))


def pair_sentence(row: Comparison, settings: Settings) -> str:
    """Return one comparison as a sentence: the difference and its interval come before p."""
    low, high, exact = (
        row.ci_low,
        row.ci_high,
        None if settings.test == "wilcoxon" else row.p_wilcoxon_adjusted,
    )
    ends = (
        ""
        if None in (low, high)
        else f" ({100 * settings.level:.3g} % interval {low:+.4f} to {high:+.4f})"
    )
    beside = "" if exact is None else f", exact Wilcoxon p {p_phrase(exact)}"
    gap, reason = (
        with_minus_sign(f"{row.mean_difference:+.4f}{ends}"),
        reason_words(row.reason),
    )
    numbers = f"mean difference in {row.measure} {gap}, adjusted p {p_phrase(row.p_adjusted)}{beside}"
    if not row.verdict.shows_difference:
        within = (
            f" within {settings.margin:g}" if row.verdict is Verdict.EQUIVALENT else ""
        )
        return f"{row.a} and {row.b}: {row.verdict.value}{within}{reason and f', {reason}'}; {numbers}."
    best, worst = (row.a, row.b) if row.verdict is Verdict.BETTER else (row.b, row.a)
    word = (
        "higher"
        if (row.mean_difference > 0) == (best == row.a)
        else "lower, which is better,"
    )
    shown = f"the mean of {best} is {word} than that of {worst}"
    if settings.test == "wilcoxon":
        shown = f"{best} is better than {worst} on the typical query"
    small = (
        f", but by less than the margin of {settings.margin:g}"
        if row.finding.negligible
        else ""
    )
    return f"By {TEST_NAMES[settings.test]}, {shown}{small}: {numbers}."


def opposite_warning(rows: Sequence[Comparison], settings: Settings) -> str:
    """Return the pairs for which the other test rejects in the opposite direction of the verdict; "" for none.

    Args:
        rows: comparisons of one measure.
        settings: the settings of these comparisons.
    """
    found, by_ranks = [], settings.test == "wilcoxon"
    for row in rows:
        ranks, mean = row.w_plus - row.w_minus, row.mean_difference
        p = row.p_randomization_adjusted if by_ranks else row.p_wilcoxon_adjusted
        if (
            row.verdict.shows_difference
            and ranks * mean < 0
            and p is not None
            and p <= settings.alpha
        ):
            name, other = (
                (row.a, row.b) if (mean if by_ranks else ranks) > 0 else (row.b, row.a)
            )
            typical = f"on the typical query {name} is better than {other} (exact Wilcoxon p {p_phrase(p)})"
            found.append(
                f"the mean of {name} is higher (sign-flip p {p_phrase(p)})"
                if by_ranks
                else typical
            )
    return f"Yet {'; '.join(found)}." if found else ""


def gate_sentence(gate: Gate) -> str:
    """Return the outcome of a gate as one line for a log."""
    queries, numbers, unchanged = (
        count_units(gate.n, gate.clusters),
        with_minus_sign(f"difference {gate.mean_difference:+.4f}"),
        "",
    )
    if not gate.measured:
        return f"nothing was measured: every score is 0 on {queries} ({numbers})"
    if gate.alpha_spent:
        return f"alpha is spent: {queries} are more than were planned for the last look ({numbers})"
    if gate.identical:
        missed = min(100, 300 / (gate.clusters or gate.n))
        share = f"{missed:.0f}" if missed >= 10 else f"{missed:.1f}"
        unchanged = f"; no change was seen; a defect that affects fewer than {share} % of the queries would be missed"
    if gate.needed is None:
        shown = "not shown, the measure's range is unknown"
    elif gate.too_few:
        needed = f"{gate.needed:,}{'' if gate.clusters is None else ' clusters'}"
        shown = f"{queries}, at least {needed} needed"
    else:
        shown = f"{'shown' if gate.passed else 'not shown'} on {queries}"
        numbers = f"{numbers}, p {p_phrase(gate.p_value)}"
    return f"not worse by {gate.margin:g}: {shown} ({numbers}){unchanged}"


def gate_cells(gate: Gate) -> dict[str, Any]:
    """Return the outcome of a gate as data."""
    return {
        "passed": gate.passed,
        "reason": gate_sentence(gate),
        "n": gate.n,
        "mean_difference": gate.mean_difference,
        "margin": gate.margin,
        "p_value": gate.p_value,
        "queries_needed": gate.needed,
    }


def abstention_sentence(found: Abstention, best: int = 2) -> str:
    """Return how well scores separate queries without an answer, for the best retrievers."""
    first = sorted(found.floors, key=lambda one: -one.area)[:best]
    areas = join_names(
        [
            f"{one.retriever} {one.area:.3f}"
            if one.low is None
            else f"{one.retriever} {one.area:.3f} ({one.low:.3f}, {one.high:.3f})"
            for one in first
        ]
    )
    return f"No answer, {count_queries(found.unanswerable)}: area under ROC {areas}."


def ceiling_sentences(found: Ceilings, measure: str, mean: float) -> list[str]:
    """Return the upper bounds that no single retriever reaches."""
    best = f"{measure} {found.best_per_query:.4f} with the best retriever of each query (one for all: {mean:.4f})"
    union = f"R@{found.cutoff} {found.union_recall:.4f} of all hits together (best alone: {found.best_recall:.4f})"
    return [f"Ceiling, chance included: {best}.", f"Ceiling: {union}."]
