"""A row with its line."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.dataset.cell_paths import further_fields, value_at
from harness.dataset.columns import Columns, declaration
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference_answers import read_reference_answer
from harness.dataset.source import SourceLocation, TableRow
from harness.dataset.usual_names import (
    DOCUMENT_KINDS,
    QUERY_KINDS,
    UNLABELLED_QUERY_KINDS,
)
from harness.dataset.written_values import quoted_value, read_history
from retrievers.ids import document_id
from retrievers.types import Document, Query

TEXT_REMEDY = "write it as a string"


class PlacedRow(NamedTuple):
    """A row with all that is needed to read it."""

    row: TableRow
    place: SourceLocation
    columns: Columns
    problems: ReadProblems

    def name(self, kind: str) -> str | None:
        """The column of a kind, None where there is none."""
        return self.columns.name(kind, self.row)

    def value(self, kind: str) -> Any:
        """Its value; None if there is no such column.

        >>> row = {"inputs": {"question": "why"}}
        >>> from harness.dataset.columns import Columns
        >>> PlacedRow(row, SourceLocation("q"), Columns({"query": "inputs.question"}), ReadProblems()).value("query")
        'why'
        """
        name = self.name(kind)
        return None if name is None else value_at(self.row, name)

    def add_problem(self, what: str, remedy: str) -> None:
        """Complain of the row."""
        self.problems.add(self.place, what, remedy)

    def id(self, kind: str) -> str | None:
        """The id in the column of a kind; None after a complaint."""
        name = self.name(kind)
        value = None if name is None else value_at(self.row, name)
        if (id_ := document_id(value)) is None:
            empty = value is None or isinstance(value, str)
            what = (
                "is missing or empty"
                if empty
                else f"is not an id but {quoted_value(value)}"
            )
            self.add_problem(
                *(
                    self.columns.missing_column(kind, self.row)
                    if name is None
                    else (f"{name!r} {what}", "an id is text or a whole number")
                )
            )
        return id_

    def text(self, kind: str) -> str | None:
        """The text in the column of a kind; None after a complaint."""
        name = self.name(kind)
        value = None if name is None else value_at(self.row, name)
        if isinstance(value, str):
            return value
        if name is None:
            self.add_problem(*self.columns.missing_column(kind, self.row))
        else:
            inner = next(iter(value), "…") if isinstance(value, Mapping) else None
            remedy = (
                TEXT_REMEDY
                if inner is None
                else f"say what in it is meant: {declaration(kind, f'{name}.{inner}')}"
            )
            self.add_problem(
                f"{name!r} is not a string but {quoted_value(value)}", remedy
            )
        return None

    def document(self) -> Document | None:
        """Read a document; None after a complaint."""
        id_, text, title = (
            self.id("document_id"),
            self.text("text"),
            self.value("title"),
        )
        if title is not None and not isinstance(title, str):
            self.add_problem(
                f"'title' is not a string but {quoted_value(title)}", TEXT_REMEDY
            )
            return None
        if id_ is None or text is None:
            return None
        return Document(
            id_,
            title or "",
            text,
            further_fields(self.row, map(self.name, DOCUMENT_KINDS)),
        )

    def query(self, unnamed: str, *, labelled: bool) -> Query | None:
        """Read a query; None after a complaint.

        Args:
            unnamed: what it is called where there is no column for its id.
            labelled: whether its labels are in the row, too: they are not fields of it.
        """
        id_ = unnamed if self.name("query_id") is None else self.id("query_id")
        text = self.text("query")
        if id_ is None or text is None:
            return None
        reference = read_reference_answer(
            self.value("reference"), self.value("claims"), self.place, self.problems
        )
        history = read_history(self.value("history"), self.place, self.problems)
        kinds = (
            kind
            for kind in (UNLABELLED_QUERY_KINDS, QUERY_KINDS)[labelled]
            if kind != "label_query"
        )
        fields = further_fields(self.row, map(self.name, kinds))
        if history:  # what of one conversation is asked belongs together
            turn = {
                "conversation": hashlib.sha256(history[0].encode()).hexdigest()[:8],
                "turn": str(len(history) // 2 + 1),
            }
            fields = turn | fields
        return Query(id_, text, fields, reference, history)
