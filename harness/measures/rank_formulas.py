"""Formulas that depend on whether a document is relevant, or judged.

Each takes a batch of queries and returns a value for each. A document is relevant if
its grade is at least `measure.rel`; a negative grade is a judgment for Judged alone.
Bpref, RBP with its residual, and Judged depend on missing judgments. Ties were broken
before, by trec_eval's order (score, then document id, both descending).
"""

import numpy as np

from harness.measures.batch import UNJUDGED_GRADE, Array, Batch, Floats, row_sums
from harness.measures.measure import Measure


def precision(batch: Batch, measure: Measure) -> Floats:
    """P@k, precision: hits / k.

    Range 0 to 1; 1 only where k relevant documents exist. Ties: trec_eval's order.
    Unjudged documents: not relevant. Lists shorter than k: still divided by k. Source:
    van Rijsbergen (1979), as trec_eval's P.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("P@4", {"a": 1, "b": 2}, ["a", "x", "b"])
    0.5
    """
    assert measure.cutoff is not None
    return batch.hits_within(measure.rel, measure.cutoff) / measure.cutoff


def recall(batch: Batch, measure: Measure) -> Floats:
    """R@k, recall: hits / R, with R the judged relevant documents; 0 if R is 0.

    SetR without a cutoff. Range 0 to 1; below 1 wherever k < R. Ties: trec_eval's
    order. Unjudged documents: not relevant. Short lists: nothing special. Source: van
    Rijsbergen (1979), as trec_eval's recall and set_recall. On the ids of the contexts
    handed to a model it is RAGAS's IDContextRecall.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("R@2", {"a": 1, "b": 2, "c": 1, "d": 1}, ["a", "x", "b"])
    0.25
    """
    return share_of(
        batch.hits_within(measure.rel, measure.cutoff),
        batch.relevant_counts(measure.rel),
    )


def capped_recall(batch: Batch, measure: Measure) -> Floats:
    """Rcap@k, recall capped at the cutoff: hits / min(k, R), or 0 if R = 0.

    Range 0 to 1; 1 where the first k hold as many relevant documents as they can. Ties:
    trec_eval's order. Unjudged documents: not relevant. Lists shorter than k: no
    allowance. Source: Thakur et al. (2021), BEIR.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("Rcap@2", {"a": 1, "b": 2, "c": 1, "d": 1}, ["a", "x", "b"])
    0.5
    """
    assert measure.cutoff is not None
    return share_of(
        batch.hits_within(measure.rel, measure.cutoff),
        np.minimum(batch.relevant_counts(measure.rel), measure.cutoff),
    )


def f1(batch: Batch, measure: Measure) -> Floats:
    """F1@k, the harmonic mean of this query's P@k and R@k: 2 hits / (k + R).

    Never a mean of means. Range 0 to 1; 1 only where k = R. Ties: trec_eval's order.
    Unjudged documents: not relevant. Lists shorter than k: precision is still hits / k.
    Source: van Rijsbergen (1979).

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("F1@2", {"a": 1, "b": 2}, ["a", "x", "b"])
    0.5
    """
    assert measure.cutoff is not None
    hits = batch.hits_within(measure.rel, measure.cutoff)
    relevant = batch.relevant_counts(measure.rel)
    return 2 * hits / (measure.cutoff + relevant)


def success(batch: Batch, measure: Measure) -> Floats:
    """Success@k, the hit rate: 1 if a relevant document is within k, else 0.

    Range 0 or 1. Ties: trec_eval's order. Unjudged documents: not relevant. Short
    lists: nothing special. Source: trec_eval's success; "hit rate" in the RAG
    literature.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("Success@2", {"b": 2}, ["a", "x", "b"])
    0.0
    """
    return (batch.hits_within(measure.rel, measure.cutoff) > 0).astype(np.float64)


def reciprocal_rank(batch: Batch, measure: Measure) -> Floats:
    """RR@k, the reciprocal rank: 1 / rank of the first relevant document within k.

    Else 0. Its mean is MRR. Range 0 to 1; its values are 0, 1, 1/2, 1/3 and so on, so
    that differences are ordinal at best (Fuhr 2017). Ties: trec_eval's order. Unjudged
    documents: not relevant. Short lists: nothing special. Source: Voorhees (1999), as
    trec_eval's recip_rank.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("RR", {"x": 1, "b": 2}, ["a", "x", "b"])
    0.5
    """
    first_rank = batch.hits(measure.rel).argmax(axis=1) + 1
    has_hit = batch.hits_within(measure.rel, measure.cutoff) > 0
    return np.where(has_hit, 1.0 / first_rank, 0.0)


def average_precision(batch: Batch, measure: Measure) -> Floats:
    """AP@k, average precision: the sum of P@i over the hits i within k, divided by R.

    Its mean is MAP. Range 0 to 1; divided by all judged relevant documents, not by the
    hits, by k or by min(k, R), so that what was not found costs. Ties: trec_eval's
    order. Unjudged documents: not relevant. Short lists: what is missing adds nothing.
    Source: Buckley & Voorhees (2000), as trec_eval's map and map_cut.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("AP@3", {"a": 1, "b": 1}, ["x", "a", "b"])
    0.5833333333333333
    """
    return share_of(
        batch.value_at(batch.precisions_so_far(measure.rel), measure.cutoff),
        batch.relevant_counts(measure.rel),
    )


def precision_at_r(batch: Batch, measure: Measure) -> Floats:
    """Rprec, R-precision: relevant documents among the first R / R; 0 if R = 0.

    Range 0 to 1; precision and recall meet here. Ties: trec_eval's order. Unjudged
    documents: not relevant. Lists shorter than R: still divided by R. Source: Buckley &
    Voorhees (2005), as trec_eval's Rprec.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("Rprec", {"a": 1, "b": 1}, ["x", "a", "b"])
    0.5
    """
    relevant = batch.relevant_counts(measure.rel)
    hits_so_far = batch.hits_so_far(measure.rel)
    # The array ends at the longest list: beyond, no list has further hits.
    last_index = np.clip(relevant, 1, hits_so_far.shape[1]) - 1
    hits = hits_so_far[np.arange(len(batch)), last_index]
    return share_of(np.where(relevant > 0, hits, 0), relevant)


def set_precision(batch: Batch, measure: Measure) -> Floats:
    """SetP, the precision of all returned documents: hits / returned; 0 if none was.

    Range 0 to 1. Ties: they do not matter, unless a cutoff splits them. Unjudged
    documents: not relevant. Short lists: divided by their own length, which is what
    sets SetP@k apart from P@k. Source: trec_eval's set_P. On the ids of the contexts
    handed to a model it is RAGAS's IDContextPrecision.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("SetP", {"a": 1, "b": 1}, ["x", "a"])
    0.5
    """
    return share_of(
        batch.hits_within(measure.rel, measure.cutoff),
        batch.returned_counts(measure.cutoff),
    )


def set_f1(batch: Batch, measure: Measure) -> Floats:
    """SetF, the harmonic mean of SetP and SetR: 2 hits / (returned + R).

    Range 0 to 1. Ties: they do not matter, unless a cutoff splits them. Unjudged
    documents: not relevant. Short lists: as in SetP. Source: van Rijsbergen (1979), as
    trec_eval's set_F.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("SetF", {"a": 1, "b": 1, "c": 1}, ["x", "a"])
    0.4
    """
    hits = batch.hits_within(measure.rel, measure.cutoff)
    return share_of(
        2 * hits,
        batch.returned_counts(measure.cutoff) + batch.relevant_counts(measure.rel),
    )


def set_average_precision(batch: Batch, measure: Measure) -> Floats:
    """SetAP, average precision without an order: SetP times SetR.

    Hits squared / (returned * R), in one division. Range 0 to 1. Ties: they do not
    matter, unless a cutoff splits them. Unjudged documents: not relevant. Short lists:
    as in SetP. Source: trec_eval's set_map.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("SetAP", {"a": 1, "b": 1}, ["x", "a"])
    0.25
    """
    hits = batch.hits_within(measure.rel, measure.cutoff)
    return share_of(
        hits * hits,
        batch.returned_counts(measure.cutoff) * batch.relevant_counts(measure.rel),
    )


def context_precision(batch: Batch, measure: Measure) -> Floats:
    """ContextPrecision@k: the sum of P@i over the hits i within k, divided by the hits.

    0 without hits. Range 0 to 1. It divides by the hits, not by all relevant documents:
    one more hit at a late rank lowers it, and a list with one hit at rank 1 scores 1
    however much it missed. Ties: trec_eval's order. Unjudged documents: not relevant.
    Short lists: nothing special. Source: RAGAS's rank-aware context precision, on
    document ids.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("ContextPrecision", {"a": 1, "b": 1}, ["a"])
    1.0
    >>> measure_ranking("ContextPrecision", {"a": 1, "b": 1}, ["a", "x", "b"])
    0.8333333333333333
    """
    summed = batch.value_at(batch.precisions_so_far(measure.rel), measure.cutoff)
    return share_of(summed, batch.hits_within(measure.rel, measure.cutoff))


def share_of(part: Array, total: Array) -> Floats:
    """Divide; the result is 0 if the total is 0."""
    return np.divide(part, total, out=np.zeros(len(part)), where=total > 0)


def binary_preference(batch: Batch, measure: Measure) -> Floats:
    """Bpref: how seldom judged non-relevant documents come before relevant ones.

    The sum over the retrieved relevant documents of 1 - min(n, R) / min(N, R), divided
    by R: n the judged non-relevant documents before it, N all of them, R the relevant
    ones; 0 where R = 0, terms of 1 where N = 0. Range 0 to 1. Ties: trec_eval's order.
    Unjudged documents: as if they were not there; so are negative grades. Short lists:
    what is missing adds nothing. Source: Buckley & Voorhees (2004), as trec_eval's
    bpref.

    >>> from harness.measures import measure_ranking
    >>> judged = {"a": 1, "b": 1, "x": 0, "y": 0}
    >>> measure_ranking("Bpref", judged, ["a", "unknown", "x", "b"])
    0.75
    """
    rel = measure.rel
    relevant = batch.relevant_counts(rel)
    irrelevant = ((batch.judged >= 0) & (batch.judged < rel)).sum(axis=1)
    is_irrelevant = (batch.grades >= 0) & (batch.grades < rel)
    irrelevant_so_far = np.cumsum(is_irrelevant, axis=1, dtype=np.int32)
    rows, ranks = np.nonzero(batch.hits(rel))
    limits = np.maximum(np.minimum(relevant, irrelevant), 1)
    before = np.minimum(irrelevant_so_far[rows, ranks], relevant[rows])
    preferences = 1.0 - before / limits[rows]
    # bincount adds from the left, so that padding changes no sum.
    return share_of(np.bincount(rows, preferences, len(batch)), relevant)


def rank_biased_precision(batch: Batch, measure: Measure) -> Floats:
    """RBP(p): (1 - p) times the sum of p^(rank - 1) over the hits.

    The precision for a reader who goes on with probability p. Binary. Range 0 to 1, but
    short of 1 by p^depth for the best of lists. With residual=True, what the unjudged
    documents, and all that was not returned, could still add: their weights and
    p^depth; RBP and its residual never pass 1 together. Ties: trec_eval's order.
    Unjudged documents: not relevant, and in the residual, as are negative grades. Short
    lists: what is missing is in the residual. Source: Moffat & Zobel (2008).

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("RBP(p=0.5)", {"a": 1}, ["a", "unknown"])
    0.5
    >>> measure_ranking("RBP(p=0.5, residual=True)", {"a": 1}, ["a", "unknown"])
    0.5
    """
    p = float(measure.get("p") or 0.0)  # `parse_measure` always sets it
    returned = batch.returned_counts(measure.cutoff)
    is_returned = batch.ranks <= returned[:, None]
    weights = np.where(is_returned, (1.0 - p) * p ** (batch.ranks - 1.0), 0.0)
    if measure.get("residual"):
        return row_sums(np.where(batch.grades < 0, weights, 0.0)) + p**returned
    return row_sums(np.where(batch.hits(measure.rel), weights, 0.0))


def judged_share(batch: Batch, measure: Measure) -> Floats:
    """Judged@k: the share of the first min(k, returned) documents with a judgment.

    0 if nothing was returned. Range 0 to 1. It says how far the other measures can be
    trusted, not how good a ranking is. Ties: trec_eval's order. Unjudged documents:
    what is counted; any line of the qrels is a judgment, whatever its grade. Lists
    shorter than k: divided by their own length. Source: as ir_measures' Judged.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("Judged@3", {"a": 1, "b": 0}, ["a", "unknown"])
    0.5
    """
    judged_so_far = np.cumsum(batch.grades != UNJUDGED_GRADE, axis=1)
    judged = batch.value_at(judged_so_far, measure.cutoff)
    return share_of(judged, batch.returned_counts(measure.cutoff))


def abstain(batch: Batch, measure: Measure) -> Floats:
    """Abstain: 1 where nothing was returned, 0 where something was.

    Range 0 or 1. For queries that no document answers: an experiment leaves it
    undefined for the others. Ties: of no effect. Unjudged documents: returned like any
    other. Lists shorter than k: there is no k. Source: our own; the complement is the
    false-positive rate of a retriever with a floor.

    >>> from harness.measures import measure_ranking
    >>> measure_ranking("Abstain", {}, [])
    1.0
    >>> measure_ranking("Abstain", {}, ["a"])
    0.0
    """
    empty: Floats = (batch.lengths == 0).astype(np.float64)
    return empty
