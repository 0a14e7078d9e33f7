"""The conclusion in English: the lines above a leaderboard, all that was shown, a sweep's choice, several data sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from harness.english import asked, counted, few_names, format_p, join, minus, related, short_p, these
from harness.evaluation.evaluation import FEWEST_QUERIES, Evaluation, SweepChoice, WarningKind
from harness.evaluation.verdict import Reason, Verdict
from harness.evaluation.wording import look_step, opposite_warning, warning_sentence
from harness.stats.differences import SLACK
from harness.stats.power import MOST
from harness.stats.settings import Settings

if TYPE_CHECKING:
    from harness.evaluation.across_sets import PairOnSets, SetsTogether


class FirstLines(NamedTuple):
    """What stands above the leaderboard, none of whose numbers it repeats, and what is behind `--explain`."""

    headline: str
    reason: str
    """Why, in one sentence; "" where the headline says it."""
    step: str
    """What to do next; "" where nothing follows."""
    details: tuple[str, ...]
    """How far the best mean is ahead, what is equal, what a sweep found, by what queries are weighted."""
    alerts: tuple[str, ...]
    """What may change the verdict."""


RECOMPUTED = "This folder has no evaluation of this version: its comparisons are computed again from its scores."


def first_lines(found: Evaluation, *, complete: bool = True) -> FirstLines:
    """Return the verdict in a few lines; nothing is recommended while retrievers are missing."""
    pairs = found.against_baseline if found.baseline else tuple(found.against.values())
    warning = opposite_warning(pairs, found.settings) if found.measured and found.sweep is None else ""
    fragile = [warning_sentence(one) for one in found.warnings if one.kind is WarningKind.FRAGILE and found.measured]
    older = RECOMPUTED if found.recomputed else ""
    alerts = filter(None, [*([warning] if warning else fragile), older])
    details = _details(found) if found.measured and found.settings.by_people else ()
    step = _step(found, complete)
    return FirstLines(headline(found), _reason(found), step, tuple(filter(None, details)), tuple(alerts))


def sentences(found: Evaluation) -> list[str]:
    """Return the same as a list, most important first."""
    said = first_lines(found)
    return [f"{said.headline}.", *filter(None, [said.reason, said.step]), *said.details, *said.alerts]


def incomplete(found: Evaluation) -> str:
    """Return what is missing and who leads among the others, as a head line; "" where every retriever finished."""
    if not found.failed:
        return ""
    head = f"Incomplete: {len(found.failed)} of {len(found.failed) + len(found.means)} retrievers failed"
    return f"{head}; among those that ran, {found.leader} leads" if found.others else head


def headline(found: Evaluation) -> str:
    """Return the conclusion in one line."""
    leader, choice = found.leader, found.sweep
    if found.failed:
        return incomplete(found)
    if not found.measured:
        return f"Nothing was measured: every score of {found.measure} is 0"
    if not found.others:
        return f"{leader} ran alone: there is nothing to compare it with"
    if not found.settings.by_people:
        return f"A model alone judged {_asked(found)}: its labels put {leader} first, and decide nothing"
    if choice is not None:
        few = f"Too few queries to choose among {counted(choice.configurations, 'configuration')}"
        return few if choice.too_few else f"Take {choice.chosen}" if choice.beats else f"Keep {choice.default}"
    if any(row.verdict.separates for row in found.against_baseline):
        return baseline_words(found)
    return _against_leader(found)


def _reason(found: Evaluation) -> str:
    leader, others, plans, choice = found.leader, found.others, list(found.plans), found.sweep
    if found.failed or not found.measured or not others or not found.settings.by_people:
        return ""
    if choice is not None:
        best = f"of {counted(choice.configurations, 'configuration')}"
        if choice.too_few:
            return f"That takes {FEWEST_QUERIES}."
        if choice.beats:
            return f"It has the highest mean {best}, and is shown to beat {choice.default}."
        if choice.gain <= 0:
            return f"None {best} has a higher mean."
        return f"{choice.chosen} has the highest mean {best}, but is not shown to beat it."
    if any(row.verdict.separates for row in found.against_baseline):
        told = plans == [found.baseline] or (plans and leader == found.baseline)
        return "" if told else f"{_against_leader(found)}."
    if len(found.shown_worse) == len(others):
        if found.settings.test == "wilcoxon":
            return f"On the typical query it is better than {few_names(others)}."
        of = "lower" if found.measure in found.low_is_good else "higher"
        whose = join([f"{name}'s" for name in others]) if len(others) < 4 else f"those of the {len(others)} others"
        return f"Its mean is {of} than {whose}."
    few = len(plans) == len(others) and all(found.against[name].reason is Reason.TOO_FEW for name in plans)
    return f"{these(found.n, found.clusters).capitalize()} could not have shown any." if few else ""


def _step(found: Evaluation, complete: bool) -> str:
    if found.failed:
        return "Nothing is recommended: a retriever that failed might be better. Run the experiment again."
    if not found.measured:
        return "Check that the labels name documents by the ids that the retrievers return."
    if not found.settings.by_people:
        return "Nothing is recommended: let people judge a random part of these queries."
    if not found.others:
        return "Add a second [[retrievers]] to the experiment, of another kind or model, and run it again."
    if found.sweep is not None:
        return _alike_sentence(found.sweep)
    if found.look is not None:
        return look_step(found)
    if undecided := [name for name in found.plans if name not in (*_alike(found), *found.ahead)]:
        return _plan(found, undecided)
    close = found.within_margin if complete else ()
    return f"Among {join(close)}, choose by cost and speed." if close[1:] else ""


def _details(found: Evaluation) -> list[str]:
    leader, close, said = found.leader, found.within_margin[1:], [lead_sentence(found)]
    if found.sweep is not None:
        said = [_sweep_sentence(found.sweep, found.settings)]
    if found.effective is not None:
        alike = counted(round(found.effective), "query" if found.clusters is None else "question")
        tell = f"{_asked(found)} tell{'s' * (found.n == 1)} as much as about {alike} of equal weight"
        said.append(f"Means are weighted by {found.settings.weight}: {tell}.")
    if same := [name for name in close if found.against[name].reason is Reason.IDENTICAL]:
        said.append(f"Identical to {leader} on these queries, ranking by ranking: {join(same)}.")
    if shown := [name for name in close if name not in same]:
        said.append(f"Shown to be as good as {leader} within {found.settings.margin:g}: {join(shown)}.")
    return said


def _asked(found: Evaluation) -> str:
    return asked(found.n, found.clusters)


def _alike(found: Evaluation) -> list[str]:
    """Those that rank as the leader does on every query, and are not shown to be equivalent."""
    return [name for name in found.plans if found.against[name].reason is Reason.IDENTICAL]


def _plan(found: Evaluation, undecided: list[str]) -> str:
    """What a true difference of the declared size would take; nothing where no number of queries would do."""
    reasons = {other: found.against[other].reason for other in undecided}
    rows = {other: found.plans[other] for other, why in reasons.items() if why is None or why.helped_by_queries}
    needed = {other: queries for other, queries in rows.items() if queries is not None}
    if not needed:
        few = "One query is too few" if found.n == 1 else "Too few of the queries differ"
        return f"{few} to say how many would be needed." if rows else ""
    # To tell all of them apart takes as many queries as the hardest pair.
    hardest = max(needed, key=lambda other: needed[other])
    units, true = found.clusters or found.n, f"a true difference of {found.difference:g} from {hardest}"
    if needed[hardest] <= units:
        return f"These queries would reliably find {true}."
    words = needed_words(needed[hardest], clusters=found.clusters is not None)
    return f"Reliably finding {true} takes {words} like these {units:,}."


def needed_words(needed: int, *, clusters: bool = False) -> str:
    """Return a number of queries with two digits, rounded up: more would be false precision.

    >>> needed_words(138), needed_words(MOST + 1)
    ('about 140 queries', 'more than 1,000,000 queries')
    """
    things = "different questions" if clusters else "queries"
    if needed > MOST:
        return f"more than {MOST:,} {things}"
    unit = 10 ** max(0, math.floor(math.log10(max(1, needed))) - 1)
    return f"about {math.ceil(needed / unit) * unit:,} {things}"


def baseline_words(found: Evaluation) -> str:
    """Return what was shown of the others against the declared baseline, those that were shown better first."""
    parts = []
    for verdict, words in (
        (Verdict.BETTER, f"better than the baseline {found.baseline}"),
        (Verdict.WORSE, f"worse than {found.baseline}"),
        (Verdict.EQUIVALENT, f"as good as {found.baseline} within {found.settings.margin}"),
    ):
        names = [row.a for row in found.against_baseline if row.verdict is verdict]
        if names:
            parts.append(f"{join(names)} {'is' if len(names) == 1 else 'are'} {words}")
        elif verdict is Verdict.BETTER:
            parts.append(f"Nothing is shown to be {words}")
    if undecided := [row.a for row in found.against_baseline if row.verdict is Verdict.UNDECIDED]:
        parts.append(f"no difference from it is shown for {join(undecided)}")
    return "; ".join(parts)


def lead_sentence(found: Evaluation) -> str:
    """Return how far the highest mean is ahead of the next; "" where there is no other, or the two are level."""
    row = next(iter(found.against.values()), None)
    if row is None or abs(row.mean_difference) < 0.0005:  # it would read 0.000
        return ""
    other, row = row.b, row.swapped if found.measure in found.low_is_good else row
    ends = "" if row.ci_low is None or row.ci_high is None else f" ({row.ci_low:z.3f} to {row.ci_high:z.3f})"
    return f"Mean ahead of {other} by {minus(f'{row.mean_difference:.3f}{ends}')}."


def _against_leader(found: Evaluation) -> str:
    leader, others, close, on = found.leader, found.others, found.within_margin, these(found.n, found.clusters)
    every = f"the {len(found.means)} retrievers" if others[1:] else join(list(found.means))
    if found.ahead:
        ahead = f"{join(found.ahead)} {'is' if len(found.ahead) == 1 else 'are'}"
        return f"{leader} has the highest mean, but {ahead} shown to be better on the typical query"
    if len(_alike(found)) == len(others):
        return f"{every.replace('the ', 'The ', 1) if others[1:] else every} rank identically on {on}"
    if len(found.plans) == len(others):
        if any(row.verdict.separates for row in found.comparisons[found.measure]):
            return f"{leader} leads; undecided against all others on {_asked(found)}"
        return f"Undecided: {_asked(found)} show{'s' * (found.n == 1)} no difference between {every}"
    if found.plans:
        return f"{leader} leads; undecided against {few_names(list(found.plans), 2)} on {_asked(found)}"
    if len(close) == 1:
        return f"Use {leader}"
    if all(found.against[name].reason is Reason.IDENTICAL for name in close[1:]):
        return f"{few_names(close, 2)} rank identically on {on}"
    return f"{few_names(close, 2)} are equally good within {found.settings.margin:g}"


def _sweep_sentence(choice: SweepChoice, settings: Settings) -> str:
    def signed(value: float) -> str:
        return minus(f"{round(value, 4) + 0.0:+.4f}")  # float noise below 0 shows no minus

    expected = "" if choice.expected is None else f"; on new queries expect {signed(choice.expected)} (cross-fitted)"
    sure = f"{100 * (1 - settings.alpha / 2):.3g} % confidence"
    least = "" if choice.low is None else f"; its true gain is above {signed(choice.low)} with {sure}"
    return (
        f"{choice.chosen} scores {signed(choice.gain)} against {choice.default}{expected}{least}; "
        f"p {related(format_p(choice.p_value))} by the max-T test (one-sided, level {settings.alpha / 2:.3g})."
    )


def _alike_sentence(choice: SweepChoice) -> str:
    others = [name for name in choice.alike if name != choice.chosen]
    if not others:
        return f"{choice.chosen} is shown to differ from every other configuration."
    return f"{counted(len(others), 'other')} may be as good; cheapest: {others[0]}."


def sets_sentences(found: SetsTogether, most: int) -> list[str]:
    """Return who leads on several data sets, the result of each pair, and that few sets say nothing of others."""
    first, sets = found.ranked[0], len(found.sets)
    best = {name: max(found.mean(name, one) for one in found.retrievers) for name in found.sets}
    leads = sum(found.mean(name, first) >= mean - SLACK for name, mean in best.items())
    shown = sorted(found.pairs, key=lambda pair: (not pair.verdict.separates, -abs(pair.mean_difference)))
    few = f"{counted(sets, 'set')} say nothing of others: that takes five or more."
    head = f"On {found.measure}, {first} has the highest mean on {leads} of {counted(sets, 'data set')}."
    return [head, *map(sets_sentence, shown[:most]), *([few] if shown and not shown[0].like else [])]


def sets_sentence(pair: PairOnSets) -> str:
    """Return the result of two retrievers on several data sets; on other sets only from five sets on."""
    pair = pair.leading
    sets = len(pair.differences)
    head = f"{pair.a} is ahead of {pair.b} on {pair.ahead} of {sets} sets, mean {pair.mean_difference:+z.3f}"
    shown = "shown" if pair.verdict.separates else "not shown"
    these_sets = f"on these {sets} sets the difference is {shown} (p {short_p(pair.p_adjusted)})"
    if pair.like is None:
        return f"{head}; {these_sets}."
    low, high, least, most = (float(end or 0) for end in (*pair.like.interval[:2], *pair.like.new_set[:2]))
    return f"{head}{minus(f' ({low:z.3f} to {high:z.3f}); on a new set {least:+z.3f} to {most:+z.3f}')}; {these_sets}."
