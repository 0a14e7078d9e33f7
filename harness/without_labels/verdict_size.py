"""The differences that the questions of a trial can show."""

from collections.abc import Mapping
from itertools import combinations

from harness.evaluation.evaluation import Evaluation
from harness.records import Results
from harness.scoring.scores import Scores
from harness.scoring.stored_scores import stored_scores
from harness.stats.differences import paired_differences
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
    scores = stored_scores(results)
    return {
        name: _detectable_difference(scores, evaluation, name)
        for name in evaluation.queries_needed
    }


def _detectable_difference(
    scores: Scores, evaluation: Evaluation, other: str
) -> float | None:
    """Return the true difference from the leader that is found with power 0.80.

    From the spread of the observed differences, at the level of Bonferroni's correction
    for all pairs of retrievers; None if the spread is 0 or unknown, or no difference
    within the measure's range would be found.
    """
    if evaluation.n < MIN_QUESTIONS:
        return None
    mask = scores.defined(evaluation.measure, evaluation.leader, other)
    values = scores.select_queries(mask).values[evaluation.measure]
    pairs = paired_differences(values[evaluation.leader], values[other])
    if pairs.is_constant:
        return None
    pairs_tested = len(list(combinations(evaluation.means, 2)))
    level = evaluation.settings.alpha / max(1, pairs_tested)
    effect = detectable_effect(evaluation.n, level)
    difference = standard_deviation(pairs.values) * effect
    return difference if difference < LARGEST_DIFFERENCE else None
