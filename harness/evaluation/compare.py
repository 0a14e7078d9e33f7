"""Families of compared pairs."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from harness.evaluation.pair_tests import (
    EquivalenceTests,
    MeasurePair,
    TestedPair,
    family_verdicts,
    run_equivalence_tests,
    run_pair_tests,
)
from harness.evaluation.verdict import Comparison, Reason
from harness.scoring.scores import Scores
from harness.stats.intervals import student_interval
from harness.stats.settings import Settings


def family_pairs(
    names: Sequence[str], baseline: str | None = None
) -> list[tuple[str, str]]:
    """Return the pairs (a, b) of one family: each other against the baseline, else all pairs in the given order.

    >>> family_pairs(["x", "y", "z"])
    [('x', 'y'), ('x', 'z'), ('y', 'z')]
    >>> family_pairs(["x", "y", "z"], baseline="y")
    [('x', 'y'), ('z', 'y')]
    """
    if baseline is None:
        return list(combinations(names, 2))
    return [(name, baseline) for name in names if name != baseline]


def _keys_of(scores: Scores, baseline: str | None) -> dict[str, list[MeasurePair]]:
    """Return the pairs of each measure's family; all pairs where the baseline has no scores.

    Above 1,000 pairs only the primary measure has a family; a residual, which is no quality, never has one.
    """
    families = {
        measure: [
            MeasurePair(measure, a, b)
            for a, b in family_pairs(
                list(group), baseline if baseline in group else None
            )
        ]
        for measure, group in scores.values.items()
        if RESIDUAL_PARAMETER not in measure
    }
    many = len(families.get(scores.primary, ())) > MAX_FAMILY_PAIRS
    return {
        measure: keys
        for measure, keys in families.items()
        if not many or measure == scores.primary
    }


MAX_FAMILY_PAIRS = 1_000
"""Of one family, beyond which neither other measures nor slices are compared."""
RESIDUAL_PARAMETER = "residual=True"
"""In the name of a measure: how much the unjudged documents could add."""


def compare_retrievers(
    scores: Scores,
    *,
    baseline: str | None = None,
    settings: Settings,
    equivalence: EquivalenceTests | None = None,
) -> list[Comparison]:
    """Compare retrievers on every measure, each one family; the primary measure's rows are confirmatory.

    A pair is compared over the queries for which both have a value; column `n` counts them. A pair without such a
    query has no row, and counts in the correction with p = 1. Where the pairs of the primary measure have different
    queries, nothing is called equivalent.

    Args:
        scores: of any measures; the draws are shared by all measures and pairs of the same queries.
        baseline: each other retriever is compared with it; None, or one without scores, compares all pairs.
        settings: the tests and their levels.
        equivalence: `equivalence_of` the primary measure's family, where that is known.

    Returns:
        The rows of each measure in turn; none for fewer than two retrievers.
    """
    families = _keys_of(scores, baseline)
    kept = {key: scores.defined(*key) for keys in families.values() for key in keys}
    pairs: dict[MeasurePair, TestedPair] = {}
    for mask in {one.tobytes(): one for one in kept.values() if one.any()}.values():
        keys = [key for key, one in kept.items() if np.array_equal(one, mask)]
        pairs |= run_pair_tests(scores.select_queries(mask), keys, settings)
    rows: list[Comparison] = []
    for measure, keys in families.items():
        tested = [pairs[key] for key in keys if key in pairs]
        rows += _family(
            scores.select_measures(measure),
            tested,
            settings,
            absent=len(keys) - len(tested),
            confirmatory=measure == scores.primary,
            equivalence=equivalence,
        )
    return rows


def compare_pairs(
    scores: Scores, pairs: Sequence[tuple[str, str]], settings: Settings
) -> list[Comparison]:
    """Compare some pairs on the primary measure, one family, over the queries for which everyone has a value."""
    kept = scores.select_measures(scores.primary).select_queries(
        scores.defined(scores.primary)
    )
    observed = run_pair_tests(
        kept, [MeasurePair(scores.primary, *pair) for pair in pairs], settings
    )
    return list(_family(kept, list(observed.values()), settings))


def _family(
    scores: Scores,
    pairs: Sequence[TestedPair],
    settings: Settings,
    *,
    absent: int = 0,
    confirmatory: bool = True,
    equivalence: EquivalenceTests | None = None,
) -> Iterator[Comparison]:
    """Correct and judge one family; each absent pair counts with p = 1."""
    known: dict[MeasurePair, Reason] = {}
    within: set[tuple[str, str]] = set()
    if confirmatory:
        known = {
            pair.key: Reason.IDENTICAL
            for pair in pairs
            if frozenset(pair.key[1:]) in scores.identical
        }
        if (
            pairs
            and not absent
            and not settings.alpha_spent
            and all(pair.scores is pairs[0].scores for pair in pairs)
        ):
            if equivalence is None:
                together = pairs[0].scores.select_measures(scores.primary)
                equivalence = run_equivalence_tests(
                    together, [pair.key[1:] for pair in pairs], settings
                )
            within = {
                names for names, (_, p) in equivalence.items() if p <= settings.alpha
            }
    if not any(
        np.nan_to_num(values).any() for values in scores.values[scores.primary].values()
    ):
        known = {pair.key: Reason.NOTHING_MEASURED for pair in pairs}
    for pair, shown in zip(
        pairs, family_verdicts(pairs, settings, known, within, absent), strict=True
    ):
        d, flips, ranks, units = (
            pair.observations.differences,
            pair.observations.flip_test,
            pair.observations.signed_rank,
            pair.observations.units,
        )
        interval = student_interval(
            d.values, settings.level, bounds=scores.gap_range, units=units
        )
        signed = {
            name: getattr(ranks, name)
            for name in ("zeros", "w_plus", "w_minus", "statistic", "effect_size")
        }
        tested = {
            name: getattr(pair.outcome, name)
            for name in ("p_value", "p_minimum", "method")
        }
        yield Comparison(
            **pair.key._asdict(),
            n=len(d.values),
            wins=d.wins,
            ties=len(d.values) - d.wins - d.losses,
            losses=d.losses,
            mean_difference=pair.difference,
            ci_low=interval.low,
            ci_high=interval.high,
            **signed,
            **tested,
            p_adjusted=shown.p_adjusted,
            finding=shown.finding.swapped
            if scores.primary in scores.low_is_good
            else shown.finding,
            role="confirmatory" if confirmatory else "exploratory",
            p_minimum_adjusted=shown.p_floor,
            p_randomization=flips.two_sided,
            ci_method=interval.method,
            p_randomization_adjusted=shown.p_mean,
            clusters=len(units) if units.clustered else None,
            p_wilcoxon=None if shown.p_ranks is None else ranks.p_value,
            p_wilcoxon_adjusted=shown.p_ranks,
        )
