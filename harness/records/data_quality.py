"""Counts of problems in the data, by kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.records.run import Run
from harness.records.table_schema import COST_COLUMNS


def quality_of_run(run: Run) -> RetrieverQuality:
    """Return a run's notes, and its counts without those that costs.csv has."""
    counts: dict[str, dict[str, int | float]] = {}
    for stage, totals in run.stages.items():
        other_counts = {
            name: number
            for name, number in totals.counts.items()
            if name not in COST_COLUMNS
        }
        if other_counts:
            counts[stage] = other_counts
    return RetrieverQuality(notes=dict(run.notes), counts=counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverQuality:
    """The notes and counts from the work of one retriever."""

    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind -> ids of documents or queries."""
    counts: Mapping[str, Mapping[str, int | float]] = field(default_factory=dict)
    """Stage -> count -> number, of the counts that have no column in costs.csv."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataQuality:
    """The quality of the data of a run, called `ledger` in manifest.json."""

    dataset: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind -> ids, from reading the data set."""
    retrievers: Mapping[str, RetrieverQuality] = field(default_factory=dict)
    """Retriever -> its notes and counts, without those of the retrievers it uses."""
