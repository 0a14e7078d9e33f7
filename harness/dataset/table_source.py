"""Rows as documents, queries and labels, their columns declared or recognised; and columns that might hold labels."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from harness.dataset.columns import (
    ASKED,
    CLICKS,
    FIELDS,
    FOLDED,
    LABELLING,
    NAMING,
    OF_DOCUMENTS,
    OF_QUERIES,
    PLACES,
    Columns,
    PlacedRow,
    declaring,
    folded,
    keeping,
)
from harness.dataset.corpus import CheckedDocuments
from harness.dataset.dataset_model import Labels
from harness.dataset.files import File
from harness.dataset.label_rows import (
    Labelled,
    holds_grades,
    labels_of,
    leaves_of,
    read_list,
)
from harness.dataset.rows import Row, read_rows
from harness.dataset.source import Findings, SourceLocation, grade_of
from retrievers.errors import did_you_mean
from retrievers.types import Document, Query

STRONG, WEAK = 0.9, 0.5
"""Share of a column's parts that name documents, from which on it holds labels, or may hold them."""
LABELS = re.compile(
    r"gold|expect|relev|correct|truth|target|answer|support|evidence|cit|positiv|label|match|ideal|doc|"
    r"file|source|page|passage|chunk|context|article|url|ref"
)
"""In the name of a column of labels, or of documents."""
OTHERS = re.compile(
    r"neg|wrong|distract|irrelev|retriev|predict|return|hits?$|result|exclude|current|actual|rank"
)
"""In the name of a column of documents that are no labels: those of some search, or wrong ones."""
HIGHEST = 10
"""Whole numbers from 0 to this one, at most, may be grades."""


class Candidate(NamedTuple):
    """A column whose parts name documents."""

    file: str
    column: str
    kind: str
    """As what it would be declared."""
    named: int
    parts: int
    strong: bool


def refuse_overlooked(seen: Findings, declared: Mapping[str, str]) -> None:
    """Complain of columns that could hold labels or grades, by their names or as whole numbers, and are not used."""
    kept = {
        *declared.values(),
        *(name.strip() for name in declared.get(FIELDS, "").split(",")),
    }
    for file, cells in seen.unused.items():
        columns, here = seen.taken.get(file, {}), file not in seen.unlabelled
        named, graded = (
            not {*kinds}.isdisjoint(columns.values()) for kinds in (NAMING, ("grade",))
        )
        for name in (
            name
            for name, taken in columns.items()
            if taken in ("", FIELDS) and name not in kept
        ):
            word, found = folded(name), ""
            kind = next(
                (
                    kind
                    for kind in LABELLING
                    if word in FOLDED[kind] and word not in PLACES
                ),
                "",
            )
            if here and named and not graded:
                grades = sorted(
                    {
                        -1 if (grade := grade_of(cell)) is None else grade
                        for cell in cells.get(name, ())
                    }
                )
                numbers = len(grades) > 1 and grades[0] == 0 and grades[-1] <= HIGHEST
                found = f" ({', '.join(map(str, grades))})" if numbers else ""
                kind = "grade" if found or word == CLICKS else kind
            elif word == "contexts" and not named:
                kind = "contexts"
            declared_too = here and not declared.keys().isdisjoint(
                ["grade"] if kind == "grade" else NAMING
            )
            if kind and not (kind == "contexts" and named) and not declared_too:
                what = f"grades{found}" if kind == "grade" else "the relevant documents"
                say = (
                    f"say so: {declaring(kind, name)}"
                    if here
                    else "the labels are in another table: remove it"
                )
                seen.wrong(
                    file,
                    f"{name!r} could hold {what}, and is not used",
                    f"{say}; {keeping(name)}",
                )


def label_column(
    seen: Findings, documents: CheckedDocuments, declared: Mapping[str, str]
) -> dict[str, str]:
    """The column of labels of queries of which no column is known to hold them, as it would be declared; {} if none.

    Several candidates, and weak ones, become a problem that shows what to declare.
    """
    if any(kind in declared for kind in NAMING):
        return {}
    kept = [name.strip() for name in declared.get(FIELDS, "").split(",")]
    found = [one for one in _candidates(seen, documents) if one.column not in kept]
    strong = [one for one in found if one.strong]
    if len({(one.column, one.kind) for one in strong}) == 1:
        return {strong[0].kind: strong[0].column}
    if not found and not seen:
        _ask_for_keys(seen, documents)
    if found and not seen:
        told = ", ".join(
            f"{one.column!r} ({one.named:,} of {one.parts:,} parts)" for one in found
        )
        first = found[0]
        which = " or ".join(
            dict.fromkeys(declaring(one.kind, one.column) for one in found)
        )
        verb = "names" if len(found) == 1 else "name"
        seen.wrong(
            first.file,
            f"{told} {verb} documents, and no column is known to hold labels",
            f"say which: {which}; {keeping(first.column)}",
        )
    return {}


def _ask_for_keys(seen: Findings, documents: CheckedDocuments) -> None:
    """Ask about columns of objects that name documents by several of their fields."""
    for file, columns in seen.unused.items():
        for column, cells in columns.items():
            first = next(
                (
                    one
                    for cell in cells
                    for one in (cell if isinstance(cell, list) else [cell])
                ),
                None,
            )
            if (
                isinstance(first, dict)
                and first
                and first.keys() <= documents.field_names
            ):
                paths = ", ".join(f'"{column}.{key}"' for key in first)
                fields = ", ".join(f'"{key}"' for key in first)
                what = f"{column!r} names documents by their fields {fields}, and is not used"
                say = f"say so: columns = {{ label_document = [{paths}] }}, match = [{fields}]"
                together = ",".join(f"{column}.{key}" for key in first)
                say += (
                    f" (--columns label_document={together} --match {','.join(first)})"
                )
                seen.wrong(file, what, f"{say}; {keeping(column)}")


def _candidates(seen: Findings, documents: CheckedDocuments) -> Iterator[Candidate]:
    for file, columns in seen.unused.items():
        leaves = [
            one
            for column, cells in columns.items()
            for cell in cells
            for one in leaves_of(cell, column)
        ]
        for column in dict.fromkeys(path for path, _ in leaves):
            cells = [leaf for path, leaf in leaves if path == column]
            whole = (
                cell if isinstance(cell, str | list) or holds_grades(cell) else [cell]
                for cell in cells
            )
            labels = [read_list(cell, seen.names_document) for cell in whole]
            parts = [one.documents if isinstance(one, Labels) else () for one in labels]
            names = [name for some in parts for name in some]
            matches = documents.match(names)
            named = sum(name in matches for name in names)
            if not named or named < WEAK * len(names):
                continue
            # A list with an order is one query's; of single ids each row is one label.
            lists = any(
                len(some) > 1 or isinstance(cell, list | dict)
                for some, cell in zip(parts, cells, strict=True)
            )
            lists = lists or column not in columns
            word = folded(column)
            by_id = (
                sum(matches[name].by != "title" for name in names if name in matches)
                >= STRONG * named
            )
            numbers = all(name.isdigit() for name in names) and not LABELS.search(word)
            strong = (
                named >= STRONG * len(names)
                and by_id
                and not numbers
                and not OTHERS.search(word)
            )
            yield Candidate(
                file,
                column,
                "relevant" if lists else "label_document",
                named,
                len(names),
                strong,
            )


RowSource = Callable[[Findings], Iterable[tuple[SourceLocation, Row]]]
QUERY = ("query_id", "query")
"""What each row of queries has, as far as it is declared."""
OPTIONAL = ("title", "reference", "claims")
"""What some row has where it is declared."""
SAMPLED, LONGEST_CELL = 200, 2_000
"""Rows, and letters of a cell, at most, of which it is seen whether they name documents."""
PLACEHOLDER = re.compile(
    r"(?i)to-?do|tbd|tba|n/?a|none|null|unknown|test|xxx*|fixme|question|query|[^\w]*"
)
FREQUENT = 5
"""Times as many rows as usual on which a question may be a placeholder."""
HEADERS = 64
"""Sets of columns that are looked at: rows of JSON may differ in theirs without end."""


def rows_of(*files: File) -> RowSource:
    """The rows of some files, one after the other."""

    def read_all(problems: Findings) -> Iterator[tuple[SourceLocation, Row]]:
        for file in files:
            yield from read_rows(file, problems)

    return read_all


@dataclass(frozen=True, slots=True)
class TableSource:
    """Rows of documents, of queries, and of labels if these are not with the queries."""

    document_rows: RowSource
    query_rows: RowSource
    label_rows: RowSource | None
    columns: Columns = field(default_factory=Columns)

    def documents(
        self, problems: Findings
    ) -> Iterator[tuple[SourceLocation, Document]]:
        """One document a row."""
        for line in self._lines(
            self.document_rows(problems),
            problems,
            OF_DOCUMENTS,
            ("document_id", "text"),
        ):
            document = line.document()
            if document is not None:
                yield line.place, document

    def queries(self, problems: Findings) -> Iterator[tuple[SourceLocation, Query]]:
        """One query a row; without ids they are q0, q1, … A text, or id and text, of further labels come again."""
        unnamed: dict[str, str] = {}
        rows_of_text = Counter[str]()
        texts: dict[str, str] = {}
        here = self.label_rows is None
        kinds, needed = (OF_QUERIES, (*QUERY, *LABELLING)) if here else (ASKED, QUERY)
        for line in self._lines(self.query_rows(problems), problems, kinds, needed):
            query = line.query(f"q{len(unnamed)}", labelled=here)
            if query is None:
                continue
            if line.name("query_id") is None:
                rows_of_text[query.text] += 1
                if here and (first := unnamed.get(query.text)) is not None:
                    if not query.text.strip():
                        problems.note("blank-query", first)
                    elif not self.columns.labelled(
                        line.row
                    ):  # else it is one more label
                        problems.note("repeated-row", first)
                    continue
                unnamed[query.text] = query.id
            elif here and line.name("label_document") is not None:
                if texts.get(query.id) == query.text:
                    continue  # one more label
                texts[query.id] = query.text
            yield line.place, query
        usual = median(rows_of_text.values()) if rows_of_text else 0
        for text, number in rows_of_text.items():
            if number > 1 and (
                PLACEHOLDER.fullmatch(text.strip())
                or number >= max(FREQUENT, FREQUENT * usual)
            ):
                problems.note(
                    "placeholder-query", f"{text.strip()[:40]!r} on {number:,} rows"
                )

    def labels(self, problems: Findings) -> Iterator[Labelled]:
        """The rows of labels, gathered by query."""
        if self.label_rows is not None:
            yield from labels_of(
                self._lines(self.label_rows(problems), problems, OF_QUERIES, LABELLING)
            )
            return
        lines = [
            PlacedRow(row, place, self.columns, problems)
            for place, row in self.query_rows(Findings())
        ]
        if not any(self.columns.labelled(line.row) for line in lines):
            return  # questions without labels: a beginning
        unnamed: dict[str, str] = {}
        for line in lines:
            if line.name("query_id") is None:
                unnamed.setdefault(str(line.value("query")), f"q{len(unnamed)}")
        # A row without labels is a slip, unless it has claims: those are measured without labels. A row with room for
        # a document and its grade that nobody has filled in is none.
        yield from labels_of(
            (
                line
                for line in lines
                if (self.columns.labelled(line.row) or not line.value("claims"))
                and not all(
                    line.value(kind) == "" for kind in ("label_document", "grade")
                )
                and not self.columns.absent(
                    line.row, (*QUERY, *LABELLING)
                )  # told with the queries
            ),
            unnamed or None,
        )

    def _lines(
        self,
        rows: Iterable[tuple[SourceLocation, Row]],
        problems: Findings,
        kinds: tuple[str, ...],
        needed: tuple[str, ...],
    ) -> Iterator[PlacedRow]:
        """The rows; what their columns are read as is noted, and columns that may hold labels are not passed over.

        Args:
            rows: of one part.
            problems: where complaints go.
            kinds: of columns that the part may have.
            needed: those of them that each row has, where they are declared; a row without is told of, and left out.
        """
        lacking = {
            kind for kind in OPTIONAL if kind in kinds and kind in self.columns.declared
        }
        known = dict[tuple[str, ...], dict[str, str]]()
        path, file = None, ""
        for place, row in rows:
            if place.path is not path:
                path, file = place.path, place.file
            problems.sizes[file]["row"] += 1
            if (names := tuple(row)) not in known and len(known) < HEADERS:
                known[names] = taken = self.columns.taken(row, kinds)
                lacking = {
                    kind for kind in lacking if self.columns.name(kind, row) is None
                }
                if needed == LABELLING:  # of a table of labels nothing else is kept
                    taken = {
                        name: "" if kind == FIELDS else kind
                        for name, kind in taken.items()
                    }
                there = problems.taken.setdefault(file, {})
                there.update(
                    (name, kind)
                    for name, kind in taken.items()
                    if kind or name not in there
                )
            if kinds != OF_DOCUMENTS and problems.sizes[file]["row"] <= SAMPLED:
                unused = problems.unused.setdefault(file, {})
                for name, kind in known.get(names, {}).items():
                    cell = row.get(name) if kind in ("", FIELDS) else None
                    if (
                        cell not in (None, "", [], {})
                        and len(str(cell)) <= LONGEST_CELL
                    ):
                        unused.setdefault(name, []).append(cell)
                if kinds == ASKED:
                    problems.unlabelled.add(file)
            line = PlacedRow(row, place, self.columns, problems)
            if self.columns.declared and (absent := self.columns.absent(row, needed)):
                for kind in absent:
                    line.wrong(*self.columns.lacking(kind, row))
            else:
                yield line
        for kind in lacking if 0 < len(known) < HEADERS else ():
            declared = self.columns.declared[kind]
            remedy = did_you_mean(
                declared, {str(name) for names in known for name in names}
            )
            problems.wrong(file, f"no row has a column {declared!r}", remedy)
