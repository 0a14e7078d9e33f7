"""SQuAD 1.1 or 2.0."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.keyed_file import holds_keys, single_file
from harness.dataset.readers.quoted_questions import (
    QuotedQuestion,
    distinct_values,
    get_value,
    list_under,
    question_source,
)
from harness.dataset.reference import DatasetReference
from harness.dataset.row import Row
from harness.dataset.source import (
    FormatReader,
    FunctionSource,
    SourceLocation,
)
from harness.dataset.text_rows import read_json
from retrievers.errors import collect_errors
from retrievers.ids import to_nfc
from retrievers.types import Document


def _squad_questions(file: File, problems: ReadProblems) -> Iterator[QuotedQuestion]:
    """Yield the paragraphs of SQuAD's JSON with their questions.

    The form is that of https://rajpurkar.github.io/SQuAD-explorer, 1.1 and 2.0. If a
    paragraph does not answer its question (`is_impossible`), the grade is 0.
    """
    content = None
    with collect_errors(problems):
        content = read_json(file)
    names: set[str] = set()
    for article_number, article in enumerate(list_under("data", content)):
        title = get_value(article, "title")
        title = title if isinstance(title, str) else ""
        name = title or str(article_number)
        if name in names:  # of an earlier article
            name = f"{name} ({article_number})"
        names.add(name)
        for number, paragraph in enumerate(list_under("paragraphs", article)):
            key_path = f"data[{article_number}].paragraphs[{number}]"
            path = file.path.with_name(f"{file.path.name}: {key_path}")
            location = SourceLocation(path)
            text = get_value(paragraph, "context")
            if not isinstance(text, str):
                problem = "'context' is missing, or no text"
                problems.add(location, problem, "as SQuAD has it")
                continue
            id_ = to_nfc(f"{name}#{number}")
            passage = Document(id_, title.replace("_", " "), text)
            yield QuotedQuestion(location, None, (passage,))
            for question in list_under("qas", paragraph):
                row = _squad_row(question, passage, SourceLocation(file.path))
                yield QuotedQuestion(row.location, row, (passage,))


def _squad_row(question: Any, passage: Document, location: SourceLocation) -> Row:
    """Return a question of SQuAD as a row."""
    cells: dict[str, Any] = {}
    if isinstance(question, Mapping):
        cells["id"] = question.get("id")
        cells["question"] = question.get("question")
    answers = list_under("answers", question)
    texts = [answer.get("text") for answer in answers if isinstance(answer, Mapping)]
    cells["reference"] = distinct_values(filter(None, texts))
    cells["doc_id"] = passage.id
    cells["grade"] = 0 if get_value(question, "is_impossible") else 1
    return Row(location, cells)


def _is_squad(reference: DatasetReference, files: Files) -> bool:
    reference = single_file(reference, files)
    return holds_keys(reference, "data", "paragraphs", "context", "qas")


def _read_squad(reference: DatasetReference, files: Files) -> FunctionSource:
    file = File(single_file(reference, files).folder)
    return question_source(partial(_squad_questions, file), Columns(are_fixed=True))


SQUAD = FormatReader(_is_squad, _read_squad)
