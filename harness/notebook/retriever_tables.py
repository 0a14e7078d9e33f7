"""Python objects as retrievers of an experiment."""

import re
from collections.abc import Mapping
from typing import Any

from harness.experiment import NAME_PATTERN
from harness.experiment.table_values import walk_values
from harness.notebook.results import INVALID_NAME
from retrievers import encoder_class, retriever_kinds
from retrievers.errors import InputError, Problem
from retrievers.options.python_objects import encoder_table
from retrievers.options.user_code import NamedObject
from retrievers.types import Retriever

RetrieverTable = dict[str, Any]
"""A table of [[retrievers]]."""


def retriever_tables(retrievers: Mapping[str, Any]) -> list[RetrieverTable]:
    """Return the table of each retriever; a part that is one of the retrievers is given by its name.

    Args:
        retrievers: by name.

    Raises:
        InputError: a name is invalid, or a value is not a retriever.

    >>> from retrievers import BM25, Dense, Fused
    >>> words = BM25()
    >>> retriever_tables({"words": words, "both": Fused([words, Dense("minilm")])})[1]["of"]
    ['words', {'kind': 'dense', 'encoder': {'kind': 'sentence-transformers', 'model': 'minilm'}}]
    """
    tables = {name: _table(value, name) for name, value in retrievers.items()}
    called: dict[int, str] = {}
    for name, table in tables.items():
        for number, held in enumerate(
            one for _, one in walk_values(table) if isinstance(one, NamedObject)
        ):
            called.setdefault(
                id(held.value), name if not number else f"{name}-{number + 1}"
            )
    tables = {name: name_objects(table, called) for name, table in tables.items()}
    return [
        {"name": name, **_named_parts(table, tables)} for name, table in tables.items()
    ]


def _named_parts(
    table: RetrieverTable, tables: Mapping[str, RetrieverTable]
) -> RetrieverTable:
    """A table in which parts that are retrievers of the experiment are names."""

    def part(one: Any) -> Any:
        if not isinstance(one, Mapping):
            return one
        return next(
            (name for name, other in tables.items() if other == one), None
        ) or _named_parts(dict(one), tables)

    if "of" not in table:
        return table
    of = table["of"]
    return {**table, "of": list(map(part, of)) if isinstance(of, list) else part(of)}


def _table(value: Any, name: Any) -> RetrieverTable:
    if not isinstance(name, str) or not re.fullmatch(NAME_PATTERN, name):
        raise InputError(
            Problem(f"retrievers[{name!r}]", INVALID_NAME, "choose another name")
        )
    if isinstance(value, Retriever):
        return value.to_config()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str) and value in retriever_kinds():
        return {"kind": value}
    try:
        encoder = encoder_table(value)
    except InputError:
        what = f"an object of type {type(value).__name__} is not a retriever"
        remedy = "a name, an object with encode, a function of texts; retrievers.Function for a function that searches"
        raise InputError(Problem(f"retrievers[{name!r}]", what, remedy)) from None
    form = getattr(encoder_class(encoder["kind"]), "form", "dense")
    return {"kind": form, "encoder": encoder}


def name_objects(value: Any, names: Mapping[int, str]) -> Any:
    """A table whose objects are named after the first retriever that has them."""
    if isinstance(value, NamedObject):
        return NamedObject.wrap(value.value, names[id(value.value)])
    if isinstance(value, Mapping):
        return {key: name_objects(inner, names) for key, inner in value.items()}
    return (
        [name_objects(one, names) for one in value]
        if isinstance(value, list | tuple)
        else value
    )
