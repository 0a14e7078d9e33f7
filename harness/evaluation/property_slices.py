"""Slices of queries by their properties, or by declared fields.

Which queries are in a slice, and what it is called; whether retrievers differ there is
tested elsewhere (`shown_slices`, `families`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.records import (
    TRUNCATED_BY,
    Manifest,
    PropertyValue,
    QueryProperty,
    value_text,
)
from harness.scoring.scores import QueryMask
from retrievers.ids import CONTROL_CHARACTERS
from retrievers.types import Query

FIELD_PREFIX = "field "
"""Comes before the name of a declared field, as in the families of tests.csv."""
MIN_SLICE_QUERIES = 10
"""Queries below which a slice is not tested."""


class Condition(Enum):
    """Which values of a property are in a slice."""

    AT_MOST = "at most"
    ABOVE = "above"
    IS = "is"
    IS_NOT = "is not"
    """Only for the others of one of three texts or more."""

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
    """A property of properties.csv, or "field NAME" for a declared field."""
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

    @property
    def label(self) -> str:
        """The condition in words, as in tests.csv.

        >>> SliceName("shared words", Condition.AT_MOST, 1 / 3).label
        'at most 0.3333'
        >>> SliceName("document length", Condition.AT_MOST, 12345.5).label
        'at most 12346'
        >>> SliceName("digits", Condition.IS, True).label
        'yes'
        """
        limit = self.value
        words = value_text(limit)
        if isinstance(limit, float):
            words = f"{limit:{limit_form(limit)}}"
        is_plain = self.condition is Condition.IS
        return words if is_plain else f"{self.condition.value} {words}"


def limit_form(limit: float) -> str:
    """Return the format of a limit: whole if it is, or from 1,000 on; else 4 digits."""
    return ".0f" if abs(limit) >= 1000 or limit == int(limit) else ".4g"


@dataclass(frozen=True, slots=True, eq=False)
class PropertySlice:
    """Queries with something in common."""

    name: SliceName
    mask: QueryMask
    """(n,): the queries of the slice."""
    others: SliceName | None
    """What all other queries have in common; None if some lack the property."""

    @property
    def sides(self) -> tuple[PropertySlice, ...]:
        """The slice, and the other queries where these have a value of their own."""
        if self.others is None or self.others.condition is Condition.IS_NOT:
            return (self,)
        return self, PropertySlice(self.others, ~self.mask, self.name)


def slices_of_pair(
    queries: Sequence[Query],
    properties: Sequence[QueryProperty],
    manifest: Manifest,
    *,
    pair: Sequence[str],
    cluster: str | None,
) -> list[PropertySlice]:
    """Return the slices on which retrievers are compared.

    Args:
        queries: (n,) those that were scored.
        properties: of these queries, and perhaps of others.
        manifest: says which parts the retrievers have.
        pair: the retrievers; truncation by others makes no slices.
        cluster: the field whose values are the clusters; it makes no slices.
    """
    parts: list[str] = []
    for retriever in pair:
        parts += manifest.resolved.retriever_with_parts(retriever)
    return property_slices(queries, properties, parts, cluster)


def property_slices(
    queries: Sequence[Query],
    properties: Sequence[QueryProperty],
    truncating: Sequence[str],
    cluster: str | None = None,
) -> list[PropertySlice]:
    """Return the slices of queries that can be compared with the others.

    Numbers are divided at the median, true and false into yes and no, texts by their
    values. Both the slice and the others have ten queries or more. Of slices that
    divide the queries alike the first counts.

    Args:
        queries: (n,) those that were scored.
        properties: of these queries, and perhaps of others.
        truncating: the retrievers whose truncation can matter.
        cluster: the field whose values are the clusters; it makes no slices.
    """
    slices: dict[bytes, PropertySlice] = {}
    for candidate in _candidate_slices(queries, properties, truncating, cluster):
        size = int(candidate.mask.sum())
        if min(size, len(queries) - size) < MIN_SLICE_QUERIES:
            continue
        packed = np.packbits(candidate.mask).tobytes()
        opposite = np.packbits(~candidate.mask).tobytes()
        if packed not in slices and opposite not in slices:
            slices[packed] = candidate
    return list(slices.values())


class SmallSlice(NamedTuple):
    """A slice with too few queries for a test."""

    name: SliceName
    queries: int


def small_slices(
    queries: Sequence[Query],
    properties: Sequence[QueryProperty],
    cluster: str | None = None,
) -> list[SmallSlice]:
    """Return the slices that are too small for a test, but for those by truncation.

    The arguments are those of `property_slices`.

    >>> rows = [Query(str(i), "", {"tag": "en" if i < 12 else "ja"}) for i in range(15)]
    >>> [(small.name.label, small.queries) for small in small_slices(rows, [])]
    [('ja', 3)]
    """
    small: list[SmallSlice] = []
    for candidate in _candidate_slices(queries, properties, (), cluster):
        for side in candidate.sides:
            size = int(side.mask.sum())
            if 0 < size < min(MIN_SLICE_QUERIES, len(queries)):
                small.append(SmallSlice(side.name, size))
    return list(dict.fromkeys(small))


def _candidate_slices(
    queries: Sequence[Query],
    properties: Sequence[QueryProperty],
    truncating: Sequence[str],
    cluster: str | None,
) -> Iterator[PropertySlice]:
    """Yield slices of any size."""
    for name, values in _value_columns(queries, properties, cluster):
        is_truncation = name.startswith(TRUNCATED_BY)
        if not is_truncation or name.removeprefix(TRUNCATED_BY) in truncating:
            yield from _divide_queries(name, values)


ValueColumn = Sequence[PropertyValue | None]
"""(n,): a property of each query; None if it has none."""


def _value_columns(
    queries: Sequence[Query],
    properties: Sequence[QueryProperty],
    cluster: str | None,
) -> Iterator[tuple[str, ValueColumn]]:
    """Yield each declared field with its values, then each property.

    In this order, since of slices that divide the queries alike the first counts: users
    know their field.
    """
    fields: set[str] = set()
    for query in queries:
        fields.update(query.fields)
    for field in sorted(fields - {cluster}):
        texts = [_printable(query.fields.get(field, "")) for query in queries]
        yield _printable(f"{FIELD_PREFIX}{field}"), _field_values(texts)
    index = {query.id: number for number, query in enumerate(queries)}
    columns: dict[str, list[PropertyValue | None]] = {}
    for row in properties:
        if row.query_id in index:
            column = columns.setdefault(row.name, [None] * len(queries))
            column[index[row.query_id]] = row.value
    yield from columns.items()


def _printable(text: str) -> str:
    return CONTROL_CHARACTERS.sub(" ", text)


def _field_values(texts: Sequence[str]) -> ValueColumn:
    """Return the values of a field: numbers, if all that are not empty are numbers."""
    unchanged = [text or None for text in texts]
    if any("_" in text for text in texts):  # a name such as 2024_01, which Python reads
        return unchanged
    numbers: list[float | None] = []
    for text in texts:
        try:
            numbers.append(float(text) if text else None)
        except ValueError:
            return unchanged
    is_finite = all(number is None or np.isfinite(number) for number in numbers)
    return numbers if is_finite else unchanged


def _divide_queries(name: str, values: ValueColumn) -> Iterator[PropertySlice]:
    """Yield the slices by one property, whose values are all of one type."""
    defined = [value for value in values if value is not None]
    covers_all = len(defined) == len(values)
    if defined and all(isinstance(value, float) for value in defined):
        numbers = np.array([np.nan if value is None else value for value in values])
        yield from _divide_numbers(name, numbers)
        return
    if defined and isinstance(defined[0], bool):
        mask = np.array([value is True for value in values])
        has_flag = SliceName(name, Condition.IS, True)
        yield PropertySlice(has_flag, mask, has_flag.opposite if covers_all else None)
        return
    yield from _divide_texts(name, values, covers_all=covers_all)


def _divide_texts(
    name: str, values: ValueColumn, *, covers_all: bool
) -> Iterator[PropertySlice]:
    """Yield the queries of each text; of two texts, the others have the other one.

    Texts that differ from query to query, such as answers, make no slices, if none is
    that of ten queries.
    """
    counts = Counter(value for value in values if value is not None)
    if differs_by_query(counts) and max(counts.values()) < MIN_SLICE_QUERIES:
        return
    texts = list(counts)
    for text in texts:
        has_text = SliceName(name, Condition.IS, text)
        others = has_text.opposite if covers_all else None
        if others is not None and len(texts) == 2:
            other_text = texts[1] if text == texts[0] else texts[0]
            others = replace(has_text, value=other_text)
        mask = np.array([value == text for value in values])
        yield PropertySlice(has_text, mask, others)


def differs_by_query(counts: Counter[Any]) -> bool:
    """Whether values are of hardly more than one query each, on average below two.

    >>> differs_by_query(Counter("abcd")), differs_by_query(Counter("aab"))
    (True, True)
    >>> differs_by_query(Counter("aabb"))
    False
    """
    return 2 * len(counts) > counts.total()


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
    above = at_most.opposite
    yield PropertySlice(at_most, numbers <= limit, above if covers_all else None)
    if not covers_all:
        yield PropertySlice(above, numbers > limit, None)
