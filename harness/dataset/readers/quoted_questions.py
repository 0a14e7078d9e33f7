"""Questions that come with their passages.

There is no table of documents: the passages are the documents, each once, under ids
that the reader makes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.dataset.columns import Columns
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row import Row
from harness.dataset.source import (
    FunctionSource,
    LocatedDocument,
    SourceLocation,
)
from harness.dataset.table_source import TableSource, rows_of_files
from retrievers.types import Document


class QuotedQuestion(NamedTuple):
    """A question whose row names its passages by their ids, and the passages."""

    location: SourceLocation
    row: Row | None
    """The row with the question; None if there are only passages."""
    passages: Sequence[Document]


QuestionReader = Callable[[ReadProblems], Iterator[QuotedQuestion]]


def question_source(read_questions: QuestionReader, columns: Columns) -> FunctionSource:
    """Return documents, queries and labels; problems are reported with the queries."""

    def read_passages(_: ReadProblems) -> Iterator[LocatedDocument]:
        ids: set[str] = set()
        for question in read_questions(ReadProblems()):
            for passage in question.passages:
                if passage.id not in ids:
                    ids.add(passage.id)
                    yield question.location, passage

    def read_rows(problems: ReadProblems) -> Iterator[Row]:
        for question in read_questions(problems):
            if question.row is not None:
                yield question.row

    table = TableSource(rows_of_files(), read_rows, None, columns)
    return FunctionSource(read_passages, table.queries, table.labels)


def distinct_values(answers: Iterable[Any]) -> list[Any]:
    """Return answers, each once; they may be no texts, and unhashable."""
    distinct: list[Any] = []
    for answer in answers:
        if answer not in distinct:
            distinct.append(answer)
    return distinct


def get_value(holder: Any, key: str) -> Any:
    """Return the value under a key; None if the holder is not an object."""
    return holder.get(key) if isinstance(holder, Mapping) else None


def list_under(key: str, holder: Any) -> list[Any]:
    """Return the list under a key; empty if there is none."""
    elements = get_value(holder, key)
    return elements if isinstance(elements, list) else []
