"""Several data sets in words.

The verdict is on the average of these sets, each of the same weight; what it says of
other sets needs five.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.english import (
    count_of,
    join_names,
    names_or_count,
    short_p_text,
    with_minus_sign,
)
from harness.evaluation.verdict import Verdict
from harness.stats.over_sets import MIN_SETS
from harness.wording.failures import failure_summary
from harness.wording.numerals import capital_numeral, numeral
from harness.wording.verdicts import capitalized

if TYPE_CHECKING:
    from harness.evaluation.sets import PairOnSets, SetsComparison
    from harness.stats.over_sets import NewSetsDifference


class SetsVerdict(NamedTuple):
    """The first lines above the leaderboard."""

    headline: str
    reason: str


def few_sets_note(sets: int) -> str:
    """Return what a few data sets do not show.

    >>> few_sets_note(3)
    'Three sets say nothing about other data; that needs five.'
    """
    sentence = f"{capital_numeral(sets)} {'set says' if sets == 1 else 'sets say'}"
    return f"{sentence} nothing about other data; that needs {numeral(MIN_SETS)}."


def sets_verdict(comparison: SetsComparison) -> SetsVerdict:
    """Return the leader on the average of the sets, and on which sets it leads."""
    leader, *others = comparison.ranked_retrievers
    if comparison.failed:
        return _incomplete_verdict(comparison)
    if not others:
        return SetsVerdict(f"{leader} ran alone", "Add a second retriever to compare.")
    if comparison.undeclared:
        return _exploratory_verdict(comparison)
    worse = shown_worse(comparison, leader)
    rivals = compared_with(comparison, leader)
    counts = leads_sentence(comparison)
    average = _average_words(len(comparison.sets))
    if len(worse) == len(rivals):
        higher = f"{capitalized(average)} it scores higher than"
        reason = f"{higher} {names_or_count(rivals)}.{_uncompared(others, rivals)}"
        return SetsVerdict(f"Use {leader}", f"{reason} {counts}")
    if not any(pair.verdict.shows_difference for pair in comparison.pairs):
        reason = f"No difference is shown {average}. {counts}"
        return SetsVerdict("Undecided", reason)
    undecided = [name for name in rivals if name not in worse]
    verb = "is" if len(undecided) == 1 else "are"
    reason = f"{names_or_count(undecided)} {verb} undecided"
    if worse:
        lower = f"{capital_numeral(len(worse))} score lower"
        if len(worse) == 1:
            lower = f"{worse[0]} scores lower"
        reason = f"{lower} {average}; {reason}"
    return SetsVerdict(f"{leader} leads", f"{reason}. {counts}")


def _uncompared(others: Sequence[str], rivals: Sequence[str]) -> str:
    """Say which others are not compared with the leader; "" if all are."""
    uncompared = [name for name in others if name not in rivals]
    if not uncompared:
        return ""
    verb = "is" if len(uncompared) == 1 else "are"
    return f" {names_or_count(uncompared)} {verb} not compared with it."


def _average_words(sets: int) -> str:
    return "on the only set" if sets == 1 else f"on the average of {numeral(sets)} sets"


def _incomplete_verdict(comparison: SetsComparison) -> SetsVerdict:
    """Return the verdict if retrievers failed on a set, which recommends nothing."""
    leader, *others = comparison.ranked_retrievers
    fix = f"Fix {'it' if len(comparison.failed) == 1 else 'them'} and run again."
    reason = f"{leader} leads the others. {fix}" if others else fix
    failures = failure_summary(comparison.failed)
    return SetsVerdict(f"No recommendation: {failures}", reason)


def _exploratory_verdict(comparison: SetsComparison) -> SetsVerdict:
    """Return the verdict by choices made after the runs, which recommends nothing."""
    leader = comparison.ranked_retrievers[0]
    choices = join_names(comparison.undeclared)
    headline = f"Exploratory, by {choices}: {leader} has the best mean"
    worse = shown_worse(comparison, leader)
    reason = "No difference from it is shown."
    if worse:
        reason = f"It differs from {names_or_count(worse)}."
    return SetsVerdict(headline, f"{reason} {leads_sentence(comparison)}")


def compared_with(comparison: SetsComparison, leader: str) -> list[str]:
    """Return the retrievers that are compared with a leader.

    With a baseline that does not lead, that is the baseline alone.
    """
    return [pair.b for pair in _pairs_of(comparison, leader)]


def shown_worse(comparison: SetsComparison, leader: str) -> list[str]:
    """Return the retrievers that are shown to be worse than a leader."""
    pairs = _pairs_of(comparison, leader)
    return [pair.b for pair in pairs if pair.verdict is Verdict.BETTER]


def _pairs_of(comparison: SetsComparison, leader: str) -> list[PairOnSets]:
    """Return the pairs of a leader, each with the leader first."""
    return [
        pair if pair.a == leader else pair.swapped
        for pair in comparison.pairs
        if leader in (pair.a, pair.b)
    ]


def leads_sentence(comparison: SetsComparison) -> str:
    """Return on how many data sets each retriever has the highest mean."""
    counts: dict[str, int] = {}
    for retriever in comparison.ranked_retrievers:
        leads = sum(retriever in comparison.best_on(name) for name in comparison.sets)
        if leads:
            counts[retriever] = leads
    sets = len(comparison.sets)
    by_count = sorted(counts, key=lambda name: -counts[name])
    first, *others = by_count
    sentence = f"{first} leads on {counts[first]} of {count_of(sets, 'data set')}"
    if counts[first] == sets:
        all_sets = {1: "the only", 2: "both"}.get(sets, f"all {sets}")
        noun = "data set" if sets == 1 else "data sets"
        sentence = f"{first} leads on {all_sets} {noun}"
    return (
        f"{', '.join([sentence, *(f'{name} on {counts[name]}' for name in others)])}."
    )


def sets_sentences(comparison: SetsComparison, limit: int) -> list[str]:
    """Return which retriever leads on several data sets, and the result of each pair.

    A sentence says if the sets are too few.

    Args:
        comparison: over the data sets.
        limit: how many pairs have a sentence: those that are shown to differ first,
            then those with the largest differences.
    """
    verdict = sets_verdict(comparison)
    pairs = sorted(comparison.pairs, key=_clearest_first)
    sentences = [f"{verdict.headline}. {verdict.reason}"]
    sentences += map(sets_sentence, pairs[:limit])
    if len(comparison.sets) < MIN_SETS:
        sentences.append(few_sets_note(len(comparison.sets)))
    return sentences


def _clearest_first(pair: PairOnSets) -> tuple[bool, float]:
    return not pair.verdict.shows_difference, -abs(pair.mean_difference)


def sets_sentence(pair: PairOnSets) -> str:
    """Return the result of two retrievers on several data sets.

    If there are five sets or more, also the result on other sets like these.
    """
    pair = pair.leader_first
    sets = len(pair.differences)
    noun = "set" if sets == 1 else "sets"
    lead = f"{pair.a} is ahead of {pair.b} on {pair.sets_ahead} of {sets} {noun}"
    mean = f"mean {pair.mean_difference:+z.3f}"
    new_sets = ""
    if pair.new_sets is not None:
        new_sets = _new_sets_words(pair.new_sets)
    is_shown = "shown" if pair.verdict.shows_difference else "not shown"
    p = short_p_text(pair.p_adjusted)
    all_sets = "this set" if sets == 1 else f"these {sets} sets"
    these_sets = f"on {all_sets} the difference is {is_shown} (p {p})"
    return f"{lead}, {mean}{new_sets}; {these_sets}."


def _new_sets_words(difference: NewSetsDifference) -> str:
    interval = difference.interval
    on_new_set = difference.new_set_interval
    ends = f"{float(interval.low or 0):z.3f} to {float(interval.high or 0):z.3f}"
    low = f"{float(on_new_set.low or 0):+z.3f}"
    high = f"{float(on_new_set.high or 0):+z.3f}"
    return with_minus_sign(f" ({ends}); on a new set {low} to {high}")
