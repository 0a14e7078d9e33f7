"""Formulas that add up the gains of grades."""

from collections.abc import Callable

import numpy as np

from harness.measures.batch import Batch, Floats, Ints, discounted_sums, row_sums
from harness.measures.measure import Measure
from harness.measures.rank_formulas import share_of


def linear_gain(grades: Ints) -> Floats:
    """The gain of a grade is the grade; 0 for unjudged documents and negative grades.

    >>> linear_gain(np.array([-1, 0, 3])).tolist()
    [0.0, 0.0, 3.0]
    """
    return np.maximum(grades, 0).astype(np.float64)


def exponential_gain(grades: Ints) -> Floats:
    """The gain of a grade g is 2^g - 1; 0 for unjudged documents and negative grades.

    >>> exponential_gain(np.array([-1, 0, 3])).tolist()
    [0.0, 0.0, 7.0]
    """
    return np.ldexp(1.0, np.maximum(grades, 0)) - 1.0


def cumulative_gain(batch: Batch, measure: Measure) -> Floats:
    """CG@k, cumulated gain: the sum of the gains within k, blind to their order.

    The gain is the grade, or 2^grade - 1 with dcg='exp-log2'. Range from 0, without an
    upper bound; not to be averaged over queries of unequal size. Ties: trec_eval's
    order. Unjudged documents: gain 0. Short lists: what is missing adds nothing.
    Source: Järvelin & Kekäläinen (2002).

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("CG@2", {"a": 3, "b": 2, "c": 1}, ["b", "c", "a"])
    3.0
    """
    gains = _gain_function(measure)(batch.grades)
    return batch.value_at(np.cumsum(gains, axis=1), measure.cutoff)


def discounted_gain(batch: Batch, measure: Measure) -> Floats:
    """DCG@k, discounted cumulated gain: the sum of gain / log2(rank + 1) within k.

    The gain is the grade, or 2^grade - 1 with dcg='exp-log2'. Range from 0, without an
    upper bound. Ties: trec_eval's order. Unjudged documents: gain 0. Short lists: what
    is missing adds nothing. Source: Järvelin & Kekäläinen (2002), with the discount of
    Burges et al. (2005), which spares no rank but the first.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("DCG@2", {"a": 3, "b": 2, "c": 1}, ["b", "c", "a"])
    2.6309297535714578
    """
    return batch.value_at(batch.dcg(_gain_function(measure)), measure.cutoff)


def normalised_gain(batch: Batch, measure: Measure) -> Floats:
    """nDCG@k: DCG@k divided by the DCG@k of an ideal ranking; 0 where that is 0.

    The ideal ranks all judged documents by gain (as trec_eval's ndcg and ndcg_cut;
    without a cutoff all of them, though the run ends at its depth). ideal='retrieved'
    ranks only the first k hits, ideal='retrieved-all' the whole list that was returned:
    both measure the order of the hits, not whether they are all there, so that one
    relevant document at rank 1 scores 1 however many were missed. Range 0 to 1. Ties:
    trec_eval's order. Unjudged documents: gain 0. Short lists: with the judged ideal,
    what is missing costs. Source: Järvelin & Kekäläinen (2002); dcg='exp-log2': Burges
    et al. (2005).

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("nDCG@2", {"a": 2, "b": 1}, ["b", "x", "a"])
    0.38009376671593426
    >>> measure_ranking("nDCG(ideal='retrieved')@2", {"a": 2, "b": 1}, ["b", "x", "a"])
    1.0
    """
    gain = _gain_function(measure)
    k = measure.cutoff
    match measure.get("ideal"):
        case None:
            ideal = batch.value_at(batch.ideal_dcg(gain), k)
        case "retrieved":
            ideal = _ideal_sums(gain(batch.grades[:, :k]))[:, -1]
        case _:
            ideal = batch.value_at(_ideal_sums(gain(batch.grades)), k)
    return share_of(batch.value_at(batch.dcg(gain), k), ideal)


def expected_reciprocal_rank(batch: Batch, measure: Measure) -> Floats:
    """ERR@k: the expected 1 / rank at which a reader stops who reads from the top.

    At a document of grade g the reader stops with probability (2^g - 1) / 2^G, G the
    largest grade of the whole qrels (it is printed beside the values; another G is
    another measure). Range 0 to 1, but never 1, not even for the ideal ranking. Ties:
    trec_eval's order. Unjudged documents: the reader never stops there, nor at negative
    grades. Short lists: what is missing adds nothing. Source: Chapelle et al. (2009).

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("ERR@2", {"a": 1, "b": 2}, ["a", "b"])
    0.53125
    """
    grades = np.maximum(batch.grades[:, : measure.cutoff], 0)
    stops = np.ldexp(1.0, grades - batch.largest) - np.ldexp(1.0, -batch.largest)
    goes_on = np.cumprod(1.0 - stops, axis=1)
    first_rank = np.ones((len(batch), 1))
    arrives = np.concatenate([first_rank, goes_on[:, :-1]], axis=1)
    return row_sums(arrives * stops / batch.ranks[: grades.shape[1]])


def _ideal_sums(gains: Floats) -> Floats:
    """Return the discounted sums of the gains in their best order."""
    return discounted_sums(np.sort(gains, axis=1)[:, ::-1])


def _gain_function(measure: Measure) -> Callable[[Ints], Floats]:
    return exponential_gain if measure.get("dcg") == "exp-log2" else linear_gain
