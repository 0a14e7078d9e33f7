"""Rows as a source."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median

from harness.dataset.columns import Columns
from harness.dataset.file import File
from harness.dataset.label_rows import read_labels
from harness.dataset.placed_row import PlacedRow
from harness.dataset.read_problems import ReadProblems
from harness.dataset.rows import read_file_rows
from harness.dataset.source import PlacedLabels, SourceLocation, TableRow
from harness.dataset.usual_names import (
    DOCUMENT_KINDS,
    FIELDS_KIND,
    LABEL_KINDS,
    QUERY_KINDS,
    UNLABELLED_QUERY_KINDS,
)
from retrievers.errors import did_you_mean
from retrievers.types import Document, Query

RowSource = Callable[[ReadProblems], Iterable[tuple[SourceLocation, TableRow]]]
REQUIRED_QUERY_KINDS = ("query_id", "query")
"""What each row of queries has, as far as it is declared."""
OPTIONAL_KINDS = ("title", "reference", "claims")
"""What some row has where it is declared."""
SAMPLED_ROWS, MAX_SAMPLED_CELL_LENGTH = 200, 2_000
"""Rows, and letters of a cell, at most, of which it is seen whether they name documents."""
PLACEHOLDER_QUERY = re.compile(
    r"(?i)to-?do|tbd|tba|n/?a|none|null|unknown|test|xxx*|fixme|question|query|[^\w]*"
)
FREQUENT_QUERY_FACTOR = 5
"""Times as many rows as usual on which a question may be a placeholder."""
MAX_HEADERS = 64
"""Sets of columns that are looked at: rows of JSON may differ in theirs without end."""


def rows_of_files(*files: File) -> RowSource:
    """The rows of some files, one after the other."""

    def read_all(problems: ReadProblems) -> Iterator[tuple[SourceLocation, TableRow]]:
        for file in files:
            yield from read_file_rows(file, problems)

    return read_all


@dataclass(frozen=True, slots=True)
class TableSource:
    """Rows of documents, of queries, and of labels if these are not with the queries."""

    document_rows: RowSource
    query_rows: RowSource
    label_rows: RowSource | None
    columns: Columns = field(default_factory=Columns)

    def documents(
        self, problems: ReadProblems
    ) -> Iterator[tuple[SourceLocation, Document]]:
        """One document a row."""
        for line in self._lines(
            self.document_rows(problems),
            problems,
            DOCUMENT_KINDS,
            ("document_id", "text"),
        ):
            document = line.document()
            if document is not None:
                yield line.place, document

    def queries(self, problems: ReadProblems) -> Iterator[tuple[SourceLocation, Query]]:
        """One query a row; without ids they are q0, q1, … A text, or id and text, of further labels come again."""
        unnamed: dict[str, str] = {}
        rows_of_text = Counter[str]()
        texts: dict[str, str] = {}
        here = self.label_rows is None
        kinds, needed = (
            (QUERY_KINDS, (*REQUIRED_QUERY_KINDS, *LABEL_KINDS))
            if here
            else (UNLABELLED_QUERY_KINDS, REQUIRED_QUERY_KINDS)
        )
        for line in self._lines(self.query_rows(problems), problems, kinds, needed):
            query = line.query(f"q{len(unnamed)}", labelled=here)
            if query is None:
                continue
            if line.name("query_id") is None:
                rows_of_text[query.text] += 1
                if here and (first := unnamed.get(query.text)) is not None:
                    if not query.text.strip():
                        problems.note("blank-query", first)
                    elif not self.columns.has_labels(
                        line.row
                    ):  # else it is one more label
                        problems.note("repeated-row", first)
                    continue
                unnamed[query.text] = query.id
            elif here and line.name("label_document") is not None:
                if texts.get(query.id) == query.text:
                    continue  # one more label
                texts[query.id] = query.text
            yield line.place, query
        usual = median(rows_of_text.values()) if rows_of_text else 0
        for text, number in rows_of_text.items():
            if number > 1 and (
                PLACEHOLDER_QUERY.fullmatch(text.strip())
                or number >= max(FREQUENT_QUERY_FACTOR, FREQUENT_QUERY_FACTOR * usual)
            ):
                problems.note(
                    "placeholder-query", f"{text.strip()[:40]!r} on {number:,} rows"
                )

    def labels(self, problems: ReadProblems) -> Iterator[PlacedLabels]:
        """The rows of labels, gathered by query."""
        if self.label_rows is not None:
            yield from read_labels(
                self._lines(
                    self.label_rows(problems), problems, QUERY_KINDS, LABEL_KINDS
                )
            )
            return
        lines = [
            PlacedRow(row, place, self.columns, problems)
            for place, row in self.query_rows(ReadProblems())
        ]
        if not any(self.columns.has_labels(line.row) for line in lines):
            return  # questions without labels: a beginning
        unnamed: dict[str, str] = {}
        for line in lines:
            if line.name("query_id") is None:
                unnamed.setdefault(str(line.value("query")), f"q{len(unnamed)}")
        # A row without labels is a slip, unless it has claims: those are measured without labels. A row with room for
        # a document and its grade that nobody has filled in is none.
        yield from read_labels(
            (
                line
                for line in lines
                if (self.columns.has_labels(line.row) or not line.value("claims"))
                and not all(
                    line.value(kind) == "" for kind in ("label_document", "grade")
                )
                and not self.columns.missing_kinds(
                    line.row, (*REQUIRED_QUERY_KINDS, *LABEL_KINDS)
                )  # told with the queries
            ),
            unnamed or None,
        )

    def _lines(
        self,
        rows: Iterable[tuple[SourceLocation, TableRow]],
        problems: ReadProblems,
        kinds: tuple[str, ...],
        needed: tuple[str, ...],
    ) -> Iterator[PlacedRow]:
        """The rows; what their columns are read as is noted, and columns that may hold labels are not passed over.

        Args:
            rows: of one part.
            problems: where complaints go.
            kinds: of columns that the part may have.
            needed: those of them that each row has, where they are declared; a row without is told of, and left out.
        """
        lacking = {
            kind
            for kind in OPTIONAL_KINDS
            if kind in kinds and kind in self.columns.declared
        }
        known = dict[tuple[str, ...], dict[str, str]]()
        path, file = None, ""
        for place, row in rows:
            if place.path is not path:
                path, file = place.path, place.file
            problems.table_sizes[file]["row"] += 1
            if (names := tuple(row)) not in known and len(known) < MAX_HEADERS:
                known[names] = taken = self.columns.kinds_by_column(row, kinds)
                lacking = {
                    kind for kind in lacking if self.columns.name(kind, row) is None
                }
                if needed == LABEL_KINDS:  # of a table of labels nothing else is kept
                    taken = {
                        name: "" if kind == FIELDS_KIND else kind
                        for name, kind in taken.items()
                    }
                there = problems.columns_used.setdefault(file, {})
                there.update(
                    (name, kind)
                    for name, kind in taken.items()
                    if kind or name not in there
                )
            if (
                kinds != DOCUMENT_KINDS
                and problems.table_sizes[file]["row"] <= SAMPLED_ROWS
            ):
                unused = problems.unused_columns.setdefault(file, {})
                for name, kind in known.get(names, {}).items():
                    cell = row.get(name) if kind in ("", FIELDS_KIND) else None
                    if (
                        cell not in (None, "", [], {})
                        and len(str(cell)) <= MAX_SAMPLED_CELL_LENGTH
                    ):
                        unused.setdefault(name, []).append(cell)
                if kinds == UNLABELLED_QUERY_KINDS:
                    problems.files_without_labels.add(file)
            line = PlacedRow(row, place, self.columns, problems)
            if self.columns.declared and (
                absent := self.columns.missing_kinds(row, needed)
            ):
                for kind in absent:
                    line.add_problem(*self.columns.missing_column(kind, row))
            else:
                yield line
        for kind in lacking if 0 < len(known) < MAX_HEADERS else ():
            declared = self.columns.declared[kind]
            remedy = did_you_mean(
                declared, {str(name) for names in known for name in names}
            )
            problems.add(file, f"no row has a column {declared!r}", remedy)
