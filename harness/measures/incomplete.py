"""Measures that ask what the missing judgments do: Bpref, RBP with its residual, Judged."""

from __future__ import annotations

import numpy as np

from harness.measures.batch import UNJUDGED, Batch, Floats, total
from harness.measures.binary import share
from harness.measures.measure import Measure


def binary_preference(batch: Batch, measure: Measure) -> Floats:
    """Bpref: how seldom judged non-relevant documents stand before relevant ones.

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
    before = np.cumsum((batch.grades >= 0) & (batch.grades < rel), axis=1)
    most = np.minimum(relevant, others)[:, None]
    lost = np.minimum(before, relevant[:, None]) / np.maximum(most, 1)
    return share(total(np.where(batch.hits(rel), 1.0 - lost, 0.0)), relevant)


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
    weights = np.where(batch.ranks <= read[:, None], (1.0 - p) * p ** (batch.ranks - 1.0), 0.0)
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
