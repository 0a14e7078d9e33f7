"""How firm the order of the means is, and how much the best one flatters itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.stats.comparison import Scores
from harness.stats.differences import SLACK, Floats
from harness.stats.intervals import mean, resample_counts, resampled_means


class Standing(NamedTuple):
    """One retriever's place over bootstrap resamples of the queries."""

    name: str
    mean: float
    rank: int
    """1 for the highest mean; equal means share the better rank."""
    rank_low: int
    rank_high: int
    """The ranks that hold all but (1 - level) / 2 of the resamples on either side."""
    share_first: float
    """Share of the resamples in which it has the highest mean; equal means share it."""


class Optimism(NamedTuple):
    """What is lost on new queries by having picked the best of several on these."""

    winner: str
    mean: float
    optimism: float
    """Mean, over resamples, of the winner's mean there minus the same retriever's mean on all queries."""
    corrected: float
    """mean - optimism: what to expect of the winner on new queries of this kind."""


def standings(scores: Scores, *, level: float = 0.95, seed: int = 0) -> list[Standing]:
    """Return each retriever's rank with its bootstrap interval, highest mean first.

    Args:
        scores: retriever -> (n,) scores of one measure, queries in the order of their ids.
        level: confidence of the rank intervals.
        seed: of the 10,000 resamples.
    """
    resampled, means, slack = _means(scores, seed)
    ranks = _ranks(resampled, slack)
    low, high = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    first = ranks == 1
    share = (first / first.sum(axis=1, keepdims=True)).mean(axis=0)
    own = _ranks(means[None, :], slack)[0]
    rows = [
        Standing(name, float(means[i]), int(own[i]), int(low[i]), int(high[i]), float(share[i]))
        for i, name in enumerate(scores)
    ]
    return sorted(rows, key=lambda row: row.rank)


def optimism(scores: Scores, *, seed: int = 0) -> Optimism:
    """Return the winner's curse of the highest mean, by the bootstrap of the maximum.

    Each resample of the queries picks its own winner; the true mean of that winner is its mean on all queries.

    Args:
        scores: retriever -> (n,) scores of one measure, queries in the order of their ids.
        seed: of the 10,000 resamples.
    """
    resampled, means, _ = _means(scores, seed)
    picked = resampled.argmax(axis=1)
    gain = float(np.mean(resampled[np.arange(len(picked)), picked] - means[picked]))
    best = int(means.argmax())
    return Optimism(list(scores)[best], float(means[best]), gain, float(means[best]) - gain)


def _means(scores: Scores, seed: int) -> tuple[Floats, Floats, float]:
    """Return the resampled means (resamples, k), the means (k,), and what counts as equal."""
    table = np.column_stack(list(scores.values()))
    resampled = resampled_means(table, resample_counts(len(table), seed))
    means = np.array([mean(values) for values in scores.values()])
    return resampled, means, SLACK * max(1.0, float(np.abs(table).max()))


def _ranks(means: Floats, slack: float) -> Floats:
    ahead: Floats = (means[:, None, :] > means[:, :, None] + slack).sum(axis=2) + 1.0
    return ahead
