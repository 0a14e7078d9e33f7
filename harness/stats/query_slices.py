"""Parts of the queries, and whether a difference changes from one part to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from harness.stats.differences import SLACK, Floats, ScoreTable, Units
from harness.stats.intervals import mean
from harness.stats.sign_flip import DRAWS, flipped_sums

Pairs = Sequence[tuple[str, str]]

FEWEST = 10
"""Queries below which a slice is not tested."""


def p_of_ranges(
    observed: Floats, compared: tuple[ScoreTable, Pairs], slices: Sequence[list[int]], units: Units, seed: int
) -> list[float]:
    """Return each pair's p: how often flipped signs give its slices' means at least the observed range."""
    scores, pairs = compared
    names = list(scores)
    plus, less = (np.array([names.index(pair[side]) for pair in pairs], dtype=np.intp) for side in (0, 1))
    # What each unit adds to a slice's mean of each retriever: the sums of a pair are the difference of two columns, so
    # that the product grows with the retrievers and not with their pairs.
    columns = np.zeros((len(units), len(slices), len(names)))
    for slot, places in enumerate(slices):
        for number, values in enumerate(scores.values()):
            off = (values[places] - mean(values[places])) / len(places)
            np.add.at(columns[:, slot, number], units.members[places], off)
    flat = columns.reshape(len(units), -1)
    slack = SLACK * np.maximum(1.0, observed)
    reached = np.zeros(len(pairs), dtype=np.int64)
    for sums in flipped_sums(flat, seed):
        drawn = sums.reshape(-1, len(slices), len(names))
        means = [drawn[:, slot, plus] - drawn[:, slot, less] for slot in range(len(slices))]
        ranges = np.maximum.reduce(means) - np.minimum.reduce(means)
        reached += np.count_nonzero(ranges >= observed - slack, axis=0)
    return [(int(count) + 1) / (DRAWS + 1) for count in reached]


def large_slices(labels: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of the queries of each slice that is large enough."""
    places: dict[str, list[int]] = {}
    for place, kind in enumerate(labels):
        places.setdefault(kind, []).append(place)
    return {kind: places[kind] for kind in sorted(places) if kind and len(places[kind]) >= FEWEST}


def small_slices(labels: Sequence[str]) -> dict[str, int]:
    """Return the slices that are too small to be tested, with their numbers of queries.

    >>> small_slices(["en"] * 12 + ["ja"] * 3)
    {'ja': 3}
    """
    return {kind: count for kind, count in sorted(Counter(labels).items()) if kind and count < FEWEST}


def length_slices(texts: Sequence[str]) -> list[str]:
    """Return each query's slice by its length in characters: thirds, equal lengths together.

    >>> length_slices(["a", "bb", "ccc"])
    ['short (up to 1)', 'medium (2 to 2)', 'long (3 or more)']
    """
    lengths = np.array([len(text) for text in texts])
    short, medium = (int(x) for x in np.quantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf"))
    return [
        f"short (up to {short})"
        if length <= short
        else f"medium ({short + 1} to {medium})"
        if length <= medium
        else f"long ({medium + 1} or more)"
        for length in lengths.tolist()
    ]
