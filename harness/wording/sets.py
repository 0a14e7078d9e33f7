"""Several data sets in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.english import count_of, short_p_text, with_minus_sign
from harness.stats.differences import SCORE_TOLERANCE

if TYPE_CHECKING:
    from harness.evaluation.sets import PairOnSets, SetsComparison
    from harness.stats.over_sets import NewSetsDifference

FEW_SETS_NOTE = "Nothing follows for other data sets: that takes five sets or more."


def sets_sentences(comparison: SetsComparison, limit: int) -> list[str]:
    """Return which retriever leads on several data sets, and the result of each pair.

    And whether the sets are too few.

    Args:
        comparison: over the data sets.
        limit: how many pairs have a sentence.
    """
    first = comparison.ranked_retrievers[0]
    leads = sum(_leads_on(first, name, comparison) for name in comparison.sets)
    sets = count_of(len(comparison.sets), "data set")
    pairs = sorted(comparison.pairs, key=_clearest_first)
    sentences = [f"{first} has the highest mean on {leads} of {sets}."]
    sentences += map(sets_sentence, pairs[:limit])
    if pairs and pairs[0].new_sets is None:
        sentences.append(FEW_SETS_NOTE)
    return sentences


def _leads_on(retriever: str, name: str, comparison: SetsComparison) -> bool:
    """Whether a retriever has the highest mean on a data set."""
    highest = max(comparison.mean(name, other) for other in comparison.retrievers)
    return comparison.mean(name, retriever) >= highest - SCORE_TOLERANCE


def _clearest_first(pair: PairOnSets) -> tuple[bool, float]:
    return not pair.verdict.shows_difference, -abs(pair.mean_difference)


def sets_sentence(pair: PairOnSets) -> str:
    """Return the result of two retrievers on several data sets.

    From five sets on, also on other sets like these.
    """
    pair = pair.leader_first
    sets = len(pair.differences)
    lead = f"{pair.a} is ahead of {pair.b} on {pair.sets_ahead} of {sets} sets"
    mean = f"mean {pair.mean_difference:+z.3f}"
    new_sets = ""
    if pair.new_sets is not None:
        new_sets = _new_sets_words(pair.new_sets)
    is_shown = "shown" if pair.verdict.shows_difference else "not shown"
    p = short_p_text(pair.p_adjusted)
    these_sets = f"on these {sets} sets the difference is {is_shown} (p {p})"
    return f"{lead}, {mean}{new_sets}; {these_sets}."


def _new_sets_words(difference: NewSetsDifference) -> str:
    interval = difference.interval
    on_new_set = difference.new_set_interval
    ends = f"{float(interval.low or 0):z.3f} to {float(interval.high or 0):z.3f}"
    low = f"{float(on_new_set.low or 0):+z.3f}"
    high = f"{float(on_new_set.high or 0):+z.3f}"
    return with_minus_sign(f" ({ends}); on a new set {low} to {high}")
