"""What every format reader gives, and how text is read: UTF-8, with a place for every complaint.

Ids, grades, cells, reference answers and claims mean the same in every format.
"""

from __future__ import annotations

import ast
import codecs
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness.dataset.dataset_model import Labels
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import CONTROL, Claim, Document, Query, Reference

SHOWN = 20
"""How many problems of one file are listed; the rest is counted."""
WHOLE = "a grade is a whole number below 2^31; 0 is judged and not relevant"
ENTRY = re.compile(r"\[(\d+|'[^']*'|\"[^\"]*\")\]$")
LINE = re.compile(r"(:\d+|\[\d+\])$")
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+(\.0*)?")
HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: what is left of an emoji that was cut in two."""


class SourceLocation(NamedTuple):
    """A file, and a line where one is known."""

    path: Path
    line: int | None = None
    lines: Sequence[int] = ()
    """Of labels, one per line: the line of each document, in their order."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)

    @property
    def file(self) -> str:
        """The file alone, without the number of an entry in it."""
        return ENTRY.sub("", str(self.path))

    def of(self, position: int) -> SourceLocation:
        """The place of one document among the labels of a query."""
        return (
            SourceLocation(self.path, self.lines[position] or None)
            if position < len(self.lines)
            else self
        )


class Findings:
    """What reading has found: problems, of each file the first few in full, and what is counted and not refused."""

    def __init__(self) -> None:
        self.ledger: dict[str, list[str]] = {}
        """Kind -> ids."""
        self.taken: dict[str, dict[str, str]] = {}
        """File -> its columns, each with what it was read as: see `Columns.taken`."""
        self.sizes = defaultdict[str, Counter[str]](Counter)
        """Table or folder of documents -> what it holds (rows, Markdown files) -> how many."""
        self.unused: dict[str, dict[str, list[Any]]] = {}
        """File of queries or labels -> column that nothing uses -> its first cells."""
        self.unlabelled = set[str]()
        """Files of queries whose labels are in a file of their own."""
        self.names_document: Callable[[str], bool] = lambda cell: False
        """Whether a whole cell names a document: known when labels are read."""
        self._problems: dict[tuple[str, str, str], Problem] = {}
        """Those that are listed, by their file and words."""
        self._repeats = Counter[tuple[str, str, str]]()
        """Of each of them, at how many more places of the file it was found."""
        self._counts = Counter[str]()

    def __bool__(self) -> bool:
        return bool(self._problems)

    @property
    def problems(self) -> list[Problem]:
        """The problems, equal ones of a file as one that counts them, and for each file how many more there are."""
        more = {
            file: count - SHOWN for file, count in self._counts.items() if count > SHOWN
        }
        return [
            *(
                with_repeats(problem, self._repeats[kind])
                for kind, problem in self._problems.items()
            ),
            *(
                Problem(file, f"and {count:,} more like these", stands_for=count)
                for file, count in more.items()
            ),
        ]

    def append(self, problem: Problem) -> None:
        """Take in a problem."""
        kind = _kind(problem)
        if kind in self._problems:
            self._repeats[kind] += 1
            return
        self._counts[kind[0]] += 1
        if self._counts[kind[0]] <= SHOWN:
            self._problems[kind] = problem

    def extend(self, problems: Iterable[Problem]) -> None:
        """Take in several."""
        for problem in problems:
            self.append(problem)

    def wrong(self, place: object, what: str, remedy: str = "") -> None:
        """Take in a problem at a place."""
        self.append(Problem(str(place), what, remedy))

    def note(self, kind: str, id_: str) -> None:
        """Count something of a kind."""
        self.ledger.setdefault(kind, []).append(id_)


def _kind(problem: Problem) -> tuple[str, str, str]:
    """What two problems have in common that are the same but for the line of one file."""
    return LINE.sub("", problem.where), problem.what, problem.remedy


def with_repeats(problem: Problem, repeats: int) -> Problem:
    """A problem that was found at more places of its file, as one that says at how many.

    >>> str(with_repeats(Problem("a.csv:2", "'text' is missing"), 9))
    "a.csv:2: 'text' is missing, as at 9 more places"
    """
    if not repeats:
        return problem
    places = f"{repeats:,} more place{'s' if repeats > 1 else ''}"
    return problem._replace(
        what=f"{problem.what}, as at {places}", stands_for=1 + repeats
    )


class Source(Protocol):
    """The raw content of a data set; what cannot be read is added to `problems` and skipped."""

    def documents(
        self, problems: Findings
    ) -> Iterator[tuple[SourceLocation, Document]]:
        """The documents, in file order."""

    def queries(self, problems: Findings) -> Iterator[tuple[SourceLocation, Query]]:
        """The queries, in file order."""

    def labels(
        self, problems: Findings
    ) -> Iterator[tuple[SourceLocation, str, Labels]]:
        """Query ids and what was said about them; each query once."""


class Parts(NamedTuple):
    """A source whose parts are read by functions of their own."""

    documents: Callable[[Findings], Iterator[tuple[SourceLocation, Document]]]
    queries: Callable[[Findings], Iterator[tuple[SourceLocation, Query]]]
    labels: Callable[[Findings], Iterator[tuple[SourceLocation, str, Labels]]]


def decode(raw: bytes, place: SourceLocation) -> str:
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


def named_twice(header: Sequence[str], where: str, problems: Findings) -> bool:
    """Complain of a column that occurs twice; unnamed ones may."""
    twice = sorted(
        name for name, number in Counter(header).items() if name and number > 1
    )
    if twice:
        problems.append(
            Problem(
                where, f"the column {twice[0]!r} occurs twice", "name columns apart"
            )
        )
    return bool(twice)


def split_among(
    where: str, splits: Collection[str], asked: str | None, usual: str = ""
) -> str:
    """The split that is meant: the one that is asked for, else the only one, else the usual one.

    Raises:
        InputError: there is no such split, or several are there and none is named.

    >>> split_among("d", ["dev", "test"], None, "test"), split_among("d", ["dev"], None)
    ('test', 'dev')
    """
    alone = next(iter(splits)) if len(splits) == 1 else usual
    if (found := alone if asked is None else asked) in splits:
        return found
    what = (
        f"has the splits {', '.join(splits) or 'of no query'}"
        if asked is None
        else f"has no split {asked!r}"
    )
    remedy = (
        did_you_mean(asked, splits) if asked else 'name one: split = "…", or --split'
    )
    raise InputError(Problem(where, what, remedy))


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
        half := HALF.search(json.dumps(value, ensure_ascii=False))
    ):
        raise ValueError(f"it holds half a character, \\u{ord(half[0]):x}")
    return value


def written_value(cell: object) -> object:
    """What a cell holds; lists and objects in CSV, as JSON or Python's repr, are read; an empty text is nothing.

    >>> written_value("['a', 'b']"), written_value(" "), written_value("a"), written_value("[a")
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
    if control := CONTROL.search(id_):
        return f"holds the control character U+{ord(control[0][0]):04X}"
    return "begins with a byte order mark" if id_.startswith("\ufeff") else ""


def grade_of(value: object) -> int | None:
    """A grade as an integer, None where it is not a whole number below 2^31.

    >>> grade_of("2"), grade_of(1.0), grade_of("high"), grade_of(0.5), grade_of(True), grade_of("1_0"), grade_of(3e9)
    (2, 1, None, None, None, None, None)
    """
    if isinstance(value, str):
        return (
            grade_of(int(float(value)))
            if len(value) <= 32 and WHOLE_NUMBER.fullmatch(value.strip())
            else None
        )
    if type(value) is int:  # as nearly all are
        return value if abs(value) < 2**31 else None
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < 2**31 else None


def read_reference(
    answers: Any, claims: Any, place: SourceLocation, problems: Findings
) -> Reference:
    """Read a query's reference answers (a text, or several) and claims (a list); empty after a complaint.

    A claim is a text, or an object with `text` and `vital`: whether an answer without it would be no answer. In one
    cell of text, claims are JSON, or one per line.

    >>> claims = ["monthly", {"text": "in advance", "vital": False}]
    >>> rent = read_reference("A fee.", claims, SourceLocation("q"), Findings())
    >>> rent.answers, [claim.vital for claim in rent.claims]
    (('A fee.',), [True, False])
    """
    answers = (
        [answers] if isinstance(answers, str) and answers.strip() else answers or []
    )
    if not isinstance(answers, list | tuple) or not all(
        isinstance(one, str) and one.strip() for one in answers
    ):
        problems.wrong(
            place,
            "'reference' is neither text nor a list of texts",
            "leave it out where empty",
        )
        answers = []
    listed = written_value(claims) or []
    if isinstance(listed, str) and not listed.lstrip().startswith("["):
        listed = [line.strip() for line in listed.splitlines() if line.strip()]
    parsed = (
        [_claim(one) for one in listed] if isinstance(listed, list | tuple) else [None]
    )
    if None in parsed:
        remedy = 'a list such as ["The fee is monthly.", {"text": "Students pay half.", "vital": false}]'
        problems.wrong(place, "'claims' is not a list of texts", remedy)
        parsed = []
    return Reference(tuple(answers), tuple(one for one in parsed if one is not None))


def read_history(
    cell: Any, place: SourceLocation, problems: Findings
) -> tuple[str, ...]:
    """Read what was said before a query, oldest first: texts, or messages with a `content`; empty after a complaint.

    >>> read_history([{"role": "user", "content": "Is there a fee?"}, "Yes."], SourceLocation("q"), Findings())
    ('Is there a fee?', 'Yes.')
    """
    listed = written_value(cell) or []
    if isinstance(listed, list):
        said: list[Any] = [
            one.get("content") if isinstance(one, dict) else one for one in listed
        ]
        if all(isinstance(one, str) for one in said):
            return tuple(said)
    remedy = 'such as ["Is there a fee?", "Yes."]; or keep it as a field: --columns fields=history'
    problems.wrong(place, "'history' is not a list of messages", remedy)
    return ()


def _claim(claim: object) -> Claim | None:
    if isinstance(claim, str):
        return Claim(claim) if claim.strip() else None
    if isinstance(claim, dict) and claim.keys() <= {"text", "vital"}:
        text, vital = claim.get("text"), claim.get("vital", True)
        return (
            Claim(text, vital)
            if isinstance(text, str) and text.strip() and isinstance(vital, bool)
            else None
        )
    return None
