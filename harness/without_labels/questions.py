"""The questions of a trial."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.dataset.columns import Columns
from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.table_source import TableSource, rows_of_files
from harness.without_labels.layout import check_file
from retrievers.errors import InputError, Problem
from retrievers.files.text_files import explain_write_errors, open_text_file
from retrievers.ids import to_nfc
from retrievers.types import Query


def read_questions(path: Path) -> list[Query]:
    """Return the questions of a file: text with one on each line, or a table.

    Raises:
        InputError: it cannot be read, or has no question.
    """
    check_file(path, 'a file of questions, one on each line; or -q "a question"')
    problems = ReadProblems()
    source = TableSource(
        document_rows=rows_of_files(),
        query_rows=rows_of_files(File(path)),
        label_rows=rows_of_files(),
        columns=Columns(),
    )
    questions = [query for _, query in source.queries(problems) if query.text.strip()]
    if problems:
        raise InputError(problems.problems)
    if not questions:
        remedy = "one question on each line, or a table with a column query"
        raise InputError(Problem(str(path), "holds no question", remedy))
    return questions


def have_labels(path: Path) -> bool:
    """Whether a file of questions names relevant documents, too."""
    columns = Columns()
    rows = rows_of_files(File(path))(ReadProblems())
    return any(map(columns.has_labels, rows))


def as_questions(texts: Sequence[str]) -> list[Query]:
    """Return the questions of the command line, which have no ids yet.

    Raises:
        InputError: one is blank.
    """
    if not all(text.strip() for text in texts):
        raise InputError(Problem("-q", "is blank", '-q "a question"'))
    return [Query("", to_nfc(text.strip())) for text in texts]


def add_questions(stored: Sequence[Query], new: Iterable[Query]) -> list[Query]:
    """Return stored questions and those that are new.

    A stored question keeps its id, by which labels name it, so that no label is lost. A
    new one gets the next free q1, q2, … if it has no id, a used one, or one that only
    numbers the questions of its file. Two that differ only in case and white space are
    one, if the same was said before them.

    >>> add_questions([Query("q1", "Who pays?")], [Query("", "who  pays?")])[0].id
    'q1'
    """
    questions = list(stored)
    keys = set(map(_question_key, questions))
    used_ids = {question.id for question in questions}
    for question in new:
        key = _question_key(question)
        if key in keys:
            continue
        keys.add(key)
        id_ = question.id
        if not id_ or id_ in used_ids or _is_numbered(id_):
            id_ = _next_id(used_ids)
        used_ids.add(id_)
        questions.append(replace(question, id=id_))
    return questions


def _question_key(question: Query) -> tuple[str, ...]:
    return (*question.history, " ".join(question.text.casefold().split()))


def _is_numbered(id_: str) -> bool:
    """Whether an id is only the place of a question in its file."""
    return id_.startswith("q") and id_[1:].isdigit()


def _next_id(used_ids: set[str]) -> str:
    """Return qN, where N is the number of the next question or the first free one."""
    number = len(used_ids) + 1
    while f"q{number}" in used_ids:
        number += 1
    return f"q{number}"


def write_questions(path: Path, questions: Iterable[Query]) -> None:
    """Write questions with their histories and fields, all of them or none."""
    temporary = path.with_name(f"{path.name}.part")
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_text_file(temporary, "w") as file:
            for question in questions:
                row: dict[str, Any] = {
                    "id": question.id,
                    "query": question.text,
                    **question.fields,
                }
                if question.history:
                    row["history"] = list(question.history)
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        temporary.replace(path)
