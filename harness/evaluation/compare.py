"""Families of compared pairs.

A family is all pairs of one measure that are declared: each other retriever with the
baseline, or every two. This says which pairs there are and over which queries, and
makes the rows of comparisons.csv; `pair_tests` tests and corrects.
"""

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
from harness.stats.intervals import Interval, student_interval
from harness.stats.settings import Settings

MAX_FAMILY_PAIRS = 1_000
"""If the primary measure has more pairs, it alone is compared.

With ten measures and more pairs, the tests would take minutes.
"""
RESIDUAL_PARAMETER = "residual=True"
"""Part of a measure's name: it measures how much unjudged documents could add."""


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
    """Compare retrievers on every measure; the pairs of one measure are one family.

    The primary measure's rows are confirmatory. A pair is compared over the queries for
    which both have a value; column `n` counts them. A pair without such a query has no
    row, but the correction counts it as a test with p = 1. Pairs of the primary measure
    can be called equivalent only if all of them have the same queries.

    Args:
        scores: of any measures.
        baseline: each other retriever is compared with it; all pairs are compared if it
            is None, or has no scores.
        settings: the tests and their levels.
        equivalence: `run_equivalence_tests` of the primary measure's family, if it was
            called before; else it is called. It is used only if pairs can be called
            equivalent, and alpha is not spent (`Settings.alpha_spent`).

    Returns:
        The rows of each measure in turn; empty for fewer than two retrievers.
    """
    families = _measure_families(scores, baseline)
    tested_pairs = _test_families(scores, families, settings)
    rows: list[Comparison] = []
    for measure, family in families.items():
        tested_family = [tested_pairs[key] for key in family if key in tested_pairs]
        rows += _compare_family(
            scores,
            tested_family,
            settings,
            measure=measure,
            absent_pairs=len(family) - len(tested_family),
            confirmatory=measure == scores.primary,
            equivalence=equivalence,
        )
    return rows


def _measure_families(
    scores: Scores, baseline: str | None
) -> dict[str, list[MeasurePair]]:
    """Return each measure with the pairs of its family.

    These are all pairs if the baseline has no scores on the measure. Above
    `MAX_FAMILY_PAIRS` only the primary measure has a family. A residual never has one:
    it does not measure quality.
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
    """Test all pairs that have queries, together where the queries are the same.

    Pairs over the same queries get one `Scores` object, by which
    `_find_equivalent_pairs` recognises them.
    """
    masks: dict[bytes, QueryMask] = {}
    keys_by_mask: dict[bytes, list[MeasurePair]] = {}
    for family in families.values():
        for key in family:
            mask = scores.defined(key.measure, key.a, key.b)
            if mask.any():
                masks[mask.tobytes()] = mask
                keys_by_mask.setdefault(mask.tobytes(), []).append(key)
    tested_pairs: dict[MeasurePair, TestedPair] = {}
    for mask_bytes, mask in masks.items():
        selected = scores.select_queries(mask)
        tested_pairs |= run_pair_tests(selected, keys_by_mask[mask_bytes], settings)
    return tested_pairs


def compare_pairs(
    scores: Scores, name_pairs: Sequence[tuple[str, str]], settings: Settings
) -> list[Comparison]:
    """Compare some pairs of retrievers on the primary measure, as one family.

    Only queries for which every retriever of `scores` has a value count, even one that
    is in no pair; there must be one. The rows are in the order of the pairs.
    """
    primary = scores.primary
    primary_scores = scores.select_measures(primary)
    complete = primary_scores.select_queries(scores.defined(primary))
    family = [MeasurePair(primary, a, b) for a, b in name_pairs]
    tested_pairs = list(run_pair_tests(complete, family, settings).values())
    return list(_compare_family(complete, tested_pairs, settings, measure=primary))


def _compare_family(
    scores: Scores,
    tested_pairs: Sequence[TestedPair],
    settings: Settings,
    *,
    measure: str,
    absent_pairs: int = 0,
    confirmatory: bool = True,
    equivalence: EquivalenceTests | None = None,
) -> Iterator[Comparison]:
    """Yield the row of each pair of one family; each absent pair counts with p = 1.

    Args:
        scores: of at least this measure.
        tested_pairs: the pairs of the family that have queries.
        settings: the tests and their levels.
        measure: that of the family.
        absent_pairs: how many pairs of the family have no query.
        confirmatory: whether it is the primary measure's family. Only there can pairs
            be equivalent, or have identical rankings as the reason: the margin is for
            the primary measure, and rankings were compared down to its cutoff.
        equivalence: `run_equivalence_tests` of this family, if it was called before.
    """
    reasons: dict[MeasurePair, Reason] = {}
    equivalent_pairs: set[tuple[str, str]] = set()
    if confirmatory:
        for pair in tested_pairs:
            if frozenset(pair.key.retrievers) in scores.identical:
                reasons[pair.key] = Reason.IDENTICAL
        if not absent_pairs:
            equivalent_pairs = _find_equivalent_pairs(
                tested_pairs, settings, equivalence
            )
    if not _is_measured(scores, measure):
        # It is the reason of every pair, even of one with identical rankings.
        reasons = {pair.key: Reason.NOTHING_MEASURED for pair in tested_pairs}
    adjusted_pairs = family_verdicts(
        tested_pairs,
        settings,
        reasons=reasons,
        equivalent_pairs=equivalent_pairs,
        absent_pairs=absent_pairs,
    )
    for pair, adjusted in zip(tested_pairs, adjusted_pairs, strict=True):
        yield _comparison_row(
            scores, pair, adjusted, settings, confirmatory=confirmatory
        )


def _find_equivalent_pairs(
    tested_pairs: Sequence[TestedPair],
    settings: Settings,
    equivalence: EquivalenceTests | None,
) -> set[tuple[str, str]]:
    """Return the pairs of the primary measure that are shown to be equivalent.

    Empty without a margin, if alpha is spent, or if not all pairs have the same
    queries: the tests of the family read one table of scores.

    Args:
        tested_pairs: all pairs of the family.
        settings: margin and level.
        equivalence: the tests of exactly these pairs; None: they are run here.
    """
    if not tested_pairs or settings.alpha_spent:
        return set()
    shared_scores = tested_pairs[0].scores  # see `_test_families`
    if any(pair.scores is not shared_scores for pair in tested_pairs):
        return set()
    if equivalence is None:
        equivalence = run_equivalence_tests(
            shared_scores.select_measures(tested_pairs[0].key.measure),
            [pair.key.retrievers for pair in tested_pairs],
            settings,
        )
    return {
        retrievers
        for retrievers, result in equivalence.items()
        if result.p_adjusted <= settings.alpha
    }


def _is_measured(scores: Scores, measure: str) -> bool:
    """Whether any score of the measure is neither 0 nor undefined."""
    columns = scores.values[measure].values()
    return any(np.nan_to_num(column).any() for column in columns)


def _comparison_row(
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
    interval = _pair_interval(scores, pair, settings)
    has_signed_ranks = units.weights is None  # they cannot be weighted
    # Numbers stay a - b for every measure; only the verdict says which is better.
    finding = adjusted.finding
    if pair.key.measure in scores.low_is_good:
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
        p_wilcoxon=signed_rank.p_value if has_signed_ranks else None,
        p_wilcoxon_adjusted=adjusted.p_wilcoxon_adjusted,
    )


def _pair_interval(scores: Scores, pair: TestedPair, settings: Settings) -> Interval:
    """Return the interval of a pair's mean difference, uncorrected.

    For scores of 0 and 1 it inverts the sign-flip test: it excludes 0 exactly if the
    uncorrected two-sided p of that test is at most alpha. With weights or clusters, and
    for other scores, it is Student's t.
    """
    measure = pair.key.measure
    differences = pair.observations.differences
    units = pair.observations.units
    is_weighted = units.weights is not None
    if scores.is_binary(measure) and not is_weighted and not units.clustered:
        tied = len(differences.values) - differences.wins - differences.losses
        counts = PairCounts(differences.wins, differences.losses, tied)
        return binary_interval(counts, settings.alpha)
    return student_interval(
        differences.values,
        settings.level,
        bounds=scores.difference_range(measure),
        units=units,
    )
