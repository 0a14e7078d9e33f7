"""Answers to scores.

The measures are computed from the answers and the stored verdicts of the judge, each
for each query, and the systems compared as retrievers are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, cast

from harness.answers.case import Case, build_cases
from harness.answers.claim_fates import TracedAnswer, TracedSystems, trace_claims
from harness.answers.declared_judge import build_judge
from harness.answers.extras import require_extras
from harness.answers.inputs import AnswerInputs, read_answer_inputs
from harness.answers.judge import Judge, identity_of
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
from harness.english import count_of, count_queries
from harness.evaluation.evaluate import evaluate_scores
from harness.evaluation.evaluation import Evaluation
from harness.records import write_table
from harness.records.judge_files import read_readings
from harness.records.judge_readings import JudgeReadings
from harness.scoring.query_units import query_units
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
    *,
    vectors: Mapping[str, DenseVectors],
) -> Scores:
    """Compute every measure of every system; no request is sent.

    Args:
        queries: with a reference answer or claims; a missing answer counts as an empty
            one.
        systems: at least one.
        readings: of the judge.
        tokenizer: of BLEU, ROUGE and token F1.
        vectors: text -> vector, for answer relevancy; empty without an encoder.

    Returns:
        Only measures that are defined for at least one query of one system; the value
        of a query for which one is not defined is NaN.
    """
    require_sacrebleu()
    rows: dict[tuple[str, str, str], float] = {}
    defined_measures: set[str] = set()
    for system in systems:
        for query in queries:
            case = Case(query, system.answer(query.id), readings)
            measured = MeasuredCase(case, tokenizer, vectors)
            for measure_name, measure in ANSWER_MEASURES.items():
                score = measure.compute(measured)
                if score is None:
                    score = math.nan
                if not math.isnan(score):
                    defined_measures.add(measure_name)
                rows[system.name, query.id, measure_name] = score
    return scores_from_rows(
        {key: score for key, score in rows.items() if key[2] in defined_measures}
    )


def bleu_note(queries: Sequence[Query], tokenizer: Tokenizer) -> str:
    """The signature of BLEU, by which others reproduce it."""
    answers = [query.reference.answers for query in queries if query.reference.answers]
    counts = {len(references) for references in answers}
    references_per_query = counts.pop() if len(counts) == 1 else None
    return f"BLEU: {bleu_signature(tokenizer, references_per_query)}"


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
    """The texts for answer relevancy: the queries, and the generated questions."""
    texts = [query.text for query in queries]
    for system in systems:
        for answer in system.answers.values():
            opinion = readings.opinion("questions", answer.response)
            texts += opinion["questions"] if opinion else []
    return texts


DEFAULT_ANSWER_MEASURES = ("ragchecker.recall", "ROUGE-L")
"""The default primary measure: the first of these that is defined, else the first of
`ANSWER_MEASURES` that is."""


class AnswerScoringOptions(NamedTuple):
    """The options of the command line."""

    measures: tuple[str, ...] = ()
    """The first decides; by default all that are defined."""
    baseline: str | None = None
    """The system that each other is compared with; None compares all pairs."""
    tokenizer: str | None = None
    """The tokenizer; None: the one for the script of the reference answers."""


@dataclass(frozen=True, slots=True, eq=False)
class AnswerScores:
    """Every value, and the comparison of the systems.

    Systems are in the place of retrievers.
    """

    scores: Scores
    evaluation: Evaluation
    notes: tuple[str, ...]
    traced_answers: TracedSystems


def score_answers_folder(
    experiment: Path,
    folder: Path,
    options: AnswerScoringOptions,
    *,
    allow_code: bool = True,
) -> AnswerScores:
    """Compute every measure from the verdicts, and compare the systems.

    scores.csv, summary.csv and comparisons.csv are written into the folder; further
    tests are of retrievers, so there is no tests.csv.

    Raises:
        InputError: there are no verdicts; there is no such measure, system or
            tokenizer; no measure, or not the requested one, is defined for any answer.
        BackendError: the encoder failed permanently.
    """
    # What can be refused comes before the judge's model is loaded, and texts embedded.
    require_extras(experiment, allow_code=allow_code)
    _check_measures(options.measures)
    inputs = read_answer_inputs(experiment, folder, allow_code=allow_code)
    tokenizer = _find_tokenizer(inputs, options.tokenizer)
    meter = Meter()
    with Cache(default_cache_path()) as cache:
        judge = build_judge(inputs.judge, cache, meter)
        readings = _read_verdicts(folder, judge)
        vectors = _embed_relevancy_texts(inputs, readings, cache, meter)
    all_scores = score_answers(
        inputs.queries, inputs.systems, readings, tokenizer, vectors=vectors
    )
    if not all_scores.values:
        raise InputError(_no_measure_problem(folder, readings))
    declared = inputs.loaded.experiment
    settings = settings_at_look(
        Settings.from_statistics(declared.statistics, declared.seed), all_scores.n
    )
    scores = _select_scores(all_scores, inputs.queries, settings, options.measures)
    evaluation = evaluate_scores(
        scores,
        baseline=options.baseline,
        settings=settings,
        low_is_good=_low_is_good_measures(),
    )
    notes = _notes(inputs, scores, tokenizer, count_verdicts(inputs, judge, readings))
    for table_name, table in evaluation_tables(scores, evaluation).items():
        if table_name != "tests":
            write_table(folder, table_name, table)
    return AnswerScores(scores, evaluation, tuple(notes), _trace(inputs, readings))


def _read_verdicts(folder: Path, judge: Judge) -> JudgeReadings:
    """Return the judge's readings; refuse a folder without its verdicts."""
    readings = read_readings(folder, identity_of(judge))
    if not readings.verdicts:
        problem = f"has no verdicts of the judge {judge.name!r}"
        remedy = "first run: harness answers judge EXPERIMENT ANSWERS"
        raise InputError(Problem(str(folder), problem, remedy))
    return readings


def _no_measure_problem(folder: Path, readings: JudgeReadings) -> Problem:
    """Return why no measure is defined.

    Without reference answers all measures need verdicts.
    """
    verdicts = count_of(len(readings.verdicts), "verdict")
    problem = (
        f"no measure is defined: none of the {verdicts} can be read, and no query has "
        "a reference answer"
    )
    return Problem(str(folder), problem, "use another judge, or add reference answers")


def _embed_relevancy_texts(
    inputs: AnswerInputs, readings: JudgeReadings, cache: Cache, meter: Meter
) -> dict[str, DenseVectors]:
    """Return the vectors for answer relevancy; {} without an encoder."""
    config = inputs.judge.encoder
    if config is None:
        return {}
    encoder = instantiate(encoder_class(config.kind), config.options)
    texts = relevancy_texts(inputs.queries, inputs.systems, readings)
    return embed_texts(Embedder(encoder, cache), texts, meter)


def _find_tokenizer(inputs: AnswerInputs, requested: str | None) -> Tokenizer:
    """Return the requested tokenizer, by default the one for the references' script."""
    if requested is None:
        return choose_tokenizer(
            text for query in inputs.queries for text in query.reference.answers
        )
    tokenizer = cast("Tokenizer", requested)
    token_splitter(tokenizer)  # refuses another name
    return tokenizer


def _check_measures(measures: Sequence[str]) -> None:
    """Refuse names that are not measures of answers."""
    problems = [
        Problem(
            f"measure {measure!r}",
            "is not a measure of answers",
            did_you_mean(measure, ANSWER_MEASURES),
        )
        for measure in measures
        if measure not in ANSWER_MEASURES
    ]
    if problems:
        raise InputError(problems)


def _select_scores(
    scores: Scores,
    queries: Sequence[Query],
    settings: Settings,
    measures: tuple[str, ...],
) -> Scores:
    """Return the requested measures, with the queries' clusters and weights."""
    in_score_order = sorted(queries, key=lambda query: query.id)  # as `scores.ids`
    units = query_units(in_score_order, settings.cluster, settings.weight)
    selected = scores.select(measures)
    selected = replace(selected, clusters=units.clusters, weights=units.weights)
    if measures:
        return replace(selected, declared_primary=measures[0])
    preferred = (*DEFAULT_ANSWER_MEASURES, *selected.values)
    primary = next(measure for measure in preferred if measure in selected.values)
    return replace(selected, declared_primary=primary)


def _low_is_good_measures() -> frozenset[str]:
    return frozenset(
        name for name, measure in ANSWER_MEASURES.items() if measure.low_is_good
    )


def _trace(
    inputs: AnswerInputs, readings: JudgeReadings
) -> dict[str, list[TracedAnswer]]:
    """Return each system's answers claim by claim."""
    traced: dict[str, list[TracedAnswer]] = {}
    for system in inputs.systems:
        cases = build_cases(inputs.queries, [system], readings)
        traced[system.name] = [trace_claims(case) for case in cases]
    return traced


def _notes(
    inputs: AnswerInputs,
    scores: Scores,
    tokenizer: Tokenizer,
    verdict_counts: VerdictCounts,
) -> list[str]:
    """Warnings about the numbers."""
    notes: list[str] = []
    if "BLEU" in scores.values:
        notes.append(bleu_note(inputs.queries, tokenizer))
    notes.extend(verdict_counts.lines())
    measures_by_counts: dict[str, list[str]] = {}
    for measure, count_by_system in scores.undefined_counts().items():
        counts = ", ".join(
            f"{number} of {system}" for system, number in count_by_system.items()
        )
        measures_by_counts.setdefault(counts, []).append(measure)
    queries = count_queries(len(scores.ids))
    for counts, measures in measures_by_counts.items():
        notes.append(
            f"undefined for some of {queries} ({counts}): {', '.join(measures)}"
        )
    return notes
