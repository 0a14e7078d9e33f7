"""The record of one run.

Keys may be added to a version, each with a default, so that earlier folders can still
be read. A key with another name or meaning makes a new version.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pydantic import Field

from harness.identity import retriever_identity
from harness.records.data_quality import DataQuality
from harness.records.environment import Commit, Machine, PackageVersion
from harness.records.facts import RetrieverFailure, RetrieverOutcome, StoredJudge
from harness.records.jsonl import reads_by
from harness.records.resolved_tables import (
    ExperimentName,
    MeasureName,
    RetrieverName,
    RetrieverRecord,
    StoredBudgetConfig,
    StoredDatasetConfig,
    StoredLatencyConfig,
    StoredPart,
    StoredRelevance,
    StoredRetriever,
    StoredStatistics,
    StoredSweep,
    StoredVectors,
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
    """Names of the measures in full, with gain and ideal filled in."""
    depth: Annotated[int, Field(ge=1, lt=2**63)]
    """How many hits of a query are stored, at most."""
    seed: int
    relevance: StoredRelevance
    statistics: StoredStatistics
    latency: StoredLatencyConfig
    judge: StoredPart = None
    retrievers: tuple[StoredRetriever, ...]
    """The retrievers in the order of the file."""
    budget: StoredBudgetConfig = None
    """How the tokens of passages were counted; absent if the experiment names none."""
    vectors: StoredVectors = None
    """Vectors that were embedded elsewhere."""
    report: bool = True
    """Whether the run wrote its report."""
    sweep: StoredSweep = None
    """The sweep with its configurations."""

    @property
    def retriever_by_name(self) -> dict[str, RetrieverRecord]:
        """Name -> its retriever."""
        return {retriever.name: retriever for retriever in self.retrievers}

    def retrievers_of_equal_settings(self) -> list[tuple[str, ...]]:
        """The names that one retriever has, for each that has several."""
        names_by_settings: dict[str, list[str]] = {}
        for name, record in self.retriever_by_name.items():
            settings = json.dumps(record.table.without("name").options, sort_keys=True)
            names_by_settings.setdefault(settings, []).append(name)
        return [tuple(names) for names in names_by_settings.values() if len(names) > 1]

    def retriever_with_parts(self, retriever: str) -> tuple[str, ...]:
        """A retriever and all that it uses, each once, itself first."""
        # A fusion by Qdrant has a collection of its own, and uses no other retriever.
        record = self.retriever_by_name[retriever]
        if record.kind == "qdrant-fusion":
            return (retriever,)
        names = {retriever: None}
        for used in record.uses:
            names.update(dict.fromkeys(self.retriever_with_parts(used)))
        return tuple(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """The data set of a run."""

    path: str
    """The path as the experiment names it."""
    format: str
    digest: str
    """SHA-256 of the documents, queries and labels."""
    corpus_digest: str
    """SHA-256 of the documents alone."""
    documents: NonNegativeCount
    queries: NonNegativeCount
    """Queries that were searched."""
    judged: NonNegativeCount
    """Queries with labels."""
    scored: NonNegativeCount
    """Queries that have scores."""


class FileDigest(NamedTuple):
    """A file of a results folder, and the SHA-256 of its content."""

    path: str
    """The path in the folder."""
    digest: str


def _read_digests(stored: Mapping[str, str]) -> tuple[FileDigest, ...]:
    return tuple(FileDigest(path, digest) for path, digest in stored.items())


def _read_versions(stored: Mapping[str, str]) -> tuple[PackageVersion, ...]:
    return tuple(PackageVersion(name, version) for name, version in stored.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The record of one run."""

    name: ExperimentName
    experiment: WrittenExperiment
    """The experiment as in its file."""
    resolved: ResolvedExperiment
    experiment_file: str
    """Its path, which may be relative to the working directory of the run."""
    dataset: DatasetFacts
    warnings: tuple[str, ...]
    """What to know about the grades, or about a judge that failed."""
    ledger: DataQuality
    """What was counted in the data, by kind, and not refused."""
    retrievers: Mapping[RetrieverName, RetrieverOutcome]
    """Retriever -> its outcome, in the order of the experiment."""
    started: str
    """ISO 8601, UTC."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Wall time of the run."""
    versions: Annotated[tuple[PackageVersion, ...], reads_by(_read_versions)]
    """Versions of Python and of packages."""
    machine: Machine
    git: Commit
    judge: StoredJudge = None
    """Which judge judged claims; None if none did."""
    earlier_looks: tuple[int, ...] = ()
    """How many queries each earlier run of the same question had.

    Such a run had the same documents, and only queries that this one has.
    """
    file_digests: Annotated[tuple[FileDigest, ...], reads_by(_read_digests)] = ()
    """Digests of all files that are read back."""

    def digest_of(self, path: str) -> str | None:
        """The digest of a file; None if the file is not read back."""
        for stored in self.file_digests:
            if stored.path == path:
                return stored.digest
        return None

    def version_of(self, package: str) -> str:
        """The version of a package; "" if it was not installed."""
        for installed in self.versions:
            if installed.name == package:
                return installed.version
        return ""

    @property
    def failed(self) -> tuple[RetrieverFailure, ...]:
        """The retrievers that failed, in the order of the experiment."""
        return tuple(
            RetrieverFailure(name, outcome.error)
            for name, outcome in self.retrievers.items()
            if outcome.error
        )

    @property
    def finished(self) -> tuple[str, ...]:
        """The retrievers that finished, in the order of the experiment."""
        outcomes = self.retrievers.items()
        return tuple(name for name, outcome in outcomes if not outcome.error)

    def retriever_identity(self, retriever: str) -> str:
        """Return a text that is equal for the same retriever under another name.

        Comparisons of folders recognise it by that.
        """
        record = self.resolved.retriever_by_name[retriever]
        parts = [self.retriever_identity(part) for part in record.uses]
        used = record.table.get("of") or ()
        # A part without a name is its table; a reranker has only one part.
        tables = [used] if isinstance(used, Mapping) else used
        parts += [str(part) for part in tables if isinstance(part, Mapping)]
        facts = self.retrievers[retriever].provenance
        return retriever_identity(record.table, facts, parts)
