"""Per-query scores of any tool."""

import math
from collections.abc import Iterator
from pathlib import Path

from harness.dataset.file import File
from harness.dataset.read_problems import ReadProblems
from harness.dataset.row import Row
from harness.dataset.rows import read_file_rows
from harness.dataset.settings import NO_ROWS_REMEDY
from harness.scoring.score_table import scores_from_rows
from harness.scoring.scores import Scores
from retrievers.errors import InputError, Problem

SCORE_FILE_COLUMNS = ("retriever", "query_id", "measure", "value")
SCORE_FILE_HEADER = ",".join(SCORE_FILE_COLUMNS)
MAX_SCORE = 1e100
"""The largest score: squares and cubes of differences are summed, and stay finite."""
UNDEFINED_WORDS = frozenset({"", "nan", "null", "none", "na", "n/a"})
"""How tools write that a value is undefined, in lower case."""


def read_score_file(path: Path) -> Scores:
    """Read a CSV file of per-query scores.

    Its columns are retriever, query_id, measure, value; further columns are ignored. A
    value is undefined if it is one of UNDEFINED_WORDS.

    Raises:
        InputError: a column is missing; else with every line that cannot be read, lacks
            a name, or has a score that an earlier line has; or there is no line.
    """
    problems = ReadProblems()
    scores: dict[tuple[str, str, str], float] = {}
    for row in _read_rows(path, problems):
        retriever, query_id, measure, cell = map(row.value, SCORE_FILE_COLUMNS)
        if not retriever or not query_id or not measure:
            problem = "lacks a retriever, a query_id or a measure"
            problems.add(row.location, problem, "one score a line")
            continue
        score = _parse_score(cell)
        if score is None:
            remedy = f"a number of at most {MAX_SCORE:g}; empty where undefined"
            problems.add(row.location, f"{cell!r} is not a score", remedy)
        elif (retriever, query_id, measure) in scores:
            problem = f"{retriever} has two scores of {measure} for query {query_id!r}"
            problems.add(row.location, problem, "keep one")
        else:
            scores[retriever, query_id, measure] = score
    if problems:
        raise InputError(list(map(_with_header_remedy, problems.problems)))
    return scores_from_rows(scores)


def _read_rows(path: Path, problems: ReadProblems) -> Iterator[Row]:
    """Yield the rows, each with all columns; cells are text.

    Raises:
        InputError: the header lacks a column.
    """
    for row in read_file_rows(File(path), problems):
        missing = [name for name in SCORE_FILE_COLUMNS if name not in row.cells]
        if missing:
            problem = f"has no column {', '.join(missing)}"
            remedy = f"a header, {SCORE_FILE_HEADER}; there is {', '.join(row.cells)}"
            raise InputError(Problem(f"{path}:1", problem, remedy))
        yield row


def _with_header_remedy(problem: Problem) -> Problem:
    """Return a problem without the remedy that the header is a row.

    It is an option of data sets; a file of scores always has a header.
    """
    if problem.remedy == NO_ROWS_REMEDY:
        return problem._replace(remedy="write rows below it")
    return problem


def _parse_score(text: str) -> float | None:
    """Return a score; NaN if it is undefined, None if it is no number, or too large.

    >>> _parse_score("0.5"), _parse_score("inf"), _parse_score("")
    (0.5, None, nan)
    >>> _parse_score("1_0") is None
    True
    >>> _parse_score("-1e308") is None
    True
    """
    word = text.strip()
    if word.lower() in UNDEFINED_WORDS:
        return math.nan
    if "_" in word:  # Python's numbers may have underscores
        return None
    try:
        score = float(word)
    except ValueError:
        return None
    return score if abs(score) <= MAX_SCORE else None
