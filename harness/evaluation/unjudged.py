"""What unjudged documents could still do to the means of the primary measure, and to its differences.

Bounds are certain, whatever is judged next, and need no test. For measures that are sums of gains times a weight of the
rank (P, DCG, RBP) and for RR, Success and recall they are reached by some outcome of the judging; those of nDCG, whose
ideal grows with every relevant document that is found anywhere in the corpus, and of differences of AP may be wider
than need be. Other measures have none here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.dataset import Labels
from harness.dataset.judgments import GRADES
from harness.evaluation.grading import grades_under, people_judged
from harness.evaluation.question_units import weights_of
from harness.evaluation.readers import compared_pairs, primary_of, relevance_of, scored_grades
from harness.measures import Measure, parse, score
from harness.records import Results
from harness.stats.intervals import mean
from harness.stats.unjudged_bounds import (
    Bounds,
    Linear,
    TwoLists,
    average_precision_bounds,
    first_hit_bounds,
    ideals_of,
    log_discounts,
    mean_bounds,
    query_bounds,
    rank_weights,
    recall_bounds,
    top_k_of,
)
from retrievers.types import Floats


def linear_form(measure: Measure, cutoff: int, largest: int, documents: int) -> Linear | None:
    """The measure as a sum over the ranks; None where it is none, or asks for groups.

    Args:
        measure: the measure.
        cutoff: how far it looks.
        largest: the highest grade that an unjudged document may turn out to have.
        documents: of the corpus, all of which the ideal of nDCG without a cutoff ranks.

    >>> from harness.measures import parse
    >>> linear_form(parse("RR"), 10, 3, 100) is None, linear_form(parse("P@2"), 2, 1, 100).discounts.tolist()
    (True, [0.5, 0.5])
    """
    if measure.get("groups") or measure.get("ideal") or measure.get("residual"):
        return None
    highest = max(largest, 1)
    if measure.name in ("nDCG", "DCG"):
        gain = _exponential if measure.get("dcg") == "exp-log2" else float
        ideal = log_discounts(measure.cutoff or documents) if measure.name == "nDCG" else None
        return Linear(log_discounts(cutoff), gain, gain(highest), ideal)

    def relevant(grade: int) -> float:
        return float(grade >= measure.rel)

    if measure.name == "P":
        return Linear(np.full(cutoff, 1 / cutoff), relevant, relevant(highest))
    if measure.name == "RBP":
        p = float(measure.get("p") or 0.0)
        return Linear(((1 - p) * p ** np.arange(cutoff)).astype(np.float64), relevant, relevant(highest))
    return None


def _exponential(grade: int) -> float:
    return 2.0**grade - 1


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
    known = _known(results)
    if not known:
        measure = replace(measure, name="DCG") if measure.name == "nDCG" else measure
        relevance = relevance_of(results)
        known = {query: grades_under(question.labels.chosen, relevance) for query, question in results.queries.items()}
    largest = _largest(results, known) if results.scored else GRADES[-1]
    bounds = bounds_of(measure, cutoff, largest, results.manifest.dataset.documents)
    if bounds is None:
        return None
    first, second = ({q: r.doc_ids[:cutoff] for q, r in results.answers(name)} for name in (a, b))
    rows = {q: QueryRankings(first.get(q, ()), second.get(q, ()), judged) for q, judged in known.items()}
    linear = linear_form(measure, cutoff, largest, results.manifest.dataset.documents)
    weights = _weights(results, known)
    whole = math.fsum(weights)
    changes = tuple(
        OpenJudgment(query, document, change * weight / whole)
        for (query, row), weight in zip(rows.items(), weights.tolist(), strict=True)
        for document, change in (_changes(bounds, row, largest) if linear is None else _moves(linear, row))
        if change > 0
    )
    return UnjudgedPairs(str(measure), cutoff, _mean([bounds(row) for row in rows.values()], weights), changes)


def unjudged_bounds_of(
    results: Results, lists: Mapping[str, Mapping[str, Sequence[str]]], of: str = ""
) -> UnjudgedBounds:
    """Return the share that is judged and the bounds of every retriever's mean, and of every difference.

    Args:
        results: the labels, and which pairs were compared.
        lists: retriever -> query id -> document ids, best first, at least as deep as the primary measure looks.
        of: only the differences of this retriever; "" for all.
    """
    primary = primary_of(results.manifest.resolved)
    measure = parse(primary)
    cutoff = measure.cutoff or results.manifest.resolved.depth
    known = _known(results)
    lists = {name: {q: of.get(q, ())[:cutoff] for q in known} for name, of in lists.items()}
    between = _between(results, measure, known, lists)
    judged_at = parse(f"Judged@{cutoff}")
    means = tuple(
        MeanBounds(name, score([judged_at], known, answers).means()[judged_at], between(name, ""))
        for name, answers in lists.items()
    )
    pairs = tuple(
        DifferenceBounds(*pair, open_)
        for pair in compared_pairs(results)
        if (not of or of in pair) and (open_ := between(*pair)) is not None
    )
    chosen = sum(len(question.labels.chosen) for question in results.queries.values())
    return UnjudgedBounds(primary, means, pairs, chosen, len(known))


def _between(
    results: Results, measure: Measure, known: GradedQueries, lists: Mapping[str, Mapping[str, Sequence[str]]]
) -> Callable[[str, str], Bounds | None]:
    """What gives the bounds of the mean difference of two retrievers; the second may be "", whose lists are empty."""
    cutoff, documents = measure.cutoff or results.manifest.resolved.depth, results.manifest.dataset.documents
    largest = _largest(results, known)
    empty: Mapping[str, Sequence[str]] = dict.fromkeys(known, ())
    weights = _weights(results, known)
    if (linear := linear_form(measure, cutoff, largest, documents)) is not None:
        numbers: dict[str, int] = {}
        ideals = ideals_of(linear, list(known.values()), documents)
        heads = {
            name: top_k_of(list(of.values()), [known[q] for q in of], linear, numbers)
            for name, of in {"": empty, **lists}.items()
        }
        return lambda a, b: mean_bounds(heads[a], heads[b], linear, ideals, weights)
    bounds = bounds_of(measure, cutoff, largest, documents)

    def one_by_one(a: str, b: str) -> Bounds | None:
        first, second = lists[a], lists.get(b, empty)
        asked = (QueryRankings(first[q], second[q], known[q]) for q in known)
        return None if bounds is None else _mean([bounds(query) for query in asked], weights)

    return one_by_one


def bounds_of(measure: Measure, cutoff: int, largest: int, documents: int) -> Callable[[QueryRankings], Bounds] | None:
    """What gives the bounds of one query; None for a measure that has none.

    Args:
        measure: the measure.
        cutoff: how far it looks.
        largest: the highest grade that an unjudged document may turn out to have.
        documents: of the corpus, which count where a measure is divided by what is relevant.
    """
    linear = linear_form(measure, cutoff, largest, documents)
    if linear is not None:
        return lambda query: query_bounds(query.a, query.b, query.known, linear, documents)
    if measure.get("groups") or measure.name not in ("RR", "Success", "R", "AP"):
        return None
    possible = max(largest, 1) >= measure.rel

    def of_ranks(query: QueryRankings) -> Bounds:
        # What is unjudged cannot be relevant where no grade is: it is as good as judged.
        relevant = dict.fromkeys([] if possible else [*query.a, *query.b], False)
        relevant |= {document: grade >= measure.rel for document, grade in query.known.items()}
        lists = TwoLists(query.a, query.b, relevant, documents if possible else len(relevant))
        if measure.name == "R":
            return recall_bounds(lists)
        if measure.name == "AP":
            return average_precision_bounds(lists)
        ranks = range(1, cutoff + 1)
        return first_hit_bounds(lists, [1.0 / rank if measure.name == "RR" else 1.0 for rank in ranks])

    return of_ranks


def _moves(linear: Linear, query: QueryRankings) -> Iterator[tuple[str, float]]:
    """How far the judgment of each document can move a sum, over the ideal of what is judged so far."""
    least = float(ideals_of(linear, [query.known], len(query.known))[0, 0])
    for document, weight in rank_weights(query.a, query.b, linear.discounts).items():
        if document not in query.known:
            yield document, abs(weight) * linear.most / (least or 1.0)


def _changes(
    bounds: Callable[[QueryRankings], Bounds], query: QueryRankings, largest: int
) -> Iterator[tuple[str, float]]:
    """How far the judgment of each document can move either bound: between its best and its worst."""
    for document in dict.fromkeys([*query.a, *query.b]):
        if document not in query.known:
            best, worst = (bounds(query._replace(known={**query.known, document: grade})) for grade in (largest, 0))
            yield document, max(abs(best.low - worst.low), abs(best.high - worst.high))


def _mean(bounds: Sequence[Bounds], weights: Floats) -> Bounds:
    return Bounds(*(mean(row, weights) for row in np.array(bounds).T)) if bounds else Bounds(0.0, 0.0)


def _weights(results: Results, known: GradedQueries) -> Floats:
    """(n,): how much each query counts in the means that are bounded."""
    declared = weights_of([results.queries[q].query for q in known], results.manifest.resolved.statistics.get("weight"))
    return np.ones(len(known)) if declared is None else np.array(declared)


def _known(results: Results) -> GradedQueries:
    """The grades of the scored queries, with those of documents chosen for their effect, which make no score."""
    relevance = relevance_of(results)
    return {
        query: {**grades_under(results.queries[query].labels.chosen, relevance), **grades}
        for query, grades in scored_grades(results).items()
    }


def _largest(results: Results, known: GradedQueries) -> int:
    labels: dict[str, Labels] = {query: question.labels for query, question in results.queries.items()}
    largest = max((grade for judged in known.values() for grade in judged.values()), default=1)
    by_scale = any(given.source for given in labels.values()) and people_judged(labels)
    binary = relevance_of(results).grades == "binary"
    return 1 if binary else max(largest, GRADES[-1]) if by_scale else largest
