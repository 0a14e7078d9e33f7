"""Measures that are sums over the ranks, and the bounds of their means, for all queries of two retrievers at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.measures import Measure
from harness.stats.bounds import Bounds, capped_bounds, log_discounts
from retrievers.types import Floats

CELLS = 1 << 22
"""Pairs of ranks that are compared at once; it bounds the memory and moves no result."""
ENDED = -1
"""Stands for a document where a list has ended."""


class Linear(NamedTuple):
    """A measure as a sum over the ranks: of discount times gain, times the scale of the query."""

    discounts: Floats
    gains: tuple[float, ...]
    """The gain of each grade, from 0 up."""
    largest: float = 1.0
    """What one query can score at most."""

    def gain(self, grade: int) -> float:
        """The gain of a grade; 0 for one below 0."""
        return self.gains[max(0, min(grade, len(self.gains) - 1))]


class Heads(NamedTuple):
    """The first hits of one retriever for n queries, each array (n, cutoff)."""

    documents: npt.NDArray[np.int64]
    """A number for each document, ENDED behind the last."""
    known: npt.NDArray[np.bool_]
    """Whether it is judged."""
    gains: Floats
    """Of those that are; else 0."""

    def rows(self, part: slice) -> Heads:
        """Some of the queries."""
        return Heads(self.documents[part], self.known[part], self.gains[part])


def heads_of(
    lists: Sequence[Sequence[str]], known: Sequence[Mapping[str, int]], linear: Linear, numbers: dict[str, int]
) -> Heads:
    """Return the lists of one retriever as arrays.

    Args:
        lists: the documents of each query, best first, no more than there are discounts.
        known: the grades of each query.
        linear: the measure.
        numbers: document -> its number; those that are new to it are added.
    """
    there = np.arange(len(linear.discounts)) < np.array([len(one) for one in lists], dtype=np.int64)[:, None]
    documents, judged, gains = np.full(there.shape, ENDED), np.zeros(there.shape, np.bool_), np.zeros(there.shape)
    documents[there] = [numbers.setdefault(document, len(numbers)) for one in lists for document in one]
    grades = [of.get(document) for one, of in zip(lists, known, strict=True) for document in one]
    judged[there] = [grade is not None for grade in grades]
    gains[there] = [0.0 if grade is None else linear.gain(grade) for grade in grades]
    return Heads(documents, judged, gains)


def mean_bounds(a: Heads, b: Heads, linear: Linear, scales: Floats) -> Bounds:
    """Return the bounds of the mean of a - b: the numbers that `difference_bounds` gives for each query, averaged.

    Args:
        a: the first retriever.
        b: the second; one whose lists are all empty leaves the value of the first.
        linear: the measure.
        scales: (n,) what each query's sum is multiplied with.
    """
    n, cutoff = a.documents.shape
    rows = max(1, CELLS // max(1, cutoff) ** 2)
    parts = [
        _edges(a.rows(part), b.rows(part), linear)
        for part in (slice(start, start + rows) for start in range(0, n, rows))
    ]
    edges = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0))
    of_a, of_b = (_edges_alone(one, linear) * scales for one in (a, b))
    low, high = capped_bounds(edges * scales, of_a, of_b, linear.largest).tolist()
    return Bounds(math.fsum(low) / max(n, 1), math.fsum(high) / max(n, 1))


def _edges(a: Heads, b: Heads, linear: Linear) -> Floats:
    """Return each query's sum at its least and at its greatest, before the scale: (2, n)."""
    in_a, in_b = a.documents != ENDED, b.documents != ENDED
    same = (a.documents[:, :, None] == b.documents[:, None, :]) & in_a[:, :, None]
    # At most one rank of b has the document of a rank of a: the product adds nothing but zeros to its discount.
    of_a = np.where(in_a, linear.discounts, 0.0) - same @ linear.discounts
    of_b = np.where(in_b & ~same.any(axis=1), -linear.discounts, 0.0)
    weights = np.concatenate([of_a, of_b], axis=1)
    known = np.concatenate([a.known, b.known], axis=1)
    judged = _sums(np.where(known, weights * np.concatenate([a.gains, b.gains], axis=1), 0.0))
    open_ = np.where(known, 0.0, weights * linear.gains[-1])
    return np.stack([judged + _sums(np.minimum(open_, 0.0)), judged + _sums(np.maximum(open_, 0.0))])


def _edges_alone(heads: Heads, linear: Linear) -> Floats:
    """Return the sum of each query of one retriever at its least and at its greatest, before the scale: (2, n)."""
    there = heads.documents != ENDED
    judged = _sums(np.where(heads.known, linear.discounts * heads.gains, 0.0))
    open_ = np.where(there & ~heads.known, linear.discounts * linear.gains[-1], 0.0)
    return np.stack([judged, judged + _sums(open_)])


def _sums(rows: Floats) -> Floats:
    """Each row's sum, rounded once: what is certain must not hang on the order of the ranks."""
    return np.array([math.fsum(row) for row in rows.tolist()])


def linear_form(measure: Measure, cutoff: int, largest: int) -> Linear | None:
    """The measure as a sum over the ranks; None where it is none, or asks for groups.

    >>> from harness.measures import parse
    >>> linear_form(parse("RR"), 10, 3) is None, linear_form(parse("P@2"), 2, 1).discounts.tolist()
    (True, [0.5, 0.5])
    """
    grades = range(max(largest, 1) + 1)
    if measure.get("groups") or measure.get("ideal") or measure.get("residual"):
        return None
    if measure.name in ("nDCG", "DCG"):
        exponential = measure.get("dcg") == "exp-log2"
        gains = tuple(2.0**g - 1 if exponential else float(g) for g in grades)
        return Linear(log_discounts(cutoff), gains, math.inf if measure.name == "DCG" else 1.0)
    binary = tuple(float(g >= measure.rel) for g in grades)
    if measure.name == "P":
        return Linear(np.full(cutoff, 1 / cutoff), binary)
    if measure.name == "RBP":
        p = float(measure.get("p") or 0.0)
        return Linear(((1 - p) * p ** np.arange(cutoff)).astype(np.float64), binary)
    return None


def scale_of(measure: Measure, linear: Linear, judged: Mapping[str, int], cutoff: int) -> float:
    """What the sum of one query is multiplied with: 1 / the ideal sum for nDCG, else 1."""
    if measure.name != "nDCG":
        return 1.0
    gains = sorted((linear.gain(grade) for grade in judged.values()), reverse=True)
    best = gains[:cutoff] if measure.cutoff else gains
    ideal = math.fsum(gain / math.log2(rank + 2) for rank, gain in enumerate(best))
    return 1 / ideal if ideal else 0.0
