"""What every format reader gives, and how text files are read: UTF-8, with a place for every complaint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness.dataset.model import Labels
from retrievers.errors import InputError, Problem
from retrievers.types import Document, Query

HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: what is left of an emoji that was cut in two."""


class Place(NamedTuple):
    """A file, and a line where one is known."""

    path: Path
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)


class Source(Protocol):
    """The raw content of a data set; what cannot be read is added to `problems` and skipped."""

    def documents(self, problems: list[Problem]) -> Iterator[tuple[Place, Document]]:
        """The documents, in file order."""

    def queries(self, problems: list[Problem]) -> Iterator[tuple[Place, Query]]:
        """The queries, in file order."""

    def labels(self, problems: list[Problem]) -> Iterator[tuple[Place, str, Labels]]:
        """Query ids and what was said about them; each query once."""


def read_text(path: Path) -> str:
    """Read a UTF-8 file whole, a byte order mark left out; other encodings raise InputError with the line."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}")) from None
    return decode(raw, Place(path))


def decode(raw: bytes, place: Place) -> str:
    """Decode UTF-8 bytes; other encodings raise InputError with the place."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = place.line or raw.count(b"\n", 0, error.start) + 1
        remedy = f"byte 0x{raw[error.start]:02x}; save the file as UTF-8"
        raise InputError(Problem(str(Place(place.path, line)), "is not UTF-8", remedy)) from None


def read_lines(path: Path, problems: list[Problem]) -> Iterator[tuple[Place, str]]:
    """Stream the non-blank lines of a UTF-8 file, cut at line feeds alone."""
    try:
        with path.open("rb") as handle:
            for number, raw in enumerate(handle, 1):
                place = Place(path, number)
                try:
                    line = decode(raw, place).rstrip("\r\n")
                except InputError as error:
                    problems.extend(error.problems)
                    return  # one complaint: in another encoding every line is wrong
                if line.strip():
                    yield place, line
    except OSError as error:
        problems.append(Problem(str(path), f"cannot be read: {error.strerror}"))


def read_jsonl(path: Path, problems: list[Problem]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Stream the objects of a JSON Lines file; a line that is none becomes a problem."""
    for place, line in read_lines(path, problems):
        try:
            row = parse_json(line)
        except ValueError as error:
            problems.append(Problem(str(place), f"is not JSON: {error}"))
            continue
        if isinstance(row, dict):
            yield place, row
        else:
            problems.append(Problem(str(place), "is not a JSON object", 'expected {"_id": …, "text": …}'))


def parse_json(text: str) -> Any:
    r"""Parse JSON; ValueError also for what is nested too deep, and for half a surrogate pair, which is no text.

    >>> parse_json('{"text": "cut \\ud83d"}')
    Traceback (most recent call last):
    ValueError: it holds half a character, \ud83d
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if "\\ud" in text.lower() and (half := HALF.search(json.dumps(value, ensure_ascii=False))):
        raise ValueError(f"it holds half a character, \\u{ord(half[0]):x}")
    return value


def text_of(row: Mapping[str, Any], key: str, place: Place, problems: list[Problem]) -> str | None:
    """The string under a key; None after a complaint where it is missing or something else."""
    value = row.get(key)
    if isinstance(value, str):
        return value
    what = f"{key!r} is missing" if key not in row else f"{key!r} is not a string but {json.dumps(value)[:40]}"
    problems.append(Problem(str(place), what))
    return None


def grade_of(value: object) -> int | None:
    """A grade as an integer, None where it is no whole number below 2^31.

    >>> grade_of("2"), grade_of(1.0), grade_of("high"), grade_of(0.5), grade_of(True)
    (2, 1, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**31 else None
