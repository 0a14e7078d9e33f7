"""The whole: which retrievers are shown worse than the best, which within its margin, which are not resolved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.stats.comparison import Comparison, Scores, compare, swapped
from harness.stats.differences import differences
from harness.stats.intervals import mean
from harness.stats.power import Detectable, Needed, minimum_detectable, queries_needed
from harness.stats.settings import Settings
from harness.stats.verdicts import BETTER, BUT_NEGLIGIBLE, EQUIVALENT


@dataclass(frozen=True, slots=True)
class Unresolved:
    """What can be said of a retriever that these queries cannot tell from the leader."""

    needed: Needed | None
    """Queries in all that would tell them apart; None: fewer than ten queries differ, which foretells nothing."""
    detectable: Detectable
    """The smallest true difference between the two that these queries would have found."""


@dataclass(frozen=True, slots=True)
class Whole:
    """All retrievers against the one with the highest mean, on the primary measure."""

    measure: str
    n: int
    """Queries."""
    means: Mapping[str, float]
    """Highest first."""
    shown_worse: tuple[str, ...]
    within_margin: tuple[str, ...]
    """The leader, and all that are shown within the margin of it: only these are as good as the best."""
    unresolved: Mapping[str, Unresolved]
    """What these queries cannot tell from the leader."""
    against: Mapping[str, Comparison]
    """Of the leader (a) with each other (b)."""

    @property
    def leader(self) -> str:
        """The retriever with the highest mean; among equals the first in the experiment's order."""
        return next(iter(self.means))


def whole(scores: Scores, declared: Sequence[Comparison], *, measure: str, settings: Settings) -> Whole:
    """Sort the retrievers into the three sets against the highest mean.

    A pair of the declared family keeps its verdict. The leader is chosen by the data, so its pairs outside the
    family (where a baseline does not lead) are corrected over all pairs.

    Args:
        scores: retriever -> (n,) scores of the primary measure, queries in the order of their ids; at least one.
        declared: the rows of `compare` on it.
        measure: its name.
        settings: those of `compare`; without a margin nothing but the leader is within it.
    """
    means = dict(sorted(((name, mean(values)) for name, values in scores.items()), key=lambda item: -item[1]))
    leader, *others = means
    against = _against(leader, declared)
    levels = dict.fromkeys(against, settings.alpha / max(1, len(declared)))
    if len(against) < len(others):
        rows = compare(scores, measure=measure, settings=settings)
        against = _against(leader, rows) | against
        levels = dict.fromkeys(others, settings.alpha / len(rows)) | levels
    close = [o for o in others if against[o].word == EQUIVALENT or against[o].word.endswith(BUT_NEGLIGIBLE)]
    worse = [o for o in others if against[o].word == BETTER]
    unresolved = {}
    for other in others:
        if other not in close and other not in worse:
            pairs = differences(scores[leader], scores[other])
            unresolved[other] = Unresolved(
                queries_needed(pairs, level=levels[other], zeros=settings.zeros, seed=settings.seed),
                minimum_detectable(pairs, level=levels[other], zeros=settings.zeros, seed=settings.seed),
            )
    return Whole(
        measure=measure,
        n=len(scores[leader]),
        means=means,
        shown_worse=tuple(worse),
        within_margin=(leader, *close),
        unresolved=unresolved,
        against={other: against[other] for other in others},
    )


def _against(leader: str, rows: Sequence[Comparison]) -> dict[str, Comparison]:
    turned = (row if row.a == leader else swapped(row) for row in rows if leader in (row.a, row.b))
    return {row.b: row for row in turned}
