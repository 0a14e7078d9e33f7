"""Rows as a source.

A `TableSource` yields documents, queries and labels from the rows of tables, and reads
these anew each time. Without a table of labels, they are in the rows of the queries.
Meanwhile it notes how each column is used, and samples the cells of columns without a
kind, fields of queries too: they may hold labels.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from harness.dataset.columns import Columns
from harness.dataset.events import list_label_rows
from harness.dataset.file import File
from harness.dataset.label_rows import read_labels
from harness.dataset.placed_row import PlacedRow
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row import Row
from harness.dataset.rows import read_file_rows
from harness.dataset.source import LocatedDocument, LocatedQuery, PlacedLabels
from harness.dataset.usual_names import (
    DOCUMENT_KINDS,
    DOCUMENT_NAMING_KINDS,
    FIELDS_KIND,
    LABEL_KINDS,
    QUERY_KINDS,
    UNLABELLED_QUERY_KINDS,
)
from retrievers.errors import did_you_mean
from retrievers.ids import document_id
from retrievers.types import Query

RowSource = Callable[[ReadProblems], Iterable[Row]]
"""Reads the rows of a part anew with each call, and adds the problems of its files."""
REQUIRED_QUERY_KINDS = ("query_id", "query")
OPTIONAL_QUERY_KINDS = ("reference", "claims", "history", "exclude")
SAMPLED_ROWS = 200
"""Rows, at most, whose cells are sampled to find out if they name documents."""
MAX_SAMPLED_CELL_LENGTH = 20_000
"""Characters of a sampled cell, at most: ten passages of MS MARCO have 4,000."""
PLACEHOLDER_QUERY = re.compile(
    r"(?i)to-?do|tbd|tba|n/?a|none|null|unknown|test|xxx*|fixme|question|query|[^\w]*"
)
"""Texts of queries that were not written yet."""
FREQUENT_QUERY_FACTOR = 5
"""A query on this many times the median number of rows may be a placeholder."""
MAX_SHOWN_QUERY_LENGTH = 40
"""Characters of a query that a message shows."""
MAX_HEADERS = 64
"""Sets of columns, at most, that are noted: each row of JSON may have another one."""


def rows_of_files(*files: File) -> RowSource:
    """Return the rows of some files, one file after the other."""

    def read_all(problems: ReadProblems) -> Iterator[Row]:
        for file in files:
            yield from read_file_rows(file, problems)

    return read_all


@dataclass(frozen=True, slots=True)
class _TablePart:
    """The columns of one part of a data set."""

    kinds: tuple[str, ...]
    """Kinds of columns that the part may have."""
    required: tuple[str, ...]
    """Kinds that, if they are declared, each row must have."""
    optional: tuple[str, ...]
    """Kinds that, if they are declared, at least one row must have."""


DOCUMENT_PART = _TablePart(
    DOCUMENT_KINDS, required=("document_id", "text"), optional=("title",)
)
QUERY_PART = _TablePart(
    UNLABELLED_QUERY_KINDS, REQUIRED_QUERY_KINDS, OPTIONAL_QUERY_KINDS
)
LABELLED_QUERY_PART = _TablePart(
    QUERY_KINDS,
    required=REQUIRED_QUERY_KINDS,
    optional=(*OPTIONAL_QUERY_KINDS, *LABEL_KINDS, "spans"),
)
LABEL_PART = _TablePart(QUERY_KINDS, required=LABEL_KINDS, optional=("spans",))


@dataclass(frozen=True, slots=True)
class TableSource:
    """Rows of documents, of queries, and of labels if queries do not have them."""

    document_rows: RowSource
    query_rows: RowSource
    label_rows: RowSource | None
    """None if the rows of queries have the labels, too."""
    columns: Columns = field(default_factory=Columns)

    def documents(self, problems: ReadProblems) -> Iterator[LocatedDocument]:
        """Yield one document per row."""
        reader = _PartReader(DOCUMENT_PART, self.columns, problems)
        for row in reader.read(self.document_rows(problems)):
            document = row.document()
            if document is not None:
                yield row.location, document

    def queries(self, problems: ReadProblems) -> Iterator[LocatedQuery]:
        """Yield one query per row.

        Without a column of ids, the ids are q0, q1, and so on. If rows have labels, a
        query may be on several rows: one for each label.
        """
        may_have_labels = self.label_rows is None
        part = LABELLED_QUERY_PART if may_have_labels else QUERY_PART
        queries = _DistinctQueries(self.columns, problems, may_have_labels)
        reader = _PartReader(part, self.columns, problems)
        for row in reader.read(self.query_rows(problems)):
            query = row.query(queries.next_id, has_labels=may_have_labels)
            if query is not None and queries.add(query, row):
                yield row.location, query
        queries.note_placeholders()

    def labels(self, problems: ReadProblems) -> Iterator[PlacedLabels]:
        """Yield the labels of each query.

        If the rows of queries have them, `queries` has reported the problems of reading
        these rows.
        """
        if self.label_rows is None:
            yield from self._labels_of_queries(problems)
            return
        columns = replace(self.columns, are_labels=True)
        reader = _PartReader(LABEL_PART, columns, problems)
        rows = list_label_rows(reader.read(self.label_rows(problems)), columns)
        yield from read_labels(rows)

    def _labels_of_queries(self, problems: ReadProblems) -> Iterator[PlacedLabels]:
        """Yield the labels in the rows of queries, if any has a column of labels."""
        rows = [
            PlacedRow(row, self.columns, problems)
            for row in self.query_rows(ReadProblems())
        ]
        if not any(self.columns.has_labels(row.row) for row in rows):
            return
        query_ids: dict[tuple[str, ...], str] = {}  # the same as those of `queries`
        for row in rows:
            words = row.query_words() if row.name("query_id") is None else None
            if words is not None:
                query_ids.setdefault(words, f"q{len(query_ids)}")
        chosen = list_label_rows(rows, self.columns)
        label_rows = (row for row in chosen if self._must_have_labels(row))
        yield from read_labels(label_rows, query_ids or None)

    def _must_have_labels(self, row: PlacedRow) -> bool:
        """Whether a row of a query is read for labels, so that it must have some."""
        if not self.columns.has_labels(row.row) and row.value("claims"):
            return False  # claims are measured without labels
        if not isinstance(row.text_cell("query"), str):
            return False  # a problem of the queries, and so is an id that is missing
        if row.name("query_id") is not None and not document_id(row.value("query_id")):
            return False
        if all(map(row.is_blank, ("label_document", "grade"))):
            return False  # nobody has filled in the document or its grade
        if not any(map(row.value, DOCUMENT_NAMING_KINDS)) and _has_no_answer(row):
            return False
        # Without its declared id or text, a row is a problem of the queries; without a
        # declared column of labels, it has no labels.
        needed = (*REQUIRED_QUERY_KINDS, *LABEL_KINDS)
        return not self.columns.missing_kinds(row.row, needed)


def _has_no_answer(row: PlacedRow) -> bool:
    """Whether a row says that its query has no answer."""
    return Query("", "", row.row.further_fields(())).unanswerable


class _DistinctQueries:
    """The queries of a table, in which a query may be on several rows."""

    def __init__(
        self, columns: Columns, problems: ReadProblems, may_have_labels: bool
    ) -> None:
        self._columns = columns
        self._problems = problems
        self._may_have_labels = may_have_labels
        self._ids_by_words: dict[tuple[str, ...], str] = {}
        """`Query.words` -> its id, if queries have no column of ids."""
        self._words_by_id: dict[str, tuple[str, ...]] = {}
        """The reverse, if queries have a column of ids, and labels."""
        self._excluded_by_id: dict[str, tuple[str, ...]] = {}
        self._rows_by_words = Counter[tuple[str, ...]]()
        """`Query.words` -> its rows, if queries have no column of ids."""
        self._count_without_id = 0

    @property
    def next_id(self) -> str:
        """The id of the next query without one."""
        return f"q{self._count_without_id}"

    def add(self, query: Query, row: PlacedRow) -> bool:
        """Add a query; False if the row is one more label of an earlier one."""
        if row.name("query_id") is None:
            is_new = self._add_without_id(query, row)
            query_id = query.id if is_new else self._ids_by_words[query.words]
        else:
            is_new = self._add_with_id(query, row)
            query_id = query.id
        excluded = self._excluded_by_id.setdefault(query_id, query.excluded)
        if query.excluded not in ((), excluded):
            problem = f"{query.text[:MAX_SHOWN_QUERY_LENGTH]!r} leaves out other "
            problem += "documents than on its first row"
            row.add_problem(problem, "list all of them on its first row")
        return is_new

    def _add_with_id(self, query: Query, row: PlacedRow) -> bool:
        """Add a query; False if the row has one more label of an earlier one.

        A row with a list has all labels of its query: a second one is a new query,
        whose repeated id is a problem.
        """
        has_list = row.name("relevant") is not None
        has_document = row.name("label_document") is not None
        if self._may_have_labels and (has_document or not has_list):
            if self._words_by_id.get(query.id) == query.words:
                return False
            self._words_by_id[query.id] = query.words
        return True

    def _add_without_id(self, query: Query, row: PlacedRow) -> bool:
        self._rows_by_words[query.words] += 1
        first_id = self._ids_by_words.get(query.words)
        if not self._may_have_labels or first_id is None:
            self._ids_by_words[query.words] = query.id
            self._count_without_id += 1
            return True
        if not query.text.strip():
            self._problems.note("blank-query", first_id)
        elif not self._columns.has_labels(row.row):
            self._problems.note("repeated-row", first_id)
        return False

    def note_placeholders(self) -> None:
        """Note the texts on several rows that are placeholders for queries."""
        if not self._rows_by_words:
            return
        usual_rows = median(self._rows_by_words.values())
        many_rows = FREQUENT_QUERY_FACTOR * max(1, usual_rows)
        for (*_, text), rows in self._rows_by_words.items():
            is_placeholder = PLACEHOLDER_QUERY.fullmatch(text.strip()) is not None
            if rows > 1 and (is_placeholder or rows >= many_rows):
                shown_text = text.strip()[:MAX_SHOWN_QUERY_LENGTH]
                note = f"{shown_text!r} on {rows:,} rows"
                self._problems.note("placeholder-query", note)


class _PartReader:
    """Reads the rows of one part, and notes how their columns are read."""

    def __init__(
        self, part: _TablePart, columns: Columns, problems: ReadProblems
    ) -> None:
        self._part = part
        self._columns = columns
        self._problems = problems
        self._kinds_by_header: dict[tuple[str, ...], dict[str, str]] = {}
        """Columns of a row -> how each of them is read."""
        self._absent_kinds = [*filter(columns.is_declared, part.optional)]
        """Optional kinds whose declared column no row has had so far."""
        self._path: Path | None = None
        self._file = ""

    def read(self, rows: Iterable[Row]) -> Iterator[PlacedRow]:
        """Yield the rows.

        A row without a column that is declared and required becomes a problem.
        """
        for row in rows:
            path = row.location.path
            if path is not self._path:
                self._path = path
                self._file = row.location.file
            sizes = self._problems.table_sizes[self._file]
            sizes["row"] += 1
            placed_row = PlacedRow(row, self._columns, self._problems)
            header = tuple(row.cells)
            if header not in self._kinds_by_header:
                self._note_header(header, placed_row)
            if self._part != DOCUMENT_PART and sizes["row"] <= SAMPLED_ROWS:
                self._sample_cells(header, placed_row)
            if not self._has_missing_columns(placed_row):
                yield placed_row
        self._add_absent_columns()

    def _note_header(self, header: tuple[str, ...], row: PlacedRow) -> None:
        """Note how the columns of a row are read."""
        if len(self._kinds_by_header) >= MAX_HEADERS:
            return
        kinds_by_column = self._columns.kinds_by_column(row.row, self._part.kinds)
        self._kinds_by_header[header] = kinds_by_column
        self._absent_kinds = [
            kind for kind in self._absent_kinds if row.name(kind) is None
        ]
        columns_used = self._problems.columns_used.setdefault(self._file, {})
        for column, kind in kinds_by_column.items():
            # Fields of a table of labels are not used.
            is_unused = kind == FIELDS_KIND and self._part == LABEL_PART
            used_kind = "" if is_unused else kind
            if used_kind or column not in columns_used:
                columns_used[column] = used_kind

    def _sample_cells(self, header: tuple[str, ...], row: PlacedRow) -> None:
        """Sample the cells of columns without a kind; they may hold labels."""
        if self._part == QUERY_PART:
            self._problems.files_without_labels.add(self._file)
        cells_by_column = self._problems.unused_columns.setdefault(self._file, {})
        for column, kind in self._kinds_by_header.get(header, {}).items():
            # A column without a name is the index that pandas writes.
            if not column or kind not in ("", FIELDS_KIND):
                continue
            cell = row.row.cells.get(column)
            if not _is_empty(cell) and len(str(cell)) <= MAX_SAMPLED_CELL_LENGTH:
                cells_by_column.setdefault(column, []).append(cell)

    def _has_missing_columns(self, row: PlacedRow) -> bool:
        """Whether a row lacks a column that is required; each one is a problem."""
        if not self._columns.declared:
            return False
        missing_kinds = self._columns.missing_kinds(row.row, self._part.required)
        for kind in missing_kinds:
            row.add_complaint(self._columns.missing_column(kind, row.row))
        return bool(missing_kinds)

    def _add_absent_columns(self) -> None:
        """Add the problem of declared columns that no row has."""
        headers = self._kinds_by_header
        if not headers or len(headers) >= MAX_HEADERS:
            return  # of more headers, those that were not noted may have the column
        for kind in self._absent_kinds:
            declared = self._columns.declared_name(kind) or ""
            column_names = {str(column) for header in headers for column in header}
            remedy = did_you_mean(declared, column_names)
            self._problems.add(self._file, f"no row has a column {declared!r}", remedy)


def _is_empty(cell: Any) -> bool:
    return cell in (None, "", [], {})
