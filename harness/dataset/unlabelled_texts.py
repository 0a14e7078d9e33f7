"""Unused columns with the texts of documents.

They may be labels that quote documents. The search takes a pass over the corpus, so it
comes last, if nothing else was found (`label_column`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from harness.dataset.columns import (
    declarations,
    declared_field_names,
    not_labels_remedy,
)
from harness.dataset.quoted_texts import documents_with_text
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DeclaredColumn
from harness.dataset.usual_names import judges_documents
from harness.dataset.written_values import parse_cell, parse_judgment
from retrievers.ids import normalise_text
from retrievers.remedy import compose_remedy
from retrievers.types import Document

MIN_MATCHED_SHARE = 0.5
"""Share of a column's texts that are documents, from which on it is a problem."""
MAX_COMPARED_TEXTS = 1_000
"""Texts of one column, at most, that are compared with the documents."""


class _TextColumn(NamedTuple):
    """A column of texts, or a path into one."""

    file: str
    path: str
    texts: Sequence[str]
    """The texts in the form that is compared, which ignores case and white space."""
    flag: str
    """The path of grades or flags beside the texts; empty if there are none."""


def report_texts_of_documents(
    problems: ReadProblems,
    documents: Iterable[Document],
    declared: Sequence[DeclaredColumn],
) -> bool:
    """Add a problem for each unused column whose texts are those of documents.

    Args:
        problems: takes the problems, and has the columns.
        documents: the corpus; it is read only if there is such a column.
        declared: the columns that are declared.

    Returns:
        Whether there is a problem.
    """
    skipped = declared_field_names(declared)
    columns = list(_text_columns(problems, skipped))
    texts = set(chain.from_iterable(column.texts for column in columns))
    if not texts:
        return False
    id_by_text = documents_with_text(texts, documents, full_texts=texts)
    has_problem = False
    for column in columns:
        matched = sum(text in id_by_text for text in column.texts)
        if matched and matched >= MIN_MATCHED_SHARE * len(column.texts):
            _add_question(column, matched, problems)
            has_problem = True
    return has_problem


def _text_columns(
    problems: ReadProblems, skipped: Sequence[str]
) -> Iterator[_TextColumn]:
    """Yield the unused columns, or paths into them, with texts."""
    for file, cells_by_column in problems.unused_columns.items():
        for name, cells in cells_by_column.items():
            if name in skipped:
                continue
            leaves = _leaves_by_path(name, cells)
            for path, values in leaves.items():
                texts = [
                    normalise_text(value) for value in values if _may_be_text(value)
                ][:MAX_COMPARED_TEXTS]
                if texts:
                    yield _TextColumn(file, path, texts, _flag_beside(path, leaves))


def _leaves_by_path(column: str, cells: Iterable[Any]) -> Mapping[str, Sequence[Any]]:
    leaves = defaultdict[str, list[Any]](list)
    for cell in cells:
        _add_leaves(parse_cell(cell), column, leaves)
    return leaves


def _add_leaves(cell: Any, path: str, leaves: dict[str, list[Any]]) -> None:
    """Add the texts and numbers in a cell under their paths."""
    if isinstance(cell, list | tuple):
        for element in cell:
            _add_leaves(element, path, leaves)
    elif isinstance(cell, Mapping):
        for key, element in cell.items():
            _add_leaves(element, f"{path}.{key}", leaves)
    elif cell is not None:
        leaves[path].append(cell)


def _may_be_text(leaf: Any) -> bool:
    """Whether a value is no name; texts of some scripts have no spaces."""
    if not isinstance(leaf, str):
        return False
    text = leaf.strip()
    return " " in text or not text.isascii()


def _flag_beside(path: str, leaves: Mapping[str, Sequence[Any]]) -> str:
    """Return the path of what judges the texts under a path; empty without it."""
    parent, dot, _ = path.rpartition(".")
    for other_path, values in leaves.items():
        other_parent, _, key = other_path.rpartition(".")
        is_beside = dot and other_path != path and other_parent == parent
        if is_beside and judges_documents(key) and all(map(_is_grade, values)):
            return other_path
    return ""


def _is_grade(leaf: Any) -> bool:
    return parse_judgment(leaf) is not None


def _add_question(column: _TextColumn, matched: int, problems: ReadProblems) -> None:
    problem = (
        f"{column.path!r} has the texts of documents ({matched:,} of "
        f"{len(column.texts):,}), and no column is known to hold labels"
    )
    declared = [DeclaredColumn("contexts", column.path)]
    if column.flag:
        declared.append(DeclaredColumn("grade", column.flag))
    outer_column = column.path.partition(".")[0]
    remedy = compose_remedy(
        "if these are labels: ",
        declarations(*declared),
        "; ",
        not_labels_remedy(outer_column),
    )
    problems.add(column.file, problem, remedy)
