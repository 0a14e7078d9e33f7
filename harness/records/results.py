"""A results folder as one object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.dataset import Dataset, DatasetReference, load_dataset
from harness.experiment import DatasetConfig, locate_dataset
from harness.records.csv_table import (
    NUMBER_COLUMNS,
    TABLE_NAMES,
    read_table_columns,
    read_table_rows,
)
from harness.records.documents_file import (
    LabelledQuery,
    document_from_json,
    labelled_query_from_json,
)
from harness.records.manifest import Manifest
from harness.records.manifest_file import read_manifest
from harness.records.read_artifact import (
    RUN_AGAIN_REMEDY,
    ParsedRow,
    read_unchanged_rows,
    refuse_changed_file,
    refuse_outside_links,
    unreadable_file,
)
from harness.records.run import Run, StageLatency, ranking_from_json
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.files.text_files import file_digest
from retrievers.files.trec_files import read_qrels
from retrievers.meter import StageTotals
from retrievers.options.tables import validated
from retrievers.types import Document, Ranking

if TYPE_CHECKING:
    import pandas as pd


def is_results_folder(path: Path) -> bool:  # noqa: D103
    return (path / "manifest.json").is_file()


NO_SCORES = (
    "holds no scores: no query has labels",
    "harness pool draws what people are to judge",
)
"""What is wrong with results where scores are wanted, and what to do."""


def _frame(name: str) -> cached_property[pd.DataFrame]:
    """A table as a frame of pandas."""

    def read(results: Results) -> pd.DataFrame:
        import pandas as pd

        frame = pd.DataFrame(results.table(name, read_table_columns))
        return frame.astype(
            {column: "str" for column in frame if column not in NUMBER_COLUMNS}
        )

    return cached_property(read)


@dataclass(frozen=True, repr=False, eq=False)
class Results:
    """A results folder, read back; its tables when they are first asked for."""

    folder: Path
    manifest: Manifest
    queries: Mapping[str, LabelledQuery]
    """Every judged query, by id."""
    documents: Mapping[str, Document]
    """Title and text, as far as it was kept, of every document in the labels or in a top 20."""

    scores, summary, comparisons, tests, costs = map(_frame, TABLE_NAMES)

    @cached_property
    def score_columns(self) -> dict[str, list[Any]]:
        """The columns of scores.csv, without pandas, whose import takes as long as reading them."""
        return self.table("scores", read_table_columns)

    @cached_property
    def cost_rows(self) -> list[dict[str, Any]]:
        """The rows of costs.csv, likewise."""
        return self.rows("costs")

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table."""
        return self.table(name, read_table_rows)

    def table(self, name: str, read: Callable[[Path], ParsedRow]) -> ParsedRow:
        """A table, which must have the digest that the manifest has."""
        refuse_changed_file(self.folder, self.manifest, f"{name}.csv")
        path = self.folder / f"{name}.csv"
        try:
            return read(path)
        except (OSError, ValueError) as error:
            raise unreadable_file(path, error) from None

    @property
    def retrievers(self) -> tuple[str, ...]:
        """The retrievers that finished, in the experiment's order."""
        return self.manifest.finished

    @property
    def scored(self) -> bool:
        """Whether any query could be scored; without labels there are rankings, costs and overlap alone."""
        return self.manifest.dataset.scored > 0

    @property
    def run_label(self) -> str:
        """When this run began, and a digest of its manifest, which holds that of every other file."""
        return f"run of {self.manifest.started}, digest {file_digest(self.folder / 'manifest.json')[:12]}"

    def grades(self) -> dict[str, dict[str, int]]:
        """The labels after the grade rule, as qrels.trec has them; empty where claims alone were scored."""
        path = self.folder / "qrels.trec"
        return (
            {} if path.is_file() and not path.stat().st_size else dict(read_qrels(path))
        )

    def __repr__(self) -> str:
        about = f"{len(self.retrievers)} retrievers, {self.manifest.dataset.queries} queries"
        return f"<Results {self.manifest.name!r}: {about}>"

    def rankings(self, retriever: str) -> dict[str, Ranking]:
        """The rankings of one retriever, by query id."""
        ids: dict[
            str, str
        ] = {}  # one text for each document, however often it is a hit
        return {
            query: Ranking(
                tuple(map(ids.setdefault, one.doc_ids, one.doc_ids)), one.scores
            )
            for query, one in self.iter_rankings(retriever)
        }

    def iter_rankings(self, retriever: str) -> Iterator[tuple[str, Ranking]]:
        """The same as a stream.

        Raises:
            InputError: there is no such retriever; the file is not as it was written.
        """
        if retriever not in self.retrievers:
            what = f"no retriever is called {retriever!r}"
            raise InputError(
                Problem(
                    str(self.folder), what, did_you_mean(retriever, self.retrievers)
                )
            )
        return read_unchanged_rows(
            self.folder,
            self.manifest,
            f"rankings/{retriever}.jsonl",
            ranking_from_json,
        )

    def run(self, retriever: str) -> Run:
        """One retriever's run as it was: its rankings, costs, notes and provenance."""
        ledger = self.manifest.ledger.retrievers[retriever]
        rows = {
            row["stage"]: row for row in self.cost_rows if row["retriever"] == retriever
        }
        names = ("calls", "texts", "cached", "tokens", "usd")
        spent = {
            stage: {name: row[name] for name in names if row[name]}
            for stage, row in rows.items()
        }
        return Run(
            retriever,
            self.rankings(retriever),
            stages={
                stage: StageTotals(
                    row["seconds"], {**spent[stage], **ledger.counts.get(stage, {})}
                )
                for stage, row in rows.items()
            },
            notes=ledger.notes,
            provenance=self.manifest.retrievers[retriever].provenance,
            latency={
                stage: StageLatency(*(row[name] for name in StageLatency._fields))
                for stage, row in rows.items()
                if isinstance(row["measured_at"], str)
            },
        )


def read_results(folder: str | Path) -> Results:
    """Read a results folder.

    Raises:
        InputError: it is none, or a part of it is missing or cannot be read.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    refuse_outside_links(folder)
    labelled = {
        row.query.id: row
        for row in read_unchanged_rows(
            folder, manifest, "labels.jsonl", labelled_query_from_json
        )
    }
    refuse_changed_file(folder, manifest, "qrels.trec")
    documents = {
        row.id: row
        for row in read_unchanged_rows(
            folder, manifest, "documents.jsonl", document_from_json
        )
    }
    for name in TABLE_NAMES:
        refuse_changed_file(folder, manifest, f"{name}.csv")
    return Results(folder, manifest, labelled, documents)


def holds_results_folders(place: Path) -> bool:
    """Whether a folder is not a results folder itself, and holds one at least, whole or damaged."""
    return (
        place.is_dir()
        and not (place / "manifest.json").exists()
        and any(place.glob("*/manifest.json"))
    )


def read_complete_manifest(folder: Path) -> Manifest:
    """Read a folder's manifest; whether its other files are there is only looked at.

    Raises:
        InputError: it is not a results folder, or a part of it is missing.
    """
    manifest = read_manifest(folder)
    refuse_outside_links(folder)
    needed = (
        name for name in manifest.file_digests if name != "evaluation.json"
    )  # which is computed again
    if missing := [name for name in needed if not (folder / name).is_file()]:
        raise InputError(
            [
                Problem(str(folder / name), "is missing", RUN_AGAIN_REMEDY)
                for name in missing
            ]
        )
    return manifest


def current_dataset(results: Results) -> Dataset:
    """Return the data set as it is now; it may have moved with the experiment's file.

    Raises:
        InputError: it is not there any more, or cannot be read.
    """
    resolved = results.manifest.resolved
    return load_dataset(
        find_dataset(results),
        drop_dangling=resolved.relevance.get("dangling") == "drop",
    )


def find_dataset(results: Results) -> DatasetReference:
    """Return where the data set is: looked for from its experiment's file, and from the results folder.

    Raises:
        InputError: it is in neither place.
    """
    resolved = results.manifest.resolved
    # JSON has no tuples, as the tables of an experiment have.
    table = {
        key: tuple(one) if isinstance(one, list) else one
        for key, one in resolved.dataset.items()
    }
    declared = validated(
        DatasetConfig, table, f"{results.folder / 'manifest.json'}: resolved.dataset"
    )
    try:
        return locate_dataset(declared, Path(results.manifest.experiment_file))
    except InputError as absent:
        # The experiment's file may be named by a path that is right in another working directory alone.
        try:
            return locate_dataset(
                declared, results.folder.resolve() / "experiment.toml"
            )
        except InputError:
            raise absent from None
