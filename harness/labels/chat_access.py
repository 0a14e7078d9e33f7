"""The chat model that a command names.

The digest of the prompt is stored with every judgment.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from harness.english import count_of
from harness.experiment import unset_variables
from retrievers.cache import Cache, default_cache_path
from retrievers.errors import InputError, Problem
from retrievers.meter import Budget, Meter
from retrievers.services.chat import Chat
from retrievers.services.chat_model import ChatForecast, ChatModel


class JudgeModel(NamedTuple):
    """The model of the command line, and the budget."""

    model: str
    base_url: str = ""
    """May contain `${NAME}` of the environment, which is expanded on use and never written."""
    key_name: str = ""
    """The environment variable that holds the key."""
    price: str = ""
    """Dollars for a million tokens, "IN,OUT"."""
    max_cost: float | None = None


@contextmanager
def open_chat(judge_model: JudgeModel) -> Iterator[tuple[Chat, Meter]]:
    """Open the cache, and describe the model; nothing is sent.

    Raises:
        InputError: the prices are invalid, a `${NAME}` is not set, or the cache cannot be opened.
        OverBudget: at the end, if more was billed than allowed.
    """
    sent, received = _prices(judge_model.price)
    if problems := list(unset_variables({"--base-url": judge_model.base_url})):
        raise InputError(problems)
    model = ChatModel(
        model=judge_model.model,
        base_url=judge_model.base_url,
        key_name=judge_model.key_name,
        input_price=sent,
        output_price=received,
    )
    with Cache(default_cache_path()) as cache:
        meter = Meter(budget=Budget(judge_model.max_cost))
        yield Chat(model, cache), meter
    meter.budget.check("replies so far are kept")


def chat_forecast_sentence(forecast: ChatForecast) -> str:
    """The forecast as a sentence."""
    dollars = (
        "at an unknown price (--price IN,OUT)"
        if forecast.usd is None
        else f"about ${forecast.usd:.4f}"
    )
    if (
        forecast.calls and forecast.usd == 0
    ):  # a server on this machine is free until a price is given
        dollars = "at no price (--price IN,OUT)"
    prompts, calls = (
        count_of(forecast.prompts, "prompt"),
        count_of(forecast.calls, "call"),
    )
    longest = f"about {forecast.tokens:,} tokens with replies at their longest"
    return (
        f"{prompts}, {forecast.cached:,} of them cached: {calls}, {longest}, {dollars}"
    )


def _prices(written: str) -> tuple[float | None, float | None]:
    if not written:
        return None, None
    try:
        sent, received = (float(part) for part in written.split(","))
        if min(sent, received) < 0:
            raise ValueError
    except ValueError:
        remedy = "dollars for a million tokens in and out: --price 0.15,0.60"
        raise InputError(
            Problem("--price", f"{written!r} is not a pair of prices", remedy)
        ) from None
    return sent, received
