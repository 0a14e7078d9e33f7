"""Tables of questions with their contexts."""

from collections.abc import Iterator, Sequence
from functools import partial

from harness.dataset.cell_paths import read_texts
from harness.dataset.columns import Columns, declaration
from harness.dataset.file import File, Files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.quoted_questions import (
    QuotedQuestion,
    distinct_values,
    list_under,
    question_source,
)
from harness.dataset.readers.shards import list_table_files, read_first_row
from harness.dataset.reference import DatasetReference, DeclaredColumn
from harness.dataset.row import Row
from harness.dataset.settings import NAMED_DOCUMENTS
from harness.dataset.source import (
    FormatReader,
    FunctionSource,
)
from harness.dataset.table_source import rows_of_files
from harness.dataset.usual_names import normalised_name
from retrievers.errors import InputError, Problem
from retrievers.remedy import compose_remedy
from retrievers.types import Document

CONTEXT_COLUMNS = ("context", "contexts", "passage", "passages")
ANSWER_COLUMNS = ("answer", "answers", "groundtruth", "response")
SQUAD_CONTEXT_COLUMN = "context"
SQUAD_ANSWER_COLUMNS = ("answer", "answers")
TRUTH_COLUMNS = ("groundtruth", "groundtruths")
"""Ragas 0.1 has them beside the contexts of a test set."""
RETURNED_COLUMNS = ("response", "generatedanswer", "score", "rank", "distance")
"""Columns of a system's log."""


def _find_column(row: Row, names: Sequence[str]) -> str | None:
    """Return the first column with one of these names; None if there is none."""
    for column in row.cells:
        if normalised_name(str(column)) in names:
            return column
    return None


def _is_context_table(reference: DatasetReference, files: Files) -> bool:
    """Whether rows have a question and a context, and the reference no documents."""
    columns = Columns(reference.columns)
    if reference.documents:
        return False
    row = read_first_row(reference, files)
    if columns.name("query", row) is None:
        return False
    if columns.declared_name("contexts") in row.cells:
        return True
    if columns.name("label_document", row) is not None:
        return False
    return _find_column(row, CONTEXT_COLUMNS) is not None


def _read_context_table(reference: DatasetReference, files: Files) -> FunctionSource:
    """Open a table with questions and the paragraphs that answer them.

    Each paragraph is a document; that of a row is its only label.
    """
    row = read_first_row(reference, files)
    context_column = Columns(reference.columns).declared_name("contexts")
    if context_column is None:
        context_column = _find_column(row, CONTEXT_COLUMNS) or CONTEXT_COLUMNS[0]
        _refuse_undeclared_contexts(reference, row, context_column)
    answer_column = _find_column(row, ANSWER_COLUMNS)
    declared: list[DeclaredColumn] = []
    if answer_column:
        declared.append(DeclaredColumn("reference", answer_column))
    others = Columns(reference.columns).declared
    declared += [column for column in others if column.kind != "contexts"]
    declared.append(DeclaredColumn("label_document", context_column))
    read_questions = partial(
        _context_questions,
        list_table_files(reference, files),
        context_column,
        answer_column,
    )
    columns = Columns(tuple(declared), header=reference.header is True)
    return question_source(read_questions, columns)


def _refuse_undeclared_contexts(
    reference: DatasetReference, row: Row, column: str
) -> None:
    """Refuse contexts that a system may have returned.

    They are labels beside a grade, and in the tables of SQuAD and of Ragas 0.1. Rows
    that lack the column have a problem of their own when labels are read.

    Raises:
        InputError: nothing says that the contexts answer the questions.
    """
    is_graded = Columns(reference.columns).name("grade", row) is not None
    if column not in row.cells or is_graded or _is_known_context_table(row, column):
        return
    problem = f"{column!r} holds texts, and nothing says that they answer the query"
    remedy = compose_remedy(
        "if they do, say so: ",
        declaration("contexts", column),
        "; if a system returned them, name the documents: ",
        NAMED_DOCUMENTS,
        ", and the labels",
    )
    raise InputError(Problem(reference.name, problem, remedy))


def _is_known_context_table(row: Row, column: str) -> bool:
    """Whether a row is one of SQuAD's, or of a test set of Ragas 0.1."""
    if _find_column(row, TRUTH_COLUMNS) is not None:
        return True
    if _find_column(row, RETURNED_COLUMNS) is not None:
        return False
    has_answer = _find_column(row, SQUAD_ANSWER_COLUMNS) is not None
    return has_answer and normalised_name(column) == SQUAD_CONTEXT_COLUMN


def _context_questions(
    files: Sequence[File],
    context_column: str,
    answer_column: str | None,
    problems: ReadProblems,
) -> Iterator[QuotedQuestion]:
    """Yield the questions of a table; equal contexts are one passage."""
    passage_by_text: dict[str, Document] = {}
    for row in rows_of_files(*files)(problems):
        cell = row.cells.get(context_column)
        passages: list[Document] = []
        for text in read_texts(cell, context_column, row.location, problems):
            if text not in passage_by_text:
                id_ = f"p{len(passage_by_text)}"
                passage_by_text[text] = Document(id_, "", text)
            passages.append(passage_by_text[text])
        if context_column not in row.cells:
            yield QuotedQuestion(row.location, row, passages)
            continue
        question = dict(row.cells)
        question[context_column] = [passage.id for passage in passages] or None
        answers = row.cells.get(answer_column) if answer_column else None
        texts = list_under("text", answers)
        if answer_column and texts:
            question[answer_column] = distinct_values(texts)  # SQuAD as a table
        yield QuotedQuestion(row.location, Row(row.location, question), passages)


CONTEXT_TABLE = FormatReader(_is_context_table, _read_context_table)
"""A table of questions, each with its context or a list of contexts."""
