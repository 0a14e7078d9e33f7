"""What a results folder came to, in numbers and in sentences: for the terminal and the report alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from harness.measures import parse, span
from harness.records import Manifest, ResolvedExperiment, Results
from harness.scoring.facts import clusters_of, head_of, identical_pairs
from harness.scoring.grading import people_judged
from harness.scoring.undefined import compare_defined, defined_everywhere, kept_scores
from harness.stats import (
    Comparison,
    Facts,
    Look,
    Range,
    ScoreTable,
    Settings,
    Whole,
    at_look,
    look_at,
    whole,
    whole_sentences,
)
from retrievers.types import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The scores of a results folder as arrays, and what the comparisons came to."""

    settings: Settings
    """With the level of this look, where looks are planned."""
    look: Look | None
    """Which of the planned looks this is; None where none are planned."""
    facts: Facts
    """Ranges of the measures, clusters of the queries, rankings that are the same."""
    primary: str
    ids: tuple[str, ...]
    """The queries that were scored, sorted as text: the order that every statistic was computed in."""
    scores: Mapping[str, ScoreTable]
    """Measure -> retriever -> (n,), NaN where undefined; the primary measure first, which is defined everywhere."""
    comparisons: Mapping[str, tuple[Comparison, ...]]
    """Measure -> its family."""
    whole: Whole
    """On the primary measure."""
    failed: Mapping[str, str]
    """Retriever -> why it failed."""
    waiting: tuple[str, ...] = ()
    """Retrievers that have not answered yet, of a run under way."""

    @property
    def partial(self) -> bool:
        """Whether a retriever of the experiment is missing: it failed, or has not answered yet."""
        return bool(self.failed or self.waiting)

    @property
    def incomplete(self) -> str:
        """What is missing and who leads among the others, as a head line; "" where every retriever finished."""
        if not self.partial:
            return ""
        every = len(self.failed) + len(self.waiting) + len(self.whole.means)
        if self.waiting:
            return (
                f"Unfinished: {every - len(self.waiting)} of {every} retrievers answered so far; "
                f"among those that ran, {self.whole.leader} leads"
            )
        return (
            f"Incomplete: {len(self.failed)} of {every} retrievers failed; "
            f"among those that ran, {self.whole.leader} leads"
        )

    def sentences(self) -> list[str]:
        """What the experiment showed, most important first; nothing is recommended while retrievers are missing."""
        return whole_sentences(self.whole, self.settings, complete=not self.partial)


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
    # Where the primary measure is undefined for someone, nothing could be decided.
    kept = defined_everywhere(scores[primary])
    ids = tuple(query_id for query_id, stays in zip(ids, kept, strict=True) if stays)
    ordered = {
        measure: kept_scores({name: of[name] for name in results.retrievers}, kept)
        for measure, of in scores.items()
        if any(not np.isnan(values).all() for values in of.values())
    }
    labels = {query: labelled.labels for query, labelled in results.queries.items()}
    settings = replace(at_look(settings_of(manifest), len(ids)), by_people=people_judged(labels))
    facts = facts_of_results(results, ids, ordered)
    comparisons = _comparisons(results)
    if comparisons is None:
        declared = manifest.resolved.baseline
        baseline = declared if declared in results.retrievers else None
        rows = compare_defined(ordered, primary=primary, baseline=baseline, settings=settings, facts=facts)
        comparisons = {measure: tuple(row for row in rows if row.measure == measure) for measure in ordered}
    return Outcome(
        settings=settings,
        look=look_at(settings_of(manifest), len(ids)),
        facts=facts,
        primary=primary,
        ids=ids,
        scores=ordered,
        comparisons={measure: comparisons.get(measure, ()) for measure in ordered},
        whole=whole(ordered[primary], comparisons.get(primary, ()), measure=primary, settings=settings, facts=facts),
        failed=manifest.failed,
        waiting=manifest.waiting,
    )


def settings_of(manifest: Manifest) -> Settings:
    """The statistics that a run was made with."""
    return Settings.of(manifest.resolved.statistics, manifest.resolved.seed)


def facts_of_results(results: Results, ids: Sequence[str], scores: Mapping[str, ScoreTable]) -> Facts:
    """Return what the statistics have to know beside the scores of a results folder.

    Args:
        results: the folder.
        ids: the queries that were scored, sorted.
        scores: measure -> retriever -> (n,); the primary measure first.
    """
    grades = results.grades()
    primary = next(iter(scores))
    heads = {}
    for name, values in scores[primary].items():
        # Only rankings with the same scores can be the same: no others are read.
        if any(other != name and np.array_equal(values, same) for other, same in scores[primary].items()):
            answers = {query: ranking.doc_ids for query, ranking in results.answers(name)}
            heads[name] = head_of(answers, ids, parse(primary).cutoff)
    cluster = results.manifest.resolved.statistics.get("cluster")
    return Facts(
        ranges={measure: Range(0.0, span(parse(measure), grades)) for measure in scores},
        clusters=clusters_of([results.queries[query].query for query in ids], cluster),
        identical=identical_pairs(heads),
    )


def primary_of(resolved: ResolvedExperiment) -> str:
    """The primary measure in full; earlier folders leave gain and ideal to [relevance]."""
    return str(parse(resolved.primary, **{key: resolved.relevance[key] for key in ("gain", "ideal")}))


def _comparisons(results: Results) -> dict[str, tuple[Comparison, ...]] | None:
    """Read the rows of comparisons.csv; None where it is older than its newest columns, which verdicts rest on."""
    columns = [field.name for field in fields(Comparison)]
    if not set(columns) <= set(results.comparisons.columns):
        return None
    rows: dict[str, tuple[Comparison, ...]] = {}
    for cells in results.comparisons[columns].to_dict("records"):
        values: dict[str, Any] = {str(key): None if _absent(value) else value for key, value in cells.items()}
        row = Comparison(**values)
        rows[row.measure] = (*rows.get(row.measure, ()), row)
    return rows


def _absent(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
