"""Preferences in words."""

from __future__ import annotations

import math
from typing import NamedTuple

from harness.english import count_of, percent_text, short_p_text
from harness.stats.looks import InterimAnalysis
from harness.stats.proportion import (
    ProportionInterval,
    detectable_share,
    sign_test_level,
)
from harness.wording.looks import look_sentence


class PreferenceTotals(NamedTuple):
    """The preferences over queries."""

    leader: str
    """The retriever that is preferred on more queries, or on as many."""
    other: str
    for_leader: int
    """How many queries have a preference for the leader."""
    for_other: int
    same: int
    """How many queries have no preference."""
    p: float
    """Two-sided p of the sign test."""
    interval: ProportionInterval
    """Of the share for the leader among the queries with a preference."""
    level: float
    """Level of the test; the interval has confidence 1 - level."""
    is_shown: bool
    """Whether the preference is shown."""

    @property
    def decided(self) -> int:
        """How many queries have a preference."""
        return self.for_leader + self.for_other


def total_sentences(totals: PreferenceTotals) -> list[str]:
    """Return how many prefer which, what follows, and the interval.

    >>> totals = PreferenceTotals("minilm", "bm25", 17, 5, 3, 0.0169,
    ...     ProportionInterval(0.546, 0.922), 0.05, True)
    >>> total_sentences(totals)[0]
    '17 of 22 prefer minilm, 3 the same: p = .017 (exact sign test)'
    """
    p = short_p_text(totals.p)
    relation = f"< {p[1:]}" if p.startswith("<") else f"= {p}"
    verb = "prefers" if totals.for_leader == 1 else "prefer"
    counts = f"{totals.for_leader} of {totals.decided} {verb} {totals.leader}"
    if not totals.decided:
        counts = "no query has a preference"
    sentences = [f"{counts}, {totals.same} the same: p {relation} (exact sign test)"]
    if totals.is_shown:
        sentences.append(f"People prefer {totals.leader} to {totals.other}.")
    else:
        sentences.append(
            f"Undecided: no preference for {totals.leader} or {totals.other} is shown."
        )
    if totals.decided:
        share = percent_text(totals.for_leader / totals.decided, digits=2)
        confidence = percent_text(1 - totals.level)
        low = percent_text(totals.interval.low, digits=2)
        high = percent_text(totals.interval.high, digits=2)
        sentences.append(
            f"Of the queries with a preference, {share} % prefer {totals.leader} "
            f"({confidence} % interval {low} to {high} %)."
        )
    return sentences


def preference_power_sentence(queries: int) -> str:
    """Return what so many answers can show, and how often they claim wrongly.

    >>> preference_power_sentence(25)
    'With a preference on each of 25 queries, one that holds for 77 % of all queries \
is shown with 80 % chance; without any, 4.3 % of pages claim one.'
    >>> preference_power_sentence(1)
    '1 query is too few to show a preference.'
    """
    share = detectable_share(queries)
    if share is None:
        verb = "is" if queries == 1 else "are"
        return f"{count_of(queries, 'query')} {verb} too few to show a preference."
    level = percent_text(sign_test_level(queries), digits=2)
    return (
        f"With a preference on each of {queries} queries, one that holds for "
        f"{math.ceil(100 * share)} % of all queries is shown with 80 % chance; "
        f"without any, {level} % of pages claim one."
    )


def self_agreement_sentence(repeated: int, same: int, by_side: int) -> str:
    """Return how often a person agreed with herself; "" without a repetition.

    Args:
        repeated: queries that were shown again with swapped sides.
        same: those with the same answer.
        by_side: those whose two answers are for the same side.
    """
    if not repeated:
        return ""
    sentence = (
        f"Shown again with swapped sides: the same answer to {same} of {repeated}."
    )
    if by_side:
        sentence += f" {by_side} followed the side, not the list."
    return sentence


def preference_look_sentence(
    look: InterimAnalysis | None, earlier: tuple[int, ...], queries: int
) -> str:
    """Return which look this is; "" for an only one that was not planned."""
    if look is not None:
        return look_sentence(look, queries)
    if not earlier:
        return ""
    sizes = ", ".join(map(str, earlier))
    return (
        f"This is look number {len(earlier) + 1} (before: {sizes} queries): each "
        "further look makes a false claim more likely. "
        "Declare `looks` under [statistics]."
    )


class LabelDirection(NamedTuple):
    """The comparison of the same two retrievers by labels."""

    measure: str
    leader: str
    """The retriever with the better mean; "" if both have the same."""
    lead: float
    """How far it is ahead, in points of the measure."""
    is_shown: bool | None
    """Whether the difference is shown; None if the experiment does not test it."""
    both: int
    """How many queries have a preference and a difference by labels."""
    agreeing: int
    """On how many of them both are in favour of the same retriever."""


def label_sentences(labels: LabelDirection, totals: PreferenceTotals) -> list[str]:
    """Return whether labels and people agree."""
    standing = "shown" if labels.is_shown else "undecided"
    if labels.is_shown is None:
        standing = "not tested"
    lead = (
        f"{labels.leader} leads by {labels.lead:.3f} in {labels.measure} ({standing})"
    )
    if not labels.leader:
        lead = f"both have the same {labels.measure}"
    people = "people are undecided"
    if totals.is_shown:
        people = f"people prefer {totals.leader}"
    if totals.is_shown and labels.leader:
        agree = labels.leader == totals.leader
        outcome = "they agree" if agree else "they do not agree"
        if agree and not labels.is_shown:
            outcome = "the same direction"
        people = f"{people}: {outcome}"
    sentences = [f"By the labels, {lead}; {people}."]
    if labels.both:
        queries = count_of(labels.both, "query")
        sentences.append(
            f"On {labels.agreeing} of {queries} with a preference and a difference by "
            "labels, both agree."
        )
    return sentences
