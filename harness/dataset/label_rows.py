"""Rows become labels: one judgment a row, one relevant document a row, or a list a query.

The same query labelled by several people, as ordered lists, is merged by one rule, and each list is kept. A model's
list is merged with no person's: where people listed a query, theirs count alone. A document's place is the sum of its
places in the lists, a list that does not name it counting one place beyond the tenth, or beyond the longest list; ties
are ordered by the better single place, then by id. At most ten are kept, or as many as the longest list has.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from harness.dataset.columns import (
    CLICKS,
    PlacedRow,
    declaring,
    folded,
    keeping,
    recognised,
    shown,
    texts_in,
)
from harness.dataset.dataset_model import Labels
from harness.dataset.source import WHOLE, SourceLocation, grade_of, written_value
from retrievers.ids import document_id, nfc

LISTS = "|;\n,"
"""What parts the ids of a list in one cell: the first of these that occurs in it."""
Known = Callable[[str], bool]
"""Whether a text names a document."""
HOP = re.compile(r"^\s*<\d+-hop>\s*")
"""Stands before each context of Ragas's questions that need several."""
MOST = 10
"""So many documents of merged lists are kept, or as many as the longest list has."""
Labelled = tuple[SourceLocation, str, Labels]
Gathered = tuple[SourceLocation, dict[str, int], "array[int]"]
"""Labels of one query, one per row: the place of the first, grades by document, and the line of each."""


def labels_of(
    lines: Iterable[PlacedRow], queries: Mapping[str, str] | None = None
) -> Iterator[Labelled]:
    """Labels in any of three shapes: a row a judgment with a grade, a row a relevant document, or a list a query.

    A list is best first, a list of lists are groups of alternatives, an object holds grades; in one cell of text it is
    JSON, or ids with `|`, `;`, line feeds or commas between. A pair on several rows without a grade is
    counted once, and clicks on it are added up.

    Args:
        lines: of the labels, or of queries that carry their labels.
        queries: text -> id, where the rows have no column for a query's id.
    """
    gathered: dict[str, Gathered] = {}
    listed, any_quoted = dict[str, SourceLocation](), False
    lacking: PlacedRow | None = None
    for line in lines:
        query = _query_of(line, queries)
        if query is None:
            continue
        quoted = line.name("contexts") is not None
        named, relevant = line.value("label_document"), line.value("relevant")
        lists = (
            cell
            for cell in map(written_value, (named, relevant))
            if isinstance(cell, list)
        )
        objects = next(
            (cell for cell in lists if any(isinstance(one, Mapping) for one in cell)),
            None,
        )
        if named is None and line.name("grade"):
            named = relevant
        any_quoted |= quoted
        if objects is None and (named is not None or quoted):
            into = gathered.setdefault(query, (line.place, {}, array("I")))
            _gather(line, named, into, query, named_query=queries is None)
        elif objects is None and line.name("relevant") is None:
            lacking = (
                lacking or line
            )  # a query without labels may lack the column where others have lists
        elif query in listed:
            line.wrong(
                f"query {query!r} has labels on two rows", f"also {listed[query]}"
            )
        else:
            labels = read_list(objects or relevant, line.problems.names_document)
            listed[query] = line.place
            if isinstance(labels, Labels):
                yield line.place, query, labels
            else:
                line.wrong(*labels)
    if lacking is not None and not listed:
        _refuse_unnamed(lacking)
    for query, (place, grades, numbers) in gathered.items():
        yield (
            place._replace(lines=numbers),
            query,
            Labels(grades=grades, quoted=any_quoted),
        )


def _gather(
    line: PlacedRow, named: Any, into: Gathered, query: str, *, named_query: bool
) -> None:
    """Take in the judgments of one row.

    A document that comes again is counted if no column grades it, its clicks are added up, and else it is a problem.
    """
    _, grades, numbers = into
    graded = line.name("grade")
    for document, grade in _graded(line, named):
        if document not in grades:
            grades[document] = grade
            numbers.append(line.place.line or 0)
        elif not graded:
            line.problems.note("repeated-label", f"{query} {document}")
        elif folded(graded) == CLICKS:
            grades[document] += grade
        else:
            who = f"query {query!r}" if named_query else "the query"
            line.wrong(
                f"{who} and document {document!r} are judged twice",
                "keep one of the two",
            )


def _query_of(line: PlacedRow, queries: Mapping[str, str] | None) -> str | None:
    if queries is not None:
        return queries.get(
            str(line.value("query"))
        )  # what has no text was told with the queries
    named = line.name("label_query") or "label_query" in line.columns.declared
    return line.id("label_query" if named else "query_id")


def _graded(line: PlacedRow, named: Any) -> Iterator[tuple[str, int]]:
    """The documents of a row, by id or by passage, with their grades: one for each, or one for all, else 1."""
    if named is None:
        passages = texts_in(
            line.value("contexts"),
            line.name("contexts") or "",
            line.place,
            line.problems,
        )
        documents: list[str | None] = [HOP.sub("", text) for text in passages]
    else:
        held = (
            _cell(named, line.problems.names_document)
            if isinstance(named, str)
            else named
        )
        documents = [
            document_id(one) for one in (held if isinstance(held, list) else [held])
        ]
        if None in documents or not documents:
            line.wrong(f"the document's id is {shown(named)}", "an id is text")
            documents = []
    written = 1 if line.name("grade") is None else line.value("grade")
    several = (
        written
        if isinstance(written, list) and len(written) == len(documents)
        else [written] * len(documents)
    )
    grades = list(map(grade_of, several))
    if None in grades:
        line.wrong(f"grade {shown(written)} is not a whole number", WHOLE)
    else:
        yield from (
            (str(doc), grade or 0) for doc, grade in zip(documents, grades, strict=True)
        )


def _refuse_unnamed(line: PlacedRow) -> None:
    """Complain that no column names documents."""
    grades = line.name("grade")
    if grades is None or line.name("label_query") is not None:
        line.wrong(*line.columns.lacking("label_document", line.row))
    else:
        what = f"{grades!r} could hold grades, and no column names the documents"
        line.wrong(what, f"say which: {declaring('label_document')}; {keeping(grades)}")


def read_list(listed: Any, known: Known) -> Labels | tuple[str, str]:
    """Read one query's relevant documents: ids best first, groups, grades by id, or objects that hold these.

    Of what cannot be read the complaint comes back, with a remedy.

    >>> read_list("d1; d2", {"d1"}.__contains__).documents
    ('d1', 'd2')
    >>> read_list([{"id": "d1", "grade": 2}, {"id": "d3", "grade": 0}], set().__contains__).grades
    {'d1': 2, 'd3': 0}
    """
    if isinstance(listed, str):
        listed = _cell(listed, known)
    if isinstance(listed, Mapping) and (
        name := recognised("document_id", tuple(listed))
    ):
        listed = (
            [listed]
            if isinstance(listed[name], str) and grade_of(listed[name]) is None
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
            remedy = f"say which key holds the document: {declaring('relevant', 'COLUMN.KEY')}"
            return f"no key of {shown(unknown)} is known to name a document", remedy
        graded = any(grade is not None for _, grade in pairs)
        listed = (
            {id_: 1 if grade is None else grade for id_, grade in pairs}
            if graded
            else [id_ for id_, _ in pairs]
        )
    if isinstance(listed, Mapping):
        grades = {
            nfc(str(doc)): grade_of(grade)
            for doc, grade in listed.items()
            if grade is not None
        }
        if wrong := [doc for doc, grade in grades.items() if grade is None]:
            return (
                f"grade {repr(listed[wrong[0]])[:40]} of document {wrong[0]!r} is not a whole number",
                WHOLE,
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
        f"relevant documents cannot be read: {shown(listed)}",
        "a list of ids, best first",
    )


def _object(one: Mapping[str, Any]) -> tuple[str | None, Any]:
    """The document that an object names, and its grade; None for what it does not have."""
    grade = recognised("grade", tuple(one))
    others = tuple(name for name in one if name != grade)
    ids = [name for name in others if document_id(one[name]) is not None]
    name = recognised("document_id", others) or recognised("label_document", others)
    name = name or (ids[0] if len(ids) == 1 else "")
    return document_id(one.get(name)), None if grade is None else one[grade]


def holds_grades(cell: Any) -> bool:
    """Whether a cell is an object that has documents for keys, and their grades."""
    return isinstance(cell, Mapping) and all(
        grade_of(grade) is not None for grade in cell.values()
    )


def leaves_of(cell: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The values in a cell, each with the path that leads to it: further than to an object that names a document.

    >>> list(leaves_of([{"doc": {"ref": "d1"}, "why": "so"}], "gold")), list(leaves_of("d1; d2", "gold"))
    ([('gold.doc', {'ref': 'd1'}), ('gold.why', 'so')], [('gold', 'd1; d2')])
    """
    if isinstance(cell, list) and any(isinstance(one, Mapping) for one in cell):
        for one in cell:
            yield from leaves_of(one, path)
    elif (
        isinstance(cell, Mapping)
        and not holds_grades(cell)
        and _object(cell)[0] is None
    ):
        for key, held in cell.items():
            yield from leaves_of(held, f"{path}.{key}")
    else:
        yield path, cell


def _cell(text: str, known: Known) -> Any:
    """What one cell of text lists: one id if the whole of it names a document, else what it is parted into.

    Ids may hold what parts them: so many parts as name a document together are one id, and commas part ids only if one
    of them names a document, since names of files may hold commas.

    >>> _cell("acts, 1999; b", {"acts, 1999"}.__contains__), _cell("a, b, c", {"a, b"}.__contains__)
    (['acts, 1999', 'b'], ['a, b', 'c'])
    >>> _cell("leave, paid.md", {"a"}.__contains__)
    ['leave, paid.md']
    """
    text = text.strip()
    listed = text[:1] in ("[", "{")
    mark = next((mark for mark in LISTS if mark in text), None)
    if not text or not (listed or mark) or known(text):
        return [text] if text else []
    if listed or mark is None:
        return written_value(
            text
        )  # text, where it cannot be read: told by the caller, which expects none
    pieces, parts = text.split(mark), list[str]()
    while pieces:
        ends = range(len(pieces), 1, -1)
        end = (
            next((end for end in ends if known(mark.join(pieces[:end]).strip())), 1)
            if len(pieces) <= MOST
            else 1
        )
        parts.append(mark.join(pieces[:end]).strip())
        pieces = pieces[end:]
    parts = [part for part in parts if part]
    return parts if mark != "," or any(map(known, parts)) else [text]


def merged(rows: Iterable[Labelled]) -> Iterator[Labelled]:
    """Bring the lists of several labellers of one query together; what one labeller labelled alone stays as it is."""
    by_query: dict[str, list[Labelled]] = {}
    for row in rows:
        by_query.setdefault(row[1], []).append(row)
    for query, given in by_query.items():
        labelled = [row for row in given if not row[2].source] or given
        lists = {
            labels.by: labels.ranked
            for _, _, labels in labelled
            if labels.by and labels.ranked is not None
        }
        if len(lists) == len(labelled) > 1:
            yield (
                labelled[0][0],
                query,
                replace(merge_lists(lists), source=labelled[0][2].source),
            )
        else:
            yield from labelled


def merge_lists(lists: Mapping[str, tuple[str, ...]]) -> Labels:
    """Merge the lists of several labellers.

    >>> merge_lists({"ann": ("x", "y"), "ben": ("y", "z")}).ranked
    ('y', 'x', 'z')
    >>> merge_lists({"ann": ("x", *"abcy"), "ben": (*"pqrst", "y")}).ranked[0]  # ranks 5 and 6; "x" has 1 and 11
    'y'
    """
    most = max(MOST, *(len(ranked) for ranked in lists.values()))
    places = {
        document: [
            ranked.index(document) + 1 if document in ranked else most + 1
            for ranked in lists.values()
        ]
        for document in chain.from_iterable(lists.values())
    }
    order = sorted(
        places,
        key=lambda document: (sum(places[document]), min(places[document]), document),
    )
    given = {
        judge: {document: len(ranked) - place for place, document in enumerate(ranked)}
        for judge, ranked in sorted(lists.items())
    }
    return Labels(ranked=tuple(order[:most]), by=", ".join(sorted(lists)), given=given)
