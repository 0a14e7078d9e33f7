"""What judging answers would take.

A chat model's requests are counted by a dry run with `ForecastChat`; a local judge has
none, so that only its verdicts and texts are counted.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.answers.ask_judge import ask_judge, claim_pairs, texts_to_split
from harness.answers.case import build_cases
from harness.answers.chat_forecast import ForecastChat
from harness.answers.declared_judge import build_judge, judge_chat
from harness.answers.inputs import AnswerInputs, read_answer_inputs
from harness.answers.judge import Judge, identity_of
from harness.records.judge_files import RESERVED_SYSTEM_NAMES, read_readings
from harness.records.judge_readings import ClaimPassage, JudgeReadings
from retrievers.cache import Cache, default_cache_path
from retrievers.meter import Meter


class JudgingForecast(NamedTuple):
    """The forecast of judging, all tasks together.

    A text whose claims are unknown is assumed to have five for a chat model, and none
    for a local judge.
    """

    judge: str
    verdicts: int
    """Number of pairs of claim and text without a verdict."""
    texts: int
    """Number of texts without extracted claims."""
    calls: int | None
    """Number of requests of all tasks; None for a local judge."""
    tokens: int | None
    """The tokens of these requests, likewise."""
    usd: float | None
    """Their dollars, likewise; None also if the price is unknown."""


def forecast_judging(
    experiment: Path, folder: Path, *, allow_code: bool = True
) -> JudgingForecast:
    """Forecast the judging by a dry run.

    No judge is asked, no model is loaded, the folder is unchanged.

    Args:
        experiment: the file, which names the data set and the judge.
        folder: with the answers, and the verdicts so far.
        allow_code: whether the experiment may name Python code.
    """
    inputs = read_answer_inputs(experiment, folder, allow_code=allow_code)
    chat: ForecastChat | None = None
    with Cache(default_cache_path()) as cache:
        if inputs.judge.kind == "openai":
            chat = ForecastChat(judge_chat(inputs.judge, cache))
        judge = build_judge(inputs.judge, cache, Meter(), chat=chat)
        readings = read_readings(folder, identity_of(judge))
        if chat is None:  # a local judge sends no requests that a dry run could count
            return _forecast_work(judge.name, inputs, readings, readings)
        dry_readings = _dry_run(folder, judge, inputs)
        requests = chat.forecast()
    return _forecast_work(judge.name, inputs, readings, dry_readings)._replace(
        calls=requests.calls, tokens=requests.tokens, usd=requests.usd
    )


def _dry_run(folder: Path, judge: Judge, inputs: AnswerInputs) -> JudgeReadings:
    """Judge in a copy of the folder, by a judge that sends nothing."""
    with TemporaryDirectory() as copy:
        # The judge's own files; no system may have their names.
        for stem in RESERVED_SYSTEM_NAMES:
            file = folder / f"{stem}.jsonl"
            if file.is_file():
                shutil.copy(file, copy)
        return ask_judge(Path(copy), judge, inputs.queries, inputs.systems)


def _forecast_work(
    judge_name: str,
    inputs: AnswerInputs,
    readings: JudgeReadings,
    dry_readings: JudgeReadings,
) -> JudgingForecast:
    """Return the forecast without requests.

    Args:
        judge_name: of the judge.
        inputs: the queries and the systems.
        readings: what is stored.
        dry_readings: what is stored after the dry run, with assumed claims.
    """
    pairs: dict[ClaimPassage, None] = {}
    for case in build_cases(inputs.queries, inputs.systems, dry_readings):
        pairs.update(dict.fromkeys(claim_pairs(case)))
    texts = texts_to_split(inputs.queries, inputs.systems)
    return JudgingForecast(
        judge_name,
        verdicts=sum(readings.verdict_word(*pair) is None for pair in pairs),
        texts=sum(readings.claims.get(text) is None for text in texts),
        calls=None,
        tokens=None,
        usd=None,
    )
