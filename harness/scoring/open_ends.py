"""What unjudged documents could still do to the means of the primary measure, and to its differences.

Bounds are certain and need no test; they hold for measures that are sums of gains times a weight of the rank: P, DCG,
nDCG (for the ideal of the documents judged so far, which further judgments may change) and RBP.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.dataset import Labels
from harness.dataset.judgments import GRADES
from harness.measures import Measure, parse, score
from harness.records import Results
from harness.scoring.grading import grades_under, people_judged
from harness.scoring.outcome import primary_of
from harness.scoring.saved import relevance_of, scored_grades
from harness.stats.bounds import Bounds, difference_bounds, log_discounts, rank_weights
from retrievers.types import Floats

GradedQueries = Mapping[str, Mapping[str, int]]


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


class OpenMean(NamedTuple):
    """The mean of one retriever, and what unjudged documents could make of it."""

    retriever: str
    judged: float
    """The share of the documents above the cutoff that are judged."""
    bounds: Bounds | None
    """None where the measure is no such sum."""


class OpenPair(NamedTuple):
    """The difference of two retrievers, and what unjudged documents could make of it."""

    a: str
    b: str
    bounds: Bounds


class OpenEnds(NamedTuple):
    """What is still open."""

    measure: str
    means: tuple[OpenMean, ...]
    pairs: tuple[OpenPair, ...]
    chosen: int
    """Documents that were judged because they could change a result: they are in the bounds, and in no score."""
    queries: int


class Open(NamedTuple):
    """One unjudged document, and what its judgment could change in a mean difference."""

    query_id: str
    document_id: str
    most: float


class OpenPairs(NamedTuple):
    """All that is open between two retrievers."""

    measure: str
    cutoff: int
    bounds: Bounds
    changes: tuple[Open, ...]
    """Every unjudged document whose weight is not 0."""


def open_pairs(results: Results, a: str, b: str) -> OpenPairs | None:
    """Return what is open between two retrievers; None where the measure is no sum over the ranks.

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
    linear = linear_form(measure, cutoff, _largest(results, known) if results.scored else GRADES[-1])
    if linear is None:
        return None
    first, second = ({q: r.doc_ids for q, r in results.answers(name)} for name in (a, b))
    rows = [(first.get(q, ()), second.get(q, ()), known[q], scale_of(measure, linear, grades[q], cutoff))
            for q in grades]  # fmt: skip
    changes = tuple(
        Open(query, document, abs(weight) * linear.gains[-1] * scale / len(rows))
        for query, (x, y, judged, scale) in zip(grades, rows, strict=True)
        for document, weight in rank_weights(x, y, linear.discounts).items()
        if document not in judged and weight * scale != 0
    )
    return OpenPairs(str(measure), cutoff, _mean(rows, linear), changes)


def open_ends(results: Results) -> OpenEnds:
    """Return the share that is judged and the bounds of every retriever's mean, and of every difference."""
    measure = parse(primary_of(results.manifest.resolved))
    cutoff = measure.cutoff or results.manifest.resolved.depth
    grades, known = _known(results)
    linear = linear_form(measure, cutoff, _largest(results, known))
    lists = {name: {q: r.doc_ids for q, r in results.answers(name) if q in grades} for name in results.retrievers}
    scales = {query: scale_of(measure, linear, grades[query], cutoff) for query in grades} if linear else {}
    judged_at = parse(f"Judged@{cutoff}")
    means = tuple(
        OpenMean(
            name,
            score([judged_at], {q: known[q] for q in grades}, lists[name]).means()[judged_at],
            linear and _mean([(lists[name].get(q, ()), (), known[q], scales[q]) for q in grades], linear),
        )
        for name in results.retrievers
    )
    primary = primary_of(results.manifest.resolved)
    rows = [row for row in results.comparisons.to_dict("records") if row["measure"] == primary]
    pairs = () if linear is None else tuple(
        OpenPair(row["a"], row["b"], _mean(
            [(lists[row["a"]].get(q, ()), lists[row["b"]].get(q, ()), known[q], scales[q]) for q in grades], linear))
        for row in rows
    )  # fmt: skip
    chosen = sum(len(question.labels.chosen) for question in results.queries.values())
    return OpenEnds(primary, means, pairs, chosen, len(grades))


def linear_form(measure: Measure, cutoff: int, largest: int) -> Linear | None:
    """The measure as a sum over the ranks; None where it is none, or asks for groups.

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


def _mean(rows: Sequence[tuple[Sequence[str], Sequence[str], Mapping[str, int], float]], linear: Linear) -> Bounds:
    """The mean over queries of the bounds of (first list, second list, grades, scale)."""
    bounds = [
        Bounds(*(min(max(edge * scale, -linear.largest), linear.largest) for edge in difference_bounds(
            rank_weights(a, b, linear.discounts),
            {document: linear.gain(grade) for document, grade in judged.items()}, linear.gains[-1])))
        for a, b, judged, scale in rows
    ]  # fmt: skip
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
