"""The folder of several data sets, known by data_sets.csv."""

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
"""Of data_sets.csv; one for each set follows."""
SET_COLUMN_PREFIX = "mean_difference on "
"""Before the name of a set, what the column of its mean difference is called."""


SETS_FILE = "data_sets.csv"
"""The file by which such a folder is known."""


def holds_sets(place: Path) -> bool:
    """Whether a folder holds the results of one experiment on several data sets."""
    return (place / SETS_FILE).is_file() and not (place / "manifest.json").exists()


def read_sets(place: Path) -> list[Results]:
    """Read the results of each data set of a folder, in the order of the experiment.

    Raises:
        InputError: the folder does not hold several data sets, or one of them cannot be read.
    """
    if not holds_sets(place):
        remedy = "give folders that `harness run` wrote of several data sets each, or of one each"
        raise InputError(
            Problem(str(place), "holds no results of several data sets", remedy)
        )
    with (place / SETS_FILE).open(encoding="utf-8", errors="replace") as file:
        head = file.readline()
    names = [
        column.removeprefix(SET_COLUMN_PREFIX)
        for column in next(csv.reader([head]), [])
        if column.startswith(SET_COLUMN_PREFIX)
    ]
    if not names or not all(
        re.fullmatch(NAME_PATTERN, name) for name in names
    ):  # they lead to folders
        raise InputError(
            Problem(
                str(place / SETS_FILE), "names no data set", "run the experiment again"
            )
        )
    return [records.read_results(place / name) for name in names]
