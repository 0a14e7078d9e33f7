"""The lines above a leaderboard."""

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
    with_minus_sign,
)
from harness.evaluation.evaluation import MIN_SWEEP_QUERIES, Evaluation, SweepChoice
from harness.evaluation.verdict import Reason, Verdict
from harness.evaluation.warnings import WarningKind, warning_sentence
from harness.stats.power import MAX_POWER_QUERIES
from harness.stats.settings import Settings
from harness.wording.looks import look_step
from harness.wording.verdicts import opposite_warning


class VerdictLines(NamedTuple):
    """The lines above the leaderboard, which repeat none of its numbers, and the details of `--explain`."""

    headline: str
    reason: str
    """Why, in one sentence; "" if the headline shows it."""
    next_step: str
    """What to do next; "" if nothing follows."""
    details: tuple[str, ...]
    """The lead, the retrievers that are as good, the sweep's gain, the weights."""
    alerts: tuple[str, ...]
    """What may change the verdict."""


RECOMPUTED_NOTE = "This folder has no evaluation of this version: its comparisons are computed again from its scores."


def verdict_lines(found: Evaluation, *, complete: bool = True) -> VerdictLines:
    """Return the verdict in a few lines; nothing is recommended while retrievers are missing."""
    pairs = (
        found.baseline_comparisons
        if found.baseline
        else tuple(found.leader_comparisons.values())
    )
    warning = (
        opposite_warning(pairs, found.settings)
        if found.measured and found.sweep is None
        else ""
    )
    fragile = [
        warning_sentence(one)
        for one in found.warnings
        if one.kind is WarningKind.FRAGILE and found.measured
    ]
    alerts = [
        *([warning] if warning else fragile),
        *([RECOMPUTED_NOTE] if found.recomputed else []),
    ]
    details = (
        _details(found) if found.measured and found.settings.judged_by_people else ()
    )
    return VerdictLines(
        *_lines(found, complete), tuple(filter(None, details)), tuple(alerts)
    )


def conclusion_sentences(found: Evaluation) -> list[str]:
    """Return the same as a list, most important first."""
    said = verdict_lines(found)
    return [
        f"{said.headline}.",
        *filter(None, [said.reason, said.next_step]),
        *said.details,
        *said.alerts,
    ]


def conclusion_headline(found: Evaluation) -> str:
    """Return the conclusion in one line."""
    return verdict_lines(found).headline


def _lines(found: Evaluation, complete: bool) -> tuple[str, str, str]:
    """Headline, reason and step of the first case that holds."""
    leader, missing = found.leader, len(found.failed)
    if missing:
        head = (
            f"Incomplete: {missing} of {missing + len(found.means)} retrievers failed"
        )
        head += f"; {leader} leads the others" if found.others else ""
        return head, "", "Nothing is recommended: run it again."
    if not found.measured:
        check = "Check that the labels name documents by the ids that the retrievers return."
        return f"Nothing was measured: every score of {found.measure} is 0", "", check
    if not found.others:
        return (
            f"{leader} ran alone: there is nothing to compare it with",
            "",
            "Add a second [[retrievers]].",
        )
    if not found.settings.judged_by_people:
        head = (
            f"Only a model judged these queries, which decides nothing; {leader} leads"
        )
        return head, "", "Let people judge a random part of these queries."
    if found.sweep is not None:
        return *_of_sweep(found.sweep), _alike_sentence(found.sweep)
    head, reason = _against_leader(found), _why(found)
    if any(row.verdict.shows_difference for row in found.baseline_comparisons):
        told = list(found.queries_needed) == [found.baseline] or (
            found.queries_needed and leader == found.baseline
        )
        head, reason = _against_baseline(found), "" if told else f"{head}."
    return head, reason, _step(found, complete)


def _of_sweep(choice: SweepChoice) -> tuple[str, str]:
    tried = count_of(choice.configurations, "configuration")
    if choice.too_few:
        return (
            f"Too few queries to choose among {tried}",
            f"That takes {MIN_SWEEP_QUERIES}.",
        )
    if choice.beats:
        return (
            f"Take {choice.chosen}",
            f"The best of {tried}, it is shown to beat {choice.default}.",
        )
    if choice.gain <= 0:
        return f"Keep {choice.default}", f"None of {tried} has a higher mean."
    return (
        f"Keep {choice.default}",
        f"The best of {tried}, {choice.chosen}, is not shown to beat it.",
    )


def _why(found: Evaluation) -> str:
    others, plans = found.others, found.queries_needed
    if len(found.shown_worse) == len(others):
        if found.settings.test == "wilcoxon":
            return f"On the typical query it is better than {names_or_count(others)}."
        of = "lower" if found.measure in found.low_is_good else "higher"
        whose = (
            join_names([f"{name}'s" for name in others])
            if len(others) < 4
            else f"those of the {len(others)} others"
        )
        return f"Its mean is {of} than {whose}."
    few = len(plans) == len(others) and all(
        found.leader_comparisons[name].reason is Reason.TOO_FEW for name in plans
    )
    return (
        f"{count_units(found.n, found.clusters)} {'is' if found.n == 1 else 'are'} too few to show one."
        if few
        else ""
    )


def _details(found: Evaluation) -> list[str]:
    leader, close, said = (
        found.leader,
        found.as_good_as_leader[1:],
        [lead_sentence(found)],
    )
    if found.sweep is not None:
        said = [_sweep_sentence(found.sweep, found.settings)]
    if found.effective is not None:
        alike = count_of(
            round(found.effective), "query" if found.clusters is None else "cluster"
        )
        said.append(
            f"Means are weighted by {found.settings.weight}, which leaves about {alike} of equal weight."
        )
    if same := [
        name
        for name in close
        if found.leader_comparisons[name].reason is Reason.IDENTICAL
    ]:
        said.append(
            f"Identical to {leader} on these queries, ranking by ranking: {join_names(same)}."
        )
    if shown := [name for name in close if name not in same]:
        said.append(
            f"Shown to be as good as {leader} within {found.settings.margin:g}: {join_names(shown)}."
        )
    return said


def _step(found: Evaluation, complete: bool) -> str:
    """The next look, or how many queries detect the declared difference for every undecided pair, or the choice."""
    why = {
        name: found.leader_comparisons[name].reason
        for name in found.queries_needed
        if name not in found.better_on_typical_query
    }
    undecided = [name for name, reason in why.items() if reason is not Reason.IDENTICAL]
    helped = [
        name
        for name in undecided
        if (one := why[name]) is None or one.helped_by_queries
    ]
    needed = max(
        (
            queries
            for name in helped
            if (queries := found.queries_needed[name]) is not None
        ),
        default=0,
    )
    if found.look is not None:
        return look_step(found)
    if needed > (found.clusters or found.n):
        words = queries_needed_words(needed, clusters=found.clusters is not None)
        return (
            f"Label more: {words} reliably detect a difference of {found.difference:g}."
        )
    if needed:
        return f"These queries would probably have shown a difference of {found.difference:g}."
    if undecided:
        return "Label more queries." if helped else ""
    close = found.as_good_as_leader if complete else ()
    return f"Among {join_names(close)}, choose by cost and speed." if close[1:] else ""


def queries_needed_words(needed: int, *, clusters: bool = False) -> str:
    """Return a number of queries with two digits, rounded up: more would be false precision.

    >>> queries_needed_words(138), queries_needed_words(MAX_POWER_QUERIES + 1)
    ('about 140 queries', 'more than 1,000,000 queries')
    """
    things = "clusters" if clusters else "queries"
    if needed > MAX_POWER_QUERIES:
        return f"more than {MAX_POWER_QUERIES:,} {things}"
    unit = 10 ** max(0, math.floor(math.log10(max(1, needed))) - 1)
    return f"about {math.ceil(needed / unit) * unit:,} {things}"


def _against_baseline(found: Evaluation) -> str:
    better = [
        row.a for row in found.baseline_comparisons if row.verdict is Verdict.BETTER
    ]
    if not better:
        return f"Keep {found.baseline}: nothing is shown to beat it"
    return f"{names_or_count(better)} {'beat' if better[1:] else 'beats'} the baseline {found.baseline}"


def lead_sentence(found: Evaluation) -> str:
    """Return how far the highest mean is ahead of the next; "" where there is no other, or the two are level."""
    row = next(iter(found.leader_comparisons.values()), None)
    if row is None or abs(row.mean_difference) < 0.0005:  # it would read 0.000
        return ""
    other, row = row.b, row.swapped if found.measure in found.low_is_good else row
    ends = (
        ""
        if row.ci_low is None or row.ci_high is None
        else f" ({row.ci_low:z.3f} to {row.ci_high:z.3f})"
    )
    return f"Mean ahead of {other} by {with_minus_sign(f'{row.mean_difference:.3f}{ends}')}."


def _against_leader(found: Evaluation) -> str:
    leader, others, close, plans = (
        found.leader,
        found.others,
        found.as_good_as_leader,
        list(found.queries_needed),
    )
    every = (
        f"the {len(found.means)} retrievers"
        if others[1:]
        else join_names(list(found.means))
    )
    if found.better_on_typical_query:
        ahead = f"{join_names(found.better_on_typical_query)} {'is' if len(found.better_on_typical_query) == 1 else 'are'}"
        return f"{leader} has the highest mean, but {ahead} shown to be better on the typical query"
    same = [
        name
        for name in others
        if found.leader_comparisons[name].reason is Reason.IDENTICAL
    ]
    if same and (
        len(same) == len(others) or (not plans and len(same) == len(close[1:]))
    ):
        return f"{names_or_count([leader, *same], 2)} rank identically on these queries"
    if plans == list(others) and not any(
        row.verdict.shows_difference for row in found.comparisons[found.measure]
    ):
        return f"Undecided: no difference is shown between {every}"
    if plans:
        against = "all others" if plans == list(others) else names_or_count(plans, 2)
        return f"{leader} leads; undecided against {against}"
    return (
        f"{names_or_count(close, 2)} are equally good within {found.settings.margin:g}"
        if close[1:]
        else f"Use {leader}"
    )


def _sweep_sentence(choice: SweepChoice, settings: Settings) -> str:
    def signed(value: float) -> str:
        return with_minus_sign(
            f"{round(value, 4) + 0.0:+.4f}"
        )  # float noise below 0 shows no minus

    expected = (
        ""
        if choice.expected is None
        else f"; on new queries expect {signed(choice.expected)} (cross-fitted)"
    )
    sure = f"{100 * (1 - settings.alpha / 2):.3g} % confidence"
    least = (
        ""
        if choice.low is None
        else f"; its true gain is above {signed(choice.low)} with {sure}"
    )
    test = f"p {p_relation(p_text(choice.p_value))} by the max-T test (one-sided, level {settings.alpha / 2:.3g})"
    return f"{choice.chosen} scores {signed(choice.gain)} against {choice.default}{expected}{least}; {test}."


def _alike_sentence(choice: SweepChoice) -> str:
    others = [name for name in choice.alike if name != choice.chosen]
    if not others:
        return f"{choice.chosen} is shown to differ from every other configuration."
    return f"{count_of(len(others), 'other')} may be as good; cheapest: {others[0]}."
