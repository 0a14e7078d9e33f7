"""Slices that are shown to differ from the other queries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.evaluation.property_slices import PropertySlice
from harness.scoring.scores import QueryMask
from harness.stats.differences import Floats
from harness.stats.settings import Settings
from harness.stats.slice_contrasts import (
    MIN_SIDE,
    SliceContrast,
    SliceMasks,
    slice_contrasts,
)
from harness.stats.units import Units

MAX_SLICES = 5
"""Slices that are named, or that one half of the queries proposes, at most."""
MIN_CONFIRMED_UNITS = 120
"""Observations from which the halves of the queries are tested by themselves."""


class ShownSlice(NamedTuple):
    """A slice that differs from the other queries."""

    property_slice: PropertySlice
    contrast: SliceContrast
    confirmed: bool | None
    """Whether one half of the queries proposes the slice, and the other half alone
    shows it; None with fewer than 120 observations."""


def shown_slices(
    differences: Floats,
    slices: Sequence[PropertySlice],
    units: Units,
    ids: Sequence[str],
    *,
    settings: Settings,
) -> list[ShownSlice]:
    """Return the slices that differ from the other queries, strongest first.

    The strongest explains the largest share of the scatter of the differences: t would
    put few queries with a small scatter first. All slices are one family over all
    queries, and it decides what is shown. The halves confirm, and take nothing away:
    half of the queries show only large differences.

    Args:
        differences: (n,) scores of one retriever minus those of another.
        slices: that divide the queries, one or more.
        units: clusters and weights of the queries.
        ids: (n,) the queries.
        settings: level and seed.
    """
    masks = np.column_stack([candidate.mask for candidate in slices])
    contrasts = slice_contrasts(
        differences, masks, units, alpha=settings.alpha, seed=settings.seed
    )
    columns = [
        column
        for column, contrast in enumerate(contrasts)
        if contrast.p_adjusted <= settings.alpha and contrast.gap
    ]
    if not columns:
        return []
    columns.sort(key=lambda column: -contrasts[column].explained)
    confirmed = confirmed_slices(differences, masks, units, ids, settings=settings)
    return [
        ShownSlice(
            slices[column],
            contrasts[column],
            None if confirmed is None else column in confirmed,
        )
        for column in columns[:MAX_SLICES]
    ]


def confirmed_slices(
    differences: Floats,
    masks: SliceMasks,
    units: Units,
    ids: Sequence[str],
    *,
    settings: Settings,
) -> frozenset[int] | None:
    """Return the slices that one half proposes and the other half alone shows.

    The first half proposes at most five slices: those of the largest statistics that
    would be significant by themselves. On the second half they are a family of their
    own, and must differ in the same direction. None with fewer than 120 observations.
    """
    if len(units) < MIN_CONFIRMED_UNITS:
        return None
    is_first = split_in_halves(ids, units, settings.seed)
    proposals = _half_contrasts(differences, masks, units, is_first, settings=settings)
    threshold = float(special.ndtri(1 - settings.alpha / 2))
    statistics = {
        column: abs(contrast.statistic) for column, contrast in proposals.items()
    }
    by_statistic = sorted(statistics, key=lambda column: -statistics[column])
    proposed = [
        column
        for column in by_statistic[:MAX_SLICES]
        if statistics[column] >= threshold
    ]
    tests = _half_contrasts(
        differences, masks, units, ~is_first, settings=settings, columns=proposed
    )
    return frozenset(
        column
        for column, contrast in tests.items()
        if contrast.p_adjusted <= settings.alpha
        and contrast.gap * proposals[column].gap > 0
    )


def _half_contrasts(
    differences: Floats,
    masks: SliceMasks,
    units: Units,
    half: QueryMask,
    *,
    settings: Settings,
    columns: Sequence[int] | None = None,
) -> dict[int, SliceContrast]:
    """Return the contrasts of slices on one half of the queries.

    Slices with fewer than two queries on a side are left out.
    """
    candidates = range(masks.shape[1]) if columns is None else columns
    half_masks = masks[half]
    sizes = half_masks.sum(axis=0)
    usable = [
        column
        for column in candidates
        if MIN_SIDE <= sizes[column] <= len(half_masks) - MIN_SIDE
    ]
    if not usable:
        return {}
    contrasts = slice_contrasts(
        differences[half],
        half_masks[:, usable],
        units.select(half),
        alpha=settings.alpha,
        seed=settings.seed,
    )
    return dict(zip(usable, contrasts, strict=True))


def split_in_halves(ids: Sequence[str], units: Units, seed: int) -> QueryMask:
    """Return which queries are in the first half, by SHA-256 of (seed, id).

    Clusters stay whole, by the first of their ids; the order of the queries and other
    retrievers change nothing.
    """
    first_ids: dict[int, str] = {}
    members = units.members.tolist()
    for unit, query_id in zip(members, ids, strict=True):
        first_ids[unit] = min(query_id, first_ids.get(unit, query_id))
    by_digest = sorted(first_ids, key=lambda unit: _digest(seed, first_ids[unit]))
    first_half = frozenset(by_digest[: len(by_digest) // 2])
    return np.array([unit in first_half for unit in members])


def _digest(seed: int, query_id: str) -> bytes:
    return hashlib.sha256(f"{seed}/halves/{query_id}".encode()).digest()
