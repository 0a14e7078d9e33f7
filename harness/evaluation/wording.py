"""Verdicts in English, for the terminal, Markdown, HTML, LaTeX and CSV alike: no other file words or reads one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from harness.english import asked, count, format_p, minus, related, these
from harness.evaluation.verdict import Comparison, Finding, Gate, Reason, Verdict
from harness.stats.multiplicity import adjust
from harness.stats.power import FEWEST
from harness.stats.settings import Settings
from retrievers.errors import InputError, Problem

VERDICTS = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.EQUIVALENT: "equivalent",
    Verdict.UNDECIDED: "undecided",
}
NEGLIGIBLE = " but negligible"
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
"""The words of the column `verdict` of comparisons.csv."""
SIGNS = {Verdict.BETTER: "▲", Verdict.WORSE: "▼", Verdict.EQUIVALENT: "≈", Verdict.UNDECIDED: "·"}
STANDINGS = {
    "leader": ("●", "highest mean"),
    "good": ("●", "as good"),
    "open": ("?", "undecided"),
    "same": ("=", "no query differs"),
    "worse": ("▼", "worse"),
    "baseline": ("■", "the baseline"),
    "better": ("▲", "better"),
    "failed": ("×", "failed"),
}
"""A sign and a word for each standing of the leaderboard: never a colour alone."""
TESTS = {
    "wilcoxon": "the exact Wilcoxon signed-rank test",
    "randomization": "the sign-flip test of the mean",
    "t": "Student's paired t-test",
}
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg"}
COMPARISON_COLUMNS = tuple("verdict" if one.name == "finding" else one.name for one in fields(Comparison))


def verdict_word(finding: Finding) -> str:
    """Return a verdict without its reason.

    >>> verdict_word(Finding(Verdict.BETTER, negligible=True))
    'better but negligible'
    """
    return VERDICTS[finding.verdict] + (NEGLIGIBLE if finding.negligible else "")


def reason_words(reason: Reason | None) -> str:
    """Return a reason as comparisons.csv has it; "" for none."""
    return "" if reason is None else REASONS[reason]


def verdict_cell(finding: Finding) -> str:
    """Return a verdict as comparisons.csv has it.

    >>> verdict_cell(Finding(Verdict.UNDECIDED, Reason.TOO_FEW))
    'undecided: too few queries'
    """
    return ": ".join(part for part in (verdict_word(finding), reason_words(finding.reason)) if part)


EARLIER_REASON = "ranks and means disagree"
"""Of an earlier version, which let two tests decide."""


def read_verdict(cell: str) -> Finding:
    """Read what `verdict_cell` wrote.

    Raises:
        InputError: it is not a verdict.

    >>> read_verdict("equivalent: identical on these queries").reason.name
    'IDENTICAL'
    """
    word, _, why = cell.partition(": ")
    verdicts = {text: verdict for verdict, text in VERDICTS.items()}
    reasons = {text: reason for reason, text in REASONS.items()} | {"": None, EARLIER_REASON: None}
    plain = word.removesuffix(NEGLIGIBLE)
    if plain not in verdicts or why not in reasons:
        raise InputError(Problem("comparisons.csv", f"{cell!r} is not a verdict", "run the experiment again"))
    return Finding(verdicts[plain], reasons[why], word != plain)


def comparison_cells(row: Comparison) -> dict[str, Any]:
    """Return a comparison as a row of comparisons.csv."""
    values = (getattr(row, one.name) for one in fields(row))
    cells = dict(zip(COMPARISON_COLUMNS, values, strict=True))
    return {**cells, "verdict": verdict_cell(row.finding)}


def read_comparison(cells: Mapping[str, Any]) -> Comparison:
    """Read what `comparison_cells` wrote; None for an empty cell.

    Raises:
        InputError: the verdict is none.
    """
    given = {name: cells[name] for name in COMPARISON_COLUMNS if name != "verdict"}
    return Comparison(**given, finding=read_verdict(str(cells["verdict"])))


def settings_sentence(settings: Settings) -> str:
    """Return which test is behind the verdicts."""
    drops = ", zero differences dropped" if settings.test == "wilcoxon" else ""
    return (
        f"Decided by {TESTS[settings.test]}{drops}; p adjusted within each measure by "
        f"{CORRECTIONS[settings.correction]}; level {settings.alpha:.3g}."
    )


def shown_words(row: Comparison, settings: Settings) -> str:
    """Return what was shown of two retrievers, in words that fit the deciding test."""
    high, low = (row.a, row.b) if row.verdict is Verdict.BETTER else (row.b, row.a)
    if settings.test == "wilcoxon":
        return f"{high} is better than {low} on the typical query"
    word = "higher" if (row.mean_difference > 0) == (high == row.a) else "lower, which is better,"
    return f"the mean of {high} is {word} than that of {low}"


def pair_sentence(row: Comparison, settings: Settings) -> str:
    """Return one comparison as a sentence: the difference and its interval come before p."""
    interval = f"{row.mean_difference:+.4f}"
    if row.ci_low is not None and row.ci_high is not None:
        short = f", likely too short as only {differing(row)}" if row.differing < FEWEST else ""
        interval += f" ({100 * settings.level:.3g} % interval {row.ci_low:+.4f} to {row.ci_high:+.4f}{short})"
    exact = ""
    if settings.test != "wilcoxon" and row.p_wilcoxon_adjusted is not None:
        exact = f", exact Wilcoxon p {related(format_p(row.p_wilcoxon_adjusted))}"
    numbers = (
        f"mean difference in {row.measure} {minus(interval)}, adjusted p {related(format_p(row.p_adjusted))}{exact}"
    )
    match row.verdict:
        case Verdict.EQUIVALENT:
            same = ", with identical rankings on these queries" if row.reason is Reason.IDENTICAL else ""
            return f"{row.a} and {row.b} are equivalent within {settings.margin:g}{same}: {numbers}."
        case Verdict.UNDECIDED:
            return f"{row.a} and {row.b}: undecided, {why(row, settings)}; {numbers}."
        case _:
            small = f", but by less than the margin of {settings.margin:g}" if row.finding.negligible else ""
            return f"By {TESTS[settings.test]}, {shown_words(row, settings)}{small}: {numbers}."


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
            name, p = row.a if mean > 0 else row.b, format_p(row.p_randomization_adjusted)
            found.append(f"the mean of {name} is higher (sign-flip p {related(p)})")
        elif settings.test != "wilcoxon" and row.p_wilcoxon_adjusted <= settings.alpha:
            name, other = (row.a, row.b) if ranks > 0 else (row.b, row.a)
            p = format_p(row.p_wilcoxon_adjusted)
            found.append(f"on the typical query {name} is better than {other} (exact Wilcoxon p {related(p)})")
    return f"Yet {'; '.join(found)}." if found else ""


def why(row: Comparison, settings: Settings) -> str:
    """Return the reason of a comparison with its numbers."""
    queries = asked(row.n, row.clusters)
    match row.reason:
        case Reason.MODEL_ALONE:
            return "no person judged these queries"
        case Reason.ALPHA_SPENT:
            return "alpha is spent: these are more queries than were planned for the last look"
        case Reason.NOTHING_MEASURED:
            return f"every score of {row.measure} is 0, so that nothing was measured"
        case Reason.IDENTICAL:
            where = these(row.n, row.clusters)
            return f"the rankings are identical on {where}: {unchanged_sentence(row.n, row.clusters)}"
        case Reason.NO_QUERY_DIFFERS:
            return f"no query of {row.n:,} tells them apart"
        case Reason.TOO_FEW:
            floor = format_p(row.p_minimum_adjusted or 0.0)
            return (
                f"too few queries ({row.differing:,} of {queries} differ; the smallest adjusted p that they could "
                f"give is {floor}, above {settings.alpha:.3g})"
            )
        case Reason.UNDEFINED:
            return "the t-test is undefined where all differences are equal"
        case _:
            favour = "favours" if row.wins == 1 else "favour"
            return f"{count(row.wins)} {favour} {row.a}, {row.losses:,} {row.b}, {row.ties:,} neither"


def differing(row: Comparison, *, of: bool = False) -> str:
    """Return how many queries differ, or how many of all."""
    what = f"{row.differing:,} of {asked(row.n, row.clusters)}" if of else count(row.differing)
    return f"{what} {'differs' if row.differing == 1 else 'differ'}"


def significance_sentence(rows: Sequence[Comparison], settings: Settings) -> str:
    """Return the results of the tests of one measure's family."""
    if not rows:
        return "There is no pair to compare."
    if not settings.by_people:
        return "No person judged: these p-values say how steady the model's opinion is, and no more."
    if settings.spent:
        return "Alpha is spent: these are more queries than were planned for the last look. Nothing more is claimed."
    level = f"{100 * settings.alpha:.3g} %"
    queries, measure = asked(rows[0].n, rows[0].clusters), rows[0].measure
    if all(row.reason is Reason.NOTHING_MEASURED for row in rows):
        return f"Every score of {measure} is 0: nothing was measured."
    shown = sum(row.verdict.separates for row in rows)
    if shown:
        many = f"{shown} of {len(rows)} differences in {measure} {'is' if shown == 1 else 'are'}"
        what = f"The difference in {measure} is" if len(rows) == 1 else many
        return f"{what} significant at {level} after correction."
    head = f"No difference in {measure} is significant at {level}"
    floors = [row.p_minimum for row in rows if row.p_minimum_adjusted is not None]
    if len(floors) == len(rows):
        least = min(adjust([1.0 if floor is None else floor for floor in floors], settings.correction))
        if least > settings.alpha:
            return (
                f"{head}: {queries} could not have shown any (the smallest adjusted p that the differing ones allow "
                f"is {format_p(least)})."
            )
    return f"{head} on {queries}; the smallest adjusted p is {format_p(min(row.p_adjusted for row in rows))}."


def gate_sentence(gate: Gate) -> str:
    """Return the outcome of a gate as one line for a log."""
    queries = asked(gate.n, gate.clusters)
    numbers = minus(f"difference {gate.mean_difference:+.4f}")
    if not gate.measured:
        return f"nothing was measured: every score is 0 on {queries} ({numbers})"
    unchanged = f"; {unchanged_sentence(gate.n, gate.clusters)}" if gate.identical else ""
    if gate.spent:
        return f"alpha is spent: {queries} are more than were planned for the last look ({numbers})"
    if gate.needed is None:
        return f"not worse by {gate.margin:g}: not shown, the measure's range is not known ({numbers}){unchanged}"
    if gate.too_few:
        needed = f"{gate.needed:,} {'queries' if gate.clusters is None else 'different questions'}"
        few = f"{queries} cannot show it, which takes at least {needed}"
        return f"not worse by {gate.margin:g}: {few} ({numbers}){unchanged}"
    shown = "shown" if gate.passed else "not shown"
    numbers = f"{numbers}, p {related(format_p(gate.p_value))}"
    return f"not worse by {gate.margin:g}: {shown} on {queries} ({numbers}){unchanged}"


def unchanged_sentence(n: int, clusters: int | None) -> str:
    """Return what identical rankings say, and what they cannot.

    >>> unchanged_sentence(150, None)
    'no change was seen; a fault that hits fewer than 2.0 % of the queries would be missed'
    """
    percent = min(100, 300 / (clusters or n))
    share = f"{percent:.0f}" if percent >= 10 else f"{percent:.1f}"
    return f"no change was seen; a fault that hits fewer than {share} % of the queries would be missed"


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
