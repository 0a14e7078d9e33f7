"""The chat model that a command names.

`open_chat` turns the options into a chat with its cache, and a meter with the budget;
`model_judge` and `draft_queries` have the requests.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from harness.experiment import unset_variables
from retrievers.cache import Cache, default_cache_path
from retrievers.errors import InputError, Problem
from retrievers.meter import Budget, Meter
from retrievers.services.chat import Chat
from retrievers.services.chat_model import ChatModel


class ChatOptions(NamedTuple):
    """The options of a command about its chat model and its budget."""

    model: str
    base_url: str = ""
    """"": the server that OPENAI_BASE_URL names, else OpenAI's.

    May contain `${NAME}` of the environment, which is never written expanded.
    """
    key_name: str = ""
    """The variable that holds the key.

    "": OPENAI_API_KEY for OpenAI's server and that of OPENAI_BASE_URL, no key for
    others.
    """
    price: str = ""
    """Dollars for a million tokens, "IN,OUT"."""
    max_cost: float | None = None
    """Dollars that may be spent; None: any sum."""


@contextmanager
def open_chat(options: ChatOptions) -> Iterator[tuple[Chat, Meter]]:
    """Open the cache, and yield the chat of a model with its meter; nothing is sent.

    Each call of `replies` takes the meter. Only there a missing key is refused, or a
    budget without prices.

    Raises:
        InputError: the prices, the address or the budget are invalid, a `${NAME}` of
            the address is not set, or the cache cannot be opened.
        OverBudget: at the end, if more was billed than allowed.
    """
    prices = _parse_prices(options.price)
    problems = list(unset_variables({"--base-url": options.base_url}))
    if problems:
        raise InputError(problems)
    model = ChatModel(
        model=options.model,
        base_url=options.base_url,
        key_name=options.key_name,
        input_price=prices.sent,
        output_price=prices.received,
    )
    with Cache(default_cache_path()) as cache:
        meter = Meter(budget=Budget(options.max_cost))
        yield Chat(model, cache), meter
    meter.budget.check("replies so far are kept")


class _Prices(NamedTuple):
    """Dollars for a million tokens; None if unknown."""

    sent: float | None
    received: float | None


def _parse_prices(text: str) -> _Prices:
    """Return the prices of an option "IN,OUT", which "" leaves unknown.

    Raises:
        InputError: these are not two finite numbers of 0 or more.
    """
    if not text:
        return _Prices(None, None)
    try:
        sent, received = map(float, text.split(","))
        if not (0 <= sent < math.inf and 0 <= received < math.inf):
            raise ValueError
    except ValueError:
        problem = f"{text!r} is not a pair of prices"
        remedy = "dollars for a million tokens in and out: --price 0.15,0.60"
        raise InputError(Problem("--price", problem, remedy)) from None
    return _Prices(sent, received)
