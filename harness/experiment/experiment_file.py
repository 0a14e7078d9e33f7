"""Reads an experiment file, finds its data set and parses its measures; every problem is reported at once."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from harness import measures
from harness.dataset import DatasetReference, suggestion
from harness.experiment.blocks import NAME
from harness.experiment.model import DatasetTable, Experiment, Question, parse
from harness.measures import Measure
from retrievers.errors import InputError, Problem, collecting
from retrievers.options import NAME_RULE, checked

REMEDY = "harness run and check take several; in Python harness.run_sets"


class Loaded(NamedTuple):
    """An experiment, what was written for it, and where its data set is."""

    question: Question
    written: Mapping[str, Any]
    path: Path
    dataset: DatasetReference
    within: str = ""
    """The name of the experiment that has several data sets, this being one of them; "" for an experiment with one."""

    @property
    def experiment(self) -> Experiment:
        """The experiment itself."""
        return self.question.experiment


def load(
    source: str | Path | Mapping[str, Any] | Experiment | Loaded, *, code: bool = True
) -> Loaded:
    """Read and check an experiment on one data set.

    Args:
        source: an experiment file; or its tables, or an Experiment, built in code: paths are then seen from the
            working directory. What is loaded already stays as it is.
        code: whether it may name code that is run: a Python function, a kind of another package, a model's own code.

    Raises:
        InputError: with every problem that was found, each with its key; or it names several data sets.
    """
    if isinstance(source, Loaded):
        return source
    sets = load_sets(source, code=code)
    if sets[0].within:
        what = f"names {len(sets)} data sets, and this takes one"
        raise InputError(Problem(f"{sets[0].path}: dataset", what, REMEDY))
    return sets[0]


def load_sets(
    source: str | Path | Mapping[str, Any] | Experiment, *, code: bool = True
) -> list[Loaded]:
    """As `load`; of an experiment whose `dataset` is a list, one for each, named as the data set is."""
    built = isinstance(source, Mapping | Experiment)
    path = (
        Path("experiment") if isinstance(source, Mapping | Experiment) else Path(source)
    )
    tables = (
        _tables(source) if isinstance(source, Mapping | Experiment) else _read(path)
    )
    if not isinstance(tables.get("dataset"), list):
        return [_loaded(tables, path, built=built, code=code)]
    sets: list[Loaded] = []
    problems: list[Problem] = []
    within = str(tables.get("name", ""))
    if not re.fullmatch(NAME, within):  # it leads to a folder
        _loaded({**tables, "dataset": "."}, path, built=built, code=code)
    for name, table in _each(tables["dataset"], path):
        one = {**tables, "name": name, "dataset": table}
        with collecting(problems):
            sets.append(
                _loaded(one, path, built=built, code=code)._replace(within=within)
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
        if not isinstance(name, str) or not re.fullmatch(NAME, name):
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


def _loaded(tables: dict[str, Any], path: Path, *, built: bool, code: bool) -> Loaded:
    problems: list[Problem] = []
    question = table = dataset = None
    with collecting(problems):
        question = question_of(parse(with_runs_located(tables, path), code=code))
    if not built:
        problems = [
            one._replace(where=f"{path}: {one.where}".removesuffix(": "))
            for one in problems
        ]
    with suppress(InputError):  # what is wrong with its table is reported above
        table = dataset_table(tables)
    with collecting(problems):
        dataset = None if table is None else locate(table, path)
    if question is None:
        problems += [
            p
            for p in _wrong_measures(tables, "" if built else f"{path}: ")
            if p not in problems
        ]
    if problems or question is None or dataset is None:
        raise InputError(problems)
    return Loaded(question, tables, path, dataset)


def reference_in(path: Path) -> tuple[DatasetReference, bool]:
    """Find the data set of an experiment file that may be wrong elsewhere, and whether dangling labels are dropped.

    Raises:
        InputError: the file is not TOML, or its data set cannot be found.
    """
    tables = _read(path)
    relevance = tables.get("relevance")
    drops = isinstance(relevance, Mapping) and relevance.get("dangling") == "drop"
    return locate(dataset_table(tables), path), drops


def _wrong_measures(tables: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """The measures that cannot be read, told also where another key is wrong."""
    listed = tables.get("measures")
    for key, some in (
        ("primary", [tables.get("primary")]),
        ("measures", listed if isinstance(listed, list) else []),
    ):
        for text in (one for one in some if isinstance(one, str)):
            problems: list[Problem] = []
            with collecting(problems):
                measures.parse_all([text])
            yield from (
                one._replace(where=f"{where}{key}: {text!r}") for one in problems
            )


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


def question_of(experiment: Experiment) -> Question:
    """Parse the measures, and the primary one among them.

    Raises:
        InputError: one is unknown, looks deeper than `depth`, or the primary measure is not among them.
    """
    relevance, problems = experiment.relevance, list[Problem]()
    named: list[Measure] = []
    written: set[Measure] = (
        set()
    )  # without what rows put beside: RBP's residual may be named too
    for where, text in [
        ("primary", experiment.primary),
        *(("measures", text) for text in experiment.measures),
    ]:
        try:
            parsed = measures.parse_all(
                [text], gain=relevance.gain, ideal=relevance.ideal
            )
        except InputError as error:
            problems += [
                Problem(f"{where}: {text!r}", p.what, p.remedy) for p in error.problems
            ]
            continue
        if where == "measures" and parsed[0] in written:
            problems.append(
                Problem(where, f"{text} occurs twice", "name each measure once")
            )
        written |= {parsed[0]} if where == "measures" else set()
        named += parsed[:1] if where == "primary" else parsed
        if where == "measures" and (parsed[0].cutoff or 0) > experiment.depth:
            what = f"{text} needs depth {parsed[0].cutoff} or more; depth is {experiment.depth}"
            problems.append(Problem(where, what, "raise depth"))
    primary, others = (named[0], named[1:]) if named else (None, [])
    if not problems and primary not in others:
        known = ", ".join(experiment.measures)
        problems.append(
            Problem(
                "primary",
                f"{experiment.primary} is not among the measures",
                f"they are {known}",
            )
        )
    if experiment.judge is None and (
        claimed := [str(one) for one in others if one.claimed]
    ):
        remedy = (
            'say who judges whether a text entails a claim: [judge] kind = "lexical"'
        )
        problems.append(
            Problem(
                "judge", f"is missing: {claimed[0]} needs verdicts on claims", remedy
            )
        )
    if problems or primary is None:
        raise InputError(problems)
    return Question(experiment, tuple(dict.fromkeys(others)), primary)


def locate(table: DatasetTable, path: Path) -> DatasetReference:
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
        remedy = f"{suggestion(reference.folder)} {looked}".lstrip()
        raise InputError(
            Problem(f"{path}: dataset", f"{table.path!r} does not exist", remedy)
        )
    return replace(reference, path=place)


def with_runs_located(tables: Mapping[str, Any], path: Path) -> dict[str, Any]:
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


def dataset_table(tables: Mapping[str, Any]) -> DatasetTable:
    """The data set's table alone, so that a wrong path is reported with whatever else is wrong."""
    table = tables.get("dataset")
    return checked(
        DatasetTable,
        {"path": table} if isinstance(table, str) else table or {},
        "dataset",
    )
