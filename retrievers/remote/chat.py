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
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from retrievers.cache import Cache, Texts, keys
from retrievers.errors import BackendError, InputError, Problem
from retrievers.fingerprints import fingerprint
from retrievers.meter import Call, Meter
from retrievers.parallel import answers
from retrievers.remote.faults import Transient, retry_after, says_too_long
from retrievers.remote.limits import RateLimiter
from retrievers.remote.patience import patiently
from retrievers.remote.redaction import redacted
from retrievers.tokens import estimate

if TYPE_CHECKING:
    import openai

_URL = "https://api.openai.com/v1"
_FRAME = 8
"""Tokens that the roles and marks of one message take at most, beside its text."""
_REMEDIES = {
    401: "; the key was refused: look at the environment variable that holds it",
    403: "; the key may not use this model",
    404: "; look at the model's name and at the address",
}


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
    """Seconds for one try."""
    patience: float = 300
    """Seconds after which a request that keeps failing is given up."""
    input_price: float | None = None
    """Dollars for a million tokens of prompts; None: unknown, or 0 for a server of your own."""
    output_price: float | None = None
    """Dollars for a million tokens of replies."""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "concurrency", "timeout", "patience"):
            if getattr(self, name) <= 0:
                raise InputError(Problem(name, f"{getattr(self, name)} is not positive"))

    @property
    def server(self) -> str:
        """The address that is asked."""
        return self.base_url or _URL

    @property
    def priced(self) -> bool:
        """Whether both prices are known; a server of your own costs nothing unless you give a price."""
        return bool(self.base_url) or None not in (self.input_price, self.output_price)


class Prompt(NamedTuple):
    """What a model is asked once."""

    system: str
    user: str
    round: int = 1
    """1, or 2 and more where the same is asked again, to see how far the model agrees with itself."""


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
    """One model behind a chat endpoint; the SDK loads, and the key is asked for, at the first request."""

    def __init__(self, options: ChatOptions) -> None:
        self.options = options
        self._lock = Lock()
        self._client: openai.OpenAI | None = None
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
        client, meter = self._connected(), call.meter
        sent, received = self.expected(prompt)
        promised = self.price_of(sent, received)
        meter.budget.take(promised)
        spent = 0.0
        try:
            reply, bill = patiently(
                lambda: self._send(client, prompt), self._limiter, sent, patience=self.options.patience, call=call
            )
            spent = self.price_of(*bill)
        except _Declined as refusal:
            meter.count(declined=1)
            return Reply("", declined=str(refusal))
        finally:
            meter.budget.give_back(promised - spent)
        meter.count(calls=1, tokens=sum(bill), usd=spent)
        return reply

    @property
    def _secret(self) -> str:
        name = self.options.key_name or ("" if self.options.base_url else "OPENAI_API_KEY")
        if not name:
            return "none"
        if not os.environ.get(name):
            raise InputError(Problem(name, "is not set in the environment", f"export {name}=…"))
        return os.environ[name]

    def _connected(self) -> openai.OpenAI:
        import openai

        with self._lock:
            chosen = self.options
            if self._client is None:
                self._client = openai.OpenAI(
                    api_key=self._secret, base_url=chosen.server, max_retries=0, timeout=chosen.timeout
                )
            return self._client

    def _send(self, client: openai.OpenAI, prompt: Prompt) -> tuple[Reply, tuple[int, int]]:
        chosen = self.options
        # OpenAI's newer models know only the second name, most other servers only the first.
        longest = "max_tokens" if chosen.base_url else "max_completion_tokens"
        more: dict[str, Any] = {longest: chosen.max_tokens}
        try:
            answer = client.chat.completions.create(
                model=chosen.model,
                messages=[{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
                temperature=chosen.temperature,
                **more,
            )
        except Exception as failure:
            raise self._understood(failure) from None
        if not answer.choices:
            raise BackendError(f"{self._who}: a reply without choices came back")
        choice = answer.choices[0]
        text = choice.message.content or ""
        if choice.finish_reason == "content_filter":
            raise _Declined("the endpoint's content filter stopped the reply")
        usage = answer.usage
        bill = (usage.prompt_tokens, usage.completion_tokens) if usage else (
            self.expected(prompt)[0], int(estimate([text])[0])
        )  # fmt: skip
        return Reply(text, sum(bill), whole=choice.finish_reason != "length"), bill

    def _understood(self, failure: Exception) -> Exception:
        """What a failure of the SDK means for the request."""
        import openai

        said = redacted(f"{self._who}: {failure}", secrets=[self._secret], keep=[self.options.model])
        if isinstance(failure, openai.APIStatusError):
            status, code = failure.status_code, failure.code
            if status in {400, 413, 422} and (says_too_long(str(failure)) or code == "content_filter"):
                return _Declined(said)
            if status >= 500 or (status in {408, 409, 425, 429} and code != "insufficient_quota"):
                wait = retry_after(failure.response.headers)
                return Transient(said, retry_after=wait, throttled=status in {429, 503})
            return BackendError(said + _REMEDIES.get(status, ""))
        broken = type(failure).__module__.partition(".")[0] in {"httpx", "httpx2", "httpcore", "httpcore2"}
        if isinstance(failure, openai.APIConnectionError | json.JSONDecodeError) or broken:
            return Transient(said)
        if isinstance(failure, openai.OpenAIError | ValueError | TypeError | AttributeError):
            return BackendError(f"{self._who}: the reply is no chat completion")
        return failure

    @property
    def _who(self) -> str:
        return f"{self.options.server} ({self.options.model})"


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
        expected = [self.model.expected(prompt) for prompt in missing.values()]
        sent, received = (sum(column) for column in zip(*expected, strict=True)) if expected else (0, 0)
        usd = self.model.price_of(sent, received) if self.model.options.priced else None
        return ChatForecast(len(prompts), len(prompts) - len(missing), len(missing), sent + received, usd)

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

        def ask(name: bytes, stopped: Event) -> Reply:
            return self.model.ask(prompts[places[name][0]], Call(meter, stopped))

        for name, reply in answers(ask, waiting, width=self.model.options.concurrency):
            if reply.whole and not reply.declined:
                self._cache.put_texts(self.model.fingerprint, [name], Texts([reply.text], np.array([reply.tokens])))
            for place in places[name]:
                yield place, reply

    def _names(self, prompts: Sequence[Prompt]) -> list[bytes]:
        written = [json.dumps(prompt, ensure_ascii=False) for prompt in prompts]
        return keys(self.model.fingerprint, "chat", written)


class _Declined(Exception):
    """The endpoint will not answer this prompt; asking again would not help, asking others does."""
