"""Problems that reading a data set meets.

One object goes through all of reading: it collects problems, which refuse the data set;
notes, which are counted; and what is known of columns, from which later checks ask the
user what an unused column means.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from retrievers.errors import Problem
from retrievers.remedy import Remedy

MAX_PROBLEMS_PER_FILE = 20
"""Kinds of problems of one file, at most, that are listed.

After them each problem is counted.
"""
LINE_NUMBER = re.compile(r"(:\d+|\[\d+\])$")
"""The line, or the index, at the end of a location."""


class _ProblemKind(NamedTuple):
    """What problems share if they differ only in the line of one file."""

    file: str
    problem: str
    remedy: Remedy | str


class ReadProblems:
    """Problems of the files, each kind of them by its first line, and notes."""

    def __init__(self) -> None:
        self.notes: dict[str, list[str]] = {}
        """Kind of what is counted but not refused -> ids, paths or names."""
        self.columns_used: dict[str, dict[str, str]] = {}
        """File -> column -> what it is read as: see `Columns.kinds_by_column`."""
        self.table_sizes = defaultdict[str, Counter[str]](Counter)
        """Table, or folder of documents -> "row", or a format -> how many."""
        self.unused_columns: dict[str, dict[str, list[Any]]] = {}
        """File of queries or labels -> column -> its first cells.

        These columns are not read as query, id or label.
        """
        self.files_without_labels = set[str]()
        """Files of queries whose labels are in another file."""
        self.where_columns = frozenset[str]()
        """The columns of `where`, which choose the rows that are labels."""
        self.names_document: Callable[[str], bool] = lambda cell: False
        """Whether a whole cell names a document: then it is not split at separators.

        Set when the documents are known, before labels are read.
        """
        self._problems: dict[_ProblemKind, Problem] = {}
        """The first problem of each kind."""
        self._repeats = Counter[_ProblemKind]()
        """Kind -> how many further lines of the file have this problem."""
        self._counts = Counter[str]()
        """File -> its listed kinds, plus every problem after the last listed kind."""
        self._unlisted = Counter[str]()
        """File -> its problems that are not listed."""

    def __bool__(self) -> bool:
        return bool(self._problems)

    @property
    def problems(self) -> list[Problem]:
        """The listed problems with their numbers, then how many more each file has."""
        problems = [
            count_repeats(problem, self._repeats[kind])
            for kind, problem in self._problems.items()
        ]
        for file, unlisted in self._unlisted.items():
            text = f"and {unlisted:,} more like these"
            problems.append(Problem(file, text, occurrences=unlisted))
        return problems

    def append(self, problem: Problem) -> None:
        """Add a problem."""
        kind = _kind_of(problem)
        if kind in self._problems:
            self._repeats[kind] += 1
            return
        self._counts[kind.file] += 1
        if self._counts[kind.file] <= MAX_PROBLEMS_PER_FILE:
            self._problems[kind] = problem
        else:
            self._unlisted[kind.file] += problem.occurrences

    def extend(self, problems: Iterable[Problem]) -> None:
        """Add several problems."""
        for problem in problems:
            self.append(problem)

    def add(self, where: object, problem: str, remedy: Remedy | str = "") -> None:
        """Add a problem of a file or a location."""
        self.append(Problem(str(where), problem, remedy))

    def note(self, kind: str, id_: str) -> None:
        """Count an id under a kind of note."""
        self.notes.setdefault(kind, []).append(id_)


def _kind_of(problem: Problem) -> _ProblemKind:
    file = LINE_NUMBER.sub("", problem.where)
    return _ProblemKind(file, problem.what, problem.remedy)


def count_repeats(problem: Problem, repeats: int) -> Problem:
    """Return a problem with the number of further lines that have it.

    >>> str(count_repeats(Problem("a.csv:2", "'text' is missing"), 9))
    "a.csv:2: 'text' is missing; also in 9 others"
    """
    if not repeats:
        return problem
    plural = "s" if repeats > 1 else ""
    text = f"{problem.what}; also in {repeats:,} other{plural}"
    occurrences = problem.occurrences + repeats
    return problem._replace(what=text, occurrences=occurrences)


def report_repeated_column(
    header: Sequence[str], where: str, problems: ReadProblems
) -> bool:
    """Return whether a column occurs twice, which is a problem.

    Columns without a name may.
    """
    occurrences = Counter(header)
    repeated = sorted(name for name in occurrences if name and occurrences[name] > 1)
    if not repeated:
        return False
    problems.add(
        where, f"the column {repeated[0]!r} occurs twice", "name columns apart"
    )
    return True


def unconverted_reasons(notes: Iterable[str]) -> dict[str, str]:
    """Return why each file could not be converted, from notes about them.

    >>> unconverted_reasons(["a.docx: the file is damaged"])
    {'a.docx': 'the file is damaged'}
    """
    # The reader of a folder writes these notes as "FILE: WHY".
    pairs = (note.partition(": ") for note in notes)
    return {file: reason for file, _, reason in pairs}
