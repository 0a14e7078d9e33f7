"""Problems that reading a data set meets."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from retrievers.errors import Problem

MAX_PROBLEMS_PER_FILE = 20
"""How many problems of one file are listed; the rest is counted."""


LINE_PATTERN = re.compile(r"(:\d+|\[\d+\])$")


class ReadProblems:
    """What reading has found: problems, of each file the first few in full, and what is counted and not refused."""

    def __init__(self) -> None:
        self.notes: dict[str, list[str]] = {}
        """Kind -> ids."""
        self.columns_used: dict[str, dict[str, str]] = {}
        """File -> its columns, each with what it was read as: see `Columns.taken`."""
        self.table_sizes = defaultdict[str, Counter[str]](Counter)
        """Table or folder of documents -> what it holds (rows, Markdown files) -> how many."""
        self.unused_columns: dict[str, dict[str, list[Any]]] = {}
        """File of queries or labels -> column that nothing uses -> its first cells."""
        self.files_without_labels = set[str]()
        """Files of queries whose labels are in a file of their own."""
        self.names_document: Callable[[str], bool] = lambda cell: False
        """Whether a whole cell names a document: known when labels are read."""
        self._problems: dict[tuple[str, str, str], Problem] = {}
        """Those that are listed, by their file and words."""
        self._repeats = Counter[tuple[str, str, str]]()
        """Of each of them, at how many more places of the file it was found."""
        self._counts = Counter[str]()

    def __bool__(self) -> bool:
        return bool(self._problems)

    @property
    def problems(self) -> list[Problem]:
        """The problems, equal ones of a file as one that counts them, and for each file how many more there are."""
        more = {
            file: count - MAX_PROBLEMS_PER_FILE
            for file, count in self._counts.items()
            if count > MAX_PROBLEMS_PER_FILE
        }
        return [
            *(
                count_repeats(problem, self._repeats[kind])
                for kind, problem in self._problems.items()
            ),
            *(
                Problem(file, f"and {count:,} more like these", occurrences=count)
                for file, count in more.items()
            ),
        ]

    def append(self, problem: Problem) -> None:
        """Take in a problem."""
        kind = _kind(problem)
        if kind in self._problems:
            self._repeats[kind] += 1
            return
        self._counts[kind[0]] += 1
        if self._counts[kind[0]] <= MAX_PROBLEMS_PER_FILE:
            self._problems[kind] = problem

    def extend(self, problems: Iterable[Problem]) -> None:
        """Take in several."""
        for problem in problems:
            self.append(problem)

    def add(self, place: object, what: str, remedy: str = "") -> None:
        """Take in a problem at a place."""
        self.append(Problem(str(place), what, remedy))

    def note(self, kind: str, id_: str) -> None:
        """Count something of a kind."""
        self.notes.setdefault(kind, []).append(id_)


def _kind(problem: Problem) -> tuple[str, str, str]:
    """What two problems have in common that are the same but for the line of one file."""
    return LINE_PATTERN.sub("", problem.where), problem.what, problem.remedy


def count_repeats(problem: Problem, repeats: int) -> Problem:
    """A problem that was found at more places of its file, as one that says at how many.

    >>> str(count_repeats(Problem("a.csv:2", "'text' is missing"), 9))
    "a.csv:2: 'text' is missing, as at 9 more places"
    """
    if not repeats:
        return problem
    places = f"{repeats:,} more place{'s' if repeats > 1 else ''}"
    return problem._replace(
        what=f"{problem.what}, as at {places}", occurrences=1 + repeats
    )


def report_repeated_column(
    header: Sequence[str], where: str, problems: ReadProblems
) -> bool:
    """Complain of a column that occurs twice; unnamed ones may."""
    twice = sorted(
        name for name, number in Counter(header).items() if name and number > 1
    )
    if twice:
        problems.append(
            Problem(
                where, f"the column {twice[0]!r} occurs twice", "name columns apart"
            )
        )
    return bool(twice)
