"""The folder of several data sets, with its data_sets.csv."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from harness import records
from harness.experiment import NAME_PATTERN
from harness.records import Results
from retrievers.errors import InputError, Problem

SETS_COLUMNS = (
    "a",
    "b",
    "sets",
    "ahead",
    "mean_difference",
    "p_value",
    "p_adjusted",
    "method",
    "verdict",
    "t",
    "p_like_these",
    "ci_low",
    "ci_high",
    "new_low",
    "new_high",
)
"""The columns of data_sets.csv; one for each set follows."""
SET_COLUMN_PREFIX = "mean_difference on "
"""The beginning of the column of a set's mean difference, before its name."""
SETS_FILE = "data_sets.csv"
"""The file that only such a folder has."""


def holds_sets(folder: Path) -> bool:
    """Whether a folder has the results of one experiment on several data sets."""
    return (folder / SETS_FILE).is_file() and not (folder / "manifest.json").exists()


def read_sets(folder: Path) -> list[Results]:
    """Read the results of each data set of a folder, in the order of the experiment.

    Raises:
        InputError: the folder does not have several data sets, or one of them cannot be
            read.
    """
    if not holds_sets(folder):
        problem = "holds no results of several data sets"
        remedy = (
            "give folders that `harness run` wrote of several data sets each, "
            "or of one each"
        )
        raise InputError(Problem(str(folder), problem, remedy))
    return [records.read_results(folder / name) for name in _set_names(folder)]


def _set_names(folder: Path) -> list[str]:
    """Return the names of the data sets in the header of data_sets.csv.

    Raises:
        InputError: it names none, or cannot be read.
    """
    path = folder / SETS_FILE
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header = next(csv.reader(file), [])
    except (OSError, ValueError, csv.Error) as error:
        raise records.unreadable_file(path, error) from None
    names = [
        column.removeprefix(SET_COLUMN_PREFIX)
        for column in header
        if column.startswith(SET_COLUMN_PREFIX)
    ]
    # The names are those of folders, and must lead to no other.
    if not names or not all(re.fullmatch(NAME_PATTERN, name) for name in names):
        raise records.unreadable_file(path, ValueError("line 1 names no data set"))
    return names
