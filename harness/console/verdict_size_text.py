"""What the questions of a trial can show, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.english import count_of, names_or_count
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.stats.power import MAX_POWER_QUERIES
from harness.without_labels.verdict_size import detectable_differences
from harness.wording.next_step import queries_needed_words

if TYPE_CHECKING:
    from harness.records import Results


def verdict_size_sentences(results: Results) -> list[str]:
    """Return sentences on what the questions can show.

    If a comparison is undecided: which, what difference would show; then how many
    questions more would decide. In any case, how many questions have no right document,
    if there are such: the only sentence if nothing is undecided, or measured.
    """
    evaluation = read_or_evaluate(results)
    if not evaluation.measured or not evaluation.queries_needed:
        return _unanswered_sentences(results)
    return [
        _undecided_sentence(results, evaluation),
        _more_questions(evaluation),
        *_unanswered_sentences(results),
    ]


def _undecided_sentence(results: Results, evaluation: Evaluation) -> str:
    """Return what is undecided, and which difference would show."""
    questions = count_of(evaluation.n, "question")
    leader = evaluation.leader
    differences = detectable_differences(results, evaluation)
    undecided = list(differences)
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
    noun = "question" if more == 1 else "questions"
    words = queries_needed_words(more).replace("queries", f"more {noun}")
    return f"{words[0].upper()}{words[1:]} would show {difference}."


def _unanswered_sentences(results: Results) -> list[str]:
    """Return how many judged questions have no right document among those found."""
    unanswered = results.manifest.ledger.dataset.get("no-relevant-document", ())
    if not unanswered:
        return []
    questions = count_of(len(unanswered), "question")
    verb = "has" if len(unanswered) == 1 else "have"
    return [f"{questions} {verb} no right document among those found: not scored."]
