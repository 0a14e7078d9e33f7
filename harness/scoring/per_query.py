"""Scores of queries, whoever computed them: from a file, or from answers; undefined values are told apart from 0."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.dataset.rows import File, Row, read_rows
from retrievers.errors import InputError, Problem
from retrievers.types import Floats

COLUMNS = ("retriever", "query_id", "measure", "value")
SHOWN = 20
UNDEFINED = frozenset({"", "nan", "null", "none", "na", "n/a"})
"""How tools write that a value is undefined, in lower case."""


@dataclass(frozen=True, slots=True, eq=False)
class PerQuery:
    """Values by measure, retriever and query."""

    ids: tuple[str, ...]
    """The queries, sorted as text."""
    values: Mapping[str, Mapping[str, Floats]]
    """Measure -> retriever -> (n,); NaN where the measure is undefined, or nobody gave a value."""

    @property
    def retrievers(self) -> tuple[str, ...]:
        """Everyone who has a value on any measure."""
        return tuple(dict.fromkeys(name for of in self.values.values() for name in of))

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of scores.csv; None where a value is undefined."""
        for name in self.retrievers:
            for measure, of in self.values.items():
                for query, value in zip(self.ids, of[name].tolist() if name in of else (), strict=name in of):
                    cells = (name, query, measure, None if math.isnan(value) else value)
                    yield dict(zip(COLUMNS, cells, strict=True))

    def undefined(self) -> dict[str, dict[str, int]]:
        """Measure -> retriever -> how many queries have no value there, where there are any."""
        counted = {m: {r: int(np.isnan(v).sum()) for r, v in of.items()} for m, of in self.values.items()}
        return {m: {r: n for r, n in of.items() if n} for m, of in counted.items() if any(of.values())}


def per_query(rows: Iterable[tuple[str, str, str, float]]) -> PerQuery:
    """Put rows of (retriever, query id, measure, value) in order; what is not there is undefined."""
    known = {(measure, retriever, query): value for retriever, query, measure, value in rows}
    ids = tuple(sorted({query for _, _, query in known}))
    place = {query: i for i, query in enumerate(ids)}
    values: dict[str, dict[str, Floats]] = {}
    for (measure, retriever, query), value in known.items():
        of = values.setdefault(measure, {})
        if retriever not in of:
            of[retriever] = np.full(len(ids), np.nan)
        of[retriever][place[query]] = value
    return PerQuery(ids, values)


def read_scores(path: Path) -> PerQuery:
    """Read a CSV file of per-query scores: columns retriever, query_id, measure, value; further columns are left aside.

    An empty value, NaN or null is undefined.

    Raises:
        InputError: with every line that cannot be read, a score that stands twice, or a column that is missing.
    """
    problems: list[Problem] = []
    rows: dict[tuple[str, str, str], float] = {}
    for number, row in _lines(path):
        where = f"{path}:{number}"
        retriever, query, measure, written = (row.get(name) for name in COLUMNS)
        if not retriever or not query or not measure or written is None:
            problems.append(Problem(where, "lacks a retriever, a query_id, a measure or a value", "one score a line"))
            continue
        value = _number(written)
        if value is None:
            problems.append(Problem(where, f"{written!r} is no score", "a finite number; empty where undefined"))
        elif (retriever, query, measure) in rows:
            problems.append(Problem(where, f"{retriever} has two scores of {measure} for query {query!r}", "keep one"))
        else:
            rows[retriever, query, measure] = value
    if len(problems) > SHOWN:
        problems = [*problems[:SHOWN], Problem(str(path), f"and {len(problems) - SHOWN} more lines like these")]
    if problems:
        raise InputError(problems)
    if not rows:
        raise InputError(Problem(str(path), "holds no score", f"a header, {','.join(COLUMNS)}, then one score a line"))
    return per_query((*key, value) for key, value in rows.items())


def selected(scores: PerQuery, measures: Sequence[str], queries: Sequence[str] | None = None) -> PerQuery:
    """Keep some measures, in the order in which they are named, and some queries; all of them where none is named.

    Raises:
        InputError: a measure or a query is not there.
    """
    from retrievers.errors import did_you_mean

    problems = [
        Problem(f"measure {name!r}", "has no score in the file", did_you_mean(name, scores.values))
        for name in measures
        if name not in scores.values
    ]
    problems += [
        Problem(f"query {query!r}", "has no score in the file", did_you_mean(query, scores.ids))
        for query in queries or ()
        if query not in scores.ids
    ]
    if problems:
        raise InputError(problems)
    kept = [i for i, query in enumerate(scores.ids) if queries is None or query in queries]
    values = {m: {r: v[kept] for r, v in scores.values[m].items()} for m in measures or scores.values}
    return PerQuery(tuple(scores.ids[i] for i in kept), values)


def _lines(path: Path) -> Iterator[tuple[int, Row]]:
    problems: list[Problem] = []
    for place, row in read_rows(File(path), problems):
        if missing := [name for name in COLUMNS if name not in row]:
            remedy = f"a header, {','.join(COLUMNS)}; there is {', '.join(row)}"
            raise InputError(Problem(f"{path}:1", f"has no column {', '.join(missing)}", remedy))
        yield place.line or 0, row
    if problems:
        raise InputError(problems)


def _number(written: str) -> float | None:
    """A score; NaN where it is undefined, None where it is no number.

    >>> _number("0.5"), _number("inf"), _number("")
    (0.5, None, nan)
    """
    text = written.strip()
    if text.lower() in UNDEFINED:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
