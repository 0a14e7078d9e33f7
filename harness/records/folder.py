"""A run and its results folder: the one format on disk, written and read here."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from harness.dataset import Dataset, Labels, trec
from retrievers.errors import InputError, Problem
from retrievers.meter import StageTotals
from retrievers.types import Document, Query, Ranking

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
SNIPPET = 300
"""Characters of a document's text that a results folder keeps."""
SHOWN = 20
"""Documents down to this rank are kept with title and snippet."""
TABLES = ("scores", "summary", "comparisons", "tests", "costs")
COSTS = ("retriever", "stage", "calls", "texts", "cached", "tokens", "usd", "seconds", "p50_ms", "p95_ms", "p99_ms",
         "measured_at")  # fmt: skip
LEADING = {
    "scores": ("retriever", "query_id", "measure", "value"),
    "summary": ("retriever", "measure", "count", "mean"),
    "comparisons": ("measure", "a", "b", "n", "mean_difference", "p_value", "p_adjusted", "verdict"),
    "tests": ("family", "measure", "a", "b", "p_value"),
    "costs": ("retriever", "stage", "seconds"),
}
"""Columns without which a table cannot be used."""
AGAIN = "run the experiment again"
TEXT_COLUMNS = ("retriever", "query_id", "measure", "a", "b", "stage", "family")
"""Read back as text, whatever they look like: query ids are often numbers."""


class Latency(NamedTuple):
    """How long one query took at one stage, over a sample of queries asked one at a time."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    measured_at: str


@dataclass(frozen=True, slots=True)
class Run:
    """What one retriever did."""

    retriever: str
    rankings: Mapping[str, Ranking]
    """Query id -> answer; empty where the retriever failed."""
    stages: Mapping[str, StageTotals] = field(default_factory=dict)
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The integrity ledger: kind -> ids."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Model, revision, digest, store: what answered."""
    latency: Mapping[str, Latency] = field(default_factory=dict)
    error: str = ""
    """Why it failed, in one message."""


class LabelledQuery(NamedTuple):
    """One judged query as it was."""

    query: Query
    labels: Labels


@dataclass(frozen=True, slots=True)
class Results:
    """A results folder, read back."""

    folder: Path
    manifest: Mapping[str, Any]
    queries: Mapping[str, LabelledQuery]
    """Every judged query, by id."""
    documents: Mapping[str, Document]
    """Title and beginning of every document in the labels or in a top 20."""
    scores: pd.DataFrame
    summary: pd.DataFrame
    comparisons: pd.DataFrame
    tests: pd.DataFrame
    costs: pd.DataFrame

    @property
    def retrievers(self) -> tuple[str, ...]:
        """The retrievers that finished, in the experiment's order."""
        return tuple(name for name, told in self.manifest["retrievers"].items() if not told["error"])

    def _repr_html_(self) -> str | None:
        """The verdict and the leaderboard, for notebooks: the report wrote it."""
        shown = self.folder / "tables" / "leaderboard.html"
        return shown.read_text(encoding="utf-8") if shown.exists() else None

    def rankings(self, retriever: str) -> dict[str, Ranking]:
        """The answers of one retriever, by query id."""
        return dict(self.answers(retriever))

    def answers(self, retriever: str) -> Iterator[tuple[str, Ranking]]:
        """The same as a stream.

        Raises:
            InputError: the file cannot be read whole, or lacks a query that was asked.
        """
        path = self.folder / "rankings" / f"{retriever}.jsonl"
        missing = set(self.scores["query_id"])
        try:
            for query_id, ranking in read_rankings(path):
                missing.discard(query_id)
                yield query_id, ranking
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(Problem(str(path), f"cannot be read whole: {error}", AGAIN)) from None
        if missing:
            raise InputError(Problem(str(path), f"lacks the answers to {len(missing)} of the queries", AGAIN))

    def run(self, retriever: str) -> Run:
        """One retriever's run as it was: its answers, costs, notes and provenance."""
        ledger = self.manifest["ledger"][retriever]
        rows = self.costs[self.costs["retriever"] == retriever].to_dict("records")
        return Run(
            retriever,
            self.rankings(retriever),
            stages=_stages(rows, ledger["counts"]),
            notes={kind: tuple(ids) for kind, ids in ledger["notes"].items()},
            provenance=self.manifest["retrievers"][retriever]["provenance"],
            latency={row["stage"]: Latency(*(row[name] for name in Latency._fields))
                     for row in rows if isinstance(row["measured_at"], str)},
        )  # fmt: skip


def write_run(folder: Path, run: Run) -> None:
    """Keep one retriever's rankings, for reading back and for other tools; done as soon as it has answered."""
    for part in ("rankings", "runs"):
        (folder / part).mkdir(exist_ok=True)
    rows = (
        {"query_id": query, "doc_ids": ranking.doc_ids, "scores": ranking.scores.tolist()}
        for query, ranking in run.rankings.items()
    )
    write_jsonl(folder / "rankings" / f"{run.retriever}.jsonl", rows)
    trec.write_run(folder / "runs" / f"{run.retriever}.trec", run.rankings.items(), tag=run.retriever)


def write_evidence(folder: Path, dataset: Dataset, runs: Iterable[Run]) -> None:
    """Keep labels as they are, and title and beginning of each document that the report may show."""
    write_jsonl(folder / "labels.jsonl", (
        {"query_id": query.id, "text": query.text, "fields": dict(query.fields), **dataset.labels[query.id].as_json()}
        for query in dataset.judged
    ))  # fmt: skip
    shown = {doc for said in dataset.labels.values() for doc in said.documents}
    shown.update(doc for run in runs for ranking in run.rankings.values() for doc in ranking.doc_ids[:SHOWN])
    write_jsonl(folder / "documents.jsonl", (
        {"id": doc.id, "title": doc.title, "text": doc.text[:SNIPPET]}
        for doc in sorted(dataset.texts(shown).values(), key=lambda doc: doc.id)
    ))  # fmt: skip


def ledger(run: Run) -> dict[str, Any]:
    """What is told of a run's integrity: noted ids by kind; by stage the counts that costs.csv has no column for."""
    counts = {
        stage: {name: number for name, number in totals.counts.items() if name not in COSTS}
        for stage, totals in run.stages.items()
    }
    return {"notes": dict(run.notes), "counts": {stage: told for stage, told in counts.items() if told}}


def write_costs(folder: Path, runs: Iterable[Run]) -> None:
    """One row per retriever and stage: what it took, in calls, tokens, dollars and seconds."""
    import pandas as pd

    rows = []
    for run in runs:
        for stage in dict.fromkeys([*run.stages, *run.latency]):
            totals = run.stages.get(stage, StageTotals(0.0, {}))
            latency = run.latency.get(stage, (None,) * 4)
            counts = [int(totals.counts.get(name, 0)) for name in ("calls", "texts", "cached", "tokens")]
            rows.append((run.retriever, stage, *counts, totals.counts.get("usd", 0.0), totals.seconds, *latency))
    write_table(folder, "costs", pd.DataFrame(rows, columns=list(COSTS)))


def read_costs(folder: Path) -> list[dict[str, Any]]:
    """Read the rows of a results folder's costs.csv; OSError or ValueError where it cannot be read."""
    return [
        {str(name): value for name, value in row.items()} for row in _table(folder / "costs.csv").to_dict("records")
    ]


def write_table(folder: Path, name: str, table: pd.DataFrame) -> None:
    """Write a CSV file: full precision, line feeds, empty cells for what is undefined."""
    table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the record that says what ran, on what, and with what outcome."""
    text = json.dumps({"schema": SCHEMA, **manifest}, ensure_ascii=False, indent=1, default=str)
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8", newline="\n")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a manifest; InputError where the folder holds none, or one of another schema."""
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(Problem(str(folder), "is no results folder", "it holds no manifest.json")) from None
    except ValueError as error:
        raise InputError(Problem(str(path), f"is not JSON: {error}")) from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise InputError(Problem(str(path), f"is not of schema {SCHEMA}", "run the experiment again"))
    return manifest


def read(folder: str | Path) -> Results:
    """Read a results folder.

    Raises:
        InputError: it is none, or a part of it is missing or cannot be read.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    try:
        queries = {row["query_id"]: _judged(row) for row in read_jsonl(folder / "labels.jsonl")}
        documents = {
            row["id"]: Document(row["id"], row["title"], row["text"]) for row in read_jsonl(folder / "documents.jsonl")
        }
        tables = {name: _table(folder / f"{name}.csv") for name in TABLES}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(Problem(str(folder), f"cannot be read whole: {error}", AGAIN)) from None
    if unknown := set(tables["scores"]["query_id"]) - queries.keys():
        what = f"lacks {len(unknown)} of the queries that scores.csv has"
        raise InputError(Problem(str(folder / "labels.jsonl"), what, AGAIN))
    return Results(folder, manifest, queries, documents, **tables)


def read_rankings(path: Path) -> Iterator[tuple[str, Ranking]]:
    """Stream the answers of one retriever: (query id, ranking)."""
    for row in read_jsonl(path):
        scores = np.asarray(row["scores"], dtype=np.float64)
        scores.setflags(write=False)
        yield row["query_id"], Ranking(tuple(row["doc_ids"]), scores)


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line."""
    with path.open("w", encoding="utf-8", newline="\n") as handle:
        handle.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Stream what `write_jsonl` wrote."""
    with path.open("rb") as handle:
        for line in handle:
            if line.strip():
                yield json.loads(line)


def _judged(row: Mapping[str, Any]) -> LabelledQuery:
    return LabelledQuery(Query(row["query_id"], row["text"], row["fields"]), Labels.from_json(row))


def _stages(
    rows: Iterable[Mapping[Hashable, Any]], counts: Mapping[str, Mapping[str, float]]
) -> dict[str, StageTotals]:
    names = ("calls", "texts", "cached", "tokens", "usd")
    told = {row["stage"]: ({name: row[name] for name in names if row[name]}, row["seconds"]) for row in rows}
    return {stage: StageTotals(seconds, {**sums, **counts.get(stage, {})}) for stage, (sums, seconds) in told.items()}


def _table(path: Path) -> pd.DataFrame:
    import pandas as pd

    header = pd.read_csv(path, nrows=0).columns
    if absent := [column for column in LEADING[path.stem] if column not in header]:
        raise ValueError(f"{path.name} has no column {', '.join(absent)}")
    texts = {column: str for column in TEXT_COLUMNS if column in header}
    return pd.read_csv(path, dtype=texts, keep_default_na=False, na_values={c: [""] for c in header if c not in texts})
