"""A results folder, read back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.dataset import Labels, expected
from harness.records.lines import read_jsonl
from harness.records.manifest import AGAIN, Manifest, read_manifest
from harness.records.run import Run, StageLatency, read_rankings
from harness.records.tables import LEADING, read_table
from retrievers.errors import InputError, Problem
from retrievers.meter import StageTotals
from retrievers.types import Document, Query, Ranking

if TYPE_CHECKING:
    import pandas as pd


class LabelledQuery(NamedTuple):
    """One judged query with its labels as they were given."""

    query: Query
    labels: Labels


@dataclass(frozen=True, slots=True, repr=False)
class Results:
    """A results folder, read back."""

    folder: Path
    manifest: Manifest
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
        return self.manifest.finished

    @property
    def scored(self) -> bool:
        """Whether any query could be scored; without labels there are rankings, costs and overlap alone."""
        return not self.scores.empty

    def __repr__(self) -> str:
        failed = f", {len(self.manifest.failed)} failed" if self.manifest.failed else ""
        asked = self.manifest.dataset.queries
        return f"<Results {self.manifest.name!r}: {len(self.retrievers)} retrievers{failed}, {asked} queries>"

    def _repr_html_(self) -> str | None:
        """The verdict and the leaderboard, for notebooks: the report wrote it."""
        shown = self.folder / "tables" / "leaderboard.html"
        return shown.read_text(encoding="utf-8") if shown.exists() else None

    def rankings(self, retriever: str) -> dict[str, Ranking]:
        """The rankings of one retriever, by query id."""
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
        """One retriever's run as it was: its rankings, costs, notes and provenance."""
        ledger = self.manifest.ledger.retrievers[retriever]
        rows = self.costs[self.costs["retriever"] == retriever].to_dict("records")
        return Run(
            retriever,
            self.rankings(retriever),
            stages=_stages(rows, ledger.counts),
            notes=ledger.notes,
            provenance=self.manifest.retrievers[retriever].provenance,
            latency={row["stage"]: StageLatency(*(row[name] for name in StageLatency._fields))
                     for row in rows if isinstance(row["measured_at"], str)},
        )  # fmt: skip


def read(folder: str | Path) -> Results:
    """Read a results folder.

    Raises:
        InputError: it is none, or a part of it is missing or cannot be read.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    try:
        queries = {row["query_id"]: _labelled(row) for row in read_jsonl(folder / "labels.jsonl")}
        documents = {
            row["id"]: Document(row["id"], row["title"], row["text"]) for row in read_jsonl(folder / "documents.jsonl")
        }
        tables = {name: read_table(folder / f"{name}.csv") for name in LEADING}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(Problem(str(folder), f"cannot be read whole: {error}", AGAIN)) from None
    if unknown := set(tables["scores"]["query_id"]) - queries.keys():
        what = f"lacks {len(unknown)} of the queries that scores.csv has"
        raise InputError(Problem(str(folder / "labels.jsonl"), what, AGAIN))
    return Results(folder, manifest, queries, documents, **tables)


def _labelled(row: Mapping[str, Any]) -> LabelledQuery:
    query = Query(row["query_id"], row["text"], row["fields"], expected.from_json(row))
    return LabelledQuery(query, Labels.from_json(row))


def _stages(
    rows: Iterable[Mapping[Hashable, Any]], counts: Mapping[str, Mapping[str, float]]
) -> dict[str, StageTotals]:
    names = ("calls", "texts", "cached", "tokens", "usd")
    sums = {row["stage"]: ({name: row[name] for name in names if row[name]}, row["seconds"]) for row in rows}
    return {stage: StageTotals(seconds, {**own, **counts.get(stage, {})}) for stage, (own, seconds) in sums.items()}
