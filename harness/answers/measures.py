"""One row for each measure of answers.

Faithfulness and context recall are shares of claims, as RAGChecker's faithfulness and claim recall are: here a claim is
supported if one passage entails it. A measure with a zero divisor is undefined (None), and so is one with an unknown
verdict.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.answers import ragchecker
from harness.answers.case import Case
from harness.answers.ragchecker import Entailments
from harness.answers.text_overlap import (
    best_overlap,
    bleu,
    chrf,
    exact_match,
    rouge_l,
    rouge_n,
    token_f1,
)
from harness.answers.text_tokens import Tokenizer, split_sentences
from harness.measures.claims import Truth, rank_precision, true_share
from retrievers.types import DenseVectors

RAGAS_EPSILON = 1e-10
"""RAGAS adds this to a divisor: a perfect list gets 0.9999999999."""
HIGHEST_RATING = 2
"""The highest rating of the two prompts for context relevance."""


def ranked_context_precision(useful: Sequence[Truth]) -> float | None:
    """Context precision: the sum over ranks of P@k v_k / (number of useful passages + 1e-10).

    With the reference it is RAGAS' context precision, with the response its context utilisation: v_k says whether the
    passage at rank k entails any claim of that text. It measures only the order: finding more can lower it.
    Range 0 to 0.9999999999; 0 if no passage is useful; undefined without passages.

    >>> ranked_context_precision([True, False, True]) == (1 + 2 / 3) / (2 + 1e-10)
    True
    >>> ranked_context_precision([True]), ranked_context_precision([False]), ranked_context_precision([])
    (0.9999999999, 0.0, None)
    """
    return rank_precision(useful, RAGAS_EPSILON) if useful else None


def answer_relevancy(
    question: DenseVectors, regenerated: DenseVectors, noncommittal: Sequence[bool]
) -> float | None:
    """Answer relevancy: the mean cosine of the query and the questions that a model generated from the answer.

    Args:
        question: (d,) the query's vector.
        regenerated: (n, d) the vectors of the regenerated questions; RAGAS makes three.
        noncommittal: (n,) whether the model called the answer evasive; the result is 0 if it always did.

    Range -1 to 1; undefined without regenerated questions, or if a vector is zero.

    >>> answer_relevancy(np.array([1, 0]), np.array([[1, 0], [0, 2]]), [False, True])
    0.5
    """
    if not len(regenerated):
        return None
    lengths = np.linalg.norm(regenerated, axis=1) * np.linalg.norm(question)
    if not lengths.all():
        return None
    return (
        0.0 if all(noncommittal) else float((regenerated @ question / lengths).mean())
    )


class MeasuredCase(NamedTuple):
    """A case with tokenizer and vectors."""

    case: Case
    tokenizer: Tokenizer
    vectors: Mapping[str, DenseVectors]
    """Text -> its vector, for answer relevancy; empty without an encoder."""


class AnswerMeasure(NamedTuple):
    """One measure of answers."""

    compute: Callable[[MeasuredCase], float | None]
    """The value of one answer, None if it is undefined."""
    meaning: str
    """The description in the report."""
    low_is_good: bool = False


def _words(
    compute: Callable[[str, tuple[str, ...], Tokenizer], float | None],
) -> Callable[[MeasuredCase], float | None]:
    def of(reading: MeasuredCase) -> float | None:
        case = reading.case
        return compute(
            case.answer.response, case.query.reference.answers, reading.tokenizer
        )

    return of


def _rouge(number: int | None, part: str) -> Callable[[MeasuredCase], float | None]:
    def of(
        response: str, references: tuple[str, ...], tokenizer: Tokenizer
    ) -> float | None:
        best = best_overlap(
            [
                rouge_l(response, one, tokenizer)
                if number is None
                else rouge_n(response, one, number, tokenizer)
                for one in references
            ]
        )
        return None if best is None else float(getattr(best, part))

    return _words(of)


def _checked(
    compute: Callable[[Entailments], float | None],
) -> Callable[[MeasuredCase], float | None]:
    def of(reading: MeasuredCase) -> float | None:
        entailments = reading.case.entailments()
        return None if entailments is None else compute(entailments)

    return of


def _faithfulness(reading: MeasuredCase) -> float | None:
    return _checked(ragchecker.faithfulness)(reading)


def _context_recall(reading: MeasuredCase) -> float | None:
    return true_share(
        [reading.case.context_truth(claim) for claim in reading.case.reference_claims]
    )


def _context_precision(reading: MeasuredCase) -> float | None:
    case = reading.case
    return (
        ranked_context_precision(case.useful_to_reference)
        if case.reference_claims
        else None
    )


def _context_utilization(reading: MeasuredCase) -> float | None:
    useful = reading.case.useful_to_response
    return (
        None
        if not useful or not reading.case.response_claims
        else ranked_context_precision(useful)
    )


def _context_relevancy(reading: MeasuredCase) -> float | None:
    """The form of the article and RAGAS 0.1: sentences that help / all; undefined without a sentence."""
    case = reading.case
    parts = [
        one for context in case.answer.contexts for one in split_sentences(context.text)
    ]
    return true_share(
        [case.readings.opinion("helps", case.query.text, one) for one in parts]
    )


def _context_relevance(reading: MeasuredCase) -> float | None:
    """The mean of the readable ratings of two prompts, halved, then over contexts; undefined without a rating."""
    case = reading.case
    rated = [
        case.readings.opinion("relevance", case.query.text, context.text) or ()
        for context in case.answer.contexts
    ]
    read = [
        known
        for ratings in rated
        if (known := [one for one in ratings if one is not None])
    ]
    values = [sum(known) / len(known) / HIGHEST_RATING for known in read]
    return sum(values) / len(values) if values else None


def _answer_relevancy(reading: MeasuredCase) -> float | None:
    case = reading.case
    opinion = case.readings.opinion("questions", case.answer.response)
    if opinion is None or case.query.text not in reading.vectors:
        return None
    if not reading.vectors.keys() >= {*opinion["questions"]}:
        return None
    made = np.array([reading.vectors[text] for text in opinion["questions"]])
    return answer_relevancy(
        reading.vectors[case.query.text], made, opinion["noncommittal"]
    )


ANSWER_MEASURES: Mapping[str, AnswerMeasure] = {
    "BLEU": AnswerMeasure(
        _words(bleu),
        "n-grams of the answer in the reference, with a brevity penalty",
    ),
    "chrF": AnswerMeasure(
        _words(lambda r, refs, _: chrf(r, refs)),
        "runs of letters in common with the reference",
    ),
    "ROUGE-1": AnswerMeasure(_rouge(1, "f1"), "words in common with the reference, F1"),
    "ROUGE-2": AnswerMeasure(
        _rouge(2, "f1"), "pairs of words in common with the reference, F1"
    ),
    "ROUGE-L": AnswerMeasure(
        _rouge(None, "f1"), "longest common subsequence of words with the reference, F1"
    ),
    "ROUGE-1-recall": AnswerMeasure(
        _rouge(1, "recall"), "share of the reference's words that the answer has"
    ),
    "ROUGE-2-recall": AnswerMeasure(
        _rouge(2, "recall"),
        "share of the reference's pairs of words that the answer has",
    ),
    "ROUGE-L-recall": AnswerMeasure(
        _rouge(None, "recall"), "longest common subsequence / words of the reference"
    ),
    "ExactMatch": AnswerMeasure(
        _words(lambda r, refs, _: exact_match(r, refs)),
        "1 if it equals a reference",
    ),
    "TokenF1": AnswerMeasure(
        _words(token_f1),
        "words in common with the best reference, without articles, F1",
    ),
    **{
        f"ragas.{compute.__name__.removeprefix('_')}": AnswerMeasure(compute, meaning)
        for compute, meaning in (
            (_faithfulness, "share of the answer's claims that a context supports"),
            (
                _context_precision,
                "whether the contexts useful to the reference rank first",
            ),
            (
                _context_utilization,
                "whether the contexts useful to the answer rank first",
            ),
            (
                _context_recall,
                "share of the reference's claims that a context supports",
            ),
            (_context_relevancy, "share of the contexts' sentences that help (2023)"),
            (_context_relevance, "rating of the contexts for the query (current form)"),
            (
                _answer_relevancy,
                "similarity of the query and questions generated from the answer",
            ),
        )
    },
    **{
        f"ragchecker.{compute.__name__}": AnswerMeasure(
            _checked(compute), meaning, low_is_good=low
        )
        for compute, meaning, low in (
            (
                ragchecker.precision,
                "share of the answer's claims that are right",
                False,
            ),
            (
                ragchecker.recall,
                "share of the reference's claims that the answer makes",
                False,
            ),
            (ragchecker.f1, "harmonic mean of precision and recall", False),
            (
                ragchecker.claim_recall,
                "share of the reference's claims that were retrieved",
                False,
            ),
            (
                ragchecker.context_precision,
                "share of the contexts that support a claim of the reference",
                False,
            ),
            (
                ragchecker.context_utilization,
                "share of the retrieved claims that the answer uses",
                False,
            ),
            (
                ragchecker.noise_sensitivity_in_relevant,
                "wrong claims taken from relevant contexts",
                True,
            ),
            (
                ragchecker.noise_sensitivity_in_irrelevant,
                "wrong claims taken from irrelevant contexts",
                True,
            ),
            (ragchecker.hallucination, "wrong claims that no context supports", True),
            (ragchecker.self_knowledge, "right claims that no context supports", False),
            (
                ragchecker.faithfulness,
                "share of the answer's claims that a context supports",
                False,
            ),
        )
    },
}
"""A new measure is one function, one row here, and its test."""
