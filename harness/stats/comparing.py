"""Retrievers against each other on their per-query scores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from harness.stats.adjust import adjust
from harness.stats.comparison import Comparison, TestRole, family
from harness.stats.deciding import Decided, Observed, decide
from harness.stats.differences import Differences, differences
from harness.stats.equivalence import FEWEST, equivalent_pairs
from harness.stats.facts import Facts, Range, ScoreTable, check_finite
from harness.stats.intervals import mean, mean_difference_interval
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import SignedRank, signed_rank_of
from harness.stats.tukey import tukey_hsd
from harness.stats.units import Units
from harness.stats.verdicts import (
    IDENTICAL,
    MODEL_ALONE,
    NO_DIFFERENCE,
    NOTHING,
    UNDECIDED,
    UNDEFINED,
    Evidence,
    verdict_on,
)


class _Pair(NamedTuple):
    """All that was computed about one pair before the family's correction."""

    a: str
    b: str
    differences: Differences
    """Of the queries."""
    ranks: SignedRank
    """Of the units."""
    flips: FlipTest
    decided: Decided


def compare(
    scores: ScoreTable,
    *,
    measure: str,
    baseline: str | None = None,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    role: TestRole = "confirmatory",
    facts: Facts = Facts(),  # noqa: B008 - frozen
) -> list[Comparison]:
    """Compare retrievers on one measure.

    Args:
        scores: retriever -> (n,) scores, queries in the order of their ids.
        measure: its name, copied into the rows.
        baseline: each other retriever is compared with it; None compares all pairs, in the given order.
        settings: the tests and their levels.
        role: "confirmatory" for the primary measure (equivalence is only asked there), else "exploratory".
        facts: the measure's range, clusters, identical rankings; left out, scores in [0, 1] have that range.

    Returns:
        One row for each pair of the family; none for fewer than two retrievers.

    Raises:
        InputError: a score is not a finite number, or outside the declared range.
    """
    primary = measure if role == "confirmatory" else None
    return compare_all({measure: scores}, primary=primary, baseline=baseline, settings=settings, facts=facts)


def compare_all(
    scores: Mapping[str, ScoreTable],
    *,
    primary: str | None,
    baseline: str | None = None,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    facts: Facts = Facts(),  # noqa: B008 - frozen
) -> list[Comparison]:
    """Compare retrievers on several measures, each one family; the draws are shared by all measures and pairs.

    Args:
        scores: measure -> retriever -> (n,) scores over the same queries in the order of their ids.
        primary: the measure declared before the run; its rows are confirmatory, all others exploratory.
        baseline: as in `compare`.
        settings: the tests and their levels.
        facts: as in `compare`.

    Raises:
        InputError: as `compare`.
    """
    check_finite(scores)
    pairs = {measure: family(list(group), baseline) for measure, group in scores.items()}
    n = next((len(values) for group in scores.values() for values in group.values()), 0)
    units = facts.units(n)
    flips = flip_tests(scores, pairs, units, settings.seed)
    rows: list[Comparison] = []
    # NumPy lets go of the interpreter while it counts: two cores count two pairs at once.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tested = {
            measure: [pool.submit(_test, a, b, group, flips[measure, a, b], units, settings) for a, b in pairs[measure]]
            for measure, group in scores.items()
        }
    for measure, group in scores.items():
        members = [future.result() for future in tested[measure]]
        asked = pairs[measure] if measure == primary else []
        shared = _Family(
            measure=measure,
            role="confirmatory" if measure == primary else "exploratory",
            scores=group,
            bounds=facts.range_of(measure, group),
            units=units,
            identical=facts.identical if measure == primary else frozenset(),
            within=equivalent_pairs(group, asked, measure, settings, facts),
            measured=any(values.any() for values in group.values()),
        )
        corrections = _corrected(group, members, units, settings)
        rows += [_row(shared, pair, p, settings) for pair, p in zip(members, corrections, strict=True)]
    return rows


def flip_tests(
    scores: Mapping[str, ScoreTable], pairs: Mapping[str, Sequence[tuple[str, str]]], units: Units, seed: int
) -> dict[tuple[str, str, str], FlipTest]:
    """Return the sign-flip test of every pair of every measure, (measure, a, b) -> test, on shared draws."""
    columns = {(measure, name): i for i, (measure, name) in enumerate((m, r) for m in scores for r in scores[m])}
    keys = [(measure, a, b) for measure in scores for a, b in pairs[measure]]
    if not keys:
        return {}
    table = units.sums(np.column_stack([scores[measure][name] for measure, name in columns]))
    tests = sign_flip(table, [Contrast(columns[m, a], columns[m, b]) for m, a, b in keys], seed)
    return dict(zip(keys, tests, strict=True))


def _test(a: str, b: str, group: ScoreTable, flips: FlipTest, units: Units, settings: Settings) -> _Pair:
    d = differences(group[a], group[b])
    by_unit = differences(units.means(group[a]), units.means(group[b])) if units.clustered else d
    ranks = signed_rank_of(by_unit, zeros=settings.zeros)
    return _Pair(a, b, d, ranks, flips, decide(Observed(d, by_unit, units, flips, ranks), settings.test))


class _Corrected(NamedTuple):
    """The p-values of one pair after its family's correction."""

    decided: float
    mean: float
    floor: float | None


def _corrected(group: ScoreTable, members: Sequence[_Pair], units: Units, settings: Settings) -> list[_Corrected]:
    if settings.correction == "tukey":
        p_values = tukey_hsd(group, settings.seed, units)
        both = [p_values[pair.a, pair.b] for pair in members]
        return [_Corrected(p, p, None) for p in both]
    observed = [pair.decided.p_value for pair in members]
    floors = [
        None if floor is None else adjust([*observed[:i], floor, *observed[i + 1 :]], settings.correction)[i]
        for i, floor in enumerate(pair.decided.p_minimum for pair in members)
    ]
    means = adjust([pair.flips.two_sided for pair in members], settings.correction)
    return [_Corrected(*three) for three in zip(adjust(observed, settings.correction), means, floors, strict=True)]


class _Family(NamedTuple):
    """What the pairs of a family share."""

    measure: str
    role: TestRole
    scores: ScoreTable
    bounds: Range | None
    units: Units
    identical: frozenset[frozenset[str]]
    within: frozenset[tuple[str, str]]
    """Pairs shown to differ by less than the margin."""
    measured: bool
    """Whether any score of the measure is not 0."""

    def state_of(self, pair: _Pair) -> str:
        """Return what there is to say before any test, "" where nothing is."""
        if not self.measured:
            return NOTHING
        if frozenset((pair.a, pair.b)) in self.identical:
            return IDENTICAL
        if not pair.differences.wins + pair.differences.losses:
            return NO_DIFFERENCE
        return UNDEFINED if pair.decided.method == "undefined" else ""


def _row(shared: _Family, pair: _Pair, corrected: _Corrected, settings: Settings) -> Comparison:
    d, ranks, units = pair.differences, pair.ranks, shared.units
    difference = mean(shared.scores[pair.a]) - mean(shared.scores[pair.b])
    span = None if shared.bounds is None else shared.bounds.span
    interval = mean_difference_interval(d, settings, span=span, units=units)
    state = shared.state_of(pair)
    alike = state == IDENTICAL and settings.margin is not None and len(units) >= FEWEST
    evidence = Evidence(
        p_adjusted=corrected.decided,
        p_mean=corrected.mean,
        p_minimum_adjusted=corrected.floor,
        rank_sign=int(np.sign(ranks.w_plus - ranks.w_minus)),
        mean_sign=d.sign(difference),
        state=state,
        within_margin=alike or (pair.a, pair.b) in shared.within,
    )
    return Comparison(
        measure=shared.measure,
        a=pair.a,
        b=pair.b,
        n=len(d.values),
        zeros=ranks.zeros,
        wins=d.wins,
        ties=len(d.values) - d.wins - d.losses,
        losses=d.losses,
        mean_difference=difference,
        ci_low=interval.low,
        ci_high=interval.high,
        w_plus=ranks.w_plus,
        w_minus=ranks.w_minus,
        statistic=ranks.statistic,
        p_value=pair.decided.p_value,
        p_adjusted=corrected.decided,
        p_minimum=pair.decided.p_minimum,
        method=pair.decided.method,
        effect_size=ranks.effect_size,
        verdict=verdict_on(evidence, settings.alpha) if settings.by_people else f"{UNDECIDED}: {MODEL_ALONE}",
        role=shared.role,
        p_minimum_adjusted=corrected.floor,
        p_randomization=pair.flips.two_sided,
        ci_method=interval.method,
        p_randomization_adjusted=corrected.mean,
        clusters=len(units) if units.clustered else None,
    )
