"""Python objects as retrievers of an experiment."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.experiment import NAME_PATTERN, RawTable
from harness.experiment.table_values import walk_values
from harness.notebook.results import INVALID_NAME
from retrievers import encoder_class, retriever_kinds
from retrievers.errors import InputError, Problem
from retrievers.options.python_objects import encoder_table
from retrievers.options.user_code import NamedObject
from retrievers.types import Retriever

RetrieverTable = dict[str, Any]
"""A table of [[retrievers]]."""


class NamedTable(NamedTuple):
    """The name of a retriever, and its table, which lacks the key `name`."""

    name: str
    table: RawTable


def retriever_tables(retrievers: Mapping[str, Any]) -> list[RetrieverTable]:
    """Return the table of each retriever, in their order, with its name.

    A part that is one of the retrievers is replaced by its name: it runs once.

    Args:
        retrievers: by name.

    Raises:
        InputError: a name is invalid, or a value is not a retriever.

    >>> from retrievers import BM25, Dense, Fused
    >>> words = BM25()
    >>> both = Fused([words, Dense("minilm")])
    >>> parts = retriever_tables({"words": words, "both": both})[1]["of"]
    >>> parts[0]
    'words'
    >>> parts[1]["encoder"]
    {'kind': 'sentence-transformers', 'model': 'minilm'}
    """
    tables = [
        NamedTable(name, RawTable(_retriever_table(retriever, name)))
        for name, retriever in retrievers.items()
    ]
    # Objects get their names first, since parts are recognised by equal tables.
    object_names = _object_names(tables)
    tables = [
        NamedTable(name, RawTable(name_objects(table.options, object_names)))
        for name, table in tables
    ]
    return [
        {"name": name, **_replace_parts(table, tables).options}
        for name, table in tables
    ]


def _retriever_table(retriever: Any, name: Any) -> RetrieverTable:
    """Return the table of a retriever that is given in any form of Python.

    Raises:
        InputError: the name is invalid, or the object is no retriever.
    """
    where = f"retrievers[{name!r}]"
    if not isinstance(name, str) or not re.fullmatch(NAME_PATTERN, name):
        raise InputError(Problem(where, INVALID_NAME, "choose another name"))
    if isinstance(retriever, Retriever):
        return retriever.to_config()
    if isinstance(retriever, Mapping):
        return dict(retriever)
    if isinstance(retriever, str) and retriever in retriever_kinds():
        return {"kind": retriever}
    try:
        encoder = encoder_table(retriever)
    except InputError:
        problem = f"an object of type {type(retriever).__name__} is not a retriever"
        remedy = (
            "a name, an object with encode, a function of texts; "
            "retrievers.Function for a function that searches"
        )
        raise InputError(Problem(where, problem, remedy)) from None
    form = getattr(encoder_class(encoder["kind"]), "form", "dense")
    return {"kind": form, "encoder": encoder}


def _object_names(tables: Sequence[NamedTable]) -> dict[int, str]:
    """Return id(object) -> the name of each Python object in the tables.

    An object is named after the first retriever that has it, further objects of that
    retriever NAME-2, NAME-3, … No two objects have the same name: tables of different
    functions would be equal.
    """
    object_names: dict[int, str] = {}
    retriever_names = {retriever_name for retriever_name, _ in tables}
    for retriever_name, table in tables:
        object_name = retriever_name
        number = 1
        for _, value in walk_values(table.options):
            if not isinstance(value, NamedObject):
                continue
            object_names.setdefault(id(value.value), object_name)
            number += 1
            while f"{retriever_name}-{number}" in retriever_names:
                number += 1
            object_name = f"{retriever_name}-{number}"
    return object_names


def name_objects(value: Any, object_names: Mapping[int, str]) -> Any:
    """Return a table, or a value in it, in which each object has its name.

    Args:
        value: of a table.
        object_names: id(object) -> its name, from `_object_names`.
    """
    if isinstance(value, NamedObject):
        return NamedObject.wrap(value.value, object_names[id(value.value)])
    if isinstance(value, Mapping):
        return {key: name_objects(inner, object_names) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [name_objects(inner, object_names) for inner in value]
    return value


def _replace_parts(table: RawTable, tables: Sequence[NamedTable]) -> RawTable:
    """Return a table whose parts are names if they are retrievers of the experiment.

    Args:
        table: of a retriever or a part; its parts are under `of`, and have parts too.
        tables: of all retrievers of the experiment.
    """
    if "of" not in table:
        return table
    part = table.get("of")
    if isinstance(part, list):
        return table.with_options(of=[_name_or_table(inner, tables) for inner in part])
    return table.with_options(of=_name_or_table(part, tables))


def _name_or_table(part: Any, tables: Sequence[NamedTable]) -> Any:
    """Return the name of the first retriever with a part's table, else that table."""
    if not isinstance(part, Mapping):
        return part
    for name, table in tables:
        if table.options == part:
            return name
    return _replace_parts(RawTable(part), tables).options
