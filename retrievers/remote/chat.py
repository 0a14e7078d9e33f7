"""Asks a language model behind an OpenAI-compatible chat endpoint: for judgments of relevance and of answers.

How to use it: describe the model with `ChatOptions` of `prompts.py`, make one `ChatModel` of `chat_model.py`, and ask
through `Chat`, which adds the cache. Each prompt costs one request; what was answered once is never asked, or paid
for, again.

    options = ChatOptions("some-model", base_url="http://localhost:8000/v1")
    with Cache(default_path()) as cache:
        chat = Chat(ChatModel(options), cache)
        forecast = chat.forecast(prompts)                   # calls, tokens, dollars; no network
        for place, reply in chat.replies(prompts, meter):   # in the order of arrival; those from the cache first
            reply.text                                      # what prompts[place] was answered

A reply is text and nothing more: who asks decides what can be read in it; `retrievers.remote.quoting` helps with
strangers' texts in a prompt, and with JSON in a reply. `meter` counts calls, cached, retries, tokens and usd in the
open stage, and holds the budget. A prompt that the endpoint declines for its content or its length is a reply with
`declined` set, and is counted; every other lasting failure raises BackendError, OverBudget before anything is sent,
and what came back until then is in the cache.

A prompt may say which `form` its reply must have, as a JSON schema; it is sent as `response_format`. A server that
refuses that is asked without it from then on, and every reply that came so is counted as `without_schema`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from retrievers.cache import Cache, Texts, keys
from retrievers.meter import Call, Meter, Stop
from retrievers.remote.chat_model import ChatModel
from retrievers.remote.prompts import ChatForecast, Prompt, Reply
from retrievers.turns import Work, answers_in_turn, lease_after


class Chat:
    """A chat model with its cache."""

    def __init__(self, model: ChatModel, cache: Cache) -> None:
        self.model = model
        self._cache = cache

    def forecast(self, prompts: Sequence[Prompt]) -> ChatForecast:
        """Count what `replies` would do, with no network."""
        names = self._names(prompts)
        held = self._cache.held(list(dict.fromkeys(names)))
        missing = {name: prompt for name, prompt in zip(names, prompts, strict=True) if name not in held}
        needed = self.model.forecast(list(missing.values()))
        return needed._replace(prompts=len(prompts), cached=len(prompts) - len(missing))

    def known(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Reply]]:
        """Yield the place of each prompt that the cache can answer, with its reply."""
        held, texts = self._cache.get_texts(self._names(prompts))
        for place, text, tokens in zip(held.tolist(), *texts, strict=True):
            yield place, Reply(text, int(tokens), cached=True)

    def replies(self, prompts: Sequence[Prompt], meter: Meter) -> Iterator[tuple[int, Reply]]:
        """Yield each prompt's place with its reply: those from the cache first, the others as they arrive.

        A prompt that stands twice is asked once. Replies are cached at once; declined and cut ones are not.

        Raises:
            InputError: the key is not set, or --max-cost is given without prices.
            BackendError: a request failed for good; OverBudget before anything is sent.
        """
        places: dict[bytes, list[int]] = {}
        for place, name in enumerate(self._names(prompts)):
            places.setdefault(name, []).append(place)
        distinct = list(places)
        held, texts = self._cache.get_texts(distinct)
        cached = {distinct[i]: (text, tokens) for i, text, tokens in zip(held.tolist(), *texts, strict=True)}
        for name, (text, tokens) in cached.items():
            for place in places[name]:
                meter.count(cached=1)
                yield place, Reply(text, tokens, cached=True)
        waiting = [name for name in distinct if name not in cached]
        if not waiting:
            return
        self.model.check(meter)

        def ask(some: list[int], stopped: Stop) -> list[Reply]:
            return [self.model.ask(prompts[places[waiting[i]][0]], Call(meter, stopped)) for i in some]

        def keep(some: list[int], replies: list[Reply]) -> None:
            whole = [(waiting[i], one) for i, one in zip(some, replies, strict=True) if one.whole and not one.declined]
            texts = Texts([one.text for _, one in whole], np.array([one.tokens for _, one in whole], dtype=np.int64))
            self._cache.put_texts(self.model.fingerprint, [name for name, _ in whole], texts)

        def read(some: list[int]) -> tuple[list[int], list[Reply]]:
            held, texts = self._cache.get_texts([waiting[i] for i in some])
            replies = [Reply(text, int(tokens), cached=True) for text, tokens in zip(*texts, strict=True)]
            return [some[i] for i in held.tolist()], replies

        turns = answers_in_turn(
            Work(waiting, ask, keep, read), [[i] for i in range(len(waiting))], self._cache,
            width=self.model.options.concurrency, lease=lease_after(self.model.options.patience),
        )  # fmt: skip
        for turn in turns:
            for i, reply in zip(turn.positions, turn.answer, strict=True):
                for place in places[waiting[i]]:
                    meter.count(cached=int(turn.cached))
                    yield place, reply

    def _names(self, prompts: Sequence[Prompt]) -> list[bytes]:
        written = [json.dumps([prompt.system, prompt.user, prompt.round], ensure_ascii=False) for prompt in prompts]
        return keys(self.model.fingerprint, "chat", written)
