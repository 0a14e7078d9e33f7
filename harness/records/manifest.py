"""The record of one run.

Keys may be added to a version, each with a default, so that folders of before are still read. A key that is renamed
or changes its meaning makes a new version.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from harness.experiment import NAME_PATTERN, SWEPT_NAME
from harness.identity import question_identity, retriever_identity
from harness.records.data_quality import DataQuality

ExperimentName = Annotated[str, Field(pattern=NAME_PATTERN)]
"""A name that leads to no other folder."""
RetrieverName = Annotated[str, Field(pattern=SWEPT_NAME)]
"""Another that leads to none."""
NonNegativeCount = Annotated[int, Field(ge=0)]
ExperimentTable = Mapping[str, Any]
"""A table of an experiment file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedExperiment:
    """The experiment with every default filled in; its fields are those of `harness.experiment.Experiment`."""

    name: ExperimentName
    dataset: ExperimentTable
    primary: str
    """The measure that decides, in full."""
    baseline: str | None
    measures: tuple[str, ...]
    """In full: gain and ideal filled in."""
    depth: int
    seed: int
    relevance: ExperimentTable
    statistics: ExperimentTable
    latency: ExperimentTable | None
    judge: ExperimentTable | None = None
    retrievers: tuple[ExperimentTable, ...]
    """The [[retrievers]] tables, in the order of the file."""
    vectors: ExperimentTable | None = None
    """Where vectors lay that were embedded elsewhere; absent in folders of before."""
    report: bool = True
    """Whether the run wrote its report; absent in folders of before, whose runs did."""
    sweep: ExperimentTable | None = None
    """The sweep, written out; absent in folders of before."""

    @property
    def retriever_tables(self) -> dict[str, ExperimentTable]:
        """Retriever -> its table."""
        return {table["name"]: table for table in self.retrievers}

    def uses(self, retriever: str) -> tuple[str, ...]:
        """The retrievers that a table names under `of`, also in the tables of parts without a name."""
        return tuple(_named_in(self.retriever_tables[retriever].get("of")))

    def retriever_with_parts(self, retriever: str) -> tuple[str, ...]:
        """A retriever and all that it uses, each once, itself first."""
        # What Qdrant fuses is a collection of its own, which costs nothing of those that it is like.
        of = (
            ()
            if self.retriever_tables[retriever]["kind"] == "qdrant-fusion"
            else self.uses(retriever)
        )
        inner = (part for other in of for part in self.retriever_with_parts(other))
        return tuple(dict.fromkeys((retriever, *inner)))


def _named_in(of: Any) -> Iterator[str]:
    if isinstance(of, str):
        yield of
    elif isinstance(of, Mapping):
        yield from _named_in(of.get("of"))
    else:
        for part in of or ():
            yield from _named_in(part)


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
    documents: NonNegativeCount
    queries: NonNegativeCount
    """Queries that were asked."""
    judged: NonNegativeCount
    """Queries with labels."""
    scored: NonNegativeCount
    """Queries that have scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverOutcome:
    """How one retriever ended, and what answered."""

    error: str
    """Why it failed, in one message; "" where it finished."""
    provenance: Mapping[str, str]
    """Model, revision, price, store: empty where it failed."""


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

    name: ExperimentName
    experiment: ExperimentTable
    """As it was written."""
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
    machine: ExperimentTable
    git: Commit
    judge: Mapping[str, str] = field(default_factory=dict)
    """Who judged claims: `judge`, and a digest of its `prompt`; empty if none did."""
    earlier_looks: tuple[int, ...] = ()
    """How many queries earlier runs asked of the same question and documents, all of which this run asked too."""
    file_digests: Mapping[str, str] = field(default_factory=dict)
    """Every file that is read back, by its path in the folder -> its SHA-256."""

    @property
    def failed(self) -> dict[str, str]:
        """The retrievers that failed, each with its reason."""
        return {
            name: facts.error for name, facts in self.retrievers.items() if facts.error
        }

    @property
    def finished(self) -> tuple[str, ...]:
        """The retrievers that finished, in the order of the experiment."""
        return tuple(name for name, facts in self.retrievers.items() if not facts.error)

    def retriever_identity(self, retriever: str) -> str:
        """What a retriever is, whatever it is called: pages, and comparisons of folders, know it again by that."""
        table = self.resolved.retriever_tables[retriever]
        of = table.get("of") or ()
        unnamed = (
            []
            if isinstance(of, str)
            else [str(part) for part in of if isinstance(part, Mapping)]
        )
        parts = [*map(self.retriever_identity, self.resolved.uses(retriever)), *unnamed]
        return retriever_identity(table, self.retrievers[retriever].provenance, parts)

    @property
    def question_identity(self) -> object:
        """What the run asks: what is compared, by what."""
        what = {name: self.retriever_identity(name) for name in self.retrievers}
        return question_identity(self.resolved.primary, self.resolved.baseline, what)
