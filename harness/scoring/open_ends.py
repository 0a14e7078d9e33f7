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

from harness.dataset import Labels
from harness.dataset.judgments import GRADES
from harness.measures import Measure, parse, score
from harness.records import Results
from harness.scoring.grading import grades_under, people_judged
from harness.scoring.linear import Linear, heads_of, linear_form, mean_bounds, scale_of
from harness.scoring.outcome import primary_of
from harness.scoring.saved import relevance_of, scored_grades
from harness.stats.bounds import Bounds, capped_bounds, difference_bounds, rank_weights
from harness.stats.rank_bounds import TwoLists, average_precision_bounds, first_hit_bounds, recall_bounds
from retrievers.types import Floats

GradedQueries = Mapping[str, Mapping[str, int]]


class OpenMean(NamedTuple):
    """The mean of one retriever, and what unjudged documents could make of it."""

    retriever: str
    judged: float
    """The share of the documents above the cutoff that are judged."""
    bounds: Bounds | None
    """None where the measure has none."""


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


class OpenQuery(NamedTuple):
    """Two rankings of one query, and what is known of it."""

    a: Sequence[str]
    b: Sequence[str]
    """Empty for the value of one ranking."""
    known: Mapping[str, int]
    """Every grade, those of documents chosen for their effect, too."""
    grades: Mapping[str, int]
    """The grades that scores rest on: the ideal of nDCG."""


class OpenPairs(NamedTuple):
    """All that is open between two retrievers."""

    measure: str
    cutoff: int
    bounds: Bounds
    changes: tuple[Open, ...]
    """Every unjudged document whose weight is not 0."""


def open_pairs(results: Results, a: str, b: str) -> OpenPairs | None:
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
    rows = {q: OpenQuery(first.get(q, ()), second.get(q, ()), known[q], grades[q]) for q in grades}
    changes = tuple(
        Open(query, document, change / len(rows))
        for query, row in rows.items()
        for document in dict.fromkeys([*row.a, *row.b])
        if document not in row.known and (change := _change(moved, row, document, largest)) > 0
    )
    return OpenPairs(str(measure), cutoff, _mean([bounds(row) for row in rows.values()]), changes)


def open_ends(results: Results, lists: Mapping[str, Mapping[str, Sequence[str]]]) -> OpenEnds:
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
    judged_at = parse(f"Judged@{cutoff}")
    means = tuple(
        OpenMean(name, score([judged_at], {q: known[q] for q in grades}, of).means()[judged_at], between(name, ""))
        for name, of in lists.items()
    )
    rows = [row for row in results.comparisons.to_dict("records") if row["measure"] == primary]
    pairs = tuple(
        OpenPair(row["a"], row["b"], open_) for row in rows if (open_ := between(row["a"], row["b"])) is not None
    )
    chosen = sum(len(question.labels.chosen) for question in results.queries.values())
    return OpenEnds(primary, means, pairs, chosen, len(grades))


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
            name: heads_of(list(of.values()), [known[q] for q in of], linear, numbers)
            for name, of in {"": empty, **lists}.items()
        }
        return lambda a, b: mean_bounds(heads[a], heads[b], linear, scales)
    bounds = bounds_of(measure, cutoff, largest, results.manifest.dataset.documents)

    def one_by_one(a: str, b: str) -> Bounds | None:
        first, second = lists[a], lists.get(b, empty)
        asked = (OpenQuery(first[q], second[q], known[q], grades[q]) for q in grades)
        return None if bounds is None else _mean([bounds(query) for query in asked])

    return one_by_one


def bounds_of(
    measure: Measure, cutoff: int, largest: int, documents: int, *, capped: bool = True
) -> Callable[[OpenQuery], Bounds] | None:
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

    def of_ranks(query: OpenQuery) -> Bounds:
        relevant = {document: grade >= measure.rel for document, grade in query.known.items()}
        lists = TwoLists(query.a, query.b, relevant, documents)
        if measure.name == "R":
            return recall_bounds(lists)
        if measure.name == "AP":
            return average_precision_bounds(lists)
        ranks = range(1, cutoff + 1)
        return first_hit_bounds(lists, [1.0 / rank if measure.name == "RR" else 1.0 for rank in ranks])

    return of_ranks


def _linear_bounds(measure: Measure, linear: Linear, query: OpenQuery, cutoff: int) -> Bounds:
    scale = scale_of(measure, linear, query.grades, cutoff)

    def edges(a: Sequence[str], b: Sequence[str]) -> Floats:
        weights = rank_weights(a, b, linear.discounts)
        gains = {document: linear.gain(query.known[document]) for document in weights if document in query.known}
        return np.array(difference_bounds(weights, gains, linear.gains[-1]))[:, None] * scale

    both, first, second = edges(query.a, query.b), edges(query.a, ()), edges(query.b, ())
    return Bounds(*capped_bounds(both, first, second, linear.largest)[:, 0].tolist())


def _change(bounds: Callable[[OpenQuery], Bounds], query: OpenQuery, document: str, largest: int) -> float:
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
