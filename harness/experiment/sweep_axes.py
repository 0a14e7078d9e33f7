"""The axes of a sweep.

An axis is a key of a retriever's table with several values. `read_axes` checks them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.experiment.experiment_tables import SweepConfig
from harness.experiment.raw_table import (
    NotATable,
    RawTable,
    names_in_of,
)
from harness.experiment.retriever_config import RetrieverConfig
from harness.experiment.value_labels import label_axis
from retrievers.errors import InputError, Problem

UNSWEPT_KEYS = ("name", "variants", "derive")
"""Keys of a retriever's table that its configurations do not take over."""
ReadsTable = Callable[[RawTable], RetrieverConfig | None]
"""Returns the retriever of a table, with all defaults; None if the table has an error.
"""


class AxisKey(NamedTuple):
    """The key of `[sweep]` that names an axis."""

    text: str
    """As it is written."""
    part: str
    """The retriever that the key names; empty if it names none."""
    path: str
    """The key in a retriever's table, such as `chunk.size`."""


class SweepAxis(NamedTuple):
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
class SweptRetrievers:
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

    def read_key(self, key: str) -> AxisKey:
        """Return what the key of an axis names: a part's key, or one of any table.

        A part may be called as a key is, such as `chunk`: then the key is meant if the
        first swept retriever has it.
        """
        part, _, path = key.partition(".")
        if part in self.tables and path and part not in self.tables[self.of[0]]:
            return AxisKey(key, part, path)
        return AxisKey(key, "", key)

    def named_targets(self, part: str) -> dict[str, frozenset[str]]:
        """Return the retrievers in `of` that use a part, with it."""
        targets: dict[str, frozenset[str]] = {}
        for name in self.of:
            is_used = part in self.parts_of(name)
            targets[name] = frozenset({part} if is_used else ())
        return targets

    def targets_with_key(self, axis: SweepAxis) -> dict[str, frozenset[str]]:
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

    def _has_key(self, retriever: str, axis: SweepAxis) -> bool:
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


def read_axes(sweep: SweepConfig, retrievers: SweptRetrievers) -> list[SweepAxis]:
    """Return the axes of a sweep.

    Raises:
        InputError: the problems of all axes, or the sweep has no axis.
    """
    axes: list[SweepAxis] = []
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
        axis = SweepAxis(
            key, {}, tuple(path.split(".")), values, label_axis(values, path)
        )
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


def _value_problem(key: AxisKey, values: tuple[Any, ...]) -> Problem | None:
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
