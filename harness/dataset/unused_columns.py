"""Unused columns that may hold labels.

An experiment without these labels would be scored, and wrongly: so each such column is
a problem, which shows what to declare.
"""

import shlex
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from harness.dataset.columns import (
    declaration,
    declared_field_names,
    not_labels_remedy,
)
from harness.dataset.convert import CONVERTED_SUFFIXES
from harness.dataset.events import event_kinds, where_declaration
from harness.dataset.judging_columns import guessed_grades
from harness.dataset.label_column import MIN_NAMING_SHARE, listed_documents
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DeclaredColumn
from harness.dataset.usual_names import (
    CLICKS_COLUMN,
    DOCUMENT_ID_KINDS,
    DOCUMENT_NAMING_KINDS,
    FIELDS_KIND,
    LABEL_KINDS,
    LOCATION_COLUMNS,
    NEUTRAL_LIST_NAMES,
    NORMALISED_COLUMN_NAMES,
    SCORE_NAME,
    is_label_name,
    may_exclude,
    names_documents,
    normalised_name,
    words_of_name,
)
from harness.dataset.written_values import quoted_value
from harness.english import first_names
from retrievers.remedy import Option, Remedy, Setting, compose_remedy

PDF_FORMAT = CONVERTED_SUFFIXES[".pdf"]
PAGE_NAMES = tuple(
    f"{prefix}{name}"
    for prefix in ("", "evidence", "gold", "relevant", "expected", "source")
    for name in ("page", "pages", "pageno", "pagenum", "pagenumber", "pagenumbers")
)
"""Names of columns of pages, beside a column of files."""
FILE_WORDS = frozenset(
    ["file", "filename", "files", "path", "url", "source", "pdf", "doc", "document"]
)
"""Words in the name of a column of files."""
TEXT_NAMES = ("contexts", "pos", "positivepassages", "positivectxs")
"""Names of columns of texts that may be those of relevant documents."""
CONTEXT_NAME = "context"
"""Another such name if no column names documents; else it may describe the query."""
MAX_SHOWN_CELLS = 3
"""Values of a column, at most, that a message shows."""


class _TableUse(NamedTuple):
    """How a table of queries or labels is read."""

    expects_labels: bool
    """Whether labels are in this table, not in one of their own."""
    names_documents: bool
    """Whether a column of it names documents."""
    has_grades: bool
    is_of_labels: bool
    """Whether it has no texts of queries."""
    is_read: bool
    """Whether the data set was read so far without a problem."""


class _UnusedColumn(NamedTuple):
    """What a column that is not used may hold."""

    kind: str
    """The kind of labels in it; "" if it has no labels."""
    grades: str = ""
    """Its values in words, if they look like grades; else ""."""


def report_unused_columns(
    problems: ReadProblems, declared: Sequence[DeclaredColumn], example: str
) -> None:
    """Add a problem for each unused column that may hold, or change, labels.

    Labels or grades are seen by its name or by small whole numbers. Pages, events and
    documents to leave out change what the labels beside them mean.

    Args:
        problems: takes the problems, and has the columns.
        declared: the columns that are declared.
        example: of the ids of documents, in words.
    """
    declared_names = {column.column for column in declared} | problems.where_columns
    declared_names.update(declared_field_names(declared))
    declared_kinds = {column.kind for column in declared}
    for file, cells_by_column in problems.unused_columns.items():
        columns = problems.columns_used.get(file, {})
        table = _TableUse(
            expects_labels=file not in problems.files_without_labels,
            names_documents=any(
                kind in DOCUMENT_NAMING_KINDS for kind in columns.values()
            ),
            has_grades="grade" in columns.values(),
            is_of_labels="query" not in columns.values(),
            is_read=not problems,
        )
        for column, used_kind in columns.items():
            is_unused = used_kind in ("", FIELDS_KIND)
            if not is_unused or column in declared_names:
                continue
            cells = cells_by_column.get(column, ())
            _report_other_uses(file, column, cells, problems)
            unused = _guess_kind(column, cells, table)
            if not _is_overlooked(unused.kind, table, declared_kinds):
                continue
            if _names_nothing(column, unused, table, cells, problems=problems):
                _add_unmatched(file, column, cells, example, problems=problems)
            else:
                _add_overlooked(file, column, unused, table, problems=problems)


def _report_other_uses(
    file: str, column: str, cells: Sequence[Any], problems: ReadProblems
) -> None:
    """Add a problem if an unused column changes the meaning of the labels beside it."""
    columns = problems.columns_used.get(file, {})
    kinds = columns.values()
    if cells and normalised_name(column) in PAGE_NAMES:
        _report_unused_pages(file, column, columns, problems)
    if any(kind in DOCUMENT_NAMING_KINDS for kind in kinds):
        _report_events(file, column, cells, problems)
    if "exclude" not in kinds and may_exclude(column):
        _report_unused_exclusions(file, column, cells, problems)


def _report_events(
    file: str, column: str, cells: Sequence[Any], problems: ReadProblems
) -> None:
    """Add a problem if rows are events of several kinds, and all count as labels."""
    kinds = event_kinds(column, cells)
    if kinds and not problems.where_columns:
        problems.add(
            file,
            f"{column!r} has {kinds}, and each of these rows would be a label",
            compose_remedy(
                "say which are: ",
                where_declaration(column, "click"),
                "; if all are: ",
                declaration(FIELDS_KIND, column),
            ),
        )


def _report_unused_exclusions(
    file: str, column: str, cells: Sequence[Any], problems: ReadProblems
) -> None:
    """Add a problem if a column may have documents to leave out of rankings."""
    parts = [*chain.from_iterable(listed_documents(cell, problems) for cell in cells)]
    documents = sum(map(problems.names_document, parts))
    if not documents or documents < MIN_NAMING_SHARE * len(parts):
        return
    problems.add(
        file,
        f"{column!r} names documents, perhaps to leave out, and is not used",
        compose_remedy(
            "if rankings leave them out: ",
            declaration("exclude", column),
            "; else keep it as a field: ",
            declaration(FIELDS_KIND, column),
        ),
    )


def _report_unused_pages(
    file: str, pages: str, columns: Mapping[str, str], problems: ReadProblems
) -> None:
    """Add a problem if labels name files, and nothing uses the pages beside them."""
    for column, kind in columns.items():
        if kind not in DOCUMENT_ID_KINDS or FILE_WORDS.isdisjoint(
            words_of_name(column)
        ):
            continue
        problem = f"{pages!r} is not used, so that every page of {column!r} is relevant"
        remedy = _pages_remedy(column, pages, problems)
        whole_files = declaration(FIELDS_KIND, pages)
        remedy = compose_remedy(remedy, "; if whole files are relevant: ", whole_files)
        problems.add(file, problem, remedy)


def _pages_remedy(column: str, pages: str, problems: ReadProblems) -> Remedy:
    """Return how labels name pages of PDF, or documents that have both fields."""
    declared = Setting("label_document", (column, pages), "columns")
    option = shlex.quote(f"label_document={column},{pages}")
    if any(PDF_FORMAT in sizes for sizes in problems.table_sizes.values()):
        return compose_remedy(
            "if pages are: ",
            Setting("pages", True),
            ", ",
            declared,
            Option(f"--pages --columns {option}"),
        )
    match = shlex.quote(f"{column},{pages}")
    return compose_remedy(
        "if documents are pages: ",
        declared,
        ", ",
        Setting("match", (column, pages)),
        Option(f"--columns {option} --match {match}"),
    )


def _guess_kind(column: str, cells: Sequence[Any], table: _TableUse) -> _UnusedColumn:
    """Return what a column may hold, by its name and its values."""
    column_name = normalised_name(column)
    lacks_labels = table.expects_labels and not table.names_documents
    if table.expects_labels and table.names_documents and not table.has_grades:
        grades = guessed_grades(column, cells, is_label=table.is_of_labels)
        if grades:
            return _UnusedColumn("grade", grades)
        if column_name == CLICKS_COLUMN:
            return _UnusedColumn("grade")
    if column_name in TEXT_NAMES and not table.names_documents:
        return _UnusedColumn("contexts")
    if column_name == CONTEXT_NAME and lacks_labels:
        return _UnusedColumn("contexts")
    kind = _kind_of_name(column_name, table)
    if kind:
        return _UnusedColumn(kind)
    may_be_relevant = table.is_read and lacks_labels and names_documents(column)
    if column_name in NEUTRAL_LIST_NAMES or may_be_relevant:
        return _UnusedColumn("relevant")
    return _UnusedColumn("")


def _kind_of_name(column_name: str, table: _TableUse) -> str:
    """Return the kind of label that a column's name means, else ""."""
    if column_name in LOCATION_COLUMNS:
        return ""
    has_ungraded_pairs = table.names_documents and not table.has_grades
    score_is_grade = table.expects_labels and has_ungraded_pairs
    for kind in LABEL_KINDS:
        is_score = kind == "grade" and column_name == SCORE_NAME
        if is_score and not score_is_grade:
            continue
        if column_name in NORMALISED_COLUMN_NAMES[kind]:
            return kind
    return ""


def _is_overlooked(kind: str, table: _TableUse, declared_kinds: set[str]) -> bool:
    """Whether a column may hold labels that no other column is declared to hold.

    If the labels are in another table, each such column is overlooked.
    """
    if not kind or (kind == "contexts" and table.names_documents):
        return False
    kinds = ("grade",) if kind == "grade" else DOCUMENT_NAMING_KINDS
    return not table.expects_labels or declared_kinds.isdisjoint(kinds)


def _names_nothing(
    column: str,
    unused: _UnusedColumn,
    table: _TableUse,
    cells: Sequence[Any],
    *,
    problems: ReadProblems,
) -> bool:
    """Whether a column has labels by its name, and none of them names a document."""
    is_list = unused.kind in DOCUMENT_ID_KINDS
    if not is_list or not table.expects_labels or not is_label_name(column):
        return False
    parts = chain.from_iterable(listed_documents(cell, problems) for cell in cells)
    return not any(map(problems.names_document, parts))


def _add_unmatched(
    file: str,
    column: str,
    cells: Sequence[Any],
    example: str,
    *,
    problems: ReadProblems,
) -> None:
    if not cells:
        problem = f"{column!r} is empty in every row, and no other column has labels"
        remedy = compose_remedy("fill it in; ", not_labels_remedy(column))
        problems.add(file, problem, remedy)
        return
    shown = first_names([*dict.fromkeys(map(quoted_value, cells))], MAX_SHOWN_CELLS)
    problem = f"{column!r} names no document: {shown}; {example}".rstrip("; ")
    remedy = compose_remedy("correct the ids; ", not_labels_remedy(column))
    problems.add(file, problem, remedy)


def _add_overlooked(
    file: str,
    column: str,
    unused: _UnusedColumn,
    table: _TableUse,
    *,
    problems: ReadProblems,
) -> None:
    content = "the relevant documents"
    if unused.kind == "grade":
        content = f"grades{unused.grades}"
    remedy = compose_remedy("the labels are in another table: remove it")
    if table.expects_labels:
        remedy = compose_remedy("say so: ", declaration(unused.kind, column))
    problem = f"{column!r} could hold {content}, and is not used"
    remedy = compose_remedy(remedy, "; ", not_labels_remedy(column))
    problems.add(file, problem, remedy)
