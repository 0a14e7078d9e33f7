"""What a filter requires of documents.

A document must match in every field, by any of its values; a value is fixed, or it
comes from a field of the query.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrievers.errors import InputError, Problem
from retrievers.query import Query
from retrievers.ranking import Mask


class Condition(NamedTuple):
    """The values that one field of a document may have."""

    field: str
    values: tuple[str, ...] = ()
    """Fixed values; empty if the value is in a field of the query."""
    query_field: str = ""
    """The field of the query that has the value; "" with fixed values."""


GivenConditions = Mapping[str, Any] | Sequence[Condition]
"""Conditions in Python: the table of an experiment file, or a list."""


class FieldFilter(NamedTuple):
    """The values of one field that a query accepts."""

    field: str
    values: tuple[str, ...]


FilterValues = tuple[FieldFilter, ...]
"""What a query requires of documents: one of the values in each of these fields."""
QueryFilters = Sequence[FilterValues]
"""One for each query; empty if all documents may be found."""


def read_conditions(conditions: GivenConditions) -> tuple[Condition, ...]:
    """Return the conditions that are given in Python.

    Raises:
        InputError: they are neither a table nor a list; a table has an error of
            `parse_conditions`; or a field has several conditions.
    """
    if isinstance(conditions, Mapping):
        return tuple(parse_conditions(conditions))
    are_several = isinstance(conditions, Sequence)
    if not are_several or not all(map(_is_condition, conditions)):
        problem = f"{conditions!r} is no table of fields"
        raise InputError(Problem("filter", problem, '{"language": "ja"}'))
    for field, count in Counter(part.field for part in conditions).items():
        if count > 1:
            problem = f"has {count} conditions"
            raise InputError(Problem(f"filter.{field}", problem, "give one"))
    return tuple(conditions)


def _is_condition(part: object) -> bool:
    return isinstance(part, Condition)


def parse_conditions(table: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions in a table of fields.

    Raises:
        InputError: a field has no text, no texts, and no {"query": field}.

    >>> table = {"tongue": ["ja", "de"], "owner": {"query": "user"}}
    >>> tongue, owner = parse_conditions(table)
    >>> tongue.values, owner.query_field
    (('de', 'ja'), 'user')
    """
    return [_parse_condition(field, value) for field, value in table.items()]


def _parse_condition(field: str, value: Any) -> Condition:
    if isinstance(value, Mapping):
        if list(value) == ["query"] and isinstance(value["query"], str):
            return Condition(field, query_field=value["query"])
    elif isinstance(value, str):
        return Condition(field, (value,))
    elif isinstance(value, Iterable):
        values = tuple(value)
        if values and all(isinstance(text, str) for text in values):
            return Condition(field, tuple(sorted(values)))
    problem = f"{value!r} is no condition"
    remedy = 'give a text, several texts, or {"query": a field of queries}'
    raise InputError(Problem(f"filter.{field}", problem, remedy))


class FieldValues:
    """The documents that have each value of a field.

    Args:
        fields: the fields to keep; None for all.
    """

    def __init__(self, fields: Iterable[str] | None = None) -> None:
        self._fields = None if fields is None else set(fields)
        self._rows: dict[tuple[str, str], array[int]] = {}
        self._count = 0

    def add(self, fields: Mapping[str, str]) -> None:
        """Add the fields of the next document."""
        names = fields.keys() if self._fields is None else self._fields & fields.keys()
        for name in names:
            rows = self._rows.setdefault((name, fields[name]), array("q"))
            rows.append(self._count)
        self._count += 1

    def matching(self, filter_values: FilterValues) -> Mask:
        """Return for each document, in the order of `add`, whether it matches."""
        matched_fields = np.zeros(self._count, dtype=np.int64)
        for field, values in filter_values:
            for value in set(values):
                rows = np.asarray(self._rows.get((field, value), ()), dtype=np.int64)
                matched_fields[rows] += 1
        return np.asarray(matched_fields == len(filter_values))

    def masks(self, query_filters: Iterable[FilterValues]) -> list[Mask]:
        """Return the documents that each query may find; empty without filters."""
        query_filters = list(query_filters)
        masks = {values: self.matching(values) for values in set(query_filters)}
        return [masks[values] for values in query_filters]


def filter_values(query: Query, conditions: Iterable[Condition]) -> FilterValues:
    """Return what a query requires of documents.

    If the query lacks a field that a condition names, no document matches.

    >>> query = Query("q", "text", {"lang": "ja"})
    >>> filter_values(query, [Condition("language", query_field="lang")])
    (FieldFilter(field='language', values=('ja',)),)
    """
    return tuple(sorted(_field_filter(query, condition) for condition in conditions))


def _field_filter(query: Query, condition: Condition) -> FieldFilter:
    if condition.values:
        return FieldFilter(condition.field, condition.values)
    query_value = query.fields.get(condition.query_field, "")
    return FieldFilter(condition.field, (query_value,) if query_value else ())


def conditions_text(conditions: Iterable[Condition]) -> str:
    """Return conditions as JSON, for the manifest; "" without conditions.

    >>> conditions_text([Condition("language", ("de", "ja"))])
    '{"language": ["de", "ja"]}'
    """
    table = conditions_table(conditions)
    return json.dumps(table, ensure_ascii=False) if table else ""


def conditions_table(conditions: Iterable[Condition]) -> dict[str, Any]:
    """Return the table of fields with these conditions."""
    return {
        condition.field: list(condition.values) or {"query": condition.query_field}
        for condition in conditions
    }
