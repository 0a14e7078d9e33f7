"""Measures that use the grades themselves: CG, DCG, nDCG, ERR."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.measures.batch import Batch, Floats, Ints, discounted
from harness.measures.measure import Measure


def linear_gain(grades: Ints) -> Floats:
    """The gain of a grade is the grade; 0 for unjudged documents and negative grades."""
    return np.maximum(grades, 0).astype(np.float64)


def exponential_gain(grades: Ints) -> Floats:
    """The gain of a grade g is 2^g - 1; 0 for unjudged documents and negative grades."""
    return np.ldexp(1.0, np.maximum(grades, 0)) - 1.0


def cumulative_gain(batch: Batch, measure: Measure) -> Floats:
    """CG@k: the sum of the gains within k."""
    return batch.at(np.cumsum(_gain(measure)(batch.grades), axis=1), measure.cutoff)


def discounted_gain(batch: Batch, measure: Measure) -> Floats:
    """DCG@k: the sum of gain / log2(rank + 1) within k."""
    return batch.at(batch.dcg(_gain(measure)), measure.cutoff)


def normalised_gain(batch: Batch, measure: Measure) -> Floats:
    """nDCG@k: DCG@k divided by that of an ideal ranking."""
    gain, k = _gain(measure), measure.cutoff
    dcg = batch.at(batch.dcg(gain), k)
    match measure.get("ideal"):
        case None:
            ideal = batch.at(batch.ideal_dcg(gain), k)
        case "retrieved":
            ideal = _best_order(gain(batch.grades[:, :k]))[:, -1]
        case _:
            ideal = batch.at(_best_order(gain(batch.grades)), k)
    return np.divide(dcg, ideal, out=np.zeros(len(batch)), where=ideal > 0)


def _best_order(gains: Floats) -> Floats:
    return discounted(np.sort(gains, axis=1)[:, ::-1])


def _gain(measure: Measure) -> Callable[[Ints], Floats]:
    return exponential_gain if measure.get("dcg") == "exp-log2" else linear_gain
