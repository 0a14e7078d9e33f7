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
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from harness.dataset.columns import CLICKS, Columns, declaring, folded, id_in, keeping, recognised, shown, texts_in
from harness.dataset.dataset_model import Labels
from harness.dataset.rows import Row
from harness.dataset.source import WHOLE, Findings, SourceLocation, grade_of, written_value
from retrievers.errors import Problem
from retrievers.ids import document_id, nfc

LISTS = "|;\n,"
"""What parts the ids of a list in one cell: the first of these that stands in it."""
Known = Callable[[str], bool]
"""Whether a text names a document."""
HOP = re.compile(r"^\s*<\d+-hop>\s*")
"""Stands before each context of Ragas's questions that need several."""
MOST = 10
"""So many documents of merged lists are kept, or as many as the longest list has."""
Labelled = tuple[SourceLocation, str, Labels]


@dataclass(slots=True)
class Gathered:
    """Judgments of one query that stand one a row, with the line of each."""

    place: SourceLocation
    named: bool
    """Whether queries have ids of their own."""
    grades: dict[str, int] = field(default_factory=dict)
    lines: array[int] = field(default_factory=lambda: array("I"))

    def add(
        self, place: SourceLocation, document: str, grade: int, problems: Findings, graded: str, query: str
    ) -> None:
        """Take in one judgment.

        A document that comes again is counted if no column grades it, its clicks are added up, and else it becomes a
        problem.
        """
        if document not in self.grades:
            self.grades[document] = grade
            self.lines.append(place.line or 0)
        elif not graded:
            problems.note("repeated-label", f"{query} {document}")
        elif folded(graded) == CLICKS:
            self.grades[document] += grade
        else:
            who = f"query {query!r}" if self.named else "the query"
            problems.wrong(place, f"{who} and document {document!r} are judged twice", "keep one of the two")


def labels_of(
    rows: Iterable[tuple[SourceLocation, Row]],
    columns: Columns,
    problems: Findings,
    queries: Mapping[str, str] | None = None,
) -> Iterator[Labelled]:
    """Labels in any of three shapes: a row a judgment with a grade, a row a relevant document, or a list a query.

    A list is best first, a list of lists are groups of alternatives, an object holds grades; in one cell of text it is
    JSON, or ids with `|`, `;`, line feeds or commas between. A pair that stands on several rows without a grade is
    counted once, and clicks on it are added up.

    Args:
        rows: of the labels, or of queries that carry their labels.
        columns: what they are called.
        problems: where complaints go.
        queries: text -> id, where the rows have no column for a query's id.
    """
    gathered, listed, any_quoted = dict[str, Gathered](), dict[str, SourceLocation](), False
    lacking: Problem | None = None
    for place, row in rows:
        query = _query_named(row, place, columns, problems, queries)
        if query is None:
            continue
        graded, quoted = columns.name("grade", row), columns.name("contexts", row) is not None
        named, relevant = columns.value("label_document", row), columns.value("relevant", row)
        lists = (cell for cell in map(written_value, (named, relevant)) if isinstance(cell, list))
        objects = next((cell for cell in lists if any(isinstance(one, Mapping) for one in cell)), None)
        if named is None and graded:
            named = relevant
        any_quoted |= quoted
        if objects is None and (named is not None or quoted):
            documents = _texts(row, place, columns, problems) if named is None else _ids_in(named, place, problems)
            if query not in gathered:
                gathered[query] = Gathered(place, queries is None)
            for document, grade in _graded(documents, row, place, columns, problems):
                gathered[query].add(place, document, grade, problems, graded or "", query)
        elif objects is None and columns.name("relevant", row) is None:
            # A query without labels may lack the column where others have lists.
            lacking = lacking or _without_documents(row, columns)._replace(where=str(place))
        elif query in listed:
            problems.wrong(place, f"query {query!r} has labels on two rows", f"also {listed[query]}")
        else:
            labels = list_of(objects or relevant, place, problems)
            listed[query] = place
            if labels is not None:
                yield place, query, labels
    if lacking is not None and not listed:
        problems.append(lacking)
    for query, judged in gathered.items():
        yield judged.place._replace(lines=judged.lines), query, Labels(grades=judged.grades, quoted=any_quoted)


def _texts(row: Row, place: SourceLocation, columns: Columns, problems: Findings) -> list[str]:
    """The passages by which a row names documents."""
    name = columns.name("contexts", row) or ""
    return [HOP.sub("", text) for text in texts_in(columns.value("contexts", row), name, place, problems)]


def _graded(
    documents: list[str], row: Row, place: SourceLocation, columns: Columns, problems: Findings
) -> Iterator[tuple[str, int]]:
    """The documents of a row with their grades; one for each of them, or one for all, which is 1 if none is there."""
    name = columns.name("grade", row)
    written = 1 if name is None else columns.value("grade", row)
    several = written if isinstance(written, list) and len(written) == len(documents) else [written] * len(documents)
    grades = list(map(grade_of, several))
    if None in grades:
        problems.wrong(place, f"grade {shown(written)} is not a whole number", WHOLE)
        return
    yield from ((doc, grade or 0) for doc, grade in zip(documents, grades, strict=True))


def _without_documents(row: Row, columns: Columns) -> Problem:
    """A complaint, without its place, that no column names documents."""
    grades = columns.name("grade", row)
    if grades is None or columns.name("label_query", row) is not None:
        return columns.lacking("label_document", row)
    what = f"{grades!r} could hold grades, and no column names the documents"
    return Problem("", what, f"say which: {declaring('label_document')}; {keeping(grades)}")


def list_of(listed: Any, place: SourceLocation, problems: Findings) -> Labels | None:
    """Read one query's list of relevant documents: ids best first, groups, or grades by id; None after a complaint."""
    if isinstance(listed, str):
        listed = _cell(listed, problems.names_document)
    listed = _plain_list(listed)
    if isinstance(listed, Problem):
        problems.append(listed._replace(where=str(place)))
        return None
    if isinstance(listed, Mapping):
        grades = {nfc(str(doc)): grade_of(grade) for doc, grade in listed.items() if grade is not None}
        if wrong := [doc for doc, grade in grades.items() if grade is None]:
            what = f"grade {repr(listed[wrong[0]])[:40]} of document {wrong[0]!r} is not a whole number"
            problems.wrong(place, what, WHOLE)
            return None
        return Labels(grades={doc: grade for doc, grade in grades.items() if grade is not None})
    listed = () if listed is None else listed
    if isinstance(listed, list | tuple):
        grouped = bool(listed) and all(isinstance(one, list | tuple) for one in listed)
        groups = [tuple(map(document_id, group)) for group in (listed if grouped else [listed])]
        if not any(None in group for group in groups):
            found = tuple(tuple(map(str, group)) for group in groups)
            return Labels(groups=tuple(filter(None, found))) if grouped else Labels(ranked=found[0])
    problems.wrong(place, f"relevant documents cannot be read: {shown(listed)}", "a list of ids, best first")
    return None


def _plain_list(listed: Any) -> Any:
    """A list of objects as a list of ids, or as grades by id; anything else as it is; or a problem."""
    if isinstance(listed, Mapping):
        name = recognised("document_id", tuple(listed))
        if name is None or not isinstance(listed[name], str) or grade_of(listed[name]) is not None:
            return listed
        listed = [listed]
    if not isinstance(listed, list) or not listed or not all(isinstance(one, Mapping) for one in listed):
        return listed
    ids, grades = [], []
    for one in listed:
        id_, grade = _object(one)
        if id_ is None:
            remedy = f"say which key holds the document: {declaring('relevant', 'COLUMN.KEY')}"
            return Problem("", f"no key of {shown(one)} is known to name a document", remedy)
        ids.append(id_)
        grades.append(grade)
    if all(grade is None for grade in grades):
        return ids
    return {id_: 1 if grade is None else grade for id_, grade in zip(ids, grades, strict=True)}


def _object(one: Mapping[str, Any]) -> tuple[str | None, Any]:
    """The document that an object names, and its grade; None for what it does not have."""
    grade = recognised("grade", tuple(one))
    others = tuple(name for name in one if name != grade)
    ids = [name for name in others if document_id(one[name]) is not None]
    name = recognised("document_id", others) or recognised("label_document", others)
    name = name or (ids[0] if len(ids) == 1 else "")
    return document_id(one.get(name)), None if grade is None else one[grade]


def parts_of(cell: Any, known: Known) -> Iterator[str]:
    """All that may be an id in a cell: elements of a list, values of objects, parts of a text, or the whole of it.

    >>> list(parts_of("d1; d2", {"d1"}.__contains__)), list(parts_of([{"id": "d1", "grade": 2}], {"d1"}.__contains__))
    (['d1', 'd2'], ['d1'])
    """
    if isinstance(cell, Mapping):
        yield from cell if _holds_grades(cell) else filter(None, [_object(cell)[0]])
        return
    if isinstance(cell, str):
        cell = _cell(cell, known)
    if isinstance(cell, list | tuple):
        for one in cell:
            yield from [one] if isinstance(one, str) else parts_of(one, known)
    elif (id_ := document_id(cell)) is not None:
        yield id_


def _holds_grades(cell: Mapping[str, Any]) -> bool:
    """Whether an object has documents for keys, and their grades."""
    return all(grade_of(grade) is not None for grade in cell.values())


def leaves_of(cell: Any, path: str) -> Iterator[tuple[str, Any]]:
    """What stands in a cell, each with the path that leads to it: further than to an object that names a document.

    >>> list(leaves_of([{"doc": {"ref": "d1"}, "why": "so"}], "gold")), list(leaves_of("d1; d2", "gold"))
    ([('gold.doc', {'ref': 'd1'}), ('gold.why', 'so')], [('gold', 'd1; d2')])
    """
    if isinstance(cell, list) and any(isinstance(one, Mapping) for one in cell):
        for one in cell:
            yield from leaves_of(one, path)
    elif isinstance(cell, Mapping) and not _holds_grades(cell) and _object(cell)[0] is None:
        for key, held in cell.items():
            yield from leaves_of(held, f"{path}.{key}")
    else:
        yield path, cell


def _ids_in(named: Any, place: SourceLocation, problems: Findings) -> list[str]:
    """The ids of the documents that a judgment names; none, after a complaint, if something else is among them."""
    held = _cell(named, problems.names_document) if isinstance(named, str) else named
    ids = [document_id(one) for one in (held if isinstance(held, list) else [held])]
    if None in ids or not ids:
        problems.wrong(place, f"the document's id is {shown(named)}", "an id is text")
        return []
    return [id_ for id_ in ids if id_ is not None]


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
        return written_value(text)  # text, where it cannot be read: told by the caller, which expects none
    pieces, parts = text.split(mark), list[str]()
    while pieces:
        ends = range(len(pieces), 1, -1)
        end = next((end for end in ends if known(mark.join(pieces[:end]).strip())), 1) if len(pieces) <= MOST else 1
        parts.append(mark.join(pieces[:end]).strip())
        pieces = pieces[end:]
    parts = [part for part in parts if part]
    return parts if mark != "," or any(map(known, parts)) else [text]


def _query_named(
    row: Row, place: SourceLocation, columns: Columns, problems: Findings, queries: Mapping[str, str] | None
) -> str | None:
    if queries is not None:
        return queries.get(str(columns.value("query", row)))  # what has no text was told with the queries
    kind = "label_query" if columns.name("label_query", row) or "label_query" in columns.declared else "query_id"
    return id_in(row, kind, place, columns, problems)


def merged(rows: Iterable[Labelled]) -> Iterator[Labelled]:
    """Bring the lists of several labellers of one query together; what one labeller labelled alone stays as it is."""
    by_query: dict[str, list[Labelled]] = {}
    for row in rows:
        by_query.setdefault(row[1], []).append(row)
    for query, given in by_query.items():
        labelled = [row for row in given if not row[2].source] or given
        lists = {labels.by: labels.ranked for _, _, labels in labelled if labels.by and labels.ranked is not None}
        if len(lists) == len(labelled) > 1:
            yield labelled[0][0], query, replace(merge_lists(lists), source=labelled[0][2].source)
        else:
            yield from labelled


def merge_lists(lists: Mapping[str, tuple[str, ...]]) -> Labels:
    """Merge the lists of several labellers.

    >>> merge_lists({"ann": ("x", "y"), "ben": ("y", "z")}).ranked
    ('y', 'x', 'z')
    """
    most = max(MOST, *(len(ranked) for ranked in lists.values()))
    places = {
        document: [ranked.index(document) + 1 if document in ranked else most + 1 for ranked in lists.values()]
        for document in chain.from_iterable(lists.values())
    }
    order = sorted(places, key=lambda document: (sum(places[document]), min(places[document]), document))
    given = {
        judge: {document: len(ranked) - place for place, document in enumerate(ranked)}
        for judge, ranked in sorted(lists.items())
    }
    return Labels(ranked=tuple(order[:most]), by=", ".join(sorted(lists)), given=given)
