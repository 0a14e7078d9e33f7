"""What every reader gives.

Ids, grades, cells, reference answers and claims mean the same in every format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness.dataset.file import Files
from harness.dataset.labels import Labels
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.types import Document, Query


class FormatReader(NamedTuple):
    """A format: whether a reference is one, by its files, and how it is opened."""

    matches: Callable[[DatasetReference, Files], bool]
    read: Callable[[DatasetReference, Files], Source]


TableRow = Mapping[str, Any]


ENTRY_PATTERN = re.compile(r"\[(\d+|'[^']*'|\"[^\"]*\")\]$")


class SourceLocation(NamedTuple):
    """A file, and a line where one is known."""

    path: Path
    line: int | None = None
    lines: Sequence[int] = ()
    """Of labels, one per line: the line of each document, in their order."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)

    @property
    def file(self) -> str:
        """The file alone, without the number of an entry in it."""
        return ENTRY_PATTERN.sub("", str(self.path))

    def of_document(self, position: int) -> SourceLocation:
        """The place of one document among the labels of a query."""
        return (
            SourceLocation(self.path, self.lines[position] or None)
            if position < len(self.lines)
            else self
        )


PlacedLabels = tuple[SourceLocation, str, Labels]


class Source(Protocol):
    """The raw content of a data set; what cannot be read is added to `problems` and skipped."""

    def documents(
        self, problems: ReadProblems
    ) -> Iterator[tuple[SourceLocation, Document]]:
        """The documents, in file order."""

    def queries(self, problems: ReadProblems) -> Iterator[tuple[SourceLocation, Query]]:
        """The queries, in file order."""

    def labels(
        self, problems: ReadProblems
    ) -> Iterator[tuple[SourceLocation, str, Labels]]:
        """Query ids and what was said about them; each query once."""


class FunctionSource(NamedTuple):
    """A source whose parts are read by functions of their own."""

    documents: Callable[[ReadProblems], Iterator[tuple[SourceLocation, Document]]]
    queries: Callable[[ReadProblems], Iterator[tuple[SourceLocation, Query]]]
    labels: Callable[[ReadProblems], Iterator[tuple[SourceLocation, str, Labels]]]


def choose_split(
    where: str, splits: Collection[str], asked: str | None, usual: str = ""
) -> str:
    """The split that is meant: the one that is asked for, else the only one, else the usual one.

    Raises:
        InputError: there is no such split, or several are there and none is named.

    >>> choose_split("d", ["dev", "test"], None, "test"), choose_split("d", ["dev"], None)
    ('test', 'dev')
    """
    alone = next(iter(splits)) if len(splits) == 1 else usual
    if (found := alone if asked is None else asked) in splits:
        return found
    what = (
        f"has the splits {', '.join(splits) or 'of no query'}"
        if asked is None
        else f"has no split {asked!r}"
    )
    remedy = (
        did_you_mean(asked, splits) if asked else 'name one: split = "…", or --split'
    )
    raise InputError(Problem(where, what, remedy))
