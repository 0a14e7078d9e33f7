"""What unjudged documents could still do to the means of the primary measure, and to its differences.

Bounds are certain and need no test. For measures that are sums of gains times a weight of the rank (P, DCG, RBP, and
nDCG for the ideal of the documents judged so far, which further judgments may change; no query counts more than 1 then,
in a mean and in a difference alike) and for RR, Success and recall
they are reached by some outcome of the judging; for differences of AP they may be wider than need be. Other measures
have none here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.dataset import Labels
from harness.dataset.judgments import GRADES
from harness.evaluation.grading import grades_under, people_judged
from harness.evaluation.readers import primary_of, relevance_of, scored_grades
from harness.measures import Measure, parse, score
from harness.records import Results
from harness.stats.unjudged_bounds import (
    Bounds,
    TwoLists,
    average_precision_bounds,
    capped_bounds,
    difference_bounds,
    first_hit_bounds,
    log_discounts,
    rank_weights,
    recall_bounds,
)
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


class TopK(NamedTuple):
    """The first hits of one retriever for n queries, each array (n, cutoff)."""

    documents: npt.NDArray[np.int64]
    """A number for each document, ENDED behind the last."""
    known: npt.NDArray[np.bool_]
    """Whether it is judged."""
    gains: Floats
    """Of those that are; else 0."""

    def rows(self, part: slice) -> TopK:
        """Some of the queries."""
        return TopK(self.documents[part], self.known[part], self.gains[part])


def top_k_of(
    lists: Sequence[Sequence[str]], known: Sequence[Mapping[str, int]], linear: Linear, numbers: dict[str, int]
) -> TopK:
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
    return TopK(documents, judged, gains)


def mean_bounds(a: TopK, b: TopK, linear: Linear, scales: Floats) -> Bounds:
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


def _edges(a: TopK, b: TopK, linear: Linear) -> Floats:
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


def _edges_alone(heads: TopK, linear: Linear) -> Floats:
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


GradedQueries = Mapping[str, Mapping[str, int]]


class MeanBounds(NamedTuple):
    """The mean of one retriever, and what unjudged documents could make of it."""

    retriever: str
    judged: float
    """The share of the documents above the cutoff that are judged."""
    bounds: Bounds | None
    """None where the measure has none."""


class DifferenceBounds(NamedTuple):
    """The difference of two retrievers, and what unjudged documents could make of it."""

    a: str
    b: str
    bounds: Bounds


class UnjudgedBounds(NamedTuple):
    """What is still open."""

    measure: str
    means: tuple[MeanBounds, ...]
    pairs: tuple[DifferenceBounds, ...]
    chosen: int
    """Documents that were judged because they could change a result: they are in the bounds, and in no score."""
    queries: int


class OpenJudgment(NamedTuple):
    """One unjudged document, and what its judgment could change in a mean difference."""

    query_id: str
    document_id: str
    most: float


class QueryRankings(NamedTuple):
    """Two rankings of one query, and what is known of it."""

    a: Sequence[str]
    b: Sequence[str]
    """Empty for the value of one ranking."""
    known: Mapping[str, int]
    """Every grade, those of documents chosen for their effect, too."""
    grades: Mapping[str, int]
    """The grades that scores rest on: the ideal of nDCG."""


class UnjudgedPairs(NamedTuple):
    """All that is open between two retrievers."""

    measure: str
    cutoff: int
    bounds: Bounds
    changes: tuple[OpenJudgment, ...]
    """Every unjudged document whose weight is not 0."""


def open_pairs(results: Results, a: str, b: str) -> UnjudgedPairs | None:
    """Return what is open between two retrievers; None where the measure has no bounds.

    Before anything is judged there is no ideal, and nDCG is taken as DCG over all queries.
    """
    measure = parse(primary_of(results.manifest.resolved))
    cutoff = measure.cutoff or results.manifest.resolved.depth
    grades, known = _known(results)
    if not grades:
        measure = replace(measure, name="DCG") if measure.name == "nDCG" else measure
        relevance = relevance_of(results)
        known = {query: grades_under(question.labels.chosen, relevance) for query, question in results.queries.items()}
        grades = known
    largest = _largest(results, known) if results.scored else GRADES[-1]
    bounds = bounds_of(measure, cutoff, largest, results.manifest.dataset.documents)
    moved = bounds_of(measure, cutoff, largest, results.manifest.dataset.documents, capped=False)
    if bounds is None or moved is None:
        return None
    first, second = ({q: r.doc_ids[:cutoff] for q, r in results.answers(name)} for name in (a, b))
    rows = {q: QueryRankings(first.get(q, ()), second.get(q, ()), known[q], grades[q]) for q in grades}
    changes = tuple(
        OpenJudgment(query, document, change / len(rows))
        for query, row in rows.items()
        for document in dict.fromkeys([*row.a, *row.b])
        if document not in row.known and (change := _change(moved, row, document, largest)) > 0
    )
    return UnjudgedPairs(str(measure), cutoff, _mean([bounds(row) for row in rows.values()]), changes)


def unjudged_bounds_of(results: Results, lists: Mapping[str, Mapping[str, Sequence[str]]]) -> UnjudgedBounds:
    """Return the share that is judged and the bounds of every retriever's mean, and of every difference.

    Args:
        results: the labels, and which pairs were compared.
        lists: retriever -> query id -> document ids, best first, at least as deep as the primary measure looks.
    """
    primary = primary_of(results.manifest.resolved)
    measure = parse(primary)
    cutoff = measure.cutoff or results.manifest.resolved.depth
    grades, known = _known(results)
    lists = {name: {q: of.get(q, ())[:cutoff] for q in grades} for name, of in lists.items()}
    between = _between(results, measure, (grades, known), lists)
    judged_at, judged = parse(f"Judged@{cutoff}"), {q: known[q] for q in grades}
    means = tuple(
        MeanBounds(name, score([judged_at], judged, of).means()[judged_at], between(name, ""))
        for name, of in lists.items()
    )
    rows = [row for row in results.comparisons.to_dict("records") if row["measure"] == primary]
    pairs = tuple(
        DifferenceBounds(row["a"], row["b"], open_)
        for row in rows
        if (open_ := between(row["a"], row["b"])) is not None
    )
    chosen = sum(len(question.labels.chosen) for question in results.queries.values())
    return UnjudgedBounds(primary, means, pairs, chosen, len(grades))


def _between(
    results: Results,
    measure: Measure,
    judged: tuple[GradedQueries, GradedQueries],
    lists: Mapping[str, Mapping[str, Sequence[str]]],
) -> Callable[[str, str], Bounds | None]:
    """What gives the bounds of the mean difference of two retrievers; the second may be "", whose lists are empty."""
    grades, known = judged
    cutoff = measure.cutoff or results.manifest.resolved.depth
    largest = _largest(results, known)
    empty: Mapping[str, Sequence[str]] = dict.fromkeys(grades, ())
    if (linear := linear_form(measure, cutoff, largest)) is not None:
        numbers: dict[str, int] = {}
        scales = np.array([scale_of(measure, linear, given, cutoff) for given in grades.values()])
        heads = {
            name: top_k_of(list(of.values()), [known[q] for q in of], linear, numbers)
            for name, of in {"": empty, **lists}.items()
        }
        return lambda a, b: mean_bounds(heads[a], heads[b], linear, scales)
    bounds = bounds_of(measure, cutoff, largest, results.manifest.dataset.documents)

    def one_by_one(a: str, b: str) -> Bounds | None:
        first, second = lists[a], lists.get(b, empty)
        asked = (QueryRankings(first[q], second[q], known[q], grades[q]) for q in grades)
        return None if bounds is None else _mean([bounds(query) for query in asked])

    return one_by_one


def bounds_of(
    measure: Measure, cutoff: int, largest: int, documents: int, *, capped: bool = True
) -> Callable[[QueryRankings], Bounds] | None:
    """What gives the bounds of one query; None for a measure that has none.

    Args:
        measure: the measure.
        cutoff: how far it looks.
        largest: the highest grade that an unjudged document may turn out to have.
        documents: of the corpus, which count where a measure is divided by the number of relevant ones.
        capped: whether a query counts at most what the measure can be; else sums count as they are, so that each
            document's judgment moves a bound, also where others alone would take the query to the top.
    """
    linear = linear_form(measure, cutoff, largest)
    if linear is not None:
        counted = linear if capped else linear._replace(largest=math.inf)
        return lambda query: _linear_bounds(measure, counted, query, cutoff)
    if measure.get("groups") or measure.name not in ("RR", "Success", "R", "AP"):
        return None

    def of_ranks(query: QueryRankings) -> Bounds:
        relevant = {document: grade >= measure.rel for document, grade in query.known.items()}
        lists = TwoLists(query.a, query.b, relevant, documents)
        if measure.name == "R":
            return recall_bounds(lists)
        if measure.name == "AP":
            return average_precision_bounds(lists)
        ranks = range(1, cutoff + 1)
        return first_hit_bounds(lists, [1.0 / rank if measure.name == "RR" else 1.0 for rank in ranks])

    return of_ranks


def _linear_bounds(measure: Measure, linear: Linear, query: QueryRankings, cutoff: int) -> Bounds:
    scale = scale_of(measure, linear, query.grades, cutoff)

    def edges(a: Sequence[str], b: Sequence[str]) -> Floats:
        weights = rank_weights(a, b, linear.discounts)
        gains = {document: linear.gain(query.known[document]) for document in weights if document in query.known}
        return np.array(difference_bounds(weights, gains, linear.gains[-1]))[:, None] * scale

    both, first, second = edges(query.a, query.b), edges(query.a, ()), edges(query.b, ())
    return Bounds(*capped_bounds(both, first, second, linear.largest)[:, 0].tolist())


def _change(bounds: Callable[[QueryRankings], Bounds], query: QueryRankings, document: str, largest: int) -> float:
    """How far the judgment of one document can move either bound: between its best and its worst."""
    best, worst = (bounds(query._replace(known={**query.known, document: grade})) for grade in (largest, 0))
    return max(abs(best.low - worst.low), abs(best.high - worst.high))


def _mean(bounds: Sequence[Bounds]) -> Bounds:
    n = len(bounds) or 1
    return Bounds(math.fsum(one.low for one in bounds) / n, math.fsum(one.high for one in bounds) / n)


def _known(results: Results) -> tuple[GradedQueries, GradedQueries]:
    """The grades that scores rest on, and the same with those of documents chosen for their effect."""
    relevance = relevance_of(results)
    grades = scored_grades(results)
    chosen = {query: grades_under(results.queries[query].labels.chosen, relevance) for query in grades}
    return grades, {query: {**chosen[query], **grades[query]} for query in grades}


def _largest(results: Results, known: GradedQueries) -> int:
    labels: dict[str, Labels] = {query: question.labels for query, question in results.queries.items()}
    largest = max((grade for judged in known.values() for grade in judged.values()), default=1)
    by_scale = any(given.source for given in labels.values()) and people_judged(labels)
    binary = relevance_of(results).grades == "binary"
    return 1 if binary else max(largest, GRADES[-1]) if by_scale else largest
