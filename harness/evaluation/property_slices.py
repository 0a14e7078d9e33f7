"""Slices of queries by their properties, or by declared fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt

from harness.evaluation.query_slices import MIN_SLICE_QUERIES, slice_labels
from harness.records import TRUNCATED_BY, PropertyValue, QueryProperty
from retrievers.types import Query

FIELD_PREFIX = "field "
"""Before the name of a declared field, as in the families of tests.csv."""

QueryMask = npt.NDArray[np.bool_]
"""(n,): whether each query is in a slice."""


class Condition(Enum):
    """Which values of a property are in a slice."""

    AT_MOST = "at most"
    ABOVE = "above"
    IS = "is"
    IS_NOT = "is not"

    @property
    def opposite(self) -> Condition:
        """The condition of the other queries."""
        return OPPOSITES[self]


OPPOSITES = {
    Condition.AT_MOST: Condition.ABOVE,
    Condition.ABOVE: Condition.AT_MOST,
    Condition.IS: Condition.IS_NOT,
    Condition.IS_NOT: Condition.IS,
}


@dataclass(frozen=True, slots=True)
class SliceName:
    """What the queries of a slice have in common."""

    property_name: str
    condition: Condition
    value: PropertyValue
    """The limit of a number; else yes, no, or the text."""

    @property
    def opposite(self) -> SliceName:
        """The name of all other queries, if every query has the property."""
        if isinstance(self.value, bool):
            return replace(self, value=not self.value)
        return replace(self, condition=self.condition.opposite)

    @property
    def declared_field(self) -> str:
        """The field of the queries; empty if the harness computes the property."""
        if not self.property_name.startswith(FIELD_PREFIX):
            return ""
        return self.property_name.removeprefix(FIELD_PREFIX)


@dataclass(frozen=True, slots=True, eq=False)
class PropertySlice:
    """Queries with something in common, of which others have the opposite."""

    name: SliceName
    mask: QueryMask
    covers_all: bool
    """Whether every query has the property: then the others are a slice, too."""


def property_slices(
    queries: Sequence[Query],
    properties: Sequence[QueryProperty],
    truncating: Sequence[str],
    cluster: str | None = None,
) -> list[PropertySlice]:
    """Return the slices of queries that can be compared with the others.

    Numbers are divided at the median, yes or no as they are, texts by their values.
    Both the slice and the others have ten queries or more, and no two slices divide the
    queries alike.

    Args:
        queries: (n,) those that were scored.
        properties: of these queries, and perhaps of others.
        truncating: the retrievers whose truncation can matter.
        cluster: the field whose values are the clusters; it makes no slices.
    """
    slices: dict[bytes, PropertySlice] = {}
    for name, values in _value_columns(queries, properties, cluster):
        retriever = name.removeprefix(TRUNCATED_BY)
        if retriever != name and retriever not in truncating:
            continue
        for candidate in _divide_queries(name, values):
            size = int(candidate.mask.sum())
            if min(size, len(queries) - size) < MIN_SLICE_QUERIES:
                continue
            packed = np.packbits(candidate.mask).tobytes()
            opposite = np.packbits(~candidate.mask).tobytes()
            if packed not in slices and opposite not in slices:
                slices[packed] = candidate
    return list(slices.values())


ValueColumn = Sequence[PropertyValue | None]
"""(n,): a property of each query; None if it has none."""


def _value_columns(
    queries: Sequence[Query],
    properties: Sequence[QueryProperty],
    cluster: str | None,
) -> Iterator[tuple[str, ValueColumn]]:
    """Yield each property with its values, then each declared field."""
    index = {query.id: number for number, query in enumerate(queries)}
    columns: dict[str, list[PropertyValue | None]] = {}
    for row in properties:
        if row.query_id in index:
            column = columns.setdefault(row.name, [None] * len(queries))
            column[index[row.query_id]] = row.value
    yield from columns.items()
    for family, labels in slice_labels(queries, cluster).items():
        if family.startswith(FIELD_PREFIX):
            yield family, _field_values(labels)


def _field_values(texts: Sequence[str]) -> ValueColumn:
    """Return the values of a field: numbers, if all that are not empty are numbers."""
    numbers: list[float | None] = []
    for text in texts:
        try:
            numbers.append(float(text) if text else None)
        except ValueError:
            return [other or None for other in texts]
    is_finite = all(number is None or np.isfinite(number) for number in numbers)
    return numbers if is_finite else [other or None for other in texts]


def _divide_queries(name: str, values: ValueColumn) -> Iterator[PropertySlice]:
    """Yield the slices by one property."""
    defined = [value for value in values if value is not None]
    covers_all = len(defined) == len(values)
    if defined and all(isinstance(value, float) for value in defined):
        numbers = np.array([np.nan if value is None else value for value in values])
        yield from _divide_numbers(name, numbers)
        return
    if defined and isinstance(defined[0], bool):
        mask = np.array([value is True for value in values])
        yield PropertySlice(SliceName(name, Condition.IS, True), mask, covers_all)
        return
    for text in dict.fromkeys(defined):
        mask = np.array([value == text for value in values])
        yield PropertySlice(SliceName(name, Condition.IS, text), mask, covers_all)


def _divide_numbers(
    name: str, numbers: npt.NDArray[np.float64]
) -> Iterator[PropertySlice]:
    """Yield the queries up to the median; below it, if none is above it.

    If some queries have no number, those above the median are a slice, too.
    """
    defined = numbers[~np.isnan(numbers)]
    median = float(np.median(defined))
    low = defined[defined <= median]
    if len(low) == len(defined):
        low = defined[defined < median]
    if not len(low):
        return
    limit = float(low.max())
    covers_all = len(defined) == len(numbers)
    at_most = SliceName(name, Condition.AT_MOST, limit)
    yield PropertySlice(at_most, numbers <= limit, covers_all)
    if not covers_all:
        yield PropertySlice(at_most.opposite, numbers > limit, covers_all)
