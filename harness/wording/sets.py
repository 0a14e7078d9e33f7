"""Several data sets in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.english import count_of, short_p_text, with_minus_sign
from harness.stats.differences import SCORE_TOLERANCE

if TYPE_CHECKING:
    from harness.evaluation.sets import PairOnSets, SetsComparison

FEW_SETS_NOTE = "Nothing follows for other data sets: that takes five sets or more."


def sets_sentences(found: SetsComparison, most: int) -> list[str]:
    """Return who leads on several data sets, the result of each pair, and whether the sets are too few."""
    first, sets = found.ranked_retrievers[0], len(found.sets)
    best = {
        name: max(found.mean(name, one) for one in found.retrievers)
        for name in found.sets
    }
    leads = sum(
        found.mean(name, first) >= mean - SCORE_TOLERANCE for name, mean in best.items()
    )
    shown = sorted(
        found.pairs,
        key=lambda pair: (
            not pair.verdict.shows_difference,
            -abs(pair.mean_difference),
        ),
    )
    head = f"{first} has the highest mean on {leads} of {count_of(sets, 'data set')}."
    return [
        head,
        *map(sets_sentence, shown[:most]),
        *([FEW_SETS_NOTE] if shown and not shown[0].new_sets else []),
    ]


def sets_sentence(pair: PairOnSets) -> str:
    """Return the result of two retrievers on several data sets; from five sets on, also on sets like these."""
    pair = pair.leader_first
    sets = len(pair.differences)
    head = f"{pair.a} is ahead of {pair.b} on {pair.sets_ahead} of {sets} sets, mean {pair.mean_difference:+z.3f}"
    shown = "shown" if pair.verdict.shows_difference else "not shown"
    these_sets = f"on these {sets} sets the difference is {shown} (p {short_p_text(pair.p_adjusted)})"
    if pair.new_sets is None:
        return f"{head}; {these_sets}."
    low, high, least, most = (
        float(end or 0)
        for end in (*pair.new_sets.interval[:2], *pair.new_sets.new_set_interval[:2])
    )
    return f"{head}{with_minus_sign(f' ({low:z.3f} to {high:z.3f}); on a new set {least:+z.3f} to {most:+z.3f}')}; {these_sets}."
