"""A chat model with its cache.

Create a `ChatModel`, and send prompts through `Chat`, which adds the cache.

Equal prompts share a reply, which is paid for once if it can be read. A reply is text:
the caller decides with `readable` whether it has an answer. A reply that cannot be read
is passed on but not cached: the next run requests it again. If none of the first
replies of a call can be read, no more are paid for.

A prompt that the endpoint declines gets a reply with `declined` set, which is not
cached; every other lasting failure raises BackendError, with earlier replies in the
cache. `chat_model.py` sends a request; `chat_replies.py` quotes texts in prompts, and
reads the JSON in replies.
"""

import json
from collections.abc import Callable, Iterator, Sequence

from retrievers.cache import Cache
from retrievers.errors import UnreadableReplies
from retrievers.identity import text_keys
from retrievers.meter import Call, Meter, Stop
from retrievers.options.placeholders import error_line
from retrievers.services.chat_model import ChatForecast, ChatModel, Prompt, Reply
from retrievers.services.concurrency import completed

ReplyCheck = Callable[[int, Reply], bool]
"""Returns whether the reply to the prompt at a position has an answer; it is not called
for declined and cut replies."""
MAX_UNREADABLE_REPLIES = 20
"""Unreadable replies after which no more are paid for."""
_MAX_QUOTED_CHARACTERS = 80
"""Characters of a reply in a message."""


def accept_any_reply(position: int, reply: Reply) -> bool:
    """Return that every reply can be read."""
    return True


def quote_reply(reply: Reply) -> str:
    """Return the beginning of a reply for a message: on one line, without keys.

    >>> from retrievers.services.chat_model import Reply
    >>> quote_reply(Reply("I am  sorry."))
    "such as 'I am sorry.'"
    >>> quote_reply(Reply("<think>So", is_complete=False))
    "such as '<think>So', cut off as too long"
    """
    line = error_line(reply.declined or reply.text)
    if len(line) > _MAX_QUOTED_CHARACTERS:
        line = line[:_MAX_QUOTED_CHARACTERS] + "…"
    ending = "" if reply.is_complete else ", cut off as too long"
    return f"such as {line!r}{ending}"


class Chat:
    """A chat model with its cache."""

    def __init__(self, model: ChatModel, cache: Cache) -> None:
        self.model = model
        self.cache = cache

    def forecast(
        self, prompts: Sequence[Prompt], readable: ReplyCheck = accept_any_reply
    ) -> ChatForecast:
        """Return what `replies` would take, without network."""
        cached_prompts = {
            prompts[position] for position, _ in self.cached_replies(prompts, readable)
        }
        missing = [
            prompt for prompt in dict.fromkeys(prompts) if prompt not in cached_prompts
        ]
        forecast = self.model.forecast(missing)
        cached_count = sum(prompt in cached_prompts for prompt in prompts)
        return forecast._replace(prompts=len(prompts), cached=cached_count)

    def cached_replies(
        self, prompts: Sequence[Prompt], readable: ReplyCheck = accept_any_reply
    ) -> Iterator[tuple[int, Reply]]:
        """Yield the position of each prompt with a readable cached reply, and it."""
        positions_by_key = self._positions_by_key(prompts)
        keys = list(positions_by_key)
        for i, text, tokens in self.cache.get_texts(keys):
            reply = Reply(text, tokens, cached=True)
            positions = positions_by_key[keys[i]]
            if readable(positions[0], reply):
                for position in positions:
                    yield position, reply

    def replies(
        self,
        prompts: Sequence[Prompt],
        meter: Meter,
        readable: ReplyCheck = accept_any_reply,
    ) -> Iterator[tuple[int, Reply]]:
        """Yield each prompt's position with its reply.

        Cached replies come first, the others as they arrive. A prompt that occurs twice
        is sent once. Replies are cached at once, unless declined, cut or unreadable.

        Raises:
            InputError: the key is not set, or --max-cost is given without prices.
            BackendError: a request failed for good; UnreadableReplies if the first 20
                replies are all unreadable, cut or declined.
        """
        has_usable_reply = False

        def is_usable(position: int, reply: Reply) -> bool:
            if not reply.is_complete or reply.declined:
                return False
            return readable(position, reply)

        replies = self._all_replies(prompts, meter, is_usable)
        for count, (position, reply) in enumerate(replies, start=1):
            yield position, reply
            has_usable_reply = has_usable_reply or is_usable(position, reply)
            if count >= MAX_UNREADABLE_REPLIES and not has_usable_reply:
                raise UnreadableReplies(
                    f"{count} replies of {self.model.model}, and none of them can be "
                    f"read, {quote_reply(reply)}: no more are requested; look at the "
                    "model and its server"
                )

    def _all_replies(
        self, prompts: Sequence[Prompt], meter: Meter, is_usable: ReplyCheck
    ) -> Iterator[tuple[int, Reply]]:
        """Yield cached replies, then those of requests, which are cached if usable."""
        cached_replies = dict(self.cached_replies(prompts, is_usable))
        for position, reply in cached_replies.items():
            meter.count(cached=1)
            yield position, reply
        missing = {
            key: positions
            for key, positions in self._positions_by_key(prompts).items()
            if positions[0] not in cached_replies
        }
        if not missing:
            return
        self.model.check_budget(meter)

        def send(key: bytes, stopped: Stop) -> Reply:
            return self.model.ask(prompts[missing[key][0]], Call(meter, stopped))

        width = self.model.max_requests
        for key, reply in completed(send, list(missing), width=width):
            if is_usable(missing[key][0], reply):
                fingerprint = self.model.fingerprint
                self.cache.put_text(fingerprint, key, reply.text, reply.tokens)
            for position in missing[key]:
                yield position, reply

    def _positions_by_key(self, prompts: Sequence[Prompt]) -> dict[bytes, list[int]]:
        """Return the positions of each distinct prompt, by its key in the cache."""
        prompt_texts = [
            json.dumps([prompt.system, prompt.user, prompt.round], ensure_ascii=False)
            for prompt in prompts
        ]
        keys = text_keys(self.model.fingerprint, "chat", prompt_texts)
        positions: dict[bytes, list[int]] = {}
        for position, key in enumerate(keys):
            positions.setdefault(key, []).append(position)
        return positions
