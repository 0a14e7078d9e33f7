"""The commands for answers, whole: plan, judge, score."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from harness.answers.attribution import TracedAnswer, trace
from harness.answers.evidence import judge_answers, pairs_of, texts_to_split
from harness.answers.inputs import Inputs, VerdictCounts, cases_of, judged, read_inputs, readings_for
from harness.answers.judges import build_judge, chat_of, signed
from harness.answers.judging import Judge
from harness.answers.rehearsal import CLAIMS, Rehearsal
from harness.answers.scoring import corpus_scores, questions_of, score_answers, vectors_of
from harness.answers.table import MEASURES
from harness.answers.text import TOKENIZERS, Tokenizer, tokenizer_of
from harness.answers.trust import trust_in_answers
from harness.experiment import RETIRED, expanded, retired_in
from harness.records import RESERVED, Readings, as_cell, check_place, create, read_readings
from harness.scoring.compared import ComparedScores, compare_scores
from harness.scoring.evaluate import settings_of
from harness.scoring.per_query import PerQuery, selected
from retrievers import encoder_class
from retrievers.cache import Cache, default_path
from retrievers.embedding import Embedder
from retrievers.errors import BackendError, InputError, Problem, did_you_mean
from retrievers.meter import Budget, Meter

PRIMARY = ("ragchecker.recall", "ROUGE-L")
"""What decides where no measure is named: the first of these that is defined."""


class JudgingForecast(NamedTuple):
    """What judging would take: every task, as if each text whose claims are not known yet made five."""

    judge: str
    verdicts: int
    """Pairs of a claim and a text that are not judged yet."""
    texts: int
    """Texts whose claims have to be taken out first."""
    calls: int | None
    """Requests of all tasks; None for a judge on this machine."""
    tokens: int | None
    usd: float | None

    def sentence(self) -> str:
        """What `harness answers judge --plan` prints."""
        work = f"{self.judge}: {self.verdicts:,} verdicts to give; claims to be taken out of {self.texts:,} texts first"
        if self.calls is None:
            return work + "; on this machine"
        cost = "at an unknown price" if self.usd is None else f"at most ${self.usd:.4f}"
        guess = f", each taken to make {CLAIMS}" if self.texts else ""
        return f"{work}{guess}; {self.calls:,} requests and at most {self.tokens:,} tokens for all tasks, {cost}"


class AnswerOptions(NamedTuple):
    """What is decided on the command line."""

    measures: tuple[str, ...] = ()
    """The first decides; all that are defined where none is named."""
    baseline: str | None = None
    tokenizer: str | None = None
    """None: chosen by the script of the reference answers."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Every value, and what the systems came to."""

    scores: PerQuery
    compared: ComparedScores
    notes: tuple[str, ...]
    traced: Mapping[str, Sequence[TracedAnswer]]
    """System -> its answers, claim by claim."""


def look_ahead(experiment: Path, folder: Path, *, rounds: int = 1, code: bool = True) -> JudgingForecast:
    """Count what judging would take, by a rehearsal; nothing is sent, no model is loaded, the folder stays as it is."""
    inputs = read_inputs(experiment, folder, code=code)
    by_model = inputs.judge.kind == "openai"
    with Cache(default_path()) as cache:
        chat = Rehearsal(chat_of(inputs.judge, cache)) if by_model else None
        asked = build_judge(inputs.judge, cache, Meter(), chat=chat)
        known = read_readings(folder, signed(asked))
        rehearsed = known if chat is None else _rehearsed(folder, asked, inputs, rounds)
        requests = None if chat is None else chat.forecast()
    pairs = dict.fromkeys(
        pair for case in cases_of(inputs.queries, inputs.systems, rehearsed) for pair in pairs_of(case)
    )
    number = sum(known.word(*pair, round_) is None for pair in pairs for round_ in range(1, rounds + 1))
    texts = sum(known.claims.get(text) is None for text in texts_to_split(inputs.queries, inputs.systems))
    if requests is None:
        return JudgingForecast(asked.name, number, texts, None, None, None)
    return JudgingForecast(asked.name, number, texts, requests.calls, requests.tokens, requests.usd)


def _rehearsed(folder: Path, asked: Judge, inputs: Inputs, rounds: int) -> Readings:
    """Judge in a copy of the folder, by a judge that asks nobody."""
    with TemporaryDirectory() as copy:
        for name in RESERVED:
            if (file := folder / f"{name}.jsonl").is_file():
                shutil.copy(file, copy)
        return judge_answers(Path(copy), asked, inputs.queries, inputs.systems, rounds)


def judge(
    experiment: Path, folder: Path, *, rounds: int = 1, max_cost: float | None = None, code: bool = True
) -> VerdictCounts:
    """Ask the judge for all that is missing, and keep it in the folder.

    Raises:
        InputError: something is wrong with the experiment, the data or the answers.
        BackendError: the judge failed for good, or nothing that it said can be read; OverBudget before more is spent
            than allowed.
    """
    inputs = read_inputs(experiment, folder, code=code)
    check_place(folder)
    meter = Meter(budget=Budget(max_cost))
    with Cache(default_path()) as cache, meter.stage("judge"):
        asked = build_judge(inputs.judge, cache, meter)
        readings = judge_answers(folder, asked, inputs.queries, inputs.systems, rounds)
    counts = meter.counts("judge")
    found = judged(inputs, asked, readings)
    if asked.unread and not found.verdicts:
        what = f"{asked.name} gave {found.unreadable:,} verdicts, none of them readable ({asked.unread})"
        raise BackendError(f"{what}: nothing was judged; look at the model and its server, and run again")
    return found._replace(
        truncated=int(counts.get("truncated", 0)), without_schema=int(counts.get("without_schema", 0))
    )


def score(experiment: Path, folder: Path, wanted: AnswerOptions, *, code: bool = True) -> Scored:
    """Compute every measure from what the judge said, compare the systems, and write the tables into the folder.

    Raises:
        InputError: the judge said nothing there yet; there is no such measure, system or tokenizer.
    """
    inputs = read_inputs(experiment, folder, code=code)
    meter = Meter()
    with Cache(default_path()) as cache:
        asked = build_judge(inputs.judge, cache, meter)
        readings = readings_for(folder, asked)
        vectors = {}
        if (kind := inputs.judge.encoder) is not None:
            encoder = Embedder(encoder_class(kind.kind)(**expanded(kind.options)), cache)
            vectors = vectors_of(encoder, questions_of(inputs.queries, inputs.systems, readings), meter)
    tokenizer = _tokenizer(inputs, wanted.tokenizer)
    scores = score_answers(inputs.queries, inputs.systems, readings, tokenizer, vectors)
    _check_measures(wanted.measures)
    kept = selected(scores, wanted.measures)
    primary = wanted.measures[0] if wanted.measures else next(n for n in (*PRIMARY, *kept.values) if n in kept.values)
    settings = settings_of(inputs.loaded.experiment)
    low = frozenset(name for name, row in MEASURES.items() if row.low_is_good)
    compared = compare_scores(kept, primary=primary, baseline=wanted.baseline, settings=settings, low_is_good=low)
    notes = _notes(inputs, kept, tokenizer, judged(inputs, asked, readings))
    trust = trust_in_answers(folder, inputs.queries, inputs.systems, readings, kept)
    notes += [*trust.sentences(), *(one.sentence() for one in trust.estimates)]
    traced = {
        system.name: [trace(case) for case in cases_of(inputs.queries, [system], readings)] for system in inputs.systems
    }
    scored = Scored(kept, compared, tuple(notes), traced)
    write_tables(folder, scored)
    return scored


def write_tables(folder: Path, scored: Scored) -> None:
    """Write scores.csv, summary.csv and comparisons.csv; what is undefined is an empty cell."""
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = {
        "scores": list(scored.scores.rows()),
        "summary": scored.compared.summary,
        "comparisons": [asdict(row) for row in scored.compared.rows],
    }
    for name, rows in tables.items():
        with create(folder / f"{name}.csv") as file:
            if rows:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows({k: as_cell(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows)


def _check_measures(names: Sequence[str]) -> None:
    """Refuse what is no measure of answers, and what no longer is one."""
    unknown = [Problem(f"measure {name!r}", "is none of answers", did_you_mean(name, MEASURES))
               for name in names if name not in (*MEASURES, *RETIRED)]  # fmt: skip
    if problems := [*retired_in(("--measure", name) for name in names), *unknown]:
        raise InputError(problems)


def _tokenizer(inputs: Inputs, named: str | None) -> Tokenizer:
    if named is None:
        return tokenizer_of(text for query in inputs.queries for text in query.reference.answers)
    tokenizer = next((one for one in TOKENIZERS if one == named), None)
    if tokenizer is None:
        raise InputError(Problem("--tokenizer", f"there is none named {named!r}", f"known: {', '.join(TOKENIZERS)}"))
    return tokenizer  # type: ignore[return-value]  # one of the names that the type lists


def _notes(inputs: Inputs, scores: PerQuery, tokenizer: Tokenizer, judged_: VerdictCounts) -> list[str]:
    """What a reader of the numbers must know."""
    bleu = corpus_scores(inputs.queries, inputs.systems, tokenizer) if "BLEU" in scores.values else []
    notes = [f"{one.system}: BLEU over all answers {one.value:.2f}" for one in bleu if one.value is not None]
    notes += [f"BLEU of each query: {bleu[0].signature}"] if bleu else []
    notes += list(judged_.lines())
    alike: dict[str, list[str]] = {}
    for measure, of in scores.undefined().items():
        counts = ", ".join(f"{number} of {system}" for system, number in of.items())
        alike.setdefault(counts, []).append(measure)
    head = f"undefined for some of {len(scores.ids)} queries"
    return notes + [f"{head} ({counts}): {', '.join(names)}" for counts, names in alike.items()]
