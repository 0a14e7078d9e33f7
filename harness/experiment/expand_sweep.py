"""A sweep written out."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

from harness.experiment.experiment_tables import SweepConfig
from harness.experiment.value_labels import label_axis
from harness.experiment.variants import RetrieverEntry
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options.tables import validated

MAX_SWEEP_CONFIGURATIONS = 500
UNSWEPT_KEYS = ("name", "variants", "derive")
"""Keys of a retriever's table that its configurations do not have."""

AcceptsTable = Callable[[Mapping[str, Any]], bool]
"""Whether a retriever's table has no error."""
RetrieverTables = Mapping[str, Mapping[str, Any]]
"""Retriever -> its table, as it is written."""


class _Axis(NamedTuple):
    """One key that takes several values."""

    key: str
    targets: Mapping[str, frozenset[str]]
    """Retriever in `of` -> the tables that have the key: its own, or its parts'."""
    path: tuple[str, ...]
    values: tuple[Any, ...]
    labels: tuple[str, ...]
    """The values in names of configurations."""


def expand_sweep(
    tables: Mapping[str, Any], accepts: AcceptsTable
) -> tuple[dict[str, Any], list[RetrieverEntry]]:
    """Return the tables of an experiment with its sweep, and the configurations.

    In the tables, `sweep` has the form of `Sweep`, and the default is the baseline if
    there is none. The configurations are retrievers. An axis varies every retriever in
    `of` whose table has the key; of one that has it not, those of its parts that do.

    Args:
        tables: as they are written.
        accepts: whether a retriever's table has no error.

    Raises:
        InputError: with every problem of `[sweep]`.

    >>> base = {"name": "words", "kind": "bm25", "k1": 0.9}
    >>> sweep = {"default": "words", "of": "words", "k1": [0.9, 1.2], "b": [0, 0.4]}
    >>> tables = {"retrievers": [base], "sweep": sweep}
    >>> _, entries = expand_sweep(tables, lambda table: True)
    >>> [entry.table["name"] for entry in entries]
    ['words[0.9, 0]', 'words[0.9, 0.4]', 'words[1.2, 0]', 'words[1.2, 0.4]']
    """
    retrievers = _retriever_tables(tables.get("retrievers"))
    sweep = _parse_sweep(tables["sweep"], retrievers)
    of = (sweep.of,) if isinstance(sweep.of, str) else sweep.of
    unknown = [name for name in of if name not in retrievers]
    if unknown:
        raise InputError([_unknown_retriever(name, retrievers) for name in unknown])
    axes = _read_axes(sweep.model_extra or {}, of, retrievers, accepts)
    writer = _ConfigurationWriter(retrievers, axes)
    count = sum(map(writer.count_configurations, of))
    if count > MAX_SWEEP_CONFIGURATIONS:
        limit = f"at most {MAX_SWEEP_CONFIGURATIONS} are run"
        problem = f"makes {count:,} configurations; {limit}"
        raise InputError(Problem("sweep", problem, "leave out values, or an axis"))
    configurations: dict[str, dict[str, int]] = {}
    for number, retriever in enumerate(of):
        of_choice = {"of": number} if len(of) > 1 else {}
        retriever_axes = writer.axes_of(retriever)
        for choices in _choices(retriever_axes):
            name = writer.write(retriever, choices)
            configurations[name] = {**of_choice, **choices}
    values_by_axis: dict[str, tuple[Any, ...]] = {"of": of} if len(of) > 1 else {}
    values_by_axis |= {axis.key: axis.values for axis in axes}
    expanded_sweep = {
        "default": sweep.default,
        "of": of,
        "axes": values_by_axis,
        "configurations": configurations,
    }
    expanded = {"baseline": sweep.default, **tables, "sweep": expanded_sweep}
    return expanded, writer.entries()


def _retriever_tables(entries: Any) -> RetrieverTables:
    """Return the tables of retrievers that have a name."""
    retrievers: dict[str, Mapping[str, Any]] = {}
    for entry in entries if isinstance(entries, Sequence) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            retrievers[entry["name"]] = entry
    return retrievers


def _parse_sweep(table: Any, retrievers: RetrieverTables) -> SweepConfig:
    """Check the table of a sweep; InputError if it has errors."""
    if not isinstance(table, Mapping) or "default" not in table:
        names = ", ".join(map(repr, retrievers)) or "one of [[retrievers]]"
        remedy = f"name the retriever in use today: {names}"
        raise InputError(Problem("sweep.default", "is missing", remedy))
    return validated(SweepConfig, table, "sweep")


def _unknown_retriever(name: str, retrievers: RetrieverTables) -> Problem:
    remedy = did_you_mean(name, retrievers)
    return Problem("sweep.of", f"{name!r} is not a retriever", remedy)


def _choices(axes: Sequence[_Axis]) -> Iterator[dict[str, int]]:
    """Yield every choice of one value per axis: axis -> the index of its value."""
    keys = [axis.key for axis in axes]
    for indices in product(*(range(len(axis.values)) for axis in axes)):
        yield dict(zip(keys, indices, strict=True))


class _ConfigurationWriter:
    """Writes the tables of configurations, and of the retrievers that they use."""

    def __init__(self, retrievers: RetrieverTables, axes: Sequence[_Axis]) -> None:
        self._retrievers = retrievers
        self._axes = axes
        self._tables: dict[str, dict[str, Any]] = {}

    def axes_of(self, retriever: str) -> list[_Axis]:
        """Return the axes that vary a retriever in `of`, or its parts."""
        return [axis for axis in self._axes if axis.targets[retriever]]

    def count_configurations(self, retriever: str) -> int:
        """Return how many choices of one value per axis there are."""
        return math.prod(len(axis.values) for axis in self.axes_of(retriever))

    def write(self, swept: str, choices: Mapping[str, int]) -> str:
        """Write one configuration of a retriever in `of`, and return its name.

        If it is the same as the retriever's table, it is that retriever.
        """
        return self._write_part(swept, swept, choices)

    def _write_part(self, part: str, swept: str, choices: Mapping[str, int]) -> str:
        """Write a part of a configuration, or the configuration itself."""
        own_parts = _parts_of(part, self._retrievers)
        axes = [axis for axis in self._axes if axis.targets[swept] & own_parts]
        if not axes:
            return part
        base = {
            key: option
            for key, option in self._retrievers[part].items()
            if key not in UNSWEPT_KEYS
        }
        table = deepcopy(base)
        for axis in axes:
            if part in axis.targets[swept]:
                _set_value(table, axis, axis.values[choices[axis.key]])
        of = table.get("of")
        if isinstance(of, str):
            table["of"] = self._write_part(of, swept, choices)
        elif isinstance(of, Sequence):
            table["of"] = [self._write_part(name, swept, choices) for name in of]
        if table == base:
            return part
        labels = [axis.labels[choices[axis.key]] for axis in axes]
        name = f"{part}[{', '.join(labels)}]"
        self._tables[name] = {"name": name, **table}
        return name

    def entries(self) -> list[RetrieverEntry]:
        """Return the tables, each with its place."""
        return [
            RetrieverEntry(f"sweep: {name}", table)
            for name, table in self._tables.items()
        ]


def _read_axes(
    options: Mapping[str, Any],
    of: Sequence[str],
    retrievers: RetrieverTables,
    accepts: AcceptsTable,
) -> list[_Axis]:
    """Return the axes of a sweep.

    Raises:
        InputError: with the problem of each axis, or there is none.
    """
    axes: list[_Axis] = []
    problems: list[Problem] = []
    # TOML writes tables last, and a manifest's experiment is written as TOML to be
    # reproduced: so the order of axes, and their names, stay the same.
    for key in sorted(options, key=lambda key: _holds_tables(options[key])):
        values = options[key]
        retriever, _, path = key.partition(".")
        is_part = (
            retriever in retrievers and path and retriever not in retrievers[of[0]]
        )
        if not is_part:
            path = key
        problem = _axis_problem(key, values) or _value_problem(key, path, values)
        if problem is not None:
            problems.append(problem)
            continue
        axis = _Axis(key, {}, tuple(path.split(".")), values, label_axis(values, path))
        if is_part:
            targets = _named_targets(retriever, of, retrievers)
        else:
            targets = _targets_with_key(axis, of, retrievers, accepts)
        if not any(targets.values()):
            text = f"{' and '.join(of)} does not use {retriever!r}"
            problems.append(Problem(f"sweep.{key}", text, "name a part of it"))
        axes.append(axis._replace(targets=targets))
    if not axes and not problems:
        remedy = 'name a key and its values, such as "chunk.size" = [128, 256]'
        problems = [Problem("sweep", "has no axis", remedy)]
    if problems:
        raise InputError(problems)
    return axes


def _named_targets(
    part: str, of: Sequence[str], retrievers: RetrieverTables
) -> dict[str, frozenset[str]]:
    """Return the retrievers in `of` that use a part, with it."""
    targets: dict[str, frozenset[str]] = {}
    for name in of:
        is_used = part in _parts_of(name, retrievers)
        targets[name] = frozenset({part} if is_used else ())
    return targets


def _targets_with_key(
    axis: _Axis,
    of: Sequence[str],
    retrievers: RetrieverTables,
    accepts: AcceptsTable,
) -> dict[str, frozenset[str]]:
    """Return each retriever in `of` with the tables that have an axis's key.

    If no table has it, it is a key of the first: the error then says so.
    """
    targets: dict[str, frozenset[str]] = {}
    for name in of:
        candidates = [name]
        if not _has_key(retrievers[name], axis, accepts):
            candidates = sorted(_parts_of(name, retrievers) - {name})
        targets[name] = frozenset(
            part
            for part in candidates
            if part in retrievers and _has_key(retrievers[part], axis, accepts)
        )
    if not any(targets.values()):
        targets[of[0]] = frozenset({of[0]})
    return targets


def _has_key(table: Mapping[str, Any], axis: _Axis, accepts: AcceptsTable) -> bool:
    """Whether a retriever's table may have an axis's key.

    That it has an error of its own does not count: it is reported with the others.
    """
    plain = {
        key: option
        for key, option in table.items()
        if key == "name" or key not in UNSWEPT_KEYS
    }
    if not accepts(plain):
        return True
    for value in axis.values:
        changed = deepcopy(plain)
        try:
            _set_value(changed, axis, value)
        except InputError:
            continue
        if changed != plain and accepts(changed):
            return True
    return False


def _axis_problem(key: str, values: Any) -> Problem | None:
    """Return the problem of an axis that is not a list of values."""
    if isinstance(values, Mapping):
        inner_key = next(iter(values), "…")
        remedy = f'quote the whole key: "{key}.{inner_key}" = […]'
        return Problem(f"sweep.{key}", "is a table", remedy)
    if not isinstance(values, tuple) or not values:
        problem = f"{values!r} is not a list of values"
        return Problem(f"sweep.{key}", problem, f'"{key}" = [128, 256]')
    return None


def _value_problem(key: str, path: str, values: tuple[Any, ...]) -> Problem | None:
    """Return the problem of a key that cannot be swept, or of a repeated value."""
    if path.split(".")[0] in (*UNSWEPT_KEYS, "of"):
        remedy = "name a key that changes what is found"
        return Problem(f"sweep.{key}", "cannot be swept", remedy)
    for number, value in enumerate(values):
        if value in values[:number]:
            problem = f"{value!r} occurs twice"
            return Problem(f"sweep.{key}", problem, "name each value once")
    return None


def _holds_tables(values: Any) -> bool:
    if not isinstance(values, tuple):
        return False
    return any(isinstance(value, Mapping) for value in values)


def _parts_of(
    retriever: str, retrievers: RetrieverTables, users: tuple[str, ...] = ()
) -> set[str]:
    """Return a retriever and all that it uses, if these are tables of the file.

    A circle is reported elsewhere.

    Args:
        retriever: its name.
        retrievers: the tables.
        users: the retrievers that use it.
    """
    parts = {retriever}
    if retriever not in retrievers or retriever in users:
        return parts
    of = retrievers[retriever].get("of", ())
    names = [of] if isinstance(of, str) else of
    for name in names if isinstance(names, Sequence) else ():
        if isinstance(name, str):
            parts |= _parts_of(name, retrievers, (*users, retriever))
    return parts


def _set_value(table: dict[str, Any], axis: _Axis, value: Any) -> None:
    """Set a key, which may be in nested tables; a chunk size of 0 is no chunk."""
    if axis.path == ("chunk", "size") and value == 0:
        table.pop("chunk", None)
        return
    *outer_keys, last_key = axis.path
    for key in outer_keys:
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            problem = f"{key} of {table.get('name')!r} is not a table"
            raise InputError(Problem(f"sweep.{axis.key}", problem, "write it as one"))
        table = inner
    table[last_key] = list(value) if isinstance(value, tuple) else value
