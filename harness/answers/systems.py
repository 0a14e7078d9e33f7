"""What systems answered: one file a system, `answers/<system>.jsonl`, one answer a line.

A line holds `query_id`, `response`, `contexts` (a list of `{id, text}`, in the order in which the generator read them)
and, where marks such as [1] are not citations of theirs, `citations`, which nothing measures.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import model_validator

from harness.dataset.rows import read_jsonl
from harness.dataset.source import Findings
from harness.records.readings import RESERVED
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options import Strict, checked

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MARK = re.compile(r"(?<!\s)\s*+\[(\d{1,9})\]")
"""A citation, with all white space before it; what lies beyond nine digits is not a number of a context."""


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
        InputError: with every problem of every file; there is no file, or a name is not a system's.
    """
    if not folder.is_dir():
        form = '{"query_id": …, "response": …, "contexts": […]}'
        remedy = f"give the folder with <system>.jsonl, one answer a line: {form}"
        raise InputError(Problem(str(folder), "is not a folder", remedy))
    problems = Findings()
    systems = []
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem in RESERVED:
            continue
        if not NAME.fullmatch(path.stem):
            problems.append(Problem(str(path), "is not a name of a system", "letters, digits, '.', '_' and '-'"))
            continue
        if not path.is_file():
            problems.append(Problem(str(path), "is not a file", "one file a system, <system>.jsonl"))
            continue
        systems.append(System(path.stem, _answers(path, queries, problems)))
    if not systems and not problems:
        what = f"holds no answers: {', '.join(sorted(RESERVED))} are not names of systems"
        problems.append(Problem(str(folder), what, "one file a system, <system>.jsonl"))
    if problems:
        raise InputError(problems.problems)
    return systems


class _ContextRow(Strict):
    """A context as it is written: a text alone, or with an id."""

    text: str
    id: str = ""

    @model_validator(mode="before")
    @classmethod
    def _text_alone(cls, given: object) -> object:
        return {"text": given} if isinstance(given, str) else given


class _AnswerRow(Strict):
    """One line of a system's file."""

    query_id: str
    response: str
    contexts: tuple[_ContextRow, ...] = ()
    citations: Any = None
    """Not measured; where it is given, marks such as [1] are words of the answer."""

    def read(self) -> Answer:
        """The answer; InputError where two contexts have the same id."""
        contexts = tuple(Context(one.id or str(place), one.text) for place, one in enumerate(self.contexts, start=1))
        if len({one.id for one in contexts}) < len(contexts):
            raise InputError(Problem("contexts", "two of them have the same id", "give each an id of its own"))
        has_marks = contexts and self.citations is None
        return Answer(MARK.sub("", self.response) if has_marks else self.response, contexts)


def _answers(path: Path, queries: Collection[str], problems: Findings) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for place, line in read_jsonl(path, problems):
        try:
            row = checked(_AnswerRow, line, "")
            if row.query_id not in queries:
                what = f"{row.query_id!r} is not a query of the data set"
                raise InputError(Problem("query_id", what, did_you_mean(row.query_id, queries)))
            if row.query_id in answers:
                raise InputError(Problem("query_id", f"{row.query_id!r} is answered twice", "one answer a query"))
            answers[row.query_id] = row.read()
        except InputError as error:
            problems.extend(
                one._replace(where=str(place), what=f"{one.where}: {one.what}".removeprefix(": "))
                for one in error.problems
            )
    if not answers and not problems:
        problems.wrong(path, "holds no answer", "one JSON object a line")
    return answers
