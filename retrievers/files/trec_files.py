r"""TREC runs or qrels in files.

A run line is `query Q0 document rank score tag`, one of qrels `query iteration document
grade`. Lines end at \n alone, fields at ASCII white space, as in trec_eval. Ids with
white space or a percent sign are percent-encoded, so that they stay one field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic_core import to_json

from retrievers.files.text_files import explain_write_errors, open_text_file
from retrievers.files.trec_columns import QRELS_FORM, RUN_FORM, LineForm, encode_id
from retrievers.files.trec_lines import LineProblems, LineReader, group_by_query
from retrievers.ranking import Floats, Ranking

MAX_FLOAT32 = float(np.finfo(np.float32).max)
MIN_PLAIN_NUMBER = 1e-4
MAX_PLAIN_NUMBER = 1e16
"""Python writes smaller and larger numbers with an exponent."""
RunScores = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]


def read_run(path: str | Path, read_lines: LineReader | None = None) -> RunScores:
    """Read a run, plain or gzip: query id -> document id -> score.

    The rank column is ignored, as by trec_eval.

    Args:
        path: the file.
        read_lines: reads a file that does not have TREC lines.

    Raises:
        InputError: malformed lines, scores that are not numbers, or a document ranked
            twice for a query, each with its line; or the file cannot be read or is
            empty.
    """
    return _read_by_query(path, RUN_FORM, read_lines)


def read_qrels(path: str | Path) -> Qrels:
    """Read judgments, plain or gzip: query id -> document id -> grade, as lines come.

    Raises:
        InputError: malformed lines, grades that are not whole numbers, or a document
            judged twice for a query, each with its line; or the file cannot be read or
            is empty.
    """
    return _read_by_query(path, QRELS_FORM)


def _read_by_query(
    path: str | Path, form: LineForm, read_lines: LineReader | None = None
) -> dict[str, dict[str, Any]]:
    """Return the numbers of a file by query and document."""
    values_by_query: dict[str, dict[str, Any]] = {}
    problems = LineProblems(path)
    for lines in group_by_query(path, form, problems, read_lines):
        values = dict(zip(lines.documents, lines.values.tolist(), strict=True))
        # The usual case: the query's only group, no document twice.
        if lines.query not in values_by_query and len(values) == len(lines.documents):
            values_by_query[lines.query] = values
            continue
        all_values = values_by_query.setdefault(lines.query, {})
        lines.report_duplicates(all_values, problems, form.verb)
        all_values.update(values)
    problems.raise_problems(is_empty=not values_by_query)
    return values_by_query


def stream_run(
    path: str | Path, read_lines: LineReader | None = None
) -> Iterator[tuple[str, tuple[str, ...], Floats]]:
    """Yield each query of a run with its documents and their scores, as the lines come.

    Only one query's hits are in memory at a time. A query whose lines are not grouped
    comes again, and a document that is in two of its groups is not reported: the caller
    then uses `read_run`. Arguments and errors are those of `read_run`; malformed lines
    are raised after the last query.
    """
    problems = LineProblems(path)
    is_empty = True
    for lines in group_by_query(path, RUN_FORM, problems, read_lines):
        is_empty = False
        lines.report_duplicates((), problems, RUN_FORM.verb)
        yield lines.query, lines.documents, lines.values
    problems.raise_problems(is_empty=is_empty)


def write_trec_run(
    path: str | Path, rankings: Mapping[str, Ranking], *, tag: str
) -> None:
    """Write the lines of rankings by query id; a query without hits has none.

    Raises:
        InputError: the file cannot be written.
    """
    with explain_write_errors(Path(path)), open_text_file(path, "w") as file:
        for query, ranking in rankings.items():
            scores = format_scores(ranking.scores)
            file.write(run_lines(query, ranking, scores, tag=tag))


def run_lines(query: str, ranking: Ranking, scores: list[str], *, tag: str) -> str:
    """Return the lines of a ranking, best first: `query Q0 document rank score tag`.

    Scores fall strictly, also as 32-bit floats, so that every reader gets this order: a
    score that does not fall is lowered to the next 32-bit float below its predecessor.

    Args:
        query: the query's id.
        ranking: its ranking.
        scores: the texts of its scores, which are used if the scores fall.
        tag: the name of the run, without white space.
    """
    if not scores:
        return ""
    lowered_scores = strictly_falling(ranking.scores)
    if lowered_scores is not None:
        scores = list(map(repr, lowered_scores))
    line_start = f"{encode_id(query)} Q0 "
    line_end = f" {tag}\n"
    # Four parts a hit: the end of one line with the start of the next, document, rank,
    # score. They are filled by slices: no Python step for each of millions of lines.
    parts = [line_end + line_start] * (4 * len(scores))
    parts[0] = line_start
    parts[1::4] = _encode_ids(ranking.doc_ids)
    parts[2::4] = _rank_fields(len(scores))
    parts[3::4] = scores
    return "".join(parts) + line_end


def _encode_ids(doc_ids: tuple[str, ...]) -> Iterable[str]:
    """Return percent-encoded ids; the same ids if none needs it."""
    all_ids = "".join(doc_ids)
    has_escapes = " " in all_ids or "%" in all_ids
    if all_ids.isascii() and all_ids.isprintable() and not has_escapes:
        return doc_ids
    return map(encode_id, doc_ids)


def format_scores(scores: Floats) -> list[str]:
    """Return the `repr` of each score, best first.

    >>> format_scores(np.array([0.5, 1e-07]))
    ['0.5', '1e-07']
    """
    numbers: list[float] = scores.tolist()
    if not numbers:
        return []
    if numbers[0] < MAX_PLAIN_NUMBER and numbers[-1] >= MIN_PLAIN_NUMBER:
        # Without exponents JSON is the same, in a third of the time.
        return to_json(numbers).decode()[1:-1].split(",")
    return list(map(repr, numbers))


@lru_cache
def _rank_fields(count: int) -> list[str]:
    return [f" {rank} " for rank in range(1, count + 1)]


def strictly_falling(scores: Floats) -> list[float] | None:
    """Return scores lowered until they fall strictly, as doubles and 32-bit floats.

    None if the given ones fall strictly and fit 32 bits. Scores beyond that range
    become its end; where there is no room below, those before are raised.

    >>> strictly_falling(np.array([0.5, 0.5]))
    [0.5, 0.4999999701976776]
    """
    is_out_of_range = max(scores[0], -scores[-1]) > MAX_FLOAT32
    if is_out_of_range:
        scores = np.clip(scores, -MAX_FLOAT32, MAX_FLOAT32)
    singles = scores.astype(np.float32)
    if not is_out_of_range and (singles[1:] < singles[:-1]).all():
        return None
    falling_scores: list[float] = scores.tolist()
    with np.errstate(over="ignore"):  # below the range comes -inf
        for i in range(1, len(singles)):
            if singles[i] >= singles[i - 1]:
                singles[i] = np.nextafter(singles[i - 1], np.float32(-np.inf))
                falling_scores[i] = float(singles[i])
    if np.isneginf(singles[-1]):
        _raise_last(singles)
        falling_scores = singles.tolist()
    return falling_scores


def _raise_last(singles: npt.NDArray[np.float32]) -> None:
    """Raise the last scores, which left the range, so that they fit and fall."""
    singles[-1] = -MAX_FLOAT32
    for i in range(len(singles) - 2, -1, -1):
        if singles[i] > singles[i + 1]:
            return
        singles[i] = np.nextafter(singles[i + 1], np.float32(np.inf))


def write_trec_qrels(
    path: str | Path, judgments: Mapping[str, Mapping[str, int]]
) -> None:
    """Write judgments (or gains) as `query 0 document grade`.

    Raises:
        InputError: the file cannot be written.
    """
    with explain_write_errors(Path(path)), open_text_file(path, "w") as file:
        for query, grades in judgments.items():
            for document, grade in grades.items():
                file.write(f"{encode_id(query)} 0 {encode_id(document)} {grade}\n")
