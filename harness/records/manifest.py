"""manifest.json, written and read here alone: what ran, on what, with what outcome.

Keys may be added to a version, each with a default, so that folders of before are still read. A key that is renamed
or changes its meaning makes a new version.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from harness.dataset.source import parse_json
from harness.experiment import NAME, SWEPT
from harness.identity import question_of, retriever_of
from harness.stats.settings import without_retired
from retrievers.errors import InputError, Problem
from retrievers.opening import text_file, writing

COPY = "copy the files themselves into the folder"
CHANGED = "it was changed or cut since it was written"

Row = TypeVar("Row")


def refuse_links(folder: Path) -> None:
    """Raise InputError where a link in a folder leads out of it."""
    links = (path for path in folder.rglob("*") if path.is_symlink())
    if out := [
        path for path in links if not path.resolve().is_relative_to(folder.resolve())
    ]:
        raise InputError(
            [
                Problem(str(path), "is a link that leads out of the results", COPY)
                for path in out
            ]
        )


@contextmanager
def create(path: Path) -> Iterator[TextIO]:
    r"""Write a file as UTF-8 with \n, made anew.

    Whatever the environment holds is in it as `${NAME}`.

    Raises:
        InputError: it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with text_file(path, "w") as file:
            yield file


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line."""
    with create(path) as handle:
        handle.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_jsonl(path: Path, parse: Callable[[bytes], Row] = json.loads) -> Iterator[Row]:
    """Stream the rows of a file.

    Args:
        path: the file.
        parse: one line to a row; ValueError where it is none.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not a row.
    """
    with path.open("rb") as handle:
        for number, line in enumerate(handle, 1):
            if line.strip():
                try:
                    row = parse(line)
                except (ValueError, RecursionError) as error:
                    raise ValueError(f"line {number}: {error}") from None
                yield row


SCHEMA = 1
AGAIN = "run the experiment again"
NAMED = 5
"""Faults of it that one message names."""


Name = Annotated[str, Field(pattern=NAME)]
"""A name that leads to no other folder."""
RetrieverName = Annotated[str, Field(pattern=SWEPT)]
"""Another that leads to none."""
Count = Annotated[int, Field(ge=0)]
Table = Mapping[str, Any]
"""A table of an experiment file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedExperiment:
    """The experiment with every default filled in; its fields are those of `harness.experiment.Experiment`."""

    name: Name
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
    report: bool = True
    """Whether the run wrote its report; absent in folders of before, whose runs did."""
    sweep: Table | None = None
    """The sweep, written out; absent in folders of before."""

    @property
    def blocks(self) -> dict[str, Table]:
        """Retriever -> its table."""
        return {table["name"]: table for table in self.retrievers}

    def made_of(self, retriever: str) -> tuple[str, ...]:
        """The retrievers that a table names under `of`, also in the tables of parts without a name."""
        return tuple(_named_in(self.blocks[retriever].get("of")))

    def parts(self, retriever: str) -> tuple[str, ...]:
        """A retriever and all that it uses, each once, itself first."""
        # What Qdrant fuses is a collection of its own, which costs nothing of those that it is like.
        of = (
            ()
            if self.blocks[retriever]["kind"] == "qdrant-fusion"
            else self.made_of(retriever)
        )
        inner = (part for other in of for part in self.parts(other))
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
    documents: Count
    queries: Count
    """Queries that were asked."""
    judged: Count
    """Queries with labels."""
    scored: Count
    """Queries that have scores."""


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
    """Retriever -> its own ledger, without those of the retrievers that it uses."""


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

    name: Name
    experiment: Table
    """As it was written."""
    resolved: ResolvedExperiment
    experiment_file: str
    dataset: DatasetFacts
    warnings: tuple[str, ...]
    """What to know about the grades."""
    ledger: Ledger
    retrievers: Mapping[RetrieverName, RetrieverFacts]
    """In the order of the experiment."""
    started: str
    """ISO 8601, UTC."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Wall time of the run."""
    versions: Mapping[str, str]
    """Package -> version."""
    machine: Table
    git: Commit
    judge: Mapping[str, str] = field(default_factory=dict)
    """Who judged claims: `judge`, and a digest of its `prompt`; empty if none did."""
    earlier_looks: tuple[int, ...] = ()
    """How many queries earlier runs asked of the same question and documents, all of which this run asked too."""
    tables: Mapping[str, str] = field(default_factory=dict)
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

    def identity(self, retriever: str) -> str:
        """What a retriever is, whatever it is called: pages, and comparisons of folders, know it again by that."""
        table = self.resolved.blocks[retriever]
        of = table.get("of") or ()
        unnamed = (
            []
            if isinstance(of, str)
            else [str(part) for part in of if isinstance(part, Mapping)]
        )
        parts = [*map(self.identity, self.resolved.made_of(retriever)), *unnamed]
        return retriever_of(table, self.retrievers[retriever].provenance, parts)

    @property
    def question(self) -> object:
        """What the run asks: what is compared, by what."""
        what = {name: self.identity(name) for name in self.retrievers}
        return question_of(self.resolved.primary, self.resolved.baseline, what)


def resolved_experiment(tables: Table) -> ResolvedExperiment:
    """Make the record of a resolved experiment from its tables."""
    return ResolvedExperiment(
        **{
            **tables,
            **{name: tuple(tables[name]) for name in ("measures", "retrievers")},
        }
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json."""
    content = {"schema": SCHEMA, **asdict(manifest)}
    content["ledger"] = {
        "dataset": content["ledger"]["dataset"],
        **content["ledger"]["retrievers"],
    }
    text = json.dumps(content, ensure_ascii=False, indent=1, default=str)
    with create(folder / "manifest.json") as file:
        file.write(text + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Read manifest.json.

    Raises:
        InputError: there is none, it is of another version, or parts of it are missing or of the wrong type.
    """
    path = folder / "manifest.json"
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        inner = (
            min(folder.glob("*/manifest.json"), default=None)
            if folder.is_dir()
            else None
        )
        remedy = (
            f"give one that it holds, such as {inner.parent}"
            if inner
            else "give one that `harness run` wrote"
        )
        what = "is not a results folder" if folder.exists() else "does not exist"
        raise InputError(Problem(str(folder), what, remedy)) from None
    except (OSError, ValueError) as error:
        raise InputError(
            Problem(str(path), f"cannot be read as JSON: {error}", AGAIN)
        ) from None
    version = content.get("schema") if isinstance(content, dict) else None
    if version != SCHEMA:
        what = f"is of version {version!r}, and this program reads version {SCHEMA}"
        raise InputError(Problem(str(path), what, AGAIN))
    try:
        # Through JSON, since only there a list may be a tuple in strict mode.
        return _adapter().validate_json(
            json.dumps(_current(_with_ledger(content))), strict=True
        )
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors()[:NAMED]
        ]
        raise InputError(
            Problem(str(path), f"is damaged: {'; '.join(faults)}", AGAIN)
        ) from None


@cache
def _adapter() -> TypeAdapter[Manifest]:
    return TypeAdapter(Manifest)


def _current(content: Table) -> Table:
    """The tables of an earlier version in today's words: without retired keys, and with defaults that have changed."""
    resolved, written = content.get("resolved"), content.get("experiment")
    if not isinstance(resolved, Mapping) or not isinstance(written, Mapping):
        return content
    statistics = without_retired(resolved.get("statistics") or {})
    # Of earlier versions signed ranks decided by default, and gave way to sign flips where there were weights.
    undeclared = "test" not in (written.get("statistics") or {})
    if statistics.get("test") == "wilcoxon" and (
        undeclared or statistics.get("weight")
    ):
        del statistics["test"]
    written = {key: value for key, value in written.items() if key != "cache"}
    return {
        **content,
        "experiment": written,
        "resolved": {**resolved, "statistics": statistics},
    }


def _with_ledger(content: Table) -> Table:
    """The ledgers of the retrievers in a table of their own: in the file they are beside that of the data set."""
    ledger = content.get("ledger")
    if not isinstance(ledger, Mapping):
        return content
    retrievers = {name: kept for name, kept in ledger.items() if name != "dataset"}
    return {
        **content,
        "ledger": {"dataset": ledger.get("dataset", {}), "retrievers": retrievers},
    }
