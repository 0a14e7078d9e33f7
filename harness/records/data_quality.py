"""Counts of what was noted of data, by kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.records.costs_csv import COST_COLUMNS
from harness.records.run import Run


def quality_of_run(run: Run) -> RetrieverQuality:
    """Return what the manifest keeps of a run's integrity."""
    counts = {
        stage: {
            name: number
            for name, number in totals.counts.items()
            if name not in COST_COLUMNS
        }
        for stage, totals in run.stages.items()
    }
    return RetrieverQuality(
        notes=dict(run.notes),
        counts={stage: own for stage, own in counts.items() if own},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverQuality:
    """What was noted and counted while one retriever worked."""

    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind -> ids of documents or queries."""
    counts: Mapping[str, Mapping[str, int | float]] = field(default_factory=dict)
    """Stage -> count -> number, for what costs.csv has no column for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataQuality:
    """The integrity ledger."""

    dataset: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind -> ids, as the data set was read."""
    retrievers: Mapping[str, RetrieverQuality] = field(default_factory=dict)
    """Retriever -> its own ledger, without those of the retrievers that it uses."""
