"""One query's passages scored within a context."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.measures.grade_rules import Gain, gain_of
from harness.measures.measure import Measure
from retrievers.passage import Passage, Span


class PassageLabels(NamedTuple):
    """The labels of one query by which passages are scored."""

    grades: Mapping[str, int]
    """Document id -> grade."""
    spans: Sequence[Span] = ()
    """The labelled characters; empty if only documents are labelled."""


class _Characters(NamedTuple):
    """Counts of characters; each counts once, however often it was returned."""

    returned: int
    labelled: int
    both: int


def passage_value(
    measure: Measure, labels: PassageLabels, passages: Sequence[Passage]
) -> float:
    """Score the passages of one query, before they are collapsed to documents.

    The context is the first `cutoff` passages, or with `tokens=` those before the first
    that does not fit. Range 0 to 1. Ties: score, then document and passage, descending.
    Unjudged documents: not relevant. Nothing returned: 0.

    R: relevant documents with a passage in the context / all relevant ones. P: tokens
    of passages of relevant documents / tokens of the context. nDCG: each document has
    its gain once, at the rank of its first passage; the ideal has the relevant
    documents in order of gain, one a rank, at most one for each token. With
    `unit='chars'`, and for IoU, characters are counted by unions, the labelled ones in
    relevant documents: R = both / labelled, P = both / returned, IoU = both / either.
    Source: the last three are Smith & Troynikov (2024), whose precision and IoU count a
    character twice where passages overlap; ours do not.

    >>> from harness.measures import parse_measure
    >>> passages = [Passage("a", 0, 40, 10, 0.9), Passage("x", 0, 80, 20, 0.8)]
    >>> labels = PassageLabels({"a": 1, "b": 1}, [Span("a", 20, 60)])
    >>> names = "R(tokens=20)", "P(tokens=30)", "R(unit='chars')@1", "IoU@1"
    >>> [passage_value(parse_measure(name), labels, passages) for name in names]
    [0.5, 0.3333333333333333, 0.5, 0.3333333333333333]
    """
    context = take_context(measure, passages)
    if measure.uses_spans:
        return _value_of_characters(measure, labels, context)
    relevant = {doc for doc, grade in labels.grades.items() if grade >= measure.rel}
    match measure.name:
        case "R":
            met = relevant.intersection(passage.document for passage in context)
            return _share(len(met), len(relevant))
        case "P":
            relevant_tokens = sum(
                passage.tokens for passage in context if passage.document in relevant
            )
            return _share(relevant_tokens, sum(passage.tokens for passage in context))
        case _:
            return _normalised_gain(measure, labels.grades, context)


def take_context(measure: Measure, passages: Sequence[Passage]) -> Sequence[Passage]:
    """Return the first passages: to the cutoff, or before one that exceeds `tokens`."""
    if measure.tokens is None:
        return passages[: measure.cutoff]
    tokens = 0
    for count, passage in enumerate(passages):
        tokens += passage.tokens
        if tokens > measure.tokens:
            return passages[:count]
    return passages


def _normalised_gain(
    measure: Measure, grades: Mapping[str, int], context: Sequence[Passage]
) -> float:
    """Return the discounted gain of documents at their first passage, normalised."""
    gain: Gain = "exponential" if measure.get("dcg") == "exp-log2" else "linear"
    gains = {doc: gain_of(grade, gain) for doc, grade in grades.items() if grade > 0}
    remaining = dict(gains)
    ranked_gains = [remaining.pop(passage.document, 0) for passage in context]
    ideal = sorted(gains.values(), reverse=True)[: measure.tokens]
    return _share(_discounted_sum(ranked_gains), _discounted_sum(ideal))


def _discounted_sum(gains: Iterable[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def _value_of_characters(
    measure: Measure, labels: PassageLabels, context: Sequence[Passage]
) -> float:
    relevant_spans = [
        span
        for span in labels.spans
        if labels.grades.get(span.document, 0) >= measure.rel
    ]
    counts = _count_characters([passage.span for passage in context], relevant_spans)
    match measure.name:
        case "R":
            return _share(counts.both, counts.labelled)
        case "P":
            return _share(counts.both, counts.returned)
        case _:
            either = counts.returned + counts.labelled - counts.both
            return _share(counts.both, either)


def _count_characters(
    returned: Sequence[Span], labelled: Sequence[Span]
) -> _Characters:
    """Count characters that are returned, labelled and both."""
    returned_union = _union(returned)
    labelled_union = _union(labelled)
    both = 0
    for first in returned_union:
        for second in labelled_union:
            if first.document == second.document:
                start = max(first.start, second.start)
                both += max(0, min(first.end, second.end) - start)
    return _Characters(_length(returned_union), _length(labelled_union), both)


def _union(spans: Iterable[Span]) -> list[Span]:
    """Return disjoint spans that have the same characters.

    >>> _union([Span("a", 5, 9), Span("a", 0, 6), Span("b", 0, 2)])
    [Span(document='a', start=0, end=9), Span(document='b', start=0, end=2)]
    """
    disjoint: list[Span] = []
    for span in sorted(spans):
        last = disjoint[-1] if disjoint else None
        if (
            last is not None
            and last.document == span.document
            and span.start <= last.end
        ):
            disjoint[-1] = last._replace(end=max(last.end, span.end))
        else:
            disjoint.append(span)
    return disjoint


def _length(spans: Iterable[Span]) -> int:
    return sum(span.end - span.start for span in spans)


def _share(part: float, total: float) -> float:
    return part / total if total else 0.0
