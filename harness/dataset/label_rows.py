"""Rows to labels.

A row with the list of a query gives its labels at once; labels of that query on another
row are a problem. Judgments of single documents are gathered by query until the last
row has been read. `label_lists` reads one list, and `match_labels` finds the documents
that are named.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from harness.dataset.cell_paths import read_texts
from harness.dataset.columns import (
    declaration,
    declared_field_names,
    not_labels_remedy,
)
from harness.dataset.complaint import Complaint
from harness.dataset.label_lists import read_label_list, unreadable_spans
from harness.dataset.labels import Labels, WrittenSpan
from harness.dataset.placed_row import PlacedRow
from harness.dataset.source import PlacedLabels, SourceLocation
from harness.dataset.split_cell import split_cell, split_elements
from harness.dataset.usual_names import (
    CLICKS_COLUMN,
    NEUTRAL_DOCUMENT_NAMES,
    normalised_name,
)
from harness.dataset.written_spans import read_spans
from harness.dataset.written_values import (
    GRADE_REMEDY,
    parse_cell,
    parse_judgment,
    quoted_value,
)
from harness.english import count_of
from retrievers.ids import document_id
from retrievers.remedy import compose_remedy

HOP_PATTERN = re.compile(r"^\s*<\d+-hop>\s*")
"""Begins each context of Ragas's questions that need several."""
NO_DOCUMENT = (
    "no document is given",
    "name it, or say that nothing answers the query: answerable = no",
)
"""The problem of a blank label, and its remedy."""
QueryIds = Mapping[tuple[str, ...], str]
"""`Query.words` -> its id."""


class GradedDocument(NamedTuple):
    """A document, by its id or by a passage of it, with its grade."""

    document: str
    grade: int


@dataclass(slots=True)
class GatheredLabels:
    """The labels of one query that are on several rows."""

    location: SourceLocation
    """The location of the first row."""
    grades: dict[str, int] = field(default_factory=dict)
    """Document, as it is named -> grade, in the order of first rows."""
    lines: array[int] = field(default_factory=lambda: array("I"))
    """The line of each document, in the order of `grades`."""
    spans: list[WrittenSpan] = field(default_factory=list)
    """The spans of all documents, as they are written."""


def read_labels(
    rows: Iterable[PlacedRow], query_ids: QueryIds | None = None
) -> Iterator[PlacedLabels]:
    """Yield the labels of each query.

    A row is a judgment with a grade, or names relevant documents without one, or has
    the list of a query. A list is best first; a list of lists is groups of
    alternatives; an object has grades. In one cell of text a list is JSON, or ids with
    `|`, `;`, line feeds or commas between them. A repeated pair of query and document
    counts once if there is no column of grades; if that column is `clicks`, its clicks
    are added up; else the second grade is a problem, also an equal one.

    Args:
        rows: of labels, or of queries with their labels.
        query_ids: of queries whose rows have no column for their id.
    """
    reader = _LabelReader(query_ids)
    for row in rows:
        placed_labels = reader.read_row(row)
        if placed_labels is not None:
            yield placed_labels
    yield from reader.finish()


class _LabelReader:
    """Reads rows of labels one by one."""

    def __init__(self, query_ids: QueryIds | None) -> None:
        self._query_ids = query_ids
        self._gathered: dict[str, GatheredLabels] = {}
        self._list_locations: dict[str, SourceLocation] = {}
        """Query -> the row with its list."""
        self._any_quoted = False
        """Whether a column of contexts exists: it quotes documents by their texts."""
        self._first_unlabelled_row: PlacedRow | None = None

    def read_row(self, row: PlacedRow) -> PlacedLabels | None:
        """Return the labels if the row has the list of a query; else gather them."""
        query_id = self._query_id_of(row)
        if query_id is None:
            return None
        document = row.value("label_document")
        relevant = row.value("relevant")
        objects = _first_list_of_objects(document, relevant)
        if objects is not None:
            return self._read_list(row, query_id, objects)
        if document is None and row.name("grade") is not None:
            # Beside a grade, `relevant` names the document that has it.
            document = relevant
        if document is not None or row.name("contexts") is not None:
            self._gather(row, query_id, document)
            return None
        if row.name("relevant") is not None:
            return self._read_list(row, query_id, relevant)
        if row.name("label_document") is not None:
            row.add_problem(*NO_DOCUMENT)
            return None
        # A query without labels may lack the column in which others have lists.
        if self._first_unlabelled_row is None:
            self._first_unlabelled_row = row
        return None

    def _query_id_of(self, row: PlacedRow) -> str | None:
        """Return the id of a row's query; None if there is none, which is a problem."""
        if self._query_ids is not None and row.name("query_id") is None:
            # A row without a text has its problem from the queries.
            words = row.query_words()
            return None if words is None else self._query_ids.get(words)
        is_of_labels = row.name("label_query") is not None
        is_of_labels |= row.columns.is_declared("label_query")
        return row.id("label_query" if is_of_labels else "query_id")

    def _read_list(
        self, row: PlacedRow, query_id: str, cell: Any
    ) -> PlacedLabels | None:
        """Return the labels of a row that lists the documents of its query.

        None, with a problem, if another row has labels of the query, or the list cannot
        be read.
        """
        self._any_quoted |= row.name("contexts") is not None
        if query_id in self._gathered:
            _add_second_list(row, query_id, self._gathered[query_id].location)
            return None
        if query_id in self._list_locations:
            _add_second_list(row, query_id, self._list_locations[query_id])
            return None
        self._list_locations[query_id] = row.location
        labels = read_label_list(cell, row.problems.names_document)
        if isinstance(labels, Complaint):
            row.add_complaint(labels)
            return None
        if row.value("spans") is not None:
            spans = _spans_of_row(row, labels.documents)
            labels = replace(labels, written_spans=(*labels.written_spans, *spans))
        return PlacedLabels(row.location, query_id, labels)

    def _gather(self, row: PlacedRow, query_id: str, document: Any) -> None:
        """Add the judgments of one row; a problem if another row has a list."""
        if query_id in self._list_locations:
            _add_second_list(row, query_id, self._list_locations[query_id])
            return
        self._any_quoted |= row.name("contexts") is not None
        if query_id not in self._gathered:
            self._gathered[query_id] = GatheredLabels(row.location)
        gathered = self._gathered[query_id]
        graded_documents = _graded_documents(row, document)
        if row.value("spans") is not None:
            gathered.spans += _spans_of_row(
                row, [graded.document for graded in graded_documents]
            )
        for id_, grade in graded_documents:
            if id_ not in gathered.grades:
                gathered.grades[id_] = grade
                gathered.lines.append(row.location.line or 0)
            else:
                self._gather_repeated(row, query_id, id_, grade)

    def _gather_repeated(
        self, row: PlacedRow, query_id: str, document: str, grade: int
    ) -> None:
        """Add the judgment of a document that the query has already.

        It is noted if there is no column of grades; clicks are added up; any other
        grade is a problem.
        """
        grade_column = row.name("grade")
        if grade_column is None:
            row.problems.note("repeated-label", f"{query_id} {document}")
        elif normalised_name(grade_column) == CLICKS_COLUMN:
            self._gathered[query_id].grades[document] += grade
        else:
            query = f"query {query_id!r}"
            if self._query_ids is not None:
                query = "the query"  # its id is not in the file
            problem = f"{query} and document {document!r} are judged twice"
            row.add_problem(problem, "keep one of the two")

    def finish(self) -> Iterator[PlacedLabels]:
        """Yield the gathered labels; a problem if no column names documents."""
        # If other rows have lists, this one merely lacks that column.
        row = self._first_unlabelled_row
        if row is not None and not self._list_locations:
            if not _has_documents_as_field(row):
                _add_missing_document_column(row)
        for query_id, gathered in self._gathered.items():
            location = gathered.location._replace(lines=gathered.lines)
            labels = Labels(
                grades=gathered.grades,
                quoted=self._any_quoted,
                written_spans=tuple(gathered.spans),
            )
            yield PlacedLabels(location, query_id, labels)


def _add_second_list(row: PlacedRow, query_id: str, first: SourceLocation) -> None:
    """Add the problem of labels beside a row with the list of the same query."""
    problem = f"query {query_id!r} has labels on two rows"
    row.add_problem(problem, f"also {first}")


def _spans_of_row(row: PlacedRow, documents: Sequence[str]) -> tuple[WrittenSpan, ...]:
    """Return the spans in a row's own column; they are of its only document."""
    cell = row.value("spans")
    if len(documents) != 1:
        problem = f"has spans and {len(documents)} documents"
        remedy = 'give each document its spans: [{"document_id": …, "spans": […]}]'
        row.add_problem(problem, remedy)
        return ()
    spans = read_spans(cell, documents[0])
    if spans is None:
        row.add_problem(*unreadable_spans(cell))
        return ()
    return spans


def _first_list_of_objects(*cells: Any) -> list[Any] | None:
    for cell in map(parse_cell, cells):
        if isinstance(cell, list) and any(isinstance(part, Mapping) for part in cell):
            return cell
    return None


def _graded_documents(row: PlacedRow, document: Any) -> list[GradedDocument]:
    """Return the documents of a row with their grades: one for each, or one for all."""
    documents = _documents_of(row, document)
    grade_cell = 1 if row.name("grade") is None else parse_cell(row.value("grade"))
    grade_cells = [grade_cell] * len(documents)
    if isinstance(grade_cell, list):
        grade_cells = grade_cell
        if len(grade_cell) != len(documents):
            grade_count = count_of(len(grade_cell), "grade")
            problem = f"{grade_count} of {count_of(len(documents), 'document')}"
            row.add_problem(problem, "give each document one, or one to all")
            return []
    graded_documents = []
    for id_, cell in zip(documents, grade_cells, strict=True):
        grade = parse_judgment(cell)
        if grade is None:
            problem = f"grade {quoted_value(grade_cell)} is not a whole number"
            if grade_cell is None:
                problem = "no grade is given"
            row.add_problem(problem, GRADE_REMEDY)
            return []
        graded_documents.append(GradedDocument(id_, grade))
    return graded_documents


def _documents_of(row: PlacedRow, document: Any) -> list[str]:
    """Return the documents of a row, by id or by passage."""
    if document is None:
        contexts = row.value("contexts")
        column = row.name("contexts") or ""
        texts = read_texts(contexts, column, row.location, row.problems)
        return [HOP_PATTERN.sub("", text) for text in texts]
    cell = document
    if isinstance(cell, str):
        cell = split_cell(cell, row.problems.names_document)
    ids = [document_id(part) for part in (cell if isinstance(cell, list) else [cell])]
    if None in ids or not ids:
        problem = f"the document's id is {quoted_value(document)}"
        remedy = "an id is text"
        if isinstance(document, str) and not document.strip():
            problem, remedy = NO_DOCUMENT
        row.add_problem(problem, remedy)
        return []
    return split_elements(map(str, ids), row.problems.names_document)


def _has_documents_as_field(row: PlacedRow) -> bool:
    """Whether a column with the name of one of documents is declared as a field."""
    return any(
        normalised_name(name) in NEUTRAL_DOCUMENT_NAMES and row.row.has(name)
        for name in declared_field_names(row.columns.declared)
    )


def _add_missing_document_column(row: PlacedRow) -> None:
    """Add the problem that no column names documents."""
    grade_column = row.name("grade")
    if grade_column is None or row.name("label_query") is not None:
        row.add_complaint(row.columns.missing_column("label_document", row.row))
        return
    row.add_problem(
        f"{grade_column!r} could hold grades, and no column names the documents",
        compose_remedy(
            "say which: ",
            declaration("label_document"),
            "; ",
            not_labels_remedy(grade_column),
        ),
    )
