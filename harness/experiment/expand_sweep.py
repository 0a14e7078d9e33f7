"""A sweep written out.

Each choice of one value per axis becomes a retriever, such as `words[0.9, 0.4]`, with
copies of the parts that an axis varies. A choice that equals the swept retriever, or
the default, is that retriever, not a second one. `parse` checks all of them afterwards.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from harness.experiment.experiment_tables import Sweep, SweepConfig
from harness.experiment.raw_table import (
    NotATable,
    RawTable,
    RetrieverEntry,
)
from harness.experiment.sweep_axes import (
    UNSWEPT_KEYS,
    ReadsTable,
    SweepAxis,
    SweptRetrievers,
    read_axes,
)
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options.tables import validated

MAX_SWEEP_CONFIGURATIONS = 500
"""More are refused: all their pairs are tested, 125,000 for 500."""


class ExpandedSweep(NamedTuple):
    """An experiment whose sweep is written out."""

    tables: RawTable
    """Tables of the experiment: `sweep` is a `Sweep`, and `baseline` is the sweep's
    default unless the file names another."""
    configurations: list[RetrieverEntry]
    """The retrievers that the sweep adds, with the parts that are copied for them.

    Without the configurations that equal a retriever of the file.
    """


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
    retrievers = SweptRetrievers(retriever_tables, of, read_table)
    axes = read_axes(sweep, retrievers)
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
    axes: Sequence[SweepAxis],
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


def _choices(axes: Sequence[SweepAxis]) -> Iterator[dict[str, int]]:
    """Yield every choice of one value per axis: axis -> the index of its value."""
    keys = [axis.key for axis in axes]
    for indices in product(*(range(len(axis.values)) for axis in axes)):
        yield dict(zip(keys, indices, strict=True))


class _ConfigurationWriter:
    """Gathers the tables of configurations, and of the retrievers that they use."""

    def __init__(
        self, retrievers: SweptRetrievers, axes: Sequence[SweepAxis], default: str
    ) -> None:
        self._retrievers = retrievers
        self._axes = axes
        self._default = default
        self._tables: dict[str, RawTable] = {}

    def axes_of(self, retriever: str) -> list[SweepAxis]:
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


def _with_choice(table: RawTable, part: str, axis: SweepAxis, number: int) -> RawTable:
    """Return a table with a value of an axis; InputError if it has no place there."""
    try:
        return axis.set_value(table, number)
    except NotATable as error:
        problem = f"{error} of {part!r} is not a table"
        remedy = "write it as one"
        raise InputError(Problem(f"sweep.{axis.key}", problem, remedy)) from None
