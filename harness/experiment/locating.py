"""Where an experiment's files lie: its data set, and the saved runs among its retrievers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.dataset import DatasetReference, suggestion
from harness.experiment.model import DatasetTable
from harness.experiment.options import checked
from retrievers.errors import InputError, Problem


def locate(table: DatasetTable, path: Path) -> DatasetReference:
    """Find the data set: relative to the working directory, else to the nearest parent of the file that has it."""
    queries, match = (
        (value,) if isinstance(value, str) else value or () for value in (table.queries, table.match)
    )  # fmt: skip
    reference = DatasetReference(
        table.path, table.split, queries, table.format, table.documents, table.labels, table.columns, match
    )
    if reference.scheme:
        return reference
    tried = [Path(), *path.resolve().parents]
    place = next((folder / table.path for folder in tried if (folder / table.path).exists()), None)
    if place is None:
        near = suggestion(reference)
        looked = "looked in the working directory and in every folder above the experiment"
        remedy = f"{near} {looked}" if near.startswith("did you mean") else looked
        raise InputError(Problem(f"{path}: dataset", f"{table.path!r} does not exist", remedy))
    return replace(reference, path=place)


def with_runs_located(tables: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The tables of an experiment, saved runs named by where they are: looked for as the data set is."""
    entries = tables.get("retrievers")
    if not isinstance(entries, list):
        return dict(tables)
    tried = [Path(), *path.resolve().parents]

    def located(entry: Any) -> Any:
        path = entry.get("path") if isinstance(entry, Mapping) and entry.get("kind") == "run" else None
        if not isinstance(path, str):
            return entry
        place = next((folder / path for folder in tried if (folder / path).is_file()), Path(path))
        return {**entry, "path": place.as_posix()}

    return {**tables, "retrievers": list(map(located, entries))}


def with_files_located(tables: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The tables of an experiment, the data set too named by where it is: in full where that is outside of here."""
    located = with_runs_located(tables, path)
    try:
        reference = locate(dataset_table(tables), path)
    except InputError:
        return located  # nothing will be read
    if reference.scheme or not reference.folder.is_absolute():
        return located
    table = tables["dataset"]
    named = reference.folder.as_posix()
    return {**located, "dataset": named if isinstance(table, str) else {**table, "path": named}}


def dataset_table(tables: Mapping[str, Any]) -> DatasetTable:
    """The data set's table alone, so that a wrong path is told beside whatever else is wrong."""
    table = tables.get("dataset")
    return checked(DatasetTable, {"path": table} if isinstance(table, str) else table or {}, "dataset")
