"""Preferences that a page exported, as a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from harness.dataset.read_problems import ReadProblems
from harness.dataset.text_rows import read_json_lines
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.options.tables import StrictTable, validated

Choice = Literal["left", "right", "same"]


class Preference(StrictTable):
    """What one person prefers for one query in one round: a line of the file."""

    query_id: str = Field(min_length=1)
    choice: Choice
    """The better side, or neither; which retriever was there is not in the page."""
    round: int = Field(ge=1, le=2)
    """2: the query again, with swapped sides."""
    judge: str = Field(min_length=1, max_length=200)
    page: str
    """Digest of the comparison."""
    depth: int = Field(ge=1)
    seed: int
    seconds: float | None = Field(default=None, ge=0)
    at: str = ""
    """The time, in ISO 8601."""


def read_preferences(paths: Sequence[Path]) -> list[list[Preference]]:
    """Return the preferences of each file, in the order of the paths; none is empty.

    Raises:
        InputError: a line is not a preference, with file and line; a file is empty; or
            the files are of different comparisons.
    """
    problems = ReadProblems()
    files: list[list[Preference]] = []
    for path in paths:
        preferences: list[Preference] = []
        for location, cells in read_json_lines(path, problems):
            with collect_errors(problems):
                preferences.append(validated(Preference, cells, str(location)))
        # A file whose lines all have a problem is not called empty, too.
        if not preferences and not problems:
            problems.add(path, "holds no preference", "export them from the page")
        files.append(preferences)
    if problems:
        raise InputError(problems.problems)
    designs = {(row.page, row.depth, row.seed) for rows in files for row in rows}
    if len(designs) > 1:
        problem = "are exported from pages of different comparisons"
        remedy = "take in the files of one comparison at a time"
        raise InputError(Problem(", ".join(map(str, paths)), problem, remedy))
    return files
