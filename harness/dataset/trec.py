r"""TREC qrels, read and written here and nowhere else; runs are those of `retrievers.runs`.

A qrels line is `query iteration document grade`, cut and encoded as the lines of runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from harness.dataset.rows import NUMBERS_OF_FIELDS, kind_of
from retrievers.errors import InputError, Problem
from retrievers.opening import masking, writing
from retrievers.runs import (
    SHOWN,
    LineProblems,
    RunScores,
    blocks_of,
    columns_of,
    decode,
    encode,
    falling,
    fields_of,
    id_of,
    read_run,
    shown,
    stream_run,
    write_run,
)

__all__ = [
    "SHOWN",
    "Qrels",
    "RunScores",
    "decode",
    "encode",
    "falling",
    "read_qrels",
    "read_run",
    "stream_run",
    "write_qrels",
    "write_run",
]

Qrels = dict[str, dict[str, int]]


def read_qrels(path: str | Path) -> Qrels:
    """Read judgments, plain or gzip: query id -> document id -> grade, in the file's order.

    Raises:
        InputError: malformed lines, grades that are no whole number, or a document judged twice for a
            query, each with its line; or the file cannot be read or holds nothing.
    """
    judgments: Qrels = {}
    problems = LineProblems(path)
    for first, block in blocks_of(path):
        columns = columns_of(block, 4)
        grades = None if columns is None else _grades(columns[3])
        if first == 1 and (columns is None or grades is None):
            _refuse_other_kinds(path, block)
        if columns is None or grades is None:
            rows = _rows_one_by_one(first, block, problems)
        else:
            rows = zip(count(first), columns[0], columns[2], grades)
        for number, query, document, grade in rows:
            judged = judgments.get(query)
            if judged is None:
                judged = judgments[query] = {}
            if document in judged:
                problems.add(number, f"document {document!r} is judged twice for query {query!r}")
            judged[document] = grade
    problems.refuse(nothing=not judgments)
    return judgments


def _refuse_other_kinds(path: str | Path, block: bytes) -> None:
    """Raise InputError where the first line is that of a file of another kind: each of its lines would be wrong."""
    line = block.lstrip().partition(b"\n")[0]
    fields = line.split()  # bytes: only what separates fields in TREC files
    kind = kind_of(line.decode("utf-8", "replace"))
    if kind == "JSON" and len(fields) == 4 and _grades([fields[3].decode("utf-8", "replace")]) is not None:
        return  # a query's id may begin with a brace
    if kind == "JSON" or (kind and len(fields) not in NUMBERS_OF_FIELDS):  # an id may hold a comma
        remedy = "expected four fields a line: query iteration document grade"
        raise InputError(Problem(str(path), f"holds no TREC judgments: it looks like {kind}", remedy))


def _rows_one_by_one(first: int, block: bytes, problems: LineProblems) -> Iterator[tuple[int, str, str, int]]:
    for number, fields in fields_of(first, block):
        if len(fields) != 4:
            problems.add(number, f"{len(fields)} fields instead of 4", "query iteration document grade")
            continue
        try:
            grade = int(fields[3])
            if abs(grade) >= 2**31 or b"_" in fields[3]:
                raise ValueError
        except ValueError:
            problems.add(number, f"{shown(fields[3])} is no grade", "a grade is a whole number below 2^31")
            continue
        try:
            yield number, id_of(fields[0]), id_of(fields[2]), grade
        except UnicodeDecodeError:
            problems.add(number, "an id is not UTF-8")


def _grades(fields: list[str]) -> list[int] | None:
    """The fields as whole numbers below 2^31; None where one is none."""
    try:
        grades = list(map(int, fields))
    except ValueError:
        return None
    return grades if max(map(abs, grades)) < 2**31 and "_" not in "".join(fields) else None


def write_qrels(path: str | Path, judgments: Mapping[str, Mapping[str, int]]) -> None:
    """Write judgments (or gains) as `query 0 document grade`."""
    with writing(Path(path)), masking(path, "w") as file:
        for query, judged in judgments.items():
            file.writelines(f"{encode(query)} 0 {encode(document)} {grade}\n" for document, grade in judged.items())
