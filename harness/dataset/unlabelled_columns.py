"""Unused columns that may hold labels.

If no label was read, `find_label_column` returns the one column that names documents
under a name of labels, or adds a question. The `report_` functions add problems of
columns that nothing uses, or that are used and may mean something else: an experiment
without these labels would be scored, and wrongly.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Any, NamedTuple

from harness.dataset.check_corpus import CheckedDocuments
from harness.dataset.columns import (
    declaration,
    declared_field_names,
    not_labels_remedy,
)
from harness.dataset.convert import CONVERTED_SUFFIXES
from harness.dataset.events import event_kinds, where_declaration
from harness.dataset.judging_columns import guessed_grades, orders_documents
from harness.dataset.label_lists import cell_leaves, holds_scores, named_documents
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DeclaredColumn
from harness.dataset.usual_names import (
    CLICKS_COLUMN,
    DOCUMENT_ID_KINDS,
    DOCUMENT_NAMING_KINDS,
    FIELDS_KIND,
    LABEL_KINDS,
    LOCATION_COLUMNS,
    NEUTRAL_DOCUMENT_NAMES,
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
from retrievers.errors import Problem
from retrievers.remedy import Option, Remedy, Setting, compose_remedy, join_remedies
from retrievers.types import Query

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
MIN_ID_SHARE = 0.9
"""Share of the named documents that labels name by id, not by title, at least."""
MIN_NAMING_SHARE = 0.5
"""Share of a column's parts that name documents, from which on it is a problem."""
RETURNED_PATTERN = re.compile(
    r"rank|position|score|distance|similarity|generated|prediction|predicted|"
    r"retriev|return|result|hits?$|response|top_?k"
)
"""Parts of the name of a column that a system filled."""
TEXT_NAMES = ("contexts", "pos", "positivepassages", "positivectxs")
"""Names of columns of texts that may be those of relevant documents."""
CONTEXT_NAME = "context"
"""Another such name if no column names documents; else it may describe the query."""
MAX_SHOWN_CELLS = 3
"""Values of a column, at most, that a message shows."""


class LabelColumnCandidate(NamedTuple):
    """A column, or a path into one, whose parts name documents.

    Parts are the ids that its cells list.
    """

    file: str
    column: str
    kind: str
    """The kind under which it would be declared."""
    matched_parts: int
    """Number of its parts that name documents."""
    all_parts: int
    """Number of all its parts, in the rows that were sampled."""
    names_by_id: bool
    """Whether nearly all documents are named by their ids, not by their titles."""

    @property
    def has_labels(self) -> bool:
        """Whether it names ids, and the first or last part of its name means labels."""
        parts = self.column.split(".")
        return self.names_by_id and (
            is_label_name(parts[0]) or is_label_name(parts[-1])
        )


class LabelColumnSearch(NamedTuple):
    """The column of labels that was found, or a question about some."""

    column: DeclaredColumn | None
    """The column as it would be declared; None if none is found."""
    is_question: bool = False
    """Whether a problem asks which column has labels."""


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


def report_returned_documents(
    problems: ReadProblems, declared: Sequence[DeclaredColumn]
) -> None:
    """Add a problem for each table of labels that looks like what a system returned.

    Its documents have a rank, a distance or the like, and no grade but a score. Tables
    are not examined if a column of labels is declared.
    """
    if _declares_labels(declared):
        return
    field_names = declared_field_names(declared)
    for file, columns in problems.columns_used.items():
        label_column = ""
        is_graded = False
        for column, kind in columns.items():
            column_name = normalised_name(column)
            if kind == "label_document" and column_name in NEUTRAL_DOCUMENT_NAMES:
                label_column = column
            is_graded |= kind == "grade" and column_name != SCORE_NAME
        order = _order_column(file, field_names, problems)
        if label_column and order and not is_graded:
            _add_returned_documents(file, label_column, order, problems)


def _order_column(file: str, field_names: Sequence[str], problems: ReadProblems) -> str:
    """Return the unused column of a file that orders documents; empty without one."""
    for column, cells in problems.unused_columns.get(file, {}).items():
        if column not in field_names and orders_documents(column, cells):
            return column
    return ""


def _declares_labels(declared: Sequence[DeclaredColumn]) -> bool:
    return any(column.kind in LABEL_KINDS for column in declared)


def _add_returned_documents(
    file: str, label_column: str, order: str, problems: ReadProblems
) -> None:
    problem = (
        f"{order!r} looks like what a system returned, "
        "and each of these rows would be a label"
    )
    remedy = compose_remedy(
        "if people judged them: ",
        declaration("label_document", label_column),
        "; if a system returned them, ",
        _run_remedy(label_column),
    )
    problems.add(file, problem, remedy)


def _run_remedy(column: str) -> Remedy:
    """Return how a column that a system filled is compared."""
    return compose_remedy(
        "compare it as a retriever of ",
        Setting("kind", "run"),
        Option(f"harness init --columns run={column}"),
    )


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
    parts = [*chain.from_iterable(_parts_of(cell, problems) for cell in cells)]
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


class _EventColumn(NamedTuple):
    """A column with the kind of event of each row."""

    name: str
    kinds: str
    """The events with their numbers, in words."""


def _find_event_column(file: str, problems: ReadProblems) -> _EventColumn | None:
    """Return the first column of events in a file; None if there is none."""
    for column, cells in problems.unused_columns.get(file, {}).items():
        kinds = event_kinds(column, cells)
        if kinds:
            return _EventColumn(column, kinds)
    return None


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
    parts = chain.from_iterable(_parts_of(cell, problems) for cell in cells)
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


def report_answers_of_ids(
    queries: Iterable[Query],
    problems: ReadProblems,
    documents: CheckedDocuments,
    declared: Sequence[DeclaredColumn],
) -> None:
    """Add a problem if all reference answers are ids of documents: perhaps labels."""
    if any(column.kind == "reference" for column in declared):
        return
    answers = chain.from_iterable(query.reference.answers for query in queries)
    ids: list[str] = []
    for answer in answers:
        ids += named_documents(answer, problems.names_document)
    matches = documents.match(ids)
    by_id = [
        id_ for id_ in ids if id_ in matches and matches[id_].matched_by != "title"
    ]
    if not ids or len(by_id) < len(ids):
        return
    for file, columns in problems.columns_used.items():
        for column, kind in columns.items():
            if kind == "reference":
                problems.add(
                    file,
                    f"{column!r} names documents, and is read as reference answers",
                    compose_remedy(
                        "if it has labels: ",
                        declaration("relevant", column),
                        "; if it has answers: ",
                        declaration("reference", column),
                    ),
                )


def find_label_column(
    problems: ReadProblems,
    documents: CheckedDocuments,
    declared: Sequence[DeclaredColumn],
) -> LabelColumnSearch:
    """Return the column of labels, found by its name.

    None is searched for if one is declared. If columns name documents, and none or
    several have a name of labels, that becomes a problem that shows what to declare; so
    does a column that names documents by their fields.
    """
    if any(column.kind in DOCUMENT_NAMING_KINDS for column in declared):
        return LabelColumnSearch(None)
    field_names = declared_field_names(declared)
    candidates = [
        candidate
        for candidate in _find_candidates(problems, documents)
        if candidate.column not in field_names
    ]
    named = [candidate for candidate in candidates if candidate.has_labels]
    if len({(candidate.column, candidate.kind) for candidate in named}) == 1:
        return LabelColumnSearch(DeclaredColumn(named[0].kind, named[0].column))
    if problems:
        return LabelColumnSearch(None)
    if candidates:
        problems.append(_label_question(candidates, problems))
    else:
        _report_keys_of_documents(problems, documents)
    return LabelColumnSearch(None, is_question=bool(problems))


def _label_question(
    candidates: Sequence[LabelColumnCandidate], problems: ReadProblems
) -> Problem:
    """Return the question which of some columns has labels."""
    column_list = ", ".join(
        f"{candidate.column!r} "
        f"({candidate.matched_parts:,} of {candidate.all_parts:,} parts)"
        for candidate in candidates
    )
    declarations = [
        declaration(candidate.kind, candidate.column) for candidate in candidates
    ]
    first = candidates[0]
    verb = "names" if len(candidates) == 1 else "name"
    problem = f"{column_list} {verb} documents, perhaps as labels"
    returned = _returned_columns(first.file, problems)
    if returned:
        problem += f"; {returned} looks like what a system returned"
    labels = join_remedies(" or ", declarations)
    event_column = _find_event_column(first.file, problems)
    if event_column is not None:
        problem += f"; {event_column.name!r} has {event_column.kinds}"
        chosen = where_declaration(event_column.name, "click")
        labels = compose_remedy(labels, ", and for the rows that are: ", chosen)
    remedy = compose_remedy(
        "if not: ",
        declaration(FIELDS_KIND, first.column),
        "; if a system returned them: ",
        Setting("kind", "run"),
        Option(f"harness init --columns run={first.column}"),
        "; if so: ",
        labels,
    )
    return Problem(first.file, problem, remedy)


def _returned_columns(file: str, problems: ReadProblems) -> str:
    """Return the columns of a file that a system filled, by their names."""
    names = [
        repr(column)
        for column in problems.columns_used.get(file, {})
        if RETURNED_PATTERN.search(column.casefold()) and not is_label_name(column)
    ]
    return ", ".join(names)


def _report_keys_of_documents(
    problems: ReadProblems, documents: CheckedDocuments
) -> None:
    """Add a problem for each column of objects with several fields of documents."""
    for file, columns in problems.unused_columns.items():
        for column, cells in columns.items():
            keys = _first_object_keys(cells)
            if keys and documents.field_names.issuperset(keys):
                _add_keys_of_documents(file, column, keys, problems)


def _first_object_keys(cells: Sequence[Any]) -> list[Any]:
    """Return the keys of the first value in a column; empty if it is not an object."""
    for cell in cells:
        for value in cell if isinstance(cell, list) else [cell]:
            return list(value) if isinstance(value, dict) else []
    return []


def _add_keys_of_documents(
    file: str, column: str, keys: Sequence[str], problems: ReadProblems
) -> None:
    """Add the problem of a column whose objects name documents by their fields."""
    paths = tuple(f"{column}.{key}" for key in keys)
    path_option = shlex.quote(f"label_document={','.join(paths)}")
    match = shlex.quote(",".join(keys))
    fields = ", ".join(f'"{key}"' for key in keys)
    problems.add(
        file,
        f"{column!r} names documents by their fields {fields}, and is not used",
        compose_remedy(
            "say so: ",
            Setting("label_document", paths, "columns"),
            ", ",
            Setting("match", tuple(keys)),
            Option(f"--columns {path_option} --match {match}"),
            "; ",
            not_labels_remedy(column),
        ),
    )


def _find_candidates(
    problems: ReadProblems, documents: CheckedDocuments
) -> Iterator[LabelColumnCandidate]:
    """Yield the unused columns, or paths into them, whose parts name documents."""
    for file, cells_by_column in problems.unused_columns.items():
        for path, leaves in _leaves_by_path(cells_by_column).items():
            parts = [_parts_of(leaf, problems) for leaf in leaves]
            # A list with an order is one query's; of single ids each row is one label.
            has_lists = path not in cells_by_column or any(map(_is_list, leaves))
            kind = "label_document"
            if has_lists or max(map(len, parts)) > 1:
                kind = "relevant"
            names = [*chain.from_iterable(parts)]
            matches = documents.match(names)
            matched = [name for name in names if name in matches]
            if not matched or len(matched) < MIN_NAMING_SHARE * len(names):
                continue
            by_id = [name for name in matched if matches[name].matched_by != "title"]
            names_by_id = len(by_id) >= MIN_ID_SHARE * len(matched)
            yield LabelColumnCandidate(
                file, path, kind, len(matched), len(names), names_by_id
            )


def _leaves_by_path(
    cells_by_column: Mapping[str, Sequence[Any]],
) -> dict[str, list[Any]]:
    """Return the values in the cells of some columns by their paths."""
    leaves: dict[str, list[Any]] = {}
    for column, cells in cells_by_column.items():
        for cell in cells:
            for path, leaf in cell_leaves(cell, column):
                leaves.setdefault(path, []).append(leaf)
    return leaves


def _parts_of(leaf: Any, problems: ReadProblems) -> tuple[str, ...]:
    """Return the documents that a cell lists, if it is read as labels."""
    is_whole = isinstance(leaf, str | list | tuple | Set) or holds_scores(leaf)
    return named_documents(leaf if is_whole else [leaf], problems.names_document)


def _is_list(leaf: Any) -> bool:
    return isinstance(leaf, list | tuple | dict | Set)
