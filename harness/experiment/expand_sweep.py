"""A sweep written out."""

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

from harness.experiment.experiment_tables import SweepConfig
from harness.experiment.value_labels import label_axis
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.options.tables import validated

MAX_SWEEP_CONFIGURATIONS = 500
"""Configurations of a sweep."""


UNSWEPT_KEYS = ("name", "color", "variants", "derive")
"""Keys of the table as it is written that its configurations do not take over."""


RetrieverTables = Mapping[str, Mapping[str, Any]]
"""Retriever -> its table, as it is written."""


class _Axis(NamedTuple):
    """One key that takes several values."""

    key: str
    block: str
    """The retriever whose table holds it."""
    path: tuple[str, ...]
    values: tuple[Any, ...]
    words: tuple[str, ...]
    """Of the values, in names."""


def expand_sweep(
    tables: Mapping[str, Any],
) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
    """Write out the sweep of an experiment.

    Args:
        tables: as they were written.

    Returns:
        The tables, `sweep` as `Sweep` has it and the default as baseline where none is named; and the retrievers that
        stand for the configurations, each with its place.

    Raises:
        InputError: every fault of `[sweep]`.

    >>> base = {"name": "words", "kind": "bm25", "k1": 0.9}
    >>> sweep = {"default": "words", "of": "words", "k1": [0.9, 1.2], "b": [0, 0.4]}
    >>> [table["name"] for _, table in expand_sweep({"retrievers": [base], "sweep": sweep})[1]]
    ['words[0.9, 0]', 'words[0.9, 0.4]', 'words[1.2, 0]', 'words[1.2, 0.4]']
    """
    entries = tables.get("retrievers")
    blocks = {
        one["name"]: one
        for one in (entries if isinstance(entries, Sequence) else ())
        if isinstance(one, Mapping) and isinstance(one.get("name"), str)
    }
    written = tables["sweep"] if isinstance(tables["sweep"], Mapping) else {}
    if "default" not in written:
        remedy = f"name the retriever in use today: {', '.join(map(repr, blocks)) or 'one of [[retrievers]]'}"
        raise InputError(Problem("sweep.default", "is missing", remedy))
    table = validated(SweepConfig, written, "sweep")
    of = (table.of,) if isinstance(table.of, str) else table.of
    if unknown := [name for name in of if name not in blocks]:
        wrong = (
            (f"{name!r} is not a retriever", did_you_mean(name, blocks))
            for name in unknown
        )
        raise InputError([Problem("sweep.of", *one) for one in wrong])
    axes = _axes(table.model_extra or {}, of, blocks)
    count = sum(
        math.prod(
            len(axis.values) for axis in axes if axis.block in _parts(name, blocks)
        )
        for name in of
    )
    if count > MAX_SWEEP_CONFIGURATIONS:
        what = f"makes {count:,} configurations; at most {MAX_SWEEP_CONFIGURATIONS} are run"
        raise InputError(Problem("sweep", what, "leave out values, or an axis"))
    made: dict[str, dict[str, Any]] = {}
    cells: dict[str, dict[str, int]] = {}
    for top in of:
        own = [axis for axis in axes if axis.block in _parts(top, blocks)]
        for places in product(*(range(len(axis.values)) for axis in own)):
            chosen = dict(zip((axis.key for axis in own), places, strict=True))
            name = _write(top, chosen, (blocks, axes), made)
            cells[name] = chosen if len(of) == 1 else {"of": of.index(top), **chosen}
    values = {axis.key: axis.values for axis in axes}
    resolved = {
        "default": table.default,
        "of": of,
        "axes": values if len(of) == 1 else {"of": of, **values},
    }
    return {
        "baseline": table.default,
        **tables,
        "sweep": {**resolved, "configurations": cells},
    }, [(f"sweep: {one}", given) for one, given in made.items()]


def _write(
    name: str,
    chosen: Mapping[str, int],
    grid: tuple[RetrieverTables, Sequence[_Axis]],
    made: dict[str, dict[str, Any]],
) -> str:
    """Write out one configuration of a retriever, and of what it uses, into `made`; returns its name.

    One that is the retriever as it is written is that retriever.
    """
    blocks, axes = grid
    parts = _parts(name, blocks)
    own = [axis for axis in axes if axis.block in parts]
    if not own:
        return name
    entry = {
        key: value for key, value in blocks[name].items() if key not in UNSWEPT_KEYS
    }
    table = deepcopy(entry)
    for axis in own:
        if axis.block == name:
            _set(table, axis, axis.values[chosen[axis.key]])
    if isinstance(of := table.get("of"), str):
        table["of"] = _write(of, chosen, grid, made)
    elif isinstance(of, Sequence):
        table["of"] = [_write(one, chosen, grid, made) for one in of]
    if table == entry:
        return name
    called = f"{name}[{', '.join(axis.words[chosen[axis.key]] for axis in own)}]"
    made[called] = {"name": called, **table}
    return called


def _axes(
    written: Mapping[str, Any], of: Sequence[str], blocks: RetrieverTables
) -> list[_Axis]:
    parts = {part for name in of for part in _parts(name, blocks)}
    axes, problems = [], []
    # TOML writes tables last, and a manifest's experiment is written as TOML to be reproduced: the names stay the same.
    for key, values in sorted(written.items(), key=lambda item: _holds_tables(item[1])):
        where = f"sweep.{key}"
        first, _, rest = key.partition(".")
        named = first in blocks and bool(rest) and first not in blocks[of[0]]
        block, path = (first, rest) if named else (of[0], key)
        if isinstance(values, Mapping):
            remedy = f'quote the whole key: "{key}.{next(iter(values), "…")}" = […]'
            problems.append(Problem(where, "is a table", remedy))
        elif not isinstance(values, tuple) or not values:
            problems.append(
                Problem(
                    where,
                    f"{values!r} is not a list of values",
                    f'"{key}" = [128, 256]',
                )
            )
        elif block not in parts:
            problems.append(
                Problem(
                    where,
                    f"{' and '.join(of)} does not use {block!r}",
                    "name a part of it",
                )
            )
        elif path.split(".")[0] in (*UNSWEPT_KEYS, "of"):
            problems.append(
                Problem(
                    where, "cannot be swept", "name a key that changes what is found"
                )
            )
        elif twice := [
            one for place, one in enumerate(values) if one in values[:place]
        ]:
            problems.append(
                Problem(where, f"{twice[0]!r} occurs twice", "name each value once")
            )
        else:
            axes.append(
                _Axis(
                    key, block, tuple(path.split(".")), values, label_axis(values, path)
                )
            )
    if not axes and not problems:
        problems = [
            Problem(
                "sweep",
                "has no axis",
                'name a key and its values, such as "chunk.size" = [128, 256]',
            )
        ]
    if problems:
        raise InputError(problems)
    return axes


def _holds_tables(values: Any) -> bool:
    return isinstance(values, tuple) and any(isinstance(one, Mapping) for one in values)


def _parts(name: str, blocks: RetrieverTables, above: tuple[str, ...] = ()) -> set[str]:
    """A retriever and all that it uses, as far as these are tables of the file; a circle is reported elsewhere."""
    of = blocks[name].get("of", ()) if name in blocks and name not in above else ()
    inner = (of,) if isinstance(of, str) else of if isinstance(of, Sequence) else ()
    found = (
        _parts(one, blocks, (*above, name)) for one in inner if isinstance(one, str)
    )
    return {name}.union(*found)


def _set(table: dict[str, Any], axis: _Axis, value: Any) -> None:
    """Set a key of a table, which may be in tables of tables; a chunk of 0 is none."""
    if axis.path == ("chunk", "size") and value == 0:
        table.pop("chunk", None)
        return
    *outer, last = axis.path
    for key in outer:
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            raise InputError(
                Problem(
                    f"sweep.{axis.key}",
                    f"{key} of {axis.block!r} is not a table",
                    "write it as one",
                )
            )
        table = inner
    table[last] = list(value) if isinstance(value, tuple) else value
