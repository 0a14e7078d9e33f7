"""The answers of systems.

A line has `query_id`, `response`, `contexts` (a list of `{id, text}` in the order of the prompt)
and, if marks such as [1] are not citations of contexts, `citations`, which no measure uses.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import model_validator

from harness.dataset.read_problems import ReadProblems
from harness.dataset.text_rows import read_json_lines
from harness.records.judge_files import RESERVED_SYSTEM_NAMES
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options.tables import StrictTable, validated

SYSTEM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
CITATION_MARK = re.compile(r"(?<!\s)\s*+\[(\d{1,9})\]")
"""A citation with the white space before it; a number of more than nine digits is not a citation."""


class Context(NamedTuple):
    """One text in the prompt of a generator."""

    id: str
    text: str


class Answer(NamedTuple):
    """A system's answer to one query."""

    response: str = ""
    """The response without citation marks."""
    contexts: tuple[Context, ...] = ()


NO_ANSWER = Answer()
"""A missing answer, which counts as an empty one."""


class System(NamedTuple):
    """One system's answers."""

    name: str
    answers: Mapping[str, Answer]
    """By query id."""

    def answer(self, query_id: str) -> Answer:
        """The answer to a query, or an empty one."""
        return self.answers.get(query_id, NO_ANSWER)


def read_systems(folder: Path, queries: Collection[str]) -> list[System]:
    """Read the files of a folder, in the order of their names.

    Args:
        folder: with `<system>.jsonl`.
        queries: the ids of the data set's queries.

    Raises:
        InputError: with every problem of every file; there is no file, or a name is invalid.
    """
    if not folder.is_dir():
        form = '{"query_id": …, "response": …, "contexts": […]}'
        remedy = f"use a folder with <system>.jsonl, one answer per line: {form}"
        raise InputError(Problem(str(folder), "is not a folder", remedy))
    problems = ReadProblems()
    systems = []
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem in RESERVED_SYSTEM_NAMES:
            continue
        if not SYSTEM_NAME.fullmatch(path.stem):
            problems.append(
                Problem(
                    str(path),
                    "is not a valid system name",
                    "letters, digits, '.', '_' and '-'",
                )
            )
            continue
        systems.append(System(path.stem, _answers(path, queries, problems)))
    if not systems and not problems:
        what = f"has no answers: {', '.join(sorted(RESERVED_SYSTEM_NAMES))} are not valid system names"
        problems.append(
            Problem(str(folder), what, "one file per system, <system>.jsonl")
        )
    if problems:
        raise InputError(problems.problems)
    return systems


class _ContextRow(StrictTable):
    """A context in a file: a text, or a text with an id."""

    text: str
    id: str = ""

    @model_validator(mode="before")
    @classmethod
    def _text_alone(cls, given: object) -> object:
        return {"text": given} if isinstance(given, str) else given


class _AnswerRow(StrictTable):
    """One line of a system's file."""

    query_id: str
    response: str
    contexts: tuple[_ContextRow, ...] = ()
    citations: Any = None
    """Not measured; if given, marks such as [1] are part of the answer."""

    def read(self) -> Answer:
        """The answer; InputError if two contexts have the same id."""
        contexts = tuple(
            Context(one.id or str(place), one.text)
            for place, one in enumerate(self.contexts, start=1)
        )
        if len({one.id for one in contexts}) < len(contexts):
            raise InputError(
                Problem(
                    "contexts",
                    "two of them have the same id",
                    "give each a different id",
                )
            )
        has_marks = contexts and self.citations is None
        return Answer(
            CITATION_MARK.sub("", self.response) if has_marks else self.response,
            contexts,
        )


def _answers(
    path: Path, queries: Collection[str], problems: ReadProblems
) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for place, line in read_json_lines(path, problems):
        try:
            row = validated(_AnswerRow, line, "")
            if row.query_id not in queries:
                what = f"{row.query_id!r} is not a query of the data set"
                raise InputError(
                    Problem("query_id", what, did_you_mean(row.query_id, queries))
                )
            if row.query_id in answers:
                raise InputError(
                    Problem(
                        "query_id",
                        f"{row.query_id!r} is answered twice",
                        "one answer per query",
                    )
                )
            answers[row.query_id] = row.read()
        except InputError as error:
            problems.extend(
                one._replace(
                    where=str(place), what=f"{one.where}: {one.what}".removeprefix(": ")
                )
                for one in error.problems
            )
    if not answers and not problems:
        problems.add(path, "has no answer", "one JSON object per line")
    return answers
