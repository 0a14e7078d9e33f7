"""Questions with their paragraphs.

SQuAD, HotpotQA and tables with a column of contexts have no table of documents: their
paragraphs are the documents, each once, under ids that are made here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from harness.dataset.cell_paths import read_texts
from harness.dataset.columns import Columns, declaration
from harness.dataset.file import File, Files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.keyed_file import holds_keys, single_file
from harness.dataset.readers.shards import list_table_files, read_first_row
from harness.dataset.reference import DatasetReference, DeclaredColumn
from harness.dataset.row import Row
from harness.dataset.settings import NAMED_DOCUMENTS
from harness.dataset.source import (
    FormatReader,
    FunctionSource,
    LocatedDocument,
    SourceLocation,
)
from harness.dataset.table_source import TableSource, rows_of_files
from harness.dataset.text_rows import read_json
from harness.dataset.usual_names import normalised_name
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.ids import to_nfc
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
HOTPOT_COLUMNS = {"question", "context", "supporting_facts"}
HOTPOT_FIELDS = ("type", "level")


class QuotedQuestion(NamedTuple):
    """A question whose row names its passages by their ids, and the passages."""

    location: SourceLocation
    row: Row | None
    """The row with the question; None if there are only passages."""
    passages: Sequence[Document]


QuestionReader = Callable[[ReadProblems], Iterator[QuotedQuestion]]


def question_source(read_questions: QuestionReader, columns: Columns) -> FunctionSource:
    """Return documents, queries and labels; problems are reported with the queries."""

    def read_passages(_: ReadProblems) -> Iterator[LocatedDocument]:
        ids: set[str] = set()
        for question in read_questions(ReadProblems()):
            for passage in question.passages:
                if passage.id not in ids:
                    ids.add(passage.id)
                    yield question.location, passage

    def read_rows(problems: ReadProblems) -> Iterator[Row]:
        for question in read_questions(problems):
            if question.row is not None:
                yield question.row

    table = TableSource(rows_of_files(), read_rows, None, columns)
    return FunctionSource(read_passages, table.queries, table.labels)


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
        texts = _list_under("text", answers)
        if answer_column and texts:
            question[answer_column] = _distinct(texts)  # SQuAD as a table
        yield QuotedQuestion(row.location, Row(row.location, question), passages)


def _squad_questions(file: File, problems: ReadProblems) -> Iterator[QuotedQuestion]:
    """Yield the paragraphs of SQuAD's JSON with their questions.

    The form is that of https://rajpurkar.github.io/SQuAD-explorer, 1.1 and 2.0. If a
    paragraph does not answer its question (`is_impossible`), the grade is 0.
    """
    content = None
    with collect_errors(problems):
        content = read_json(file)
    names: set[str] = set()
    for article_number, article in enumerate(_list_under("data", content)):
        title = _get(article, "title")
        title = title if isinstance(title, str) else ""
        name = title or str(article_number)
        if name in names:  # of an earlier article
            name = f"{name} ({article_number})"
        names.add(name)
        for number, paragraph in enumerate(_list_under("paragraphs", article)):
            key_path = f"data[{article_number}].paragraphs[{number}]"
            path = file.path.with_name(f"{file.path.name}: {key_path}")
            location = SourceLocation(path)
            text = _get(paragraph, "context")
            if not isinstance(text, str):
                problem = "'context' is missing, or no text"
                problems.add(location, problem, "as SQuAD has it")
                continue
            id_ = to_nfc(f"{name}#{number}")
            passage = Document(id_, title.replace("_", " "), text)
            yield QuotedQuestion(location, None, (passage,))
            for question in _list_under("qas", paragraph):
                row = _squad_row(question, passage, SourceLocation(file.path))
                yield QuotedQuestion(row.location, row, (passage,))


def _squad_row(question: Any, passage: Document, location: SourceLocation) -> Row:
    """Return a question of SQuAD as a row."""
    cells: dict[str, Any] = {}
    if isinstance(question, Mapping):
        cells["id"] = question.get("id")
        cells["question"] = question.get("question")
    answers = _list_under("answers", question)
    texts = [answer.get("text") for answer in answers if isinstance(answer, Mapping)]
    cells["reference"] = _distinct(filter(None, texts))
    cells["doc_id"] = passage.id
    cells["grade"] = 0 if _get(question, "is_impossible") else 1
    return Row(location, cells)


def _distinct(answers: Iterable[Any]) -> list[Any]:
    """Return answers, each once; they may be no texts, and unhashable."""
    distinct: list[Any] = []
    for answer in answers:
        if answer not in distinct:
            distinct.append(answer)
    return distinct


def _get(holder: Any, key: str) -> Any:
    """Return the value under a key; None if the holder is not an object."""
    return holder.get(key) if isinstance(holder, Mapping) else None


def _list_under(key: str, holder: Any) -> list[Any]:
    """Return the list under a key; empty if there is none."""
    elements = _get(holder, key)
    return elements if isinstance(elements, list) else []


class _TitledValue(NamedTuple):
    """A title of a paragraph, with its sentences or the number of a fact in it."""

    title: str
    value: Any


def _hotpot_questions(
    files: Sequence[File], problems: ReadProblems
) -> Iterator[QuotedQuestion]:
    """Yield HotpotQA's questions (https://hotpotqa.github.io).

    Ids of paragraphs are their titles; a paragraph is relevant if it has a supporting
    fact.
    """
    text_by_title: dict[str, str] = {}
    for location, cells in rows_of_files(*files)(problems):
        id_ = cells.get("_id", cells.get("id"))
        query = cells.get("question")
        context = _titled_values(cells.get("context"))
        facts = _titled_values(cells.get("supporting_facts"))
        is_question = isinstance(id_, str) and isinstance(query, str)
        if not is_question or context is None or facts is None:
            problem = "has no id, question, context and supporting_facts"
            problems.add(location, problem, "as HotpotQA has them")
            continue
        relevant_titles = {title for title, _ in facts}
        relevant: list[Document] = []
        others: list[Document] = []
        for title, sentences in context:
            parts = sentences if isinstance(sentences, list) else [sentences]
            text = "".join(map(str, parts))
            if text_by_title.setdefault(title, text) != text:
                problem = f"the paragraph {title!r} has another text than before"
                problems.add(location, problem, "give it another title")
            passages = relevant if title in relevant_titles else others
            passages.append(Document(title, title, text))
        question = {"id": id_, "question": query, "reference": cells.get("answer")}
        for field in HOTPOT_FIELDS:
            if cells.get(field):
                question[field] = cells[field]
        question["doc_id"] = [passage.id for passage in relevant]
        row = Row(location, question)
        yield QuotedQuestion(location, row, [*others, *relevant])


def _titled_values(cell: object) -> list[_TitledValue] | None:
    """Return titles with their values; None if the cell has another form.

    HotpotQA's own files have pairs, `[title, sentences]`; those of the hub an object of
    lists, `{title: […], sentences: […]}`.
    """
    pairs = cell
    if isinstance(cell, Mapping) and len(cell) == 2:
        lists = list(cell.values())
        if all(isinstance(column, list) for column in lists):
            # What one of the lists has too many belongs to nothing.
            pairs = list(zip(*lists, strict=False))
    if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        return None
    return [_TitledValue(to_nfc(str(title)), value) for title, value in pairs]


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == 2


def _is_hotpot(reference: DatasetReference, files: Files) -> bool:
    return read_first_row(reference, files).cells.keys() >= HOTPOT_COLUMNS


def _read_hotpot(reference: DatasetReference, files: Files) -> FunctionSource:
    table_files = list_table_files(reference, files)
    columns = Columns((DeclaredColumn("label_document", "doc_id"),))
    return question_source(partial(_hotpot_questions, table_files), columns)


def _is_squad(reference: DatasetReference, files: Files) -> bool:
    reference = single_file(reference, files)
    return holds_keys(reference, "data", "paragraphs", "context", "qas")


def _read_squad(reference: DatasetReference, files: Files) -> FunctionSource:
    file = File(single_file(reference, files).folder)
    return question_source(partial(_squad_questions, file), Columns())


CONTEXT_TABLE = FormatReader(_is_context_table, _read_context_table)
"""A table of questions, each with its context or a list of contexts."""
HOTPOT = FormatReader(_is_hotpot, _read_hotpot)
"""HotpotQA, as JSON or in the shards of the hub."""
SQUAD = FormatReader(_is_squad, _read_squad)
