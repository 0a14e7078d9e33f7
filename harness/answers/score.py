"""Answers to scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple, cast

from harness.answers.case import Case, build_cases
from harness.answers.claim_fates import TracedAnswer, trace_claims
from harness.answers.declared_judge import build_judge
from harness.answers.inputs import AnswerInputs, read_answer_inputs
from harness.answers.judge import identity_of
from harness.answers.judge_folder import VerdictCounts, count_verdicts
from harness.answers.measures import ANSWER_MEASURES, MeasuredCase
from harness.answers.systems import System
from harness.answers.text_overlap import bleu_signature
from harness.answers.text_tokens import (
    Tokenizer,
    choose_tokenizer,
    require_sacrebleu,
    token_splitter,
)
from harness.english import count_queries
from harness.evaluation.evaluate import evaluate_scores
from harness.evaluation.evaluation import Evaluation
from harness.records import write_table
from harness.records.judge_files import read_readings
from harness.records.judge_readings import JudgeReadings
from harness.scoring.query_units import query_clusters, query_weights
from harness.scoring.score_table import scores_from_rows
from harness.scoring.scores import Scores
from harness.stats.looks import settings_at_look
from harness.stats.settings import Settings
from harness.writing.evaluation_tables import evaluation_tables
from retrievers import encoder_class
from retrievers.cache import Cache, default_cache_path
from retrievers.embedder import Embedder
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.meter import Meter
from retrievers.options.placeholders import instantiate
from retrievers.ragged import as_dense
from retrievers.types import DenseVectors, Query


def score_answers(
    queries: Sequence[Query],
    systems: Sequence[System],
    readings: JudgeReadings,
    tokenizer: Tokenizer,
    vectors: Mapping[str, DenseVectors],
) -> Scores:
    """Compute every measure of every system; no request is sent.

    Args:
        queries: with a reference answer or claims; a missing answer counts as an empty one.
        systems: at least one.
        readings: of the judge.
        tokenizer: of BLEU, ROUGE and token F1.
        vectors: text -> vector, for answer relevancy; empty without an encoder.

    Returns:
        Only measures that are defined for at least one query of one system.
    """
    require_sacrebleu()
    rows = {}
    for system in systems:
        for query in queries:
            reading = MeasuredCase(
                Case(query, system.answer(query.id), readings), tokenizer, vectors
            )
            for name, row in ANSWER_MEASURES.items():
                value = row.compute(reading)
                rows[system.name, query.id, name] = math.nan if value is None else value
    defined = {name for (_, _, name), value in rows.items() if not math.isnan(value)}
    return scores_from_rows(
        {key: value for key, value in rows.items() if key[2] in defined}
    )


def bleu_note(queries: Sequence[Query], tokenizer: Tokenizer) -> str:
    """The signature of BLEU, by which others reproduce it."""
    numbers = {
        len(query.reference.answers) for query in queries if query.reference.answers
    }
    return f"BLEU: {bleu_signature(tokenizer, numbers.pop() if len(numbers) == 1 else None)}"


def embed_texts(
    encoder: Embedder, texts: Sequence[str], meter: Meter
) -> dict[str, DenseVectors]:
    """Embed texts through the cache: text -> vector.

    Raises:
        BackendError: the encoder failed permanently.
    """
    distinct = sorted({text for text in texts if text.strip()})
    with meter.stage("answers"):
        embedded = encoder.embed(distinct, "query", meter)
        return dict(zip(distinct, as_dense(embedded.vectors), strict=True))


def relevancy_texts(
    queries: Sequence[Query], systems: Sequence[System], readings: JudgeReadings
) -> list[str]:
    """The texts for answer relevancy: the queries, and the questions generated from answers."""
    texts = [query.text for query in queries]
    for system in systems:
        for answer in system.answers.values():
            opinion = readings.opinion("questions", answer.response)
            texts += opinion["questions"] if opinion else []
    return texts


DEFAULT_ANSWER_MEASURES = ("ragchecker.recall", "ROUGE-L")
"""The default primary measure: the first of these that is defined."""


class AnswerScoringOptions(NamedTuple):
    """The options of the command line."""

    measures: tuple[str, ...] = ()
    """The first decides; by default all that are defined."""
    baseline: str | None = None
    tokenizer: str | None = None
    """None: by the script of the reference answers."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerScores:
    """Every value, and the comparison of the systems."""

    scores: Scores
    evaluation: Evaluation
    notes: tuple[str, ...]
    traced_answers: Mapping[str, Sequence[TracedAnswer]]
    """System -> its answers, claim by claim."""


def score_answers_folder(
    experiment: Path, folder: Path, options: AnswerScoringOptions, *, code: bool = True
) -> AnswerScores:
    """Compute every measure from the verdicts, compare the systems, and write the tables into the folder.

    Raises:
        InputError: there are no verdicts; there is no such measure, system or tokenizer.
    """
    inputs = read_answer_inputs(experiment, folder, code=code)
    meter = Meter()
    with Cache(default_cache_path()) as cache:
        asked = build_judge(inputs.judge, cache, meter)
        if not (readings := read_readings(folder, identity_of(asked))).verdicts:
            remedy = "first run: harness answers judge EXPERIMENT ANSWERS"
            raise InputError(
                Problem(
                    str(folder), f"has no verdicts of the judge {asked.name!r}", remedy
                )
            )
        vectors = {}
        if (kind := inputs.judge.encoder) is not None:
            encoder = Embedder(
                instantiate(encoder_class(kind.kind), kind.options), cache
            )
            vectors = embed_texts(
                encoder,
                relevancy_texts(inputs.queries, inputs.systems, readings),
                meter,
            )
    tokenizer = _tokenizer(inputs, options.tokenizer)
    scores = score_answers(inputs.queries, inputs.systems, readings, tokenizer, vectors)
    if unknown := [name for name in options.measures if name not in ANSWER_MEASURES]:
        what = "is not a measure of answers"
        raise InputError(
            [
                Problem(f"measure {name!r}", what, did_you_mean(name, ANSWER_MEASURES))
                for name in unknown
            ]
        )
    declared = inputs.loaded.experiment
    settings = settings_at_look(
        Settings.from_table(asdict(declared.statistics), declared.seed), scores.n
    )
    queries = sorted(inputs.queries, key=lambda query: query.id)  # the order of scores
    clusters, weights = (
        query_clusters(queries, settings.cluster),
        query_weights(queries, settings.weight),
    )
    kept = replace(scores.select(options.measures), clusters=clusters, weights=weights)
    primary = (
        options.measures[0]
        if options.measures
        else next(
            n for n in (*DEFAULT_ANSWER_MEASURES, *kept.values) if n in kept.values
        )
    )
    kept = replace(kept, declared_primary=primary)
    low = frozenset(name for name, row in ANSWER_MEASURES.items() if row.low_is_good)
    evaluation = evaluate_scores(
        kept, baseline=options.baseline, settings=settings, low_is_good=low
    )
    notes = _notes(inputs, kept, tokenizer, count_verdicts(inputs, asked, readings))
    traced = {
        system.name: [
            trace_claims(case)
            for case in build_cases(inputs.queries, [system], readings)
        ]
        for system in inputs.systems
    }
    for name, table in evaluation_tables(kept, evaluation).items():
        if name != "tests":
            write_table(folder, name, table)
    return AnswerScores(kept, evaluation, tuple(notes), traced)


def _tokenizer(inputs: AnswerInputs, named: str | None) -> Tokenizer:
    if named is None:
        return choose_tokenizer(
            text for query in inputs.queries for text in query.reference.answers
        )
    token_splitter(cast("Tokenizer", named))  # refuses another name
    return cast("Tokenizer", named)


def _notes(
    inputs: AnswerInputs, scores: Scores, tokenizer: Tokenizer, judged_: VerdictCounts
) -> list[str]:
    """Warnings about the numbers."""
    notes = [bleu_note(inputs.queries, tokenizer)] if "BLEU" in scores.values else []
    notes += judged_.lines()
    alike: dict[str, list[str]] = {}
    for measure, of in scores.undefined_counts().items():
        counts = ", ".join(f"{number} of {system}" for system, number in of.items())
        alike.setdefault(counts, []).append(measure)
    head = f"undefined for some of {count_queries(len(scores.ids))}"
    return notes + [
        f"{head} ({counts}): {', '.join(names)}" for counts, names in alike.items()
    ]
