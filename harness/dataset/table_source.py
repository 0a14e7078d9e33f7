"""Rows as documents, queries and labels, their columns declared or recognised: what every reader of rows gives."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median

from harness.dataset.columns import ASKED, FIELDS, LABELLING, OF_DOCUMENTS, OF_QUERIES, Columns, document_of, query_of
from harness.dataset.dataset_model import Labels
from harness.dataset.files import File
from harness.dataset.label_rows import labels_of
from harness.dataset.rows import Row, read_rows
from harness.dataset.source import Findings, SourceLocation
from retrievers.errors import did_you_mean
from retrievers.types import Document, Query

RowSource = Callable[[Findings], Iterable[tuple[SourceLocation, Row]]]
DOCUMENT, QUERY = ("document_id", "text"), ("query_id", "query")
"""What each row has, as far as it is declared."""
SAMPLED, LONGEST_CELL = 200, 2_000
"""Rows, and letters of a cell, at most, of which it is seen whether they name documents."""
PLACEHOLDER = re.compile(r"(?i)to-?do|tbd|tba|n/?a|none|null|unknown|test|xxx*|fixme|question|query|[^\w]*")
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
    """Rows of documents, of queries, and of labels where these do not stand with the queries."""

    document_rows: RowSource
    query_rows: RowSource
    label_rows: RowSource | None
    columns: Columns = field(default_factory=Columns)

    def documents(self, problems: Findings) -> Iterator[tuple[SourceLocation, Document]]:
        """One document a row."""
        for place, row in self._used(self.document_rows(problems), problems, OF_DOCUMENTS, DOCUMENT, ("title",)):
            document = document_of(row, place, self.columns, problems)
            if document is not None:
                yield place, document

    def queries(self, problems: Findings) -> Iterator[tuple[SourceLocation, Query]]:
        """One query a row; without ids they are q0, q1, … A text, or id and text, of further labels come again."""
        seen: dict[str, str] = {}
        rows_of_text = Counter[str]()
        texts: dict[str, str] = {}
        here = self.label_rows is None
        kinds, needed = (OF_QUERIES, (*QUERY, *LABELLING)) if here else (ASKED, QUERY)
        for place, row in self._used(self.query_rows(problems), problems, kinds, needed, ("reference", "claims")):
            query = query_of(row, place, self.columns, problems, unnamed=f"q{len(seen)}", labelled=here)
            if query is None:
                continue
            if self.columns.name("query_id", row) is None:
                rows_of_text[query.text] += 1
                if query.text in seen and self.label_rows is None:
                    if not query.text.strip():
                        problems.note("blank-query", seen[query.text])
                    elif not self.columns.labelled(row):  # else it is one more label
                        problems.note("repeated-row", seen[query.text])
                    continue
                seen[query.text] = query.id
            elif here and self.columns.name("label_document", row) is not None:
                if texts.get(query.id) == query.text:
                    continue  # one more label
                texts[query.id] = query.text
            yield place, query
        usual = median(rows_of_text.values()) if rows_of_text else 0
        for text, number in rows_of_text.items():
            if number > 1 and (PLACEHOLDER.fullmatch(text.strip()) or number >= max(FREQUENT, FREQUENT * usual)):
                problems.note("placeholder-query", f"{text.strip()[:40]!r} on {number:,} rows")

    def labels(self, problems: Findings) -> Iterator[tuple[SourceLocation, str, Labels]]:
        """The rows of labels, gathered by query."""
        if self.label_rows is not None:
            rows = self._used(self.label_rows(problems), problems, OF_QUERIES, LABELLING)
            yield from labels_of(rows, self.columns, problems)
            return
        if not any(self.columns.labelled(row) for _, row in self.query_rows(Findings())):
            return  # questions without labels: a beginning
        unnamed: dict[str, str] = {}
        for _, row in self.query_rows(Findings()):
            if self.columns.name("query_id", row) is None:
                unnamed.setdefault(str(self.columns.value("query", row)), f"q{len(unnamed)}")
        # A row without labels is a slip, unless it has claims: those are measured without labels.
        rows = (
            (place, row)
            for place, row in self.query_rows(Findings())
            if (self.columns.labelled(row) or not self.columns.value("claims", row))
            and not self._unrated(row)
            and not self.columns.absent(row, (*QUERY, *LABELLING))  # told with the queries
        )
        yield from labels_of(rows, self.columns, problems, unnamed or None)

    def _unrated(self, row: Row) -> bool:
        """Whether a row has room for a document and its grade, and nobody has filled it in."""
        return all(self.columns.value(kind, row) == "" for kind in ("label_document", "grade"))

    def _used(
        self,
        rows: Iterable[tuple[SourceLocation, Row]],
        problems: Findings,
        kinds: tuple[str, ...],
        needed: tuple[str, ...],
        wanted: tuple[str, ...] = (),
    ) -> Iterator[tuple[SourceLocation, Row]]:
        """The rows; what their columns are read as is noted, and columns that may hold labels are not passed over.

        Args:
            rows: of one part.
            problems: where complaints go.
            kinds: of columns that the part may have.
            needed: those of them that each row has, where they are declared; a row without is told of, and left out.
            wanted: those that some row has, where they are declared.
        """
        lacking = {kind for kind in wanted if kind in self.columns.declared}
        known = set[tuple[str, ...]]()
        path = counted = None
        for place, row in rows:
            if counted is None or place.path is not path:
                path, counted = place.path, problems.sizes[place.file]
            counted["row"] += 1
            if kinds != OF_DOCUMENTS and counted["row"] <= SAMPLED:
                unused, taken = problems.unused.setdefault(place.file, {}), self.columns.taken(row, kinds)
                for name in (name for name, kind in taken.items() if kind in ("", FIELDS) and name in row):
                    if row[name] not in (None, "", [], {}) and len(str(row[name])) <= LONGEST_CELL:
                        unused.setdefault(name, []).append(row[name])
            if kinds == ASKED:
                problems.unlabelled.add(place.file)
            if (names := tuple(row)) not in known and len(known) < HEADERS:
                known.add(names)
                lacking = {kind for kind in lacking if self.columns.name(kind, row) is None}
                there = problems.taken.setdefault(place.file, {})
                taken = self.columns.taken(row, kinds)
                if needed == LABELLING:  # of a table of labels nothing else is kept
                    taken = {name: "" if kind == FIELDS else kind for name, kind in taken.items()}
                there.update((name, kind) for name, kind in taken.items() if kind or name not in there)
            if self.columns.declared and (absent := self.columns.absent(row, needed)):
                problems.append(self.columns.lacking(absent[0], row, *absent[1:])._replace(where=str(place)))
            else:
                yield place, row
        for kind in lacking if 0 < len(known) < HEADERS else ():
            declared = self.columns.declared[kind]
            remedy = did_you_mean(declared, {str(name) for names in known for name in names})
            problems.wrong(place.file, f"no row has a column {declared!r}", remedy)
