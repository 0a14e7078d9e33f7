"""The lines above a leaderboard.

`_conclude` is the verdict: the first case that holds gives headline, reason and next
step. Its sentences about one pair are in `verdicts`, those about looks in `looks`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from harness.english import (
    count_of,
    count_units,
    join_names,
    names_or_count,
    p_relation,
    p_text,
    percent_text,
    possessive,
    short_p_text,
    with_minus_sign,
)
from harness.evaluation.evaluation import MIN_SWEEP_QUERIES, Evaluation, SweepChoice
from harness.evaluation.verdict import Comparison, Reason, Verdict
from harness.evaluation.warnings import Fragile
from harness.wording.failures import failure_summary
from harness.wording.looks import next_look_command
from harness.wording.next_step import next_step
from harness.wording.numerals import capital_numeral
from harness.wording.sweep_choice import (
    MAX_ALIKE_NAMES,
    alike_sentence,
    edge_sentence,
    sweep_sentence,
)
from harness.wording.verdicts import opposite_warning

RECOMPUTED_NOTE = (
    "This folder has no evaluation of this version: "
    "its comparisons are computed again from its scores."
)
MIN_VISIBLE_LEAD = 0.0005
"""Smaller leads would read 0.000."""


class VerdictLines(NamedTuple):
    """The lines above the leaderboard, and the details of `--explain`.

    The lines repeat no number of the leaderboard, except the mean of an only retriever.
    """

    headline: str
    reason: str
    """Why, in one sentence; "" if the headline shows it."""
    next_step: str
    """What to do next; "" if nothing follows."""
    command: str
    """The command of the next step; "" without one."""
    details: tuple[str, ...]
    """The lead, the retrievers that are as good, the sweep's gain, the weights."""
    alerts: tuple[str, ...]
    """What may change the verdict."""


class Conclusion(NamedTuple):
    """The first lines above the leaderboard, as in `VerdictLines`."""

    headline: str
    reason: str
    next_step: str
    command: str = ""


def verdict_lines(
    evaluation: Evaluation, *, complete: bool = True, folder: str = "RESULTS"
) -> VerdictLines:
    """Return the verdict in a few lines.

    Args:
        evaluation: of a run.
        complete: whether all retrievers are compared; otherwise those that are as good
            are not recommended by cost.
        folder: the results folder, quoted for a command.
    """
    details: list[str] = []
    may_claim = evaluation.settings.judged_by_people and not evaluation.undeclared
    if evaluation.measured and may_claim:
        details = _details(evaluation)
    alerts = _alerts(evaluation)
    if evaluation.recomputed:
        alerts.append(RECOMPUTED_NOTE)
    conclusion = _conclude(evaluation, complete=complete, folder=folder)
    return VerdictLines(*conclusion, tuple(filter(None, details)), tuple(alerts))


def conclusion_sentences(evaluation: Evaluation) -> list[str]:
    """Return the verdict in sentences, the most important first, with the means."""
    lines = verdict_lines(evaluation)
    sentences = [f"{lines.headline}{_means_words(evaluation)}."]
    sentences += filter(None, [lines.reason, lines.next_step, lines.command])
    return [*sentences, *lines.details, *lines.alerts]


def _means_words(evaluation: Evaluation) -> str:
    """Return the best means in brackets; "" if nothing was measured, or only one."""
    if not evaluation.measured or not evaluation.others:
        return ""
    rows = [row for row in evaluation.board.rows if row.mean is not None]
    means = [f"{row.retriever} {row.mean:.3f}" for row in rows[:MAX_ALIKE_NAMES]]
    if len(rows) > len(means):
        means.append(f"{len(rows) - len(means)} more")
    return f" ({evaluation.measure}: {', '.join(means)})"


def conclusion_headline(evaluation: Evaluation) -> str:
    """Return the headline alone."""
    return verdict_lines(evaluation).headline


def _alerts(evaluation: Evaluation) -> list[str]:
    """Return the other test's opposite result, else the fragile verdicts."""
    if not evaluation.measured:
        return []
    if evaluation.sweep is None:
        rows = evaluation.baseline_comparisons
        if not evaluation.baseline:
            rows = tuple(evaluation.leader_comparisons.values())
        opposite = opposite_warning(
            rows, evaluation.settings, low_is_good=_is_low_good(evaluation)
        )
        if opposite:
            return [opposite]
    return _fragile_alerts(evaluation)


def _fragile_alerts(evaluation: Evaluation) -> list[str]:
    """Return one sentence on the shown differences that three queries would reverse.

    Empty without such a difference, or if retrievers failed: then nothing is
    recommended.
    """
    opponents: dict[str, list[str]] = {}
    for warning in evaluation.warnings:
        if isinstance(warning, Fragile):
            opponents.setdefault(warning.a, []).append(warning.b)
    if not opponents or evaluation.failed:
        return []
    results = [
        f"{retriever} against {join_names(names)}"
        for retriever, names in opponents.items()
    ]
    reversed_by = "Three queries with the largest possible loss would reverse"
    return [f"{reversed_by} {'; '.join(results)}."]


def _conclude(evaluation: Evaluation, *, complete: bool, folder: str) -> Conclusion:
    """Return headline, reason and step of the first case that holds."""
    leader = evaluation.leader
    if evaluation.failed:
        return _incomplete(evaluation)
    if not evaluation.measured:
        return Conclusion(
            f"Nothing was measured: every score of {evaluation.measure} is 0",
            "",
            "Check that the labels name documents by the ids that the retrievers "
            "return.",
        )
    if not evaluation.others:
        return Conclusion(
            f"{leader} scores {evaluation.means[leader]:.3f}",
            "",
            "Add a second retriever to compare.",
        )
    if not evaluation.settings.judged_by_people:
        return Conclusion(
            f"Only a model judged these queries, which decides nothing; {leader} leads",
            "",
            "Let people judge a random part of these queries.",
        )
    if evaluation.undeclared:
        return _conclude_exploratory(evaluation)
    if evaluation.sweep is not None:
        return _conclude_sweep(evaluation, evaluation.sweep)
    step = next_step(evaluation, complete=complete)
    command = next_look_command(evaluation, folder)
    rows = evaluation.baseline_comparisons
    if not any(row.verdict.shows_difference for row in rows):
        headline = _leader_headline(evaluation)
        return Conclusion(headline, _leader_reason(evaluation), step, command)
    headline = _baseline_headline(evaluation)
    return Conclusion(headline, _baseline_reason(evaluation), step, command)


def _conclude_exploratory(evaluation: Evaluation) -> Conclusion:
    """Return the conclusion by choices made after the run, which recommends nothing."""
    choices = join_names(evaluation.undeclared)
    headline = f"Exploratory, by {choices}: {evaluation.leader} has the best mean"
    worse = [
        name
        for name, row in evaluation.leader_comparisons.items()
        if row.verdict is Verdict.BETTER
    ]
    if not worse:
        return Conclusion(headline, "No difference from it is shown.", "")
    reason = f"It differs from {names_or_count(worse)}."
    return Conclusion(headline, reason, "Declare it before the next run.")


def _incomplete(evaluation: Evaluation) -> Conclusion:
    """Return the conclusion if retrievers failed."""
    failed = evaluation.failed
    headline = f"No recommendation: {failure_summary(failed)}"
    reason = ""
    if evaluation.others:
        reason = f"{evaluation.leader} leads the others."
    step = f"Fix {'it' if len(failed) == 1 else 'them'} and run again."
    return Conclusion(headline, reason, step)


def _conclude_sweep(evaluation: Evaluation, choice: SweepChoice) -> Conclusion:
    step = alike_sentence(choice)
    if choice.too_few:
        queries = evaluation.clusters or evaluation.n
        unit = "queries" if evaluation.clusters is None else "clusters"
        reason = f"Choosing needs {MIN_SWEEP_QUERIES} {unit}; you have {queries}."
        return Conclusion("Undecided", reason, step)
    tried = choice.configurations
    if choice.beats:
        best_of = f"It has the highest mean of {count_of(tried, 'configuration')}"
        reason = f"{best_of} and is shown to beat {choice.default}."
        steps = f"{step} {edge_sentence(choice)}".strip()
        return Conclusion(f"Use {choice.chosen}", reason, steps)
    others = "The other is not" if tried == 1 else f"None of {tried} others is"
    reason = f"{others} shown to beat it."
    return Conclusion(f"Keep {choice.default}", reason, edge_sentence(choice))


def _leader_reason(evaluation: Evaluation) -> str:
    """Return why the leader leads, or why nothing is decided; "" for neither."""
    others = evaluation.others
    if len(evaluation.shown_worse) == len(others):
        return _choice_reason(evaluation)
    if evaluation.better_on_typical_query or not evaluation.queries_needed:
        return ""
    if _is_all_undecided(evaluation):
        rows = evaluation.leader_comparisons.values()
        if all(row.reason is Reason.TOO_FEW for row in rows):
            return _too_few_reason(evaluation)
        retrievers = join_names(list(evaluation.means))
        if len(others) > 1:
            retrievers = f"the {len(evaluation.means)} retrievers"
        return f"No difference is shown between {retrievers}."
    return _standings_reason(evaluation)


def _standings_reason(evaluation: Evaluation) -> str:
    """Return how many score worse, and which ones are undecided or as good."""
    undecided = list(evaluation.queries_needed)
    if len(undecided) == len(evaluation.others):
        return "All others are undecided."
    parts: list[str] = []
    relation = "higher" if _is_low_good(evaluation) else "lower"
    worse = evaluation.shown_worse
    if len(worse) == 1:
        parts.append(f"{worse[0]} scores {relation}")
    elif worse:
        parts.append(f"{capital_numeral(len(worse))} score {relation}")
    as_good = list(evaluation.as_good_as_leader[1:])
    if as_good:
        verb = "is" if len(as_good) == 1 else "are"
        parts.append(f"{names_or_count(as_good, 3)} {verb} as good")
    verb = "is" if len(undecided) == 1 else "are"
    parts.append(f"{names_or_count(undecided, 4)} {verb} undecided")
    return f"{'; '.join(parts)}."


def _too_few_reason(evaluation: Evaluation) -> str:
    """Return how many differing queries a small enough p takes."""
    comparisons = evaluation.comparisons[evaluation.measure]
    settings = evaluation.settings
    pairs = 1 if settings.correction == "bh" else len(comparisons)
    # Each of 2^n flips of the signs is equally likely; two are as extreme. By
    # Benjamini-Hochberg equal p of all pairs need no correction.
    needed = math.ceil(1 + math.log2(pairs / settings.alpha))
    rows = evaluation.leader_comparisons.values()
    differing = max(row.wins + row.losses for row in rows)
    queries = count_units(evaluation.n, evaluation.clusters)
    if evaluation.clusters is not None or differing >= needed:
        return f"{queries} {'is' if evaluation.n == 1 else 'are'} too few to show one."
    verb = "differs" if differing == 1 else "differ"
    level = short_p_text(settings.alpha).rstrip("0")
    p_name = "p" if pairs == 1 else "corrected p"
    return (
        f"{count_of(differing, 'query')} {verb}: no {p_name} can reach {level}; "
        f"{needed} are needed."
    )


def _choice_reason(evaluation: Evaluation) -> str:
    """Return why the leader is chosen."""
    others = names_or_count(evaluation.others)
    relation = "scores higher than"
    if _is_low_good(evaluation):
        relation = "scores lower than"
    if evaluation.settings.test == "wilcoxon":
        relation = "is better on the typical query than"
    significance = "the difference is significant"
    if len(evaluation.others) > 1:
        significance = "the differences are significant"
    if any(row.p_single is not None for row in evaluation.board.rows):
        significance = "each difference is significant by itself"
    return f"It {relation} {others}; {significance}."


def _choice_detail(evaluation: Evaluation) -> str:
    """Return the p of the choice, and why an interval reaches 0; "" for neither."""
    choice = evaluation.choice
    if choice is None or not evaluation.is_chosen:
        return ""
    p = p_relation(p_text(choice.p_choice))
    leader = possessive(evaluation.leader)
    sentence = f"{leader} test against its closest rival decides (p {p})"
    if not _has_interval_at_zero(evaluation):
        return f"{sentence}."
    return f"{sentence}; the intervals, for all rows at once, are wider."


def _has_interval_at_zero(evaluation: Evaluation) -> bool:
    """Whether the interval of a retriever that is shown to be worse reaches 0."""
    for row in evaluation.board.rows:
        if row.low is None or row.high is None:
            continue
        if row.standing == "worse" and row.low <= 0 <= row.high:
            return True
    return False


def _details(evaluation: Evaluation) -> list[str]:
    """Return what else is shown about the leader: weights, equals, what is as good."""
    leader = evaluation.leader
    sentences = [lead_sentence(evaluation), _choice_detail(evaluation)]
    if evaluation.sweep is not None:
        sentences = [sweep_sentence(evaluation.sweep, evaluation.settings)]
    if evaluation.effective is not None:
        unit = "query" if evaluation.clusters is None else "cluster"
        units = count_of(round(evaluation.effective), unit)
        weight = evaluation.settings.weight
        sentences.append(
            f"Means are weighted by {weight}, "
            f"which leaves about {units} of equal weight."
        )
    identical = _identical_to_leader(evaluation)
    if identical:
        sentences.append(
            f"Identical to {leader} on these queries, ranking by ranking: "
            f"{join_names(identical)}."
        )
    as_good = [
        name for name in evaluation.as_good_as_leader[1:] if name not in identical
    ]
    if as_good:
        margin = f"{evaluation.settings.margin:g}"
        sentences.append(
            f"Shown to be as good as {leader} within {margin}: {join_names(as_good)}."
        )
    return sentences


def _identical_to_leader(evaluation: Evaluation) -> list[str]:
    """Return the retrievers within the margin whose rankings are the leader's."""
    rows = evaluation.leader_comparisons
    return [
        name
        for name in evaluation.as_good_as_leader[1:]
        if rows[name].reason is Reason.IDENTICAL
    ]


def _baseline_headline(evaluation: Evaluation) -> str:
    better = _better_than_baseline(evaluation)
    if not better:
        return f"Keep {evaluation.baseline}"
    verb = "beats" if len(better) == 1 else "beat"
    return f"{names_or_count(better)} {verb} the baseline {evaluation.baseline}"


def _baseline_reason(evaluation: Evaluation) -> str:
    """Return who leads, unless the headline has it alone, and who is undecided."""
    better = _better_than_baseline(evaluation)
    if not better:
        return "Nothing is shown to beat it."
    undecided = [
        row.a
        for row in evaluation.baseline_comparisons
        if row.verdict is Verdict.UNDECIDED
    ]
    sentences: list[str] = []
    if len(better) > 1 or evaluation.leader not in better:
        sentences.append(f"{evaluation.leader} has {_best_mean(evaluation)}.")
    if undecided:
        verb = "is" if len(undecided) == 1 else "are"
        sentences.append(f"{names_or_count(undecided)} {verb} undecided.")
    return " ".join(sentences)


def _better_than_baseline(evaluation: Evaluation) -> list[str]:
    rows = evaluation.baseline_comparisons
    return [row.a for row in rows if row.verdict is Verdict.BETTER]


def lead_sentence(evaluation: Evaluation) -> str:
    """Return how far the best mean is ahead of the next.

    "" if there is no other, or the lead would read 0.000.
    """
    if not evaluation.leader_comparisons:
        return ""
    row = next(iter(evaluation.leader_comparisons.values()))
    other = row.b
    if abs(row.mean_difference) < MIN_VISIBLE_LEAD:
        return ""
    if _is_low_good(evaluation):
        row = row.swapped
    lead = f"{row.mean_difference:.3f}"
    if row.ci_low is not None and row.ci_high is not None:
        level = percent_text(evaluation.settings.level)
        ends = f"{row.ci_low:z.3f} to {row.ci_high:z.3f}"
        lead += f" ({level} % CI of this pair alone: {ends})"
    return f"Mean ahead of {other} by {with_minus_sign(lead)}."


def _is_low_good(evaluation: Evaluation) -> bool:
    """Whether less is better by the measure that decides."""
    return evaluation.measure in evaluation.low_is_good


def _best_mean(evaluation: Evaluation) -> str:
    return "the lowest mean" if _is_low_good(evaluation) else "the highest mean"


def _leader_headline(evaluation: Evaluation) -> str:
    """Return the verdict on the leader in one line: the strongest that is shown."""
    leader = evaluation.leader
    others = evaluation.others
    better = evaluation.better_on_typical_query
    if better:
        verb = "is" if len(better) == 1 else "are"
        return (
            f"{leader} has {_best_mean(evaluation)}, but {join_names(better)} {verb} "
            "shown to be better on the typical query"
        )
    identical = [
        name
        for name in others
        if evaluation.leader_comparisons[name].reason is Reason.IDENTICAL
    ]
    undecided = list(evaluation.queries_needed)
    close = evaluation.as_good_as_leader
    if identical and _are_all_identical(identical, evaluation):
        names = names_or_count([leader, *identical], 2)
        return f"{names} rank identically on these queries"
    if _is_all_undecided(evaluation):
        return "Undecided"
    if undecided:
        return f"{leader} leads"
    if len(close) > 1:
        margin = f"{evaluation.settings.margin:g}"
        return f"{names_or_count(close, 2)} are equally good within {margin}"
    return f"Use {leader}"


def _is_all_undecided(evaluation: Evaluation) -> bool:
    """Whether no difference is shown between any two retrievers."""
    undecided = list(evaluation.queries_needed)
    is_open = undecided == list(evaluation.others)
    return is_open and not _shows_any_difference(evaluation)


def _are_all_identical(identical: list[str], evaluation: Evaluation) -> bool:
    """Whether all others, or all as good as the leader, are identical to it."""
    if len(identical) == len(evaluation.others):
        return True
    has_undecided = bool(evaluation.queries_needed)
    as_good = len(evaluation.as_good_as_leader) - 1
    return not has_undecided and len(identical) == as_good


def _shows_any_difference(evaluation: Evaluation) -> bool:
    rows: tuple[Comparison, ...] = evaluation.comparisons[evaluation.measure]
    return any(row.verdict.shows_difference for row in rows)
