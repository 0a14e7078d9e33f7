"""A results folder as one object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.records.consistency import refuse_unknown_scores
from harness.records.costs_csv import CostRow, cost_rows
from harness.records.csv_table import (
    NUMBER_COLUMNS,
    read_table_columns,
)
from harness.records.documents_file import document_from_json
from harness.records.labels_file import LabelledQuery, labelled_query_from_json
from harness.records.manifest import Manifest
from harness.records.manifest_file import read_manifest
from harness.records.properties_csv import (
    PROPERTIES_FILE,
    PROPERTY_COLUMNS,
    QueryProperty,
    has_properties,
    read_properties,
)
from harness.records.read_artifact import (
    RUN_AGAIN_REMEDY,
    read_unchanged_rows,
    refuse_changed_file,
    refuse_outside_links,
    unreadable_file,
)
from harness.records.run import (
    QueryRanking,
    Run,
    StageLatency,
    TrialRanking,
    ranking_from_json,
)
from harness.records.table_schema import TABLE_NAMES
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.files.text_files import file_digest
from retrievers.files.trec_files import read_qrels
from retrievers.meter import StageTotals
from retrievers.types import Document, Ranking

if TYPE_CHECKING:
    import pandas as pd


def is_results_folder(path: Path) -> bool:
    """Whether a path is a results folder."""
    return (path / "manifest.json").is_file()


NO_SCORES = (
    "holds no scores: no query has labels",
    "harness pool draws what people are to judge",
)
"""The problem and the remedy of results without scores."""


def _frame_property(table_name: str) -> cached_property[pd.DataFrame]:
    """Return a property that reads a table as a frame of pandas."""

    def read(results: Results) -> pd.DataFrame:
        import pandas as pd

        frame = pd.DataFrame(results.columns(table_name))
        text_columns = [column for column in frame if column not in NUMBER_COLUMNS]
        return frame.astype(dict.fromkeys(text_columns, "str"))

    return cached_property(read)


@dataclass(frozen=True, repr=False, eq=False)
class Results:
    """A results folder, read back; its tables are read at their first use."""

    folder: Path
    manifest: Manifest
    queries: Mapping[str, LabelledQuery]
    """Every query that was searched or has labels, by id, in the data set's order."""
    documents: Mapping[str, Document]
    """Every document in the labels or in a first trial's top 20, with its stored text.

    Long texts are stored in part.
    """

    scores = _frame_property("scores")
    summary = _frame_property("summary")
    comparisons = _frame_property("comparisons")
    tests = _frame_property("tests")
    costs = _frame_property("costs")

    @cached_property
    def query_properties(self) -> tuple[QueryProperty, ...]:
        """The rows of properties.csv; empty if an earlier version wrote the folder."""
        return read_properties(self.folder, self.manifest, self.queries)

    @cached_property
    def properties(self) -> pd.DataFrame:
        """The properties as a frame with the columns query, property and value."""
        import pandas as pd

        rows = [(row.query_id, row.name, row.value) for row in self.query_properties]
        frame = pd.DataFrame(rows, columns=list(PROPERTY_COLUMNS))
        return frame.astype({"query": "str", "property": "str", "value": "object"})

    @cached_property
    def score_columns(self) -> dict[str, list[Any]]:
        """The columns of scores.csv, without pandas.

        Importing pandas takes as long as reading them.
        """
        return self.columns("scores")

    @cached_property
    def cost_rows(self) -> list[CostRow]:
        """The rows of costs.csv, likewise."""
        return cost_rows(self.columns("costs"))

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table."""
        columns = self.columns(name)
        cells = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in cells]

    def columns(self, name: str) -> dict[str, list[Any]]:
        """The columns of a table, which must have the digest in the manifest.

        Raises:
            InputError: it was changed, or cannot be read.
        """
        refuse_changed_file(self.folder, self.manifest, f"{name}.csv")
        path = self.folder / f"{name}.csv"
        try:
            columns = read_table_columns(path)
            if name == "scores":
                refuse_unknown_scores(columns, self.retrievers, self.queries)
        except (OSError, ValueError) as error:
            raise unreadable_file(path, error) from None
        return columns

    @property
    def retrievers(self) -> tuple[str, ...]:
        """The retrievers that finished, in the experiment's order."""
        return self.manifest.finished

    @property
    def scored(self) -> bool:
        """Whether any query could be scored.

        Without labels there are only rankings, costs and overlap.
        """
        return self.manifest.dataset.scored > 0

    @property
    def run_label(self) -> str:
        """The start of this run, and a digest of its manifest.

        The manifest has the digest of every other file.
        """
        digest = file_digest(self.folder / "manifest.json")
        return f"run of {self.manifest.started}, manifest digest {digest[:12]}"

    def grades(self) -> dict[str, dict[str, int]]:
        """The labels after the grade rule, from qrels.trec.

        Empty without labels, or if only claims were scored.
        """
        path = self.folder / "qrels.trec"
        if path.is_file() and not path.stat().st_size:
            return {}
        return dict(read_qrels(path))

    def __repr__(self) -> str:
        retrievers = f"{len(self.retrievers)} retrievers"
        queries = f"{self.manifest.dataset.queries} queries"
        return f"<Results {self.manifest.name!r}: {retrievers}, {queries}>"

    def rankings(self, retriever: str) -> dict[str, Ranking]:
        """The rankings of one retriever, by query id; of the first trial."""
        return self.trials(retriever)[0]

    def trials(self, retriever: str) -> tuple[dict[str, Ranking], ...]:
        """The rankings of one retriever by query id, of each trial."""
        # One string for each document, however often it is a hit, saves memory.
        strings: dict[str, str] = {}
        trials: dict[int, dict[str, Ranking]] = {1: {}}
        for query_id, ranking, trial in self._read_trials(retriever):
            doc_ids = map(strings.setdefault, ranking.doc_ids, ranking.doc_ids)
            rankings = trials.setdefault(trial, {})
            rankings[query_id] = replace(ranking, doc_ids=tuple(doc_ids))
        return tuple(trials[trial] for trial in sorted(trials))

    def iter_rankings(self, retriever: str) -> Iterator[QueryRanking]:
        """The rankings of one retriever's first trial as a stream.

        Raises:
            InputError: there is no such retriever; the file was changed.
        """
        rows = self._read_trials(retriever)
        return (
            QueryRanking(row.query_id, row.ranking) for row in rows if row.trial == 1
        )

    def _read_trials(self, retriever: str) -> Iterator[TrialRanking]:
        if retriever not in self.retrievers:
            problem = f"no retriever is called {retriever!r}"
            remedy = did_you_mean(str(retriever), self.retrievers)
            raise InputError(Problem(str(self.folder), problem, remedy))
        return read_unchanged_rows(
            self.folder,
            self.manifest,
            f"rankings/{retriever}.jsonl",
            ranking_from_json,
        )

    def run(self, retriever: str) -> Run:
        """The run of a retriever that finished, with its costs, notes and facts."""
        quality = self.manifest.ledger.retrievers[retriever]
        stages: dict[str, StageTotals] = {}
        latency: dict[str, StageLatency] = {}
        for row in self.cost_rows:
            if row.retriever != retriever:
                continue
            counts = {**row.counts, **quality.counts.get(row.stage, {})}
            stages[row.stage] = StageTotals(row.seconds, counts)
            if row.latency is not None:
                latency[row.stage] = row.latency
        first_trial, *further_trials = self.trials(retriever)
        return Run(
            retriever,
            first_trial,
            further_trials=tuple(further_trials),
            stages=stages,
            notes=quality.notes,
            facts=self.manifest.retrievers[retriever].provenance,
            latency=latency,
        )


def read_results(folder: str | Path) -> Results:
    """Read a results folder.

    Raises:
        InputError: it is not a results folder, or a file is missing, changed or
            unreadable; rankings are only checked when they are read.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    refuse_outside_links(folder)
    labelled_queries = read_unchanged_rows(
        folder, manifest, "labels.jsonl", labelled_query_from_json
    )
    queries = {labelled.query.id: labelled for labelled in labelled_queries}
    refuse_changed_file(folder, manifest, "qrels.trec")
    documents = read_unchanged_rows(
        folder, manifest, "documents.jsonl", document_from_json
    )
    documents_by_id = {document.id: document for document in documents}
    for name in TABLE_NAMES:
        refuse_changed_file(folder, manifest, f"{name}.csv")
    if has_properties(manifest):
        refuse_changed_file(folder, manifest, PROPERTIES_FILE)
    return Results(folder, manifest, queries, documents_by_id)


def holds_results_folders(folder: Path) -> bool:
    """Whether a folder is no results folder, but has one, complete or damaged."""
    if not folder.is_dir() or (folder / "manifest.json").exists():
        return False
    return any(folder.glob("*/manifest.json"))


def read_complete_manifest(folder: Path) -> Manifest:
    """Read a folder's manifest, and check that its other files exist.

    Raises:
        InputError: it is not a results folder, or a part of it is missing.
    """
    manifest = read_manifest(folder)
    refuse_outside_links(folder)
    problems: list[Problem] = []
    for stored in manifest.file_digests:
        name = stored.path
        # A missing evaluation is computed again.
        if name != "evaluation.json" and not (folder / name).is_file():
            where = str(folder / name)
            problems.append(Problem(where, "is missing", RUN_AGAIN_REMEDY))
    if problems:
        raise InputError(problems)
    return manifest
