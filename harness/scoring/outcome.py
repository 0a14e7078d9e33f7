"""What a results folder came to, in numbers and in sentences: for the terminal and the report alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from harness.measures import parse
from harness.records import Manifest, ResolvedExperiment, Results
from harness.scoring.grading import people_judged
from harness.stats import Comparison, Settings, Whole, whole, whole_sentences
from retrievers.types import Floats

Scores = Mapping[str, Floats]
"""Retriever -> (n,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The scores of a results folder as arrays, and what the comparisons came to."""

    settings: Settings
    primary: str
    ids: tuple[str, ...]
    """The queries that were scored, sorted as text: the order that every statistic was computed in."""
    scores: Mapping[str, Scores]
    """Measure -> retriever -> (n,); the primary measure first."""
    comparisons: Mapping[str, tuple[Comparison, ...]]
    """Measure -> its family."""
    whole: Whole
    """On the primary measure."""
    failed: Mapping[str, str]
    """Retriever -> why it failed."""

    @property
    def incomplete(self) -> str:
        """What is missing and who leads among the others, as a head line; "" where every retriever finished."""
        if not self.failed:
            return ""
        every = len(self.failed) + len(self.whole.means)
        return (
            f"Incomplete: {len(self.failed)} of {every} retrievers failed; "
            f"among those that ran, {self.whole.leader} leads"
        )

    def sentences(self) -> list[str]:
        """What the experiment showed, most important first; nothing is recommended while retrievers are missing."""
        return whole_sentences(self.whole, self.settings, complete=not self.failed)


def outcome_of(results: Results) -> Outcome:
    """Put the scores of a results folder in order, and sort the retrievers into the three sets."""
    manifest, table = results.manifest, results.scores
    primary = primary_of(manifest.resolved)
    ids = tuple(sorted(table["query_id"].unique()))
    place = {query_id: i for i, query_id in enumerate(ids)}
    scores: dict[str, dict[str, Floats]] = {primary: {}}  # it comes first
    for (measure, retriever), group in table.groupby(["measure", "retriever"], sort=False):
        values = np.zeros(len(ids))
        values[group["query_id"].map(place).to_numpy()] = group["value"].to_numpy(dtype=np.float64)
        scores.setdefault(str(measure), {})[str(retriever)] = values
    ordered = {measure: {name: of[name] for name in results.retrievers} for measure, of in scores.items()}
    comparisons = _comparisons(results)
    labels = {query: labelled.labels for query, labelled in results.queries.items()}
    settings = replace(settings_of(manifest), by_people=people_judged(labels))
    return Outcome(
        settings=settings,
        primary=primary,
        ids=ids,
        scores=ordered,
        comparisons={measure: comparisons.get(measure, ()) for measure in scores},
        whole=whole(scores[primary], comparisons.get(primary, ()), measure=primary, settings=settings),
        failed=manifest.failed,
    )


def settings_of(manifest: Manifest) -> Settings:
    """The statistics that a run was made with."""
    return Settings(**manifest.resolved.statistics, seed=manifest.resolved.seed)


def primary_of(resolved: ResolvedExperiment) -> str:
    """The primary measure in full; earlier folders leave gain and ideal to [relevance]."""
    return str(parse(resolved.primary, **{key: resolved.relevance[key] for key in ("gain", "ideal")}))


def _comparisons(results: Results) -> dict[str, tuple[Comparison, ...]]:
    columns = [field.name for field in fields(Comparison)]
    rows: dict[str, tuple[Comparison, ...]] = {}
    for cells in results.comparisons[columns].to_dict("records"):
        values: dict[str, Any] = {str(key): None if _absent(value) else value for key, value in cells.items()}
        row = Comparison(**values)
        rows[row.measure] = (*rows.get(row.measure, ()), row)
    return rows


def _absent(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
