"""The raw content of data sets, as readers return it.

Each format has a reader, which opens a reference as a `Source`: that yields documents,
queries and labels as they are written, as often as asked. `load` checks them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from harness.dataset.file import Files
from harness.dataset.labels import Labels
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.remedy import Option, Setting, compose_remedy
from retrievers.types import Document, Query

ENTRY_NUMBER = re.compile(r"\[(\d+|'[^']*'|\"[^\"]*\")\]$")
"""The number, or the key, of an entry in a file."""


class FormatReader(NamedTuple):
    """A format: whether a reference has it, by its files, and how it is opened."""

    matches: Callable[[DatasetReference, Files], bool]
    read: Callable[[DatasetReference, Files], Source]


class SourceLocation(NamedTuple):
    """A file, and a line if it is known."""

    path: Path
    line: int | None = None
    lines: Sequence[int] = ()
    """For labels that fill one line each: the line of each document, in their order."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)

    @property
    def file(self) -> str:
        """The file alone, without the number of an entry in it."""
        return ENTRY_NUMBER.sub("", str(self.path))

    def of_document(self, position: int) -> SourceLocation:
        """Return the location of one document among the labels of a query."""
        if position >= len(self.lines):
            return self
        return SourceLocation(self.path, self.lines[position] or None)


LocatedDocument = tuple[SourceLocation, Document]
LocatedQuery = tuple[SourceLocation, Query]


class PlacedLabels(NamedTuple):
    """The labels of one query, with their location."""

    location: SourceLocation
    query_id: str
    labels: Labels


class Source(Protocol):
    """The raw content of a data set.

    If a part cannot be read, that is added to `problems`, and the part is skipped.
    """

    def documents(self, problems: ReadProblems) -> Iterator[LocatedDocument]:
        """Yield the documents, in file order."""

    def queries(self, problems: ReadProblems) -> Iterator[LocatedQuery]:
        """Yield the queries, in file order."""

    def labels(self, problems: ReadProblems) -> Iterator[PlacedLabels]:
        """Yield the labels of each query; each query once."""


class FunctionSource(NamedTuple):
    """A source whose parts are read by three functions."""

    documents: Callable[[ReadProblems], Iterator[LocatedDocument]]
    queries: Callable[[ReadProblems], Iterator[LocatedQuery]]
    labels: Callable[[ReadProblems], Iterator[PlacedLabels]]


def choose_split(
    where: str, splits: Collection[str], requested: str | None, default: str = ""
) -> str:
    """Return the requested split, else the only one, else the default.

    Args:
        where: the place of a problem.
        splits: the names of those that exist.
        requested: the name in the experiment; None if it names none.
        default: one of several if none is requested.

    Raises:
        InputError: there is no such split; or none is requested, and there are none, or
            several without the default.

    >>> choose_split("d", ["dev", "test"], None, "test")
    'test'
    >>> choose_split("d", ["dev"], None)
    'dev'
    """
    if requested is not None:
        split = requested
        problem = f"has no split {requested!r}"
    else:
        split = next(iter(splits)) if len(splits) == 1 else default
        problem = f"has the splits {', '.join(splits) or 'of no query'}"
    if split in splits:
        return split
    if requested:
        remedy = compose_remedy(did_you_mean(requested, splits))
    else:
        remedy = compose_remedy("name one: ", Setting("split", "…"), Option("--split"))
    raise InputError(Problem(where, problem, remedy))
