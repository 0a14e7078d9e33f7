"""Slices of the queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from retrievers.ids import CONTROL_CHARACTERS
from retrievers.types import Query

MIN_SLICE_QUERIES = 10
"""Queries below which a slice is not tested."""


def slice_labels(
    queries: Sequence[Query], cluster: str | None = None
) -> dict[str, list[str]]:
    r"""Return family -> each query's slice: by its text's length, and by each field.

    A field whose values are the clusters makes no slices. Names are those of tests.csv,
    by which they are looked up.

    >>> slice_labels([Query("1", "a", {"ki\nd": "x\ty"})])["field ki d"]
    ['x y']
    """
    if not queries:
        return {}
    labels_by_family = {
        "query length": length_slices([query.text for query in queries])
    }
    fields: set[str] = set()
    for query in queries:
        fields.update(query.fields)
    for field in sorted(fields - {cluster}):
        labels_by_family[_printable(f"field {field}")] = [
            _printable(query.fields.get(field, "")) for query in queries
        ]
    return labels_by_family


def _printable(text: str) -> str:
    return CONTROL_CHARACTERS.sub(" ", text)


def large_slices(labels: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of the queries of each slice that is large enough.

    >>> large_slices(["en"] * 10 + ["ja"] * 9 + [""] * 10)
    {'en': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
    """
    indices: dict[str, list[int]] = {label: [] for label in sorted(set(labels))}
    for index, label in enumerate(labels):
        indices[label].append(index)
    return {
        label: slice_indices
        for label, slice_indices in indices.items()
        if label and len(slice_indices) >= MIN_SLICE_QUERIES
    }


def small_slices(labels: Sequence[str]) -> dict[str, int]:
    """Return the slices that are too small for a test, with their numbers of queries.

    >>> small_slices(["en"] * 12 + ["ja"] * 3)
    {'ja': 3}
    """
    return {
        label: count
        for label, count in sorted(Counter(labels).items())
        if label and count < MIN_SLICE_QUERIES
    }


def length_slices(texts: Sequence[str]) -> list[str]:
    """Return each query's slice by its length in characters: thirds.

    Equal lengths are in one slice.

    >>> length_slices(["a", "bb", "ccc"])
    ['short (up to 1)', 'medium (2 to 2)', 'long (3 or more)']
    """
    lengths = np.array([*map(len, texts)])
    thirds = np.quantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf")
    short, medium = map(int, thirds)
    labels = np.array(
        [
            f"short (up to {short})",
            f"medium ({short + 1} to {medium})",
            f"long ({medium + 1} or more)",
        ]
    )
    slice_numbers = (lengths > short).astype(int) + (lengths > medium)
    return list(labels[slice_numbers].tolist())
