"""Spans of a label as they are written."""

from collections.abc import Mapping
from typing import Any

from harness.dataset.labels import WrittenSpan
from harness.dataset.written_values import parse_cell, parse_grade

START_KEYS = ("start", "start_index")
END_KEYS = ("end", "end_index")
QUOTATION_KEYS = ("text", "quotation", "content")
SPANS_KEY = "spans"
"""The key of spans in an object that is a label."""
SPANS_REMEDY = "write a list of [start, end], or of quotations"


def read_spans(cell: Any, document: str) -> tuple[WrittenSpan, ...] | None:
    """Return the spans in a cell; None if one cannot be read.

    A span is a pair of offsets, a quotation, or an object with either or both: of a
    text that occurs several times, the place nearest to the offset is then meant.

    >>> read_spans([[3, 9], "red apples"], "d")
    (WrittenSpan(document='d', start=3, end=9, quotation=''), \
WrittenSpan(document='d', start=None, end=None, quotation='red apples'))
    >>> read_spans('[{"content": "a", "start_index": 3, "end_index": 4}]', "d")
    (WrittenSpan(document='d', start=3, end=4, quotation='a'),)
    >>> read_spans([3, 9], "d") is None
    True
    """
    parsed = parse_cell(cell)
    if parsed is None:
        return ()
    spans: list[WrittenSpan] = []
    for element in parsed if isinstance(parsed, list) else [parsed]:
        span = _read_span(element, document)
        if span is None:
            return None
        spans.append(span)
    return tuple(spans)


def _read_span(element: Any, document: str) -> WrittenSpan | None:
    if isinstance(element, Mapping):
        quotation = _first_value(element, QUOTATION_KEYS)
        offsets = [_first_value(element, keys) for keys in (START_KEYS, END_KEYS)]
        if offsets[0] is None:
            return _read_span(quotation, document)
        span = _read_span(offsets, document)
        if span is None or not isinstance(quotation, str) or not quotation.strip():
            return span  # a blank quotation would be found everywhere
        return span._replace(quotation=quotation)
    if isinstance(element, str) and element.strip():
        return WrittenSpan(document, None, None, element)
    if isinstance(element, list | tuple) and len(element) == 2:
        start, end = map(parse_grade, element)
        if start is not None and end is not None:
            return WrittenSpan(document, start, end)
    return None


def _first_value(row: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((row[key] for key in keys if key in row), None)
