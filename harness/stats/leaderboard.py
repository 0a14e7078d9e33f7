"""How firm the order of the means is, and how much the best one flatters itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.stats.differences import SLACK, Floats
from harness.stats.facts import Facts, ScoreTable
from harness.stats.intervals import mean, resample_blocks, resampled_means, standard_error
from harness.stats.units import Units


class Standing(NamedTuple):
    """One retriever's place over bootstrap resamples of the queries."""

    name: str
    mean: float
    rank: int
    """1 for the highest mean; equal means share the better rank."""
    rank_low: int | None
    rank_high: int | None
    """The ranks that hold all but (1 - level) / 2 of the resamples on either side; None where nothing tells how far
    the differences scatter: one query, or differences that are all equal."""
    share_first: float
    """Share of the resamples in which it has the highest mean; equal means share it."""


class Optimism(NamedTuple):
    """What is lost on new queries by having picked the best of several on these."""

    winner: str
    mean: float
    optimism: float
    """At least so much: the mean, over resamples, of the winner's mean there minus its mean on all queries."""
    corrected: float
    """mean - optimism: the most to expect of the winner on new queries of this kind."""


def standings(
    scores: ScoreTable,
    *,
    level: float = 0.95,
    seed: int = 0,
    facts: Facts = Facts(),  # noqa: B008 - frozen
) -> list[Standing]:
    """Return each retriever's rank with its bootstrap interval, highest mean first.

    Args:
        scores: retriever -> (n,) scores of one measure, queries in the order of their ids.
        level: confidence of the rank intervals.
        seed: of the 10,000 resamples.
        facts: clusters of the queries: these are drawn, then.
    """
    resampled, means, slack, units = _means(scores, seed, facts)
    ranks = _ranks(resampled, slack)
    low, high = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    first = ranks == 1
    share = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
    own = _ranks(means[None, :], slack)[0]
    known = {
        name: any(standard_error(values - other, units) is not None for other in scores.values())
        for name, values in scores.items()
    }
    rows = [
        Standing(
            name,
            float(means[i]),
            int(own[i]),
            int(low[i]) if known[name] else None,
            int(high[i]) if known[name] else None,
            float(share[i]),
        )
        for i, name in enumerate(scores)
    ]
    return sorted(rows, key=lambda row: row.rank)


def optimism(scores: ScoreTable, *, seed: int = 0, facts: Facts = Facts()) -> Optimism:  # noqa: B008 - frozen
    """Return the winner's curse of the highest mean, by the bootstrap of the maximum.

    Each resample of the queries picks its own winner; the true mean of that winner is its mean on all queries. In
    simulations this finds 0.5 to 0.8 of the truth: it is a lower bound.

    Args:
        scores: retriever -> (n,) scores of one measure, queries in the order of their ids.
        seed: of the 10,000 resamples.
        facts: clusters of the queries: these are drawn, then.
    """
    resampled, means, *_ = _means(scores, seed, facts)
    picked = resampled.argmax(axis=1)
    gain = float(np.mean(resampled[np.arange(len(picked)), picked] - means[picked]))
    best = int(means.argmax())
    return Optimism(list(scores)[best], float(means[best]), gain, float(means[best]) - gain)


def _means(scores: ScoreTable, seed: int, facts: Facts) -> tuple[Floats, Floats, float, Units]:
    """Return the resampled means (resamples, k), the means (k,), what counts as equal, and the units."""
    table = np.column_stack(list(scores.values()))
    units = facts.units(len(table))
    resampled = np.concatenate([resampled_means(table, counts, units) for counts in resample_blocks(len(units), seed)])
    means = np.array([mean(values) for values in scores.values()])
    return resampled, means, SLACK * max(1.0, float(np.abs(table).max())), units


def _ranks(means: Floats, slack: float) -> Floats:
    ahead: Floats = (means[:, None, :] > means[:, :, None] + slack).sum(axis=2) + 1.0
    return ahead
