"""What the questions of a trial can show."""

from itertools import combinations

import numpy as np

from harness.english import count_of, names_or_count
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.records import Results
from harness.stats.differences import PairedDifferences, paired_differences
from harness.stats.intervals import standard_deviation
from harness.stats.power import MAX_POWER_QUERIES, detectable_effect
from harness.wording.conclusion import queries_needed_words

MIN_QUESTIONS = 2
"""The scatter of one question is unknown."""
LARGEST_DIFFERENCE = 1.0
"""The range of nDCG."""


def verdict_size_sentences(results: Results) -> list[str]:
    """Return sentences on what the questions can show.

    If a comparison is undecided: which, what difference would show; then how many
    questions more would decide. In any case, how many questions have no right document,
    if there are such: the only sentence if nothing is undecided, or measured.
    """
    evaluation = read_or_evaluate(results)
    undecided = list(evaluation.queries_needed)
    if not evaluation.measured or not undecided:
        return _unanswered_sentences(results)
    return [
        _undecided_sentence(results, evaluation, undecided),
        _more_questions(evaluation),
        *_unanswered_sentences(results),
    ]


def _undecided_sentence(
    results: Results, evaluation: Evaluation, undecided: list[str]
) -> str:
    """Return what is undecided, and which difference would show."""
    questions = count_of(evaluation.n, "question")
    leader = evaluation.leader
    differences = {
        name: _detectable_difference(results, evaluation, name) for name in undecided
    }
    if len(undecided) == 1:
        other = undecided[0]
        difference = differences[other]
        sentence = f"{questions}: undecided between {leader} and {other}"
        if difference is None:
            return f"{sentence}."
        return f"{sentence}; a difference of about {difference:.2f} would show."
    detectable = {
        name: difference
        for name, difference in differences.items()
        if difference is not None
    }
    sentence = f"{questions}: undecided between {names_or_count([leader, *undecided])}"
    if not detectable:
        return f"{sentence}."
    sizes = [
        f"about {difference:.2f} from {name}" for name, difference in detectable.items()
    ]
    return f"{sentence}; a difference of {names_or_count(sizes)} would show."


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


def _more_questions(evaluation: Evaluation) -> str:
    """Return how many questions more would show the difference that matters."""
    needed = [number for number in evaluation.queries_needed.values() if number]
    difference = f"a difference of {evaluation.difference:g}"
    if not needed:
        return "Too few questions differ to say how many more would decide."
    more = max(needed) - evaluation.n
    if more <= 0:
        return f"These questions would probably have shown {difference}."
    if max(needed) > MAX_POWER_QUERIES:
        return f"No number of questions would show {difference}."
    words = queries_needed_words(more).replace("queries", "more questions")
    return f"{words[0].upper()}{words[1:]} would show {difference}."


def _unanswered_sentences(results: Results) -> list[str]:
    """Return how many judged questions have no right document among those found."""
    unanswered = results.manifest.ledger.dataset.get("no-relevant-document", ())
    if not unanswered:
        return []
    questions = count_of(len(unanswered), "question")
    verb = "has" if len(unanswered) == 1 else "have"
    return [f"{questions} {verb} no right document among those found: not scored."]
