"""The relevant documents that one cell lists.

`read_label_list` returns the labels in a cell, or a complaint without a place:
`label_rows` adds the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

from harness.dataset.columns import declaration
from harness.dataset.complaint import Complaint
from harness.dataset.judging_columns import MAX_GUESSED_GRADE
from harness.dataset.labels import Labels, WrittenSpan
from harness.dataset.split_cell import NamesDocument, split_cell, split_elements
from harness.dataset.usual_names import (
    SCORE_NAME,
    judges_documents,
    normalised_name,
    usual_column,
    words_of_name,
)
from harness.dataset.written_spans import SPANS_KEY, SPANS_REMEDY, read_spans
from harness.dataset.written_values import (
    GRADE_REMEDY,
    MAX_QUOTED_LENGTH,
    parse_grade,
    parse_judgment,
    quoted_value,
)
from retrievers.ids import document_id, to_nfc
from retrievers.remedy import compose_remedy


class _GradedId(NamedTuple):
    """The document in an object, and its grade; None if missing.

    A word or flag that judges is a number here; any other grade is as it is written.
    """

    id: str | None
    grade: Any


def read_label_list(cell: Any, names_document: NamesDocument) -> Labels | Complaint:
    """Read the relevant documents of one query.

    These are ids, best first; groups of ids; grades by id, also as pairs; or objects
    with these. None, or an empty text or list, has no relevant document.

    >>> read_label_list("d1; d2", {"d1"}.__contains__).documents
    ('d1', 'd2')
    >>> objects = [{"id": "d1", "grade": 2}, {"id": "d3", "grade": 0}]
    >>> read_label_list(objects, set().__contains__).grades
    {'d1': 2, 'd3': 0}
    """
    cell = scores_or_list(cell, names_document)
    if are_pairs(cell):  # else they have become grades by document
        return _graded_twice(cell)
    written_spans: list[WrittenSpan] = []
    if _are_objects(cell):
        graded_ids = [_graded_id(object_) for object_ in cell]
        complaint = _missing_id(cell, graded_ids) or _large_grade(cell)
        if complaint is not None:
            return complaint
        spans = _read_object_spans(cell, graded_ids)
        if isinstance(spans, Complaint):
            return spans
        written_spans = spans
        if _contradict(graded_ids):
            return _graded_twice(cell)
        cell = _as_grades_or_ids(graded_ids)
    labels = _read_grades_or_ids(cell, names_document)
    if written_spans and isinstance(labels, Labels):
        return replace(labels, written_spans=tuple(written_spans))
    return labels


def named_documents(cell: Any, names_document: NamesDocument) -> tuple[str, ...]:
    """Return the documents that a cell names, whatever their grades or scores are.

    A document may be repeated. Empty if the cell cannot be read.

    >>> named_documents([{"id": "d1", "score": 0.9}], set().__contains__)
    ('d1',)
    >>> named_documents({"d1": 0.9, "d3": 0.2}, set().__contains__)
    ('d1', 'd3')
    """
    cell = scores_or_list(cell, names_document)
    if _are_objects(cell):
        cell = [graded_id.id for graded_id in map(_graded_id, cell)]
        cell = [id_ for id_ in cell if id_ is not None]
    elif are_pairs(cell):
        cell = [id_ for id_, _ in cell]
    elif holds_scores(cell):
        cell = [*cell]
    labels = _read_grades_or_ids(cell, names_document)
    return labels.documents if isinstance(labels, Labels) else ()


def scores_or_list(cell: Any, names_document: NamesDocument) -> Any:
    """Return the value of a cell: a list, or scores or grades by document.

    Any other value is returned as it is.
    """
    if isinstance(cell, str):
        cell = split_cell(cell, names_document)
    if isinstance(cell, Mapping) and _is_document(cell, names_document):
        return [cell]
    if isinstance(cell, Set):  # in no order: each of them has grade 1
        return dict.fromkeys(sorted(cell, key=str), 1)
    if are_pairs(cell):
        grades = dict(cell)
        # Pairs that grade a document twice stay a list, which is refused.
        return grades if len(grades) == len(cell) else cell
    return cell


def are_pairs(cell: Any) -> bool:
    """Whether a cell lists documents, each with its grade or score.

    >>> are_pairs([["d1", 2], ["d3", 0]]), are_pairs([["d1", "d2"], ["d3", "d4"]])
    (True, False)
    """
    if not isinstance(cell, list | tuple) or not cell:
        return False
    return all(
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], Real)
        for pair in cell
    )


def _is_number(cell: Any) -> bool:
    return isinstance(cell, Real) and not isinstance(cell, bool)


def _read_object_spans(
    objects: Sequence[Mapping[str, Any]], graded_ids: Sequence[_GradedId]
) -> list[WrittenSpan] | Complaint:
    """Return the spans of all objects of a list."""
    written_spans: list[WrittenSpan] = []
    for object_, graded_id in zip(objects, graded_ids, strict=True):
        spans = read_spans(object_.get(SPANS_KEY), graded_id.id or "")
        if spans is None:
            return unreadable_spans(object_[SPANS_KEY])
        written_spans += spans
    return written_spans


def _missing_id(
    objects: Sequence[Mapping[str, Any]], graded_ids: Sequence[_GradedId]
) -> Complaint | None:
    """Return the complaint about the first object without an id; None for none."""
    for object_, graded_id in zip(objects, graded_ids, strict=True):
        if graded_id.id is not None:
            continue
        if not object_:
            return _unreadable_ids(objects)
        declared = declaration("relevant", "COLUMN.KEY")
        return Complaint(
            f"no key of {quoted_value(object_)} is known to name a document",
            compose_remedy("say which key holds the document: ", declared),
        )
    return None


def _graded_twice(cell: Any) -> Complaint:
    problem = f"{quoted_value(cell)} grades a document twice"
    return Complaint(problem, "keep one of its grades")


def _contradict(graded_ids: Sequence[_GradedId]) -> bool:
    """Whether a document has two grades that differ."""
    grade_by_id: dict[str | None, Any] = {}
    for id_, grade in graded_ids:
        first = grade_by_id.setdefault(id_, grade)
        # NaN differs from itself; it is refused as a grade later.
        if first is not grade and first != grade:
            return True
    return False


def _read_grades_or_ids(cell: Any, names_document: NamesDocument) -> Labels | Complaint:
    if isinstance(cell, Mapping):
        return _read_grades(cell)
    return _read_ids(() if cell is None else cell, names_document)


def unreadable_spans(cell: Any) -> Complaint:
    """Return the reason that the spans of a label cannot be read."""
    return Complaint(f"{quoted_value(cell)} is no list of spans", SPANS_REMEDY)


def _is_document(object_: Mapping[str, Any], names_document: NamesDocument) -> bool:
    """Whether an object describes one document, and has not grades by document."""
    id_key = usual_column("document_id", tuple(object_))
    if not id_key:
        return False
    id_ = object_[id_key]
    if _grade_key(object_) is not None and not names_document(id_key):
        return document_id(id_) is not None
    # A number may be the grade of a document that is called "id".
    return isinstance(id_, str) and parse_grade(id_) is None


def _are_objects(cell: Any) -> bool:
    if not isinstance(cell, list | tuple) or not cell:
        return False
    return all(isinstance(element, Mapping) for element in cell)


def _graded_id(object_: Mapping[str, Any]) -> _GradedId:
    grade_key = _grade_key(object_)
    keys = tuple(key for key in object_ if key not in (grade_key, SPANS_KEY))
    id_key = usual_column("document_id", keys) or usual_column("label_document", keys)
    if not id_key:
        keys_of_ids = [key for key in keys if document_id(object_[key]) is not None]
        id_key = keys_of_ids[0] if len(keys_of_ids) == 1 else ""
    grade = None if grade_key is None else object_[grade_key]
    judgment = parse_judgment(grade)
    return _GradedId(
        document_id(object_.get(id_key)), grade if judgment is None else judgment
    )


def _grade_key(object_: Mapping[str, Any]) -> str | None:
    """Return the key of an object's grade; None if it has none.

    If there is a score and a judgment, the judgment: a system may have given the score.
    """
    judging = (key for key, cell in object_.items() if _is_judgment(key, cell))
    judging_key = next(judging, None)
    usual_key = usual_column("grade", tuple(object_))
    if usual_key is None or normalised_name(usual_key) == SCORE_NAME:
        return judging_key or usual_key
    return usual_key


def _large_grade(objects: Sequence[Mapping[str, Any]]) -> Complaint | None:
    """Return the complaint that a guessed grade is too large; None if none is."""
    for object_ in objects:
        key = _grade_key(object_)
        if key is None or usual_column("grade", (key,)):
            continue
        grade = parse_grade(object_[key])
        if grade is not None and grade > MAX_GUESSED_GRADE:
            problem = f"{key!r} is {grade}, which may be no grade"
            remedy = "if it is one, call it grade; else give it another name"
            return Complaint(problem, remedy)
    return None


def _is_judgment(key: object, cell: Any) -> bool:
    """Whether the value under a key is a number, a flag or a word that judges.

    >>> _is_judgment("query_relevance_label", 0), _is_judgment("is_relevant", "no")
    (True, True)
    >>> _is_judgment("relevant_page", 12), _is_judgment("gold_text", "a ship")
    (False, False)
    """
    name = str(key)
    if not judges_documents(name):
        return False
    # "is_relevant" is about nothing else: what cannot be read there is refused.
    is_question = "is" in words_of_name(name) and isinstance(cell, str)
    return is_question or _is_number(cell) or parse_judgment(cell) is not None


def _as_grades_or_ids(graded_ids: Sequence[_GradedId]) -> Any:
    """Return grades by document if there are any, else ids, best first.

    Beside grades, an object without one is a relevant document.
    """
    if all(graded_id.grade is None for graded_id in graded_ids):
        return [graded_id.id for graded_id in graded_ids]
    grades: dict[str | None, Any] = {}
    for id_, grade in graded_ids:
        grades[id_] = 1 if grade is None else grade
    return grades


def _read_grades(cell: Mapping[Any, Any]) -> Labels | Complaint:
    """Read grades by document; documents without a grade are not judged."""
    grades: dict[str, int] = {}
    for key, written_grade in cell.items():
        if written_grade is None:
            continue
        id_ = to_nfc(str(key))
        grade = parse_judgment(written_grade)
        if grade is None:
            shown_grade = repr(written_grade)[:MAX_QUOTED_LENGTH]
            problem = f"grade {shown_grade} of document {id_!r} is not a whole number"
            return Complaint(problem, GRADE_REMEDY)
        grades[id_] = grade
    return Labels(grades=grades)


def _read_ids(cell: Any, names_document: NamesDocument) -> Labels | Complaint:
    """Read ids, best first, or groups of ids."""
    if not isinstance(cell, list | tuple):
        return _unreadable_ids(cell)
    are_groups = bool(cell) and all(isinstance(part, list | tuple) for part in cell)
    groups: list[tuple[str, ...]] = []
    for group in cell if are_groups else [cell]:
        ids = [document_id(element) for element in group]
        if None in ids:
            return _unreadable_ids(cell)
        groups.append(tuple(split_elements(map(str, ids), names_document)))
    if are_groups:
        return Labels(groups=tuple(filter(None, groups)))
    return Labels(ranked=groups[0])


def _unreadable_ids(cell: Any) -> Complaint:
    problem = f"relevant documents cannot be read: {quoted_value(cell)}"
    return Complaint(problem, "a list of ids, best first")


def holds_scores(cell: Any) -> bool:
    """Whether a cell is an object with numbers, or flags, by document."""
    if not isinstance(cell, Mapping) or not cell:
        return False
    return all(isinstance(score, Real) for score in cell.values())


def cell_leaves(cell: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the values in a cell, each with its path.

    An object that names a document, or has grades by document, is one value.

    >>> list(cell_leaves([{"doc": {"ref": "d1"}, "why": "so"}], "gold"))
    [('gold.doc', {'ref': 'd1'}), ('gold.why', 'so')]
    >>> list(cell_leaves("d1; d2", "gold"))
    [('gold', 'd1; d2')]
    """
    if isinstance(cell, list) and any(isinstance(part, Mapping) for part in cell):
        for part in cell:
            yield from cell_leaves(part, path)
    elif isinstance(cell, Mapping) and not _is_one_value(cell):
        for key, part in cell.items():
            yield from cell_leaves(part, f"{path}.{key}")
    else:
        yield path, cell


def _is_one_value(object_: Mapping[str, Any]) -> bool:
    return holds_scores(object_) or _graded_id(object_).id is not None
