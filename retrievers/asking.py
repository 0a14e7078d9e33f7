"""How a chat model is asked to judge or to write: what it is shown, how replies are read.

One way for grades of documents, verdicts on claims and drafts of queries: each reply is read once, what cannot be read
is no answer and is counted, and a model of whom nothing can be read has failed.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from retrievers.chat_model import ChatModel, Prompt, Reply
from retrievers.costs import beginning
from retrievers.errors import BackendError
from retrievers.meter import Meter

Answer = TypeVar("Answer")
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


class ChatRequest(NamedTuple):
    """One request."""

    prompt: Prompt
    items: int = 1
    """How many things it asks about."""
    cut: bool = False
    """Whether the model is shown only the beginning of a text."""


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
