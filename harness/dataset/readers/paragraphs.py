"""Questions with their paragraphs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from harness.dataset.cell_paths import read_texts
from harness.dataset.columns import Columns
from harness.dataset.file import File, Files
from harness.dataset.read_problems import ReadProblems
from harness.dataset.readers.keyed_file import holds_keys
from harness.dataset.readers.shards import list_table_files, read_first_row
from harness.dataset.reference import DatasetReference
from harness.dataset.rows import read_file_rows
from harness.dataset.source import (
    FormatReader,
    FunctionSource,
    SourceLocation,
    TableRow,
)
from harness.dataset.table_source import TableSource, rows_of_files
from harness.dataset.text_rows import read_json
from harness.dataset.usual_names import normalised_name
from retrievers.errors import collect_errors
from retrievers.ids import to_nfc
from retrievers.types import Document

CONTEXT_COLUMNS = ("context", "contexts", "passage", "passages")
ANSWER_COLUMNS = ("answer", "answers", "groundtruth", "response")
QuotedQuestions = Iterator[tuple[SourceLocation, TableRow | None, Sequence[Document]]]
"""A question with the ids of its passages, None where nothing is asked; and the passages."""


def _parts(
    read: Callable[[ReadProblems], QuotedQuestions], columns: Columns
) -> FunctionSource:
    """Documents, queries and labels of what is read; its problems are reported with the queries."""

    def documents(_: ReadProblems) -> Iterator[tuple[SourceLocation, Document]]:
        seen = set[str]()
        for place, _row, passages in read(ReadProblems()):
            for passage in passages:
                if passage.id not in seen:
                    seen.add(passage.id)
                    yield place, passage

    def questions(problems: ReadProblems) -> Iterator[tuple[SourceLocation, TableRow]]:
        yield from ((place, row) for place, row, _ in read(problems) if row is not None)

    table = TableSource(rows_of_files(), questions, None, columns)
    return FunctionSource(documents, table.queries, table.labels)


def _column(row: TableRow, names: Sequence[str]) -> str | None:
    return next((name for name in row if normalised_name(str(name)) in names), None)


def _is_table(reference: DatasetReference, files: Files) -> bool:
    """Whether the first row of a file has a question and a context, and no documents are named."""
    row = {} if reference.documents else read_first_row(reference, files)
    columns = Columns(reference.columns)
    asks = (
        columns.name("query", row) is not None
        and columns.name("label_document", row) is None
    )
    return asks and _column(row, CONTEXT_COLUMNS) is not None


def _read_table(reference: DatasetReference, files: Files) -> FunctionSource:
    row = read_first_row(reference, files)
    context, answer = (
        _column(row, CONTEXT_COLUMNS) or CONTEXT_COLUMNS[0],
        _column(row, ANSWER_COLUMNS),
    )
    declared = {
        **({"reference": answer} if answer else {}),
        **reference.columns,
        "label_document": context,
    }
    columns = Columns(declared, header=reference.header is True)
    return _parts(
        partial(_table_rows, list_table_files(reference, files), context, answer),
        columns,
    )


def _table_rows(
    files: Sequence[File], context: str, answer: str | None, problems: ReadProblems
) -> QuotedQuestions:
    passages = dict[str, Document]()
    for place, row in (one for file in files for one in read_file_rows(file, problems)):
        texts = read_texts(row.get(context), context, place, problems)
        found = [
            passages.setdefault(text, Document(f"p{len(passages)}", "", text))
            for text in texts
        ]
        changed = {context: [passage.id for passage in found] or None}
        if (
            answer
            and isinstance(answers := row.get(answer), Mapping)
            and "text" in answers
        ):  # SQuAD as a table
            changed[answer] = list(dict.fromkeys(answers["text"]))
        yield place, {**row, **changed} if context in row else row, found


def _paragraphs(file: File, problems: ReadProblems) -> QuotedQuestions:
    """The paragraphs of SQuAD's JSON (https://rajpurkar.github.io/SQuAD-explorer, 1.1 and 2.0) with their questions.

    A question that its paragraph does not answer (`is_impossible`) has grade 0 for it.
    """
    whole = None
    with collect_errors(problems):
        whole = read_json(file)
    for number, article in enumerate(_list(whole, "data")):
        title = article.get("title") if isinstance(article, Mapping) else None
        for position, paragraph in enumerate(_list(article, "paragraphs")):
            place = SourceLocation(
                file.path.with_name(
                    f"{file.path.name}: data[{number}].paragraphs[{position}]"
                )
            )
            text = paragraph.get("context") if isinstance(paragraph, Mapping) else None
            if not isinstance(text, str):
                problems.add(
                    place, "'context' is missing, or no text", "as SQuAD has it"
                )
                continue
            name = title if isinstance(title, str) else ""
            passage = Document(
                to_nfc(f"{name or number}#{position}"), name.replace("_", " "), text
            )
            yield place, None, (passage,)
            for asked in _list(paragraph, "qas"):
                answers = [
                    one.get("text")
                    for one in _list(asked, "answers")
                    if isinstance(one, Mapping)
                ]
                row = (
                    {key: asked.get(key) for key in ("id", "question")}
                    if isinstance(asked, Mapping)
                    else {}
                )
                row |= {
                    "reference": list(dict.fromkeys(filter(None, answers))),
                    "doc_id": passage.id,
                }
                row["grade"] = int(not (row and asked.get("is_impossible")))
                yield SourceLocation(file.path), row, (passage,)


def _paragraph_rows(files: Sequence[File], problems: ReadProblems) -> QuotedQuestions:
    """HotpotQA's questions (https://hotpotqa.github.io): paragraphs by their titles, relevant if they hold a fact.

    Its own files have pairs, `[title, sentences]`; those of the hub an object of lists, `{title: […], sentences: […]}`.
    """
    texts: dict[str, str] = {}
    for place, row in (one for file in files for one in read_file_rows(file, problems)):
        id_, question = row.get("_id", row.get("id")), row.get("question")
        context, facts = (
            _pairs(row.get(name)) for name in ("context", "supporting_facts")
        )
        if (
            not isinstance(id_, str)
            or not isinstance(question, str)
            or context is None
            or facts is None
        ):
            problems.add(
                place,
                "has no id, question, context and supporting_facts",
                "as HotpotQA has them",
            )
            continue
        relevant = {title for title, _ in facts}
        found: dict[bool, list[Document]] = {False: [], True: []}
        for title, sentences in context:
            text = (
                "".join(map(str, sentences))
                if isinstance(sentences, list)
                else str(sentences)
            )
            if texts.setdefault(title, text) != text:
                problems.add(
                    place,
                    f"the paragraph {title!r} has another text than before",
                    "give it another title",
                )
            found[title in relevant].append(Document(title, title, text))
        fields = {key: row[key] for key in ("type", "level") if row.get(key)}
        asked = {
            "id": id_,
            "question": question,
            "reference": row.get("answer"),
            **fields,
        }
        yield (
            place,
            {**asked, "doc_id": [one.id for one in found[True]]},
            [*found[False], *found[True]],
        )


def _pairs(held: object) -> list[tuple[str, Any]] | None:
    """Titles, each with what belongs to it; None where it is something else."""
    if (
        isinstance(held, Mapping)
        and len(held) == 2
        and all(isinstance(one, list) for one in held.values())
    ):
        held = list(zip(*held.values(), strict=False))
    if not isinstance(held, list) or not all(
        isinstance(one, list | tuple) and len(one) == 2 for one in held
    ):
        return None
    return [(to_nfc(str(title)), other) for title, other in held]


def _list(holder: Any, key: str) -> list[Any]:
    """The list under a key; empty where there is none."""
    held = holder.get(key) if isinstance(holder, Mapping) else None
    return held if isinstance(held, list) else []


CONTEXT_TABLE = FormatReader(_is_table, _read_table)
"""A table, a question with its context a row; contexts may be a list."""
HOTPOT = FormatReader(
    lambda reference, files: (
        {"question", "context", "supporting_facts"}
        <= read_first_row(reference, files).keys()
    ),
    lambda reference, files: _parts(
        partial(_paragraph_rows, list_table_files(reference, files)), Columns()
    ),
)
"""HotpotQA, as JSON or in the shards of the hub."""
SQUAD = FormatReader(
    lambda reference, _: holds_keys(reference, "data", "paragraphs", "context", "qas"),
    lambda reference, _: _parts(
        partial(_paragraphs, File(reference.folder)), Columns()
    ),
)
