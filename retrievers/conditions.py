"""What a filter requires of documents.

One index holds all documents, whatever is wanted of them: words are as rare as they are among all documents, as in a
search engine that filters.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrievers.query import Query
from retrievers.ranking import Mask


class Condition(NamedTuple):
    """What one field of a document must hold."""

    field: str
    values: tuple[str, ...] = ()
    """One of these; or, where there are none, what the query's own field holds."""
    query_field: str = ""


def parse_conditions(table: Mapping[str, Any]) -> list[Condition]:
    """Return what a table of fields asks of documents.

    >>> [one.values or one.query_field for one in parse_conditions({"tongue": ["ja", "de"], "owner": {"query": "user"}})]
    [('de', 'ja'), 'user']
    """
    conditions = []
    for name, value in table.items():
        own = value["query"] if isinstance(value, Mapping) else ""
        held = (
            () if own else (value,) if isinstance(value, str) else tuple(sorted(value))
        )
        conditions.append(Condition(name, held, own))
    return conditions


class FieldValues:
    """Which documents hold what in some fields, or, where none are named, in all that they are given with."""

    def __init__(self, names: Iterable[str] | None = None) -> None:
        self._names = None if names is None else set(names)
        self._rows: dict[tuple[str, str], array[int]] = {}
        self._count = 0

    def add(self, fields: Mapping[str, str]) -> None:
        """Take in the fields of the next document."""
        for name in (
            fields.keys() if self._names is None else self._names & fields.keys()
        ):
            self._rows.setdefault((name, fields[name]), array("q")).append(self._count)
        self._count += 1

    def matching(self, wanted: FilterValues) -> Mask:
        """Return for each document, in the order in which they were taken in, whether it holds what is wanted."""
        met = np.zeros(self._count, dtype=np.int64)
        for name, values in wanted:
            for value in set(values):
                met[np.asarray(self._rows.get((name, value), ()), dtype=np.int64)] += 1
        return np.asarray(met == len(wanted))

    def masks(self, wanted: Iterable[FilterValues]) -> list[Mask]:
        """Return which documents each query may find; nothing where that is every one."""
        wanted = list(wanted)
        masks = {one: self.matching(one) for one in set(wanted)}
        return [masks[one] for one in wanted]


def filter_values(query: Query, conditions: Iterable[Condition]) -> FilterValues:
    """Return what a query wants of documents; a field that the query lacks can be held by no document.

    >>> filter_values(Query("q", "text", {"lang": "ja"}), [Condition("language", query_field="lang")])
    (('language', ('ja',)),)
    """
    own = ((one, query.fields.get(one.query_field, "")) for one in conditions)
    return tuple(
        sorted(
            (one.field, one.values or ((value,) if value else ())) for one, value in own
        )
    )


def filter_facts(conditions: Iterable[Condition]) -> dict[str, str]:
    """Return what the manifest keeps of a filter; nothing where there is none.

    >>> filter_facts([Condition("language", ("de", "ja"))])
    {'filter': '{"language": ["de", "ja"]}'}
    """
    table = conditions_table(conditions)
    return {"filter": json.dumps(table, ensure_ascii=False)} if table else {}


def conditions_table(conditions: Iterable[Condition]) -> dict[str, Any]:
    """Return the table of fields that asks for this."""
    return {
        one.field: list(one.values) or {"query": one.query_field} for one in conditions
    }


FilterValues = tuple[tuple[str, tuple[str, ...]], ...]
"""What a query wants of documents: fields, and for each the values of which a document must have one."""
QueryFilters = Sequence[FilterValues]
"""Of each query; nothing where all documents are wanted."""
