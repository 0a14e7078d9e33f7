"""Measures that only ask whether a document is relevant."""

from __future__ import annotations

import numpy as np

from harness.measures.batch import Array, Batch, Floats
from harness.measures.measure import Measure


def share(part: Array, whole: Array | int) -> Floats:
    """Divide; 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=np.asarray(whole) > 0)


def precision(batch: Batch, measure: Measure) -> Floats:
    """P@k: hits / k, also where fewer than k documents came back."""
    assert measure.cutoff is not None
    return batch.hits_within(measure.rel, measure.cutoff) / measure.cutoff


def recall(batch: Batch, measure: Measure) -> Floats:
    """R@k: hits / R."""
    return share(batch.hits_within(measure.rel, measure.cutoff), batch.relevant(measure.rel))


def f1(batch: Batch, measure: Measure) -> Floats:
    """F1@k: 2 hits / (k + R)."""
    assert measure.cutoff is not None
    return 2 * batch.hits_within(measure.rel, measure.cutoff) / (measure.cutoff + batch.relevant(measure.rel))


def success(batch: Batch, measure: Measure) -> Floats:
    """Success@k: 1 where a relevant document is within k."""
    return (batch.hits_within(measure.rel, measure.cutoff) > 0).astype(np.float64)


def reciprocal_rank(batch: Batch, measure: Measure) -> Floats:
    """RR@k: 1 / rank of the first relevant document within k, else 0."""
    first = batch.hits(measure.rel).argmax(axis=1) + 1
    return np.where(batch.hits_within(measure.rel, measure.cutoff) > 0, 1.0 / first, 0.0)


def average_precision(batch: Batch, measure: Measure) -> Floats:
    """AP@k: the sum over hits within k of P@rank, divided by R."""
    return share(batch.at(batch.precisions_so_far(measure.rel), measure.cutoff), batch.relevant(measure.rel))


def set_precision(batch: Batch, measure: Measure) -> Floats:
    """SetP: hits / returned, 0 where nothing came back."""
    return share(batch.hits_within(measure.rel, measure.cutoff), batch.returned(measure.cutoff))


def set_f1(batch: Batch, measure: Measure) -> Floats:
    """SetF: 2 hits / (returned + R)."""
    hits = batch.hits_within(measure.rel, measure.cutoff)
    return share(2 * hits, batch.returned(measure.cutoff) + batch.relevant(measure.rel))
