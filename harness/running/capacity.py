"""What so many queries can show in the planned comparison, before anything is run."""

from typing import Any, NamedTuple

from harness.dataset import Dataset
from harness.english import counted
from harness.evaluation.question_units import clusters_of
from harness.experiment import Loaded
from harness.measures import span
from harness.measures.compute import Judgments
from retrievers.types import Query

SCATTER = 0.2
"""The standard deviation of the differences over the queries that is assumed, as a share of the measure's range."""


class Capacity(NamedTuple):
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

        >>> Capacity(25).sentence()
        'enough queries? 25 queries reliably detect a difference of about 0.12'
        >>> Capacity(138, comparisons=3).sentence()
        'enough queries? 138 queries and 3 pairs reliably detect a difference of about 0.056'
        >>> Capacity(5, comparisons=3).sentence()
        'enough queries? No: 5 queries and 3 comparisons give no corrected p below 0.19; at least 7 are needed'
        """
        kind = "different question" if self.clusters else "query"
        smallest = min(1.0, self.comparisons * 2.0 ** (1 - self.units))
        if smallest > self.alpha:
            needed = next(n for n in range(1, 100) if self.comparisons * 2.0 ** (1 - n) <= self.alpha)
            asked = f"{counted(self.units, kind)} and {counted(self.comparisons, 'comparison')}"
            what = f"No: {asked} give no corrected p below {smallest:.2g}"
            return f"enough queries? {what}; at least {needed} are needed"
        pairs = f" and {counted(self.comparisons, 'pair')}" if self.comparisons > 1 else ""
        difference = f"{self.difference():.2g}"
        return f"enough queries? {counted(self.units, kind)}{pairs} reliably detect a difference of about {difference}"

    def difference(self) -> float:
        """Return the true difference that is found with 80 % power if the differences scatter as assumed."""
        from harness.stats.power import detectable_effect

        return SCATTER * self.range_of * detectable_effect(self.units, self.alpha / self.comparisons)

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        return {**self._asdict(), "difference": self.difference() if self.units > 1 else None}


def measured(dataset: Dataset) -> tuple[Query, ...]:
    """The queries of which a score can be made: those with a relevant document; all where nobody judged yet."""
    found = (query for query in dataset.queries if (given := dataset.labels.get(query.id)) and given.relevant)
    return tuple(found) or dataset.queries


def planned(loaded: Loaded, dataset: Dataset, judgments: Judgments) -> Capacity:
    """Return what an experiment means to compare.

    Args:
        loaded: the experiment.
        dataset: its data.
        judgments: its labels after the grade rule: they decide the range of a measure that has no bound.
    """
    experiment, statistics = loaded.experiment, loaded.experiment.statistics
    names = len(experiment.retrievers)
    queries = dataset.queries if loaded.question.primary.claimed else measured(dataset)
    together = clusters_of(queries, statistics.cluster)
    return Capacity(
        units=len(queries) if together is None else len({*together} - {""}) + together.count(""),
        clusters=together is not None,
        comparisons=max(names - 1 if experiment.baseline else names * (names - 1) // 2, 1),
        alpha=statistics.alpha,
        range_of=span(loaded.question.primary, judgments) if judgments else 1.0,
    )
