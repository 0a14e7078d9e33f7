"""What the experiment showed, in sentences; absence of evidence is never sold as evidence."""

from __future__ import annotations

import math

from harness.stats.differences import SLACK
from harness.stats.looks import Look
from harness.stats.plan import MOST, Detectable, Needed, Plan
from harness.stats.settings import Settings
from harness.stats.verdicts import DISAGREE, IDENTICAL, NO_DIFFERENCE, UNDEFINED
from harness.stats.whole import Whole
from harness.stats.words import asked, count, differing, join, why

NO_MATTER_OF_SIZE = (NO_DIFFERENCE, IDENTICAL, UNDEFINED)
"""Reasons that more queries like these would not remove: of such pairs nothing is foretold."""
LIKE_THESE = "if queries gain and lose like these"


def whole_sentences(result: Whole, settings: Settings, *, complete: bool = True) -> list[str]:
    """Return what the experiment showed, most important first.

    Args:
        result: the three sets.
        settings: those that it was made with.
        complete: whether every retriever ran; else nothing is recommended, since a missing one might be better.
    """
    leader, queries = result.leader, asked(result.n, result.clusters)
    if not result.measured:
        return [
            f"Nothing was measured: every score of {result.measure} is 0 over {queries}. Look whether the labels name "
            "documents by the ids that the retrievers return."
        ]
    first = [name for name, mean in result.means.items() if result.means[leader] - mean <= SLACK]
    if not settings.by_people:
        return [
            f"By a model's labels alone, on {result.measure} over {queries}: {join(first)} first, "
            f"{result.means[leader]:.4f}.",
            "No person judged these queries. A model may favour one retriever: nothing follows from its labels.",
        ]
    has = "has" if len(first) == 1 else "share"
    best = result.means[leader]
    sentences = [f"On {result.measure} over {queries}, {join(first)} {has} the highest mean, {best:.4f}."]
    if len(result.means) == 1:
        alone = "It ran alone: there is nothing to compare it with."
        return [*sentences, alone] if complete else sentences
    if result.shown_worse:
        sentences.append(f"Shown to be worse than {leader}: {join(result.shown_worse)}.")
    if len(result.within_margin) > 1:
        sentences += _within(result, settings, complete=complete)
    if not result.unresolved:
        if complete and len(result.within_margin) == 1:
            sentences.append(f"{leader} is the best of the {len(result.means)} on this measure.")
        return sentences
    these = "This query" if result.n == 1 else f"These {queries}"
    sentences.append(f"{these} {untold(result)}")
    sentences += _outlook(result, settings)
    sentences += limits(result, settings)
    sentences.append("That no difference was shown does not mean that there is none.")
    return sentences


def untold(result: Whole) -> str:
    """Return what the queries cannot tell from the leader, after "These 12 queries".

    Two that are not told from the leader may be told from each other. There must be one.
    """
    others = list(result.unresolved)
    apart = f"{join([result.leader, *others])} apart" if len(others) == 1 else f"{result.leader} from {join(others)}"
    return f"cannot tell {apart}."


def _within(result: Whole, settings: Settings, *, complete: bool) -> list[str]:
    same = [name for name in result.within_margin[1:] if result.against[name].reason == IDENTICAL]
    shown = [name for name in result.within_margin[1:] if name not in same]
    sentences = []
    if same:
        sentences.append(f"Identical to {result.leader} on these queries, ranking by ranking: {join(same)}.")
    if shown:
        sentences.append(f"Shown to be as good as {result.leader} within {settings.margin:g}: {join(shown)}.")
    return [*sentences, f"Among {join(result.within_margin)}, choose by cost and speed."] if complete else sentences


def _outlook(result: Whole, settings: Settings) -> list[str]:
    """Say what a true difference of the declared size would take; nothing where no number of queries would do."""
    open_ = {o: state for o, state in result.unresolved.items() if result.against[o].reason not in NO_MATTER_OF_SIZE}
    if not open_:
        return []
    plans = {other: state.plan for other, state in open_.items() if state.plan is not None}
    if not plans:
        few = "One query is too few" if result.n == 1 else "Too few of the queries differ"
        return [f"{few} to say how many would be needed."]
    # To tell all of them apart takes as many queries as the hardest pair.
    hardest = max(plans, key=lambda other: (plans[other].high or math.inf, plans[other].low or math.inf))
    pair = f"{result.leader} and {hardest}"
    sentence = plan_sentence(plans[hardest], pair, clusters=result.clusters is not None)
    enough = plans[hardest].high
    if enough is not None and enough <= (result.clusters or result.n):
        sentence += " That many were asked."
    return [sentence if settings.margin is not None else f"{sentence} (No margin is declared: this is an example.)"]


def plan_sentence(plan: Plan, pair: str, *, clusters: bool = False) -> str:
    """Return what a true difference of the declared size would take.

    Args:
        plan: for it.
        pair: the two retrievers in words.
        clusters: whether the numbers are of clusters of queries.
    """
    things = "clusters of queries" if clusters else "queries"
    if plan.low is None:
        many = f"more than {MOST:,}"
    elif plan.high is None:
        many = f"at least {rounded(plan.low):,}"
    elif rounded(plan.low) == rounded(plan.high):
        many = f"about {rounded(plan.low):,}"
    else:
        many = f"about {rounded(plan.low):,} to {rounded(plan.high):,}"
    sakai = "" if plan.sakai is None else f" (by Sakai's formula for the t-test {plan.sakai:,})"
    return (
        f"To find a true difference of {plan.difference:g} between {pair} four times in five, you need {many} {things} "
        f"like these in all{sakai}, {LIKE_THESE}."
    )


def rounded(queries: int) -> int:
    """Return a number with two digits, rounded up: more would be false precision.

    >>> rounded(138), rounded(647), rounded(34)
    (140, 650, 34)
    """
    unit = 10 ** max(0, math.floor(math.log10(max(1, queries))) - 1)
    return int(math.ceil(queries / unit) * unit)


def detectable_words(detectable: Detectable) -> str:
    """Return the smallest difference that would have been found, over the three models.

    >>> detectable_words(Detectable({"sign tilt": 0.0471, "exponential tilt": 0.052, "shift": 0.0402}))
    '0.04 to 0.052'
    """
    if detectable.low is None or detectable.high is None:
        return "no size"
    low, high = f"{detectable.low:.2g}", f"{detectable.high:.2g}"
    span = low if low == high else f"{low} to {high}"
    missing = [model for model, value in detectable.models.items() if value is None]
    return f"{span} (but no size under {join(missing)})" if missing else span


def limits(result: Whole, settings: Settings) -> list[str]:
    """Return what could be seen between the leader and each unresolved retriever; the same words once for all."""
    reasons: dict[str, list[str]] = {}
    sizes: list[tuple[str, str, str]] = []
    for other, state in result.unresolved.items():
        row = result.against[other]
        if row.reason in (*NO_MATTER_OF_SIZE, DISAGREE):
            reasons.setdefault(f"{why(row, settings)}.", []).append(other)
        if row.reason in NO_MATTER_OF_SIZE:
            continue
        if state.detectable.low is None:
            few = f"{differing(row, of=True)}; that few could hardly have shown any difference."
            reasons.setdefault(few, []).append(other)
        else:
            sizes.append((other, detectable_words(state.detectable), f"{abs(row.mean_difference):.2g}"))
    sentences = [
        f"{result.leader} {'and' if len(others) == 1 else 'beside'} {join(others)}: {reason}"
        for reason, others in reasons.items()
    ]
    if len(sizes) == 1:
        ((other, least, seen),) = sizes
        sentences.append(
            f"{result.leader} and {other}: a true difference below about {least} would have been missed more often "
            f"than once in five, {LIKE_THESE}; {seen} was seen."
        )
    elif sizes:
        each = join([f"{other} below about {least} ({seen} was seen)" for other, least, seen in sizes])
        sentences.append(
            f"A true difference from {result.leader} would have been missed more often than once in five, "
            f"{LIKE_THESE}: {each}."
        )
    return sentences


def resolution_sentence(detectable: Detectable, pair: str, queries: str) -> str:
    """Return what so many queries find between two retrievers that were resolved; "" where no model has an answer."""
    if detectable.low is None:
        return ""
    size = detectable_words(detectable)
    return f"{queries} find a true difference of {size} between {pair} four times in five, {LIKE_THESE}."


def needed_sentence(needed: Needed | None, pair: str) -> str:
    """Return the queries for the observed difference with the bias of that figure; "" where nothing is foretold."""
    if needed is None:
        return ""
    low, high = (f"more than {MOST:,}" if n is None else f"{rounded(n):,}" for n in (needed.low, needed.high))
    span = f"{low} queries" if low == high else f"{low} to {high} queries"
    return (
        f"{pair}: if the true difference were the observed one, {span} would show it four times in five. Where nothing "
        "was shown this figure is biased: the observed difference is mostly chance, and a finite figure also comes out "
        "where there is no difference at all."
    )


def look_sentence(look: Look, queries: int) -> str:
    """Return which planned look this is, and the level that it has."""
    planned = join([f"{n:,}" for n in look.planned])
    near = "" if queries in look.planned else f"; {queries:,} is none of these and counts as this one"
    return (
        f"This is look {look.number} of {len(look.planned)} (planned at {planned} queries{near}): its tests have the "
        f"level {look.level:.2g}, so that all looks together keep {look.alpha:g} (O'Brien & Fleming's boundary, spent "
        "as by Lan & DeMets)."
    )


def second_look_sentence(number: int) -> str:
    """Return the caveat where earlier runs asked some of these queries and no looks were planned; "" at the first."""
    if number < 2:
        return ""
    return (
        f"This is look number {number}: earlier runs tested the same question on some of these queries. Without "
        "planned looks, every further one makes a false claim more likely than the level says (three looks: about "
        "one in ten rather than one in twenty); declare `looks` under [statistics] before the next one."
    )


def judged_only_sentence() -> str:
    """Return the caveat of labels that name relevant documents only."""
    return (
        "The labels name relevant documents only: every other document counts as irrelevant, whether anyone has read "
        "it or not. That favours retrievers whose results were read when the labels were made."
    )


def asked_sentence(n: int, clusters: int | None) -> str:
    """Return what the tests count as one observation, "" where that is a query."""
    if clusters is None:
        return ""
    return f"The tests count clusters, not queries: {count(n)} in {clusters:,} clusters."
