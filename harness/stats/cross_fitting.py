"""Cross-fitting: what to expect, on new queries, of having chosen the best of many on these."""

import hashlib
from collections.abc import Sequence

import numpy as np

from harness.stats.differences import ScoreTable, Units, highest
from harness.stats.intervals import mean

PARTS = 5
"""Of the queries, for cross-fitting."""


def cross_fitted(scores: ScoreTable, ids: Sequence[str], units: Units, *, seed: int = 0) -> float | None:
    """Estimate the mean, on new queries, of what has the highest mean on these: cross-fitted, never tested.

    The queries fall into five parts by SHA-256 of (seed, id); clusters stay whole, by the id of their first query. The
    retriever with the highest mean over four parts is measured on the fifth; the estimate is the mean over all queries.
    None where all queries fall into one part.

    Args:
        scores: retriever -> (n,) scores of one measure.
        ids: (n,) the queries.
        units: clusters and weights of the queries.
        seed: of the parts.
    """
    first: dict[int, str] = {}
    for unit, query in zip(units.members.tolist(), ids, strict=True):
        first[unit] = min(query, first.get(unit, query))
    part = np.array([_part(seed, first[unit]) for unit in units.members.tolist()])
    table = np.column_stack(list(scores.values()))
    weights = np.ones(len(ids)) if units.weights is None else units.weights
    parts = set(part.tolist())
    if len(parts) < 2:
        return None
    left_out = np.zeros(len(ids))
    for one in sorted(parts):
        held = part == one
        chosen = highest(weights[~held] @ table[~held] / weights[~held].sum())
        left_out[held] = table[held, chosen]
    return mean(left_out, units.weights)


def _part(seed: int, query: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/parts/{query}".encode()).digest(), "big") % PARTS
