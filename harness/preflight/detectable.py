"""Differences that queries detect."""

from typing import Any, NamedTuple

from harness.dataset import Dataset
from harness.english import count_of
from harness.experiment import LoadedExperiment
from harness.measures import value_span
from harness.measures.score import Grades
from harness.scoring.query_units import query_clusters
from retrievers.types import Query

ASSUMED_DEVIATION = 0.2
"""The standard deviation of the differences over the queries that is assumed, as a share of the measure's range."""


class DetectableDifference(NamedTuple):
    """What is to be compared, and over how many queries."""

    units: int
    """Queries, or clusters of them."""
    clusters: bool = False
    comparisons: int = 1
    """Differences that are tested for the primary measure."""
    alpha: float = 0.05
    range_of: float = 1.0
    """Of the primary measure."""

    def sentence(self) -> str:
        """Say what so many queries can show.

        >>> DetectableDifference(25).sentence()
        'enough queries? 25 queries reliably detect a difference of about 0.12'
        >>> DetectableDifference(138, comparisons=3).sentence()
        'enough queries? 138 queries and 3 pairs reliably detect a difference of about 0.056'
        >>> DetectableDifference(5, comparisons=3).sentence()
        'enough queries? No: 5 queries and 3 comparisons give no corrected p below 0.19; at least 7 are needed'
        """
        kind = "cluster" if self.clusters else "query"
        smallest = min(1.0, self.comparisons * 2.0 ** (1 - self.units))
        if smallest > self.alpha:
            needed = next(
                n
                for n in range(1, 100)
                if self.comparisons * 2.0 ** (1 - n) <= self.alpha
            )
            asked = f"{count_of(self.units, kind)} and {count_of(self.comparisons, 'comparison')}"
            what = f"No: {asked} give no corrected p below {smallest:.2g}"
            return f"enough queries? {what}; at least {needed} are needed"
        pairs = (
            f" and {count_of(self.comparisons, 'pair')}" if self.comparisons > 1 else ""
        )
        difference = f"{self.difference():.2g}"
        return f"enough queries? {count_of(self.units, kind)}{pairs} reliably detect a difference of about {difference}"

    def difference(self) -> float:
        """Return the true difference that is found with 80 % power if the differences scatter as assumed."""
        from harness.stats.power import detectable_effect

        return (
            ASSUMED_DEVIATION
            * self.range_of
            * detectable_effect(self.units, self.alpha / self.comparisons)
        )

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        return {
            **self._asdict(),
            "difference": self.difference() if self.units > 1 else None,
        }


def scorable_queries(dataset: Dataset) -> tuple[Query, ...]:
    """The queries that can be scored: those with a relevant document; all if there are no labels yet."""
    found = (
        query
        for query in dataset.queries
        if (given := dataset.labels.get(query.id)) and given.relevant
    )
    return tuple(found) or dataset.queries


def detectable_difference(
    loaded: LoadedExperiment, dataset: Dataset, judgments: Grades
) -> DetectableDifference:
    """Return what an experiment means to compare.

    Args:
        loaded: the experiment.
        dataset: its data.
        judgments: its labels after the grade rule: they decide the range of a measure that has no bound.
    """
    experiment, statistics = loaded.experiment, loaded.experiment.statistics
    names = len(experiment.retrievers)
    queries = (
        dataset.queries
        if loaded.question.primary.uses_claims
        else scorable_queries(dataset)
    )
    together = query_clusters(queries, statistics.cluster)
    return DetectableDifference(
        units=len(queries)
        if together is None
        else len({*together} - {""}) + together.count(""),
        clusters=together is not None,
        comparisons=max(
            names - 1 if experiment.baseline else names * (names - 1) // 2, 1
        ),
        alpha=statistics.alpha,
        range_of=value_span(loaded.question.primary, judgments) if judgments else 1.0,
    )
