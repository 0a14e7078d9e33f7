"""How a chat model is asked to judge or to write: how it is named and paid, what it is shown, how replies are read.

One way for grades of documents, verdicts on claims and drafts of queries: each reply is read once, what cannot be read
is no answer and is counted, and a model of whom nothing can be read has failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeVar

from harness.english import counted
from harness.experiment import JudgeOptions, unset
from retrievers.cache import Cache, default_path
from retrievers.chat import Chat
from retrievers.chat_model import ChatForecast, ChatModel, ChatOptions, Prompt, Reply
from retrievers.costs import beginning
from retrievers.errors import BackendError, InputError, Problem
from retrievers.meter import Budget, Meter

Answer = TypeVar("Answer")
LONGEST_NAME = 200
"""Characters of a judge's name, in every judgment."""
LONGEST = 8_000
"""Tokens of a text that a model is shown, as estimated; the rest is cut off, and counted."""


class ReplySource(Protocol):
    """What gives replies to prompts: a chat model, or a dry run of one."""

    @property
    def model(self) -> ChatModel:
        """Which model."""

    def replies(
        self, prompts: Sequence[Prompt], meter: Meter, readable: Callable[[int, Reply], bool]
    ) -> Iterator[tuple[int, Reply]]:
        """Each prompt's place with its reply; one that is not readable is not kept."""


class AskedModel(NamedTuple):
    """Which model the command line names, and what may be spent."""

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


class ChatRequest(NamedTuple):
    """One request."""

    prompt: Prompt
    items: int = 1
    """How many things it asks about."""
    cut: bool = False
    """Whether the model is shown only the beginning of a text."""


@contextmanager
def opened_chat(asked: AskedModel) -> Iterator[tuple[Chat, Meter]]:
    """Open the cache, and describe the model; nothing is sent.

    Raises:
        InputError: the prices cannot be read, a `${NAME}` is not set, or the cache cannot be opened.
        OverBudget: at the end, where more was billed than allowed.
    """
    sent, received = _prices(asked.price)
    problems = list(unset({"--base-url": asked.base_url}))
    if not 0 < len(asked.model) <= LONGEST_NAME:
        problems.append(Problem("--llm", f"{asked.model[:20]!r} is not a name of a model", "as its server calls it"))
    if problems:
        raise InputError(problems)
    options = ChatOptions(asked.model, base_url=asked.base_url, key_name=asked.key_name,
                          concurrency=asked.concurrency, patience=asked.patience,
                          input_price=sent, output_price=received)  # fmt: skip
    with Cache(default_path()) as cache:
        meter = Meter(budget=Budget(asked.max_cost))
        yield Chat(ChatModel(options), cache), meter
    meter.budget.check("what was answered is kept")


def chat_of(table: JudgeOptions, cache: Cache) -> Chat:
    """The chat model that an experiment names as its judge; nothing is sent."""
    options = ChatOptions(
        table.model, base_url=table.base_url, key_name=table.key_name, max_tokens=1000,
        concurrency=table.concurrency, rpm=table.rpm, tpm=table.tpm,
        input_price=table.input_price, output_price=table.output_price,
    )  # fmt: skip
    return Chat(ChatModel(options), cache)


def form_of(**properties: object) -> str:
    """The form of a reply: the JSON schema of an object with these properties and no others, as text."""
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return json.dumps(schema)


def shown_of(text: str, longest: int = LONGEST) -> tuple[str, bool]:
    """What a model is shown of a text, and whether that is only its beginning.

    >>> shown_of("a short text")
    ('a short text', False)
    """
    start = beginning(text, longest)
    return start, start != text


def answers_of(
    chat: ReplySource, meter: Meter, asked: Sequence[ChatRequest], read: Callable[[str, int], Answer | None]
) -> Iterator[tuple[int, Reply, Answer | None]]:
    """Ask, and yield the place of each request with its reply, and with what can be read in it.

    The meter counts what could not be read (`unreadable`) and what was answered by a beginning (`truncated`).

    Args:
        chat: who is asked.
        meter: counts, and holds the budget.
        asked: the requests.
        read: the answer in a reply to so many items; None where it holds none. Such a reply is not kept.
    """

    def answer_in(place: int, reply: Reply) -> Answer | None:
        return read(reply.text, asked[place].items) if reply.whole and not reply.declined else None

    prompts = [one.prompt for one in asked]
    for place, reply in chat.replies(prompts, meter, lambda *said: answer_in(*said) is not None):
        answer, items = answer_in(place, reply), asked[place].items
        if asked[place].cut:
            meter.count(truncated=items)
        if answer is None:
            meter.count(unreadable=items)
        yield place, reply, answer


def nothing_read(model: str, number: int, wanted: str, done: str, example: str) -> BackendError:
    """The failure of a model of whom nothing can be read.

    Args:
        model: its name.
        number: how many replies it gave.
        wanted: what they hold none of, such as a grade.
        done: what nothing could be, such as graded.
        example: one of the replies.
    """
    said = f"{number:,} replies of {model} hold no {wanted}, {example}"
    return BackendError(f"{said}: nothing was {done}; look at the model and its server, and run again")


def forecast_sentence(forecast: ChatForecast) -> str:
    """What asking would take, in words."""
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
