"""A sweep written out.

Each choice of one value per axis becomes a retriever, such as `words[0.9, 0.4]`, with
copies of the parts that an axis varies. A choice that equals the swept retriever, or
the default, is that retriever, not a second one. `parse` checks all of them afterwards.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from harness.experiment.experiment_tables import Sweep, SweepConfig
from harness.experiment.raw_table import (
    NotATable,
    RawTable,
    RetrieverEntry,
    names_in_of,
)
from harness.experiment.retriever_config import RetrieverConfig
from harness.experiment.value_labels import label_axis
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options.tables import validated

MAX_SWEEP_CONFIGURATIONS = 500
"""More are refused: all their pairs are tested, 125,000 for 500."""
UNSWEPT_KEYS = ("name", "variants", "derive")
"""Keys of a retriever's table that its configurations do not take over."""

ReadsTable = Callable[[RawTable], RetrieverConfig | None]
"""Returns the retriever of a table, with all defaults; None if the table has an error.
"""


class ExpandedSweep(NamedTuple):
    """An experiment whose sweep is written out."""

    tables: RawTable
    """Tables of the experiment: `sweep` is a `Sweep`, and `baseline` is the sweep's
    default unless the file names another."""
    configurations: list[RetrieverEntry]
    """The retrievers that the sweep adds, with the parts that are copied for them.

    Without the configurations that equal a retriever of the file.
    """


class _AxisKey(NamedTuple):
    """The key of `[sweep]` that names an axis."""

    text: str
    """As it is written."""
    part: str
    """The retriever that the key names; empty if it names none."""
    path: str
    """The key in a retriever's table, such as `chunk.size`."""


class _Axis(NamedTuple):
    """One key that takes several values."""

    key: str
    targets: Mapping[str, frozenset[str]]
    """Retriever in `of` -> the tables that have the key: its own, or its parts'."""
    path: tuple[str, ...]
    values: tuple[Any, ...]
    labels: tuple[str, ...]
    """The values in names of configurations."""

    def removes_chunk(self, number: int) -> bool:
        """Whether a value is a chunk size of 0, which is no chunk."""
        return self.path == ("chunk", "size") and self.values[number] == 0

    def set_value(self, table: RawTable, number: int) -> RawTable:
        """Return a table with a value of the axis; a missing inner table is made.

        Raises:
            NotATable: the key is below one whose value is no table.
        """
        option = self.values[number]
        if self.removes_chunk(number):
            return table.without("chunk")
        if isinstance(option, tuple):
            option = list(option)
        return table.with_nested(self.path, option)


@dataclass(frozen=True, slots=True)
class _SweptRetrievers:
    """The retrievers of a file; a sweep varies some of them."""

    tables: Mapping[str, RawTable]
    of: tuple[str, ...]
    """The retrievers whose configurations are tried."""
    read_table: ReadsTable

    def parts_of(self, retriever: str, users: tuple[str, ...] = ()) -> set[str]:
        """Return a retriever and all that it uses, if these are tables of the file.

        A circle is reported elsewhere.

        Args:
            retriever: its name.
            users: the retrievers that use it.
        """
        parts = {retriever}
        if retriever not in self.tables or retriever in users:
            return parts
        for name in names_in_of(self.tables[retriever]):
            parts |= self.parts_of(name, (*users, retriever))
        return parts

    def read_key(self, key: str) -> _AxisKey:
        """Return what the key of an axis names: a part's key, or one of any table.

        A part may be called as a key is, such as `chunk`: then the key is meant if the
        first swept retriever has it.
        """
        part, _, path = key.partition(".")
        if part in self.tables and path and part not in self.tables[self.of[0]]:
            return _AxisKey(key, part, path)
        return _AxisKey(key, "", key)

    def named_targets(self, part: str) -> dict[str, frozenset[str]]:
        """Return the retrievers in `of` that use a part, with it."""
        targets: dict[str, frozenset[str]] = {}
        for name in self.of:
            is_used = part in self.parts_of(name)
            targets[name] = frozenset({part} if is_used else ())
        return targets

    def targets_with_key(self, axis: _Axis) -> dict[str, frozenset[str]]:
        """Return each retriever in `of` with the tables that have an axis's key.

        If no table has it, it is a key of the first: the error then says so.
        """
        targets: dict[str, frozenset[str]] = {}
        for name in self.of:
            candidates = [name]
            if not self._has_key(name, axis):
                candidates = sorted(self.parts_of(name) - {name})
            targets[name] = frozenset(
                part
                for part in candidates
                if part in self.tables and self._has_key(part, axis)
            )
        if not any(targets.values()):
            targets[self.of[0]] = frozenset({self.of[0]})
        return targets

    def _has_key(self, retriever: str, axis: _Axis) -> bool:
        """Whether a retriever's table may have an axis's key.

        It may if a value changes it to a table without errors; a chunk size of 0, say,
        changes no table without `chunk`. One with an error of its own may: that error
        is reported with the others.
        """
        table = self.tables[retriever].without("variants", "derive")
        if self.read_table(table) is None:
            return True
        for number in range(len(axis.values)):
            try:
                changed = axis.set_value(table, number)
            except NotATable:
                continue
            if changed != table and self.read_table(changed) is not None:
                return True
        return False

    def is_same(self, name: str, table: RawTable) -> bool:
        """Whether a table is that of a retriever, whatever defaults it writes out."""
        base = self.tables[name].without(*UNSWEPT_KEYS)
        if table == base:
            return True
        config = self.read_table(table.with_options(name=name))
        return config is not None and config == self.read_table(
            base.with_options(name=name)
        )


def expand_sweep(tables: RawTable, read_table: ReadsTable) -> ExpandedSweep:
    """Return an experiment with its sweep written out, and the retrievers that it adds.

    An axis varies every retriever in `of` whose
    table has the key; of one that has it not, those of its parts that do.

    Args:
        tables: those of the experiment, as they are written.
        read_table: returns the retriever of a table, None if it has an error.

    Raises:
        InputError: with the problems of the first check of `[sweep]` that finds any: of
            its keys, of its retrievers, of its axes, of their number, of their values.

    >>> base = {"name": "words", "kind": "bm25", "k1": 0.9}
    >>> sweep = {"default": "words", "of": "words", "k1": [0.9, 1.2], "b": [0, 0.4]}
    >>> tables = RawTable({"retrievers": [base], "sweep": sweep})
    >>> expanded = expand_sweep(tables, lambda table: None)
    >>> [entry.name for entry in expanded.configurations]
    ['words[0.9, 0]', 'words[0.9, 0.4]', 'words[1.2, 0]', 'words[1.2, 0.4]']
    """
    retriever_tables = _retriever_tables(tables)
    sweep = _parse_sweep(tables, list(retriever_tables))
    of = (sweep.of,) if isinstance(sweep.of, str) else sweep.of
    if not of:
        names = ", ".join(map(repr, retriever_tables))
        raise InputError(
            Problem("sweep.of", "names no retriever", f"name one: {names}")
        )
    unknown = [name for name in of if name not in retriever_tables]
    if unknown:
        raise InputError(
            [_unknown_retriever(name, list(retriever_tables)) for name in unknown]
        )
    if len(set(of)) < len(of):
        remedy = "name each retriever once"
        raise InputError(Problem("sweep.of", "names one twice", remedy))
    retrievers = _SweptRetrievers(retriever_tables, of, read_table)
    axes = _read_axes(sweep, retrievers)
    writer = _ConfigurationWriter(retrievers, axes, sweep.default)
    count = sum(map(writer.count_configurations, of))
    if count > MAX_SWEEP_CONFIGURATIONS:
        limit = f"at most {MAX_SWEEP_CONFIGURATIONS} are run"
        problem = f"makes {count:,} configurations; {limit}"
        raise InputError(Problem("sweep", problem, "leave out values, or an axis"))
    expanded_sweep = _written_out(sweep.default, of, axes, writer)
    expanded = tables.with_defaults(baseline=sweep.default)
    return ExpandedSweep(expanded.with_options(sweep=expanded_sweep), writer.entries())


def _written_out(
    default: str,
    of: tuple[str, ...],
    axes: Sequence[_Axis],
    writer: "_ConfigurationWriter",
) -> Sweep:
    """Write every configuration, and return the sweep that lists them.

    Of several choices that are one retriever, such as the overlaps without a chunk, the
    last is listed.
    """
    configurations: dict[str, dict[str, int]] = {}
    for number, retriever in enumerate(of):
        of_choice = {"of": number} if len(of) > 1 else {}
        for choices in _choices(writer.axes_of(retriever)):
            name = writer.write(retriever, choices)
            configurations[name] = {**of_choice, **choices}
    values_by_axis: dict[str, tuple[Any, ...]] = {"of": of} if len(of) > 1 else {}
    values_by_axis |= {axis.key: axis.values for axis in axes}
    return Sweep(
        default=default, of=of, axes=values_by_axis, configurations=configurations
    )


def _retriever_tables(tables: RawTable) -> dict[str, RawTable]:
    """Return the tables of retrievers that have a name."""
    entries = tables.get("retrievers")
    retrievers: dict[str, RawTable] = {}
    for raw_entry in entries if isinstance(entries, Sequence) else ():
        table = RawTable.read(raw_entry)
        if table and isinstance(table.get("name"), str):
            retrievers[table.text("name")] = table
    return retrievers


def _parse_sweep(tables: RawTable, retrievers: Sequence[str]) -> SweepConfig:
    """Check the table of a sweep; InputError if it has errors."""
    table = tables.table("sweep")
    if table is None or "default" not in table:
        names = ", ".join(map(repr, retrievers)) or "one of [[retrievers]]"
        remedy = f"name the retriever in use today: {names}"
        raise InputError(Problem("sweep.default", "is missing", remedy))
    return validated(SweepConfig, table.options, "sweep")


def _unknown_retriever(name: str, retrievers: Sequence[str]) -> Problem:
    remedy = did_you_mean(name, retrievers)
    return Problem("sweep.of", f"{name!r} is not a retriever", remedy)


def _choices(axes: Sequence[_Axis]) -> Iterator[dict[str, int]]:
    """Yield every choice of one value per axis: axis -> the index of its value."""
    keys = [axis.key for axis in axes]
    for indices in product(*(range(len(axis.values)) for axis in axes)):
        yield dict(zip(keys, indices, strict=True))


class _ConfigurationWriter:
    """Gathers the tables of configurations, and of the retrievers that they use."""

    def __init__(
        self, retrievers: _SweptRetrievers, axes: Sequence[_Axis], default: str
    ) -> None:
        self._retrievers = retrievers
        self._axes = axes
        self._default = default
        self._tables: dict[str, RawTable] = {}

    def axes_of(self, retriever: str) -> list[_Axis]:
        """Return the axes that vary a retriever in `of`, or its parts."""
        return [axis for axis in self._axes if axis.targets[retriever]]

    def count_configurations(self, retriever: str) -> int:
        """Return how many choices of one value per axis there are."""
        return math.prod(len(axis.values) for axis in self.axes_of(retriever))

    def write(self, swept: str, choices: Mapping[str, int]) -> str:
        """Add one configuration of a retriever in `of`, and return its name.

        If it is the same as the retriever's table, it is that retriever; likewise the
        default. Then nothing is added.
        """
        return self._write_part(swept, swept, choices)

    def _write_part(
        self,
        part: str,
        swept: str,
        choices: Mapping[str, int],
        users: tuple[str, ...] = (),
    ) -> str:
        """Add a part of a configuration, or the configuration; return its name.

        A part that no axis varies stays the retriever of the file.

        Args:
            part: a retriever of the file that the configuration uses, or `swept`.
            swept: the retriever in `of`.
            choices: axis -> the index of its value.
            users: the retrievers that use the part. If it is among them, they are a
                circle, which is reported elsewhere.
        """
        if part in users:
            return part
        own_parts = self._retrievers.parts_of(part)
        axes = [axis for axis in self._axes if axis.targets[swept] & own_parts]
        if not axes:
            return part
        base = self._retrievers.tables[part].without(*UNSWEPT_KEYS)
        table = base
        own_axes = [axis for axis in axes if part in axis.targets[swept]]
        # A chunk size of 0 comes last: another axis would make the chunk again.
        own_axes.sort(key=lambda axis: axis.removes_chunk(choices[axis.key]))
        for axis in own_axes:
            table = _with_choice(table, part, axis, choices[axis.key])
        write_inner = partial(
            self._write_part, swept=swept, choices=choices, users=(*users, part)
        )
        table = _with_names_in_of(table, write_inner)
        equal = self._equal_retriever(part, swept, table)
        if equal:
            return equal
        labels = [axis.labels[choices[axis.key]] for axis in axes]
        name = f"{part}[{', '.join(labels)}]"
        self._tables[name] = table.with_defaults(name=name)
        return name

    def _equal_retriever(self, part: str, swept: str, table: RawTable) -> str:
        """Return the part, or the default, if a table is the same; "" if neither is."""
        if self._retrievers.is_same(part, table):
            return part
        has_default = part == swept and self._default in self._retrievers.tables
        if has_default and self._retrievers.is_same(self._default, table):
            return self._default
        return ""

    def entries(self) -> list[RetrieverEntry]:
        """Return the tables, each with its place.

        All have the same place: the problem of an axis, which all its configurations
        have, is reported once.
        """
        return [RetrieverEntry("sweep", table) for table in self._tables.values()]


def _with_names_in_of(table: RawTable, rename: Callable[[str], str]) -> RawTable:
    """Return a table with other names of its parts; a part that is a table stays."""
    of = table.get("of")
    if isinstance(of, str):
        return table.with_options(of=rename(of))
    if not isinstance(of, Sequence):
        return table
    parts = [rename(inner) if isinstance(inner, str) else inner for inner in of]
    return table.with_options(of=parts)


def _with_choice(table: RawTable, part: str, axis: _Axis, number: int) -> RawTable:
    """Return a table with a value of an axis; InputError if it has no place there."""
    try:
        return axis.set_value(table, number)
    except NotATable as error:
        problem = f"{error} of {part!r} is not a table"
        remedy = "write it as one"
        raise InputError(Problem(f"sweep.{axis.key}", problem, remedy)) from None


def _read_axes(sweep: SweepConfig, retrievers: _SweptRetrievers) -> list[_Axis]:
    """Return the axes of a sweep.

    Raises:
        InputError: the problems of all axes, or the sweep has no axis.
    """
    axes: list[_Axis] = []
    problems: list[Problem] = []
    options = sweep.model_extra or {}
    # TOML writes tables last, and a manifest's experiment is written as TOML to be
    # reproduced: so the order of axes, and their names, stay the same.
    for key in sorted(options, key=lambda key: _holds_tables(options[key])):
        axis_key = retrievers.read_key(key)
        values = options[key]
        problem = _axis_problem(key, values) or _value_problem(axis_key, values)
        if problem is not None:
            problems.append(problem)
            continue
        path = axis_key.path
        axis = _Axis(key, {}, tuple(path.split(".")), values, label_axis(values, path))
        if axis_key.part:
            targets = retrievers.named_targets(axis_key.part)
        else:
            targets = retrievers.targets_with_key(axis)
        if not any(targets.values()):
            users = " and ".join(retrievers.of)
            text = f"{users} does not use {axis_key.part!r}"
            problems.append(Problem(f"sweep.{key}", text, "name a part of it"))
        axes.append(axis._replace(targets=targets))
    if not axes and not problems:
        remedy = 'name a key and its values, such as "chunk.size" = [128, 256]'
        problems = [Problem("sweep", "has no axis", remedy)]
    if problems:
        raise InputError(problems)
    return axes


def _axis_problem(key: str, values: Any) -> Problem | None:
    """Return the problem of an axis that is not a list of values."""
    if isinstance(values, Mapping):
        inner_key = next(iter(values), "…")
        remedy = f'quote the whole key: "{key}.{inner_key}" = […]'
        return Problem(f"sweep.{key}", "is a table", remedy)
    if not isinstance(values, tuple) or not values:
        problem = f"{values!r} is not a list of values" if values != () else "is empty"
        return Problem(f"sweep.{key}", problem, f'"{key}" = [128, 256]')
    return None


def _value_problem(key: _AxisKey, values: tuple[Any, ...]) -> Problem | None:
    """Return the problem of a key that cannot be swept, or of a repeated value."""
    where = f"sweep.{key.text}"
    if key.path.split(".")[0] in (*UNSWEPT_KEYS, "of"):
        remedy = "name a key that changes what is found"
        return Problem(where, "cannot be swept", remedy)
    for number, value in enumerate(values):
        if value in values[:number]:
            return Problem(where, f"{value!r} occurs twice", "name each value once")
    return None


def _holds_tables(values: Any) -> bool:
    if not isinstance(values, tuple):
        return False
    return any(isinstance(value, Mapping) for value in values)
