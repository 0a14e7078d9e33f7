"""The conclusion in English: the lines above a leaderboard, all that was shown, a sweep's choice, several data sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from harness.english import asked, counted, few_names, format_p, join, minus, related, short_p, these
from harness.evaluation.evaluation import FEWEST_QUERIES, Evaluation, SweepChoice, WarningKind
from harness.evaluation.verdict import Comparison, Reason, Verdict
from harness.evaluation.wording import opposite_warning, unchanged_sentence, why
from harness.stats.differences import SLACK
from harness.stats.power import MOST
from harness.stats.settings import Settings

if TYPE_CHECKING:
    from harness.evaluation.across_sets import PairOnSets, SetsTogether


class FirstLines(NamedTuple):
    """What stands above the leaderboard."""

    headline: str
    lead: str
    """How far the best mean is ahead; "" where nothing follows from it."""
    following: tuple[str, ...]
    """What is to be known of the tests, what is equal, and what more queries would tell."""
    alerts: tuple[str, ...] = ()
    """Those of `following` that warn."""


RECOMPUTED = "This folder has no evaluation of this version: its comparisons are computed again from its scores."


def first_lines(found: Evaluation, *, complete: bool = True) -> FirstLines:
    """Return the verdict in a few lines; nothing is recommended while retrievers are missing."""
    separated = any(row.verdict.separates for row in found.against_baseline)
    lead = "" if separated or found.failed or not complete else lead_sentence(found)
    following = _next_steps(found, complete=complete and not found.failed)
    head = incomplete(found) or headline(found)
    if not found.measured:
        return FirstLines(head, lead, tuple(following))
    pairs = found.against_baseline if found.baseline else tuple(found.against.values())
    warning = opposite_warning(pairs, found.settings) if found.sweep is None else ""
    fragile = [f"{' and '.join(one.retrievers)}" for one in found.warnings if one.kind is WarningKind.FRAGILE]
    if fragile and not warning:
        warning = f"Few queries with a large loss would undo what is shown of {few_names(fragile)}: label more queries."
    older = RECOMPUTED if found.recomputed else ""
    alerts = tuple(filter(None, [warning, older]))
    return FirstLines(head, lead, tuple(filter(None, [warning, *following, older])), alerts)


def incomplete(found: Evaluation) -> str:
    """Return what is missing and who leads among the others, as a head line; "" where every retriever finished."""
    if not found.failed:
        return ""
    head = f"Incomplete: {len(found.failed)} of {len(found.failed) + len(found.means)} retrievers failed"
    return f"{head}; among those that ran, {found.leader} leads" if found.others else head


def next_step(found: Evaluation) -> str:
    """Return what comes before anything can be recommended of a run; "" where nothing does."""
    if found.failed:
        return "Nothing is recommended: a retriever that failed might be better. Run the experiment again."
    if not found.settings.by_people:
        return "Nothing is recommended: let people judge a random part of these queries."
    if not found.others:
        return "Next: add a second [[retrievers]] to the experiment, of another kind or model, and run it again."
    return ""


def sentences(found: Evaluation, *, complete: bool = True) -> list[str]:
    """Return what was shown, most important first; absence of evidence is never sold as evidence.

    Args:
        found: the evaluation.
        complete: whether every retriever ran; else nothing is recommended, since a missing one might be better.
    """
    complete = complete and not found.failed
    leader, best, where = found.leader, found.means[found.leader], f"On {found.measure} over {_asked(found)}"
    if not found.measured:
        return _next_steps(found, complete=complete)
    first = join([name for name, mean in found.means.items() if abs(best - mean) <= SLACK])
    if not found.settings.by_people:
        return [
            f"By a model's labels alone, o{where[1:]}: {first} first, {best:.4f}.",
            "No person judged these queries. A model may favour one retriever: nothing follows from its labels.",
        ]
    if found.sweep is not None:
        return [f"{where}: {sweep_headline(found.sweep)}.", *_next_steps(found, complete=complete)]
    has = "has" if first == leader else "share"
    which = "lowest mean, which is best" if found.measure in found.low_is_good else "highest mean"
    said = [f"{baseline_words(found)}."] if found.against_baseline else []
    said.append(f"{where}, {first} {has} the {which}, {best:.4f}.")
    if not found.others:
        return [*said, "It ran alone: there is nothing to compare it with."] if complete else said
    said += _weights(found)
    if found.shown_worse:
        worse = "worse on the typical query" if found.settings.test == "wilcoxon" else "worse on average"
        said.append(f"Shown to be {worse} than {leader}: {join(found.shown_worse)}.")
    if found.ahead:
        said.append(f"{_ahead_of_leader(found)}.")
    said += _within(found, complete=complete)
    if same := _alike(found):
        unchanged = unchanged_sentence(found.n, found.clusters)
        said.append(f"Identical to {leader} on these queries, ranking by ranking: {join(same)}; {unchanged}.")
    if undecided := _undecided(found):
        said.append(f"Undecided on {these(found.n, found.clusters)}: {leader} against {join(undecided)}.")
        said += _plan(found)
        reasons: dict[str, list[str]] = {}
        for other in found.plans:
            if not _helped(row := found.against[other]):
                reasons.setdefault(why(row, found.settings), []).append(other)
        said += [f"{leader} and {join(others)}: {reason}." for reason, others in reasons.items()]
        said.append("That no difference was shown does not mean that there is none.")
    elif not found.plans and complete and len(found.within_margin) == 1:
        said.append(f"{leader} is the best of the {len(found.means)} on this measure.")
    return said


def _next_steps(found: Evaluation, *, complete: bool) -> list[str]:
    """What neither the headline nor the lead says, and what to do follows from."""
    if not found.measured:
        return [
            f"Nothing was measured: every score of {found.measure} is 0 over {_asked(found)}. Look whether the labels "
            "name documents by the ids that the retrievers return."
        ]
    if not found.settings.by_people:
        return []
    if (choice := found.sweep) is not None:
        on = these(found.n, found.clusters)
        return [_sweep_sentence(choice, found.settings), *_weights(found), alike_sentence(choice, on)]
    if not found.others:
        return []
    return [*_weights(found), *_within(found, complete=complete), *(_plan(found) if _undecided(found) else ())]


def _asked(found: Evaluation) -> str:
    return asked(found.n, found.clusters)


def _weights(found: Evaluation) -> list[str]:
    """By what queries are weighted, and how many of equal weight would tell as much."""
    if found.effective is None:
        return []
    alike = counted(round(found.effective), "query" if found.clusters is None else "question")
    return [
        f"Means are weighted by {found.settings.weight}: {_asked(found)} tell{'s' * (found.n == 1)} as much as about "
        f"{alike} of equal weight."
    ]


def _within(found: Evaluation, *, complete: bool) -> list[str]:
    close, leader, said = found.within_margin[1:], found.leader, []
    same = [name for name in close if found.against[name].reason is Reason.IDENTICAL]
    if same:
        said.append(f"Identical to {leader} on these queries, ranking by ranking: {join(same)}.")
    if shown := [name for name in close if name not in same]:
        said.append(f"Shown to be as good as {leader} within {found.settings.margin:g}: {join(shown)}.")
    if close and complete:
        said.append(f"Among {join(found.within_margin)}, choose by cost and speed.")
    return said


def _ahead_of_leader(found: Evaluation) -> str:
    ahead = f"{join(found.ahead)} {'is' if len(found.ahead) == 1 else 'are'} shown to be better on the typical query"
    return f"{found.leader} has the highest mean, but {ahead}"


def _alike(found: Evaluation) -> list[str]:
    """Those that rank as the leader does on every query, and are not shown to be equivalent."""
    return [name for name in found.plans if found.against[name].reason is Reason.IDENTICAL]


def _undecided(found: Evaluation) -> list[str]:
    done = {*_alike(found), *found.ahead}
    return [name for name in found.plans if name not in done]


def _helped(row: Comparison) -> bool:
    return row.reason is None or row.reason.helped_by_queries


def _plan(found: Evaluation) -> list[str]:
    """What a true difference of the declared size would take; nothing where no number of queries would do."""
    rows = {other: needed for other, needed in found.plans.items() if _helped(found.against[other])}
    needed = {other: queries for other, queries in rows.items() if queries is not None}
    if not rows:
        return []
    if not needed:
        few = "One query is too few" if found.n == 1 else "Too few of the queries differ"
        return [f"{few} to say how many would be needed."]
    # To tell all of them apart takes as many queries as the hardest pair.
    hardest = max(needed, key=lambda other: needed[other])
    units, true = found.clusters or found.n, f"a true difference of {found.difference:g} from {hardest}"
    example = "" if found.settings.margin is not None else " (No margin is declared: this is an example.)"
    if needed[hardest] <= units:
        return [f"These queries would reliably find {true}.{example}"]
    words = needed_words(needed[hardest], clusters=found.clusters is not None)
    return [f"To reliably find {true} takes {words}, if differences scatter as on these {units:,}.{example}"]


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
        rows = [row for row in found.against_baseline if row.verdict is verdict]
        gaps = verdict.separates
        names = [f"{row.a} (by {abs(row.mean_difference):.3f})" if gaps and len(rows) > 1 else row.a for row in rows]
        by = f" by {abs(rows[0].mean_difference):.3f}" if gaps and len(rows) == 1 else ""
        if rows:
            parts.append(f"{join(names)} {'is' if len(rows) == 1 else 'are'} {words}{by}")
        elif verdict is Verdict.BETTER:
            parts.append(f"Nothing is shown to be {words}")
    if undecided := [row.a for row in found.against_baseline if row.verdict is Verdict.UNDECIDED]:
        parts.append(f"no difference from it is shown for {join(undecided)}")
    return "; ".join(parts)


def headline(found: Evaluation) -> str:
    """Return the conclusion in one line."""
    leader, others = found.leader, found.others
    if not found.measured:
        return f"Nothing was measured: every score of {found.measure} is 0"
    if not others:
        return f"{leader} ran alone: there is nothing to compare it with"
    if not found.settings.by_people:
        return f"A model alone judged {_asked(found)}: its labels put {leader} first, and decide nothing"
    if found.sweep is not None:
        return sweep_headline(found.sweep)
    line = _against_leader(found)
    if not any(row.verdict.separates for row in found.against_baseline):
        return line
    undecided = list(found.plans)
    told = undecided == [found.baseline] or (undecided and leader == found.baseline)
    return baseline_words(found) if told else f"{baseline_words(found)}. {line}"


def lead_sentence(found: Evaluation) -> str:
    """Return how far the highest mean is ahead of the next two; "" where there is nothing to compare."""
    if not found.measured or not found.settings.by_people:
        return ""
    parts: list[str] = []
    for other in found.others[:2]:
        row = found.against[other]
        row = row.swapped if found.measure in found.low_is_good else row
        if abs(row.mean_difference) < 0.0005:  # it would read 0.000
            continue
        known = row.ci_low is not None and row.ci_high is not None
        ends = f" ({row.ci_low:z.3f} to {row.ci_high:z.3f})" if known and not parts else ""
        parts.append(f"{other} by {minus(f'{row.mean_difference:.3f}{ends}')}")
    if not parts:
        return ""
    rest = len(found.others) - 2
    return f"Mean ahead of {', of '.join(parts)}{f', and of {rest} more' if rest > 0 else ''}."


def _against_leader(found: Evaluation) -> str:
    leader, others, close, all_of = found.leader, found.others, found.within_margin, f"{len(found.means)} retrievers"
    if found.ahead:
        return _ahead_of_leader(found)
    on = these(found.n, found.clusters)
    if len(_alike(found)) == len(others):
        return f"{join([leader, *others]) if len(others) == 1 else f'The {all_of}'} rank identically on {on}"
    if len(found.plans) == len(others):
        if any(row.verdict.separates for row in found.comparisons[found.measure]):
            return f"{leader} leads; undecided against all others on {_asked(found)}"
        which = join([leader, *others]) if len(others) == 1 else f"the {all_of}"
        return f"Undecided: {_asked(found)} show{'s' * (found.n == 1)} no difference between {which}"
    if found.plans:
        return f"{leader} leads; undecided against {few_names(list(found.plans), 2)} on {_asked(found)}"
    if len(close) == 1:
        return f"Use {leader}"
    if all(found.against[name].reason is Reason.IDENTICAL for name in close[1:]):
        return f"{few_names(close, 2)} rank identically on {on}"
    return f"{few_names(close, 2)} are equally good within {found.settings.margin:g}"


NAMED = 5
"""Configurations that one sentence names."""


def _sweep_sentence(choice: SweepChoice, settings: Settings) -> str:
    def signed(value: float) -> str:
        return minus(f"{round(value, 4) + 0.0:+.4f}")  # float noise below 0 shows no minus

    gain = f"{abs(choice.gain):.4f}"
    ahead = f"{'ahead of' if choice.gain > 0 else 'behind'} {choice.default} by {gain}"
    ahead = ahead if float(gain) else f"level with {choice.default}"
    expected = "" if choice.expected is None else f"; on new queries expect {signed(choice.expected)} (cross-fitted)"
    least = "nothing tells how far its differences scatter"
    if choice.low is not None:
        least = f"with {100 * (1 - settings.alpha / 2):.3g} % confidence the true gain is above {signed(choice.low)}"
    return (
        f"Chosen on these queries, {choice.chosen} is {ahead}{expected}; {least}. "
        f"p {related(format_p(choice.p_value))} by the max-T test over "
        f"{counted(choice.configurations, 'configuration')} (one-sided, level {settings.alpha / 2:.3g})."
    )


def sweep_headline(choice: SweepChoice) -> str:
    """Return in one line whether the best of many configurations beats what is in use today."""
    best, today = counted(choice.configurations, "configuration"), f"{choice.default}, in use today"
    if choice.beats:
        return f"{choice.chosen}, the best of {best}, beats {today}"
    if choice.too_few:
        return f"Too few queries to choose among {best}: that takes {FEWEST_QUERIES}"
    if choice.gain <= 0:
        return f"None of {best} has a higher mean than {today}"
    return f"{choice.chosen} has the highest mean of {best}, and is not shown to beat {today}"


def alike_sentence(choice: SweepChoice, these_queries: str) -> str:
    """Return which configurations could be taken instead of the chosen one."""
    others = [name for name in choice.alike if name != choice.chosen]
    if not others:
        return f"{choice.chosen} is shown to differ from every other configuration on {these_queries}."
    named, more = others[:NAMED], len(others) - NAMED
    listed = f"{', '.join(named)} and {more} more" if more > 0 else join(named)
    may = f"{counted(len(others), 'other configuration')} may be as good as {choice.chosen}"
    return f"{may} on {these_queries}; cheapest first: {listed}."


def sets_sentences(found: SetsTogether, most: int) -> list[str]:
    """Return who leads on several data sets, the result of each pair, and that few sets say nothing of others."""
    first, sets = found.ranked[0], len(found.sets)
    leads = sum(
        found.mean(name, first) >= max(found.mean(name, one) for one in found.retrievers) - SLACK for name in found.sets
    )
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
