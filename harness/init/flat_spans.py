"""Spans of any program as flat objects."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.rows import read_file_rows
from harness.dataset.source import SourceLocation

OTLP_ATTRIBUTE_KEYS = {"key", "value"}
"""Of an attribute in OTLP's JSON."""


def read_spans(
    path: Path, problems: ReadProblems
) -> Iterator[tuple[SourceLocation, dict[str, Any]]]:
    """Every span of a file, flattened, in whatever objects it is nested."""
    for place, row in read_file_rows(File(path), problems):
        for span in _nested(row):
            yield (
                place,
                {
                    path.removeprefix("attributes."): value
                    for path, value in _flat(span, "")
                },
            )


def _nested(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    inner = [
        one
        for key in ("resourceSpans", "scopeSpans", "spans", "child_runs")
        for one in row.get(key) or ()
    ]
    inner += (
        [row["data"]]
        if isinstance(row.get("data"), Mapping) and "spans" in row["data"]
        else []
    )
    if not inner or "child_runs" in row:
        yield row
    for one in inner:
        yield from _nested(one)


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """What is in a value, by paths with dots; JSON in a text and OTLP's typed values are opened."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if (
        isinstance(value, list)
        and value
        and all(
            isinstance(one, Mapping) and one.keys() == OTLP_ATTRIBUTE_KEYS
            for one in value
        )
    ):
        value = {one["key"]: _plain(one["value"]) for one in value}
    if isinstance(value, Mapping):
        for key, held in value.items():
            yield from _flat(held, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for place, held in enumerate(value):
            yield from _flat(held, f"{path}.{place}")
    else:
        yield path, value


def _plain(value: Any) -> Any:
    """A value of OTLP without its type."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, held),) = value.items()
    if kind == "arrayValue":
        return [_plain(one) for one in held.get("values", ())]
    return (
        held.get("values", [])
        if kind == "kvlistValue"
        else int(held)
        if kind == "intValue"
        else held
    )
