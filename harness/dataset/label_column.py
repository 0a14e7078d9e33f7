"""The column of labels, found by its name.

It is looked for if no label was read. Columns that name documents under other names
become a question.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import Any, NamedTuple

from harness.dataset.check_corpus import CheckedDocuments
from harness.dataset.columns import (
    declaration,
    declared_field_names,
    not_labels_remedy,
)
from harness.dataset.events import event_kinds, where_declaration
from harness.dataset.label_lists import cell_leaves, holds_scores, named_documents
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DeclaredColumn
from harness.dataset.usual_names import (
    DOCUMENT_NAMING_KINDS,
    FIELDS_KIND,
    is_label_name,
)
from retrievers.errors import Problem
from retrievers.remedy import Option, Setting, compose_remedy, join_remedies

MIN_ID_SHARE = 0.9
"""Share of the named documents that labels name by id, not by title, at least."""
MIN_NAMING_SHARE = 0.5
"""Share of a column's parts that name documents, from which on it is a problem."""
RETURNED_PATTERN = re.compile(
    r"rank|position|score|distance|similarity|generated|prediction|predicted|"
    r"retriev|return|result|hits?$|response|top_?k"
)
"""Parts of the name of a column that a system filled."""


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
            parts = [listed_documents(leaf, problems) for leaf in leaves]
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


def listed_documents(leaf: Any, problems: ReadProblems) -> tuple[str, ...]:
    """Return the documents that a cell lists, if it is read as labels."""
    is_whole = isinstance(leaf, str | list | tuple | Set) or holds_scores(leaf)
    return named_documents(leaf if is_whole else [leaf], problems.names_document)


def _is_list(leaf: Any) -> bool:
    return isinstance(leaf, list | tuple | dict | Set)
