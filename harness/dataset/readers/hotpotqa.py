"""HotpotQA."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.quoted_questions import (
    QuotedQuestion,
    question_source,
)
from harness.dataset.readers.shards import list_table_files, read_first_row
from harness.dataset.reference import DatasetReference, DeclaredColumn
from harness.dataset.row import Row
from harness.dataset.source import (
    FormatReader,
    FunctionSource,
)
from harness.dataset.table_source import rows_of_files
from retrievers.ids import to_nfc
from retrievers.types import Document

HOTPOT_COLUMNS = {"question", "context", "supporting_facts"}
HOTPOT_FIELDS = ("type", "level")


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
    columns = Columns((DeclaredColumn("label_document", "doc_id"),), are_fixed=True)
    return question_source(partial(_hotpot_questions, table_files), columns)


HOTPOT = FormatReader(_is_hotpot, _read_hotpot)
"""HotpotQA, as JSON or in the shards of the hub."""
