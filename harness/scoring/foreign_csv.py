"""Per-query scores of any tool."""

import math
from collections.abc import Iterator
from pathlib import Path

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.rows import read_file_rows
from harness.dataset.source import TableRow
from harness.dataset.text_rows import read_text
from harness.scoring.score_table import scores_from_rows
from harness.scoring.scores import Scores
from retrievers.errors import InputError, Problem

SCORE_FILE_COLUMNS = ("retriever", "query_id", "measure", "value")
MAX_SCORE = 1e100
"""Of a score; what is summed are squares and cubes of differences, which must stay finite."""
UNDEFINED_WORDS = frozenset({"", "nan", "null", "none", "na", "n/a"})
"""How tools write that a value is undefined, in lower case."""


def read_score_file(path: Path) -> Scores:
    """Read a CSV file of per-query scores: columns retriever, query_id, measure, value; further columns are ignored.

    An empty value, NaN or null is undefined.

    Raises:
        InputError: with every line that cannot be read, a score that occurs twice, or a column that is missing.
    """
    problems = ReadProblems()
    rows: dict[tuple[str, str, str], float] = {}
    for number, row in _lines(path):
        where = f"{path}:{number}"
        retriever, query, measure, written = (
            row.get(name) for name in SCORE_FILE_COLUMNS
        )
        if not retriever or not query or not measure or written is None:
            problems.add(
                where,
                "lacks a retriever, a query_id, a measure or a value",
                "one score a line",
            )
            continue
        value = _number(written)
        if value is None:
            remedy = f"a number of at most {MAX_SCORE:g}; empty where undefined"
            problems.add(where, f"{written!r} is not a score", remedy)
        elif (retriever, query, measure) in rows:
            problems.add(
                where,
                f"{retriever} has two scores of {measure} for query {query!r}",
                "keep one",
            )
        else:
            rows[retriever, query, measure] = value
    if problems:
        raise InputError(problems.problems)
    if not rows:
        raise InputError(
            Problem(
                str(path),
                "holds no score",
                f"a header, {','.join(SCORE_FILE_COLUMNS)}, then one score a line",
            )
        )
    return scores_from_rows(rows)


def _lines(path: Path) -> Iterator[tuple[int, TableRow]]:
    problems = ReadProblems()
    for place, row in read_file_rows(File(path), problems):
        if missing := [name for name in SCORE_FILE_COLUMNS if name not in row]:
            remedy = (
                f"a header, {','.join(SCORE_FILE_COLUMNS)}; there is {', '.join(row)}"
            )
            raise InputError(
                Problem(f"{path}:1", f"has no column {', '.join(missing)}", remedy)
            )
        yield place.line or 0, row
    if problems:  # of files of scores the header is never left out
        raise InputError(
            [
                one._replace(remedy=one.remedy.partition("; or say header")[0])
                for one in problems.problems
            ]
        )


def _number(written: str) -> float | None:
    """A score; NaN where it is undefined, None where it is not a number, or too large a one.

    >>> _number("0.5"), _number("inf"), _number(""), _number("-1e308")
    (0.5, None, nan, None)
    """
    text = written.strip()
    if text.lower() in UNDEFINED_WORDS:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) <= MAX_SCORE else None


def read_query_ids(path: Path) -> list[str]:
    """Read the ids of a file, one a line; raises InputError where it cannot be read, or holds none."""
    if not (
        ids := [line.strip() for line in read_text(path).split("\n") if line.strip()]
    ):
        raise InputError(
            Problem(str(path), "names no query", "one query id a line, in UTF-8")
        )
    return ids
