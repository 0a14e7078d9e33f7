"""What every format reader gives, and how text files are read: UTF-8, with a place for every complaint."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness.dataset.model import Labels
from retrievers.errors import InputError, Problem
from retrievers.types import Document, Query

LONGEST_LINE = 64 << 20
"""Bytes of one line, at most: a longer one is no record, and could fill the memory."""
LARGEST_FILE = 1 << 30
"""Bytes of a file that is read whole, at most."""
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+(\.0*)?")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
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
    """Read a UTF-8 file whole, a byte order mark left out.

    Raises:
        InputError: it cannot be read, is no regular file, is larger than 1 GiB, or has another encoding.
    """
    try:
        size = regular(path)
        if size > LARGEST_FILE:
            what = f"has {size:,} bytes, more than the {LARGEST_FILE:,} that are read at once"
            raise InputError(Problem(str(path), what, "cut it into documents, or use a format with one record a line"))
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(Problem(str(path), f"cannot be read: {error.strerror}")) from None
    return decode(raw, Place(path))


def regular(path: Path) -> int:
    """Return the size of a regular file in bytes; a pipe or a device, which could block for ever, is refused.

    Raises:
        InputError: it is something else than a file.
        OSError: it cannot be looked at.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise InputError(Problem(str(path), "is no regular file", "a data set is made of files"))
    return status.st_size


def files_below(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """Yield the files below a folder, hidden ones left out, in the order of their paths.

    What cannot be taken becomes a problem: a folder that cannot be listed, a name that is not UTF-8, a link that
    leads out of the folder, a pipe or a device.
    """
    root = folder.resolve()

    def unreadable(error: OSError) -> None:
        problems.append(Problem(str(error.filename), f"cannot be listed: {error.strerror}"))

    paths = []
    for place, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        linked = [name for name in folders if Path(place, name).is_symlink()]
        paths += [Path(place, name) for name in (*names, *linked) if not name.startswith(".")]
    for path in sorted(paths):
        if HALF.search(str(path)):
            problems.append(Problem(ascii(str(path)), "its name is not UTF-8", "rename it"))
        elif path.is_symlink() and not path.resolve().is_relative_to(root):
            problems.append(Problem(str(path), "is a link that leads out of the data set", "copy what it points to"))
        elif path.is_dir():
            problems.append(Problem(str(path), "is a link to a folder", "copy the folder, or name it as the data set"))
        else:
            yield path


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
        regular(path)
        with path.open("rb") as handle:
            number = 0
            while raw := handle.readline(LONGEST_LINE + 1):
                number += 1
                place = Place(path, number)
                if len(raw) > LONGEST_LINE:
                    problems.append(Problem(str(place), f"is longer than {LONGEST_LINE:,} bytes", "cut the record"))
                    return
                try:
                    line = decode(raw, place).rstrip("\r\n")
                except InputError as error:
                    problems.extend(error.problems)
                    return  # one complaint: in another encoding every line is wrong
                if line.strip():
                    yield place, line
    except InputError as error:
        problems.extend(error.problems)
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
    r"""Parse JSON; ValueError also for a key that stands twice, for deep nesting, and for half a surrogate pair.

    >>> parse_json('{"text": "cut \\ud83d"}')
    Traceback (most recent call last):
    ValueError: it holds half a character, \ud83d
    """
    try:
        value = json.loads(text, object_pairs_hook=_each_key_once)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if "\\ud" in text.lower() and (half := HALF.search(json.dumps(value, ensure_ascii=False))):
        raise ValueError(f"it holds half a character, \\u{ord(half[0]):x}")
    return value


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return table


def id_problem(id_: str) -> str:
    r"""Return why an id cannot be used, "" where it can.

    Ids are written into CSV and TREC files: line breaks and other control characters would make rows of their own,
    and a byte order mark at the beginning is taken for that of the file.

    >>> id_problem("a b"), id_problem("a\rb"), id_problem("\ufeffq1")
    ('', 'holds the control character U+000D', 'begins with a byte order mark')
    """
    if control := CONTROL.search(id_):
        return f"holds the control character U+{ord(control[0]):04X}"
    return "begins with a byte order mark" if id_.startswith("\ufeff") else ""


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

    >>> grade_of("2"), grade_of(1.0), grade_of("high"), grade_of(0.5), grade_of(True), grade_of("1_0")
    (2, 1, None, None, None, None)
    """
    if isinstance(value, str):
        return grade_of(int(float(value))) if len(value) <= 32 and WHOLE_NUMBER.fullmatch(value.strip()) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value) if abs(value) < 2**31 else None
