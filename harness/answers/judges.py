"""The judge of an experiment, and the forecast of its requests by the same code, without sending any."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.answers.chat_judge import DryRun, ModelJudge
from harness.answers.judging import THRESHOLD, Judge, LexicalJudge
from harness.answers.rankings import depth_of, judge_rankings
from harness.dataset import Dataset
from harness.experiment import JudgeOptions
from harness.measures import Measure
from harness.records.readings import Readings
from retrievers.asking import LONGEST, ReplySource
from retrievers.cache import Cache
from retrievers.chat import Chat
from retrievers.chat_model import ChatForecast, ChatModel
from retrievers.errors import InputError, Problem
from retrievers.meter import Meter
from retrievers.placeholders import expand


def chat_of(table: JudgeOptions, cache: Cache) -> Chat:
    """The chat model that an experiment declares as judge; nothing is sent."""
    model = ChatModel(
        model=table.model, base_url=table.base_url, key_name=table.key_name, max_tokens=1000,
        concurrency=table.concurrency, rpm=table.rpm, tpm=table.tpm,
        input_price=table.input_price, output_price=table.output_price,
    )  # fmt: skip
    return Chat(model, cache)


def build_judge(table: JudgeOptions, cache: Cache, meter: Meter, *, chat: ReplySource | None = None) -> Judge:
    """Make a judge; no model is loaded and nothing is sent before the first request.

    Args:
        table: of the experiment.
        cache: of a chat model's replies.
        meter: counts calls and dollars.
        chat: replaces the chat model of the table.

    Raises:
        InputError: an option is invalid.
    """
    if table.kind == "lexical":
        return LexicalJudge(threshold=table.threshold or THRESHOLD)
    if table.kind == "nli":
        from harness.answers import nli

        return nli.NliJudge(expand(table.model), meter=meter, threshold=table.threshold or nli.THRESHOLD)
    asked = chat if chat is not None else chat_of(table, cache)
    return ModelJudge(asked, meter=meter, longest=table.longest or LONGEST)


class ClaimsForecast(NamedTuple):
    """The forecast of a run's judging."""

    judge: str
    """Its name in every verdict."""
    pairs: int
    """Claims against documents."""
    requests: ChatForecast


def forecast_claims(
    table: JudgeOptions, dataset: Dataset, measures: Sequence[Measure], retrievers: int, cache: Cache
) -> ClaimsForecast:
    """Forecast the requests to a chat model if no two retrievers found the same document.

    The data set's first documents are used as retrieved ones, and the cache is assumed to be empty.

    Args:
        table: the judge, of kind "openai".
        dataset: with claims, or references to extract them from.
        measures: of the experiment.
        retrievers: their number.
        cache: of the chat model.
    """
    depth = depth_of(measures)
    width = dataset.count if depth is None else min(depth * retrievers, dataset.count)
    stand_in = {document.id: document.content for document in islice(dataset.documents(), width)}
    asked = [query for query in dataset.queries if query.reference.claims or query.reference.answers]
    dry_run = DryRun(chat_of(table, cache), cached=False)
    judge = build_judge(table, cache, Meter(), chat=dry_run)
    with TemporaryDirectory() as place:
        claimed = judge_rankings(Path(place), judge, asked, {query.id: stand_in for query in asked}, Readings())
    pairs = sum(len(one.claims) * len(stand_in) for one in claimed.values())
    return ClaimsForecast(judge.name, pairs, dry_run.forecast())


def check_price(table: JudgeOptions, measures: Sequence[Measure], cache: Cache) -> None:
    """Refuse a dollar limit without known prices, before anything is sent.

    Raises:
        InputError: the prices of the chat model are unknown.
    """
    asked = table.kind == "openai" and any(measure.claimed for measure in measures)
    if asked and not chat_of(table, cache).model.priced:
        unknown = f"the price of {table.model} is unknown, so --max-cost cannot be checked"
        remedy = "write input_price and output_price: dollars per million tokens"
        raise InputError(Problem("[judge]", unknown, remedy))
