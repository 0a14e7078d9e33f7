"""Capacity of a data set for the planned comparison: the plan of the verdicts, before anything is run or after it.

Before a run nobody knows by how much differences scatter over the queries, so the answer is a condition: up to which
scatter a difference worth finding is found. Where an earlier run of the same data lies, its differences answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.dataset import Dataset
from harness.english import counted
from harness.evaluation.question_units import clusters_of
from harness.experiment import Loaded
from harness.measures import span
from harness.measures.compute import Judgments
from harness.stats.settings import EXAMPLE
from retrievers.errors import HarnessError
from retrievers.types import Query

if TYPE_CHECKING:
    from harness.evaluation.evaluation import PlannedPair

ASSUMED = (0.1, 0.2, 0.3)
"""Standard deviations of differences for which the queries needed are told where none was observed."""


class Capacity(NamedTuple):
    """What is to be compared, and what is worth finding."""

    units: int
    """Queries, or clusters of them."""
    clusters: bool = False
    comparisons: int = 1
    """Differences that are tested for the primary measure."""
    alpha: float = 0.05
    difference: float = EXAMPLE
    """True difference of the means that must not be missed, in points of the primary measure."""
    origin: str = "a twentieth of the range of most measures"
    """Where that difference is from."""
    earlier: tuple[PlannedPair, ...] = ()
    """What the pairs of an earlier run would need."""
    folder: str = ""
    """Where that run lies."""

    def lines(self) -> Iterator[str]:
        """Say what so many queries can show.

        >>> list(Capacity(5, comparisons=3).lines())[0]
        'can it carry the comparison? No: 5 queries and 3 comparisons give no corrected p below 0.19; at least 7 are needed'
        """  # noqa: E501
        smallest = min(1.0, self.comparisons * 2.0 ** (1 - self.units))
        asked = f"{self._counted(self.units)} and {counted(self.comparisons, 'comparison')}"
        if smallest > self.alpha:
            needed = next(n for n in range(1, 100) if self.comparisons * 2.0 ** (1 - n) <= self.alpha)
            what = f"No: {asked} give no corrected p below {smallest:.2g}"
            yield f"can it carry the comparison? {what}; at least {needed} are needed"
            return
        wanted = f"a true difference of {self.difference:.3g} ({self.origin})"
        if self.earlier:
            yield f"can it carry the comparison? {self._known()}: {wanted}, by the differences in {self.folder}:"
            yield from (f"  {pair.sentence}" for pair in self.earlier)
            return
        scatter = f"the differences over the {self._unit} have a standard deviation of {self.scatter():.2g} or less"
        start = f"can it carry the comparison? It depends: with {asked} at {self.alpha:g}, {wanted}"
        yield f"{start} is found with 80 % power where {scatter}"
        from harness.stats.power import MOST

        needs = (f"{self.needed(scatter) or MOST:,} where it is {scatter:g}" for scatter in ASSUMED)
        yield f"  {self._unit} needed: {', '.join(needs)}; a run tells which, and `harness plan RESULTS` then plans"

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        table = {**self._asdict(), "earlier": [pair.as_json() for pair in self.earlier]}
        return table if self.earlier else {**table, "scatter": self.scatter()}

    def scatter(self) -> float:
        """Return the largest standard deviation of the differences with which the difference is found; 0 for one query.

        >>> round(Capacity(199, difference=0.2).scatter(), 2), Capacity(199, difference=0.2).needed(1.0)
        (1.0, 199)
        """
        from harness.stats.power import detectable_effect

        if self.units < 2:
            return 0.0
        return self.difference / detectable_effect(self.units, self.alpha / self.comparisons)

    def needed(self, scatter: float) -> int | None:
        """Return the queries needed at a standard deviation of the differences; None: more than 1,000,000."""
        from harness.stats.power import queries_for

        return queries_for(self.difference / scatter, self.alpha / self.comparisons)

    def _known(self) -> str:
        """The answer that an earlier run gives: for every pair, for none, or it differs by pair."""
        plans = [pair.needed for pair in self.earlier]
        if all(plan is not None and plan.high is not None and plan.high <= self.units for plan in plans):
            return "Yes"
        if all(plan is not None and (plan.low is None or plan.low > self.units) for plan in plans):
            return f"No, with {self._counted(self.units)}"
        return f"Not for every pair, with {self._counted(self.units)}"

    def _counted(self, number: int) -> str:
        return counted(number, "different question") if self.clusters else counted(number, "query")

    @property
    def _unit(self) -> str:
        return "different questions" if self.clusters else "queries"


def measured(dataset: Dataset) -> tuple[Query, ...]:
    """The queries of which a score can be made: those with a relevant document; all where nobody judged yet."""
    found = (query for query in dataset.queries if (given := dataset.labels.get(query.id)) and given.relevant)
    return tuple(found) or dataset.queries


def planned(loaded: Loaded, dataset: Dataset, judgments: Judgments, results: Path) -> Capacity:
    """Return what an experiment means to compare.

    Args:
        loaded: the experiment.
        dataset: its data.
        judgments: its labels after the grade rule: they decide the range of a measure that has no bound.
        results: where results go; an earlier run of the same data under the same primary measure is looked at.
    """
    experiment, statistics = loaded.experiment, loaded.experiment.statistics
    names = len(experiment.retrievers)
    range_of = span(loaded.question.primary, judgments) if judgments else 1.0
    wanted = statistics.margin or EXAMPLE * range_of
    origin = "the declared margin" if statistics.margin else f"a twentieth of the range of {loaded.question.primary}"
    folder = results / loaded.within / experiment.name
    earlier = tuple(_earlier(folder, dataset, str(loaded.question.primary), wanted))
    queries = dataset.queries if loaded.question.primary.claimed else measured(dataset)
    together = clusters_of(queries, statistics.cluster)
    return Capacity(
        units=len(queries) if together is None else len({*together} - {""}) + together.count(""),
        clusters=together is not None,
        comparisons=max(names - 1 if experiment.baseline else names * (names - 1) // 2, 1),
        alpha=statistics.alpha,
        difference=wanted,
        origin=origin,
        earlier=earlier,
        folder=folder.as_posix() if earlier else "",
    )


def _earlier(folder: Path, dataset: Dataset, primary: str, difference: float) -> Sequence[PlannedPair]:
    """The plans of an earlier run's pairs; none where there is no such run, or it was of other data."""
    if not (folder / "manifest.json").is_file():
        return ()
    from harness import records
    from harness.evaluation.evaluation import planned_pairs

    try:
        results = records.read(folder)
        facts = results.manifest.dataset, results.manifest.resolved.primary
        same = facts[0].digest == dataset.digest and facts[1] == primary
        return planned_pairs(results, difference) if same else ()
    except HarnessError:
        return ()  # a folder that cannot be planned from: `harness plan` says why
