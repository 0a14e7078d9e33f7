"""A row whose columns are known, declared or by their usual names.

`columns` finds the column of a kind; here its cell is read as an id, a text, a document
or a query, and what cannot be read becomes a problem of the row.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from harness.dataset.cell_paths import declared_paths
from harness.dataset.columns import Columns, declaration
from harness.dataset.complaint import Complaint
from harness.dataset.excluded_documents import read_excluded
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference_answers import read_reference_answer
from harness.dataset.row import Row
from harness.dataset.source import SourceLocation
from harness.dataset.usual_names import (
    DOCUMENT_KINDS,
    QUERY_KINDS,
    UNLABELLED_QUERY_KINDS,
)
from harness.dataset.written_values import parse_cell, quoted_value, read_history
from retrievers.ids import document_id
from retrievers.remedy import Remedy, compose_remedy
from retrievers.types import Document, Query

TEXT_REMEDY = "write it as a string"
CONVERSATION_DIGEST_LENGTH = 8
"""Hex digits: enough to tell the conversations of one file apart."""


class PlacedRow(NamedTuple):
    """A row with the columns of its table; reading it adds problems."""

    row: Row
    columns: Columns
    problems: ReadProblems

    @property
    def location(self) -> SourceLocation:
        """The location of the row."""
        return self.row.location

    def name(self, kind: str) -> str | None:
        """Return the column of a kind; None if there is none."""
        return self.columns.name(kind, self.row)

    def value(self, kind: str) -> Any:
        """Return the value in the column of a kind; None if there is none.

        >>> columns = Columns((("query", "inputs.question"),))
        >>> row = Row(SourceLocation("q"), {"inputs": {"question": "why"}})
        >>> PlacedRow(row, columns, ReadProblems()).value("query")
        'why'
        """
        column = self.name(kind)
        return None if column is None else self.row.value(column)

    def is_blank(self, kind: str) -> bool:
        """Whether the column of a kind is there, and nothing is in it."""
        return self.name(kind) is not None and parse_cell(self.value(kind)) is None

    def add_complaint(self, complaint: Complaint) -> None:
        """Add a complaint about this row."""
        self.add_problem(complaint.problem, complaint.remedy)

    def add_problem(self, problem: str, remedy: Remedy | str) -> None:
        """Add a problem of this row."""
        self.problems.add(self.location, problem, remedy)

    def _required_column(self, kind: str) -> str | None:
        """Return the column of a kind; without one, add a problem."""
        column = self.name(kind)
        if column is None:
            self.add_complaint(self.columns.missing_column(kind, self.row))
        return column

    def id(self, kind: str) -> str | None:
        """Return the id in the column of a kind; without one, add a problem."""
        column = self._required_column(kind)
        if column is None:
            return None
        cell = self.row.value(column)
        id_ = document_id(cell)
        if id_ is None:
            problem = f"is not an id but {quoted_value(cell)}"
            if cell is None or isinstance(cell, str):
                problem = "is missing or empty"
            self.add_problem(f"{column!r} {problem}", "an id is text or a whole number")
        return id_

    def text(self, kind: str) -> str | None:
        """Return the text in the column of a kind; without one, add a problem."""
        column = self._required_column(kind)
        if column is None:
            return None
        cell = self.text_cell(kind)
        if isinstance(cell, str):
            return cell
        remedy: Remedy | str = TEXT_REMEDY
        is_declarable = not self.columns.are_fixed and self._paths(column) == [column]
        if isinstance(cell, Mapping) and is_declarable:
            path = f"{column}.{next(iter(cell), '…')}"
            remedy = compose_remedy(
                "say what in it is meant: ", declaration(kind, path)
            )
        problem = f"{column!r} is not a string but {quoted_value(cell)}"
        self.add_problem(problem, remedy)
        return None

    def text_cell(self, kind: str) -> Any:
        """Return the value in the column of a text, which may be no text.

        The texts of several columns (`text = "head,body"`) are lines, in the declared
        order, without empty ones. None if there is no column.
        """
        column = self.name(kind)
        if column is None:
            return None
        cells = [self.row.value(path) for path in self._paths(column)]
        if len(cells) == 1:
            return cells[0]
        for cell in cells:
            if cell is not None and not isinstance(cell, str | int | float):
                return cell
        return "\n".join(str(cell) for cell in cells if cell not in (None, ""))

    def _paths(self, column: str) -> list[str]:
        """Return a column, or those that it names with commas between them."""
        return [column] if column in self.row.cells else declared_paths(column)

    def _further_fields(self, kinds: Iterable[str]) -> dict[str, str]:
        """Return the plain values in columns that are of none of these kinds."""
        used: list[str] = []
        for column in map(self.name, kinds):
            if column is not None:
                used += self._paths(column)
        return self.row.further_fields(used)

    def query_words(self) -> tuple[str, ...] | None:
        """Return `Query.words` of the row's query; None if it has no text."""
        text = self.text_cell("query")
        if not isinstance(text, str):
            return None
        history = read_history(self.value("history"), self.location, ReadProblems())
        return (*history, text)

    def document(self) -> Document | None:
        """Return the document; without one, add a problem."""
        id_ = self.id("document_id")
        text = self.text("text")
        title = self.text_cell("title")
        if title is not None and not isinstance(title, str):
            column = self.name("title")
            problem = f"{column!r} is not a string but {quoted_value(title)}"
            self.add_problem(problem, TEXT_REMEDY)
            return None
        if id_ is None or text is None:
            return None
        return Document(id_, title or "", text, self._further_fields(DOCUMENT_KINDS))

    def query(self, default_id: str, *, has_labels: bool) -> Query | None:
        """Return the query; without one, add a problem.

        One with a history has fields for its conversation and its turn.

        Args:
            default_id: its id if there is no column for it.
            has_labels: whether the row may have labels, which are not fields.
        """
        id_ = default_id if self.name("query_id") is None else self.id("query_id")
        text = self.text("query")
        if id_ is None or text is None:
            return None
        reference = read_reference_answer(
            self.value("reference"), self.value("claims"), self.location, self.problems
        )
        history = read_history(self.value("history"), self.location, self.problems)
        excluded = read_excluded(self.value("exclude"), self.location, self.problems)
        kinds = QUERY_KINDS if has_labels else UNLABELLED_QUERY_KINDS
        # A further id of the query, such as `qid` beside `id`, is a field.
        fields = self._further_fields(kind for kind in kinds if kind != "label_query")
        if history:
            conversation = _conversation_name(history[0])
            turn = len(history) // 2 + 1  # before it: a question, its answer, and so on
            fields = {"conversation": conversation, "turn": str(turn), **fields}
        return Query(id_, text, fields, reference, history, excluded)


def _conversation_name(first_message: str) -> str:
    """Return the name of a conversation, the same for all with this first message."""
    digest = hashlib.sha256(first_message.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:CONVERSATION_DIGEST_LENGTH]
