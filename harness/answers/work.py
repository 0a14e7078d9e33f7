"""Commands for answers: read an experiment with a folder of answers, check, plan, judge, score."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

from harness.answers.answer_measures import (
    MEASURES,
    bleu_note,
    questions_of,
    score_answers,
    vectors_of,
)
from harness.answers.cases import (
    Case,
    TracedAnswer,
    judge_answers,
    pairs_of,
    texts_to_split,
    trace,
)
from harness.answers.chat_judge import CLAIMS_TAKEN, DryRun, build_judge, chat_of
from harness.answers.judging import Judge, signed
from harness.answers.overlap import Tokenizer, splitter, tokenizer_of
from harness.answers.systems import System, read_systems
from harness.dataset import load as load_dataset
from harness.english import count, counted
from harness.evaluation.csv_views import tables_of
from harness.evaluation.evaluate import evaluate
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.grading import clusters_of, weights_of
from harness.evaluation.scores import Scores
from harness.experiment import JudgeOptions, Loaded, load
from harness.records import write_table
from harness.records.readings import RESERVED, Readings, read_readings
from harness.stats.power import at_look
from harness.stats.settings import Settings
from retrievers import encoder_class
from retrievers.cache import Cache, default_path
from retrievers.embedding import Embedder
from retrievers.errors import BackendError, InputError, Problem, did_you_mean
from retrievers.meter import Budget, Meter
from retrievers.opening import locked, writing
from retrievers.placeholders import made
from retrievers.types import Query

PRIMARY = ("ragchecker.recall", "ROUGE-L")
"""The default primary measure: the first of these that is defined."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """A checked folder of answers with their queries."""

    loaded: Loaded
    queries: tuple[Query, ...]
    """Queries with a reference answer or claims: only these can be measured."""
    systems: tuple[System, ...]
    bare: int
    """Queries of the data set without a reference answer and without claims."""

    @property
    def judge(self) -> JudgeOptions:
        """The judge of the experiment; by default the lexical one."""
        return self.loaded.experiment.judge or JudgeOptions()


class SystemCounts(NamedTuple):
    """The contents of one system's file."""

    system: str
    answers: int
    missing: int
    """Queries with a reference but no answer: each counts as an empty answer."""
    empty: int
    """Empty answers."""
    without_contexts: int


def read_inputs(experiment: Path, folder: Path, *, code: bool = True) -> Inputs:
    """Read an experiment's data set and a folder of answers; `code` as for `harness.experiment.load`.

    Raises:
        InputError: with every problem; or no query has a reference answer or claims.
    """
    loaded = load(experiment, code=code)
    dataset = load_dataset(
        loaded.dataset, drop_dangling=loaded.experiment.relevance.dangling == "drop"
    )
    known = {query.id: query for query in (*dataset.judged, *dataset.queries)}
    systems = read_systems(folder, known.keys())
    measured = tuple(
        q for q in known.values() if q.reference.answers or q.reference.claims
    )
    if not measured:
        remedy = 'give queries a "reference" (a right answer) or "claims" (its statements) in the file of queries'
        raise InputError(
            Problem(dataset.path, "no query has a reference answer or claims", remedy)
        )
    return Inputs(loaded, measured, tuple(systems), len(known) - len(measured))


def answer_counts(inputs: Inputs) -> list[SystemCounts]:
    """Count the contents of each system's file."""
    asked = [query.id for query in inputs.queries]
    return [
        SystemCounts(
            system.name,
            len(system.answers),
            sum(id_ not in system.answers for id_ in asked),
            sum(not answer.response.strip() for answer in system.answers.values()),
            sum(not answer.contexts for answer in system.answers.values()),
        )
        for system in inputs.systems
    ]


def lines_of(inputs: Inputs) -> Iterator[str]:
    """The output of `harness answers check`."""
    claims = counted(
        sum(len(query.reference.claims) for query in inputs.queries), "claim"
    )
    answers = counted(
        sum(bool(query.reference.answers) for query in inputs.queries),
        "reference answer",
    )
    have = f"{count(len(inputs.queries))} to measure: {answers}, {claims}; with neither, ignored: {inputs.bare:,}"
    yield f"{inputs.loaded.dataset.path}: {have}"
    for one in answer_counts(inputs):
        yield (
            f"{one.system}: {counted(one.answers, 'answer')}, {one.missing:,} missing "
            f"(each counts as an empty answer), {one.empty:,} empty, {one.without_contexts:,} without contexts"
        )
    yield "no problem found"


class VerdictCounts(NamedTuple):
    """The counts of a judge's verdicts."""

    judge: str
    verdicts: int
    unreadable: int
    """Pairs without a verdict: null, which is not "no"."""
    claims_missing: int
    """Texts whose claims could not be read."""
    truncated: int = 0
    """Items with a truncated text, in this call."""
    without_schema: int = 0
    """Replies of a server that supports no schema, in this call."""

    def lines(self) -> Iterator[str]:
        """The output of `harness answers judge`."""
        yield f"{self.judge}: {counted(self.verdicts, 'verdict')}, {self.unreadable:,} unreadable (undefined, never 0)"
        if self.claims_missing:
            yield f"the claims of {counted(self.claims_missing, 'text')} could not be read"
        if self.truncated:
            longer = "a text longer than [judge] longest"
            yield f"{self.truncated:,} were judged by the start of {longer}"
        if self.without_schema:
            yield f"the server supports no schema: {self.without_schema:,} replies came without one"
        if self.judge.startswith("lexical"):
            yield "weak: it compares words only, misses paraphrases and never finds a contradiction"


def judged(inputs: Inputs, judge: Judge, readings: Readings) -> VerdictCounts:
    """Count the verdicts on the pairs that the measures need."""
    cases = cases_of(inputs.queries, inputs.systems, readings)
    pairs = list(dict.fromkeys(pair for case in cases for pair in pairs_of(case)))
    words = [readings.word(*pair) for pair in pairs]
    return VerdictCounts(
        judge.name,
        sum(word is not None for word in words),
        sum(word is None for word in words),
        len({case.answer.response for case in cases if case.made is None}),
    )


def cases_of(
    queries: Sequence[Query], systems: Sequence[System], readings: Readings
) -> list[Case]:
    """Every system's answer to every query."""
    return [
        Case(query, system.answer(query.id), readings)
        for system in systems
        for query in queries
    ]


class JudgingForecast(NamedTuple):
    """The forecast of judging: every task, with five claims per text whose claims are unknown."""

    judge: str
    verdicts: int
    """Pairs of claim and text without a verdict."""
    texts: int
    """Texts without extracted claims."""
    calls: int | None
    """Requests of all tasks; None for a local judge."""
    tokens: int | None
    usd: float | None

    def sentence(self) -> str:
        """The output of `harness answers judge --plan`."""
        first = f"claims to extract from {counted(self.texts, 'text')} first"
        work = f"{self.judge}: {counted(self.verdicts, 'verdict')} to give; {first}"
        if self.calls is None:
            return work + "; on this machine"
        cost = "at an unknown price" if self.usd is None else f"about ${self.usd:.4f}"
        guess = f", assumed to make {CLAIMS_TAKEN}" if self.texts else ""
        tokens = f"about {self.tokens:,} tokens for all tasks, replies at their longest"
        return f"{work}{guess}; {counted(self.calls, 'request')} and {tokens}, {cost}"


class AnswerOptions(NamedTuple):
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
    traced: Mapping[str, Sequence[TracedAnswer]]
    """System -> its answers, claim by claim."""


def forecast_judging(
    experiment: Path, folder: Path, *, code: bool = True
) -> JudgingForecast:
    """Forecast the judging by a dry run; nothing is sent, no model is loaded, the folder is unchanged."""
    inputs = read_inputs(experiment, folder, code=code)
    by_model = inputs.judge.kind == "openai"
    with Cache(default_path()) as cache:
        chat = DryRun(chat_of(inputs.judge, cache)) if by_model else None
        asked = build_judge(inputs.judge, cache, Meter(), chat=chat)
        known = read_readings(folder, signed(asked))
        found = known if chat is None else _dry_run(folder, asked, inputs)
        requests = None if chat is None else chat.forecast()
    pairs = dict.fromkeys(
        pair
        for case in cases_of(inputs.queries, inputs.systems, found)
        for pair in pairs_of(case)
    )
    number = sum(known.word(*pair) is None for pair in pairs)
    texts = sum(
        known.claims.get(text) is None
        for text in texts_to_split(inputs.queries, inputs.systems)
    )
    costs = (
        (None, None, None)
        if requests is None
        else (requests.calls, requests.tokens, requests.usd)
    )
    return JudgingForecast(asked.name, number, texts, *costs)


def _dry_run(folder: Path, asked: Judge, inputs: Inputs) -> Readings:
    """Judge in a copy of the folder, by a judge that sends nothing."""
    with TemporaryDirectory() as copy:
        for name in RESERVED:
            if (file := folder / f"{name}.jsonl").is_file():
                shutil.copy(file, copy)
        return judge_answers(Path(copy), asked, inputs.queries, inputs.systems)


def judge(
    experiment: Path, folder: Path, *, max_cost: float | None = None, code: bool = True
) -> VerdictCounts:
    """Ask the judge for all that is missing, and store it in the folder.

    Raises:
        InputError: a problem with the experiment, the data or the answers.
        BackendError: the judge failed permanently, or every reply is unreadable; OverBudget before more is spent than
            allowed.
    """
    inputs = read_inputs(experiment, folder, code=code)
    meter = Meter(budget=Budget(max_cost))
    verdicts = folder / "verdicts.jsonl"
    with writing(verdicts):
        alone = locked(
            verdicts, "is in use by another process", "wait for it, and run again"
        )
    with Cache(default_path()) as cache, alone, meter.stage("judge"):
        asked = build_judge(inputs.judge, cache, meter)
        readings = judge_answers(folder, asked, inputs.queries, inputs.systems)
    counts = meter.counts("judge")
    found = judged(inputs, asked, readings)
    if asked.unread and not found.verdicts:
        what = f"{asked.name} gave {found.unreadable:,} verdicts, none of them readable ({asked.unread})"
        raise BackendError(
            f"{what}: nothing was judged; check the model and its server, and run again"
        )
    meter.budget.check(f"verdicts so far are in {folder}")
    truncated, without_schema = (
        int(counts.get(name, 0)) for name in ("truncated", "without_schema")
    )
    return found._replace(truncated=truncated, without_schema=without_schema)


def score(
    experiment: Path, folder: Path, wanted: AnswerOptions, *, code: bool = True
) -> AnswerScores:
    """Compute every measure from the verdicts, compare the systems, and write the tables into the folder.

    Raises:
        InputError: there are no verdicts; there is no such measure, system or tokenizer.
    """
    inputs = read_inputs(experiment, folder, code=code)
    meter = Meter()
    with Cache(default_path()) as cache:
        asked = build_judge(inputs.judge, cache, meter)
        if not (readings := read_readings(folder, signed(asked))).verdicts:
            remedy = "first run: harness answers judge EXPERIMENT ANSWERS"
            raise InputError(
                Problem(
                    str(folder), f"has no verdicts of the judge {asked.name!r}", remedy
                )
            )
        vectors = {}
        if (kind := inputs.judge.encoder) is not None:
            encoder = Embedder(made(encoder_class(kind.kind), kind.options), cache)
            vectors = vectors_of(
                encoder, questions_of(inputs.queries, inputs.systems, readings), meter
            )
    tokenizer = _tokenizer(inputs, wanted.tokenizer)
    scores = score_answers(inputs.queries, inputs.systems, readings, tokenizer, vectors)
    if unknown := [name for name in wanted.measures if name not in MEASURES]:
        what = "is not a measure of answers"
        raise InputError(
            [
                Problem(f"measure {name!r}", what, did_you_mean(name, MEASURES))
                for name in unknown
            ]
        )
    declared = inputs.loaded.experiment
    settings = at_look(
        Settings.of(asdict(declared.statistics), declared.seed), scores.n
    )
    queries = sorted(inputs.queries, key=lambda query: query.id)  # the order of scores
    clusters, weights = (
        clusters_of(queries, settings.cluster),
        weights_of(queries, settings.weight),
    )
    kept = replace(scores.selected(wanted.measures), clusters=clusters, weights=weights)
    primary = (
        wanted.measures[0]
        if wanted.measures
        else next(n for n in (*PRIMARY, *kept.values) if n in kept.values)
    )
    kept = replace(kept, decides=primary)
    low = frozenset(name for name, row in MEASURES.items() if row.low_is_good)
    evaluation = evaluate(
        kept, baseline=wanted.baseline, settings=settings, low_is_good=low
    )
    notes = _notes(inputs, kept, tokenizer, judged(inputs, asked, readings))
    traced = {
        system.name: [
            trace(case) for case in cases_of(inputs.queries, [system], readings)
        ]
        for system in inputs.systems
    }
    for name, table in tables_of(kept, evaluation).items():
        if name != "tests":
            write_table(folder, name, table)
    return AnswerScores(kept, evaluation, tuple(notes), traced)


def _tokenizer(inputs: Inputs, named: str | None) -> Tokenizer:
    if named is None:
        return tokenizer_of(
            text for query in inputs.queries for text in query.reference.answers
        )
    splitter(cast("Tokenizer", named))  # refuses another name
    return cast("Tokenizer", named)


def _notes(
    inputs: Inputs, scores: Scores, tokenizer: Tokenizer, judged_: VerdictCounts
) -> list[str]:
    """Warnings about the numbers."""
    notes = [bleu_note(inputs.queries, tokenizer)] if "BLEU" in scores.values else []
    notes += judged_.lines()
    alike: dict[str, list[str]] = {}
    for measure, of in scores.undefined().items():
        counts = ", ".join(f"{number} of {system}" for system, number in of.items())
        alike.setdefault(counts, []).append(measure)
    head = f"undefined for some of {count(len(scores.ids))}"
    return notes + [
        f"{head} ({counts}): {', '.join(names)}" for counts, names in alike.items()
    ]
