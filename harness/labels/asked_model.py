"""The chat model of a command line: its options, its prices, and a forecast of calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from harness.english import counted
from harness.experiment import unset
from retrievers.cache import Cache, default_path
from retrievers.chat import Chat
from retrievers.chat_model import ChatForecast, ChatModel
from retrievers.errors import InputError, Problem
from retrievers.meter import Budget, Meter

LONGEST_NAME = 200
"""Most characters of a judge's name."""


class AskedModel(NamedTuple):
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
def opened_chat(asked: AskedModel) -> Iterator[tuple[Chat, Meter]]:
    """Open the cache, and describe the model; nothing is sent.

    Raises:
        InputError: the prices are invalid, a `${NAME}` is not set, or the cache cannot be opened.
        OverBudget: at the end, if more was billed than allowed.
    """
    sent, received = _prices(asked.price)
    problems = list(unset({"--base-url": asked.base_url}))
    if not 0 < len(asked.model) <= LONGEST_NAME:
        problems.append(
            Problem("--llm", f"{asked.model[:20]!r} is not a name of a model", "use its name on the server")
        )
    if problems:
        raise InputError(problems)
    model = ChatModel(model=asked.model, base_url=asked.base_url, key_name=asked.key_name,
                      input_price=sent, output_price=received)  # fmt: skip
    with Cache(default_path()) as cache:
        meter = Meter(budget=Budget(asked.max_cost))
        yield Chat(model, cache), meter
    meter.budget.check("replies so far are kept")


def forecast_sentence(forecast: ChatForecast) -> str:
    """The forecast as a sentence."""
    dollars = "at an unknown price (--price IN,OUT)" if forecast.usd is None else f"about ${forecast.usd:.4f}"
    if forecast.calls and forecast.usd == 0:  # a server on this machine is free until a price is given
        dollars = "at no price (--price IN,OUT)"
    prompts, calls = counted(forecast.prompts, "prompt"), counted(forecast.calls, "call")
    longest = f"about {forecast.tokens:,} tokens with replies at their longest"
    return f"{prompts}, {forecast.cached:,} of them cached: {calls}, {longest}, {dollars}"


def _prices(written: str) -> tuple[float | None, float | None]:
    if not written:
        return None, None
    try:
        sent, received = (float(part) for part in written.split(","))
        if min(sent, received) < 0:
            raise ValueError
    except ValueError:
        remedy = "dollars for a million tokens in and out: --price 0.15,0.60"
        raise InputError(Problem("--price", f"{written!r} is not a pair of prices", remedy)) from None
    return sent, received
