r"""TREC runs or qrels in files.

A run line is `query Q0 document rank score tag`, one of qrels `query iteration document grade`. Lines end at \n
alone, fields at ASCII white space, as trec_eval cuts them. Ids that hold white space or a percent sign are
percent-encoded, so that they stay one field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic_core import to_json

from retrievers.files.text_files import explain_write_errors, open_text_file
from retrievers.files.trec_columns import QRELS_FORM, RUN_FORM, LineForm, encode_id
from retrievers.files.trec_lines import LineProblems, LineReader, group_by_query
from retrievers.ranking import Floats, Ranking

MAX_FLOAT32 = float(np.finfo(np.float32).max)


RunScores = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]


def read_run(path: str | Path, lines: LineReader | None = None) -> RunScores:
    """Read a run, plain or gzip: query id -> document id -> score. The rank column is ignored, as by trec_eval.

    Args:
        path: the file.
        lines: what reads its lines, where they are not those of TREC files.

    Raises:
        InputError: malformed lines, scores that are no number, or a document ranked twice for a query, each
            with its line; or the file cannot be read or holds nothing.
    """
    return _by_query(path, RUN_FORM, lines)


def read_qrels(path: str | Path) -> Qrels:
    """Read judgments, plain or gzip: query id -> document id -> grade, in the file's order.

    Raises:
        InputError: malformed lines, grades that are no whole number, or a document judged twice for a
            query, each with its line; or the file cannot be read or holds nothing.
    """
    return _by_query(path, QRELS_FORM)


def _by_query(
    path: str | Path, form: LineForm, lines: LineReader | None = None
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    problems = LineProblems(path)
    for some in group_by_query(path, form, problems, lines):
        known = found.setdefault(some.query, {})
        some.report_duplicates(known, problems, form.verb)
        known.update(zip(some.documents, some.values.tolist(), strict=True))
    problems.raise_problems(is_empty=not found)
    return found


def stream_run(
    path: str | Path, lines: LineReader | None = None
) -> Iterator[tuple[str, tuple[str, ...], Floats]]:
    """Read a run query by query, as far as its lines are grouped: query id, documents and their scores.

    Only one query's hits are in memory at a time. A query whose lines are not grouped comes again. Arguments and
    errors, after the last query, as of `read_run`.
    """
    problems = LineProblems(path)
    some = None
    for some in group_by_query(path, RUN_FORM, problems, lines):
        some.report_duplicates((), problems, RUN_FORM.verb)
        yield some.query, some.documents, some.values
    problems.raise_problems(is_empty=some is None)


def write_trec_run(
    path: str | Path, run: Iterable[tuple[str, Ranking]], *, tag: str
) -> None:
    """Write the lines of rankings, pairs of query id and ranking."""
    with explain_write_errors(Path(path)), open_text_file(path, "w") as file:
        for query, ranking in run:
            file.write(
                run_lines(query, ranking, format_scores(ranking.scores), tag=tag)
            )


def run_lines(query: str, ranking: Ranking, scores: list[str], *, tag: str) -> str:
    """Return the lines of a ranking, best first: `query Q0 document rank score tag`.

    Scores fall strictly, also as 32-bit floats, so that every reader finds this order again: a score that
    does not fall is lowered to the next 32-bit float below its predecessor.

    Args:
        query: its id.
        ranking: its answer.
        scores: those of the ranking as they are written where they fall.
        tag: the name of the run, without white space.
    """
    if not scores:
        return ""
    lowered = strictly_falling(ranking.scores)
    begin, end = f"{encode_id(query)} Q0 ", f" {tag}\n"
    parts = [end + begin] * (
        4 * len(scores)
    )  # no step of Python for each of millions of lines
    text = "".join(ranking.doc_ids)
    plain = (
        text.isascii() and text.isprintable() and " " not in text and "%" not in text
    )
    ids = ranking.doc_ids if plain else map(encode_id, ranking.doc_ids)
    parts[0], parts[1::4], parts[2::4] = begin, ids, _ranks(len(scores))
    parts[3::4] = scores if lowered is None else map(repr, lowered)
    return "".join(parts) + end


def format_scores(scores: Floats) -> list[str]:
    """Return what `repr` gives of each score, best first.

    >>> format_scores(np.array([0.5, 1e-07]))
    ['0.5', '1e-07']
    """
    numbers: list[float] = scores.tolist()
    if (
        numbers and numbers[0] < 1e16 and numbers[-1] >= 1e-4
    ):  # no exponents: the same, in a third of the time
        return to_json(numbers).decode()[1:-1].split(",")
    return list(map(repr, numbers))


@lru_cache
def _ranks(count: int) -> list[str]:
    return [f" {rank} " for rank in range(1, count + 1)]


def strictly_falling(scores: Floats) -> list[float] | None:
    """Return scores that fall strictly, as doubles and as 32-bit floats; None where they do.

    >>> strictly_falling(np.array([0.5, 0.5]))
    [0.5, 0.4999999701976776]
    """
    near = (
        np.clip(scores, -MAX_FLOAT32, MAX_FLOAT32)
        if max(scores[0], -scores[-1]) > MAX_FLOAT32
        else scores
    )
    singles = near.astype(np.float32)
    if near is scores and (singles[1:] < singles[:-1]).all():
        return None
    written: list[float] = near.tolist()
    for i in range(1, len(singles)):
        if singles[i] >= singles[i - 1]:
            singles[i] = np.nextafter(singles[i - 1], np.float32(-np.inf))
            written[i] = float(singles[i])
    return written


def write_trec_qrels(
    path: str | Path, judgments: Mapping[str, Mapping[str, int]]
) -> None:
    """Write judgments (or gains) as `query 0 document grade`."""
    with explain_write_errors(Path(path)), open_text_file(path, "w") as file:
        for query, judged in judgments.items():
            file.writelines(
                f"{encode_id(query)} 0 {encode_id(document)} {grade}\n"
                for document, grade in judged.items()
            )
