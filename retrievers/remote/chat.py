"""Asks a language model behind an OpenAI-compatible chat endpoint: for judgments of relevance and of answers.

How to use it: describe the model with `ChatOptions`, make one `ChatModel` of it, and ask through `Chat`, which adds
the cache. Each prompt costs one request; what was answered once is never asked, or paid for, again.

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
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np

from retrievers.cache import Cache, Texts, keys
from retrievers.errors import BackendError, InputError, Problem, check_not_negative, check_positive
from retrievers.fingerprints import fingerprint
from retrievers.meter import Call, Meter, Stop
from retrievers.prices import on_this_machine
from retrievers.remote.faults import TooLong
from retrievers.remote.limits import RateLimiter
from retrievers.remote.patience import patiently
from retrievers.remote.service import AnswerPart, JsonService, Refusal, Server, check_address, understood
from retrievers.remote.service import TokenCount as Billed
from retrievers.tokens import estimate
from retrievers.turns import Work, answers_in_turn, lease_after

_URL = "https://api.openai.com/v1"
_FOR_THE_REQUEST = {400, 415, 422, 501}
_SCHEMA_WORDS = re.compile(r"response[ _]?format|json[ _]?schema|structured output|grammar", re.IGNORECASE)
_FRAME = 8
"""Tokens that the roles and marks of one message take at most, beside its text."""


class _Message(AnswerPart):
    content: str | None = None
    refusal: str | None = None


class _Choice(AnswerPart):
    message: _Message
    finish_reason: str | None = None


class _Usage(AnswerPart):
    prompt_tokens: Billed
    completion_tokens: Billed


class _Completion(AnswerPart):
    choices: list[_Choice]
    usage: _Usage | None = None


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Which model is asked, where, how fast, and what it costs."""

    model: str
    base_url: str = ""
    """An OpenAI-compatible server; left out, OpenAI's own."""
    key_name: str = ""
    """The environment variable that holds the key; left out, OPENAI_API_KEY for OpenAI's server, no key for others."""
    max_tokens: int = 300
    """Tokens of one reply, at most."""
    temperature: float = 0.0
    concurrency: int = 4
    rpm: float = 0
    """Requests a minute that the provider allows; 0: unknown."""
    tpm: float = 0
    """Tokens a minute; 0: unknown."""
    timeout: float = 60
    """Seconds for one whole answer."""
    patience: float = 300
    """Seconds after which a request that keeps failing is given up."""
    input_price: float | None = None
    """Dollars for a million tokens of prompts; None: unknown, or 0 for a server on this machine."""
    output_price: float | None = None
    """Dollars for a million tokens of replies."""

    def __post_init__(self) -> None:
        check_positive("", max_tokens=self.max_tokens, concurrency=self.concurrency, timeout=self.timeout,
                       patience=self.patience)  # fmt: skip
        check_not_negative("", rpm=self.rpm, tpm=self.tpm, temperature=self.temperature,
                           input_price=self.input_price, output_price=self.output_price)  # fmt: skip
        if self.base_url:
            check_address("base_url", self.base_url)

    @property
    def server(self) -> str:
        """The address that is asked."""
        return self.base_url or _URL

    @property
    def priced(self) -> bool:
        """Whether both prices are known; a server on this machine costs nothing unless you give a price."""
        return on_this_machine(self.base_url) or None not in (self.input_price, self.output_price)


class Prompt(NamedTuple):
    """What a model is asked once."""

    system: str
    user: str
    round: int = 1
    """1, or 2 and more where the same is asked again, to see how far the model agrees with itself."""
    form: str = ""
    """The JSON schema of the reply, as text; it follows from `system`, so that the cache does without it."""


class Reply(NamedTuple):
    """What came back for one prompt."""

    text: str
    tokens: int = 0
    """Billed, of prompt and reply together; an estimate where the server tells none."""
    whole: bool = True
    """False where the reply was cut at `max_tokens`."""
    declined: str = ""
    """Why the endpoint would not answer this prompt, in its own words; "" where it did."""
    cached: bool = False


class ChatForecast(NamedTuple):
    """What asking some prompts would take: an upper estimate."""

    prompts: int
    cached: int
    calls: int
    tokens: int
    """Of prompts and replies that are not cached; replies at their longest."""
    usd: float | None
    """None where the price is not known."""


class ChatModel:
    """One model behind a chat endpoint; the key is asked for at the first request."""

    def __init__(self, options: ChatOptions) -> None:
        self.options = options
        self._lock = Lock()
        self._service: JsonService | None = None
        self._with_schema: bool | None = None
        """Whether the server takes a schema; None until it has answered a request with one."""
        self._limiter = RateLimiter(options.concurrency, rpm=options.rpm, tpm=options.tpm)

    @property
    def fingerprint(self) -> str:
        """All that changes a reply but for the prompt: server, model, temperature, length."""
        chosen = self.options
        return fingerprint("chat", chosen.model, server=chosen.server, temperature=chosen.temperature,
                           max_tokens=chosen.max_tokens)  # fmt: skip

    def expected(self, prompt: Prompt) -> tuple[int, int]:
        """Estimate the tokens of a prompt, and of its reply at most."""
        counts = estimate([prompt.system, prompt.user])
        return int(counts.sum()) + 2 * _FRAME, self.options.max_tokens

    def forecast(self, prompts: Sequence[Prompt]) -> ChatForecast:
        """Count what asking these prompts would take, were none of them in the cache."""
        expected = [self.expected(prompt) for prompt in prompts]
        sent, received = (sum(column) for column in zip(*expected, strict=True)) if expected else (0, 0)
        usd = self.price_of(sent, received) if self.options.priced else None
        return ChatForecast(len(prompts), 0, len(prompts), sent + received, usd)

    def price_of(self, sent: int, received: int) -> float:
        """Return the dollars of so many tokens; 0 where no price is known."""
        return (sent * (self.options.input_price or 0.0) + received * (self.options.output_price or 0.0)) / 1e6

    def check(self, meter: Meter) -> None:
        """Look for what the first request needs.

        Raises:
            InputError: the key is not set, or a limit of dollars cannot be kept since the price is not known.
        """
        _ = self._secret
        if meter.budget.limit is not None and not self.options.priced:
            unknown = f"the price of {self.options.model} is not known, so that --max-cost cannot be kept"
            raise InputError(Problem("--price", unknown, "give the dollars for a million tokens in and out: IN,OUT"))

    def ask(self, prompt: Prompt, call: Call) -> Reply:
        """Ask once, trying again while failures are passing.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """
        service, meter = self._connected(), call.meter
        sent, received = self.expected(prompt)
        promised = self.price_of(sent, received)
        meter.budget.take(promised)
        spent = 0.0
        try:
            reply, bill = patiently(
                lambda: self._send(service, prompt, call.stopped), self._limiter, sent,
                patience=self.options.patience, call=call,
            )  # fmt: skip
            spent = self.price_of(*bill)
        except _Declined as refusal:
            meter.count(declined=1)
            return Reply("", declined=str(refusal))
        finally:
            meter.budget.give_back(promised - spent)
        meter.count(calls=1, tokens=sum(bill), usd=spent)
        if prompt.form and self._with_schema is False:
            meter.count(without_schema=1)
        return reply

    @property
    def _secret(self) -> str:
        name = self.options.key_name or ("" if self.options.base_url else "OPENAI_API_KEY")
        if not name:
            return ""
        if not os.environ.get(name):
            raise InputError(Problem(name, "is not set in the environment", f"export {name}=…"))
        return os.environ[name]

    def _connected(self) -> JsonService:
        with self._lock:
            if self._service is None:
                chosen, key = self.options, self._secret
                headers = {"Authorization": f"Bearer {key}"} if key else {}
                server = Server(
                    chosen.server, chosen.model, headers, (key,) if key else (), chosen.timeout, chosen.concurrency
                )
                self._service = JsonService(server, _understood)
            return self._service

    def _send(self, service: JsonService, prompt: Prompt, stopped: Stop) -> tuple[Reply, tuple[int, int]]:
        chosen = self.options
        # OpenAI's newer models know only the second name, most other servers only the first.
        longest = "max_tokens" if chosen.base_url else "max_completion_tokens"
        body = {
            "model": chosen.model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            "temperature": chosen.temperature,
            longest: chosen.max_tokens,
        }
        try:
            answer = self._asked(service, body, prompt.form, stopped)
        except TooLong as refusal:
            raise _Declined(str(refusal)) from None
        if not answer.choices:
            raise BackendError(f"{service.server.name}: a reply without choices came back")
        choice = answer.choices[0]
        text = choice.message.content or ""
        if choice.finish_reason == "content_filter":
            raise _Declined("the endpoint's content filter stopped the reply")
        if choice.message.refusal and not text:
            raise _Declined(choice.message.refusal)
        usage = answer.usage
        if usage is None or not usage.prompt_tokens:  # no prompt has no tokens
            bill = (self.expected(prompt)[0], int(estimate([text])[0]))
        else:
            bill = (usage.prompt_tokens, usage.completion_tokens)
        return Reply(text, sum(bill), whole=choice.finish_reason != "length"), bill

    def _asked(self, service: JsonService, body: Mapping[str, object], form: str, stopped: Stop) -> _Completion:
        """Send a request, with the schema of its reply as long as the server takes one."""
        if not form or self._with_schema is False:
            return service.ask("chat/completions", body, _Completion, stopped)
        schema = {"name": "reply", "strict": True, "schema": json.loads(form)}
        shaped = {**body, "response_format": {"type": "json_schema", "json_schema": schema}}
        try:
            answer = service.ask("chat/completions", shaped, _Completion, stopped)
        except _Malformed as refusal:
            if self._with_schema and not refusal.names_the_schema:
                raise
            # Some servers refuse a schema in words of their own: it is to blame where the same goes without it.
            answer = service.ask("chat/completions", body, _Completion, stopped)
            self._with_schema = False
            return answer
        self._with_schema = True
        return answer


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


class _Declined(Exception):
    """The endpoint will not answer this prompt; asking again would not help, asking others does."""


class _Malformed(BackendError):
    """The endpoint calls the request wrong: perhaps for the schema in it."""

    names_the_schema = False


def _understood(refusal: Refusal) -> Exception:
    """What a refusal means; one for the content of the prompt leaves the other prompts as they are."""
    if refusal.code == "content_filter":
        return _Declined(refusal.message)
    meaning = understood(refusal)
    if refusal.status not in _FOR_THE_REQUEST or isinstance(meaning, TooLong):
        return meaning
    malformed = _Malformed(str(meaning))
    malformed.names_the_schema = bool(_SCHEMA_WORDS.search(refusal.words))
    return malformed
