"""A chat model with its cache.

Describe the model, a `ChatModel`, and ask through `Chat`, which adds the cache.

Each prompt costs one request; what was answered once is never paid for again. A reply is text: who asks decides what
can be read in it, and says so with `readable`. A reply that cannot be read is handed on and not kept: the next run asks
again. Where the first replies of a call cannot be read one after the other, no more are paid for. `quoted` promises
that a stranger's text cannot end its own quotation, `one_object` that no reply is read as more than it says.

A prompt that the endpoint declines is a reply with `declined` set, and is counted; every other lasting failure raises
BackendError, and what came back until then is in the cache. A prompt's `form`, a JSON schema, is sent as
`response_format`: a server that refuses that is asked without it, and such replies are counted as `without_schema`.
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
"""Whether the reply to the prompt at a place holds an answer; not asked of declined and cut replies."""
MAX_UNREADABLE_REPLIES, _SHOWN = 20, 80
"""Replies that cannot be read after which no more are paid for, and characters of one that a message shows."""


def accept_any_reply(place: int, reply: Reply) -> bool:
    """Whatever was said can be read."""
    return True


def quote_reply(reply: Reply) -> str:
    """The beginning of a reply that cannot be read, as a message may show it: on one line, without keys.

    >>> from retrievers.services.chat_model import Reply
    >>> quote_reply(Reply("I am  sorry.")), quote_reply(Reply("<think>So", is_complete=False))
    ("such as 'I am sorry.'", "such as '<think>So', cut off as too long")
    """
    line = error_line(reply.declined or reply.text)
    cut = "" if reply.is_complete else ", cut off as too long"
    return f"such as {(line if len(line) <= _SHOWN else line[:_SHOWN] + '…')!r}{cut}"


class Chat:
    """A chat model with its cache."""

    def __init__(self, model: ChatModel, cache: Cache) -> None:
        self.model = model
        self.cache = cache

    def forecast(
        self, prompts: Sequence[Prompt], readable: ReplyCheck = accept_any_reply
    ) -> ChatForecast:
        """Count what `replies` would do, with no network."""
        known = {prompts[place] for place, _ in self.cached_replies(prompts, readable)}
        missing = [prompt for prompt in dict.fromkeys(prompts) if prompt not in known]
        return self.model.forecast(missing)._replace(
            prompts=len(prompts), cached=len(prompts) - len(missing)
        )

    def cached_replies(
        self, prompts: Sequence[Prompt], readable: ReplyCheck = accept_any_reply
    ) -> Iterator[tuple[int, Reply]]:
        """Yield the place of each prompt that the cache can answer, with its reply."""
        places = self._places(prompts)
        names = list(places)
        for i, text, tokens in self.cache.get_texts(names):
            reply = Reply(text, tokens, cached=True)
            if readable(places[names[i]][0], reply):
                yield from ((place, reply) for place in places[names[i]])

    def replies(
        self,
        prompts: Sequence[Prompt],
        meter: Meter,
        readable: ReplyCheck = accept_any_reply,
    ) -> Iterator[tuple[int, Reply]]:
        """Yield each prompt's place with its reply: those from the cache first, the others as they arrive.

        A prompt that occurs twice is asked once. Replies are cached at once, unless declined, cut or unreadable.

        Raises:
            InputError: the key is not set, or --max-cost is given without prices.
            BackendError: a request failed for good; Unreadable after 20 replies of which none can be read.
        """
        heard = False

        def usable(place: int, reply: Reply) -> bool:
            return reply.is_complete and not reply.declined and readable(place, reply)

        for number, (place, reply) in enumerate(
            self._answered(prompts, meter, usable), start=1
        ):
            yield place, reply
            heard = heard or usable(place, reply)
            if number >= MAX_UNREADABLE_REPLIES and not heard:
                model, said = self.model.model, quote_reply(reply)
                what = (
                    f"{number} replies of {model}, and none of them can be read, {said}"
                )
                raise UnreadableReplies(
                    f"{what}: no more are requested; look at the model and its server"
                )

    def _answered(
        self, prompts: Sequence[Prompt], meter: Meter, usable: ReplyCheck
    ) -> Iterator[tuple[int, Reply]]:
        known = dict(self.cached_replies(prompts, usable))
        for place, reply in known.items():
            meter.count(cached=1)
            yield place, reply
        missing = {
            name: some
            for name, some in self._places(prompts).items()
            if some[0] not in known
        }
        if not missing:
            return
        self.model.check_budget(meter)

        def ask(name: bytes, stopped: Stop) -> Reply:
            return self.model.ask(prompts[missing[name][0]], Call(meter, stopped))

        for name, reply in completed(ask, list(missing), width=self.model.max_requests):
            if usable(missing[name][0], reply):
                self.cache.put_text(
                    self.model.fingerprint, name, reply.text, reply.tokens
                )
            yield from ((place, reply) for place in missing[name])

    def _places(self, prompts: Sequence[Prompt]) -> dict[bytes, list[int]]:
        """The places of each distinct prompt, by its key in the cache."""
        written = [
            json.dumps([prompt.system, prompt.user, prompt.round], ensure_ascii=False)
            for prompt in prompts
        ]
        places: dict[bytes, list[int]] = {}
        for place, name in enumerate(
            text_keys(self.model.fingerprint, "chat", written)
        ):
            places.setdefault(name, []).append(place)
        return places
