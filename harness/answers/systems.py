"""The answers of systems.

A line has `query_id`, `response` and `contexts` (a list of `{id, text}`, or of texts,
in the order of the prompt). A mark such as [1] that is the number of a context is
removed from the response, unless the line has `citations`, which no measure uses.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import model_validator

from harness.dataset.read_problems import ReadProblems
from harness.dataset.text_rows import read_json_lines
from harness.records.judge_files import RESERVED_SYSTEM_NAMES
from retrievers.errors import InputError, Problem, nearest_word
from retrievers.options.tables import StrictTable, validated

SYSTEM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
CITATION_MARK = re.compile(r"(?<!\s)\s*+\[(\d{1,9})\]")
"""A citation with the white space before it; it has at most nine digits."""


class Context(NamedTuple):
    """One text in the prompt of a generator."""

    id: str
    text: str


class Answer(NamedTuple):
    """A system's answer to one query."""

    response: str = ""
    """The response; if it has contexts, without marks such as [1], which cite them."""
    contexts: tuple[Context, ...] = ()


NO_ANSWER = Answer()
"""A missing answer, which counts as an empty one."""


class System(NamedTuple):
    """One system's answers."""

    name: str
    answers: Mapping[str, Answer]
    """Query id -> answer."""

    def answer(self, query_id: str) -> Answer:
        """The answer to a query, or an empty one."""
        return self.answers.get(query_id, NO_ANSWER)


def read_systems(folder: Path, queries: Collection[str]) -> list[System]:
    """Read the files of a folder, in the order of their names.

    Args:
        folder: with `<system>.jsonl`.
        queries: the ids of the data set's queries.

    Raises:
        InputError: with the problems of all files; there is no file, or a name is
            invalid.
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
            remedy = "at most 64 letters, digits, '.', '_' and '-', no sign first"
            problems.append(Problem(str(path), "is not a valid system name", remedy))
            continue
        systems.append(System(path.stem, _read_answers(path, queries, problems)))
    if not systems and not problems:
        reserved = ", ".join(sorted(RESERVED_SYSTEM_NAMES))
        problem = "has no answers"
        remedy = f"one file per system, <system>.jsonl, not called {reserved}"
        problems.append(Problem(str(folder), problem, remedy))
    if problems:
        raise InputError(problems.problems)
    return systems


class _ContextRow(StrictTable):
    """A context in a file: a text, or a text with an id."""

    text: str
    id: str = ""

    @model_validator(mode="before")
    @classmethod
    def _accept_text(cls, context: object) -> object:
        return {"text": context} if isinstance(context, str) else context


class _AnswerRow(StrictTable):
    """One line of a system's file."""

    query_id: str
    response: str
    contexts: tuple[_ContextRow, ...] = ()
    citations: Any = None
    """Not measured; if given, marks such as [1] are part of the answer."""

    def to_answer(self) -> Answer:
        """The answer; InputError if two contexts have the same id."""
        contexts = tuple(
            Context(context.id or str(rank), context.text)
            for rank, context in enumerate(self.contexts, start=1)
        )
        distinct_ids = {context.id for context in contexts}
        if len(distinct_ids) < len(contexts):
            problem = "two of them have the same id"
            raise InputError(Problem("contexts", problem, "give each a different id"))
        if contexts and self.citations is None:
            return Answer(without_citations(self.response, len(contexts)), contexts)
        return Answer(self.response, contexts)


def without_citations(response: str, contexts: int) -> str:
    """Return a response without the marks that are numbers of its contexts.

    >>> without_citations("It is monthly [1]; founded in [1998]: see row[0].", 2)
    'It is monthly; founded in [1998]: see row[0].'
    """

    def replacement(mark: re.Match[str]) -> str:
        is_context = 1 <= int(mark[1]) <= contexts
        return "" if is_context else mark[0]

    return CITATION_MARK.sub(replacement, response)


def _read_answers(
    path: Path, queries: Collection[str], problems: ReadProblems
) -> dict[str, Answer]:
    """Return the answers of a system's file by query id; problems are added."""
    answers: dict[str, Answer] = {}
    for location, line in read_json_lines(path, problems):
        try:
            row = validated(_AnswerRow, line, "")
            _check_query_id(row.query_id, queries, answers)
            answers[row.query_id] = row.to_answer()
        except InputError as error:
            for problem in error.problems:
                text = f"{problem.where}: {problem.what}".removeprefix(": ")
                problems.append(problem._replace(where=str(location), what=text))
    if not answers and not problems:
        problems.add(path, "has no answer", "one JSON object per line")
    return answers


def _check_query_id(
    query_id: str, queries: Collection[str], answers: Collection[str]
) -> None:
    """Refuse a query that is unknown, or that already has an answer."""
    if query_id not in queries:
        problem = f"{query_id!r} is not a query of the data set"
        remedy = nearest_word(query_id, queries)
        if not remedy and queries:
            remedy = f"ids look like {min(queries)!r}"
        raise InputError(Problem("query_id", problem, remedy))
    if query_id in answers:
        problem = f"{query_id!r} is answered twice"
        raise InputError(Problem("query_id", problem, "one answer per query"))
