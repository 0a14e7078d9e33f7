"""Every test of a pair, corrected within its family.

`run_pair_tests` and `run_equivalence_tests` test pairs over the same queries;
`family_verdicts` corrects one family and decides. `compare` says what the families are.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np

from harness.evaluation.verdict import (
    Finding,
    Reason,
    Verdict,
    VerdictInput,
    decide_verdict,
)
from harness.scoring.scores import Scores
from harness.stats.corrections import adjust_floors, adjust_p_values
from harness.stats.differences import paired_differences
from harness.stats.paired_tests import (
    DecisiveTest,
    EquivalenceMargin,
    PairObservations,
    decide_pair,
    equivalence_tests,
)
from harness.stats.settings import Settings
from harness.stats.sign_flip import Contrast, FlipTest, sign_flip
from harness.stats.signed_rank import signed_rank
from harness.stats.units import Units


class MeasurePair(NamedTuple):
    """One pair on one measure."""

    measure: str
    a: str
    b: str

    @property
    def retrievers(self) -> tuple[str, str]:
        """The two retrievers."""
        return self.a, self.b


class TestedPair(NamedTuple):
    """One pair of a family with the input of every test, before any correction."""

    key: MeasurePair
    scores: Scores
    """The scores of the queries for which both have a value."""
    observations: PairObservations
    outcome: DecisiveTest
    difference: float
    """mean(a) - mean(b)."""


class EquivalenceTest(NamedTuple):
    """The test of a pair's equivalence, with the corrected p."""

    test: FlipTest
    """The test in the direction of the larger p, which is its `greater`."""
    p_adjusted: float
    """That p, corrected by Holm over the family."""


EquivalenceTests = Mapping[tuple[str, str], EquivalenceTest]
"""Pair -> its test of equivalence."""
NO_REASONS: Mapping[MeasurePair, Reason] = {}


class AdjustedPair(NamedTuple):
    """The p-values and the verdict of one pair after its family's correction."""

    p_adjusted: float
    """The corrected p of the deciding test."""
    p_minimum_adjusted: float | None
    """The lowest value that it could have; None if that is unknown."""
    p_randomization_adjusted: float
    """The corrected p of the sign-flip test of the mean."""
    p_wilcoxon_adjusted: float | None
    """The corrected p of the signed-rank test; None with weights."""
    finding: Finding


class ScoreKey(NamedTuple):
    """One retriever on one measure."""

    measure: str
    retriever: str


def run_pair_tests(
    scores: Scores, keys: Sequence[MeasurePair], settings: Settings
) -> dict[MeasurePair, TestedPair]:
    """Return every test of each pair, in the order of the keys.

    Args:
        scores: of one or more queries, on which both of each pair have a value.
        keys: the pairs, with their measures.
        settings: the test that decides.
    """
    if not keys:
        return {}
    column_keys: dict[ScoreKey, None] = {}
    for measure, a, b in keys:
        column_keys[ScoreKey(measure, a)] = None
        column_keys[ScoreKey(measure, b)] = None
    column_of = {key: column for column, key in enumerate(column_keys)}
    columns = [scores.values[measure][retriever] for measure, retriever in column_keys]
    units = scores.units
    table = units.sums(np.column_stack(columns))
    contrasts: list[Contrast] = []
    for measure, a, b in keys:
        column_a = column_of[ScoreKey(measure, a)]
        contrasts.append(Contrast(column_a, column_of[ScoreKey(measure, b)]))
    flip_tests = sign_flip(table, contrasts)
    means = {key: scores.mean(key.measure, key.retriever) for key in column_keys}
    tested: dict[MeasurePair, TestedPair] = {}
    for key, flip_test in zip(keys, flip_tests, strict=True):
        observations = _observe_pair(scores, units, key, flip_test)
        mean_a = means[ScoreKey(key.measure, key.a)]
        tested[key] = TestedPair(
            key=key,
            scores=scores,
            observations=observations,
            outcome=decide_pair(observations, settings.test),
            difference=mean_a - means[ScoreKey(key.measure, key.b)],
        )
    return tested


def _observe_pair(
    scores: Scores, units: Units, key: MeasurePair, flip_test: FlipTest
) -> PairObservations:
    a = scores.values[key.measure][key.a]
    b = scores.values[key.measure][key.b]
    by_query = paired_differences(a, b)
    by_unit = by_query
    if units.clustered:
        by_unit = paired_differences(units.means(a), units.means(b))
    return PairObservations(by_query, units, flip_test, signed_rank(by_unit))


def run_equivalence_tests(
    scores: Scores, name_pairs: Sequence[tuple[str, str]], settings: Settings
) -> dict[tuple[str, str], EquivalenceTest]:
    """Return each pair's test of equivalence on the primary measure, Holm-corrected.

    Empty without a margin.

    Args:
        scores: of the queries for which every retriever has a value.
        name_pairs: a family, corrected together.
        settings: margin and level.
    """
    if settings.margin is None:
        return {}
    within = EquivalenceMargin(
        settings.margin, scores.span_of(scores.primary), scores.units, settings.alpha
    )
    tests = equivalence_tests(scores.values[scores.primary], name_pairs, within)
    adjusted = adjust_p_values([test.greater for test in tests], "holm")
    by_pair: dict[tuple[str, str], EquivalenceTest] = {}
    for pair, test, p_adjusted in zip(name_pairs, tests, adjusted, strict=True):
        by_pair[pair] = EquivalenceTest(test, p_adjusted)
    return by_pair


def family_verdicts(
    tested_pairs: Sequence[TestedPair],
    settings: Settings,
    *,
    reasons: Mapping[MeasurePair, Reason] = NO_REASONS,
    equivalent_pairs: AbstractSet[tuple[str, str]] = frozenset(),
    absent_pairs: int = 0,
) -> list[AdjustedPair]:
    """Correct one family, and return the verdict on each pair.

    "Better" is higher here; callers swap it for measures of which less is better.
    All pairs are undecided if only a model judged, or alpha is spent.

    Args:
        tested_pairs: the family.
        settings: the correction and the level.
        reasons: why pairs are undecided that is known before any test.
        equivalent_pairs: the pairs that are shown to be equivalent.
        absent_pairs: how many further pairs of the family have no query; each counts
            with p = 1.
    """
    absent_p = [1.0] * absent_pairs
    p_values: list[float] = []
    p_mean: list[float] = []
    p_ranks: list[float] = []
    p_minima: list[float | None] = []
    for pair in tested_pairs:
        p_values.append(pair.outcome.p_value)
        p_minima.append(pair.outcome.p_minimum)
        p_mean.append(pair.observations.flip_test.two_sided)
        p_ranks.append(pair.observations.signed_rank.p_value)
    correction = settings.correction
    p_adjusted = adjust_p_values(p_values + absent_p, correction)
    p_floors = adjust_floors(p_values + absent_p, p_minima, correction)
    p_mean_adjusted = adjust_p_values(p_mean + absent_p, correction)
    p_ranks_adjusted = adjust_p_values(p_ranks + absent_p, correction)
    adjusted: list[AdjustedPair] = []
    for i, pair in enumerate(tested_pairs):
        verdict_input = VerdictInput(
            p_adjusted=p_adjusted[i],
            p_minimum_adjusted=p_floors[i],
            sign=_tested_sign(pair, settings),
            reason=reasons.get(pair.key) or _reason_without_test(pair),
            within_margin=pair.key.retrievers in equivalent_pairs,
        )
        has_weights = pair.observations.units.weights is not None
        adjusted.append(
            AdjustedPair(
                p_adjusted=p_adjusted[i],
                p_minimum_adjusted=p_floors[i],
                p_randomization_adjusted=p_mean_adjusted[i],
                p_wilcoxon_adjusted=None if has_weights else p_ranks_adjusted[i],
                finding=_finding(verdict_input, settings),
            )
        )
    return adjusted


def _finding(verdict_input: VerdictInput, settings: Settings) -> Finding:
    if not settings.judged_by_people:
        return Finding(Verdict.UNDECIDED, Reason.MODEL_ALONE)
    if settings.alpha_spent:
        return Finding(Verdict.UNDECIDED, Reason.ALPHA_SPENT)
    return decide_verdict(verdict_input, settings.alpha)


def _reason_without_test(pair: TestedPair) -> Reason | None:
    """Return why the test of a pair can show nothing; None if it can."""
    differences = pair.observations.differences
    if not differences.wins + differences.losses:
        return Reason.NO_QUERY_DIFFERS
    if pair.outcome.method == "undefined":
        return Reason.UNDEFINED
    return None


def _tested_sign(pair: TestedPair, settings: Settings) -> int:
    """Return the sign of the difference that the deciding test is about."""
    if settings.test != "wilcoxon":
        return pair.observations.differences.sign(pair.difference)
    ranks = pair.observations.signed_rank
    return int(np.sign(ranks.w_plus - ranks.w_minus))
