"""Spans of any program as flat objects.

Each span becomes a map of paths with dots to values, however it was nested or encoded;
`spans` looks up what a retriever's spans have in these paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row import Row
from harness.dataset.rows import read_file_rows
from harness.dataset.source import SourceLocation
from harness.dataset.written_values import parse_json

OTLP_ATTRIBUTE_KEYS = {"key", "value"}
"""The keys of an attribute in OTLP's JSON."""
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,20}")
"""A whole number of 64 bits, which OTLP writes as text."""
NESTED_SPAN_KEYS = ("resourceSpans", "scopeSpans", "spans", "child_runs")
"""Keys of lists of spans, or of objects that have such lists."""


class FlatObject(NamedTuple):
    """A span, or an object in one, without nested objects."""

    leaves: Mapping[str, Any]
    """Path with dots -> value."""

    def first_value(self, paths: Sequence[str]) -> Any:
        """Return the value at the first of several paths that is not empty."""
        for path in paths:
            leaf = self.leaves.get(path)
            if leaf not in (None, ""):
                return leaf
        return None

    def first_present(self, paths: Sequence[str]) -> Any:
        """Return the value at the first of several paths that it has."""
        return next((self.leaves[path] for path in paths if path in self.leaves), None)

    def text_at(self, path: str, likely_keys: Sequence[str]) -> str | None:
        """Return the text at a path, or the most likely one below it."""
        leaves = [self.leaves.get(path)]
        leaves += [self.leaves.get(f"{path}.{key}") for key in likely_keys]
        leaves += [
            leaf
            for inner_path, leaf in self.leaves.items()
            if inner_path.startswith(f"{path}.")
        ]
        for leaf in leaves:
            if isinstance(leaf, str) and leaf.strip():
                return leaf
        return None

    def objects_in(self, pattern: re.Pattern[str]) -> list[NumberedObject]:
        """Return the objects of a list, in their order.

        Args:
            pattern: of a path; its groups are the object's number, and the path in it.
        """
        leaves_by_number: dict[int, dict[str, Any]] = {}
        for path, leaf in self.leaves.items():
            match = pattern.fullmatch(path)
            if match:
                leaves_by_number.setdefault(int(match[1]), {})[match[2]] = leaf
        return [
            NumberedObject(number, FlatObject(leaves))
            for number, leaves in sorted(leaves_by_number.items())
        ]


class NumberedObject(NamedTuple):
    """An object of a list in a span."""

    number: int
    content: FlatObject


class LocatedSpan(NamedTuple):
    """A flat span with its location."""

    location: SourceLocation
    span: FlatObject


def read_spans(path: Path, problems: ReadProblems) -> Iterator[LocatedSpan]:
    """Yield every span of a file, flattened, from whatever objects it is nested in."""
    for row in read_file_rows(File(path), problems):
        for span in _nested_spans(row):
            leaves = {
                key_path.removeprefix("attributes."): leaf
                for key_path, leaf in _flatten(span.cells, "")
            }
            yield LocatedSpan(span.location, FlatObject(leaves))


def _nested_spans(row: Row) -> Iterator[Row]:
    """Yield the spans in an object; the object itself if it has none, or is a run."""
    inner: list[Any] = []
    for key in NESTED_SPAN_KEYS:
        nested = row.cells.get(key)
        if isinstance(nested, list):
            inner += [span for span in nested if isinstance(span, Mapping)]
    response = row.cells.get("data")
    if isinstance(response, Mapping) and "spans" in response:
        inner.append(response)
    if not inner or "child_runs" in row.cells:
        yield row
    for span in inner:
        yield from _nested_spans(Row(row.location, span))


def _flatten(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the values in a value by their paths.

    JSON in a text is parsed, and OTLP's typed values lose their types.
    """
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError):
            value = parse_json(value)
    if _are_otlp_attributes(value):
        value = {
            attribute["key"]: _untyped_value(attribute["value"]) for attribute in value
        }
    if isinstance(value, list):
        value = dict(enumerate(value))
    elif not isinstance(value, Mapping):
        yield path, value
        return
    for key, inner in value.items():
        yield from _flatten(inner, f"{path}.{key}" if path else str(key))


def _are_otlp_attributes(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    for attribute in value:
        if not isinstance(attribute, Mapping):
            return False
        if attribute.keys() != OTLP_ATTRIBUTE_KEYS:
            return False
        if not isinstance(attribute["key"], str):
            return False
    return True


def _untyped_value(value: Any) -> Any:
    """Return a value of OTLP without its type."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    value_type, inner = next(iter(value.items()))
    match value_type:
        case "arrayValue":
            return [_untyped_value(element) for element in _values_in(inner)]
        case "kvlistValue":
            return _values_in(inner)
        case "intValue":
            is_number = WHOLE_NUMBER.fullmatch(str(inner)) is not None
            return int(inner) if is_number else inner
    return inner


def _values_in(typed_list: Any) -> list[Any]:
    """Return the values of a list of OTLP; empty if it has none."""
    values = typed_list.get("values") if isinstance(typed_list, Mapping) else None
    return values if isinstance(values, list) else []
