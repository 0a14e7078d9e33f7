"""Rows become labels: one judgment a row, one relevant document a row, or a list a query.

The same query labelled by several people, as ordered lists, is merged by one rule, and each list is kept. A model's
list is merged with no person's: where people listed a query, theirs count alone. A document's place is the sum of its
places in the lists, a list that does not name it counting one place beyond the tenth, or beyond the longest list; ties
go by the better single place, then by id. At most ten are kept, or as many as the longest list has.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.dataset.columns import CLICKS, Columns, declaring, folded, id_in, keeping, recognised, shown, texts_in
from harness.dataset.dataset_model import Labels
from harness.dataset.rows import Row
from harness.dataset.source import WHOLE, Findings, Place, grade_of, written_value
from retrievers.errors import Problem
from retrievers.ids import document_id

LISTS = "|;\n,"
"""What parts the ids of a list in one cell: the first of these that stands in it."""
PARTED = LISTS[:-1]
"""What parts them where the column is called after one document: names of files may hold commas."""


Known = Callable[[str], bool]
"""Whether a text names a document."""
HOP = re.compile(r"^\s*<\d+-hop>\s*")
"""Stands before each context of Ragas's questions that need several."""
HIGHEST = 10
"""Whole numbers from 0 to this one, at most, may be grades."""
MOST = 10
"""So many documents of merged lists are kept, or as many as the longest list has."""
Labelled = tuple[Place, str, Labels]


@dataclass(slots=True)
class Gathered:
    """Judgments that stand one a row, gathered by query."""

    named: bool = True
    """Whether queries have ids of their own."""
    quoted: bool = False
    """Whether documents are named by what they say."""
    places: dict[str, Place] = field(default_factory=dict)
    grades: dict[str, dict[str, int]] = field(default_factory=dict)
    lines: dict[str, array[int]] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    """Columns of the rows that nothing uses, where none is known to hold grades."""
    numbers: dict[str, set[int | None]] = field(default_factory=dict)
    """What stands in them, None for what is no whole number."""

    def add(self, place: Place, query: str, document: str, grade: int, problems: Findings) -> None:
        """Take in one judgment; a document that is judged twice for a query becomes a problem."""
        judged = self.begin(place, query)
        if document in judged:
            who = f"query {query!r}" if self.named else "the query"
            what = f"{who} and document {document!r} are judged twice"
            problems.wrong(place, what, "keep one of the two")
        else:
            judged[document] = grade
            self.lines[query].append(place.line or 0)

    def begin(self, place: Place, query: str) -> dict[str, int]:
        """What was said about a query so far, be it nothing."""
        if (judged := self.grades.get(query)) is None:
            judged = self.grades[query] = {}
            self.places[query], self.lines[query] = place, array("I")
        return judged

    def add_row(
        self,
        place: Place,
        judgment: tuple[str, Iterable[str], int],
        row: Row,
        grades: str | None,
        problems: Findings,
    ) -> None:
        """Take in a row of one query, some documents and their grade.

        A pair that comes again is counted once where nothing grades it, and its clicks are added up.

        Args:
            place: where the row stands.
            judgment: query, documents and grade.
            row: the row, for numbers that may be grades.
            grades: the column of grades, None where there is none.
            problems: where complaints go.
        """
        query, documents, grade = judgment
        self.begin(place, query)
        for name in self.fields:
            self.numbers.setdefault(name, set()).add(grade_of(row[name]))
        for document in documents:
            known = document in self.grades.get(query, ())
            if known and grades is None:
                problems.note("repeated-label", f"{query} {document}")
            elif known and folded(str(grades)) == CLICKS:
                self.grades[query][document] += grade
            else:
                self.add(place, query, document, grade, problems)

    def overlooked(self, path: Path) -> Iterator[Problem]:
        """Complain of columns of whole numbers from 0 on, where no column is known to hold grades."""
        for name, found in self.numbers.items():
            given = sorted(grade for grade in found if grade is not None)
            if len(given) == len(found) > 1 and given[0] == 0 and given[-1] <= HIGHEST:
                what = f"{name!r} could hold grades ({', '.join(map(str, given))}), and is not used"
                remedy = f"say so: {declaring('grade', name)}; {keeping(name)}"
                yield Problem(str(path), what, remedy)

    def labels(self) -> Iterator[tuple[Place, str, Labels]]:
        """The labels of each query, at the place of its first row, with the line of each document."""
        for query, judged in self.grades.items():
            yield self.places[query]._replace(lines=self.lines[query]), query, Labels(grades=judged, quoted=self.quoted)


def labels_of(
    rows: Iterable[tuple[Place, Row]],
    columns: Columns,
    problems: Findings,
    queries: Mapping[str, str] | None = None,
    *,
    lists: bool = True,
) -> Iterator[tuple[Place, str, Labels]]:
    """Labels in any of three shapes: a row a judgment with a grade, a row a relevant document, or a list a query.

    A list is best first, a list of lists are groups of alternatives, an object holds grades; in one cell of text it is
    JSON, or ids with `|`, `;`, line feeds or commas between. A pair that stands on several rows without a grade is
    counted once, and clicks on it are added up.

    Args:
        rows: of the labels, or of queries that carry their labels.
        columns: what they are called.
        problems: where complaints go.
        queries: text -> id, where the rows have no column for a query's id.
        lists: whether a cell that names one document may name several.
    """  # fmt: skip
    gathered, listed = Gathered(queries is None), dict[str, Place]()
    header: list[str] = []
    names: tuple[str, str, str] | None = None
    lacking: Problem | None = None
    for place, row in rows:
        if header != (header := list(row)):
            names = _judgment_names(row, columns) if queries is None else None
            gathered.quoted |= columns.name("contexts", row) is not None
            gathered.fields = () if columns.name("grade", row) is not None else tuple(columns.fields(row))
        if names is not None and (judgment := _plain_judgment(row, names, lists=lists)) is not None:
            gathered.add(place, *judgment, problems)
            continue
        query = _query_named(row, place, columns, problems, queries)
        if query is None:
            continue
        objects = _objects_in(row, columns)
        documents = None if objects else _documents_named(row, place, columns, problems, lists=lists)
        if documents is not None:
            for some, grade in _graded(documents, row, place, columns, problems):
                gathered.add_row(place, (query, some, grade), row, columns.name("grade", row), problems)
        elif objects is None and columns.name("relevant", row) is None:
            # A query without labels may lack the column where others have lists.
            lacking = lacking or _without_documents(row, columns, lists=lists)._replace(where=str(place))
        elif query in listed:
            problems.wrong(place, f"query {query!r} has labels on two rows", f"also {listed[query]}")
        else:
            labels = list_of(objects or columns.value("relevant", row), place, problems)
            listed[query] = place
            if labels is not None:
                yield place, query, labels
    if lacking is not None and not listed:
        problems.append(lacking)
    elif gathered.numbers:
        problems.extend(gathered.overlooked(place.path))
    yield from gathered.labels()


def _objects_in(row: Row, columns: Columns) -> Any:
    """A list of objects, each a document and perhaps its grade; None where no column holds one."""
    held = (written_value(columns.value(kind, row)) for kind in ("label_document", "relevant"))
    return next((one for one in held if isinstance(one, list) and any(isinstance(each, Mapping) for each in one)), None)


def _graded(
    documents: list[str], row: Row, place: Place, columns: Columns, problems: Findings
) -> Iterator[tuple[list[str], int]]:
    """The documents of a row with their grade; a list of as many grades is one for each."""
    grades = columns.value("grade", row)
    if isinstance(grades, list) and len(grades) == len(documents) and None not in map(grade_of, grades):
        yield from (([doc], grade_of(grade) or 0) for doc, grade in zip(documents, grades, strict=True))
    elif (grade := _grade(row, place, columns, problems)) is not None:
        yield documents, grade


def _document_in(row: Row, columns: Columns) -> Any:
    """What names the documents of a row that is a judgment: a list, too, where a grade stands beside it."""
    document = columns.value("label_document", row)
    graded = "grade" in columns.declared or columns.name("grade", row) is not None
    return columns.value("relevant", row) if document is None and graded else document


def _documents_named(row: Row, place: Place, columns: Columns, problems: Findings, *, lists: bool) -> list[str] | None:
    """The documents that a judgment names, by ids or by what they say; None where no column does, [] if it is wrong."""
    document = _document_in(row, columns)
    if document is None:
        quoting = columns.name("contexts", row)
        quoted = () if quoting is None else texts_in(columns.value("contexts", row), quoting, place, problems)
        return None if quoting is None else [HOP.sub("", text) for text in quoted]
    known = problems.names_document
    ids = _ids_in(document, known) if lists or not isinstance(document, str) else [document_id(document)]
    if None in ids or not ids:
        problems.wrong(place, f"the document's id is {shown(document)}", "an id is text")
        return []
    return list(map(str, ids))


def _without_documents(row: Row, columns: Columns, *, lists: bool) -> Problem:
    """A complaint, without its place, that no column names documents."""
    grades = columns.name("grade", row)
    if grades is None or not lists:
        return columns.lacking("relevant" if "relevant" in columns.declared else "label_document", row)
    what = f"{grades!r} could hold grades, and no column names the documents"
    return Problem("", what, f"say which: {declaring('label_document')}; {keeping(grades)}")


def list_of(listed: Any, place: Place, problems: Findings) -> Labels | None:
    """Read one query's list of relevant documents: ids best first, groups, or grades by id; None after a complaint."""
    if isinstance(listed, str):
        listed = _cell(listed, problems.names_document)
    listed = _plain_list(listed)
    if isinstance(listed, Problem):
        problems.append(listed._replace(where=str(place)))
        return None
    if isinstance(listed, Mapping):
        grades = {str(doc): grade_of(grade) for doc, grade in listed.items() if grade is not None}
        if wrong := [doc for doc, grade in grades.items() if grade is None]:
            what = f"grade {repr(listed[wrong[0]])[:40]} of document {wrong[0]!r} is not a whole number"
            problems.wrong(place, what, WHOLE)
            return None
        return Labels(grades={doc: grade for doc, grade in grades.items() if grade is not None})
    if listed is None:
        return Labels(ranked=())
    if isinstance(listed, Sequence) and all(isinstance(one, Sequence) and not isinstance(one, str) for one in listed):
        groups = [[document_id(doc) for doc in group] for group in listed]
        if listed and all(doc is not None for group in groups for doc in group):
            return Labels(groups=tuple(tuple(str(doc) for doc in group) for group in groups if group))
        if not listed:
            return Labels(ranked=())
    elif isinstance(listed, Sequence):
        ids = [document_id(doc) for doc in listed]
        if all(doc is not None for doc in ids):
            return Labels(ranked=tuple(str(doc) for doc in ids))
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
        name = _object(cell)[0]
        yield from [name] if name is not None else map(str, cell)
        return
    if isinstance(cell, str):
        cell = _cell(cell, known)
    if isinstance(cell, list | tuple):
        for one in cell:
            yield from [one] if isinstance(one, str) else parts_of(one, known)
    elif (id_ := document_id(cell)) is not None:
        yield id_


def _ids_in(document: object, known: Known) -> list[str | None]:
    """The ids of one cell; None among them where it holds something else."""
    if isinstance(document, str) and not document.strip().startswith("{"):
        parted = any(mark in document for mark in PARTED) or document.strip().startswith("[")
        if not parted and "," in document:  # names of files may hold commas
            parts = _cell(document, known)
            parted = len(parts) > 1 and all(map(known, parts))
        document = _cell(document, known) if parted else document
    return [document_id(one) for one in document] if isinstance(document, list) else [document_id(document)]


def _cell(text: str, known: Known) -> Any:
    """What one cell of text lists; the whole cell if that names a document."""
    text = text.strip()
    if text[:1] in ("[", "{"):
        return written_value(text)  # text, where it cannot be read: told by the caller, which expects none
    between = next((mark for mark in LISTS if mark in text), None)
    if between and not known(text):
        return [one.strip() for one in text.split(between) if one.strip()]
    return [text] if text else []


def _judgment_names(row: Row, columns: Columns) -> tuple[str, str, str] | None:
    """The columns of query, document and grade, where rows like this one hold one judgment each."""
    kind = "label_query" if columns.name("label_query", row) or "label_query" in columns.declared else "query_id"
    query, document, grade = (columns.name(one, row) for one in (kind, "label_document", "grade"))
    if query is None or document is None or grade is None or not {query, document, grade} <= row.keys():
        return None
    return query, document, grade


def _plain_judgment(row: Row, names: tuple[str, str, str], *, lists: bool) -> tuple[str, str, int] | None:
    """A judgment that needs no conversion, as nearly all do; None for any other row, which is read with care."""
    query, document, grade = row[names[0]], row[names[1]], row[names[2]]
    if type(query) is not str or type(document) is not str or not (query + document).isascii():
        return None
    if query.isspace() or document.isspace() or folded(names[2]) == CLICKS:
        return None
    if lists and any(mark in document for mark in (*LISTS, "[", "{")):
        return None
    if type(grade) is str and grade.isascii() and grade.isdigit() and len(grade) < 9:
        grade = int(grade)
    plain = type(grade) is int and -(2**31) < grade < 2**31
    return (query, document, grade) if query and document and plain else None


def _query_named(
    row: Row, place: Place, columns: Columns, problems: Findings, queries: Mapping[str, str] | None
) -> str | None:
    if queries is not None:
        return queries.get(str(columns.value("query", row)))  # what has no text was told with the queries
    kind = "label_query" if columns.name("label_query", row) or "label_query" in columns.declared else "query_id"
    return id_in(row, kind, place, columns, problems)


def _grade(row: Row, place: Place, columns: Columns, problems: Findings) -> int | None:
    if columns.name("grade", row) is None:
        if "grade" in columns.declared:
            problems.append(columns.lacking("grade", row)._replace(where=str(place)))
            return None
        return 1
    written = columns.value("grade", row)
    grade = grade_of(written)
    if grade is None:
        problems.wrong(place, f"grade {shown(written)} is not a whole number", WHOLE)
    return grade


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
    places: dict[str, list[int]] = {}
    for ranked in lists.values():
        for document in ranked:
            places.setdefault(document, [])
    for document, numbers in places.items():
        numbers += [ranked.index(document) + 1 if document in ranked else most + 1 for ranked in lists.values()]
    order = sorted(places, key=lambda document: (sum(places[document]), min(places[document]), document))
    given = {
        judge: {document: len(ranked) - place for place, document in enumerate(ranked)}
        for judge, ranked in sorted(lists.items())
    }
    return Labels(ranked=tuple(order[:most]), by=", ".join(sorted(lists)), given=given)
