"""Slices of the queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from retrievers.ids import CONTROL_CHARACTERS
from retrievers.types import Query


def slice_labels(
    queries: Sequence[Query], cluster: str | None = None
) -> dict[str, list[str]]:
    r"""Return family -> each query's slice: by its text's length, and by each field that queries have.

    A field whose values are the clusters makes no slices. Names are as tests.csv has them, by which they are found.

    >>> slice_labels([Query("1", "a", {"ki\nd": "x\ty"})])["field ki d"]
    ['x y']
    """
    kinds = (
        {"query length": length_slices([query.text for query in queries])}
        if queries
        else {}
    )
    for name in sorted(
        {name for query in queries for name in query.fields} - {cluster}
    ):
        labels = [
            CONTROL_CHARACTERS.sub(" ", query.fields.get(name, "")) for query in queries
        ]
        kinds[CONTROL_CHARACTERS.sub(" ", f"field {name}")] = labels
    return kinds


MIN_SLICE_QUERIES = 10
"""Queries below which a slice is not tested."""


def large_slices(labels: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of the queries of each slice that is large enough.

    >>> large_slices(["en"] * 10 + ["ja"] * 9 + [""] * 10)
    {'en': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
    """
    kinds = [
        kind
        for kind, count in sorted(Counter(labels).items())
        if kind and count >= MIN_SLICE_QUERIES
    ]
    return {
        kind: [place for place, own in enumerate(labels) if own == kind]
        for kind in kinds
    }


def small_slices(labels: Sequence[str]) -> dict[str, int]:
    """Return the slices that are too small to be tested, with their numbers of queries.

    >>> small_slices(["en"] * 12 + ["ja"] * 3)
    {'ja': 3}
    """
    return {
        kind: count
        for kind, count in sorted(Counter(labels).items())
        if kind and count < MIN_SLICE_QUERIES
    }


def length_slices(texts: Sequence[str]) -> list[str]:
    """Return each query's slice by its length in characters: thirds, equal lengths together.

    >>> length_slices(["a", "bb", "ccc"])
    ['short (up to 1)', 'medium (2 to 2)', 'long (3 or more)']
    """
    lengths = np.array([*map(len, texts)])
    short, medium = (
        int(x) for x in np.quantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf")
    )
    names = np.array(
        [
            f"short (up to {short})",
            f"medium ({short + 1} to {medium})",
            f"long ({medium + 1} or more)",
        ]
    )
    return list(names[(lengths > short).astype(int) + (lengths > medium)].tolist())
