"""The conclusion in English: the lines above a leaderboard, all that was shown, a sweep's choice, several data sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from harness.english import (
    asked,
    counted,
    few_names,
    format_p,
    join,
    minus,
    related,
    short_p,
)
from harness.evaluation.evaluation import (
    FEWEST_QUERIES,
    Evaluation,
    SweepChoice,
    WarningKind,
)
from harness.evaluation.verdict import Reason, Verdict
from harness.evaluation.wording import look_step, opposite_warning, warning_sentence
from harness.stats.differences import SLACK
from harness.stats.power import MOST
from harness.stats.settings import Settings

if TYPE_CHECKING:
    from harness.evaluation.across_sets import PairOnSets, SetsTogether


class FirstLines(NamedTuple):
    """The lines above the leaderboard, which repeat none of its numbers, and the details of `--explain`."""

    headline: str
    reason: str
    """Why, in one sentence; "" if the headline shows it."""
    step: str
    """What to do next; "" if nothing follows."""
    details: tuple[str, ...]
    """The lead, the retrievers that are as good, the sweep's gain, the weights."""
    alerts: tuple[str, ...]
    """What may change the verdict."""


RECOMPUTED = "This folder has no evaluation of this version: its comparisons are computed again from its scores."


def first_lines(found: Evaluation, *, complete: bool = True) -> FirstLines:
    """Return the verdict in a few lines; nothing is recommended while retrievers are missing."""
    pairs = found.against_baseline if found.baseline else tuple(found.against.values())
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
        *([RECOMPUTED] if found.recomputed else []),
    ]
    details = _details(found) if found.measured and found.settings.by_people else ()
    return FirstLines(
        *_lines(found, complete), tuple(filter(None, details)), tuple(alerts)
    )


def sentences(found: Evaluation) -> list[str]:
    """Return the same as a list, most important first."""
    said = first_lines(found)
    return [
        f"{said.headline}.",
        *filter(None, [said.reason, said.step]),
        *said.details,
        *said.alerts,
    ]


def headline(found: Evaluation) -> str:
    """Return the conclusion in one line."""
    return first_lines(found).headline


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
    if not found.settings.by_people:
        head = (
            f"Only a model judged these queries, which decides nothing; {leader} leads"
        )
        return head, "", "Let people judge a random part of these queries."
    if found.sweep is not None:
        return *_of_sweep(found.sweep), _alike_sentence(found.sweep)
    head, reason = _against_leader(found), _why(found)
    if any(row.verdict.separates for row in found.against_baseline):
        told = list(found.plans) == [found.baseline] or (
            found.plans and leader == found.baseline
        )
        head, reason = _against_baseline(found), "" if told else f"{head}."
    return head, reason, _step(found, complete)


def _of_sweep(choice: SweepChoice) -> tuple[str, str]:
    tried = counted(choice.configurations, "configuration")
    if choice.too_few:
        return (
            f"Too few queries to choose among {tried}",
            f"That takes {FEWEST_QUERIES}.",
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
    others, plans = found.others, found.plans
    if len(found.shown_worse) == len(others):
        if found.settings.test == "wilcoxon":
            return f"On the typical query it is better than {few_names(others)}."
        of = "lower" if found.measure in found.low_is_good else "higher"
        whose = (
            join([f"{name}'s" for name in others])
            if len(others) < 4
            else f"those of the {len(others)} others"
        )
        return f"Its mean is {of} than {whose}."
    few = len(plans) == len(others) and all(
        found.against[name].reason is Reason.TOO_FEW for name in plans
    )
    return (
        f"{asked(found.n, found.clusters)} {'is' if found.n == 1 else 'are'} too few to show one."
        if few
        else ""
    )


def _details(found: Evaluation) -> list[str]:
    leader, close, said = found.leader, found.within_margin[1:], [lead_sentence(found)]
    if found.sweep is not None:
        said = [_sweep_sentence(found.sweep, found.settings)]
    if found.effective is not None:
        alike = counted(
            round(found.effective), "query" if found.clusters is None else "cluster"
        )
        said.append(
            f"Means are weighted by {found.settings.weight}, which leaves about {alike} of equal weight."
        )
    if same := [
        name for name in close if found.against[name].reason is Reason.IDENTICAL
    ]:
        said.append(
            f"Identical to {leader} on these queries, ranking by ranking: {join(same)}."
        )
    if shown := [name for name in close if name not in same]:
        said.append(
            f"Shown to be as good as {leader} within {found.settings.margin:g}: {join(shown)}."
        )
    return said


def _step(found: Evaluation, complete: bool) -> str:
    """The next look, or how many queries detect the declared difference for every undecided pair, or the choice."""
    why = {
        name: found.against[name].reason
        for name in found.plans
        if name not in found.ahead
    }
    undecided = [name for name, reason in why.items() if reason is not Reason.IDENTICAL]
    helped = [
        name
        for name in undecided
        if (one := why[name]) is None or one.helped_by_queries
    ]
    needed = max(
        (queries for name in helped if (queries := found.plans[name]) is not None),
        default=0,
    )
    if found.look is not None:
        return look_step(found)
    if needed > (found.clusters or found.n):
        words = needed_words(needed, clusters=found.clusters is not None)
        return (
            f"Label more: {words} reliably detect a difference of {found.difference:g}."
        )
    if needed:
        return f"These queries would probably have shown a difference of {found.difference:g}."
    if undecided:
        return "Label more queries." if helped else ""
    close = found.within_margin if complete else ()
    return f"Among {join(close)}, choose by cost and speed." if close[1:] else ""


def needed_words(needed: int, *, clusters: bool = False) -> str:
    """Return a number of queries with two digits, rounded up: more would be false precision.

    >>> needed_words(138), needed_words(MOST + 1)
    ('about 140 queries', 'more than 1,000,000 queries')
    """
    things = "clusters" if clusters else "queries"
    if needed > MOST:
        return f"more than {MOST:,} {things}"
    unit = 10 ** max(0, math.floor(math.log10(max(1, needed))) - 1)
    return f"about {math.ceil(needed / unit) * unit:,} {things}"


def _against_baseline(found: Evaluation) -> str:
    better = [row.a for row in found.against_baseline if row.verdict is Verdict.BETTER]
    if not better:
        return f"Keep {found.baseline}: nothing is shown to beat it"
    return f"{few_names(better)} {'beat' if better[1:] else 'beats'} the baseline {found.baseline}"


def lead_sentence(found: Evaluation) -> str:
    """Return how far the highest mean is ahead of the next; "" where there is no other, or the two are level."""
    row = next(iter(found.against.values()), None)
    if row is None or abs(row.mean_difference) < 0.0005:  # it would read 0.000
        return ""
    other, row = row.b, row.swapped if found.measure in found.low_is_good else row
    ends = (
        ""
        if row.ci_low is None or row.ci_high is None
        else f" ({row.ci_low:z.3f} to {row.ci_high:z.3f})"
    )
    return f"Mean ahead of {other} by {minus(f'{row.mean_difference:.3f}{ends}')}."


def _against_leader(found: Evaluation) -> str:
    leader, others, close, plans = (
        found.leader,
        found.others,
        found.within_margin,
        list(found.plans),
    )
    every = (
        f"the {len(found.means)} retrievers" if others[1:] else join(list(found.means))
    )
    if found.ahead:
        ahead = f"{join(found.ahead)} {'is' if len(found.ahead) == 1 else 'are'}"
        return f"{leader} has the highest mean, but {ahead} shown to be better on the typical query"
    same = [name for name in others if found.against[name].reason is Reason.IDENTICAL]
    if same and (
        len(same) == len(others) or (not plans and len(same) == len(close[1:]))
    ):
        return f"{few_names([leader, *same], 2)} rank identically on these queries"
    if plans == list(others) and not any(
        row.verdict.separates for row in found.comparisons[found.measure]
    ):
        return f"Undecided: no difference is shown between {every}"
    if plans:
        against = "all others" if plans == list(others) else few_names(plans, 2)
        return f"{leader} leads; undecided against {against}"
    return (
        f"{few_names(close, 2)} are equally good within {found.settings.margin:g}"
        if close[1:]
        else f"Use {leader}"
    )


def _sweep_sentence(choice: SweepChoice, settings: Settings) -> str:
    def signed(value: float) -> str:
        return minus(
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
    test = f"p {related(format_p(choice.p_value))} by the max-T test (one-sided, level {settings.alpha / 2:.3g})"
    return f"{choice.chosen} scores {signed(choice.gain)} against {choice.default}{expected}{least}; {test}."


def _alike_sentence(choice: SweepChoice) -> str:
    others = [name for name in choice.alike if name != choice.chosen]
    if not others:
        return f"{choice.chosen} is shown to differ from every other configuration."
    return f"{counted(len(others), 'other')} may be as good; cheapest: {others[0]}."


FEW_SETS = "Nothing follows for other data sets: that takes five sets or more."


def sets_sentences(found: SetsTogether, most: int) -> list[str]:
    """Return who leads on several data sets, the result of each pair, and whether the sets are too few."""
    first, sets = found.ranked[0], len(found.sets)
    best = {
        name: max(found.mean(name, one) for one in found.retrievers)
        for name in found.sets
    }
    leads = sum(found.mean(name, first) >= mean - SLACK for name, mean in best.items())
    shown = sorted(
        found.pairs,
        key=lambda pair: (not pair.verdict.separates, -abs(pair.mean_difference)),
    )
    head = f"{first} has the highest mean on {leads} of {counted(sets, 'data set')}."
    return [
        head,
        *map(sets_sentence, shown[:most]),
        *([FEW_SETS] if shown and not shown[0].like else []),
    ]


def sets_sentence(pair: PairOnSets) -> str:
    """Return the result of two retrievers on several data sets; from five sets on, also on sets like these."""
    pair = pair.leading
    sets = len(pair.differences)
    head = f"{pair.a} is ahead of {pair.b} on {pair.ahead} of {sets} sets, mean {pair.mean_difference:+z.3f}"
    shown = "shown" if pair.verdict.separates else "not shown"
    these_sets = (
        f"on these {sets} sets the difference is {shown} (p {short_p(pair.p_adjusted)})"
    )
    if pair.like is None:
        return f"{head}; {these_sets}."
    low, high, least, most = (
        float(end or 0) for end in (*pair.like.interval[:2], *pair.like.new_set[:2])
    )
    return f"{head}{minus(f' ({low:z.3f} to {high:z.3f}); on a new set {least:+z.3f} to {most:+z.3f}')}; {these_sets}."
