"""An experiment file to a LoadedExperiment."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from harness.dataset import DatasetReference
from harness.experiment.experiment import Experiment
from harness.experiment.locate import (
    locate_dataset,
    parse_dataset_config,
    with_run_paths,
)
from harness.experiment.parse import parse_experiment
from harness.experiment.parse_measures import (
    MeasuredExperiment,
    measure_problems,
    parse_measures,
)
from harness.experiment.retriever_config import NAME_PATTERN
from retrievers.errors import InputError, Problem, collect_errors
from retrievers.options.tables import NAME_RULE

SEVERAL_SETS_REMEDY = "harness run and check take several; in Python harness.run_sets"


class LoadedExperiment(NamedTuple):
    """An experiment, what was written for it, and where its data set is."""

    question: MeasuredExperiment
    tables: Mapping[str, Any]
    path: Path
    dataset: DatasetReference
    set_of: str = ""
    """The name of the experiment that has several data sets, this being one of them; "" for an experiment with one."""

    @property
    def experiment(self) -> Experiment:
        """The experiment itself."""
        return self.question.experiment


def load(
    source: str | Path | Mapping[str, Any] | Experiment | LoadedExperiment,
    *,
    allow_code: bool = True,
) -> LoadedExperiment:
    """Read and check an experiment on one data set.

    Args:
        source: an experiment file; or its tables, or an Experiment, built in code: paths are then seen from the
            working directory. What is loaded already stays as it is.
        allow_code: whether it may name code that is run: a Python function, a kind of another package, a model's own code.

    Raises:
        InputError: with every problem that was found, each with its key; or it names several data sets.
    """
    if isinstance(source, LoadedExperiment):
        return source
    sets = load_sets(source, allow_code=allow_code)
    if sets[0].set_of:
        what = f"names {len(sets)} data sets, and this takes one"
        raise InputError(Problem(f"{sets[0].path}: dataset", what, SEVERAL_SETS_REMEDY))
    return sets[0]


def load_sets(
    source: str | Path | Mapping[str, Any] | Experiment, *, allow_code: bool = True
) -> list[LoadedExperiment]:
    """As `load`; of an experiment whose `dataset` is a list, one for each, named as the data set is."""
    built = isinstance(source, Mapping | Experiment)
    path = (
        Path("experiment") if isinstance(source, Mapping | Experiment) else Path(source)
    )
    tables = (
        _tables(source) if isinstance(source, Mapping | Experiment) else _read(path)
    )
    if not isinstance(tables.get("dataset"), list):
        return [_loaded(tables, path, built=built, code=allow_code)]
    sets: list[LoadedExperiment] = []
    problems: list[Problem] = []
    within = str(tables.get("name", ""))
    if not re.fullmatch(NAME_PATTERN, within):  # it leads to a folder
        _loaded({**tables, "dataset": "."}, path, built=built, code=allow_code)
    for name, table in _each(tables["dataset"], path):
        one = {**tables, "name": name, "dataset": table}
        with collect_errors(problems):
            sets.append(
                _loaded(one, path, built=built, code=allow_code)._replace(set_of=within)
            )
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return sets


def _each(listed: Sequence[Any], path: Path) -> list[tuple[str, Any]]:
    """The data sets of a list, each with its name: the one that it is given, else the last part of its path."""
    sets: list[tuple[str, Any]] = []
    for place, entry in enumerate(listed):
        table = dict(entry) if isinstance(entry, Mapping) else {"path": entry}
        name = table.pop("name", None) or PurePosixPath(str(table.get("path"))).stem
        where, remedy = f"{path}: dataset[{place}]", '{ path = "…", name = "…" }'
        if not isinstance(name, str) or not re.fullmatch(NAME_PATTERN, name):
            what = f"{name!r} is not a name of a folder, which has {NAME_RULE}"
            raise InputError(Problem(where, what, f"name it: {remedy}"))
        if name.lower() in [known.lower() for known, _ in sets]:
            raise InputError(
                Problem(
                    where, f"{name!r} occurs twice", f"give it another name: {remedy}"
                )
            )
        sets.append((name, table if isinstance(entry, Mapping) else entry))
    if not sets:
        raise InputError(
            Problem(
                f"{path}: dataset", "is an empty list", "name one data set, or several"
            )
        )
    return sets


def _loaded(
    tables: dict[str, Any], path: Path, *, built: bool, code: bool
) -> LoadedExperiment:
    problems: list[Problem] = []
    question = table = dataset = None
    with collect_errors(problems):
        question = parse_measures(
            parse_experiment(with_run_paths(tables, path), allow_code=code)
        )
    if not built:
        problems = [
            one._replace(where=f"{path}: {one.where}".removesuffix(": "))
            for one in problems
        ]
    with suppress(InputError):  # what is wrong with its table is reported above
        table = parse_dataset_config(tables)
    with collect_errors(problems):
        dataset = None if table is None else locate_dataset(table, path)
    if question is None:
        problems += [
            p
            for p in measure_problems(tables, "" if built else f"{path}: ")
            if p not in problems
        ]
    if problems or question is None or dataset is None:
        raise InputError(problems)
    return LoadedExperiment(question, tables, path, dataset)


def find_reference(path: Path) -> tuple[DatasetReference, bool]:
    """Find the data set of an experiment file that may be wrong elsewhere, and whether dangling labels are dropped.

    Raises:
        InputError: the file is not TOML, or its data set cannot be found.
    """
    tables = _read(path)
    relevance = tables.get("relevance")
    drops = isinstance(relevance, Mapping) and relevance.get("dangling") == "drop"
    return locate_dataset(parse_dataset_config(tables), path), drops


def _read(path: Path) -> dict[str, Any]:
    """The tables of an experiment file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        remedy = "give the path of an experiment, a .toml file"
        raise InputError(
            Problem(str(path), f"cannot be read: {error.strerror}", remedy)
        ) from None
    except UnicodeDecodeError:
        raise InputError(
            Problem(str(path), "is not UTF-8", "save the file as UTF-8")
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(str(path), f"is not TOML: {error}")) from None


def _tables(source: Mapping[str, Any] | Experiment) -> dict[str, Any]:
    """The tables of an experiment built in code, as a file would hold them."""
    return dict(
        _without_none(source.resolved() if isinstance(source, Experiment) else source)
    )


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _without_none(inner)
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list | tuple):
        return [_without_none(inner) for inner in value]
    return value.as_posix() if isinstance(value, Path) else value
