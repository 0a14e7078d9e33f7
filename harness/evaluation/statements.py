"""The conclusion in English sentences, each with its topic, so that a page can place it where it belongs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from harness.english import asked, counted, few_names, format_p, join, minus, related, short_p, these
from harness.evaluation.across_sets import PairOnSets, SetsTogether
from harness.evaluation.conclusion import Conclusion
from harness.evaluation.sweep_choice import FEWEST_QUERIES, SweepChoice
from harness.evaluation.verdict import Comparison, Reason, Verdict
from harness.evaluation.wording import unchanged_sentence, why
from harness.stats.differences import SLACK
from harness.stats.power import MOST
from harness.stats.settings import Settings


class Topic(Enum):
    """What a sentence of the conclusion is about, so that a page can place each where it belongs."""

    NOTHING_MEASURED = auto()
    BASELINE = auto()
    LEADER = auto()
    SHOWN_WORSE = auto()
    WITHIN_MARGIN = auto()
    BEST = auto()
    UNRESOLVED = auto()
    PLAN = auto()
    POWER = auto()
    WEIGHTS = auto()
    CAVEAT = auto()


class Statement(NamedTuple):
    """One sentence of the conclusion."""

    topic: Topic
    text: str


def conclusion_statements(result: Conclusion, settings: Settings, *, complete: bool = True) -> Iterator[Statement]:
    """Yield what the experiment showed, most important first; absence of evidence is never sold as evidence.

    Args:
        result: the three sets.
        settings: those that it was made with.
        complete: whether every retriever ran; else nothing is recommended, since a missing one might be better.
    """
    leader, queries, best = result.leader, asked(result.n, result.clusters), result.means[result.leader]
    if not result.measured:
        yield Statement(
            Topic.NOTHING_MEASURED,
            f"Nothing was measured: every score of {result.measure} is 0 over {queries}. Look whether the labels name "
            "documents by the ids that the retrievers return.",
        )
        return
    first = join([name for name, mean in result.means.items() if abs(best - mean) <= SLACK])
    if not settings.by_people:
        head = f"By a model's labels alone, on {result.measure} over {queries}: {first} first, {best:.4f}."
        yield Statement(Topic.LEADER, head)
        yield Statement(
            Topic.CAVEAT,
            "No person judged these queries. A model may favour one retriever: nothing follows from its labels.",
        )
        return
    if result.sweep is not None:
        yield from sweep_statements(result, result.sweep, settings)
        return
    if result.against_baseline:
        yield Statement(Topic.BASELINE, f"{baseline_words(result, settings)}.")
    has = "has" if first == leader else "share"
    which = "lowest mean, which is best" if result.low_is_good else "highest mean"
    yield Statement(Topic.LEADER, f"On {result.measure} over {queries}, {first} {has} the {which}, {best:.4f}.")
    if len(result.means) == 1:
        if complete:
            yield Statement(Topic.CAVEAT, "It ran alone: there is nothing to compare it with.")
        return
    if result.effective is not None:
        yield Statement(Topic.WEIGHTS, weights_sentence(result, settings))
    if result.shown_worse:
        worse = "worse on the typical query" if settings.test == "wilcoxon" else "worse on average"
        yield Statement(Topic.SHOWN_WORSE, f"Shown to be {worse} than {leader}: {join(result.shown_worse)}.")
    if result.ahead:
        yield Statement(Topic.UNRESOLVED, f"{_ahead_of_leader(result)}.")
    yield from _within(result, settings, complete=complete)
    if result.unresolved:
        yield from _unresolved(result, settings)
    elif complete and len(result.within_margin) == 1:
        yield Statement(Topic.BEST, f"{leader} is the best of the {len(result.means)} on this measure.")


NAMED = 5
"""Configurations that one sentence names."""


def sweep_statements(result: Conclusion, choice: SweepChoice, settings: Settings) -> Iterator[Statement]:
    """Yield what the choice among many configurations is worth, and what might be taken instead.

    Args:
        result: the conclusion that holds the choice.
        choice: the configuration of the highest mean, tested.
        settings: those that it was made with.
    """
    measure, queries = result.measure, asked(result.n, result.clusters)
    yield Statement(Topic.LEADER, f"On {measure} over {queries}: {sweep_headline(choice)}.")
    expected = "" if choice.expected is None else f"; on new queries expect {_signed(choice.expected)} (cross-fitted)"
    least = (
        "nothing tells how far its differences scatter"
        if choice.low is None
        else f"with {100 * (1 - settings.alpha / 2):.3g} % confidence the true gain is above {_signed(choice.low)}"
    )
    yield Statement(
        Topic.PLAN,
        f"Chosen on these queries, {choice.chosen} is {_ahead(choice)}{expected}; {least}. "
        f"p {related(format_p(choice.p_value))} by the max-T test over "
        f"{counted(choice.configurations, 'configuration')} (one-sided, level {settings.alpha / 2:.3g}).",
    )
    if result.effective is not None:
        yield Statement(Topic.WEIGHTS, weights_sentence(result, settings))
    yield Statement(Topic.PLAN, alike_sentence(choice, these(result.n, result.clusters)))


def _ahead(choice: SweepChoice) -> str:
    gain = f"{abs(choice.gain):.4f}"
    if not float(gain):
        return f"level with {choice.default}"
    return f"{'ahead of' if choice.gain > 0 else 'behind'} {choice.default} by {gain}"


def _signed(value: float) -> str:
    return minus(f"{round(value, 4) + 0.0:+.4f}")  # float noise below 0 shows no minus


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
    these = f"on these {sets} sets the difference is {shown} (p {short_p(pair.p_adjusted)})"
    if pair.like is None:
        return f"{head}; {these}."
    low, high, least, most = (float(end or 0) for end in (*pair.like.interval[:2], *pair.like.new_set[:2]))
    return f"{head}{minus(f' ({low:z.3f} to {high:z.3f}); on a new set {least:+z.3f} to {most:+z.3f}')}; {these}."


def baseline_words(result: Conclusion, settings: Settings) -> str:
    """Return what was shown of the others against the declared baseline, those that were shown better first."""
    parts = []
    for verdict, words in (
        (Verdict.BETTER, f"better than the baseline {result.baseline}"),
        (Verdict.WORSE, f"worse than {result.baseline}"),
        (Verdict.EQUIVALENT, f"as good as {result.baseline} within {settings.margin}"),
    ):
        rows = [row for row in result.against_baseline if row.verdict is verdict]
        gaps = verdict.separates
        names = [f"{row.a} (by {abs(row.mean_difference):.3f})" if gaps and len(rows) > 1 else row.a for row in rows]
        by = f" by {abs(rows[0].mean_difference):.3f}" if gaps and len(rows) == 1 else ""
        if rows:
            parts.append(f"{join(names)} {'is' if len(rows) == 1 else 'are'} {words}{by}")
        elif verdict is Verdict.BETTER:
            parts.append(f"Nothing is shown to be {words}")
    if undecided := [row.a for row in result.against_baseline if row.verdict is Verdict.UNDECIDED]:
        parts.append(f"no difference from it is shown for {join(undecided)}")
    return "; ".join(parts)


def weights_sentence(result: Conclusion, settings: Settings) -> str:
    """Return by what queries are weighted, and how many of equal weight would tell as much; "" without weights."""
    if result.effective is None:
        return ""
    alike = counted(round(result.effective), "query" if result.clusters is None else "question")
    return (
        f"Means are weighted by {settings.weight}: {asked(result.n, result.clusters)} "
        f"tell{'s' * (result.n == 1)} as much as about {alike} of equal weight."
    )


def _within(result: Conclusion, settings: Settings, *, complete: bool) -> Iterator[Statement]:
    close = result.within_margin[1:]
    same = [name for name in close if result.against[name].reason is Reason.IDENTICAL]
    shown = [name for name in close if name not in same]
    if same:
        text = f"Identical to {result.leader} on these queries, ranking by ranking: {join(same)}."
        yield Statement(Topic.WITHIN_MARGIN, text)
    if shown:
        text = f"Shown to be as good as {result.leader} within {settings.margin:g}: {join(shown)}."
        yield Statement(Topic.WITHIN_MARGIN, text)
    if close and complete:
        yield Statement(Topic.WITHIN_MARGIN, f"Among {join(result.within_margin)}, choose by cost and speed.")


def _unresolved(result: Conclusion, settings: Settings) -> Iterator[Statement]:
    same = _alike(result)
    others = [name for name in result.unresolved if name not in same and name not in result.ahead]
    if same:
        unchanged = unchanged_sentence(result.n, result.clusters)
        text = f"Identical to {result.leader} on these queries, ranking by ranking: {join(same)}; {unchanged}."
        yield Statement(Topic.UNRESOLVED, text)
    if not others:
        return
    on = these(result.n, result.clusters)
    yield Statement(Topic.UNRESOLVED, f"Undecided on {on}: {result.leader} against {join(others)}.")
    yield from _plans(result, settings)
    yield from _undecided_since(result, settings)
    yield Statement(Topic.CAVEAT, "That no difference was shown does not mean that there is none.")


def _ahead_of_leader(result: Conclusion) -> str:
    ahead = f"{join(result.ahead)} {'is' if len(result.ahead) == 1 else 'are'} shown to be better on the typical query"
    return f"{result.leader} has the highest mean, but {ahead}"


def _alike(result: Conclusion) -> list[str]:
    """The unresolved retrievers that rank as the leader does on every query."""
    return [name for name in result.unresolved if result.against[name].reason is Reason.IDENTICAL]


def _plans(result: Conclusion, settings: Settings) -> Iterator[Statement]:
    """What a true difference of the declared size would take; nothing where no number of queries would do."""
    rows = {other: needed for other, needed in result.unresolved.items() if _helped(result.against[other])}
    needed = {other: queries for other, queries in rows.items() if queries is not None}
    if rows and not needed:
        few = "One query is too few" if result.n == 1 else "Too few of the queries differ"
        yield Statement(Topic.PLAN, f"{few} to say how many would be needed.")
    elif needed:
        # To tell all of them apart takes as many queries as the hardest pair.
        hardest = max(needed, key=lambda other: needed[other])
        sentence = plan_sentence(needed[hardest], result, hardest)
        example = "" if settings.margin is not None else " (No margin is declared: this is an example.)"
        yield Statement(Topic.PLAN, f"{sentence}{example}")


def _helped(row: Comparison) -> bool:
    return row.reason is None or row.reason.helped_by_queries


def plan_sentence(needed: int, result: Conclusion, other: str) -> str:
    """Return what a true difference of the declared size between the leader and another would take."""
    units = result.clusters or result.n
    if needed <= units:
        return f"These queries would reliably find a true difference of {result.difference:g} from {other}."
    return (
        f"To reliably find a true difference of {result.difference:g} from {other} takes "
        f"{needed_words(needed, clusters=result.clusters is not None)}, if differences scatter as on these {units:,}."
    )


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


def _undecided_since(result: Conclusion, settings: Settings) -> Iterator[Statement]:
    """Why pairs of the leader are undecided that more queries would not help; the same words once for all."""
    reasons: dict[str, list[str]] = {}
    for other in result.unresolved:
        if not _helped(row := result.against[other]):
            reasons.setdefault(why(row, settings), []).append(other)
    for reason, others in reasons.items():
        yield Statement(Topic.POWER, f"{result.leader} and {join(others)}: {reason}.")


def headline(result: Conclusion, settings: Settings, family: Sequence[Comparison]) -> str:
    """Return the conclusion in one line.

    Args:
        result: the three sets.
        settings: those that it was made with.
        family: the comparisons of the primary measure.
    """
    queries, leader, others = asked(result.n, result.clusters), result.leader, result.others
    if not result.measured:
        return f"Nothing was measured: every score of {result.measure} is 0"
    if not others:
        return f"{leader} ran alone: there is nothing to compare it with"
    if not settings.by_people:
        return f"A model alone judged {queries}: its labels put {leader} first, and decide nothing"
    if result.sweep is not None:
        return sweep_headline(result.sweep)
    line = _against_leader(result, settings, family)
    if not any(row.verdict.separates for row in result.against_baseline):
        return line
    words, unresolved = baseline_words(result, settings), list(result.unresolved)
    told = unresolved == [result.baseline] or (unresolved and leader == result.baseline)
    return words if told else f"{words}. {line}"


def lead_sentence(result: Conclusion, settings: Settings) -> str:
    """Return how far the highest mean is ahead of the next two; "" where there is nothing to compare."""
    if not result.measured or not settings.by_people or not result.others:
        return ""
    parts: list[str] = []
    for other in result.others[:2]:
        row = result.against[other].swapped if result.low_is_good else result.against[other]
        if abs(row.mean_difference) < 0.0005:  # it would read 0.000
            continue
        known = row.ci_low is not None and row.ci_high is not None
        ends = f" ({row.ci_low:z.3f} to {row.ci_high:z.3f})" if known and not parts else ""
        parts.append(f"{other} by {minus(f'{row.mean_difference:.3f}{ends}')}")
    if not parts:
        return ""
    rest = len(result.others) - 2
    return f"Mean ahead of {', of '.join(parts)}{f', and of {rest} more' if rest > 0 else ''}."


def _against_leader(result: Conclusion, settings: Settings, family: Sequence[Comparison]) -> str:
    queries, leader, others = asked(result.n, result.clusters), result.leader, result.others
    if result.ahead:
        return _ahead_of_leader(result)
    if len(_alike(result)) == len(others):
        which = join([leader, *others]) if len(others) == 1 else f"The {len(result.means)} retrievers"
        return f"{which} rank identically on {these(result.n, result.clusters)}"
    if len(result.unresolved) == len(others):
        if any(row.verdict.separates for row in family):
            return f"{leader} leads; undecided against all others on {queries}"
        which = join([leader, *others]) if len(others) == 1 else f"the {len(result.means)} retrievers"
        return f"Undecided: {queries} show{'s' * (result.n == 1)} no difference between {which}"
    if result.unresolved:
        return f"{leader} leads; undecided against {few_names(list(result.unresolved), 2)} on {queries}"
    if len(result.within_margin) > 1:
        close = result.within_margin
        if all(result.against[name].reason is Reason.IDENTICAL for name in close[1:]):
            return f"{few_names(close, 2)} rank identically on {these(result.n, result.clusters)}"
        return f"{few_names(close, 2)} are equally good within {settings.margin:g}"
    return f"Use {leader}"
