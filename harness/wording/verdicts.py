"""Verdicts in words, of pairs or gates.

The words of reasons and standings are here alone, and nothing reads them back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.english import (
    count_of,
    count_pairs,
    count_queries,
    count_units,
    join_names,
    p_relation,
    p_text,
    percent_text,
    possessive,
    with_minus_sign,
)
from harness.evaluation.abstention import Abstention, ScoreThreshold
from harness.evaluation.board import Board
from harness.evaluation.corpus_change import LabelReason
from harness.evaluation.evaluation import Ceilings
from harness.evaluation.gate_verdict import Gate, GateOutcome
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
"""The words in the column `verdict` of comparisons.csv."""
VERDICT_SIGNS = {
    Verdict.BETTER: "▲",
    Verdict.WORSE: "▼",
    Verdict.EQUIVALENT: "●",
    Verdict.UNDECIDED: "?",
}
STANDING_WORDS = {
    "leader": ("●", "leader"),
    "good": ("●", "as good"),
    "open": ("?", "undecided"),
    "same": ("?", "undecided"),
    "worse": ("▼", "worse"),
    "baseline": ("", "baseline"),
    "better": ("▲", "better"),
    "failed": ("×", "failed"),
}
"""A sign and a word for each standing of the leaderboard: never a colour alone.

Pairs have the same signs.
"""
TEST_NAMES = {
    "wilcoxon": "the exact Wilcoxon signed-rank test",
    "randomization": "the sign-flip test of the mean",
    "t": "Student's paired t-test",
}
MODEL_ALONE_REASON = (
    "no person judged these queries, and a model's labels alone show nothing"
)
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
    if finding.negligible:
        return f"{finding.verdict.value} but negligible"
    return finding.verdict.value


def reason_words(reason: Reason | None) -> str:
    """Return a reason as comparisons.csv has it; "" for none."""
    return "" if reason is None else REASON_WORDS[reason]


def verdict_cell(finding: Finding) -> str:
    """Return a verdict as comparisons.csv has it.

    >>> verdict_cell(Finding(Verdict.UNDECIDED, Reason.TOO_FEW))
    'undecided: too few queries'
    """
    if finding.reason is None:
        return verdict_word(finding)
    return f"{verdict_word(finding)}: {reason_words(finding.reason)}"


def settings_sentence(settings: Settings) -> str:
    """Return the test and the correction of the verdicts."""
    dropped = ", zero differences dropped" if settings.test == "wilcoxon" else ""
    correction = CORRECTION_NAMES[settings.correction]
    return (
        f"Decided by {TEST_NAMES[settings.test]}{dropped}; p adjusted within each "
        f"measure by {correction}; level {settings.alpha:.3g}."
    )


def short_settings_sentence(settings: Settings, comparisons: int) -> str:
    """Return the test that decides, its level, and the correction of p."""
    sentence = f"{capitalized(TEST_NAMES[settings.test])} decides at level "
    sentence += f"{settings.alpha:.3g}"
    if comparisons < 2:
        return f"{sentence}."
    correction = CORRECTION_NAMES[settings.correction]
    adjusted = f"p is adjusted for {comparisons} comparisons ({correction})"
    return f"{sentence}; {adjusted}."


def capitalized(sentence: str) -> str:
    """Return a sentence with a capital letter.

    >>> capitalized("the exact Wilcoxon test")
    'The exact Wilcoxon test'
    """
    return sentence[:1].upper() + sentence[1:]


def p_phrase(p: float) -> str:
    """Return a p-value with its relation, such as "= 0.03" or "< 0.001"."""
    return p_relation(p_text(p))


def pair_sentence(row: Comparison, settings: Settings) -> str:
    """Return one comparison as a sentence: the difference and its interval, then p."""
    numbers = _pair_numbers(row, settings)
    if not row.verdict.shows_difference:
        outcome = row.verdict.value
        if row.verdict is Verdict.EQUIVALENT:
            outcome += f" within {settings.margin:g}"
        if row.reason is not None:
            outcome += f", {reason_words(row.reason)}"
        return f"{row.a} and {row.b}: {outcome}; {numbers}."
    difference = _difference_words(row, settings)
    if row.finding.negligible:
        difference += f", but by less than the margin of {settings.margin:g}"
    return f"By {TEST_NAMES[settings.test]}, {difference}: {numbers}."


def _pair_numbers(row: Comparison, settings: Settings) -> str:
    difference = f"{row.mean_difference:+z.4f}"
    if row.ci_low is not None and row.ci_high is not None:
        level = f"{percent_text(settings.level)} % interval of this pair"
        difference += f" ({level} {row.ci_low:+.4f} to {row.ci_high:+.4f})"
    numbers = f"mean difference in {row.measure} {with_minus_sign(difference)}"
    numbers += f", adjusted p {p_phrase(row.p_adjusted)}"
    exact_p = row.p_wilcoxon_adjusted
    if settings.test != "wilcoxon" and exact_p is not None:
        numbers += f", exact Wilcoxon p {p_phrase(exact_p)}"
    return numbers


def _difference_words(row: Comparison, settings: Settings) -> str:
    """Return which retriever is shown to be better."""
    better = row.a
    worse = row.b
    if row.verdict is not Verdict.BETTER:
        better = row.b
        worse = row.a
    if settings.test == "wilcoxon":
        return f"{better} is better than {worse} on the typical query"
    relation = "higher"
    if (row.mean_difference > 0) != (better == row.a):
        relation = "lower, which is better,"
    return f"{possessive(better)} mean is {relation} than {possessive(worse)}"


def trials_sentence(trial_means: Mapping[str, Sequence[float]]) -> str:
    """Return the lowest and the highest mean over trials; empty without trials.

    Args:
        trial_means: retriever -> its mean in each trial.

    >>> trials_sentence({"tool": (0.5, 0.75, 0.625), "agent": (0.25, 0.5, 0.5)})
    'Means over 3 trials: tool 0.500 to 0.750; agent 0.250 to 0.500.'
    """
    spreads: dict[int, list[str]] = {}
    for name, means in trial_means.items():
        spread = f"{name} {min(means):.3f} to {max(means):.3f}"
        spreads.setdefault(len(means), []).append(spread)
    return " ".join(
        f"Means over {count} trials: {'; '.join(names)}."
        for count, names in spreads.items()
    )


def single_p_note(board: Board) -> str:
    """Return what the star at a p of the leaderboard means; "" without one.

    >>> single_p_note(Board("nDCG@10", 9, "a", False, 0.95, None, ()))
    ''
    """
    p = board.largest_single_p
    if p is None:
        return ""
    stars = sum(row.p_single is not None for row in board.rows)
    relation = f"p {p_phrase(p)}"
    if stars > 1:
        relation = f"largest p {p_phrase(p)}"
    return f"* {relation} without correction: enough for the choice of one"


def choice_sentence(leader: str, board: Board) -> str:
    """Return why the leader is chosen although corrected p show less; "" if none do.

    >>> choice_sentence("a", Board("nDCG@10", 9, "a", False, 0.95, None, ()))
    ''
    """
    p = board.largest_single_p
    if p is None:
        return ""
    return (
        f"The choice of {leader}, to beat all others at once, needs no correction "
        f"(largest p {p_phrase(p)})."
    )


def opposite_warning(
    rows: Sequence[Comparison], settings: Settings, *, low_is_good: bool = False
) -> str:
    """Return the pairs whose other test rejects in the opposite direction; "" for none.

    Args:
        rows: comparisons of one measure.
        settings: the settings of these comparisons.
        low_is_good: whether less is better by the measure.
    """
    direction = -1 if low_is_good else 1
    relation = "lower" if low_is_good else "higher"
    opposites: list[str] = []
    for row in rows:
        rank_difference = row.w_plus - row.w_minus
        is_opposite = rank_difference * row.mean_difference < 0
        if not row.verdict.shows_difference or not is_opposite:
            continue
        if settings.test == "wilcoxon":
            p = row.p_randomization_adjusted
            if p <= settings.alpha:
                name = row.a if direction * row.mean_difference > 0 else row.b
                test = f"sign-flip p {p_phrase(p)}"
                opposites.append(f"{possessive(name)} mean is {relation} ({test})")
        elif row.p_wilcoxon_adjusted is not None:
            p = row.p_wilcoxon_adjusted
            if p <= settings.alpha:
                pair = f"{row.a} is better than {row.b}"
                if direction * rank_difference <= 0:
                    pair = f"{row.b} is better than {row.a}"
                test = f"exact Wilcoxon p {p_phrase(p)}"
                opposites.append(f"on the typical query {pair} ({test})")
    return f"Yet {'; '.join(opposites)}." if opposites else ""


def gate_sentence(gate: Gate) -> str:
    """Return the outcome of a gate as one line for a log: what, why, what to do."""
    queries = count_units(gate.n, gate.clusters)
    if gate.outcome is GateOutcome.UNCHANGED:
        sentence = f"unchanged: the rankings are the same on {queries}"
        return f"{sentence}{_missed_defect(gate)}"
    numbers = with_minus_sign(f"difference {gate.mean_difference:+z.4f}")
    if gate.outcome is GateOutcome.WORSE:
        p = p_phrase(gate.p_worse)
        sentence = f"worse on {queries} ({numbers}, p {p})"
    elif gate.outcome is GateOutcome.PASSED:
        numbers += _margin_p_words(gate)
        sentence = f"passed: not worse by {gate.margin:g} on {queries} ({numbers})"
        if gate.is_worse:
            sentence += "; worse, but within the margin"
    else:
        sentence = f"not shown: {_not_shown_words(gate)}"
    if not gate.has_equal_weights:
        remedy = "draw queries in proportion to traffic instead of weighting them"
        sentence += f"; few heavy queries decide: {remedy}"
    return sentence


def _not_shown_words(gate: Gate) -> str:
    """Return why a gate shows nothing, and what would help."""
    queries = count_units(gate.n, gate.clusters)
    numbers = with_minus_sign(f"difference {gate.mean_difference:+z.4f}")
    if not gate.measured:
        return f"nothing was measured, every score is 0 on {queries}"
    if not gate.judged_by_people:
        return MODEL_ALONE_REASON
    if gate.alpha_spent:
        return f"alpha is spent, {queries} are more than were planned for the last look"
    if gate.label_reason is not None:
        return _missing_label_words(gate, gate.label_reason)
    if gate.needed is None:
        return f"the measure's range is unknown ({numbers})"
    if gate.too_few:
        units = "" if gate.clusters is None else " clusters"
        remedy = f"{gate.needed:,}{units} needed"
        return (
            f"with {queries} a loss of {gate.margin:g} cannot be ruled out ({remedy})"
        )
    numbers += _margin_p_words(gate)
    return f"with {queries} a loss of {gate.margin:g} cannot be ruled out ({numbers})"


def _missing_label_words(gate: Gate, reason: LabelReason) -> str:
    """Return that missing labels may explain a difference, and which to add."""
    numbers = with_minus_sign(f"difference {gate.mean_difference:+z.4f}")
    if reason is not LabelReason.NEW_UNLABELLED:
        return f"{reason} ({numbers})"
    remedy = f"{gate.pool_command} draws them, among others"
    if gate.to_label:
        have = "has" if gate.to_label == 1 else "have"
        remedy = f"{count_pairs(gate.to_label)} {have} no label: {remedy}"
    return f"{reason} ({numbers}; {remedy})"


def _margin_p_words(gate: Gate) -> str:
    """Return the p of the margin; "" if it was not tested."""
    return "" if gate.p_value is None else f", p {p_phrase(gate.p_value)}"


def _missed_defect(gate: Gate) -> str:
    """Return how rare a defect can be that these queries did not show.

    By the rule of three, from the upper 95 % limit of a share of 0.
    """
    units = gate.n if gate.clusters is None else gate.clusters
    in_units = round(units / 3)
    if in_units <= 1:
        return ""
    unit = "query" if gate.clusters is None else "cluster"
    rarity = f"fewer than 1 {unit} in {in_units:,}"
    return f"; {count_of(units, unit)} miss a defect that affects {rarity}"


def gate_cells(gate: Gate) -> dict[str, Any]:
    """Return the outcome of a gate as data."""
    return {
        "passed": gate.passed,
        "outcome": gate.outcome.value,
        "reason": gate_sentence(gate),
        "n": gate.n,
        "mean_difference": gate.mean_difference,
        "margin": gate.margin,
        "p_value": gate.p_value,
        "p_worse": gate.p_worse,
        "queries_needed": gate.needed,
        "to_label": gate.to_label,
    }


def failed_gate_cells(sentence: str, outcome: str = "failed") -> dict[str, Any]:
    """Return as data why a gate tested nothing, such as a retriever that failed.

    >>> failed_gate_cells("ours failed: connection refused")["outcome"]
    'failed'
    """
    return {"passed": False, "outcome": outcome, "reason": sentence}


def abstention_sentence(abstention: Abstention, limit: int = 2) -> str:
    """Return how well scores separate queries without an answer.

    Args:
        abstention: of a run.
        limit: how many retrievers are named, the best.
    """
    by_area = sorted(abstention.floors, key=lambda floor: -floor.area)
    areas = [_area_text(floor) for floor in by_area[:limit]]
    queries = count_queries(abstention.unanswerable)
    return f"No answer, {queries}: area under ROC {join_names(areas)}."


def _area_text(floor: ScoreThreshold) -> str:
    area = f"{floor.retriever} {floor.area:.3f}"
    if floor.low is None:
        return area
    return f"{area} ({floor.low:.3f}, {floor.high:.3f})"


def ceiling_sentences(ceilings: Ceilings, mean: float) -> list[str]:
    """Return the upper bounds that no single retriever exceeds.

    Args:
        ceilings: of a run.
        mean: the best mean of a single retriever.
    """
    hits = "hits" if ceilings.cutoff == 1 else f"{ceilings.cutoff} hits"
    union = percent_text(ceilings.union_recall, digits=2)
    alone = percent_text(ceilings.best_recall, digits=2)
    return [
        f"The best retriever of each query would score {ceilings.best_per_query:.3f} "
        f"(leader: {mean:.3f}), partly by chance.",
        f"All first {hits} together contain {union} % of a query's "
        f"relevant documents on average; the best retriever's {alone} %.",
    ]
