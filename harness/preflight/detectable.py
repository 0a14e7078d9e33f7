"""The difference that a data set's queries detect.

Nothing is known of the scores before a run: their scatter is assumed.
"""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from harness.dataset import Dataset
from harness.experiment import LoadedExperiment
from harness.measures import value_span
from harness.measures.score import Grades
from harness.scoring.query_units import query_clusters
from harness.stats.settings import CorrectionMethod, TestName
from retrievers.types import Query

ASSUMED_DEVIATION = 0.2
"""The standard deviation that differences over queries are assumed to have.

It is a share of the measure's range.
"""


class DetectableDifference(NamedTuple):
    """How much the planned comparisons can show.

    >>> round(DetectableDifference(25).difference(), 2)
    0.12
    >>> DetectableDifference(5, comparisons=3).units_needed()
    7
    """

    units: int
    """How many queries there are, or clusters of them."""
    clusters: bool = False
    """Whether the units are clusters."""
    comparisons: int = 1
    """How many differences are tested for the primary measure."""
    alpha: float = 0.05
    range_of: float = 1.0
    """How far apart two values of the primary measure can be."""
    test: TestName = "randomization"
    correction: CorrectionMethod = "holm"

    def smallest_p(self, units: int | None = None) -> float:
        """The smallest corrected p that so many units can give.

        A t-test has no bound from two units on: 0. "bh" corrects nothing where all
        comparisons have the smallest p.
        """
        if units is None:
            units = self.units
        if self.test == "t" and units > 1:
            return 0.0
        factor = 1 if self.correction == "bh" else self.comparisons
        return min(1.0, factor * 2.0 ** (1 - units))

    def units_needed(self) -> int:
        """The fewest units with which a corrected p can reach alpha."""
        return next(
            units
            for units in count(1)  # it ends: 2^-1074 is the last p above 0
            if self.smallest_p(units) <= self.alpha
        )

    def difference(self) -> float:
        """The true difference found with 80 % power, if the assumptions hold.

        It takes two units or more, and is at alpha divided by the comparisons, whatever
        the correction: that errs on the safe side.
        """
        from harness.stats.power import detectable_effect

        effect = detectable_effect(self.units, self.alpha / self.comparisons)
        return ASSUMED_DEVIATION * self.range_of * effect


def detectable_difference(
    loaded: LoadedExperiment, dataset: Dataset, judgments: Grades
) -> DetectableDifference:
    """Return what the comparisons of an experiment can show.

    Args:
        loaded: the experiment.
        dataset: its data.
        judgments: its graded labels: they decide the range of a measure without a
            bound.
    """
    statistics = loaded.experiment.statistics
    primary = loaded.question.primary
    queries = dataset.queries if primary.uses_claims else scorable_queries(dataset)
    clusters = query_clusters(queries, statistics.cluster)
    return DetectableDifference(
        units=len(queries) if clusters is None else _count_clusters(clusters),
        clusters=clusters is not None,
        comparisons=_count_comparisons(loaded),
        alpha=statistics.alpha,
        test=statistics.test,
        correction=statistics.correction,
        range_of=value_span(primary, judgments) if judgments else 1.0,
    )


def scorable_queries(dataset: Dataset) -> tuple[Query, ...]:
    """Return the queries with a relevant document; if none has one, all of them."""
    scorable = [
        query
        for query in dataset.queries
        if query.id in dataset.labels and dataset.labels[query.id].relevant
    ]
    return tuple(scorable) or dataset.queries


def _count_clusters(clusters: Sequence[str]) -> int:
    """The number of clusters; a query without one is a cluster of its own."""
    return len(set(clusters) - {""}) + clusters.count("")


def _count_comparisons(loaded: LoadedExperiment) -> int:
    retrievers = len(loaded.experiment.retrievers)
    if loaded.experiment.baseline:
        return max(1, retrievers - 1)
    return max(1, retrievers * (retrievers - 1) // 2)
