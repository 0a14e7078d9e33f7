"""What manifest.json holds: what ran, on what, with what outcome.

Keys may be added to a version, each with a default, so that folders of before are still read. A key that is renamed
or changes its meaning makes a new version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1
AGAIN = "run the experiment again"
Table = Mapping[str, Any]
"""A table of an experiment file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedExperiment:
    """The experiment with every default filled in; its fields are those of `harness.experiment.Experiment`."""

    name: str
    dataset: Table
    primary: str
    """The measure that decides, in full."""
    baseline: str | None
    measures: tuple[str, ...]
    """In full: gain and ideal filled in."""
    depth: int
    seed: int
    relevance: Table
    statistics: Table
    latency: Table | None
    judge: Table | None = None
    retrievers: tuple[Table, ...]
    """The [[retrievers]] tables, in the order of the file."""
    cache: Table | None = None
    """How far the cache was believed; absent in folders of before."""
    vectors: Table | None = None
    """Where vectors lay that were embedded elsewhere; absent in folders of before."""

    @property
    def blocks(self) -> dict[str, Table]:
        """Retriever -> its table."""
        return {table["name"]: table for table in self.retrievers}

    def made_of(self, retriever: str) -> tuple[str, ...]:
        """The retrievers that a table names under `of`."""
        of = self.blocks[retriever].get("of") or ()
        return (of,) if isinstance(of, str) else tuple(of)

    def parts(self, retriever: str) -> tuple[str, ...]:
        """A retriever and all that it is made of, each once, itself first."""
        # What Qdrant fuses is a collection of its own, which costs nothing of those that it is like.
        of = () if self.blocks[retriever]["kind"] == "qdrant-fusion" else self.made_of(retriever)
        inner = (part for other in of for part in self.parts(other))
        return tuple(dict.fromkeys((retriever, *inner)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """Which data were used."""

    path: str
    """As the experiment names it."""
    format: str
    digest: str
    """Of documents, queries and labels, SHA-256."""
    corpus_digest: str
    """Of the documents alone."""
    documents: int
    queries: int
    """Queries that were asked."""
    judged: int
    """Queries with labels."""
    scored: int | None = None
    """Queries that have scores; None in folders that were written before it was kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverFacts:
    """How one retriever ended, and what answered."""

    error: str
    """Why it failed, in one message; "" where it finished."""
    provenance: Mapping[str, str]
    """Model, revision, price, store: empty where it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverLedger:
    """What was noted and counted while one retriever worked."""

    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind -> ids of documents or queries."""
    counts: Mapping[str, Mapping[str, int | float]] = field(default_factory=dict)
    """Stage -> count -> number, for what costs.csv has no column for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The integrity ledger."""

    dataset: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind -> ids, as the data set was read."""
    retrievers: Mapping[str, RetrieverLedger] = field(default_factory=dict)
    """Retriever -> its own ledger, without those of the retrievers that it is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TieRange:
    """What one retriever's mean of the primary measure would be under other orders of equal scores."""

    queries: tuple[str, ...]
    """Ids of the queries whose value depends on that order."""
    worst: float
    expected: float
    best: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The state of the repository that the run was started in."""

    commit: str = ""
    """Empty outside a repository."""
    dirty: bool = False
    """Whether files differed from that commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The record of one run."""

    name: str
    experiment: Table
    """As it was written."""
    resolved: ResolvedExperiment
    experiment_file: str
    dataset: DatasetFacts
    warnings: tuple[str, ...]
    """What to know about the grades."""
    ledger: Ledger
    ties: Mapping[str, TieRange] = field(default_factory=dict)
    """Retriever -> the range of its mean under ties."""
    judged: Mapping[str, float] = field(default_factory=dict)
    """Retriever -> share of its hits within the primary measure's cutoff that have a label; empty where nothing tells
    an unjudged document from an irrelevant one, and in folders of before."""
    retrievers: Mapping[str, RetrieverFacts]
    """In the order of the experiment."""
    started: str
    """ISO 8601, UTC."""
    seconds: float
    """Wall time of the run."""
    versions: Mapping[str, str]
    """Package -> version."""
    machine: Table
    git: Commit
    judge: Mapping[str, str] = field(default_factory=dict)
    """Who judged claims: `judge`, and a digest of its `prompt`; empty where nobody did."""
    earlier_looks: tuple[int, ...] = ()
    """How many queries earlier runs asked of the same question and documents, all of which this run asked too."""
    waiting: tuple[str, ...] = ()
    """Retrievers that had not answered when this was written, while the run went on: nothing else here knows them."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """Every file that is read back, by its path in the folder -> its SHA-256; empty in folders that were written before
    it was kept."""

    @property
    def failed(self) -> dict[str, str]:
        """The retrievers that failed, each with its reason."""
        return {name: facts.error for name, facts in self.retrievers.items() if facts.error}

    @property
    def finished(self) -> tuple[str, ...]:
        """The retrievers that finished, in the order of the experiment."""
        return tuple(name for name, facts in self.retrievers.items() if not facts.error)


def resolved_experiment(tables: Table) -> ResolvedExperiment:
    """Make the record of a resolved experiment from its tables."""
    return ResolvedExperiment(**{**tables, **{name: tuple(tables[name]) for name in ("measures", "retrievers")}})
