"""Whether summary.csv says of the scores what follows from them: every mean, interval, deviation and quantile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.dataset import trec
from harness.measures import Measure, span
from harness.measures.table import is_binary, row_of
from harness.records.manifest import Manifest
from harness.records.rows import LabelledQuery
from harness.stats.differences import Range, Units, singles, units_of
from harness.stats.intervals import summarize
from harness.stats.looks import at_look
from harness.stats.settings import Settings
from retrievers.types import Floats

if TYPE_CHECKING:
    import pandas as pd

ROUNDED = 1e-4
"""What a number may be off from what the scores give, as `harness reproduce` allows it."""


class Described:
    """Describes the scores of a results folder again, as the run did that wrote it."""

    def __init__(self, folder: Path, manifest: Manifest, queries: Mapping[str, LabelledQuery], scored: int) -> None:
        """Take the folder, what was read of it, and how many queries were scored."""
        self._folder = folder
        self._queries = queries
        statistics = manifest.resolved.statistics
        self._cluster = statistics.get("cluster")
        self._level = at_look(Settings.of(statistics, manifest.resolved.seed), scored).level

    def faults(self, measures: Mapping[str, Measure], scores: pd.DataFrame, summary: pd.DataFrame) -> Iterator[str]:
        """Say which cells of the summary are not what the scores give.

        Rows without scores, and scores without a row, are told where rows are counted.
        """
        groups = dict(iter(scores[scores["value"].notna()].groupby(["measure", "retriever"])))
        rows = {(row["measure"], row["retriever"]): row for row in summary.to_dict("records")}
        ranges = {name: Range(0.0, self._span(measure)) for name, measure in measures.items()}
        for (name, retriever), row in rows.items():
            group = groups.get((name, retriever))
            if group is None or name not in measures:
                continue
            values: Floats = group["value"].to_numpy(dtype=np.float64)
            low, high = ranges[name]
            if values.min() < low - ROUNDED or values.max() > high + ROUNDED * max(1.0, high):
                yield f"describes scores of {name} for {retriever} that the measure cannot have"
                continue
            units = self._units(group["query_id"])
            own = summarize(values, self._level, binary=is_binary(measures[name]), bounds=ranges[name], units=units)
            for column, value in asdict(own).items():
                if not _holds(row[column], value):
                    yield f"has another {column} of {name} for {retriever} than the scores in scores.csv"

    def _units(self, ids: pd.Series[Any]) -> Units:
        if self._cluster is None:
            return singles(len(ids))
        given = (self._queries.get(id_) for id_ in ids)
        return units_of([one.query.fields.get(self._cluster, "") if one else "" for one in given])

    def _span(self, measure: Measure) -> float:
        return 1.0 if row_of(measure).bounded else span(measure, self._grades)

    @cached_property
    def _grades(self) -> Mapping[str, Mapping[str, int]]:
        return grades_in(self._folder)


def grades_in(folder: Path) -> dict[str, dict[str, int]]:
    """The labels after the grade rule, as qrels.trec has them; empty where claims alone were scored.

    Raises:
        InputError: it is missing, or cannot be read.
    """
    path = folder / "qrels.trec"
    return {} if path.is_file() and not path.stat().st_size else dict(trec.read_qrels(path))


def _holds(cell: Any, value: float | str | None) -> bool:
    """Whether a cell holds a value, and an empty one none."""
    if value is None:
        return bool(cell != cell)  # NaN
    if isinstance(cell, str) or isinstance(value, str):
        return bool(cell == value)
    return bool(abs(cell - value) <= ROUNDED * max(1.0, abs(value)))
