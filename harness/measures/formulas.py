"""Measures by the grades down a ranking: those that ask whether a grade is at least `rel` (1), then those of gains.

Bpref, RBP with its residual, and Judged also ask what the missing judgments do.

In all of them ties were broken before, by trec_eval's order (score, then document id, both descending).
"""

from collections.abc import Callable

import numpy as np

from harness.measures.batch import (
    UNJUDGED,
    Array,
    Batch,
    Floats,
    Ints,
    discounted,
    total,
)
from harness.measures.measure import Measure


def precision(batch: Batch, measure: Measure) -> Floats:
    """P@k, precision: hits / k.

    Range 0 to 1; 1 only where k relevant documents exist. Ties: trec_eval's order. Unjudged documents: not
    relevant. Lists shorter than k: still divided by k. Source: van Rijsbergen (1979), as trec_eval's P.

    >>> from harness.measures import value
    >>> value("P@4", {"a": 1, "b": 2}, ["a", "x", "b"])
    0.5
    """
    assert measure.cutoff is not None
    return batch.hits_within(measure.rel, measure.cutoff) / measure.cutoff


def recall(batch: Batch, measure: Measure) -> Floats:
    """R@k, recall: hits / R, with R the judged relevant documents; 0 where there are none. SetR without a cutoff.

    Range 0 to 1; below 1 wherever k < R. Ties: trec_eval's order. Unjudged documents: not relevant. Short
    lists: nothing special. Source: van Rijsbergen (1979), as trec_eval's recall and set_recall. On the ids of
    the contexts handed to a model it is RAGAS's IDContextRecall.

    >>> from harness.measures import value
    >>> value("R@2", {"a": 1, "b": 2, "c": 1, "d": 1}, ["a", "x", "b"])
    0.25
    """
    return share(
        batch.hits_within(measure.rel, measure.cutoff), batch.relevant(measure.rel)
    )


def capped_recall(batch: Batch, measure: Measure) -> Floats:
    """Rcap@k, recall capped at the cutoff: hits / min(k, R); 0 where nothing is relevant.

    Range 0 to 1; 1 where the first k hold as many relevant documents as they can. Ties: trec_eval's order.
    Unjudged documents: not relevant. Lists shorter than k: no allowance. Source: Thakur et al. (2021), BEIR.

    >>> from harness.measures import value
    >>> value("Rcap@2", {"a": 1, "b": 2, "c": 1, "d": 1}, ["a", "x", "b"])
    0.5
    """
    assert measure.cutoff is not None
    return share(
        batch.hits_within(measure.rel, measure.cutoff),
        np.minimum(batch.relevant(measure.rel), measure.cutoff),
    )


def f1(batch: Batch, measure: Measure) -> Floats:
    """F1@k, the harmonic mean of this query's P@k and R@k: 2 hits / (k + R). Never a mean of means.

    Range 0 to 1; 1 only where k = R. Ties: trec_eval's order. Unjudged documents: not relevant. Lists shorter
    than k: precision is still hits / k. Source: van Rijsbergen (1979).

    >>> from harness.measures import value
    >>> value("F1@2", {"a": 1, "b": 2}, ["a", "x", "b"])
    0.5
    """
    assert measure.cutoff is not None
    return (
        2
        * batch.hits_within(measure.rel, measure.cutoff)
        / (measure.cutoff + batch.relevant(measure.rel))
    )


def success(batch: Batch, measure: Measure) -> Floats:
    """Success@k, the hit rate: 1 if a relevant document is within k, else 0.

    Range 0 or 1. Ties: trec_eval's order. Unjudged documents: not relevant. Short lists: nothing special.
    Source: trec_eval's success; "hit rate" in the RAG literature.

    >>> from harness.measures import value
    >>> value("Success@2", {"b": 2}, ["a", "x", "b"])
    0.0
    """
    return (batch.hits_within(measure.rel, measure.cutoff) > 0).astype(np.float64)


def reciprocal_rank(batch: Batch, measure: Measure) -> Floats:
    """RR@k, the reciprocal rank: 1 / rank of the first relevant document within k, else 0. Its mean is MRR.

    Range 0 to 1; it takes only the values 1, 1/2, 1/3, so that its differences are ordinal at best (Fuhr 2017).
    Ties: trec_eval's order. Unjudged documents: not relevant. Short lists: nothing special. Source: Voorhees
    (1999), as trec_eval's recip_rank.

    >>> from harness.measures import value
    >>> value("RR", {"x": 1, "b": 2}, ["a", "x", "b"])
    0.5
    """
    first = batch.hits(measure.rel).argmax(axis=1) + 1
    return np.where(
        batch.hits_within(measure.rel, measure.cutoff) > 0, 1.0 / first, 0.0
    )


def average_precision(batch: Batch, measure: Measure) -> Floats:
    """AP@k, average precision: the sum of P@i over the hits i within k, divided by R. Its mean is MAP.

    Range 0 to 1; divided by all judged relevant documents, not by the hits, by k or by min(k, R), so that what
    was not found costs. Ties: trec_eval's order. Unjudged documents: not relevant. Short lists: what is
    missing adds nothing. Source: Buckley & Voorhees (2000), as trec_eval's map and map_cut.

    >>> from harness.measures import value
    >>> value("AP@3", {"a": 1, "b": 1}, ["x", "a", "b"])
    0.5833333333333333
    """
    return share(
        batch.at(batch.precisions_so_far(measure.rel), measure.cutoff),
        batch.relevant(measure.rel),
    )


def precision_at_r(batch: Batch, measure: Measure) -> Floats:
    """Rprec, R-precision: the share of relevant documents among the first R; 0 where R = 0.

    Range 0 to 1; precision and recall meet here. Ties: trec_eval's order. Unjudged documents: not relevant.
    Lists shorter than R: still divided by R. Source: Buckley & Voorhees (2005), as trec_eval's Rprec.

    >>> from harness.measures import value
    >>> value("Rprec", {"a": 1, "b": 1}, ["x", "a", "b"])
    0.5
    """
    wanted = batch.relevant(measure.rel)
    running = batch.hits_so_far(measure.rel)
    places = np.clip(wanted, 1, running.shape[1]) - 1
    return share(
        np.where(wanted > 0, running[np.arange(len(batch)), places], 0), wanted
    )


def set_precision(batch: Batch, measure: Measure) -> Floats:
    """SetP, the precision of what came back: hits / returned; 0 where nothing did.

    Range 0 to 1. Ties: they do not matter, unless a cutoff splits them. Unjudged documents: not relevant. Short
    lists: divided by their own length, which is what sets SetP@k apart from P@k. Source: trec_eval's set_P. On
    the ids of the contexts handed to a model it is RAGAS's IDContextPrecision.

    >>> from harness.measures import value
    >>> value("SetP", {"a": 1, "b": 1}, ["x", "a"])
    0.5
    """
    return share(
        batch.hits_within(measure.rel, measure.cutoff), batch.returned(measure.cutoff)
    )


def set_f1(batch: Batch, measure: Measure) -> Floats:
    """SetF, the harmonic mean of SetP and SetR: 2 hits / (returned + R).

    Range 0 to 1. Ties: they do not matter, unless a cutoff splits them. Unjudged documents: not relevant. Short
    lists: as in SetP. Source: van Rijsbergen (1979), as trec_eval's set_F.

    >>> from harness.measures import value
    >>> value("SetF", {"a": 1, "b": 1, "c": 1}, ["x", "a"])
    0.4
    """
    hits = batch.hits_within(measure.rel, measure.cutoff)
    return share(2 * hits, batch.returned(measure.cutoff) + batch.relevant(measure.rel))


def set_average_precision(batch: Batch, measure: Measure) -> Floats:
    """SetAP, average precision without an order: SetP times SetR, hits squared / (returned * R) in one division.

    Range 0 to 1. Ties: they do not matter, unless a cutoff splits them. Unjudged documents: not relevant. Short
    lists: as in SetP. Source: trec_eval's set_map.

    >>> from harness.measures import value
    >>> value("SetAP", {"a": 1, "b": 1}, ["x", "a"])
    0.25
    """
    hits = batch.hits_within(measure.rel, measure.cutoff)
    return share(
        hits * hits, batch.returned(measure.cutoff) * batch.relevant(measure.rel)
    )


def context_precision(batch: Batch, measure: Measure) -> Floats:
    """ContextPrecision@k: the sum of P@i over the hits i within k, divided by the hits; 0 where there are none.

    Range 0 to 1. It divides by what was found, not by what there is: one more hit at a late rank lowers it, and
    a list with one hit at rank 1 scores 1 however much it missed. Ties: trec_eval's order. Unjudged documents:
    not relevant. Short lists: nothing special. Source: RAGAS's rank-aware context precision, on document ids.

    >>> from harness.measures import value
    >>> value("ContextPrecision", {"a": 1, "b": 1}, ["a"]), value("ContextPrecision", {"a": 1, "b": 1}, ["a", "x", "b"])
    (1.0, 0.8333333333333333)
    """
    summed = batch.at(batch.precisions_so_far(measure.rel), measure.cutoff)
    return share(summed, batch.hits_within(measure.rel, measure.cutoff))


def share(part: Array, whole: Array) -> Floats:
    """Divide, with 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def binary_preference(batch: Batch, measure: Measure) -> Floats:
    """Bpref: how seldom judged non-relevant documents come before relevant ones.

    The sum over the retrieved relevant documents of 1 - min(n, R) / min(N, R), divided by R: n the judged
    non-relevant documents before it, N all of them, R the relevant ones; 0 where R = 0. Range 0 to 1. Ties:
    trec_eval's order. Unjudged documents: as if they were not there; so are negative grades. Short lists: what
    is missing adds nothing. Source: Buckley & Voorhees (2004), as trec_eval's bpref.

    >>> from harness.measures import value
    >>> value("Bpref", {"a": 1, "b": 1, "x": 0, "y": 0}, ["a", "unknown", "x", "b"])
    0.75
    """
    rel = measure.rel
    relevant = batch.relevant(rel)
    others = ((batch.judged >= 0) & (batch.judged < rel)).sum(axis=1)
    before = np.cumsum(
        (batch.grades >= 0) & (batch.grades < rel), axis=1, dtype=np.int32
    )
    rows, ranks = np.nonzero(batch.hits(rel))
    most = np.maximum(np.minimum(relevant, others), 1)
    kept = 1.0 - np.minimum(before[rows, ranks], relevant[rows]) / most[rows]
    return share(
        np.bincount(rows, kept, len(batch)), relevant
    )  # added up from the left


def rank_biased_precision(batch: Batch, measure: Measure) -> Floats:
    """RBP(p): (1 - p) times the sum of p^(rank - 1) over the hits: what a reader sees who goes on with probability p.

    Binary. Range 0 to 1, but short of 1 by p^depth for the best of lists. With residual=True, what the
    unjudged documents, and all that was not returned, could still add: their weights and p^depth; RBP and its
    residual never pass 1 together. Ties: trec_eval's order. Unjudged documents: not
    relevant, and in the residual, as are negative grades. Short lists: what is missing is in the residual. Source:
    Moffat & Zobel (2008).

    >>> from harness.measures import value
    >>> value("RBP(p=0.5)", {"a": 1}, ["a", "unknown"]), value("RBP(p=0.5, residual=True)", {"a": 1}, ["a", "unknown"])
    (0.5, 0.5)
    """
    p = float(measure.get("p") or 0.0)
    read = batch.returned(measure.cutoff)
    weights = np.where(
        batch.ranks <= read[:, None], (1.0 - p) * p ** (batch.ranks - 1.0), 0.0
    )
    if measure.get("residual"):
        return total(np.where(batch.grades < 0, weights, 0.0)) + p**read
    return total(np.where(batch.hits(measure.rel), weights, 0.0))


def judged_share(batch: Batch, measure: Measure) -> Floats:
    """Judged@k: the share of the first min(k, returned) documents that have a judgment; 0 where nothing came back.

    Range 0 to 1. It says how far the other measures can be trusted, not how good a ranking is. Ties: trec_eval's
    order. Unjudged documents: what is counted; any line of the qrels is a judgment, whatever its grade. Lists
    shorter than k: divided by their own length. Source: as ir_measures' Judged.

    >>> from harness.measures import value
    >>> value("Judged@3", {"a": 1, "b": 0}, ["a", "unknown"])
    0.5
    """
    known = np.cumsum(batch.grades != UNJUDGED, axis=1)
    return share(batch.at(known, measure.cutoff), batch.returned(measure.cutoff))


def abstain(batch: Batch, measure: Measure) -> Floats:
    """Abstain: 1 where nothing was returned, 0 where something was.

    Range 0 or 1. Of queries that nothing answers; undefined for the others, as measures by labels are for these. Ties:
    of no effect. Unjudged documents: returned like any other. Lists shorter than k: there is no k. Source: our own; the
    complement is the false-positive rate of a retriever with a floor.

    >>> from harness.measures import value
    >>> value("Abstain", {}, []), value("Abstain", {}, ["a"])
    (1.0, 0.0)
    """
    empty: Floats = (batch.lengths == 0).astype(np.float64)
    return empty


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

    The gain is the grade, or 2^grade - 1 with dcg='exp-log2'. Range from 0, without an upper bound; not to be
    averaged over queries of unequal size. Ties: trec_eval's order. Unjudged documents: gain 0. Short lists:
    what is missing adds nothing. Source: Järvelin & Kekäläinen (2002).

    >>> from harness.measures import value
    >>> value("CG@2", {"a": 3, "b": 2, "c": 1}, ["b", "c", "a"])
    3.0
    """
    return batch.at(np.cumsum(_gain(measure)(batch.grades), axis=1), measure.cutoff)


def discounted_gain(batch: Batch, measure: Measure) -> Floats:
    """DCG@k, discounted cumulated gain: the sum of gain / log2(rank + 1) within k.

    The gain is the grade, or 2^grade - 1 with dcg='exp-log2'. Range from 0, without an upper bound. Ties:
    trec_eval's order. Unjudged documents: gain 0. Short lists: what is missing adds nothing. Source: Järvelin &
    Kekäläinen (2002), with the discount of Burges et al. (2005), which spares no rank but the first.

    >>> from harness.measures import value
    >>> value("DCG@2", {"a": 3, "b": 2, "c": 1}, ["b", "c", "a"])
    2.6309297535714578
    """
    return batch.at(batch.dcg(_gain(measure)), measure.cutoff)


def normalised_gain(batch: Batch, measure: Measure) -> Floats:
    """nDCG@k: DCG@k divided by the DCG@k of an ideal ranking; 0 where that is 0.

    The ideal ranks all judged documents by gain (as trec_eval's ndcg and ndcg_cut; without a cutoff all of
    them, though the run ends at its depth). ideal='retrieved' ranks only the first k hits, ideal='retrieved-all'
    the whole list that came back: both measure the order of what was found and not whether it was found, so
    that one relevant document at rank 1 scores 1 however much was missed. Range 0 to 1. Ties: trec_eval's
    order. Unjudged documents: gain 0. Short lists: with the judged ideal, what is missing costs. Source:
    Järvelin & Kekäläinen (2002); dcg='exp-log2': Burges et al. (2005).

    >>> from harness.measures import value
    >>> value("nDCG@2", {"a": 2, "b": 1}, ["b", "x", "a"])
    0.38009376671593426
    >>> value("nDCG(ideal='retrieved')@2", {"a": 2, "b": 1}, ["b", "x", "a"])
    1.0
    """
    gain, k = _gain(measure), measure.cutoff
    match measure.get("ideal"):
        case None:
            ideal = batch.at(batch.ideal_dcg(gain), k)
        case "retrieved":
            ideal = _best_order(gain(batch.grades[:, :k]))[:, -1]
        case _:
            ideal = batch.at(_best_order(gain(batch.grades)), k)
    return share(batch.at(batch.dcg(gain), k), ideal)


def expected_reciprocal_rank(batch: Batch, measure: Measure) -> Floats:
    """ERR@k: the expected 1 / rank at which a reader stops who reads from the top.

    At a document of grade g the reader stops with probability (2^g - 1) / 2^G, G the largest grade of the whole
    qrels (it is printed beside the values; another G is another measure). Range 0 to 1, but never 1, not even
    for the ideal ranking. Ties: trec_eval's order. Unjudged documents: the user never stops there, nor at
    negative grades.
    Short lists: what is missing adds nothing. Source: Chapelle et al. (2009).

    >>> from harness.measures import value
    >>> value("ERR@2", {"a": 1, "b": 2}, ["a", "b"])
    0.53125
    """
    up = np.maximum(batch.grades[:, : measure.cutoff], 0)
    stops = np.ldexp(1.0, up - batch.largest) - np.ldexp(1.0, -batch.largest)
    still_reading = np.cumprod(1.0 - stops, axis=1)
    still_reading = np.concatenate(
        [np.ones((len(batch), 1)), still_reading[:, :-1]], axis=1
    )
    return total(still_reading * stops / batch.ranks[: up.shape[1]])


def _best_order(gains: Floats) -> Floats:
    return discounted(np.sort(gains, axis=1)[:, ::-1])


def _gain(measure: Measure) -> Callable[[Ints], Floats]:
    return exponential_gain if measure.get("dcg") == "exp-log2" else linear_gain
