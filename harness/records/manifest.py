"""manifest.json: what ran, on what, with what outcome; written and read here alone.

Keys may be added to a version, each with a default, so that folders of before are still read. A key that is renamed
or changes its meaning makes a new version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from retrievers.errors import InputError, Problem

SCHEMA = 1
AGAIN = "run the experiment again"
NAMED = 5
"""Faults of a manifest that one message names."""
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
    vectors: Table | None = None
    """Where vectors lay that were embedded elsewhere; absent in folders of before."""

    @property
    def blocks(self) -> dict[str, Table]:
        """Retriever -> its table."""
        return {table["name"]: table for table in self.retrievers}

    def parts(self, retriever: str) -> tuple[str, ...]:
        """A retriever and all that it is made of, each once, itself first."""
        of = self.blocks[retriever].get("of") or ()
        inner = (part for other in ((of,) if isinstance(of, str) else of) for part in self.parts(other))
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
    tables: Mapping[str, str] = field(default_factory=dict)
    """File name of a table -> its SHA-256; empty in folders that were written before it was kept."""

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


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json."""
    content = {"schema": SCHEMA, **asdict(manifest)}
    content["ledger"] = {"dataset": content["ledger"]["dataset"], **content["ledger"]["retrievers"]}
    text = json.dumps(content, ensure_ascii=False, indent=1, default=str)
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8", newline="\n")


def read_manifest(folder: Path) -> Manifest:
    """Read manifest.json.

    Raises:
        InputError: there is none, it is of another version, or parts of it are missing or of the wrong type.
    """
    path = folder / "manifest.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if folder.exists() and not folder.is_dir():
            what, remedy = "is a file, not a results folder", "give the folder that `harness run` wrote"
        else:
            what, remedy = "is no results folder", "it holds no manifest.json"
        raise InputError(Problem(str(folder), what, remedy)) from None
    except (OSError, ValueError) as error:
        raise InputError(Problem(str(path), f"cannot be read as JSON: {error}", AGAIN)) from None
    version = content.get("schema") if isinstance(content, dict) else None
    if version != SCHEMA:
        what = f"is of version {version!r}, and this program reads version {SCHEMA}"
        raise InputError(Problem(str(path), what, AGAIN))
    try:
        # Through JSON, since only there a list may stand for a tuple in strict mode.
        return _adapter().validate_json(json.dumps(_with_ledger(content)), strict=True)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        more = f" and {len(faults) - NAMED} more" if len(faults) > NAMED else ""
        raise InputError(Problem(str(path), f"is damaged: {'; '.join(faults[:NAMED])}{more}", AGAIN)) from None


@cache
def _adapter() -> TypeAdapter[Manifest]:
    return TypeAdapter(Manifest)


def _with_ledger(content: Table) -> Table:
    """The ledgers of the retrievers in a table of their own: in the file they stand beside that of the data set."""
    ledger = content.get("ledger")
    if not isinstance(ledger, Mapping):
        return content
    retrievers = {name: kept for name, kept in ledger.items() if name != "dataset"}
    return {**content, "ledger": {"dataset": ledger.get("dataset", {}), "retrievers": retrievers}}
