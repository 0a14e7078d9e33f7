"""One row for each measure of answers.

Faithfulness and context recall are shares of claims, as RAGChecker's faithfulness and
claim recall are: here a claim is supported if one passage entails it. A measure with a
zero divisor is undefined (None), and so is one by claims if unknown verdicts could
change it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from harness.answers import ragchecker
from harness.answers.case import Case
from harness.answers.ragchecker import Entailments
from harness.answers.text_overlap import (
    TextOverlap,
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
    """Context precision: sum over ranks of P@k v_k / (useful passages + 1e-10).

    With the reference it is RAGAS' context precision, with the response its context
    utilisation: v_k is whether the passage at rank k entails any claim of that text.
    It measures only the order: finding more can lower it. Range 0 to 0.9999999999; 0 if
    no passage is useful; undefined without passages.

    >>> ranked_context_precision([True, False, True]) == (1 + 2 / 3) / (2 + 1e-10)
    True
    >>> ranked_context_precision([True]), ranked_context_precision([False])
    (0.9999999999, 0.0)
    >>> ranked_context_precision([]) is None
    True
    """
    return rank_precision(useful, RAGAS_EPSILON) if useful else None


def answer_relevancy(
    question: DenseVectors, regenerated: DenseVectors, noncommittal: Sequence[bool]
) -> float | None:
    """Answer relevancy: the mean cosine of the query and the regenerated questions.

    A model generates the questions from the answer.

    Args:
        question: (d,) the query's vector.
        regenerated: (n, d) the vectors of the regenerated questions; RAGAS makes three.
        noncommittal: (n,) whether the model called the answer evasive; the result is 0
            if it always did.

    Range -1 to 1; undefined without regenerated questions, or if a vector is zero.

    >>> answer_relevancy(np.array([1, 0]), np.array([[1, 0], [0, 2]]), [False, True])
    0.5
    """
    if not len(regenerated):
        return None
    lengths = np.linalg.norm(regenerated, axis=1) * np.linalg.norm(question)
    if not lengths.all():
        return None
    if all(noncommittal):
        return 0.0
    return float((regenerated @ question / lengths).mean())


class MeasuredCase(NamedTuple):
    """A case with tokenizer and vectors."""

    case: Case
    tokenizer: Tokenizer
    vectors: Mapping[str, DenseVectors]
    """Text -> its vector (d,), for answer relevancy; empty without an encoder."""


class AnswerMeasure(NamedTuple):
    """One measure of answers."""

    compute: Callable[[MeasuredCase], float | None]
    """The value of one answer, None if it is undefined."""
    meaning: str
    """The description in the report."""
    low_is_good: bool = False
    """Whether less is better: then the smallest mean leads."""


def _on_texts(
    compute: Callable[[str, tuple[str, ...], Tokenizer], float | None],
) -> Callable[[MeasuredCase], float | None]:
    """Return the measure of a case that compares the response with the references."""

    def measure(measured: MeasuredCase) -> float | None:
        case = measured.case
        references = case.query.reference.answers
        return compute(case.answer.response, references, measured.tokenizer)

    return measure


def _on_entailments(
    compute: Callable[[Entailments], float | None],
) -> Callable[[MeasuredCase], float | None]:
    """Return the measure of a case that uses the verdicts on its claims."""

    def measure(measured: MeasuredCase) -> float | None:
        entailments = measured.case.entailments()
        return None if entailments is None else compute(entailments)

    return measure


def _rouge(
    overlap: Callable[[str, str, Tokenizer], TextOverlap], share: str
) -> Callable[[MeasuredCase], float | None]:
    """Return ROUGE with the reference of the highest F1, also for its recall.

    `share` is a field of TextOverlap.
    """

    def best_share(
        response: str, references: tuple[str, ...], tokenizer: Tokenizer
    ) -> float | None:
        best = best_overlap(
            [overlap(response, reference, tokenizer) for reference in references]
        )
        return None if best is None else float(getattr(best, share))

    return _on_texts(best_share)


def _rouge_1(response: str, reference: str, tokenizer: Tokenizer) -> TextOverlap:
    return rouge_n(response, reference, 1, tokenizer)


def _rouge_2(response: str, reference: str, tokenizer: Tokenizer) -> TextOverlap:
    return rouge_n(response, reference, 2, tokenizer)


def _context_recall(measured: MeasuredCase) -> float | None:
    case = measured.case
    return true_share([case.context_truth(claim) for claim in case.reference_claims])


def _context_precision(measured: MeasuredCase) -> float | None:
    case = measured.case
    if not case.reference_claims:
        return None
    return ranked_context_precision(case.useful_to_reference)


def _context_utilization(measured: MeasuredCase) -> float | None:
    useful = measured.case.useful_to_response
    if not useful or not measured.case.response_claims:
        return None
    return ranked_context_precision(useful)


def _context_relevancy(measured: MeasuredCase) -> float | None:
    """The form of the article and RAGAS 0.1: sentences that help / all.

    Undefined without a sentence.
    """
    case = measured.case
    helps: list[Truth] = []
    for context in case.answer.contexts:
        helps.extend(
            case.readings.opinion("helps", case.query.text, sentence)
            for sentence in split_sentences(context.text)
        )
    return true_share(helps)


def _context_relevance(measured: MeasuredCase) -> float | None:
    """The mean of the readable ratings of two prompts, halved, then over contexts.

    Contexts without a rating do not count; undefined if none has one.
    """
    case = measured.case
    relevances: list[float] = []
    for context in case.answer.contexts:
        opinion = case.readings.opinion("relevance", case.query.text, context.text)
        ratings = [rating for rating in opinion or () if rating is not None]
        if ratings:
            relevances.append(sum(ratings) / len(ratings) / HIGHEST_RATING)
    return sum(relevances) / len(relevances) if relevances else None


def _answer_relevancy(measured: MeasuredCase) -> float | None:
    case = measured.case
    vectors = measured.vectors
    opinion = case.readings.opinion("questions", case.answer.response)
    if opinion is None or case.query.text not in vectors:
        return None
    questions = opinion["questions"]
    if not vectors.keys() >= {*questions}:
        return None
    regenerated = np.array([vectors[question] for question in questions])
    return answer_relevancy(
        vectors[case.query.text], regenerated, opinion["noncommittal"]
    )


ANSWER_MEASURES: Mapping[str, AnswerMeasure] = {
    "BLEU": AnswerMeasure(
        _on_texts(bleu),
        "n-grams of the answer in the reference, with a brevity penalty",
    ),
    "chrF": AnswerMeasure(
        _on_texts(lambda response, references, _: chrf(response, references)),
        "runs of letters in common with the reference",
    ),
    "ROUGE-1": AnswerMeasure(
        _rouge(_rouge_1, "f1"), "words in common with the reference, F1"
    ),
    "ROUGE-2": AnswerMeasure(
        _rouge(_rouge_2, "f1"), "pairs of words in common with the reference, F1"
    ),
    "ROUGE-L": AnswerMeasure(
        _rouge(rouge_l, "f1"),
        "longest common subsequence of words with the reference, F1",
    ),
    "ROUGE-1-recall": AnswerMeasure(
        _rouge(_rouge_1, "recall"), "share of the reference's words that the answer has"
    ),
    "ROUGE-2-recall": AnswerMeasure(
        _rouge(_rouge_2, "recall"),
        "share of the reference's pairs of words that the answer has",
    ),
    "ROUGE-L-recall": AnswerMeasure(
        _rouge(rouge_l, "recall"),
        "longest common subsequence / words of the reference",
    ),
    "ExactMatch": AnswerMeasure(
        _on_texts(lambda response, references, _: exact_match(response, references)),
        "1 if it equals a reference",
    ),
    "TokenF1": AnswerMeasure(
        _on_texts(token_f1),
        "words in common with the best reference, without articles, F1",
    ),
    "ragas.faithfulness": AnswerMeasure(
        _on_entailments(ragchecker.faithfulness),
        "share of the answer's claims that a context supports",
    ),
    "ragas.context_precision": AnswerMeasure(
        _context_precision, "whether the contexts useful to the reference rank first"
    ),
    "ragas.context_utilization": AnswerMeasure(
        _context_utilization, "whether the contexts useful to the answer rank first"
    ),
    "ragas.context_recall": AnswerMeasure(
        _context_recall, "share of the reference's claims that a context supports"
    ),
    "ragas.context_relevancy": AnswerMeasure(
        _context_relevancy, "share of the contexts' sentences that help (2023)"
    ),
    "ragas.context_relevance": AnswerMeasure(
        _context_relevance, "rating of the contexts for the query (current form)"
    ),
    "ragas.answer_relevancy": AnswerMeasure(
        _answer_relevancy,
        "similarity of the query and questions generated from the answer",
    ),
    "ragchecker.precision": AnswerMeasure(
        _on_entailments(ragchecker.precision),
        "share of the answer's claims that are right",
    ),
    "ragchecker.recall": AnswerMeasure(
        _on_entailments(ragchecker.recall),
        "share of the reference's claims that the answer makes",
    ),
    "ragchecker.f1": AnswerMeasure(
        _on_entailments(ragchecker.f1), "harmonic mean of precision and recall"
    ),
    "ragchecker.claim_recall": AnswerMeasure(
        _on_entailments(ragchecker.claim_recall),
        "share of the reference's claims that were retrieved",
    ),
    "ragchecker.context_precision": AnswerMeasure(
        _on_entailments(ragchecker.context_precision),
        "share of the contexts that support a claim of the reference",
    ),
    "ragchecker.context_utilization": AnswerMeasure(
        _on_entailments(ragchecker.context_utilization),
        "share of the retrieved claims that the answer uses",
    ),
    "ragchecker.noise_sensitivity_in_relevant": AnswerMeasure(
        _on_entailments(ragchecker.noise_sensitivity_in_relevant),
        "wrong claims taken from relevant contexts",
        low_is_good=True,
    ),
    "ragchecker.noise_sensitivity_in_irrelevant": AnswerMeasure(
        _on_entailments(ragchecker.noise_sensitivity_in_irrelevant),
        "wrong claims taken from irrelevant contexts",
        low_is_good=True,
    ),
    "ragchecker.hallucination": AnswerMeasure(
        _on_entailments(ragchecker.hallucination),
        "wrong claims that no context supports",
        low_is_good=True,
    ),
    "ragchecker.self_knowledge": AnswerMeasure(
        _on_entailments(ragchecker.self_knowledge),
        "right claims that no context supports",
    ),
    "ragchecker.faithfulness": AnswerMeasure(
        _on_entailments(ragchecker.faithfulness),
        "share of the answer's claims that a context supports",
    ),
}
"""A new measure is one function, one row here, and its test."""
