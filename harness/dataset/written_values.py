"""Values as they are written.

Text that a person or a program wrote becomes JSON, a grade, a flag or a history.
"""

from __future__ import annotations

import ast
import codecs
import json
import re
from contextlib import suppress
from itertools import chain
from numbers import Real
from typing import Any

from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from retrievers.errors import InputError, Problem
from retrievers.ids import CONTROL_CHARACTERS
from retrievers.remedy import Option, Setting, compose_remedy

MAX_QUOTED_LENGTH = 40
"""Characters of a value, at most, that a message shows."""
GRADE_REMEDY = (
    "a grade is a whole number below 2^31, or yes or no; 0 is judged and not relevant"
)
GRADE_LIMIT = 2**31
"""Grades are smaller than this, as `GRADE_REMEDY` says: whole numbers of 32 bits."""
MAX_GRADE_LENGTH = 32
"""Characters of a text, at most, that is read as a grade."""
WHOLE_NUMBER_PATTERN = re.compile(r"[+-]?[0-9]+(\.0*)?")
ARRAY_ELEMENT = re.compile(r"""(?:'([^'\\]*)'|"([^"\\]*)")""")
ARRAY_PATTERN = re.compile(
    rf"\[\s*{ARRAY_ELEMENT.pattern}(?:\s+{ARRAY_ELEMENT.pattern})+\s*\]"
)
"""A list without commas, as numpy writes an array: ['d1' 'd2']."""
HALF_CHARACTER = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: the remainder of an emoji that was cut in two."""
INSTRUCTING_ROLES = ("system", "developer")
MAX_NESTING = 200
"""Lists and objects within each other, at most: later steps read them recursively."""


def quoted_value(value: object) -> str:
    """Return a value as a message shows it."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return re.sub(r"\s+", " ", text)[:MAX_QUOTED_LENGTH]


def decode_utf8(raw: bytes, location: SourceLocation) -> str:
    """Decode UTF-8 bytes.

    Raises:
        InputError: they have another encoding; with the location.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The place is in what follows a byte order mark.
        line = location.line or error.object.count(b"\n", 0, error.start) + 1
        where = str(SourceLocation(location.path, line))
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            problem = "is not UTF-8 but UTF-16"
            remedy = "save the file as UTF-8"
        else:
            problem = "is not UTF-8"
            remedy = f"byte 0x{error.object[error.start]:02x}; save the file as UTF-8"
        raise InputError(Problem(where, problem, remedy)) from None


def parse_json(text: str) -> Any:
    r"""Parse JSON.

    Raises:
        ValueError: it is not JSON, a key occurs twice, it is nested too deep, or it
            has half a surrogate pair.

    >>> parse_json('{"text": "cut \\ud83d"}')
    Traceback (most recent call last):
    ValueError: it holds half a character, \ud83d
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if text.count("[") + text.count("{") > MAX_NESTING:
        _check_nesting(value)
    if "\\ud" not in text.lower():
        return value
    half = HALF_CHARACTER.search(json.dumps(value, ensure_ascii=False))
    if half:
        raise ValueError(f"it holds half a character, \\u{ord(half[0]):x}")
    return value


def _check_nesting(value: Any) -> None:
    """Raise ValueError if lists and objects are nested deeper than `MAX_NESTING`."""
    parts = [value]
    for _ in range(MAX_NESTING + 1):
        containers = [part for part in parts if isinstance(part, list | dict)]
        if not containers:
            return
        contents = (
            container.values() if isinstance(container, dict) else container
            for container in containers
        )
        parts = [*chain.from_iterable(contents)]
    raise ValueError("it is nested too deep")


def _object_without_repeated_keys(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {repeated!r} occurs twice in one object")
    return table


_DECODER = json.JSONDecoder(object_pairs_hook=_object_without_repeated_keys)
"""Built once, since `json.loads` builds a decoder for every text."""


def parse_cell(cell: object) -> object:
    """Return the value of a cell; None for a blank text.

    A text that is a list, an object or a set, as JSON, Python or numpy write it, is
    parsed; JSON that `parse_json` refuses stays a text.

    >>> parse_cell("['a', 'b']"), parse_cell(" "), parse_cell("a"), parse_cell("[a")
    (['a', 'b'], None, 'a', '[a')
    >>> parse_cell('{"a": 1, "a": 2}')
    '{"a": 1, "a": 2}'
    >>> parse_cell("['a' 'b']")
    ['a', 'b']
    """
    if not isinstance(cell, str):
        return cell
    if not cell.lstrip().startswith(("[", "{")):
        return cell if cell.strip() else None
    try:
        return parse_json(cell)
    except json.JSONDecodeError:
        pass  # it may be as Python or numpy writes it
    except ValueError:
        return cell
    if ARRAY_PATTERN.fullmatch(cell.strip()):
        # Python would join texts that are side by side.
        return [single + double for single, double in ARRAY_ELEMENT.findall(cell)]
    # TypeError: a list is in a set, or is a key.
    with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(cell.strip())
    return cell


def id_problem(id_: str) -> str:
    r"""Return why an id cannot be used; empty if it can.

    Ids are written into CSV and TREC files: line breaks and other control characters
    would begin new rows, and a byte order mark at the beginning is read as the file's.

    >>> id_problem("a b"), id_problem("a\rb")
    ('', 'holds the control character U+000D')
    >>> id_problem("\ufeffq1")
    'begins with a byte order mark'
    """
    control = CONTROL_CHARACTERS.search(id_)
    if control:
        return f"holds the control character U+{ord(control[0][0]):04X}"
    return "begins with a byte order mark" if id_.startswith("\ufeff") else ""


def parse_grade(value: object) -> int | None:
    """Return a grade as an integer; None if it is no whole number within ±2^31.

    >>> parse_grade("2"), parse_grade(1.0), parse_grade("high"), parse_grade(0.5)
    (2, 1, None, None)
    >>> parse_grade(True), parse_grade("1_0"), parse_grade(3e9)
    (None, None, None)
    """
    if isinstance(value, str):
        if len(value) > MAX_GRADE_LENGTH:
            return None
        if not WHOLE_NUMBER_PATTERN.fullmatch(value.strip()):
            return None
        return parse_grade(int(float(value)))
    if type(value) is int:  # nearly all grades are
        return value if abs(value) < GRADE_LIMIT else None
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    number = float(value)
    if not number.is_integer() or abs(number) >= GRADE_LIMIT:
        return None
    return int(number)


FLAGS = {"true": True, "false": False}
NEGATIVE_VERDICTS = frozenset(
    (
        "irrelevant",
        "not relevant",
        "nonrelevant",
        "non-relevant",
        "not_relevant",
        "non relevant",
    )
)
"""Words for a document that is not relevant."""
NEGATIVE_FLAGS = frozenset(
    (
        "no",
        "n",
        "false",
        "f",
        "-1",
        "0",
        "bad",
        "wrong",
        "incorrect",
        "negative",
        "reject",
        "rejected",
        "down",
        "thumbs down",
        "thumbs_down",
        "dislike",
        "disliked",
        "unhelpful",
        "not helpful",
        "👎",
    )
)
"""Words for not relevant in a column that judges, by its name or for a caller."""
POSITIVE_FLAGS = frozenset(
    (
        "yes",
        "y",
        "t",
        "relevant",
        "good",
        "right",
        "correct",
        "positive",
        "accept",
        "accepted",
        "up",
        "thumbs up",
        "thumbs_up",
        "like",
        "liked",
        "helpful",
        "👍",
    )
)
"""Words for relevant in such a column."""


def parse_flag(cell: object) -> int | None:
    """Return 1 for true and 0 for false; None for anything else.

    >>> parse_flag(True), parse_flag("False"), parse_flag(1)
    (1, 0, None)
    """
    flag = FLAGS.get(cell.strip().casefold()) if isinstance(cell, str) else cell
    return int(flag) if isinstance(flag, bool) else None


def parse_judgment(cell: object) -> int | None:
    """Return a grade, 1 for a yes or 0 for a no; None for anything else.

    >>> parse_judgment("no"), parse_judgment("1"), parse_judgment(True)
    (0, 1, 1)
    >>> parse_judgment("a ship"), parse_judgment(0.5)
    (None, None)
    """
    flag = parse_flag(cell)
    if flag is not None:
        return flag
    grade = parse_grade(cell)
    if grade is not None or not isinstance(cell, str):
        return grade
    word = cell.strip().casefold()
    if word in NEGATIVE_FLAGS or word in NEGATIVE_VERDICTS:
        return 0
    return 1 if word in POSITIVE_FLAGS else None


def read_history(
    cell: Any, location: SourceLocation, problems: ReadProblems
) -> tuple[str, ...]:
    """Return the conversation before a query, oldest message first.

    A message is a text or an object with a `content`; anything else is a problem.
    Instructions to the system are left out: they are the same in all conversations.

    >>> fee = {"role": "user", "content": "Is there a fee?"}
    >>> read_history([fee, "Yes."], SourceLocation("q"), ReadProblems())
    ('Is there a fee?', 'Yes.')
    """
    messages = parse_cell(cell)
    if messages is None:
        return ()
    if isinstance(messages, list):
        texts = [
            _message_text(message)
            for message in messages
            if message_role(message) not in INSTRUCTING_ROLES
        ]
        if all(isinstance(text, str) for text in texts):
            return tuple(texts)
    problems.add(
        location,
        "'history' is not a list of messages",
        compose_remedy(
            'such as ["Is there a fee?", "Yes."]; or keep it as a field: ',
            Setting("fields", "history", "columns"),
            Option("--columns fields=history"),
        ),
    )
    return ()


def message_role(message: Any) -> Any:
    """Return who says a message of a conversation; None if that is unknown."""
    if not isinstance(message, dict):
        return None
    return message.get("role", message.get("type"))


def _message_text(message: Any) -> Any:
    return message.get("content") if isinstance(message, dict) else message
