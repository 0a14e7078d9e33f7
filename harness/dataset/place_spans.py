"""Labelled spans placed in their documents.

What `written_spans` read, offsets or quotations, becomes characters of the text, once
labels have the ids of documents (`match_labels`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from harness.dataset.labels import Labels, WrittenSpan
from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from retrievers.types import Document, Span

MAX_SHOWN_QUOTATION = 60
"""Characters of a quotation that a message shows."""


class _SpanProblem(NamedTuple):
    """Why a span has no place in its document."""

    problem: str
    remedy: str


def place_spans(
    labels: Mapping[str, Labels],
    locations: Mapping[str, SourceLocation],
    documents: Iterable[Document],
    problems: ReadProblems,
) -> dict[str, Labels]:
    """Return labels whose spans are characters of documents, by document and start.

    A relevant document without a span, in a query that has spans, is labelled whole.

    Args:
        labels: query id -> labels under the ids of documents.
        locations: query id -> where its labels are.
        documents: the corpus, which is read once if there are spans.
        problems: takes the spans that are not in their documents.
    """
    queries_by_document: dict[str, list[str]] = {}
    for query_id, query_labels in labels.items():
        if query_labels.written_spans:
            for document_id in dict.fromkeys(query_labels.documents):
                queries_by_document.setdefault(document_id, []).append(query_id)
    spans: dict[str, list[Span]] = {}
    for document in documents if queries_by_document else ():
        for query_id in queries_by_document.get(document.id, ()):
            placed = list(_place_in(document, labels[query_id]))
            document_spans = [span for span in placed if isinstance(span, Span)]
            spans.setdefault(query_id, []).extend(document_spans)
            for problem in placed:
                if isinstance(problem, _SpanProblem):
                    problems.add(locations[query_id], *problem)
    return {
        query_id: replace(
            query_labels,
            written_spans=(),
            spans=tuple(sorted(set(spans.get(query_id, ())))),
        )
        for query_id, query_labels in labels.items()
    }


def _place_in(document: Document, labels: Labels) -> Iterator[Span | _SpanProblem]:
    """Yield the spans of one document, or what is wrong with them."""
    label_spans = [
        span for span in labels.written_spans if span.document == document.id
    ]
    if not label_spans and document.id in labels.relevant:
        yield Span(document.id, 0, len(document.text))
    for span in label_spans:
        if span.quotation:
            yield _place_quotation(document, span.quotation, span.start or 0)
        else:
            yield _check_offsets(document, span)


def _check_offsets(document: Document, span: WrittenSpan) -> Span | _SpanProblem:
    start = span.start or 0
    end = span.end or 0
    length = len(document.text)
    if 0 <= start < end <= length:
        return Span(document.id, start, end)
    return _SpanProblem(
        f"span [{start}, {end}] is not within document {document.id!r}",
        f"its text has {length:,} characters, counted from 0",
    )


def _place_quotation(
    document: Document, quotation: str, start: int
) -> Span | _SpanProblem:
    """Return the place of a quotation, whatever white space is in it.

    If it occurs several times, the place nearest to `start` counts.
    """
    pattern = r"\s+".join(map(re.escape, quotation.split()))
    matches = re.finditer(pattern, document.text)
    nearest = min(matches, key=lambda match: abs(match.start() - start), default=None)
    if nearest is not None:
        return Span(document.id, nearest.start(), nearest.end())
    line = " ".join(quotation.split())
    if len(line) > MAX_SHOWN_QUOTATION:
        line = line[:MAX_SHOWN_QUOTATION] + "…"
    return _SpanProblem(
        f"quotation {line!r} is not in document {document.id!r}",
        "quote the text letter by letter, or give offsets [start, end]",
    )
