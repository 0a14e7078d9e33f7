"""The differences that the questions of a trial can show."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from harness.evaluation.evaluation import Evaluation
from harness.records import Results
from harness.stats.differences import PairedDifferences, paired_differences
from harness.stats.intervals import standard_deviation
from harness.stats.power import detectable_effect

MIN_QUESTIONS = 2
"""The scatter of one question is unknown."""
LARGEST_DIFFERENCE = 1.0
"""The range of nDCG."""


def detectable_differences(
    results: Results, evaluation: Evaluation
) -> Mapping[str, float | None]:
    """Return the difference from the leader that would show, for each undecided one.

    None where none would, or the scatter is unknown. Empty if nothing is undecided.
    """
    return {
        name: _detectable_difference(results, evaluation, name)
        for name in evaluation.queries_needed
    }


def _detectable_difference(
    results: Results, evaluation: Evaluation, other: str
) -> float | None:
    """Return the true difference from the leader that is found with power 0.80.

    From the spread of the observed differences, at the level of Bonferroni's correction
    for all pairs of retrievers; None if the spread is 0 or unknown, or no difference
    within the measure's range would be found.
    """
    if evaluation.n < MIN_QUESTIONS:
        return None
    pairs = _pair_differences(results, evaluation.measure, evaluation.leader, other)
    if pairs.is_constant:
        return None
    pairs_tested = len(list(combinations(evaluation.means, 2)))
    level = evaluation.settings.alpha / max(1, pairs_tested)
    effect = detectable_effect(evaluation.n, level)
    difference = standard_deviation(pairs.values) * effect
    return difference if difference < LARGEST_DIFFERENCE else None


def _pair_differences(
    results: Results, measure: str, a: str, b: str
) -> PairedDifferences:
    values: dict[str, dict[str, float]] = {a: {}, b: {}}
    for row in results.rows("scores"):
        if row["measure"] == measure and row["retriever"] in values:
            values[row["retriever"]][row["query_id"]] = row["value"]
    queries = sorted(values[a].keys() & values[b].keys())
    return paired_differences(
        np.array([values[a][query] for query in queries]),
        np.array([values[b][query] for query in queries]),
    )
