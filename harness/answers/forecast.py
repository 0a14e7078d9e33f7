"""What judging answers would take."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.answers.ask_judge import ask_judge, claim_pairs, texts_to_split
from harness.answers.case import build_cases
from harness.answers.chat_forecast import ASSUMED_CLAIMS, ForecastChat
from harness.answers.declared_judge import build_judge, judge_chat
from harness.answers.inputs import AnswerInputs, read_answer_inputs
from harness.answers.judge import Judge, identity_of
from harness.english import count_of
from harness.records.judge_files import RESERVED_SYSTEM_NAMES, read_readings
from harness.records.judge_readings import JudgeReadings
from retrievers.cache import Cache, default_cache_path
from retrievers.meter import Meter


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
        first = f"claims to extract from {count_of(self.texts, 'text')} first"
        work = f"{self.judge}: {count_of(self.verdicts, 'verdict')} to give; {first}"
        if self.calls is None:
            return work + "; on this machine"
        cost = "at an unknown price" if self.usd is None else f"about ${self.usd:.4f}"
        guess = f", assumed to make {ASSUMED_CLAIMS}" if self.texts else ""
        tokens = f"about {self.tokens:,} tokens for all tasks, replies at their longest"
        return f"{work}{guess}; {count_of(self.calls, 'request')} and {tokens}, {cost}"


def forecast_judging(
    experiment: Path, folder: Path, *, code: bool = True
) -> JudgingForecast:
    """Forecast the judging by a dry run; nothing is sent, no model is loaded, the folder is unchanged."""
    inputs = read_answer_inputs(experiment, folder, code=code)
    by_model = inputs.judge.kind == "openai"
    with Cache(default_cache_path()) as cache:
        chat = ForecastChat(judge_chat(inputs.judge, cache)) if by_model else None
        asked = build_judge(inputs.judge, cache, Meter(), chat=chat)
        known = read_readings(folder, identity_of(asked))
        found = known if chat is None else _dry_run(folder, asked, inputs)
        requests = None if chat is None else chat.forecast()
    pairs = dict.fromkeys(
        pair
        for case in build_cases(inputs.queries, inputs.systems, found)
        for pair in claim_pairs(case)
    )
    number = sum(known.verdict_word(*pair) is None for pair in pairs)
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


def _dry_run(folder: Path, asked: Judge, inputs: AnswerInputs) -> JudgeReadings:
    """Judge in a copy of the folder, by a judge that sends nothing."""
    with TemporaryDirectory() as copy:
        for name in RESERVED_SYSTEM_NAMES:
            if (file := folder / f"{name}.jsonl").is_file():
                shutil.copy(file, copy)
        return ask_judge(Path(copy), asked, inputs.queries, inputs.systems)
