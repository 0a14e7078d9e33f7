"""Every test of a pair, corrected within its family."""

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


class MeasurePair(NamedTuple):
    """One pair on one measure."""

    measure: str
    a: str
    b: str


class TestedPair(NamedTuple):
    """One pair of a family as every test wants to see it, before anything is corrected."""

    key: MeasurePair
    scores: Scores
    """Of the queries for which both have a value."""
    observations: PairObservations
    outcome: DecisiveTest
    difference: float
    """mean(a) - mean(b)."""


EquivalenceTests = Mapping[tuple[str, str], tuple[FlipTest, float]]
"""Pair -> its test of equivalence, and the corrected p."""
NO_REASONS: Mapping[MeasurePair, Reason] = {}


class AdjustedPair(NamedTuple):
    """What is shown of one pair by its family's correction."""

    p_adjusted: float
    """Of the deciding test."""
    p_floor: float | None
    p_mean: float
    p_ranks: float | None
    """Of the exact signed-rank test; None with weights."""
    finding: Finding


def run_pair_tests(
    scores: Scores, keys: Sequence[MeasurePair], settings: Settings
) -> dict[MeasurePair, TestedPair]:
    """Return pairs over the same queries, defined for both, as every test wants to see them.

    Args:
        scores: of the queries that count.
        keys: which pairs, of which measures; their sign flips share the draws.
        settings: the test that decides, and the seed of the draws.
    """
    if not keys:
        return {}
    units = scores.units
    columns = {
        one: i
        for i, one in enumerate(
            dict.fromkeys((k.measure, name) for k in keys for name in k[1:])
        )
    }
    table = units.sums(
        np.column_stack([scores.values[measure][name] for measure, name in columns])
    )
    means = {column: scores.mean(*column) for column in columns}
    contrasts = [
        Contrast(columns[k.measure, k.a], columns[k.measure, k.b]) for k in keys
    ]

    def ranked(key: MeasurePair, flips: FlipTest) -> TestedPair:
        a, b = scores.values[key.measure][key.a], scores.values[key.measure][key.b]
        by_query = paired_differences(a, b)
        by_unit = (
            paired_differences(units.means(a), units.means(b))
            if units.clustered
            else by_query
        )
        observed = PairObservations(by_query, units, flips, signed_rank(by_unit))
        difference = means[key.measure, key.a] - means[key.measure, key.b]
        return TestedPair(
            key, scores, observed, decide_pair(observed, settings.test), difference
        )

    flips = sign_flip(table, contrasts)
    return {key: ranked(key, flipped) for key, flipped in zip(keys, flips, strict=True)}


def run_equivalence_tests(
    scores: Scores, pairs: Sequence[tuple[str, str]], settings: Settings
) -> dict[tuple[str, str], tuple[FlipTest, float]]:
    """Return each pair's test of equivalence on the primary measure, and its Holm-corrected p; none without a margin.

    Args:
        scores: of the queries for which everyone has a value.
        pairs: a family, corrected together.
        settings: margin, level and seed.
    """
    if settings.margin is None:
        return {}
    within = EquivalenceMargin(
        settings.margin, scores.span_of(scores.primary), scores.units, settings.alpha
    )
    tests = equivalence_tests(
        scores.values[scores.primary], pairs, within
    )
    adjusted = adjust_p_values([test.greater for test in tests], "holm")
    return dict(zip(pairs, zip(tests, adjusted, strict=True), strict=True))


def family_verdicts(
    pairs: Sequence[TestedPair],
    settings: Settings,
    reasons: Mapping[MeasurePair, Reason] = NO_REASONS,
    equivalent_pairs: AbstractSet[tuple[str, str]] = frozenset(),
    absent_pairs: int = 0,
) -> list[AdjustedPair]:
    """Correct one family, and return the verdict on each pair; none where a model alone judged, or alpha is spent.

    Args:
        pairs: the family.
        settings: the correction and the level.
        reasons: what there is to say of a pair before any test.
        equivalent_pairs: the pairs that are shown to be equivalent.
        absent_pairs: pairs without a query, each of which counts with p = 1.
    """
    p_values = [pair.outcome.p_value for pair in pairs] + [1.0] * absent_pairs
    floors = adjust_floors(
        p_values, [pair.outcome.p_minimum for pair in pairs], settings.correction
    )
    means = adjust_p_values(
        [pair.observations.flip_test.two_sided for pair in pairs]
        + [1.0] * absent_pairs,
        settings.correction,
    )
    ranks = adjust_p_values(
        [pair.observations.signed_rank.p_value for pair in pairs]
        + [1.0] * absent_pairs,
        settings.correction,
    )
    rows = []
    columns = (adjust_p_values(p_values, settings.correction), floors, means, ranks)
    for pair, p, floor, mean, rank in zip(pairs, *columns, strict=False):
        d, state = pair.observations.differences, reasons.get(pair.key)
        if state is None and not d.wins + d.losses:
            state = Reason.NO_QUERY_DIFFERS
        elif state is None and pair.outcome.method == "undefined":
            state = Reason.UNDEFINED
        by_ranks = int(
            np.sign(
                pair.observations.signed_rank.w_plus
                - pair.observations.signed_rank.w_minus
            )
        )
        sign = by_ranks if settings.test == "wilcoxon" else d.sign(pair.difference)
        finding = decide_verdict(
            VerdictInput(p, floor, sign, state, pair.key[1:] in equivalent_pairs),
            settings.alpha,
        )
        if not settings.judged_by_people:
            finding = Finding(Verdict.UNDECIDED, Reason.MODEL_ALONE)
        elif settings.alpha_spent:
            finding = Finding(Verdict.UNDECIDED, Reason.ALPHA_SPENT)
        weighted = pair.observations.units.weights is not None
        rows.append(AdjustedPair(p, floor, mean, None if weighted else rank, finding))
    return rows
