"""Questions beside the passages that answer them: SQuAD's, HotpotQA's, or a table of question, answer and context.

The passages are the documents. A passage that comes again is the same document; so is a question without an id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from harness.dataset.columns import Columns, fields_of, folded, id_in, texts_in
from harness.dataset.dataset_model import DatasetReference, Labels
from harness.dataset.files import File, Files, Reader
from harness.dataset.label_rows import Gathered
from harness.dataset.rows import Row, read_json, read_rows
from harness.dataset.source import WHOLE, Findings, Parts, Place, grade_of, read_reference
from harness.dataset.table_folder import first_row, table_files
from harness.dataset.tool_exports import holds_keys
from retrievers.errors import InputError
from retrievers.ids import nfc
from retrievers.types import Document, Query

CONTEXTS = ("context", "contexts", "passage", "passages")
ANSWERS = ("answer", "answers", "groundtruth", "response")


class Quoted(NamedTuple):
    """Some passages, and what is asked of them; a paragraph of which nothing is asked has no query."""

    place: Place
    passages: tuple[Document, ...]
    query: Query | None = None
    grade: int = 1


ReadQuoted = Callable[[Findings], Iterable[Quoted]]


def parts(read: ReadQuoted) -> Parts:
    """Documents, queries and labels of what is read; its problems are reported with the queries."""
    return Parts(partial(_documents, read), partial(_queries, read), partial(_labels, read))


def _documents(read: ReadQuoted, _: Findings) -> Iterator[tuple[Place, Document]]:
    seen = set[str]()
    for one in read(Findings()):
        for passage in one.passages:
            if passage.id not in seen:
                seen.add(passage.id)
                yield one.place, passage


def _queries(read: ReadQuoted, problems: Findings) -> Iterator[tuple[Place, Query]]:
    seen = dict[str, str]()
    for one in read(problems):
        if one.query is not None and seen.get(one.query.id) != one.query.text:
            seen[one.query.id] = one.query.text
            yield one.place, one.query


def _labels(read: ReadQuoted, problems: Findings) -> Iterator[tuple[Place, str, Labels]]:
    gathered = Gathered()
    for one in read(Findings()):
        if one.query is None:
            continue
        for passage in one.passages:
            if gathered.grades.get(one.query.id, {}).get(passage.id) != one.grade:
                gathered.add(one.place, one.query.id, passage.id, one.grade, problems)
    yield from gathered.labels()


def _is_table(reference: DatasetReference, files: Files) -> bool:
    """Whether the first row of a file has a question and a context, and no documents are named."""
    row = {} if reference.documents else first_row(reference, files)
    columns = Columns(reference.columns)
    asks = columns.name("query", row) is not None and columns.name("label_document", row) is None
    return asks and _context_column(row) is not None


def _read_table(reference: DatasetReference, files: Files) -> Parts:
    columns = Columns(reference.columns, header=reference.header is True)
    return parts(partial(_table_rows, table_files(reference, files), columns))


def _context_column(row: Row) -> str | None:
    return next((name for name in row if folded(str(name)) in CONTEXTS), None)


def _table_rows(files: Sequence[File], columns: Columns, problems: Findings) -> Iterator[Quoted]:
    passages, named = dict[str, Document](), dict[str, str]()
    for place, row in (one for file in files for one in read_rows(file, problems)):
        query_column, context = columns.name("query", row), _context_column(row)
        text = columns.value("query", row)
        if query_column is None or context is None or not isinstance(text, str):
            remedy = "every row has a question, which is text, and its context"
            problems.wrong(place, "holds no question with a context", remedy)
            continue
        answer = next((name for name in row if folded(str(name)) in ANSWERS), columns.name("reference", row))
        id_column, grades = columns.name("query_id", row), columns.name("grade", row)
        id_ = named.setdefault(text, f"q{len(named)}")
        if id_column is not None:
            id_ = id_in(row, "query_id", place, columns, problems) or id_
        grade = 1 if grades is None else grade_of(row[grades])
        if grade is None:
            problems.wrong(place, f"grade {row[str(grades)]!r:.40} is not a whole number", WHOLE)
            continue
        for one in texts_in(row[context], context, place, problems):
            passages.setdefault(one, Document(f"p{len(passages)}", "", one))
        found = tuple(passages[one] for one in texts_in(row[context], context, place, Findings()))
        kinds = {query_column: "query", context: "text", answer: "reference", id_column: "query_id", grades: "grade"}
        taken = {str(name): kind for name, kind in kinds.items() if name is not None}
        problems.counter(place.file)["row"] += 1
        problems.taken.setdefault(place.file, {name: taken.get(name, "fields") for name in row})
        expected = read_reference(None if answer is None else _answers(row[answer]), None, place, problems)
        yield Quoted(place, found, Query(id_, text, fields_of(row, taken), expected), grade)


def _paragraphs(file: File, problems: Findings) -> Iterator[Quoted]:
    """The paragraphs of SQuAD's JSON (https://rajpurkar.github.io/SQuAD-explorer, 1.1 and 2.0) with their questions.

    A question that its paragraph does not answer (`is_impossible`) has grade 0 for it.
    """
    try:
        whole = read_json(file)
    except InputError as error:
        problems.extend(error.problems)
        return
    for number, article in enumerate(_list(whole, "data")):
        title = article.get("title") if isinstance(article, Mapping) else None
        for position, paragraph in enumerate(_list(article, "paragraphs")):
            place = Place(file.path.with_name(f"{file.path.name}: data[{number}].paragraphs[{position}]"))
            text = paragraph.get("context") if isinstance(paragraph, Mapping) else None
            if not isinstance(text, str):
                problems.wrong(place, "'context' is missing, or no text", "as SQuAD has it")
                continue
            name = title if isinstance(title, str) else ""
            passage = Document(nfc(f"{name or number}#{position}"), name.replace("_", " "), text)
            yield Quoted(place, (passage,))
            for asked in _list(paragraph, "qas"):
                id_, question = (asked.get(key) if isinstance(asked, Mapping) else None for key in ("id", "question"))
                if not isinstance(id_, str) or not isinstance(question, str):
                    problems.wrong(place, "a question has no id or no text", '{"id": …, "question": …}')
                    continue
                answers = [one.get("text") for one in _list(asked, "answers") if isinstance(one, Mapping)]
                expected = read_reference(list(dict.fromkeys(filter(None, answers))), None, place, problems)
                yield Quoted(
                    place, (passage,), Query(nfc(id_), question, {}, expected), int(not asked.get("is_impossible"))
                )


def _answers(cell: object) -> object:
    """The texts of answers, which SQuAD keeps with their places where it is a table."""
    return list(dict.fromkeys(cell["text"])) if isinstance(cell, Mapping) and "text" in cell else cell


def _paragraph_rows(files: Sequence[File], problems: Findings) -> Iterator[Quoted]:
    """HotpotQA's questions (https://hotpotqa.github.io): paragraphs by their titles, relevant if they hold a fact.

    Its own files have pairs, `[title, sentences]`; those of the hub an object of lists, `{title: […], sentences: […]}`.
    """
    texts: dict[str, str] = {}
    for place, row in (one for file in files for one in read_rows(file, problems)):
        id_, question = row.get("_id", row.get("id")), row.get("question")
        context, facts = (_pairs(row.get(name)) for name in ("context", "supporting_facts"))
        if not isinstance(id_, str) or not isinstance(question, str) or context is None or facts is None:
            problems.wrong(place, "has no id, question, context and supporting_facts", "as HotpotQA has them")
            continue
        relevant = {title for title, _ in facts}
        found: dict[bool, list[Document]] = {True: [], False: []}
        for title, sentences in context:
            text = "".join(map(str, sentences)) if isinstance(sentences, list) else str(sentences)
            if texts.setdefault(title, text) != text:
                problems.wrong(place, f"the paragraph {title!r} has another text than before", "give it another title")
            found[title in relevant].append(Document(title, title, text))
        expected = read_reference(row.get("answer"), None, place, problems)
        fields = {key: str(row[key]) for key in ("type", "level") if row.get(key)}
        yield Quoted(place, tuple(found[False]))
        yield Quoted(place, tuple(found[True]), Query(nfc(id_), question, fields, expected))


def _pairs(held: object) -> list[tuple[str, Any]] | None:
    """Titles, each with what belongs to it; None where it is something else."""
    if isinstance(held, Mapping) and len(held) == 2 and all(isinstance(one, list) for one in held.values()):
        held = list(zip(*held.values(), strict=False))
    if not isinstance(held, list) or not all(isinstance(one, list | tuple) and len(one) == 2 for one in held):
        return None
    return [(nfc(str(title)), other) for title, other in held]


def _list(holder: Any, key: str) -> list[Any]:
    """The list under a key; empty where there is none."""
    held = holder.get(key) if isinstance(holder, Mapping) else None
    return held if isinstance(held, list) else []


ROWS = Reader(_is_table, _read_table)
"""A table, a question with its context a row; contexts may be a list."""
HOTPOT = Reader(
    lambda reference, files: {"question", "context", "supporting_facts"} <= first_row(reference, files).keys(),
    lambda reference, files: parts(partial(_paragraph_rows, table_files(reference, files))),
)
"""HotpotQA, as JSON or in the shards of the hub."""
SQUAD = Reader(
    lambda reference, _: holds_keys(reference, "data", "paragraphs", "context", "qas"),
    lambda reference, _: parts(partial(_paragraphs, File(reference.folder))),
)
