"""Parts of the queries: do the retrievers differ within one, and does the difference change from one to another?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from harness.stats.adjust import adjust
from harness.stats.differences import SLACK, Floats, differences
from harness.stats.facts import Facts, ScoreTable
from harness.stats.families import Pairs, TestRow, correction_of, deciding_rows
from harness.stats.intervals import mean
from harness.stats.settings import Settings
from harness.stats.sign_flip import DRAWS, flipped_sums
from harness.stats.units import Units, singles, units_of

FEWEST = 10
"""Queries below which a slice is not tested."""


def slice_family(
    scores: ScoreTable,
    pairs: Pairs,
    labels: Sequence[str],
    *,
    names: tuple[str, str],
    settings: Settings,
    facts: Facts = Facts(),  # noqa: B008 - frozen
) -> list[TestRow]:
    """Return the deciding tests of the pairs within each slice of the queries: one family, always exploratory.

    Corrected over all slices and pairs together. Slices of fewer than 10 queries are left out: `small_slices`
    names them.

    Args:
        scores: retriever -> (n,) scores, queries in the order of their ids.
        pairs: whom to compare.
        labels: (n,) each query's slice; "" belongs to none.
        names: the family's, such as "field language" or "query length", and the measure's.
        settings: as in `pair_family`.
        facts: clusters of the queries.
    """
    parts = []
    for kind, places in _large(labels).items():
        clusters = None if facts.clusters is None else [facts.clusters[place] for place in places]
        units = singles(len(places)) if clusters is None else units_of(clusters)
        parts.append((kind, {who: values[places] for who, values in scores.items()}, units))
    return deciding_rows(parts, pairs, names, settings)


def interaction_family(
    scores: ScoreTable,
    pairs: Pairs,
    labels: Sequence[str],
    *,
    names: tuple[str, str],
    settings: Settings,
    facts: Facts = Facts(),  # noqa: B008 - frozen
) -> list[TestRow]:
    """Return, for each pair, the test of "the mean difference is the same in every slice": one family.

    The statistic is the range of the slices' mean differences, held against 100,000 sign flips of the differences
    centred within each slice, p = (count + 1) / (draws + 1). None where fewer than two slices have 10 queries (10
    clusters, where declared: centred, a few of them leave nothing to flip).

    Args:
        scores: retriever -> (n,) scores, queries in the order of their ids.
        pairs: whom to compare.
        labels: (n,) each query's slice; "" belongs to none.
        names: the family's, such as "interaction query length", and the measure's.
        settings: correction (Holm where they say "tukey") and seed.
        facts: clusters of the queries.
    """
    units = facts.units(len(labels))
    slices = {kind: places for kind, places in _large(labels).items() if len({*units.members[places]}) >= FEWEST}
    if len(slices) < 2 or not pairs:
        return []
    asked = sum(map(len, slices.values()))
    gaps = [differences(scores[a], scores[b]).values for a, b in pairs]
    means = np.array([[mean(d[places]) for places in slices.values()] for d in gaps])
    observed = np.ptp(means, axis=1)
    p_values = _p_of_ranges(observed, (scores, pairs), list(slices.values()), units, settings.seed)
    adjusted = adjust(p_values, correction_of(settings))
    note = ", ".join(slices)
    return [
        TestRow(*names, a, b, asked, gap, p, corrected, "draws", note, mean(d))
        for (a, b), d, gap, p, corrected in zip(pairs, gaps, observed.tolist(), p_values, adjusted, strict=True)
    ]


def _p_of_ranges(
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


def _large(labels: Sequence[str]) -> dict[str, list[int]]:
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
