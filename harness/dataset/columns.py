"""Declared names of columns.

`Columns.name` says which column of a row has a kind: the id of a document, a query, a
grade. A declared column counts before one with a usual name (`usual_names`), which is
free only if it is declared as nothing else. `placed_row` reads the cells.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from harness.dataset.cell_paths import declared_paths
from harness.dataset.complaint import Complaint
from harness.dataset.delimited import MAX_SHOWN_COLUMNS
from harness.dataset.reference import DeclaredColumn
from harness.dataset.row import FIELD_OBJECTS, Row
from harness.dataset.settings import NO_HEADER
from harness.dataset.source import SourceLocation
from harness.dataset.usual_names import (
    COLUMN_KINDS,
    DOCUMENT_ID_KINDS,
    DOCUMENT_KINDS,
    DRAFT_COLUMNS,
    FIELDS_KIND,
    KIND_ALIASES,
    LABEL_KINDS,
    LOCATION_COLUMNS,
    NEUTRAL_DOCUMENT_NAMES,
    QUERY_KINDS,
    SCORE_NAME,
    USUAL_COLUMN_NAMES,
    normalised_name,
    usual_column,
)
from harness.dataset.written_values import quoted_value
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.remedy import (
    InlineTable,
    Option,
    Remedy,
    Setting,
    compose_remedy,
)

MAX_COLUMN_NAME_WORDS = 4
"""Words, at most, in the name of a column: a longer one is a text."""
HEADED_SUFFIXES = (".csv", ".tsv")
"""Suffixes of files whose first row is read as their header."""
FLAG_COLUMN = "relevant"
"""This column has a list of documents; next to a column with one document, it says
whether that is relevant.
"""
FLAGGED_DOCUMENT_NAMES = NEUTRAL_DOCUMENT_NAMES - {*LOCATION_COLUMNS} | {
    "clickeddocid",
    "clickedid",
}
"""Names of the column with one document, beside which `FLAG_COLUMN` is a flag."""
QUERY_ID_KINDS = ("query_id", "label_query")
"""The id of a query, in a table of queries and in one of labels."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of columns: the declared ones, else the usual ones."""

    declared: tuple[DeclaredColumn, ...] = ()
    """The last column of a kind counts."""
    header: bool = False
    """Whether the first row of a table is its header, even if it looks like data."""
    usual_names: Mapping[str, tuple[str, ...]] | None = None
    """The names, or paths, that one tool uses instead of the usual ones."""
    are_labels: bool = False
    """Whether the rows are of a table of labels."""
    are_fixed: bool = False
    """Whether the format names all columns: none can be declared."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Column -> the values that a row must have to be a label."""

    def __post_init__(self) -> None:
        declared = tuple(kind_first(*column) for column in self.declared)
        object.__setattr__(self, "declared", declared)
        unknown_kinds = [kind for kind, _ in declared if kind not in COLUMN_KINDS]
        if unknown_kinds:
            raise InputError([_unknown_kind(kind) for kind in unknown_kinds])

    def declared_name(self, kind: str) -> str | None:
        """Return the name that is declared for a kind of column; None if none is."""
        name: str | None = None
        for column in self.declared:
            if column.kind == kind:
                name = column.column
        return name

    def is_declared(self, kind: str) -> bool:
        """Whether a column of a kind is declared."""
        return self.declared_name(kind) is not None

    def name(self, kind: str, row: Row) -> str | None:
        """Return the column of a kind in this row; None if there is none."""
        if self.declared or self.usual_names:
            return self._find_column(kind, row)
        return _find_usual_column(kind, tuple(row.cells), self.are_labels)

    def _find_column(self, kind: str, row: Row) -> str | None:
        """Return the declared column of a kind, else the one with a usual name.

        A usual name counts only if no column of a stronger kind names the documents:
        texts of contexts, or a file or an address beside a list of relevant documents,
        then describe the row.
        """
        declared = self.declared_name(kind)
        if declared is not None:
            return declared if row.has(declared) else None
        if kind in ("grade", "relevant") and self._has_flag(row):
            return FLAG_COLUMN if kind == "grade" else None
        column = self._find_by_usual_names(kind, row)
        is_location = normalised_name(column or "") in LOCATION_COLUMNS
        stronger_kinds: tuple[str, ...] = ()
        if kind == "contexts":
            stronger_kinds = DOCUMENT_ID_KINDS
        elif kind == "label_document" and is_location:
            stronger_kinds = ("relevant",)
        if any(self.name(stronger, row) is not None for stronger in stronger_kinds):
            return None
        return column

    def _has_flag(self, row: Row) -> bool:
        """Whether a row has a document, and a column that says if it is relevant."""
        if FLAG_COLUMN not in row.cells or self.usual_names is not None:
            return False
        if any(map(self.is_declared, LABEL_KINDS)):
            return False  # the declaration says what is a label
        return bool(_columns_named(row, FLAGGED_DOCUMENT_NAMES))

    def _find_by_usual_names(self, kind: str, row: Row) -> str | None:
        """Return the column of a kind by its name, if it is of no other kind."""
        if self.usual_names is not None:
            paths = self.usual_names.get(kind, ())
            return next((path for path in paths if row.has(path)), None)
        excluded = self._columns_of_other_kinds(kind)
        excluded |= self._undeclared_labels(kind, row)
        names = tuple(name for name in row.cells if name not in excluded)
        return usual_column(kind, names)

    def _undeclared_labels(self, kind: str, row: Row) -> set[str]:
        """Return the columns that a system may have filled, not a person."""
        if self.are_labels:
            return set()
        if kind == "grade":
            return _columns_named(row, frozenset((SCORE_NAME,)))
        if kind != "label_document" or self.name("grade", row) is not None:
            return set()
        if row.cells.keys() >= DRAFT_COLUMNS:
            return set()  # a person kept the query for this document
        return _columns_named(row, NEUTRAL_DOCUMENT_NAMES)

    def _columns_of_other_kinds(self, kind: str) -> set[str]:
        """Return the columns that are declared as another kind of the same rows."""
        if kind in DOCUMENT_KINDS:
            other_kinds = [other for other in DOCUMENT_KINDS if other != kind]
        else:
            same_kinds = QUERY_ID_KINDS if kind in QUERY_ID_KINDS else (kind,)
            other_kinds = [other for other in QUERY_KINDS if other not in same_kinds]
        columns = set(declared_field_names(self.declared))
        for other in other_kinds:
            for path in declared_paths(self.declared_name(other) or ""):
                columns.add(path.partition(".")[0])
        return columns

    def is_label_row(self, row: Row) -> bool:
        """Whether a row has the values that `where` demands of labels."""
        return all(
            str(row.value(column)) in values for column, values in self.where.items()
        )

    def has_labels(self, row: Row) -> bool:
        """Whether a row has a column of labels, or one is declared."""
        return any(
            self.is_declared(kind) or self.name(kind, row) is not None
            for kind in LABEL_KINDS
        )

    def kinds_by_column(self, row: Row, kinds: Iterable[str]) -> dict[str, str]:
        """Return how each column of a row is read.

        That is one of the kinds, a field, or empty if the column is not used.

        >>> cells = {"": 0, "query": "a", "day": 1, "tags": []}
        >>> row = Row(SourceLocation(Path("queries.json")), cells)
        >>> Columns().kinds_by_column(row, ("query",))
        {'': '', 'query': 'query', 'day': 'fields', 'tags': ''}
        """
        kinds_by_path: dict[str, str] = {}
        used_columns: dict[str, str] = {}
        # The first kind of a column counts.
        for kind in reversed(tuple(kinds)):
            column = self.name(kind, row)
            if column is not None:
                used_columns[column] = kind
        for column, kind in used_columns.items():
            paths = [column] if column in row.cells else declared_paths(column)
            kinds_by_path.update(dict.fromkeys(paths, kind))
        outer_columns = {
            path.partition(".")[0] for path in kinds_by_path if path not in row.cells
        }
        uses: dict[str, str] = {}
        for column, cell in row.cells.items():
            if column not in outer_columns:
                uses[column] = FIELDS_KIND if _is_field(column, cell) else ""
        return uses | kinds_by_path

    def missing_kinds(self, row: Row, kinds: Iterable[str]) -> list[str]:
        """Return the kinds whose declared columns a row does not have."""
        declared_kinds = [kind for kind in kinds if self.is_declared(kind)]
        return [kind for kind in declared_kinds if self.name(kind, row) is None]

    def missing_column(self, kind: str, row: Row) -> Complaint:
        """Return the complaint that a row has no column of a kind."""
        paths = _column_paths(row)
        declared = self.declared_name(kind)
        if declared is not None:
            problem = f"there is no column {declared!r}"
            return Complaint(problem, did_you_mean(declared, paths))
        if not self.header and any(map(_looks_like_data, paths)):
            cells = ", ".join(map(quoted_value, paths[:MAX_SHOWN_COLUMNS]))
            remedy = compose_remedy(
                "write one above it: query,document; or say ",
                NO_HEADER,
                ", or true if it is one",
            )
            return Complaint(f"the first row is not a header: {cells}", remedy)
        columns = ", ".join(paths[:MAX_SHOWN_COLUMNS])
        # A format may have its own names for some kinds alone.
        format_names = self.usual_names or {}
        if kind == "label_document" and kind not in format_names:
            kind = "contexts" if "contexts" in format_names else kind
        usual_name = {**USUAL_COLUMN_NAMES, **format_names}[kind][0]
        if kind == "query" and self.usual_names is None:
            usual_name = kind  # it may also be called "text"
        remedy = compose_remedy(f"there are: {columns}")
        if not self.are_fixed:
            remedy = compose_remedy(remedy, "; say which: ", declaration(kind))
        is_headed = row.location.path.suffix.lower() in HEADED_SUFFIXES
        if kind == "query" and is_headed and any(" " in path for path in paths):
            remedy = compose_remedy(remedy, "; if these are no names: ", NO_HEADER)
        return Complaint(f"{usual_name!r} is missing", remedy)


def _unknown_kind(kind: str) -> Problem:
    problem = f"{kind!r} is not a kind of column"
    return Problem("columns", problem, did_you_mean(kind, COLUMN_KINDS))


def _is_field(column: str, cell: object) -> bool:
    """Whether a column that has no kind holds a field, or is an object of several."""
    if column == "metadata" or (column in FIELD_OBJECTS and isinstance(cell, Mapping)):
        return True
    return bool(column) and isinstance(cell, str | int | float)


def _columns_named(row: Row, names: frozenset[str]) -> set[str]:
    """Return the columns of a row that have one of some names."""
    return {name for name in row.cells if normalised_name(str(name)) in names}


def _column_paths(row: Row) -> list[str]:
    """Return the columns of a row; of a column of objects the paths of their keys."""
    paths: list[str] = []
    for column, cell in row.cells.items():
        if isinstance(cell, Mapping) and cell:
            paths += [f"{column}.{key}" for key in cell]
        else:
            paths.append(str(column))
    return paths


def _looks_like_data(name: str) -> bool:
    """Whether the name of a column is rather a cell of the first row."""
    return len(name.split()) > MAX_COLUMN_NAME_WORDS or name.isdigit()


def declared_field_names(declared: Iterable[DeclaredColumn]) -> list[str]:
    """Return the columns that are declared as fields; the last declaration counts.

    >>> declared_field_names([DeclaredColumn("fields", "day, tags")])
    ['day', 'tags']
    """
    names = ""
    for column in declared:
        if column.kind == FIELDS_KIND:
            names = column.column
    return declared_paths(names)


def kind_first(kind: str, name: str) -> DeclaredColumn:
    """Return a kind and its column, whichever of them is first.

    >>> kind_first("grade", "rating") == kind_first("rating", "grade")
    True
    >>> kind_first("grade", "text"), kind_first("label", "sources")
    (DeclaredColumn(kind='grade', column='text'), \
DeclaredColumn(kind='label_document', column='sources'))
    """
    if kind not in COLUMN_KINDS and name in COLUMN_KINDS:
        return DeclaredColumn(name, kind)
    return DeclaredColumn(KIND_ALIASES.get(kind, kind), name)


@lru_cache(maxsize=1024)
def _find_usual_column(
    kind: str, names: tuple[str, ...], are_labels: bool
) -> str | None:
    """Return the column of a kind if no column is declared.

    Cached, since most rows have the same columns.
    """
    columns = Columns(are_labels=are_labels)
    row = Row(SourceLocation(Path()), dict.fromkeys(names))
    return columns._find_column(kind, row)


def declaration(kind: str, name: str = "…") -> Remedy:
    """Return how an experiment and an option declare a column.

    >>> str(declaration("grade", "stars"))
    'columns = { grade = "stars" } (--columns grade=stars)'
    """
    option = shlex.quote(f"{kind}={name}")
    return compose_remedy(Setting(kind, name, "columns"), Option(f"--columns {option}"))


def declarations(*columns: DeclaredColumn) -> Remedy:
    """Return how an experiment and the options declare several columns.

    >>> title = DeclaredColumn("query", "title")
    >>> declarations(title, DeclaredColumn("grade", "stars")).as_python()
    'columns={"query": "title", "grade": "stars"}'
    """
    names = [shlex.quote(f"{column.kind}={column.column}") for column in columns]
    return compose_remedy(
        InlineTable("columns", columns),
        Option(" ".join(f"--columns {name}" for name in names)),
    )


def not_labels_remedy(name: str) -> Remedy:
    """Return the remedy for a column that holds no labels."""
    return compose_remedy(
        "if it holds no label, keep it as a field: ", declaration(FIELDS_KIND, name)
    )
