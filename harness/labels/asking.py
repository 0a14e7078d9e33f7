"""How a model is named on the command line, and the cache and the budget that it is asked with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from harness.experiment import expanded
from retrievers.cache import Cache, default_path
from retrievers.errors import InputError, Problem
from retrievers.meter import Budget, Meter
from retrievers.remote.chat import Chat
from retrievers.remote.chat_model import ChatModel
from retrievers.remote.prompts import ChatForecast, ChatOptions


class Asking(NamedTuple):
    """Which model is asked, and what may be spent."""

    model: str
    base_url: str = ""
    """May name the environment as `${NAME}`, which is put in at the moment of use and never written down."""
    key_name: str = ""
    """The environment variable that holds the key."""
    price: str = ""
    """Dollars for a million tokens, "IN,OUT"."""
    max_cost: float | None = None
    concurrency: int = 4
    patience: float = 300


@contextmanager
def asking(asked: Asking) -> Iterator[tuple[Chat, Meter]]:
    """Open the cache, and describe the model; nothing is sent.

    Raises:
        InputError: the prices cannot be read, a `${NAME}` is not set, or the cache cannot be opened.
    """
    sent, received = _prices(asked.price)
    options = ChatOptions(asked.model, base_url=_expanded(asked.base_url), key_name=asked.key_name,
                          concurrency=asked.concurrency, patience=asked.patience,
                          input_price=sent, output_price=received)  # fmt: skip
    with Cache(default_path()) as cache:
        yield Chat(ChatModel(options), cache), Meter(budget=Budget(asked.max_cost))


def forecast_sentence(forecast: ChatForecast) -> str:
    """What asking would take, in words."""
    dollars = "at an unknown price (--price IN,OUT)" if forecast.usd is None else f"at most ${forecast.usd:.4f}"
    return (
        f"{forecast.prompts:,} prompts, {forecast.cached:,} of them cached: {forecast.calls:,} calls, "
        f"at most {forecast.tokens:,} tokens, {dollars}"
    )


def _expanded(address: str) -> str:
    try:
        whole: str = expanded(address)
    except KeyError as name:
        where, wrong = "--base-url", f"${{{name.args[0]}}} is not set in the environment"
        raise InputError(Problem(where, wrong, f"export {name.args[0]}=…")) from None
    return whole


def _prices(written: str) -> tuple[float | None, float | None]:
    if not written:
        return None, None
    try:
        sent, received = (float(part) for part in written.split(","))
        if min(sent, received) < 0:
            raise ValueError
    except ValueError:
        remedy = "dollars for a million tokens in and out: --price 0.15,0.60"
        raise InputError(Problem("--price", f"{written!r} is no pair of prices", remedy)) from None
    return sent, received
