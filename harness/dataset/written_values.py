"""Values as they are written."""

from __future__ import annotations

import ast
import codecs
import json
import re
from contextlib import suppress
from numbers import Real
from typing import Any

from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from retrievers.errors import InputError, Problem
from retrievers.ids import CONTROL_CHARACTERS


def quoted_value(value: object) -> str:
    """A value as a message shows it."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return re.sub(r"\s+", " ", text)[:40]


GRADE_REMEDY = "a grade is a whole number below 2^31; 0 is judged and not relevant"


WHOLE_NUMBER_PATTERN = re.compile(r"[+-]?[0-9]+(\.0*)?")
HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: what is left of an emoji that was cut in two."""


def decode_utf8(raw: bytes, place: SourceLocation) -> str:
    """Decode UTF-8 bytes; other encodings raise InputError with the place."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = SourceLocation(
            place.path, place.line or raw.count(b"\n", 0, error.start) + 1
        )
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(
                Problem(str(where), "is not UTF-8 but UTF-16", "save the file as UTF-8")
            ) from None
        remedy = f"byte 0x{raw[error.start]:02x}; save the file as UTF-8"
        raise InputError(Problem(str(where), "is not UTF-8", remedy)) from None


def parse_json(text: str) -> Any:
    r"""Parse JSON; ValueError also for a key that occurs twice, for deep nesting, and for half a surrogate pair.

    >>> parse_json('{"text": "cut \\ud83d"}')
    Traceback (most recent call last):
    ValueError: it holds half a character, \ud83d
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if "\\ud" in text.lower() and (
        half := HALF_CHARACTER.search(json.dumps(value, ensure_ascii=False))
    ):
        raise ValueError(f"it holds half a character, \\u{ord(half[0]):x}")
    return value


def parse_cell(cell: object) -> object:
    """What a cell holds; lists and objects in CSV, as JSON or Python's repr, are read; an empty text is nothing.

    >>> parse_cell("['a', 'b']"), parse_cell(" "), parse_cell("a"), parse_cell("[a")
    (['a', 'b'], None, 'a', '[a')
    """
    if not isinstance(cell, str):
        return cell
    if not cell.lstrip().startswith(("[", "{")):
        return cell if cell.strip() else None
    with suppress(ValueError):
        return parse_json(cell)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(cell.strip())
    return cell


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return table


_DECODER = json.JSONDecoder(object_pairs_hook=_each_key_once)
"""Made once: `json.loads` makes one for every text."""


def id_problem(id_: str) -> str:
    r"""Return why an id cannot be used, "" where it can.

    Ids are written into CSV and TREC files: line breaks and other control characters would make rows of their own,
    and a byte order mark at the beginning is read as that of the file.

    >>> id_problem("a b"), id_problem("a\rb"), id_problem("\ufeffq1")
    ('', 'holds the control character U+000D', 'begins with a byte order mark')
    """
    if control := CONTROL_CHARACTERS.search(id_):
        return f"holds the control character U+{ord(control[0][0]):04X}"
    return "begins with a byte order mark" if id_.startswith("\ufeff") else ""


def parse_grade(value: object) -> int | None:
    """A grade as an integer, None where it is not a whole number below 2^31.

    >>> parse_grade("2"), parse_grade(1.0), parse_grade("high"), parse_grade(0.5), parse_grade(True), parse_grade("1_0"), parse_grade(3e9)
    (2, 1, None, None, None, None, None)
    """
    if isinstance(value, str):
        return (
            parse_grade(int(float(value)))
            if len(value) <= 32 and WHOLE_NUMBER_PATTERN.fullmatch(value.strip())
            else None
        )
    if type(value) is int:  # as nearly all are
        return value if abs(value) < 2**31 else None
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 2**31 else None


def read_history(
    cell: Any, place: SourceLocation, problems: ReadProblems
) -> tuple[str, ...]:
    """Read what was said before a query, oldest first: texts, or messages with a `content`; empty after a complaint.

    >>> from harness.dataset.source import SourceLocation
    >>> from harness.dataset.read_problems import ReadProblems
    >>> read_history([{"role": "user", "content": "Is there a fee?"}, "Yes."], SourceLocation("q"), ReadProblems())
    ('Is there a fee?', 'Yes.')
    """
    listed = parse_cell(cell) or []
    if isinstance(listed, list):
        said: list[Any] = [
            one.get("content") if isinstance(one, dict) else one for one in listed
        ]
        if all(isinstance(one, str) for one in said):
            return tuple(said)
    remedy = 'such as ["Is there a fee?", "Yes."]; or keep it as a field: --columns fields=history'
    problems.add(place, "'history' is not a list of messages", remedy)
    return ()
