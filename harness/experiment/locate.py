"""The paths that an experiment names."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.dataset import DatasetReference, suggest_path
from harness.experiment.experiment_tables import DatasetConfig
from retrievers.errors import InputError, Problem
from retrievers.options.tables import validated


def locate_dataset(table: DatasetConfig, path: Path) -> DatasetReference:
    """Find the data set: relative to the working directory, else to the nearest parent of the file that has it."""
    queries, match = (
        (one,) if isinstance(one, str) else one or ()
        for one in (table.queries, table.match)
    )
    columns = {
        kind: name if isinstance(name, str) else ",".join(name)
        for kind, name in table.columns.items()
    }
    reference = DatasetReference(
        table.path,
        table.split,
        queries,
        table.format,
        table.documents,
        table.labels,
        columns,
        match,
        table.header,
    )
    if reference.scheme:
        return reference
    tried = [Path(), *path.resolve().parents]
    place = next(
        (folder / table.path for folder in tried if (folder / table.path).exists()),
        None,
    )
    if place is None:
        looked = (
            "looked in the working directory and in every folder above the experiment"
        )
        remedy = f"{suggest_path(reference.folder)} {looked}".lstrip()
        raise InputError(
            Problem(f"{path}: dataset", f"{table.path!r} does not exist", remedy)
        )
    return replace(reference, path=place)


def with_run_paths(tables: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The tables of an experiment, saved runs named by where they are: looked for as the data set is."""
    entries = tables.get("retrievers")
    if not isinstance(entries, list):
        return dict(tables)
    tried = [Path(), *path.resolve().parents]

    def located(entry: Any) -> Any:
        of = entry.get("of") if isinstance(entry, Mapping) else None
        if isinstance(of, list | Mapping):
            return {
                **entry,
                "of": list(map(located, of)) if isinstance(of, list) else located(of),
            }
        path = (
            entry.get("path")
            if isinstance(entry, Mapping) and entry.get("kind") == "run"
            else None
        )
        if not isinstance(path, str):
            return entry
        place = next(
            (folder / path for folder in tried if (folder / path).is_file()), Path(path)
        )
        return {**entry, "path": place.as_posix()}

    return {**tables, "retrievers": list(map(located, entries))}


def parse_dataset_config(tables: Mapping[str, Any]) -> DatasetConfig:
    """The data set's table alone, so that a wrong path is reported with whatever else is wrong."""
    table = tables.get("dataset")
    return validated(
        DatasetConfig,
        {"path": table} if isinstance(table, str) else table or {},
        "dataset",
    )
