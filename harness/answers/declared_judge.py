"""The judge that an experiment declares: from its table to a `Judge`."""

from harness.answers.chat_judge import ModelJudge
from harness.answers.judge import Judge
from harness.answers.local_judges import (
    LEXICAL_THRESHOLD,
    NLI_THRESHOLD,
    LexicalJudge,
    NliJudge,
)
from harness.experiment import JudgeConfig
from retrievers.cache import Cache
from retrievers.errors import InputError, Problem
from retrievers.meter import Meter
from retrievers.options.placeholders import expand
from retrievers.remedy import Option, compose_remedy
from retrievers.services.chat import Chat
from retrievers.services.chat_model import ChatModel
from retrievers.services.chat_replies import MAX_TEXT_TOKENS

MAX_REPLY_TOKENS = 1000
"""Tokens of one reply, at most: room for the claims of a long text."""


def judge_chat(table: JudgeConfig, cache: Cache) -> Chat:
    """The chat model that an experiment declares as judge; nothing is sent."""
    model = ChatModel(
        model=table.model,
        base_url=table.base_url,
        key_name=table.key_name,
        max_tokens=MAX_REPLY_TOKENS,
        concurrency=table.concurrency,
        rpm=table.rpm,
        tpm=table.tpm,
        input_price=table.input_price,
        output_price=table.output_price,
    )
    return Chat(model, cache)


def build_judge(
    table: JudgeConfig, cache: Cache, meter: Meter, *, chat: Chat | None = None
) -> Judge:
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
        return LexicalJudge(threshold=table.threshold or LEXICAL_THRESHOLD)
    if table.kind == "nli":
        return NliJudge(
            expand(table.model), meter=meter, threshold=table.threshold or NLI_THRESHOLD
        )
    if chat is None:
        chat = judge_chat(table, cache)
    return ModelJudge(chat, meter=meter, longest=table.longest or MAX_TEXT_TOKENS)


def check_judge_price(table: JudgeConfig, cache: Cache) -> None:
    """Refuse a dollar limit without known prices, before anything is sent.

    Raises:
        InputError: the prices of the chat model are unknown.
    """
    if table.kind != "openai":
        return
    if not judge_chat(table, cache).model.has_prices:
        problem = (
            f"the price of {table.model} is unknown, so the limit of dollars cannot "
            "be kept"
        )
        remedy = compose_remedy(
            "write input_price and output_price: dollars per million tokens, "
            "or set no limit",
            Option("--max-cost"),
        )
        raise InputError(Problem("[judge]", problem, remedy))
