"""An experiment file to a LoadedExperiment.

The tables are read, the paths in them found (`locate`), and the tables and measures
checked (`parse`, `parse_measures`); all problems are raised together. A list of data
sets makes one experiment each, with the name of the data set.
"""

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from harness.dataset import DatasetReference, suggest_path
from harness.dataset.listing import is_run_folder
from harness.english import count_of
from harness.experiment.experiment import Experiment
from harness.experiment.locate import (
    locate,
    locate_dataset,
    parse_dataset_config,
)
from harness.experiment.parse import parse_experiment
from harness.experiment.parse_measures import (
    MeasuredExperiment,
    measure_problems,
    parse_measures,
)
from harness.experiment.raw_table import RawTable
from harness.experiment.retriever_config import NAME_PATTERN, ConversationConfig
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.options.tables import NAME_RULE

SEVERAL_SETS_REMEDY = "harness run and check take several; in Python harness.run_sets"
PATH_OF_TABLES = Path("experiment")
"""The path of an experiment that is built in code."""


class LoadedExperiment(NamedTuple):
    """An experiment, its tables as they were written, and its data set."""

    question: MeasuredExperiment
    """The experiment with its measures."""
    tables: RawTable
    """What was written, without defaults; of a list of data sets only this one."""
    path: Path
    """The experiment file; `PATH_OF_TABLES` if there is none."""
    dataset: DatasetReference
    """Where the data set is; nothing of it has been read."""
    set_of: str = ""
    """The name of the experiment whose list of data sets has this one; else empty."""

    @property
    def experiment(self) -> Experiment:
        """The experiment itself."""
        return self.question.experiment


class _Origin(NamedTuple):
    """The origin of an experiment's tables."""

    path: Path
    is_file: bool
    """Whether problems begin with the path: tables that are built in code have none."""
    allow_code: bool


class _NamedDataset(NamedTuple):
    """One entry of a list of data sets."""

    name: str
    table: Any


def load(
    source: str | Path | Mapping[str, Any] | Experiment | LoadedExperiment,
    *,
    allow_code: bool = True,
) -> LoadedExperiment:
    """Read and check an experiment on one data set.

    Args:
        source: an experiment file; or its tables, or an Experiment without a sweep,
            built in code: then paths are relative to the working directory. A
            LoadedExperiment is returned unchanged.
        allow_code: whether it may run code: a Python function, a kind of another
            package, a model's own code.

    Raises:
        InputError: with the problems of all tables, each with its key; or it has a list
            of data sets.
    """
    if isinstance(source, LoadedExperiment):
        return source
    sets = load_sets(source, allow_code=allow_code)
    if sets[0].set_of:
        problem = f"is a list of {count_of(len(sets), 'data set')}, and this takes one"
        where = f"{sets[0].path}: dataset"
        raise InputError(Problem(where, problem, SEVERAL_SETS_REMEDY))
    return sets[0]


def load_sets(
    source: str | Path | Mapping[str, Any] | Experiment, *, allow_code: bool = True
) -> list[LoadedExperiment]:
    """Read and check an experiment on one data set, or on several.

    If its `dataset` is a list, there is one experiment for each, with the name of the
    data set. Else there is one, and its `set_of` is empty.

    Raises:
        InputError: with the problems of all tables, each with its key.
    """
    if isinstance(source, Mapping | Experiment):
        origin = _Origin(PATH_OF_TABLES, is_file=False, allow_code=allow_code)
        tables = _tables_of(source)
    else:
        origin = _Origin(Path(source), is_file=True, allow_code=allow_code)
        tables = _read_tables(origin.path)
    datasets = tables.get("dataset")
    if not isinstance(datasets, list):
        return [_load_tables(tables, origin)]
    experiment_name = tables.text("name")
    if not re.fullmatch(NAME_PATTERN, experiment_name):
        # It leads to a folder: raise its problem before those of the data sets.
        _load_tables(tables.with_options(dataset="."), origin)
    sets: list[LoadedExperiment] = []
    problems: list[Problem] = []
    for name, table in _name_datasets(datasets, origin.path):
        set_tables = tables.with_options(name=name, dataset=table)
        with collect_errors(problems):
            loaded = _load_tables(set_tables, origin)
            sets.append(loaded._replace(set_of=experiment_name))
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return sets


def _name_datasets(entries: Sequence[Any], path: Path) -> list[_NamedDataset]:
    """Return the data sets of a list, each with its own name or that of its path.

    Raises:
        InputError: a name is not a folder's, or occurs twice; or the list is empty.
    """
    datasets: list[_NamedDataset] = []
    names: set[str] = set()
    for number, entry in enumerate(entries):
        where = f"{path}: dataset[{number}]"
        dataset = _name_dataset(entry)
        name = dataset.name
        example = '{ path = "…", name = "…" }'
        if not isinstance(name, str) or not re.fullmatch(NAME_PATTERN, name):
            problem = f"{name!r} is not a name of a folder, which has {NAME_RULE}"
            raise InputError(Problem(where, problem, f"name it: {example}"))
        if name.lower() in names:
            problem = f"{name!r} occurs twice"
            raise InputError(
                Problem(where, problem, f"give it another name: {example}")
            )
        names.add(name.lower())
        datasets.append(dataset)
    if not datasets:
        remedy = "name one data set, or several"
        raise InputError(Problem(f"{path}: dataset", "is an empty list", remedy))
    return datasets


def _name_dataset(entry: Any) -> _NamedDataset:
    table = RawTable.read(entry)
    if table is None:
        return _NamedDataset(PurePosixPath(str(entry)).stem, entry)
    path_name = PurePosixPath(str(table.get("path"))).stem
    return _NamedDataset(table.get("name") or path_name, table.without("name").options)


def _load_tables(tables: RawTable, origin: _Origin) -> LoadedExperiment:
    """Check the tables of an experiment, and find its data set.

    Raises:
        InputError: with the problems of all tables.
    """
    located = locate(tables, origin.path)
    problems: list[Problem] = []
    question = None
    with collect_errors(problems):
        experiment = parse_experiment(
            located.tables.options, allow_code=origin.allow_code
        )
        question = parse_measures(experiment)
    prefix = ""
    if origin.is_file:
        prefix = f"{origin.path}: "
        problems = [_with_prefix(problem, prefix) for problem in problems]
    problems += located.problems
    if question is None:
        # If the tables have errors, `parse_measures` was not called.
        for problem in measure_problems(tables, prefix):
            if problem not in problems:
                problems.append(problem)
    if problems or question is None or located.dataset is None:
        raise InputError(problems)
    return LoadedExperiment(question, tables, origin.path, located.dataset)


def _with_prefix(problem: Problem, prefix: str) -> Problem:
    return problem._replace(where=f"{prefix}{problem.where}".removesuffix(": "))


def find_reference(path: Path) -> tuple[DatasetReference, bool]:
    """Return the data set of a file, and whether unknown labels are dropped.

    The file may have errors elsewhere.

    Raises:
        InputError: the file is not TOML, or its data set does not exist.
    """
    tables = _read_tables(path)
    relevance = tables.table("relevance")
    drops = relevance is not None and relevance.get("dangling") == "drop"
    return locate_dataset(parse_dataset_config(tables), path), drops


def _read_tables(path: Path) -> RawTable:
    """Return the tables of an experiment file; InputError if it is not TOML."""
    try:
        return RawTable(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        remedy = _unreadable_remedy(path)
    except UnicodeDecodeError:
        problem = "is not UTF-8"
        remedy = "save the file as UTF-8"
    except (ValueError, RecursionError) as error:
        problem = f"is not TOML: {error}"
        remedy = ""
    raise InputError(Problem(str(path), problem, remedy))


def _unreadable_remedy(path: Path) -> str:
    """Return what helps if a path is no file of an experiment."""
    folder = shlex.quote(str(path))
    if is_run_folder(path):
        return f"it is a results folder: harness report {folder} shows what it says"
    remedy = "give the path of an experiment, a .toml file"
    if path.is_dir():
        return f"{remedy}; harness init {folder} writes one"
    return suggest_path(path) or remedy


def _tables_of(source: Mapping[str, Any] | Experiment) -> RawTable:
    """Return the tables of an experiment built in code, as a file would have them.

    Raises:
        InputError: it is an Experiment with a sweep, which a file does not list.
    """
    tables = source
    if isinstance(source, Experiment):
        if source.sweep is not None:
            problem = "is written out: its configurations are retrievers already"
            remedy = "give the file of the experiment, or its tables"
            raise InputError(Problem("sweep", problem, remedy))
        tables = source.resolved()
        # An Experiment that was not parsed has it in no table of a retriever.
        if source.conversation != ConversationConfig():
            tables["conversation"] = source.conversation.model_dump()
    return RawTable(_as_file_value(tables))


def _as_file_value(value: Any) -> Any:
    """Return nested values as TOML has them.

    None is left out; tuples become lists, paths texts, numpy's numbers Python's.
    """
    if isinstance(value, Mapping):
        return {
            key: _as_file_value(inner)
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list | tuple):
        return [_as_file_value(inner) for inner in value]
    if isinstance(value, np.number | np.bool_):
        return value.item()
    return value.as_posix() if isinstance(value, Path) else value
