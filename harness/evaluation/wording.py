"""Verdicts, reasons and warnings in English, for the terminal, Markdown, HTML, LaTeX and CSV alike.

No other file turns the enums and numbers of an evaluation into sentences, and none reads them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.english import asked, count, counted, few_names, format_p, join, minus, related
from harness.evaluation.evaluation import Abstention, Ceilings, Evaluation, RunWarning, WarningKind
from harness.evaluation.verdict import Comparison, Finding, Gate, Reason, Verdict
from harness.stats.power import InterimAnalysis
from harness.stats.settings import Settings

if TYPE_CHECKING:
    from harness.evaluation.labellers import LabellerVerdict

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
SIGNS = {Verdict.BETTER: "▲", Verdict.WORSE: "▼", Verdict.EQUIVALENT: "●", Verdict.UNDECIDED: "?"}
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
    return ": ".join(part for part in (verdict_word(finding), reason_words(finding.reason)) if part)


def settings_sentence(settings: Settings) -> str:
    """Return which test is behind the verdicts."""
    drops = ", zero differences dropped" if settings.test == "wilcoxon" else ""
    return (
        f"Decided by {TESTS[settings.test]}{drops}; p adjusted within each measure by "
        f"{CORRECTIONS[settings.correction]}; level {settings.alpha:.3g}."
    )


def _p(p: float) -> str:
    return related(format_p(p))


def pair_sentence(row: Comparison, settings: Settings) -> str:
    """Return one comparison as a sentence: the difference and its interval come before p."""
    interval, reason = f"{row.mean_difference:+.4f}", reason_words(row.reason)
    if row.ci_low is not None and row.ci_high is not None:
        interval += f" ({100 * settings.level:.3g} % interval {row.ci_low:+.4f} to {row.ci_high:+.4f})"
    exact = ""
    if settings.test != "wilcoxon" and row.p_wilcoxon_adjusted is not None:
        exact = f", exact Wilcoxon p {_p(row.p_wilcoxon_adjusted)}"
    numbers = f"mean difference in {row.measure} {minus(interval)}, adjusted p {_p(row.p_adjusted)}{exact}"
    if not row.verdict.separates:
        within = f" within {settings.margin:g}" if row.verdict is Verdict.EQUIVALENT else ""
        return f"{row.a} and {row.b}: {row.verdict.value}{within}{reason and f', {reason}'}; {numbers}."
    high, low = (row.a, row.b) if row.verdict is Verdict.BETTER else (row.b, row.a)
    word = "higher" if (row.mean_difference > 0) == (high == row.a) else "lower, which is better,"
    shown = f"the mean of {high} is {word} than that of {low}"
    if settings.test == "wilcoxon":
        shown = f"{high} is better than {low} on the typical query"
    small = f", but by less than the margin of {settings.margin:g}" if row.finding.negligible else ""
    return f"By {TESTS[settings.test]}, {shown}{small}: {numbers}."


def opposite_warning(rows: Sequence[Comparison], settings: Settings) -> str:
    """Return the pairs for which the other test rejects in the opposite direction of the verdict; "" for none.

    Args:
        rows: comparisons of one measure.
        settings: those that they were made with.
    """
    found = []
    for row in rows:
        ranks, mean = row.w_plus - row.w_minus, row.mean_difference
        if not row.verdict.separates or row.p_wilcoxon_adjusted is None or ranks * mean >= 0:
            continue
        if settings.test == "wilcoxon" and row.p_randomization_adjusted <= settings.alpha:
            name = row.a if mean > 0 else row.b
            found.append(f"the mean of {name} is higher (sign-flip p {_p(row.p_randomization_adjusted)})")
        elif settings.test != "wilcoxon" and row.p_wilcoxon_adjusted <= settings.alpha:
            name, other = (row.a, row.b) if ranks > 0 else (row.b, row.a)
            p = _p(row.p_wilcoxon_adjusted)
            found.append(f"on the typical query {name} is better than {other} (exact Wilcoxon p {p})")
    return f"Yet {'; '.join(found)}." if found else ""


def unchanged_sentence(n: int, clusters: int | None) -> str:
    """Return what identical rankings say, and what they cannot.

    >>> unchanged_sentence(150, None)
    'no change was seen; a fault that hits fewer than 2.0 % of the queries would be missed'
    """
    percent = min(100, 300 / (clusters or n))
    share = f"{percent:.0f}" if percent >= 10 else f"{percent:.1f}"
    return f"no change was seen; a fault that hits fewer than {share} % of the queries would be missed"


def gate_sentence(gate: Gate) -> str:
    """Return the outcome of a gate as one line for a log."""
    queries = asked(gate.n, gate.clusters)
    numbers = minus(f"difference {gate.mean_difference:+.4f}")
    if not gate.measured:
        return f"nothing was measured: every score is 0 on {queries} ({numbers})"
    if gate.spent:
        return f"alpha is spent: {queries} are more than were planned for the last look ({numbers})"
    if gate.needed is None:
        shown = "not shown, the measure's range is not known"
    elif gate.too_few:
        needed = f"{gate.needed:,} {'queries' if gate.clusters is None else 'different questions'}"
        shown = f"{queries} cannot show it, which takes at least {needed}"
    else:
        shown = f"{'shown' if gate.passed else 'not shown'} on {queries}"
        numbers = f"{numbers}, p {_p(gate.p_value)}"
    unchanged = f"; {unchanged_sentence(gate.n, gate.clusters)}" if gate.identical else ""
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


def labellers_sentence(merged: Sequence[Comparison], verdicts: Sequence[LabellerVerdict]) -> str:
    """Return whether the verdicts depend on whose labels are taken; "" where there is one labeller."""
    if not verdicts or not merged:
        return ""
    pairs = []
    for row in merged:
        pair = (row.a, row.b)
        findings = {"the merge": row.finding} | {o.labeller: o.rows[pair].finding for o in verdicts if pair in o.rows}
        if len({replace(finding, reason=None) for finding in findings.values()}) > 1:
            each = ", ".join(f"{verdict_word(finding)} under {by}" for by, finding in findings.items())
            pairs.append(f"{row.a} and {row.b}: {each}")
    if pairs:
        return f"Verdicts depend on whose labels are taken: {'; '.join(pairs)}."
    undecided = any(row.verdict is Verdict.UNDECIDED for row in merged)
    same = "No verdict is reversed" if undecided else "Every verdict is the same"
    return f"{same} under the labels of {' and '.join(one.labeller for one in verdicts)} and under the merge of them."


def warning_sentences(warnings: Sequence[RunWarning]) -> list[str]:
    """Return warnings for a list, of what was judged otherwise than the leader's hits only the farthest."""
    gaps = [one for one in warnings if one.kind is WarningKind.JUDGED_GAP]
    farthest = max(gaps, key=lambda one: one.numbers[0] - one.numbers[1], default=None)
    left_out = (WarningKind.FRAGILE, WarningKind.JUDGED_GAP, *([WarningKind.UNJUDGED] if gaps else []))
    return [warning_sentence(one) for one in warnings if one is farthest or one.kind not in left_out]


def warning_sentence(warning: RunWarning) -> str:
    """Return one warning of a run in words.

    >>> warning_sentence(RunWarning(WarningKind.UNJUDGED, ("b", "a"), (0.25, 0.04, 10)))
    "Nobody judged 25 % of the first 10 hits of b (4 % of a's): unjudged documents count as irrelevant."
    """
    names, numbers, words = warning.retrievers, warning.numbers, warning.words
    match warning.kind:
        case WarningKind.HALF_READ:
            up_to = "up to " if numbers[0] < numbers[1] else ""
            return f"{few_names(names)}: {up_to}{100 * numbers[1]:.0f} % of documents truncated; add chunk."
        case WarningKind.UNKNOWN_HITS:
            return (
                f"{names[0]} returned {numbers[0]:,.0f} of {counted(round(numbers[1]), 'hit')} with unknown ids, such "
                f"as {words[0]!r}: they count as irrelevant. Check that both sides use the same ids."
            )
        case WarningKind.MATCHED_IDS:
            told = ", ".join(f"{number:,.0f} by {way}" for number, way in zip(numbers, words, strict=False))
            return f"Ids of {names[0]} are written otherwise than those of the documents: {told} (e.g. {words[-1]})."
        case WarningKind.UNJUDGED:
            beside = f" ({100 * numbers[1]:.0f} % of {names[1]}'s)" if names[0] != names[1] else ""
            hits = f"{100 * numbers[0]:.0f} % of the first {numbers[2]:.0f} hits of {names[0]}{beside}"
            return f"Nobody judged {hits}: unjudged documents count as irrelevant."
        case WarningKind.JUDGED_GAP:
            high, low = (f"{100 * number:.0f} %" for number in numbers[:2])
            judged = f"{high} of what {names[0]} returned was judged, but {low} of {names[1]}'s"
            return f"{judged}: unjudged documents count as irrelevant, which favours {names[0]}."
        case WarningKind.CLICKS:
            return (
                f"The labels of {counted(round(numbers[0]), 'query')} are clicks: what people opened of what some "
                "search showed them, not what anybody judged. They favour that search, and whatever resembles it."
            )
        case WarningKind.FRAGILE:
            return f"Few queries with a large loss would undo what is shown of {join(names)}: label more queries."


def look_sentences(found: Evaluation) -> list[str]:
    """Return what counts as one observation where that is no query, and which look this is, with its level."""
    if not found.measured:
        return []
    said = []
    if found.clusters is not None:
        questions = counted(found.clusters, "different question")
        said.append(f"Queries that ask the same count as one: {count(found.n)}, {questions}.")
    if found.look is not None:
        said.append(look_sentence(found.look, found.n))
    elif found.others and found.settings.earlier:
        said.append(
            f"This is look number {len(found.settings.earlier) + 1}: earlier runs tested the same on some of these "
            "queries, and every further look makes a false claim more likely. Declare `looks` under [statistics]."
        )
    return said


def look_sentence(look: InterimAnalysis, queries: int) -> str:
    """Return which of the planned looks this is, and the level that it has."""
    planned = join([f"{n:,}" for n in look.planned])
    if look.spent:
        what = f"Looks were planned at {planned} queries, and these are {queries:,}"
        return f"{what}: alpha is spent, nothing is claimed."
    other = "" if queries in look.planned else f"; {queries:,} was not planned"
    return (
        f"This is look {look.number} (planned at {planned} queries{other}): level {look.level:.2g}, so "
        f"that all looks together keep {look.alpha:g} (O'Brien & Fleming, Lan & DeMets)."
    )


def look_step(found: Evaluation) -> str:
    """Return whether the planned looks are over, and what the next one can find."""
    cost = f"{found.judgments:,} labels of {count(found.n)}"
    if not found.plans:
        return f"Decided, with {cost}."
    if found.next_look is None:
        return f"The last look is taken, with {cost}: undecided."
    power, true = f"power {100 * found.next_look.power:.0f} %", f"a true difference of {found.difference:g}"
    return f"Go on to {count(found.next_look.queries)}: harness pool RESULTS --next-look. It has {power} for {true}."


def abstention_sentence(found: Abstention, best: int = 2) -> str:
    """Return how well scores tell what nothing answers, of the retrievers that tell it best."""
    first = sorted(found.floors, key=lambda one: -one.area)[:best]
    areas = join([f"{one.retriever} {one.area:.3f} ({one.low:.3f}, {one.high:.3f})" for one in first])
    return f"No answer, {count(found.unanswerable)}: area under ROC {areas}."


def ceiling_sentences(found: Ceilings, measure: str, mean: float) -> list[str]:
    """Return what nothing reaches, as such."""
    return [
        f"Ceiling, chance included: {measure} {found.router:.4f} with the best retriever of each query "
        f"(one for all: {mean:.4f}).",
        f"Ceiling: R@{found.cutoff} {found.union_recall:.4f} of all hits together "
        f"(best alone: {found.best_recall:.4f}).",
    ]
