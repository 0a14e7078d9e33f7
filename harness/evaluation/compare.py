"""Families of compared pairs."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from harness.evaluation.pair_tests import (
    AdjustedPair,
    EquivalenceTests,
    MeasurePair,
    TestedPair,
    family_verdicts,
    run_equivalence_tests,
    run_pair_tests,
)
from harness.evaluation.verdict import Comparison, Reason
from harness.scoring.scores import QueryMask, Scores
from harness.stats.binary_interval import PairCounts, binary_interval
from harness.stats.differences import PairedDifferences
from harness.stats.intervals import Interval, student_interval
from harness.stats.settings import Settings
from harness.stats.units import Units

MAX_FAMILY_PAIRS = 1_000
"""If the primary measure has more pairs, it alone is compared."""
RESIDUAL_PARAMETER = "residual=True"
"""Marks a measure that says how much unjudged documents could add to a score."""


def family_pairs(
    names: Sequence[str], baseline: str | None = None
) -> list[tuple[str, str]]:
    """Return the pairs (a, b) of one family, in the given order.

    Each other retriever with the baseline, or all pairs without one.

    >>> family_pairs(["x", "y", "z"])
    [('x', 'y'), ('x', 'z'), ('y', 'z')]
    >>> family_pairs(["x", "y", "z"], baseline="y")
    [('x', 'y'), ('z', 'y')]
    """
    if baseline is None:
        return list(combinations(names, 2))
    return [(name, baseline) for name in names if name != baseline]


def compare_retrievers(
    scores: Scores,
    *,
    baseline: str | None = None,
    settings: Settings,
    equivalence: EquivalenceTests | None = None,
) -> list[Comparison]:
    """Compare retrievers on every measure, each of which is one family.

    The primary measure's rows are confirmatory. A pair is compared over the queries for
    which both have a value; column `n` counts them. A pair without such a query has no
    row; it belongs to the family, so the correction counts it as a test with p = 1. If
    the pairs of the primary measure have different queries, nothing is called
    equivalent.

    Args:
        scores: of any measures; the draws are shared by all measures and pairs of the
            same queries.
        baseline: each other retriever is compared with it; all pairs are compared if it
            is None, or has no scores.
        settings: the tests and their levels.
        equivalence: `run_equivalence_tests` of the primary measure's family, if it was
            called before; it is used only if each pair has a row.

    Returns:
        The rows of each measure in turn; none for fewer than two retrievers.
    """
    families = _measure_families(scores, baseline)
    pairs = _test_families(scores, families, settings)
    rows: list[Comparison] = []
    for measure, keys in families.items():
        tested = [pairs[key] for key in keys if key in pairs]
        rows += _compare_family(
            scores.select_measures(measure),
            tested,
            settings,
            absent_pairs=len(keys) - len(tested),
            confirmatory=measure == scores.primary,
            equivalence=equivalence,
        )
    return rows


def _measure_families(
    scores: Scores, baseline: str | None
) -> dict[str, list[MeasurePair]]:
    """Return the pairs of each measure's family.

    All pairs if the baseline has no scores. Above 1,000 pairs only the primary measure
    has a family; a residual, which is no quality, never has one.
    """
    families: dict[str, list[MeasurePair]] = {}
    for measure, scores_by_retriever in scores.values.items():
        if RESIDUAL_PARAMETER in measure:
            continue
        measure_baseline = baseline if baseline in scores_by_retriever else None
        families[measure] = [
            MeasurePair(measure, a, b)
            for a, b in family_pairs(list(scores_by_retriever), measure_baseline)
        ]
    primary_pairs = families.get(scores.primary, [])
    if len(primary_pairs) > MAX_FAMILY_PAIRS:
        return {scores.primary: primary_pairs}
    return families


def _test_families(
    scores: Scores, families: dict[str, list[MeasurePair]], settings: Settings
) -> dict[MeasurePair, TestedPair]:
    """Test all pairs that have queries; those over the same queries share the draws."""
    masks: dict[bytes, QueryMask] = {}
    keys_by_mask: dict[bytes, list[MeasurePair]] = {}
    for keys in families.values():
        for key in keys:
            mask = scores.defined(key.measure, key.a, key.b)
            if mask.any():
                masks[mask.tobytes()] = mask
                keys_by_mask.setdefault(mask.tobytes(), []).append(key)
    pairs: dict[MeasurePair, TestedPair] = {}
    for mask_bytes, mask in masks.items():
        selected = scores.select_queries(mask)
        pairs |= run_pair_tests(selected, keys_by_mask[mask_bytes], settings)
    return pairs


def compare_pairs(
    scores: Scores, pairs: Sequence[tuple[str, str]], settings: Settings
) -> list[Comparison]:
    """Compare some pairs on the primary measure, as one family.

    Only queries for which every retriever has a value count.
    """
    primary = scores.primary
    primary_scores = scores.select_measures(primary)
    complete = primary_scores.select_queries(scores.defined(primary))
    keys = [MeasurePair(primary, *pair) for pair in pairs]
    tested = run_pair_tests(complete, keys, settings)
    return list(_compare_family(complete, list(tested.values()), settings))


def _compare_family(
    scores: Scores,
    pairs: Sequence[TestedPair],
    settings: Settings,
    *,
    absent_pairs: int = 0,
    confirmatory: bool = True,
    equivalence: EquivalenceTests | None = None,
) -> Iterator[Comparison]:
    """Yield the row of each pair of one family; each absent pair counts with p = 1."""
    reasons: dict[MeasurePair, Reason] = {}
    equivalent_pairs: set[tuple[str, str]] = set()
    if confirmatory:
        for pair in pairs:
            if frozenset(pair.key.retrievers) in scores.identical:
                reasons[pair.key] = Reason.IDENTICAL
        if not absent_pairs:
            equivalent_pairs = _find_equivalent_pairs(pairs, settings, equivalence)
    if not _is_measured(scores):
        reasons = {pair.key: Reason.NOTHING_MEASURED for pair in pairs}
    adjusted_pairs = family_verdicts(
        pairs,
        settings,
        reasons=reasons,
        equivalent_pairs=equivalent_pairs,
        absent_pairs=absent_pairs,
    )
    for pair, adjusted in zip(pairs, adjusted_pairs, strict=True):
        yield _comparison(scores, pair, adjusted, settings, confirmatory=confirmatory)


def _find_equivalent_pairs(
    pairs: Sequence[TestedPair],
    settings: Settings,
    equivalence: EquivalenceTests | None,
) -> set[tuple[str, str]]:
    """Return the pairs that are shown to be equivalent.

    None is, if pairs are compared on different queries.
    """
    if not pairs or settings.alpha_spent:
        return set()
    shared_scores = pairs[0].scores  # one object for all pairs of the same queries
    if any(pair.scores is not shared_scores for pair in pairs):
        return set()
    if equivalence is None:
        equivalence = run_equivalence_tests(
            shared_scores.select_measures(pairs[0].key.measure),
            [pair.key.retrievers for pair in pairs],
            settings,
        )
    return {
        retrievers
        for retrievers, result in equivalence.items()
        if result.p_adjusted <= settings.alpha
    }


def _is_measured(scores: Scores) -> bool:
    """Whether any score of the family's measure is neither 0 nor undefined."""
    columns = scores.values[scores.primary].values()
    return any(np.nan_to_num(column).any() for column in columns)


def _comparison(
    scores: Scores,
    pair: TestedPair,
    adjusted: AdjustedPair,
    settings: Settings,
    *,
    confirmatory: bool,
) -> Comparison:
    """Return the row of one pair."""
    observations = pair.observations
    differences = observations.differences
    units = observations.units
    signed_rank = observations.signed_rank
    n = len(differences.values)
    interval = _pair_interval(scores, differences, units, settings)
    finding = adjusted.finding
    if scores.primary in scores.low_is_good:
        finding = finding.swapped
    return Comparison(
        measure=pair.key.measure,
        a=pair.key.a,
        b=pair.key.b,
        n=n,
        zeros=signed_rank.zeros,
        wins=differences.wins,
        ties=n - differences.wins - differences.losses,
        losses=differences.losses,
        mean_difference=pair.difference,
        ci_low=interval.low,
        ci_high=interval.high,
        w_plus=signed_rank.w_plus,
        w_minus=signed_rank.w_minus,
        statistic=signed_rank.statistic,
        p_value=pair.outcome.p_value,
        p_adjusted=adjusted.p_adjusted,
        p_minimum=pair.outcome.p_minimum,
        method=pair.outcome.method,
        effect_size=signed_rank.effect_size,
        finding=finding,
        role="confirmatory" if confirmatory else "exploratory",
        p_minimum_adjusted=adjusted.p_minimum_adjusted,
        p_randomization=observations.flip_test.two_sided,
        ci_method=interval.method,
        p_randomization_adjusted=adjusted.p_randomization_adjusted,
        clusters=len(units) if units.clustered else None,
        p_wilcoxon=None
        if adjusted.p_wilcoxon_adjusted is None
        else signed_rank.p_value,
        p_wilcoxon_adjusted=adjusted.p_wilcoxon_adjusted,
    )


def _pair_interval(
    scores: Scores, differences: PairedDifferences, units: Units, settings: Settings
) -> Interval:
    """Return the interval of a mean difference, of this pair alone.

    For scores of 0 and 1 it inverts the sign-flip test, so that it never contradicts
    the verdict; with weights or clusters, and for other scores, it is Student's t.
    """
    is_binary = scores.is_binary(scores.primary)
    if is_binary and units.weights is None and not units.clustered:
        tied = len(differences.values) - differences.wins - differences.losses
        counts = PairCounts(differences.wins, differences.losses, tied)
        return binary_interval(counts, 1 - settings.level)
    return student_interval(
        differences.values, settings.level, bounds=scores.gap_range, units=units
    )
