"""The paths that an experiment names.

These are of its data set and of saved runs; parts of the data set are found in it.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset import DatasetReference, DeclaredColumn, suggest_path
from harness.experiment.experiment_tables import DatasetConfig
from harness.experiment.raw_table import RawTable
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.options.tables import validated


class LocatedTables(NamedTuple):
    """The tables of an experiment, the paths in them found."""

    tables: RawTable
    dataset: DatasetReference | None
    """None if it does not exist, or its table has an error."""
    problems: list[Problem]
    """That the data set does not exist; the errors of its table are left to `parse`."""


def locate(tables: RawTable, path: Path) -> LocatedTables:
    """Find the data set and the saved runs that the tables of a file name."""
    located = with_run_paths(tables, path)
    try:
        config = parse_dataset_config(tables)
    except InputError:
        return LocatedTables(located, None, [])
    dataset = None
    problems: list[Problem] = []
    with collect_errors(problems):
        dataset = locate_dataset(config, path)
    return LocatedTables(located, dataset, problems)


def locate_dataset(table: DatasetConfig, path: Path) -> DatasetReference:
    """Return the data set of an experiment file.

    A path is relative to the working directory, else to the nearest folder above the
    file that has it.

    Raises:
        InputError: the path does not exist.
    """
    columns = tuple(
        DeclaredColumn(kind, name if isinstance(name, str) else ",".join(name))
        for kind, name in table.columns.items()
    )
    reference = DatasetReference(
        path=table.path,
        split=table.split,
        queries=_as_tuple(table.queries),
        format=table.format,
        documents=table.documents,
        labels=table.labels,
        columns=columns,
        match=_as_tuple(table.match),
        header=table.header,
        gitignore=table.gitignore,
        pages=table.pages,
        where={column: _as_tuple(value) for column, value in table.where.items()},
    )
    if reference.scheme:
        return reference
    for candidate in _candidate_paths(table.path, path):
        # Folders may have a # in their names, too.
        workbook, _, _sheet = str(candidate).rpartition("#")
        if candidate.exists() or Path(workbook).is_file():
            return replace(reference, path=candidate)
    remedy = "looked in the working directory and in every folder above the experiment"
    remedy = f"{suggest_path(reference.folder)} {remedy}".lstrip()
    problem = f"{table.path!r} does not exist"
    raise InputError(Problem(f"{path}: dataset", problem, remedy))


def _as_tuple(names: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    return names or ()


def _candidate_paths(name: str, experiment_path: Path) -> Iterator[Path]:
    """Yield the paths that a name in an experiment file may mean, in order."""
    for folder in (Path(), *experiment_path.resolve().parents):
        yield folder / name


def with_run_paths(tables: RawTable, path: Path) -> RawTable:
    """Return the tables of an experiment with the paths of its saved runs.

    These are searched for like the data set.
    """
    entries = tables.get("retrievers")
    if not isinstance(entries, list):
        return tables
    located = [_with_run_path(entry, path) for entry in entries]
    return tables.with_options(retrievers=located)


def _with_run_path(entry: Any, experiment_path: Path) -> Any:
    """Return a retriever's table with the path of its run, and of those it uses."""
    table = RawTable.read(entry)
    if table is None:
        return entry
    of = table.get("of")
    if isinstance(of, list):
        parts = [_with_run_path(part, experiment_path) for part in of]
        return table.with_options(of=parts).options
    if table.table("of"):
        return table.with_options(of=_with_run_path(of, experiment_path)).options
    name = table.get("path")
    if table.get("kind") != "run" or not isinstance(name, str):
        return entry
    candidates = _candidate_paths(name, experiment_path)
    run_path = next((path for path in candidates if path.is_file()), Path(name))
    return table.with_options(path=run_path.as_posix()).options


def parse_dataset_config(tables: RawTable) -> DatasetConfig:
    """Check the table of the data set.

    It is checked alone: a wrong path is reported together with errors elsewhere.

    Raises:
        InputError: with every problem of the table.
    """
    table = tables.get("dataset")
    if isinstance(table, str):
        table = {"path": table}
    return validated(DatasetConfig, table or {}, "dataset")
