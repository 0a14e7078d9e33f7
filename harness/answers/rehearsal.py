"""Judging without a request: the same code asks, and what it would have sent is noted and not sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from harness.answers import prompts
from retrievers.meter import Meter
from retrievers.remote.chat import Chat
from retrievers.remote.chat_model import ChatModel
from retrievers.remote.prompts import ChatForecast, Prompt, Reply

CLAIMS = 5
"""How many claims a text is taken to make before anybody has read it."""


class Rehearsal:
    """Stands where a chat model stands: answers what the cache knows, notes the rest, and makes claims up to go on.

    Where nothing is known yet of a text's claims, it is taken to make five, each as long as a fifth of the text, so
    that the verdicts on them are counted, too.
    """

    def __init__(self, chat: Chat, *, cached: bool = True) -> None:
        """Rehearse what a chat would be asked; `cached=False` takes the cache to be empty."""
        self._chat, self._cached = chat, cached
        self._noted: dict[Prompt, None] = {}

    @property
    def model(self) -> ChatModel:
        """Which model would be asked."""
        return self._chat.model

    def replies(
        self, asked: Sequence[Prompt], meter: Meter, readable: Callable[[int, Reply], bool]
    ) -> Iterator[tuple[int, Reply]]:
        """Yield what is known, and claims that are made up; no other prompt gets a reply."""
        known = dict(self._chat.known(asked, readable)) if self._cached else {}
        for place, prompt in enumerate(asked):
            if place in known:
                yield place, known[place]
                continue
            self._noted[prompt] = None
            if prompt.system == prompts.CLAIMS:
                yield place, Reply(_made_up(prompt.user))

    def forecast(self) -> ChatForecast:
        """What all that was noted would take: an upper estimate."""
        return self._chat.model.forecast(list(self._noted))


def _made_up(text: str) -> str:
    length = -(-len(text) // CLAIMS)
    parts = [text[i : i + length] for i in range(0, len(text), length)]
    return json.dumps({"claims": [f"{number}. {part}" for number, part in enumerate(parts)]})
