"""What is kept of a run: rankings, labels, the documents that are shown. A file that is read back has its digest."""

import csv
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic_core import from_json

from harness.dataset import Dataset, Labels, reference_as_json, reference_from_json
from harness.records.manifest import RetrieverLedger
from harness.records.readings import digest_of
from harness.records.safe_files import create, write_jsonl
from retrievers import runs
from retrievers.errors import InputError, Problem
from retrievers.meter import StageTotals
from retrievers.opening import text_file
from retrievers.types import Document, Query, Ranking

LENGTHS = (20_000, 4_000, 1_000, 300)
"""Characters of a document's text that a results folder keeps: the first of these with which all of them have room."""
CORPUS = "corpus.csv"
"""Id and digest of every document."""
ROOM = 32_000_000
"""Characters of all kept texts together."""
SHOWN = 20
"""Documents down to this rank are kept with title and text."""
COSTS = ("retriever", "stage", "calls", "texts", "cached", "tokens", "usd", "seconds", "p50_ms", "p95_ms", "p99_ms",
         "measured_at")  # fmt: skip
"""The columns of costs.csv; any other count goes to the ledger."""


class StageLatency(NamedTuple):
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
    """Query id -> ranking; empty where the retriever failed."""
    stages: Mapping[str, StageTotals] = field(default_factory=dict)
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The integrity ledger: kind -> ids."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Model, revision, digest, store: what answered."""
    latency: Mapping[str, StageLatency] = field(default_factory=dict)
    error: str = ""
    """Why it failed, in one message."""

    def lists(self) -> dict[str, Sequence[str]]:
        """Query id -> document ids, best first."""
        return {query: ranking.doc_ids for query, ranking in self.rankings.items()}


def ledger(run: Run) -> RetrieverLedger:
    """Return what the manifest keeps of a run's integrity."""
    counts = {}
    for stage, totals in run.stages.items():
        if numbers := {name: number for name, number in totals.counts.items() if name not in COSTS}:
            counts[stage] = numbers
    return RetrieverLedger(notes=dict(run.notes), counts=counts)


def write_run(folder: Path, run: Run) -> None:
    """Keep one retriever's rankings, for reading back and for other tools; done as soon as it has answered."""
    tag, name = runs.encode(run.retriever), run.retriever
    with create(folder / "rankings" / f"{name}.jsonl") as rows, create(folder / "runs" / f"{name}.trec") as lines:
        for query, ranking in run.rankings.items():
            scores = runs.written(ranking.scores)  # once for both
            row = json.dumps({"query_id": query, "doc_ids": ranking.doc_ids}, ensure_ascii=False)
            rows.write(f'{row[:-1]}, "scores": [{", ".join(scores)}]}}\n')
            lines.write(runs.lines_of(query, ranking, scores, tag=tag))


def write_evidence(folder: Path, dataset: Dataset, runs: Iterable[Run]) -> None:
    """Keep labels as they are, and title and text of each document that the report may show."""
    write_jsonl(folder / "labels.jsonl", (
        {
            "query_id": query.id,
            "text": query.text,
            "fields": dict(query.fields),
            **({"history": query.history} if query.history else {}),
            **reference_as_json(query.reference),
            **dataset.labels.get(query.id, Labels()).as_json(),
        }
        for query in dataset.recorded
    ))  # fmt: skip
    shown = {doc for labels in dataset.labels.values() for doc in labels.documents}
    shown.update(doc for run in runs for ranking in run.rankings.values() for doc in ranking.doc_ids[:SHOWN])
    documents = sorted(_corpus(folder, dataset, shown), key=lambda doc: doc.id)
    length = kept_length([len(doc.text) for doc in documents])
    write_jsonl(folder / "documents.jsonl", (
        {"id": doc.id, "title": doc.title, "text": doc.text[:length]} for doc in documents
    ))  # fmt: skip


def _corpus(folder: Path, dataset: Dataset, shown: Collection[str]) -> list[Document]:
    """Write id and digest of every document, by which a later run knows what changed; return those that are shown."""
    found = []
    with text_file(folder / CORPUS, "w") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["id", "digest"])
        for doc in dataset.documents():
            rows.writerow([doc.id, digest_of(f"{doc.title}\n{doc.text}")])
            if doc.id in shown:
                found.append(doc)
    return found


def read_corpus(folder: Path) -> dict[str, str]:
    """Return the digest of each document of a run.

    Raises:
        InputError: the folder has none, since an earlier version wrote it.
    """
    try:
        with (folder / CORPUS).open(encoding="utf-8", newline="") as file:
            return {row["id"]: row["digest"] for row in csv.DictReader(file)}
    except FileNotFoundError:
        what = f"has no {CORPUS}: an earlier version wrote it"
        raise InputError(Problem(str(folder), what, "run the experiment again on its documents")) from None


def kept_length(lengths: Sequence[int]) -> int:
    """Return how many characters of each text are kept, from the lengths of all of them.

    >>> kept_length([500, 30_000]), kept_length([30_000] * 4_000)
    (20000, 4000)
    """
    return next((most for most in LENGTHS if sum(min(most, length) for length in lengths) <= ROOM), LENGTHS[-1])


class LabelledQuery(NamedTuple):
    """One judged query with its labels as they were given."""

    query: Query
    labels: Labels


def labelled(line: bytes) -> LabelledQuery:
    """Read a line of labels.jsonl."""
    row = from_json(line, cache_strings="keys")
    history = tuple(row.get("history", ()))
    query = Query(row["query_id"], row["text"], row["fields"], reference_from_json(row), history)
    return LabelledQuery(query, Labels.from_json(row))


def document(line: bytes) -> Document:
    """Read a line of documents.jsonl."""
    return Document(**from_json(line, cache_strings="keys"))


def ranking(line: bytes) -> tuple[str, Ranking]:
    """Read a line of rankings/*.jsonl: (query id, ranking)."""
    row = from_json(line, cache_strings="keys")  # looking up ids that were read before takes longer than making them
    scores = np.array(row["scores"], dtype=np.float64)
    scores.setflags(write=False)
    return row["query_id"], Ranking(tuple(row["doc_ids"]), scores)
