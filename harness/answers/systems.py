"""What systems answered: one file a system, `answers/<system>.jsonl`, one answer a line.

A line holds `query_id`, `response`, `contexts` (a list of `{id, text}`, in the order in which the generator read them)
and, where marks such as [1] are no citations of theirs, `citations`, which nothing measures.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset.rows import File, read_lines
from harness.dataset.source import parse_json
from harness.records import RESERVED
from retrievers.errors import InputError, Problem, did_you_mean

KEYS = frozenset({"query_id", "response", "contexts", "citations"})
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MARK = re.compile(r"(?<!\s)\s*+\[(\d{1,9})\]")
"""A citation, with all white space before it; what lies beyond nine digits is no number of a context."""
SHOWN = 20
"""Problems of one file that are named; the rest is counted."""


class Context(NamedTuple):
    """One text that a generator was given."""

    id: str
    text: str


class Answer(NamedTuple):
    """What a system answered to one query."""

    response: str = ""
    """Without its marks, where these are its citations."""
    contexts: tuple[Context, ...] = ()


NO_ANSWER = Answer()
"""Stands for a query that a system did not answer: an empty answer, which counts."""


class System(NamedTuple):
    """One system's answers."""

    name: str
    answers: Mapping[str, Answer]
    """By query id."""

    def answer(self, query_id: str) -> Answer:
        """The answer to a query, an empty one where there is none."""
        return self.answers.get(query_id, NO_ANSWER)


def read_systems(folder: Path, queries: Collection[str]) -> list[System]:
    """Read the files of a folder, in the order of their names.

    Args:
        folder: where `<system>.jsonl` lie.
        queries: the ids of the data set's queries.

    Raises:
        InputError: with every problem of every file; there is no file, or a name is no system's.
    """
    if not folder.is_dir():
        remedy = (
            'give the folder with <system>.jsonl, one answer a line: {"query_id": …, "response": …, "contexts": […]}'
        )
        raise InputError(Problem(str(folder), "is no folder", remedy))
    problems: list[Problem] = []
    systems = []
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem in RESERVED:
            continue
        if not NAME.fullmatch(path.stem):
            problems.append(Problem(str(path), "is no name of a system", "letters, digits, '.', '_' and '-'"))
            continue
        if not path.is_file():
            problems.append(Problem(str(path), "is no file", "one file a system, <system>.jsonl"))
            continue
        systems.append(System(path.stem, _answers(path, queries, problems)))
    if not systems and not problems:
        what = f"holds no answers: {', '.join(sorted(RESERVED))} are not names of systems"
        problems.append(Problem(str(folder), what, "one file a system, <system>.jsonl"))
    if problems:
        raise InputError(problems)
    return systems


def _answers(path: Path, queries: Collection[str], problems: list[Problem]) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    mine: list[Problem] = []
    try:
        for number, line in read_lines(File(path), mine):
            try:
                query, answer = _answer(line, queries)
                if query in answers:
                    raise _Wrong(f"query {query!r} is answered twice", "one answer a query")
                answers[query] = answer
            except _Wrong as wrong:
                mine.append(Problem(f"{path}:{number}", *wrong.args))
    except InputError as error:
        mine.extend(error.problems)
    if not answers and not mine:
        mine.append(Problem(str(path), "holds no answer", "one JSON object a line"))
    problems.extend(mine[:SHOWN])
    if len(mine) > SHOWN:
        problems.append(Problem(str(path), f"and {len(mine) - SHOWN} more like these"))
    return answers


class _Wrong(Exception):
    """What is wrong with one line, and what to do."""


def _answer(line: str, queries: Collection[str]) -> tuple[str, Answer]:
    try:
        row = parse_json(line)
    except ValueError as error:
        raise _Wrong(f"is not JSON: {error}", "") from None
    if not isinstance(row, dict):
        raise _Wrong("is not a JSON object", "")
    if unknown := sorted(row.keys() - KEYS):
        raise _Wrong(f"unknown key {unknown[0]!r}", did_you_mean(unknown[0], KEYS))
    query, response = row.get("query_id"), row.get("response")
    if not isinstance(query, str) or query not in queries:
        raise _Wrong(f"query_id {query!r} is no query of the data set", did_you_mean(str(query), queries))
    if not isinstance(response, str):
        raise _Wrong("'response' is missing or no text", 'an empty answer is ""')
    contexts = tuple(_context(one, place) for place, one in enumerate(_list(row, "contexts"), start=1))
    if len({one.id for one in contexts}) < len(contexts):
        raise _Wrong("two contexts have the same id", "ids tell contexts apart")
    has_marks = contexts and row.get("citations") is None
    return query, Answer(MARK.sub("", response) if has_marks else response, contexts)


def _context(given: Any, place: int) -> Context:
    if isinstance(given, str):
        return Context(str(place), given)
    if isinstance(given, dict) and isinstance(given.get("text"), str) and isinstance(given.get("id", ""), str):
        return Context(given.get("id") or str(place), given["text"])
    raise _Wrong(f"context {place} has no text", '{"id": "…", "text": "…"}')


def _list(row: Mapping[str, Any], key: str) -> list[Any]:
    value = row.get(key, [])
    if not isinstance(value, list):
        raise _Wrong(f"{key!r} is no list", "")
    return value
