"""The record of one run.

Keys may be added to a version, each with a default, so that earlier folders can still
be read. A key with another name or meaning makes a new version.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from harness.identity import retriever_identity
from harness.records.data_quality import DataQuality
from harness.records.environment import Commit, Machine
from harness.records.facts import RetrieverOutcome, StoredJudge
from harness.records.resolved_tables import (
    ExperimentName,
    ExperimentTable,
    MeasureName,
    RetrieverName,
    RetrieverTable,
    StatisticsTable,
    StoredBudgetConfig,
    StoredDatasetConfig,
    StoredLatencyConfig,
    StoredRelevance,
    StoredSweep,
    WrittenExperiment,
)

NonNegativeCount = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedExperiment:
    """The experiment with every default filled in.

    Its fields are those of `harness.experiment.Experiment`.
    """

    name: ExperimentName
    dataset: StoredDatasetConfig
    primary: MeasureName
    """The measure that decides, in full."""
    baseline: str | None
    measures: tuple[MeasureName, ...]
    """In full: gain and ideal filled in."""
    depth: Annotated[int, Field(ge=1, lt=2**63)]
    seed: int
    relevance: StoredRelevance
    statistics: StatisticsTable
    latency: StoredLatencyConfig
    judge: ExperimentTable | None = None
    retrievers: tuple[RetrieverTable, ...]
    """The [[retrievers]] tables, in the order of the file."""
    budget: StoredBudgetConfig = None
    """How the tokens of passages were counted; absent if the experiment names none."""
    vectors: ExperimentTable | None = None
    """Vectors that were embedded elsewhere."""
    report: bool = True
    """Whether the run wrote its report."""
    sweep: StoredSweep = None
    """The sweep with its configurations."""

    @property
    def retriever_tables(self) -> dict[str, ExperimentTable]:
        """Retriever -> its table."""
        return {table["name"]: table for table in self.retrievers}

    def uses(self, retriever: str) -> tuple[str, ...]:
        """The retrievers that a table names under `of`, also within unnamed parts."""
        return tuple(_retriever_names(self.retriever_tables[retriever].get("of")))

    def retriever_with_parts(self, retriever: str) -> tuple[str, ...]:
        """A retriever and all that it uses, each once, itself first."""
        # A fusion by Qdrant has a collection of its own, and uses no other retriever.
        if self.retriever_tables[retriever]["kind"] == "qdrant-fusion":
            return (retriever,)
        names = {retriever: None}
        for used in self.uses(retriever):
            names.update(dict.fromkeys(self.retriever_with_parts(used)))
        return tuple(names)


def _retriever_names(uses: Any) -> Iterator[str]:
    """Yield the names in the key `of` of a table, which may be nested."""
    if isinstance(uses, str):
        yield uses
    elif isinstance(uses, Mapping):
        yield from _retriever_names(uses.get("of"))
    else:
        for part in uses or ():
            yield from _retriever_names(part)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """The data set of a run."""

    path: str
    """As the experiment names it."""
    format: str
    digest: str
    """Of documents, queries and labels, SHA-256."""
    corpus_digest: str
    """Of the documents alone."""
    documents: NonNegativeCount
    queries: NonNegativeCount
    """Queries that were searched."""
    judged: NonNegativeCount
    """Queries with labels."""
    scored: NonNegativeCount
    """Queries that have scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The record of one run."""

    name: ExperimentName
    experiment: WrittenExperiment
    """As in its file."""
    resolved: ResolvedExperiment
    experiment_file: str
    dataset: DatasetFacts
    warnings: tuple[str, ...]
    """What to know about the grades."""
    ledger: DataQuality
    retrievers: Mapping[RetrieverName, RetrieverOutcome]
    """In the order of the experiment."""
    started: str
    """ISO 8601, UTC."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Wall time of the run."""
    versions: Mapping[str, str]
    """Package -> version."""
    machine: Machine
    git: Commit
    judge: StoredJudge = None
    """Which judge judged claims; None if none did."""
    earlier_looks: tuple[int, ...] = ()
    """How many queries each earlier run of the same question had.

    Over the same documents; this run has all of these queries.
    """
    file_digests: Mapping[str, str] = field(default_factory=dict)
    """Path in the folder -> SHA-256, for every file that is read back."""

    @property
    def failed(self) -> dict[str, str]:
        """The retrievers that failed, each with its reason."""
        return {
            name: outcome.error
            for name, outcome in self.retrievers.items()
            if outcome.error
        }

    @property
    def finished(self) -> tuple[str, ...]:
        """The retrievers that finished, in the order of the experiment."""
        outcomes = self.retrievers.items()
        return tuple(name for name, outcome in outcomes if not outcome.error)

    def retriever_identity(self, retriever: str) -> str:
        """What a retriever is, whatever its name.

        Pages, and comparisons of folders, recognise it by that.
        """
        table = self.resolved.retriever_tables[retriever]
        parts = [
            self.retriever_identity(part) for part in self.resolved.uses(retriever)
        ]
        uses = table.get("of") or ()
        if not isinstance(uses, str):
            parts += [str(part) for part in uses if isinstance(part, Mapping)]
        return retriever_identity(table, self.retrievers[retriever].provenance, parts)
