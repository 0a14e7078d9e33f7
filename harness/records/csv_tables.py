"""The tables of a results folder: CSV in full precision, rankings, labels and documents as JSON Lines.

They are read back with their types, and known by their digests. What a spreadsheet would run stays text, and no
character makes a row of its own.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import from_json

from harness.dataset import Dataset, Labels, reference_as_json, reference_from_json
from harness.records.manifest import RetrieverLedger, create, write_jsonl
from harness.records.readings import digest_of
from retrievers import runs
from retrievers.errors import InputError, Problem
from retrievers.meter import StageTotals
from retrievers.opening import file_digest, text_file
from retrievers.types import CONTROL, Document, Query, Ranking

LENGTHS = (20_000, 4_000, 1_000, 300)
"""Characters of a document's text that a results folder keeps: the first of these with which all of them have room."""
CORPUS = "corpus.csv"
"""Id and digest of every document."""
ROOM = 32_000_000
"""Characters of all kept texts together."""
SHOWN = 20
"""Documents down to this rank are kept with title and text."""
COSTS = (
    "retriever",
    "stage",
    "calls",
    "texts",
    "cached",
    "tokens",
    "usd",
    "seconds",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "measured_at",
)
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
    counts = {
        stage: {
            name: number for name, number in totals.counts.items() if name not in COSTS
        }
        for stage, totals in run.stages.items()
    }
    return RetrieverLedger(
        notes=dict(run.notes),
        counts={stage: own for stage, own in counts.items() if own},
    )


def write_run(folder: Path, run: Run) -> None:
    """Keep one retriever's rankings, for reading back and for other tools; done as soon as it has answered."""
    tag, name = runs.encode(run.retriever), run.retriever
    with (
        create(folder / "rankings" / f"{name}.jsonl") as rows,
        create(folder / "runs" / f"{name}.trec") as lines,
    ):
        for query, ranking in run.rankings.items():
            scores = runs.written(ranking.scores)  # once for both
            row = json.dumps(
                {"query_id": query, "doc_ids": ranking.doc_ids}, ensure_ascii=False
            )
            rows.write(f'{row[:-1]}, "scores": [{", ".join(scores)}]}}\n')
            lines.write(runs.lines_of(query, ranking, scores, tag=tag))


def write_evidence(folder: Path, dataset: Dataset, runs: Iterable[Run]) -> None:
    """Keep labels as they are, and title and text of each document that the report may show."""
    write_jsonl(
        folder / "labels.jsonl",
        (
            {
                "query_id": query.id,
                "text": query.text,
                "fields": dict(query.fields),
                **({"history": query.history} if query.history else {}),
                **reference_as_json(query.reference),
                **dataset.labels.get(query.id, Labels()).as_json(),
            }
            for query in dataset.recorded
        ),
    )
    shown = {doc for labels in dataset.labels.values() for doc in labels.documents}
    shown.update(
        doc
        for run in runs
        for ranking in run.rankings.values()
        for doc in ranking.doc_ids[:SHOWN]
    )
    documents = sorted(_corpus(folder, dataset, shown), key=lambda doc: doc.id)
    length = kept_length([len(doc.text) for doc in documents])
    write_jsonl(
        folder / "documents.jsonl",
        (
            {"id": doc.id, "title": doc.title, "text": doc.text[:length]}
            for doc in documents
        ),
    )


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
        raise InputError(
            Problem(str(folder), what, "run the experiment again on its documents")
        ) from None


def kept_length(lengths: Sequence[int]) -> int:
    """Return how many characters of each text are kept, from the lengths of all of them.

    >>> kept_length([500, 30_000]), kept_length([30_000] * 4_000)
    (20000, 4000)
    """
    return next(
        (
            most
            for most in LENGTHS
            if sum(min(most, length) for length in lengths) <= ROOM
        ),
        LENGTHS[-1],
    )


class LabelledQuery(NamedTuple):
    """One judged query with its labels as they were given."""

    query: Query
    labels: Labels


def labelled(line: bytes) -> LabelledQuery:
    """Read a line of labels.jsonl."""
    row = from_json(line, cache_strings="keys")
    history = tuple(row.get("history", ()))
    query = Query(
        row["query_id"], row["text"], row["fields"], reference_from_json(row), history
    )
    return LabelledQuery(query, Labels.from_json(row))


def document(line: bytes) -> Document:
    """Read a line of documents.jsonl."""
    return Document(**from_json(line, cache_strings="keys"))


def ranking(line: bytes) -> tuple[str, Ranking]:
    """Read a line of rankings/*.jsonl: (query id, ranking)."""
    row = from_json(
        line, cache_strings="keys"
    )  # looking up ids that were read before takes longer than making them
    scores = np.array(row["scores"], dtype=np.float64)
    scores.setflags(write=False)
    return row["query_id"], Ranking(tuple(row["doc_ids"]), scores)


FORMULA = re.compile(r"""(^|[;,\t])('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
QUOTED = re.compile(r"""(^|[;,\t])'('*)(?=\s*"?(?:=|[+@-][^;,\t]*[(|!]))""")
TABLES = ("scores", "summary", "comparisons", "tests", "costs")
TableColumns = Mapping[str, Sequence[Any]]
"""A table: name of a column -> its values."""
TEXT_COLUMNS = ("retriever", "query_id", "measure", "a", "b", "stage", "family")
"""Names: read back as text, whatever they look like, and an empty one is a text too."""
NUMBERS = frozenset(
    {
        "value",
        "count",
        "mean",
        "ci_low",
        "ci_high",
        "std",
        "min",
        "q25",
        "median",
        "q75",
        "max",
        "n",
        "zeros",
        "wins",
        "ties",
        "losses",
        "mean_difference",
        "w_plus",
        "w_minus",
        "statistic",
        "effect_size",
        "p_value",
        "p_adjusted",
        "p_minimum",
        "p_minimum_adjusted",
        "p_randomization",
        "p_randomization_adjusted",
        "p_wilcoxon",
        "p_wilcoxon_adjusted",
        "clusters",
        "calls",
        "texts",
        "cached",
        "tokens",
        "usd",
        "seconds",
        "p50_ms",
        "p95_ms",
        "p99_ms",
    }
)
"""TableColumns of numbers; every other column is text."""


def as_cell(text: str) -> str:
    r"""Return a text as it is written into a CSV file.

    A spreadsheet runs what begins with an equals sign, or with a sign and holds a call; where it cuts lines at
    semicolons or tabs, also in the middle of a text. An apostrophe before it makes it text. Control characters become
    spaces: some readers end a row at each of them.

    >>> as_cell("=HYPERLINK(1)"), as_cell("a;@SUM(1)"), as_cell("-abc123"), as_cell("a\rb")
    ("'=HYPERLINK(1)", "a;'@SUM(1)", '-abc123', 'a b')
    """
    return FORMULA.sub(r"\1'\2", CONTROL.sub(" ", text))


def of_cell(cell: str) -> str:
    """Return the text that `as_cell` wrote.

    >>> of_cell(as_cell("=1")), of_cell(as_cell("'=1")), of_cell("don't")
    ('=1', "'=1", "don't")
    """
    return QUOTED.sub(r"\1\2", cell)


def write_table(folder: Path, name: str, table: TableColumns) -> None:
    """Write a CSV file: full precision, line feeds, empty cells for what is undefined, no text that would be run."""
    columns = [
        (_numbers if column in NUMBERS else _texts)(values)
        for column, values in table.items()
    ]
    with create(folder / f"{name}.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*columns, strict=True))


def _numbers(values: Iterable[Any]) -> list[Any]:
    """Numbers as they are written: all of a column with a point, or none; None and NaN as empty cells."""
    kept = [None if one is None or one != one else one for one in values]
    if all(isinstance(one, int | np.integer) for one in kept):
        return kept
    return [None if one is None else float(one) for one in kept]


def _texts(values: Iterable[Any]) -> list[Any]:
    """Texts as they are written, each distinct one looked at once."""
    values = list(values)
    known = {one: as_cell(one) if isinstance(one, str) else None for one in set(values)}
    return list(map(known.__getitem__, values))


def write_costs(
    folder: Path, runs: Iterable[Run], shared: Mapping[str, StageTotals]
) -> None:
    """Write costs.csv: one row per retriever and stage, in calls, tokens, dollars and seconds.

    Args:
        folder: of the results.
        runs: the retrievers.
        shared: the stages that serve all retrievers at once, such as "judge"; their rows name no retriever.
    """
    rows = []
    for run in (*runs, Run("", {}, stages=shared)):
        for stage in dict.fromkeys([*run.stages, *run.latency]):
            totals = run.stages.get(stage, StageTotals(0.0, {}))
            counts = [
                int(totals.counts.get(key, 0))
                for key in ("calls", "texts", "cached", "tokens")
            ]
            spent = (totals.counts.get("usd", 0.0), totals.seconds)
            rows.append(
                (
                    run.retriever,
                    stage,
                    *counts,
                    *spent,
                    *run.latency.get(stage, (None,) * 4),
                )
            )
    write_table(
        folder,
        "costs",
        {name: [row[place] for row in rows] for place, name in enumerate(COSTS)},
    )


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a table that a run wrote; as `read_columns`."""
    columns = read_columns(path)
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def read_columns(path: Path) -> dict[str, list[Any]]:
    """Read a table that a run wrote, NaN for what is undefined; OSError or ValueError where it cannot be read."""
    cells: list[str] = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"line {rows.line_num} has {len(row)} cells")
            cells += row
    if not header:
        raise ValueError("it is empty")
    columns = {name: cells[place :: len(header)] for place, name in enumerate(header)}
    return {
        name: _read_numbers(column) if name in NUMBERS else _read_texts(column, name)
        for name, column in columns.items()
    }


def _read_numbers(cells: Sequence[str]) -> list[Any]:
    try:
        return list(map(int, cells))
    except ValueError:
        return [float(cell) if cell else math.nan for cell in cells]


def _read_texts(cells: Sequence[str], column: str) -> list[Any]:
    texts: dict[str, Any] = {cell: of_cell(cell) for cell in set(cells)}
    texts[""] = "" if column in TEXT_COLUMNS else math.nan
    return list(map(texts.__getitem__, cells))


def file_digests(folder: Path) -> dict[str, str]:
    """Return name -> SHA-256 of every file of a results folder that is read back, for the manifest."""
    names = [
        *(f"{name}.csv" for name in TABLES),
        "labels.jsonl",
        "documents.jsonl",
        "qrels.trec",
    ]
    names += [
        path.name for path in folder.glob("evaluation.json")
    ]  # missing if there are no labels
    names += sorted(
        f"rankings/{path.name}" for path in (folder / "rankings").glob("*.jsonl")
    )
    return {name: file_digest(folder / name) for name in names}
