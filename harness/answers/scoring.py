"""Answers and verdicts in, one value for each system, query and measure out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.answers.evidence import Case
from harness.answers.overlap import bleu_signature, corpus_bleu
from harness.answers.systems import System
from harness.answers.table import MEASURES, Reading
from harness.answers.text import Tokenizer, needs_sacrebleu
from harness.records import Readings
from harness.scoring.per_query import PerQuery, per_query
from retrievers.embedding import Embedder
from retrievers.meter import Meter
from retrievers.ragged import dense
from retrievers.types import Query, Vectors


class CorpusBleu(NamedTuple):
    """BLEU over all answers of a system, as papers print it."""

    system: str
    value: float | None
    """0 to 100; None where no query has a reference answer."""
    signature: str
    """sacrebleu's, of the value of each query."""


def score_answers(
    queries: Sequence[Query],
    systems: Sequence[System],
    readings: Readings,
    tokenizer: Tokenizer,
    vectors: Mapping[str, Vectors],
) -> PerQuery:
    """Compute every measure of every system; nothing is asked, and nothing is sent.

    Args:
        queries: those with a reference answer or claims; one that a system did not answer is an empty answer.
        systems: at least one.
        readings: what the judge said.
        tokenizer: of BLEU, ROUGE and token F1.
        vectors: text -> vector, for answer relevancy; empty without an encoder.

    Returns:
        Only measures that are defined for some query of some system.
    """
    needs_sacrebleu()
    rows = []
    for system in systems:
        for query in queries:
            reading = Reading(Case(query, system.answer(query.id), readings), tokenizer, vectors)
            for name, row in MEASURES.items():
                value = row.compute(reading)
                rows.append((system.name, query.id, name, math.nan if value is None else value))
    defined = {name for _, _, name, value in rows if not math.isnan(value)}
    return per_query(row for row in rows if row[2] in defined)


def corpus_scores(queries: Sequence[Query], systems: Sequence[System], tokenizer: Tokenizer) -> list[CorpusBleu]:
    """BLEU of each system over all its answers, with the signature of the values of single queries."""
    references = [query.reference.answers for query in queries]
    numbers = {len(answers) for answers in references if answers}
    signature = bleu_signature(tokenizer, numbers.pop() if len(numbers) == 1 else None)
    return [
        CorpusBleu(
            system.name,
            corpus_bleu([system.answer(query.id).response for query in queries], references, tokenizer),
            signature,
        )
        for system in systems
    ]


def vectors_of(encoder: Embedder, texts: Sequence[str], meter: Meter) -> dict[str, Vectors]:
    """Embed questions, through the cache: text -> vector.

    Raises:
        BackendError: the encoder failed for good.
    """
    distinct = sorted({text for text in texts if text.strip()})
    with meter.stage("answers"):
        embedded = encoder.embed(distinct, "query", meter)
        return dict(zip(distinct, dense(embedded.vectors), strict=True))


def questions_of(queries: Sequence[Query], systems: Sequence[System], readings: Readings) -> list[str]:
    """The questions of the data set, and those that were made from answers: what answer relevancy compares."""
    texts = [query.text for query in queries]
    for system in systems:
        for answer in system.answers.values():
            opinion = readings.opinion("questions", answer.response)
            texts += opinion["questions"] if opinion else []
    return texts
