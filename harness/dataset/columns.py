"""Which column holds what: rows of a table become documents, queries and labels."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.dataset.expected import read_reference
from harness.dataset.model import Labels
from harness.dataset.rows import Row
from harness.dataset.source import WHOLE, Findings, Place, grade_of, parse_json
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import Document, Query

KNOWN: dict[str, tuple[str, ...]] = {
    "document_id": ("_id", "id", "doc_id", "docid", "document_id", "docno", "corpus-id", "corpus_id", "pid"),
    "title": ("title", "heading"),
    "text": ("text", "contents", "content", "body", "document", "passage", "page_content"),
    "query_id": ("_id", "id", "query-id", "query_id", "qid"),
    "query": ("text", "query", "question", "user_input"),
    "label_query": ("query-id", "query_id", "qid"),
    "label_document": ("corpus-id", "corpus_id", "doc_id", "docid", "document_id", "docno", "pid"),
    "grade": ("score", "grade", "relevance", "rel", "label"),
    "reference": ("reference", "reference_answer", "generation_gt"),
    "claims": ("claims",),
    "relevant": ("relevant_documents", "relevant_docs", "relevant", "relevant_ids", "doc_ids", "positives"),
}
"""What a column may be called where the experiment does not declare it; the first one that is there counts."""
TEXT = "write it as a string"
LISTS = "|;\n,"
"""What parts the ids of a list in one cell: the first of these that stands in it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of columns: declared ones, else those of `KNOWN`."""

    declared: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if wrong := [key for key in self.declared if key not in KNOWN]:
            raise InputError([Problem(f"dataset.columns.{key}", "is no kind of column", did_you_mean(key, KNOWN))
                              for key in wrong])  # fmt: skip

    def name(self, kind: str, row: Row) -> str | None:
        """The column of a kind in this row, None where there is none."""
        declared = self.declared.get(kind)
        if declared is not None:
            return declared if _has(row, declared) else None
        return next((name for name in KNOWN[kind] if name in row), None)

    def value(self, kind: str, row: Row) -> Any:
        """What stands in the column of a kind; None where there is no such column.

        >>> Columns({"query": "inputs.question"}).value("query", {"inputs": {"question": "why"}})
        'why'
        """
        name = self.name(kind, row)
        if name is None or name in row:
            return None if name is None else row[name]
        value: Any = row
        for part in name.split("."):
            value = value[part]
        return value

    def labelled(self, row: Row) -> bool:
        """Whether a row has, or is declared to have, a column of labels."""
        kinds = ("label_document", "relevant", "grade")
        return any(kind in self.declared or self.name(kind, row) is not None for kind in kinds)

    def lacking(self, kind: str, row: Row) -> Problem:
        """A complaint, without its place, that a row has no such column."""
        declared = self.declared.get(kind)
        names = [str(name) for name in row]
        if declared is not None:
            return Problem("", f"there is no column {declared!r}", did_you_mean(declared, names))
        remedy = f'there are: {", ".join(names[:8])}; say which: columns = {{ {kind} = "…" }}'
        return Problem("", f"{KNOWN[kind][0]!r} is missing", remedy)


def document_of(row: Row, place: Place, columns: Columns, problems: Findings) -> Document | None:
    """Read a document; None after a complaint."""
    named = columns.name("document_id", row), columns.name("title", row), columns.name("text", row)
    id_, title, text = (None if name is None else row.get(name) for name in named)
    if not (isinstance(id_, str) and id_ and not id_.isspace() and isinstance(text, str)):  # or else as told below
        id_ = _id(row, "document_id", place, columns, problems)
        text = _text(row, "text", place, columns, problems)
        title = columns.value("title", row)
    if title is None and named[1] is not None and named[1] not in row:  # a path into the row
        title = columns.value("title", row)
    if title is not None and not isinstance(title, str):
        problems.append(Problem(str(place), f"'title' is not a string but {_shown(title)}", TEXT))
        return None
    return None if id_ is None or text is None else Document(id_, title or "", text, fields_of(row, named))


def query_of(row: Row, place: Place, columns: Columns, problems: Findings, *, unnamed: str) -> Query | None:
    """Read a query; without a column for its id it is called `unnamed`; None after a complaint."""
    named = columns.name("query_id", row) is not None or "query_id" in columns.declared
    id_ = _id(row, "query_id", place, columns, problems) if named else unnamed
    text = _text(row, "query", place, columns, problems)
    if id_ is None or text is None:
        return None
    kinds = ("query_id", "query", "label_document", "grade", "relevant", "reference", "claims")
    used = {columns.name(kind, row) for kind in kinds}
    reference = read_reference(columns.value("reference", row), columns.value("claims", row), place, problems)
    return Query(id_, text, fields_of(row, used), reference)


def fields_of(row: Row, used: Iterable[str | None]) -> dict[str, str]:
    """Further keys with plain values: those of the row, and those of its `metadata`."""
    taken = {"metadata", *used}
    if len(row) <= len(taken) and row.keys() <= taken and "metadata" not in row:
        return {}
    metadata = row.get("metadata")
    extra = {**(metadata if isinstance(metadata, Mapping) else {}), **row}
    return {
        str(key): str(value)
        for key, value in extra.items()
        if key not in taken and isinstance(value, str | int | float) and value != "" and value == value
    }


@dataclass(slots=True)
class Gathered:
    """Judgments that stand one a row, gathered by query."""

    places: dict[str, Place] = field(default_factory=dict)
    grades: dict[str, dict[str, int]] = field(default_factory=dict)
    lines: dict[str, array[int]] = field(default_factory=dict)

    def add(self, place: Place, query: str, document: str, grade: int, problems: Findings) -> None:
        """Take in one judgment; a document that is judged twice for a query becomes a problem."""
        judged = self.grades.get(query)
        if judged is None:
            judged = self.grades[query] = {}
            self.places[query], self.lines[query] = place, array("I")
        if document in judged:
            problems.append(
                Problem(
                    str(place), f"query {query!r} and document {document!r} are judged twice", "keep one of the two"
                )
            )
        else:
            judged[document] = grade
            self.lines[query].append(place.line or 0)

    def labels(self) -> Iterator[tuple[Place, str, Labels]]:
        """The labels of each query, at the place of its first row, with the line of each document."""
        for query, judged in self.grades.items():
            yield self.places[query]._replace(lines=self.lines[query]), query, Labels(grades=judged)


def labels_of(
    rows: Iterable[tuple[Place, Row]], columns: Columns, problems: Findings, queries: Mapping[str, str] | None = None
) -> Iterator[tuple[Place, str, Labels]]:
    """Labels in any of three shapes: a row a judgment with a grade, a row a relevant document, or a list a query.

    A list is best first, a list of lists are groups of alternatives, an object holds grades; in one cell of text it is
    JSON, or ids with `|`, `;`, line feeds or commas between.

    Args:
        rows: of the labels, or of queries that carry their labels.
        columns: what they are called.
        problems: where complaints go.
        queries: text -> id, where the rows have no column for a query's id.
    """  # fmt: skip
    gathered, listed = Gathered(), dict[str, Place]()
    for place, row in rows:
        query = _query_named(row, place, columns, problems, queries)
        if query is None:
            continue
        document = columns.value("label_document", row)
        if document is not None:
            grade = _grade(row, place, columns, problems)
            id_ = plain_id(document)
            if id_ is None:
                problems.append(Problem(str(place), f"the document's id is {_shown(document)}", "an id is text"))
            elif grade is not None:
                gathered.add(place, query, id_, grade, problems)
        elif columns.name("relevant", row) is None:
            lacking = columns.lacking("relevant" if "relevant" in columns.declared else "label_document", row)
            problems.append(lacking._replace(where=str(place)))
            return  # the same for every row
        elif query in listed:
            problems.append(Problem(str(place), f"query {query!r} has labels on two rows", f"also {listed[query]}"))
        else:
            labels = list_of(columns.value("relevant", row), place, problems)
            listed[query] = place
            if labels is not None:
                yield place, query, labels
    yield from gathered.labels()


def list_of(listed: Any, place: Place, problems: Findings) -> Labels | None:
    """Read one query's list of relevant documents: ids best first, groups, or grades by id; None after a complaint."""
    if isinstance(listed, str):
        listed = _cell(listed)
    if isinstance(listed, Mapping):
        grades = {str(doc): grade_of(grade) for doc, grade in listed.items() if grade is not None}
        if wrong := [doc for doc, grade in grades.items() if grade is None]:
            problems.append(
                Problem(str(place), f"grade {listed[wrong[0]]!r} of document {wrong[0]!r} is no whole number", WHOLE)
            )
            return None
        return Labels(grades={doc: grade for doc, grade in grades.items() if grade is not None})
    if listed is None:
        return Labels(ranked=())
    if isinstance(listed, Sequence) and all(isinstance(one, Sequence) and not isinstance(one, str) for one in listed):
        groups = [[plain_id(doc) for doc in group] for group in listed]
        if listed and all(doc is not None for group in groups for doc in group):
            return Labels(groups=tuple(tuple(str(doc) for doc in group) for group in groups if group))
        if not listed:
            return Labels(ranked=())
    elif isinstance(listed, Sequence):
        ids = [plain_id(doc) for doc in listed]
        if all(doc is not None for doc in ids):
            return Labels(ranked=tuple(str(doc) for doc in ids))
    problems.append(
        Problem(str(place), f"relevant documents cannot be read: {_shown(listed)}", "a list of ids, best first")
    )
    return None


def _cell(text: str) -> Any:
    """What one cell of text lists."""
    text = text.strip()
    if text[:1] in ("[", "{"):
        try:
            return parse_json(text)
        except ValueError:
            return text  # told by the caller, which expects no text
    between = next((mark for mark in LISTS if mark in text), None)
    return [one.strip() for one in text.split(between) if one.strip()] if between else [text] if text else []


def _query_named(
    row: Row, place: Place, columns: Columns, problems: Findings, queries: Mapping[str, str] | None
) -> str | None:
    if queries is not None:
        return queries.get(str(columns.value("query", row)))  # what has no text was told with the queries
    kind = "label_query" if columns.name("label_query", row) or "label_query" in columns.declared else "query_id"
    return _id(row, kind, place, columns, problems)


def _grade(row: Row, place: Place, columns: Columns, problems: Findings) -> int | None:
    if columns.name("grade", row) is None:
        if "grade" in columns.declared:
            problems.append(columns.lacking("grade", row)._replace(where=str(place)))
            return None
        return 1
    written = columns.value("grade", row)
    grade = grade_of(written)
    if grade is None:
        problems.append(Problem(str(place), f"grade {_shown(written)} is no whole number", WHOLE))
    return grade


def plain_id(value: object) -> str | None:
    """An id as text, whole numbers as their digits; None where it is neither, or blank.

    >>> plain_id(7), plain_id(7.0), plain_id("a"), plain_id(" "), plain_id(0.5), plain_id(True)
    ('7', '7', 'a', None, None, None)
    """
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str(int(value)) if float(value).is_integer() else None


def _id(row: Row, kind: str, place: Place, columns: Columns, problems: Findings) -> str | None:
    value = columns.value(kind, row)
    id_ = plain_id(value)
    if id_ is None:
        name = columns.name(kind, row)
        if name is None:
            problems.append(columns.lacking(kind, row)._replace(where=str(place)))
        else:
            empty = value is None or isinstance(value, str)
            what = "is missing or empty" if empty else f"is no id but {_shown(value)}"
            problems.wrong(place, f"{name!r} {what}", "an id is text or a whole number")
    return id_


def _text(row: Row, kind: str, place: Place, columns: Columns, problems: Findings) -> str | None:
    name = columns.name(kind, row)
    if name is None:
        problems.append(columns.lacking(kind, row)._replace(where=str(place)))
        return None
    value = columns.value(kind, row)
    if not isinstance(value, str):
        problems.append(Problem(str(place), f"{name!r} is not a string but {_shown(value)}", TEXT))
        return None
    return value


def _has(row: Row, path: str) -> bool:
    value: Any = row
    if path in row:
        return True
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return False
        value = value[part]
    return True


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return re.sub(r"\s+", " ", text)[:40]
