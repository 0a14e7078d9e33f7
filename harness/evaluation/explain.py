"""Why one retriever loses to another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from harness.evaluation.evaluation_file import read_or_evaluate
from harness.evaluation.property_slices import (
    PropertySlice,
    QueryMask,
    SliceName,
    property_slices,
)
from harness.evaluation.what_follows import Remedy, remedy_of
from harness.records import Results
from harness.scoring.scores import Scores
from harness.scoring.stored_scores import stored_scores
from harness.stats.differences import Floats, paired_differences
from harness.stats.settings import Settings
from harness.stats.slice_contrasts import SliceContrast, SliceMasks, slice_contrasts
from harness.stats.units import Units
from retrievers.errors import InputError, Problem, did_you_mean

MAX_FINDINGS = 5
"""Slices that are named, and that one half of the queries proposes to the other."""
MIN_CONFIRMED_UNITS = 120
"""Observations from which the halves of the queries are tested by themselves."""


class Silence(Enum):
    """Why no slice is named."""

    NOTHING_FOUND = "nothing found"
    NO_SLICES = "no slices"
    """No property divides the queries into parts of ten or more."""
    MODEL_ALONE = "model alone"
    """No person judged these queries."""
    ALPHA_SPENT = "alpha spent"
    """The planned looks have spent the level."""


class SliceFinding(NamedTuple):
    """A slice on which one retriever scores lower, unlike on the other queries."""

    name: SliceName
    loser: str
    """The retriever with the lower mean on the slice."""
    winner: str
    queries: int
    """In the slice."""
    other_queries: int
    difference: float
    """Mean of the loser minus mean of the winner, on the slice."""
    other_difference: float
    """The same on the other queries."""
    ci_low: float | None
    """Both ends of the interval of the gap, which holds for all slices at once; None if
    it cannot be estimated."""
    ci_high: float | None
    p_adjusted: float
    """Corrected over all slices of all properties and fields."""
    confirmed: bool | None
    """Whether one half of the queries proposes the slice, and the other half alone
    shows it; None with fewer than 120 observations."""
    remedy: Remedy | None
    """What to try, where it is known."""
    mask: QueryMask
    """(n,): the queries of the slice."""

    @property
    def gap(self) -> float:
        """The difference on the slice minus that on the other queries."""
        return self.difference - self.other_difference


class Explanation(NamedTuple):
    """Where one retriever loses to another."""

    a: str
    b: str
    measure: str
    n: int
    """Queries."""
    level: float
    """Of the intervals, over all slices."""
    tested: int
    """Slices that were tested."""
    findings: tuple[SliceFinding, ...]
    """Strongest first; at most five."""
    silence: Silence | None
    """Why there is none."""


def explain_results(results: Results, a: str, b: str) -> Explanation:
    """Explain the difference of two retrievers of a results folder.

    Raises:
        InputError: a retriever did not finish, or the folder has no properties.
    """
    for retriever in (a, b):
        if retriever not in results.retrievers:
            problem = f"no retriever is called {retriever!r}"
            remedy = did_you_mean(retriever, results.retrievers)
            raise InputError(Problem(str(results.folder), problem, remedy))
    if a == b:
        problem = f"A and B are the same retriever, {a!r}"
        raise InputError(Problem(str(results.folder), problem, "name two"))
    if not results.query_properties:
        problem = "has no properties.csv: an earlier version wrote it"
        remedy = "run the experiment again; the cache makes it free"
        raise InputError(Problem(str(results.folder), problem, remedy))
    scores = stored_scores(results)
    settings = read_or_evaluate(results).settings
    return explain_scores(results, scores, settings, a, b)


def explain_scores(
    results: Results, scores: Scores, settings: Settings, a: str, b: str
) -> Explanation:
    """Explain the difference of two retrievers on the primary measure.

    Args:
        results: their queries with the properties.
        scores: of the run; queries without a score of either are left out.
        settings: the level, the declared cluster, the seed.
        a: a retriever.
        b: another one.
    """
    scores = scores.select_measures(scores.primary)
    scores = scores.select_queries(scores.defined(scores.primary, a, b))
    resolved = results.manifest.resolved
    parts = (*resolved.retriever_with_parts(a), *resolved.retriever_with_parts(b))
    slices = property_slices(
        [results.queries[query_id].query for query_id in scores.ids],
        results.query_properties,
        parts,
        settings.cluster,
    )
    silence = _silence(settings, slices)
    findings: tuple[SliceFinding, ...] = ()
    if silence is None:
        findings = tuple(_find_slices(results, scores, settings, slices, (a, b)))
        if not findings:
            silence = Silence.NOTHING_FOUND
    return Explanation(
        a=a,
        b=b,
        measure=scores.primary,
        n=scores.n,
        level=settings.level,
        tested=len(slices),
        findings=findings,
        silence=silence,
    )


def _silence(settings: Settings, slices: Sequence[PropertySlice]) -> Silence | None:
    """Return why nothing may be claimed, before any test."""
    if not settings.judged_by_people:
        return Silence.MODEL_ALONE
    if settings.alpha_spent:
        return Silence.ALPHA_SPENT
    return None if slices else Silence.NO_SLICES


def _find_slices(
    results: Results,
    scores: Scores,
    settings: Settings,
    slices: Sequence[PropertySlice],
    pair: tuple[str, str],
) -> list[SliceFinding]:
    """Return the slices that differ from the other queries, strongest first."""
    a, b = pair
    columns = scores.values[scores.primary]
    differences = paired_differences(columns[a], columns[b]).values
    masks = np.column_stack([each.mask for each in slices])
    contrasts = slice_contrasts(
        differences, masks, scores.units, alpha=settings.alpha, seed=settings.seed
    )
    confirmed = confirmed_slices(differences, masks, scores.units, scores.ids, settings)
    shown = [
        column
        for column, contrast in enumerate(contrasts)
        if contrast.p_adjusted <= settings.alpha and contrast.gap
    ]
    shown.sort(key=lambda column: -abs(contrasts[column].statistic))
    findings: list[SliceFinding] = []
    for column in shown[:MAX_FINDINGS]:
        finding = _describe_slice(slices[column], contrasts[column], pair)
        remedy = remedy_of(finding.name, finding.loser, results.manifest.resolved)
        findings.append(
            finding._replace(
                confirmed=None if confirmed is None else column in confirmed,
                remedy=remedy,
            )
        )
    return findings


def _describe_slice(
    property_slice: PropertySlice, contrast: SliceContrast, pair: tuple[str, str]
) -> SliceFinding:
    """Return the finding, about the side on which the retrievers differ more."""
    name = property_slice.name
    mask = property_slice.mask
    inside = contrast.inside
    outside = contrast.outside
    interval = (contrast.low, contrast.high)
    if property_slice.covers_all and abs(outside) > abs(inside):
        name = name.opposite
        mask = ~mask
        inside, outside = outside, inside
        interval = _negated(interval)
    loser, winner = pair
    if inside > 0:
        loser, winner = winner, loser
        inside, outside = -inside, -outside
        interval = _negated(interval)
    queries = int(mask.sum())
    return SliceFinding(
        name=name,
        loser=loser,
        winner=winner,
        queries=queries,
        other_queries=len(mask) - queries,
        difference=inside,
        other_difference=0.0 + outside,
        ci_low=interval[0],
        ci_high=interval[1],
        p_adjusted=contrast.p_adjusted,
        confirmed=None,
        remedy=None,
        mask=mask,
    )


def _negated(
    interval: tuple[float | None, float | None],
) -> tuple[float | None, float | None]:
    """Return the interval of the opposite number."""
    low, high = interval
    if low is None or high is None:
        return interval
    return -high, -low


def confirmed_slices(
    differences: Floats,
    masks: SliceMasks,
    units: Units,
    ids: Sequence[str],
    settings: Settings,
) -> frozenset[int] | None:
    """Return the slices that one half proposes and the other half alone shows.

    The first half proposes the five slices of the largest statistics; on the second,
    these five are a family of their own, and must differ in the same direction. None
    with fewer than 120 observations.
    """
    if len(units) < MIN_CONFIRMED_UNITS:
        return None
    is_first = split_in_halves(ids, units, settings.seed)
    proposals = _half_contrasts(differences, masks, units, is_first, settings)
    proposed = sorted(proposals, key=lambda column: -abs(proposals[column].statistic))
    proposed = proposed[:MAX_FINDINGS]
    shown = _half_contrasts(
        differences, masks, units, ~is_first, settings, columns=proposed
    )
    return frozenset(
        column
        for column, contrast in shown.items()
        if contrast.p_adjusted <= settings.alpha
        and contrast.gap * proposals[column].gap > 0
    )


def _half_contrasts(
    differences: Floats,
    masks: SliceMasks,
    units: Units,
    half: QueryMask,
    settings: Settings,
    *,
    columns: Sequence[int] | None = None,
) -> dict[int, SliceContrast]:
    """Return the contrasts of slices on one half of the queries.

    Slices that have no query of the half, or all, are left out.
    """
    candidates = range(masks.shape[1]) if columns is None else columns
    half_masks = masks[half]
    sizes = half_masks.sum(axis=0)
    usable = [column for column in candidates if 0 < sizes[column] < len(half_masks)]
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
