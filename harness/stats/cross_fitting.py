"""Cross-fitting: choose by some queries, measure on the others."""

import hashlib
from collections.abc import Sequence

import numpy as np

from harness.stats.differences import Floats, ScoreTable, index_of_highest
from harness.stats.units import Units

FOLDS = 5
"""Folds of the queries: each choice is made on about four fifths of them."""


def cross_fitted_scores(
    scores: ScoreTable, ids: Sequence[str], units: Units, *, seed: int = 0
) -> Floats | None:
    """Return each query's score by the retriever that is best on the other folds.

    Their mean estimates how well the retriever that these queries choose does on new
    queries. It is an estimate only: no test uses it.

    The queries are split into five folds by SHA-256 of (seed, id); clusters stay whole,
    by the smallest of their ids. The retriever with the highest mean over four folds is
    measured on the fifth.

    Args:
        scores: retriever -> (n,) scores of one measure.
        ids: (n,) the queries.
        units: clusters and weights of the queries.
        seed: decides which queries share a fold.

    Returns:
        (n,) scores; None if all queries are in one fold.
    """
    unit_numbers = units.members.tolist()
    smallest_ids: dict[int, str] = {}
    for unit, query_id in zip(unit_numbers, ids, strict=True):
        smallest_ids[unit] = min(query_id, smallest_ids.get(unit, query_id))
    folds = np.array([_fold_number(seed, smallest_ids[unit]) for unit in unit_numbers])
    if not np.ptp(folds):
        return None
    table = np.column_stack(list(scores.values()))
    weights = np.ones(len(ids)) if units.weights is None else units.weights
    held_out_scores = np.zeros(len(ids))
    for fold in np.unique(folds):
        is_test = folds == fold
        train_weights = weights[~is_test]
        means = train_weights @ table[~is_test] / train_weights.sum()
        held_out_scores[is_test] = table[is_test, index_of_highest(means)]
    return held_out_scores


def _fold_number(seed: int, query_id: str) -> int:
    # "parts" is in the digest of every stored result: another word moves the folds.
    digest = hashlib.sha256(f"{seed}/parts/{query_id}".encode()).digest()
    return int.from_bytes(digest, "big") % FOLDS
