"""Verdicts, reasons and warnings in English, for the terminal, Markdown, HTML, LaTeX and CSV alike.

No other file turns the enums and numbers of an evaluation into sentences, and none reads them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.english import (
    asked,
    count,
    counted,
    few_names,
    format_p,
    join,
    minus,
    related,
)
from harness.evaluation.evaluation import (
    Abstention,
    Ceilings,
    Evaluation,
    RunWarning,
    WarningKind,
)
from harness.evaluation.verdict import Comparison, Finding, Gate, Reason, Verdict
from harness.stats.power import InterimAnalysis
from harness.stats.settings import Settings

REASONS = {
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
SIGNS = {
    Verdict.BETTER: "▲",
    Verdict.WORSE: "▼",
    Verdict.EQUIVALENT: "●",
    Verdict.UNDECIDED: "?",
}
STANDINGS = {
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
TESTS = {
    "wilcoxon": "the exact Wilcoxon signed-rank test",
    "randomization": "the sign-flip test of the mean",
    "t": "Student's paired t-test",
}
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg"}


def verdict_word(finding: Finding) -> str:
    """Return a verdict without its reason.

    >>> verdict_word(Finding(Verdict.BETTER, negligible=True))
    'better but negligible'
    """
    return finding.verdict.value + (" but negligible" if finding.negligible else "")


def reason_words(reason: Reason | None) -> str:
    """Return a reason as comparisons.csv has it; "" for none."""
    return "" if reason is None else REASONS[reason]


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
    correction = f"p adjusted within each measure by {CORRECTIONS[settings.correction]}; level {settings.alpha:.3g}."
    return f"Decided by {TESTS[settings.test]}{drops}; {correction}"


def _p(p: float) -> str:
    return related(format_p(p))


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
    beside = "" if exact is None else f", exact Wilcoxon p {_p(exact)}"
    gap, reason = minus(f"{row.mean_difference:+.4f}{ends}"), reason_words(row.reason)
    numbers = f"mean difference in {row.measure} {gap}, adjusted p {_p(row.p_adjusted)}{beside}"
    if not row.verdict.separates:
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
    return f"By {TESTS[settings.test]}, {shown}{small}: {numbers}."


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
            row.verdict.separates
            and ranks * mean < 0
            and p is not None
            and p <= settings.alpha
        ):
            name, other = (
                (row.a, row.b) if (mean if by_ranks else ranks) > 0 else (row.b, row.a)
            )
            typical = f"on the typical query {name} is better than {other} (exact Wilcoxon p {_p(p)})"
            found.append(
                f"the mean of {name} is higher (sign-flip p {_p(p)})"
                if by_ranks
                else typical
            )
    return f"Yet {'; '.join(found)}." if found else ""


def gate_sentence(gate: Gate) -> str:
    """Return the outcome of a gate as one line for a log."""
    queries, numbers, unchanged = (
        asked(gate.n, gate.clusters),
        minus(f"difference {gate.mean_difference:+.4f}"),
        "",
    )
    if not gate.measured:
        return f"nothing was measured: every score is 0 on {queries} ({numbers})"
    if gate.spent:
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
        numbers = f"{numbers}, p {_p(gate.p_value)}"
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


def warning_sentences(warnings: Sequence[RunWarning]) -> list[str]:
    """Return the warnings of a list; of the unevenly labelled retrievers only the one farthest from the leader."""
    gaps = [one for one in warnings if one.kind is WarningKind.JUDGED_GAP]
    farthest = max(gaps, key=lambda one: one.numbers[0] - one.numbers[1], default=None)
    left_out = (
        WarningKind.FRAGILE,
        WarningKind.JUDGED_GAP,
        *([WarningKind.UNJUDGED] if gaps else []),
    )
    return [
        warning_sentence(one)
        for one in warnings
        if one is farthest or one.kind not in left_out
    ]


UNLABELLED = "documents without a label count as irrelevant"


def warning_sentence(warning: RunWarning) -> str:
    """Return one warning of a run in words.

    >>> warning_sentence(RunWarning(WarningKind.UNJUDGED, ("b", "a"), (0.25, 0.04, 10)))
    "25 % of b's first 10 hits have no label (4 % of a's): documents without a label count as irrelevant."
    """
    names, numbers, words = warning.retrievers, warning.numbers, warning.words
    match warning.kind:
        case WarningKind.HALF_READ:
            up_to = "up to " if numbers[0] < numbers[1] else ""
            return f"{few_names(names, 2)}: {up_to}{100 * numbers[1]:.0f} % of documents truncated; add chunk."
        case WarningKind.UNKNOWN_HITS:
            hits = f"{numbers[0]:,.0f} of {counted(round(numbers[1]), 'hit')} with unknown ids (e.g. {words[0]!r})"
            return f"{names[0]} returned {hits}: they count as irrelevant. Check that both sides use the same ids."
        case WarningKind.MATCHED_IDS:
            told = ", ".join(
                f"{number:,.0f} by {way}"
                for number, way in zip(numbers, words, strict=False)
            )
            return f"Ids of {names[0]} differ from those of the documents, and were matched: {told} (e.g. {words[-1]})."
        case WarningKind.UNJUDGED:
            beside = (
                f" ({100 * numbers[1]:.0f} % of {names[1]}'s)"
                if names[0] != names[1]
                else ""
            )
            hits = f"{100 * numbers[0]:.0f} % of {names[0]}'s first {numbers[2]:.0f} hits have no label{beside}"
            return f"{hits}: {UNLABELLED}."
        case WarningKind.JUDGED_GAP:
            high, low = (f"{100 * number:.0f} %" for number in numbers[:2])
            shares = f"{high} of {names[0]}'s hits have a label, {low} of {names[1]}'s"
            return f"{shares}: {UNLABELLED}, which favours {names[0]}."
        case WarningKind.CLICKS:
            whose = f"The labels of {counted(round(numbers[0]), 'query')} are clicks"
            return f"{whose}: they favour the search that showed the documents, and retrievers like it."
        case WarningKind.FRAGILE:
            return f"Few queries with a large loss would reverse the result of {join(names)}: label more queries."


def look_sentences(found: Evaluation) -> list[str]:
    """Return what counts as one observation if that is not a query, and which look this is, with its level."""
    if not found.measured:
        return []
    said = []
    if found.clusters is not None:
        said.append(
            f"Queries that ask the same count as one: {asked(found.n, found.clusters)}."
        )
    if found.look is not None:
        said.append(look_sentence(found.look, found.n))
    elif found.others and found.settings.earlier:
        said.append(
            f"This is look number {len(found.settings.earlier) + 1}: earlier runs tested the same on some of these "
            "queries, and each further look makes a false claim more likely. Declare `looks` under [statistics]."
        )
    return said


def look_sentence(look: InterimAnalysis, queries: int) -> str:
    """Return which of the planned looks this is, and its level."""
    planned = ", ".join(f"{n:,}" for n in look.planned)
    if look.spent:
        return f"Looks were planned at {planned} queries, these are {queries:,}: alpha is spent, nothing is claimed."
    other = "" if queries in look.planned else f"; {queries:,} was not planned"
    return f"Look {look.number} (planned at {planned}{other}): level {look.level:.2g}."


def look_step(found: Evaluation) -> str:
    """Return whether the planned looks are over, and the next one with its power."""
    cost, following = f"{found.judgments:,} labels of {count(found.n)}", found.next_look
    if not found.plans or following is None:
        return f"{'Undecided at the last look' if found.plans else 'Decided'}, with {cost}."
    power = (
        "power unknown"
        if following.power is None
        else f"{100 * following.power:.0f} % power"
    )
    return f"Go on to {count(following.queries)} ({power}): harness pool RESULTS --next-look."


def abstention_sentence(found: Abstention, best: int = 2) -> str:
    """Return how well scores separate queries without an answer, for the best retrievers."""
    first = sorted(found.floors, key=lambda one: -one.area)[:best]
    areas = join(
        [
            f"{one.retriever} {one.area:.3f} ({one.low:.3f}, {one.high:.3f})"
            for one in first
        ]
    )
    return f"No answer, {count(found.unanswerable)}: area under ROC {areas}."


def ceiling_sentences(found: Ceilings, measure: str, mean: float) -> list[str]:
    """Return the upper bounds that no single retriever reaches."""
    best = f"{measure} {found.router:.4f} with the best retriever of each query (one for all: {mean:.4f})"
    union = f"R@{found.cutoff} {found.union_recall:.4f} of all hits together (best alone: {found.best_recall:.4f})"
    return [f"Ceiling, chance included: {best}.", f"Ceiling: {union}."]
