"""The relevant documents that one cell lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.dataset.columns import declaration
from harness.dataset.labels import Labels
from harness.dataset.merge_lists import MAX_MERGED_DOCUMENTS
from harness.dataset.usual_names import usual_column
from harness.dataset.written_values import (
    GRADE_REMEDY,
    parse_cell,
    parse_grade,
    quoted_value,
)
from retrievers.ids import document_id, to_nfc

LIST_SEPARATORS = "|;\n,"
"""What parts the ids of a list in one cell: the first of these that occurs in it."""
NamesDocument = Callable[[str], bool]
"""Whether a text names a document."""


def read_label_list(listed: Any, known: NamesDocument) -> Labels | tuple[str, str]:
    """Read one query's relevant documents: ids best first, groups, grades by id, or objects that hold these.

    Of what cannot be read the complaint comes back, with a remedy.

    >>> read_label_list("d1; d2", {"d1"}.__contains__).documents
    ('d1', 'd2')
    >>> read_label_list([{"id": "d1", "grade": 2}, {"id": "d3", "grade": 0}], set().__contains__).grades
    {'d1': 2, 'd3': 0}
    """
    if isinstance(listed, str):
        listed = split_cell(listed, known)
    if isinstance(listed, Mapping) and (
        name := usual_column("document_id", tuple(listed))
    ):
        listed = (
            [listed]
            if isinstance(listed[name], str) and parse_grade(listed[name]) is None
            else listed
        )
    if (
        isinstance(listed, list | tuple)
        and listed
        and all(isinstance(one, Mapping) for one in listed)
    ):
        pairs = [_object(one) for one in listed]
        if unknown := next(
            (one for one, (id_, _) in zip(listed, pairs, strict=True) if id_ is None),
            None,
        ):
            remedy = f"say which key holds the document: {declaration('relevant', 'COLUMN.KEY')}"
            return (
                f"no key of {quoted_value(unknown)} is known to name a document",
                remedy,
            )
        graded = any(grade is not None for _, grade in pairs)
        listed = (
            {id_: 1 if grade is None else grade for id_, grade in pairs}
            if graded
            else [id_ for id_, _ in pairs]
        )
    if isinstance(listed, Mapping):
        grades = {
            to_nfc(str(doc)): parse_grade(grade)
            for doc, grade in listed.items()
            if grade is not None
        }
        if wrong := [doc for doc, grade in grades.items() if grade is None]:
            return (
                f"grade {repr(listed[wrong[0]])[:40]} of document {wrong[0]!r} is not a whole number",
                GRADE_REMEDY,
            )
        return Labels(
            grades={doc: grade for doc, grade in grades.items() if grade is not None}
        )
    listed = () if listed is None else listed
    if isinstance(listed, list | tuple):
        grouped = bool(listed) and all(isinstance(one, list | tuple) for one in listed)
        groups = [
            tuple(map(document_id, group))
            for group in (listed if grouped else [listed])
        ]
        if not any(None in group for group in groups):
            found = tuple(tuple(map(str, group)) for group in groups)
            return (
                Labels(groups=tuple(filter(None, found)))
                if grouped
                else Labels(ranked=found[0])
            )
    return (
        f"relevant documents cannot be read: {quoted_value(listed)}",
        "a list of ids, best first",
    )


def _object(one: Mapping[str, Any]) -> tuple[str | None, Any]:
    """The document that an object names, and its grade; None for what it does not have."""
    grade = usual_column("grade", tuple(one))
    others = tuple(name for name in one if name != grade)
    ids = [name for name in others if document_id(one[name]) is not None]
    name = usual_column("document_id", others) or usual_column("label_document", others)
    name = name or (ids[0] if len(ids) == 1 else "")
    return document_id(one.get(name)), None if grade is None else one[grade]


def holds_grades(cell: Any) -> bool:
    """Whether a cell is an object that has documents for keys, and their grades."""
    return isinstance(cell, Mapping) and all(
        parse_grade(grade) is not None for grade in cell.values()
    )


def cell_leaves(cell: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The values in a cell, each with the path that leads to it: further than to an object that names a document.

    >>> list(cell_leaves([{"doc": {"ref": "d1"}, "why": "so"}], "gold")), list(cell_leaves("d1; d2", "gold"))
    ([('gold.doc', {'ref': 'd1'}), ('gold.why', 'so')], [('gold', 'd1; d2')])
    """
    if isinstance(cell, list) and any(isinstance(one, Mapping) for one in cell):
        for one in cell:
            yield from cell_leaves(one, path)
    elif (
        isinstance(cell, Mapping)
        and not holds_grades(cell)
        and _object(cell)[0] is None
    ):
        for key, held in cell.items():
            yield from cell_leaves(held, f"{path}.{key}")
    else:
        yield path, cell


def split_cell(text: str, known: NamesDocument) -> Any:
    """What one cell of text lists: one id if the whole of it names a document, else what it is parted into.

    Ids may hold what parts them: so many parts as name a document together are one id, and commas part ids only if one
    of them names a document, since names of files may hold commas.

    >>> split_cell("acts, 1999; b", {"acts, 1999"}.__contains__), split_cell("a, b, c", {"a, b"}.__contains__)
    (['acts, 1999', 'b'], ['a, b', 'c'])
    >>> split_cell("leave, paid.md", {"a"}.__contains__)
    ['leave, paid.md']
    """
    text = text.strip()
    listed = text[:1] in ("[", "{")
    mark = next((mark for mark in LIST_SEPARATORS if mark in text), None)
    if not text or not (listed or mark) or known(text):
        return [text] if text else []
    if listed or mark is None:
        return parse_cell(
            text
        )  # text, where it cannot be read: told by the caller, which expects none
    pieces, parts = text.split(mark), list[str]()
    while pieces:
        ends = range(len(pieces), 1, -1)
        end = (
            next((end for end in ends if known(mark.join(pieces[:end]).strip())), 1)
            if len(pieces) <= MAX_MERGED_DOCUMENTS
            else 1
        )
        parts.append(mark.join(pieces[:end]).strip())
        pieces = pieces[end:]
    parts = [part for part in parts if part]
    return parts if mark != "," or any(map(known, parts)) else [text]
