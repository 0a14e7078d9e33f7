"""One model behind an OpenAI-compatible chat endpoint: what it is asked and replies, its money and its faults."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from retrievers.costs import estimate, on_this_machine
from retrievers.errors import BackendError, InputError, Problem, check_not_negative, check_positive
from retrievers.meter import Call, Meter
from retrievers.remote.http_client import (
    BASE_URL,
    KEY,
    OPENAI_URL,
    AnswerPart,
    HttpClient,
    Listed,
    OpenAIClient,
    Refusal,
    TokenCount,
    check_address,
    is_server_of,
    server_url,
    to_exception,
)
from retrievers.remote.redaction import shown
from retrievers.remote.remote_model import Access, Charge, RemoteModel
from retrievers.retrying import TooLong
from retrievers.types import fingerprint

_FOR_THE_REQUEST = {400, 415, 422, 501}
_SCHEMA_WORDS = re.compile(r"response[ _]?format|json[ _]?schema|structured output|grammar", re.IGNORECASE)
_TEMPERATURE = "temperature"
log = logging.getLogger(__name__)
_FRAME = 8
"""Tokens that the roles and marks of one message take at most, beside its text."""


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Which model is asked, where, how fast, and what it costs."""

    model: str
    base_url: str = ""
    """An OpenAI-compatible server; left out, OPENAI_BASE_URL, else OpenAI's own."""
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
        check_address("base_url" if self.base_url else BASE_URL, self.server)

    @property
    def server(self) -> str:
        """The address that is asked."""
        return server_url(self.base_url)

    @property
    def elsewhere(self) -> str:
        """The server as it may be kept, where it is not OpenAI's own: another may have another model of that name."""
        return shown(self.base_url or self.server) if self.server != OPENAI_URL else ""

    @property
    def priced(self) -> bool:
        """Whether both prices are known; a server on this machine costs nothing unless you give a price."""
        return on_this_machine(self.server) or None not in (self.input_price, self.output_price)


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
    """What asking some prompts would take: an estimate."""

    prompts: int
    cached: int
    calls: int
    tokens: int
    """Of prompts and replies that are not cached; replies at their longest."""
    usd: float | None
    """None where the price is not known."""


class _Message(AnswerPart):
    content: str | None = None
    refusal: str | None = None


class _Choice(AnswerPart):
    message: _Message
    finish_reason: str | None = None


class _Usage(AnswerPart):
    prompt_tokens: TokenCount
    completion_tokens: TokenCount


class _Completion(AnswerPart):
    choices: Listed[_Choice]
    usage: _Usage | None = None


class ChatModel(RemoteModel):
    """One model behind a chat endpoint; the key is asked for at the first request."""

    def __init__(self, options: ChatOptions) -> None:
        name = options.key_name or ("" if options.base_url else KEY)
        access = Access(
            provider="openai", base_url=options.server, own=options.server if name else "", variables=(name,)
        )
        super().__init__(
            options.model, access, options.max_tokens, concurrency=options.concurrency, rpm=options.rpm,
            tpm=options.tpm, timeout=options.timeout, patience=options.patience,
        )  # fmt: skip
        self.options = options
        self._with_schema: bool | None = None
        """Whether the server takes a schema; None until it has answered a request with one."""
        self._at_its_own = False
        """Whether the model takes no temperature but its own, as OpenAI's that reason."""

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

    def _cost(self, sent: int, received: int) -> Charge:
        return Charge(sent + received, self.price_of(sent, received))

    def check_budget(self, meter: Meter) -> None:
        """Look for what the first request needs.

        Raises:
            InputError: the key is not set, or a limit of dollars cannot be kept since the price is not known.
        """
        self.check()
        if meter.budget.limit is not None and not self.options.priced:
            unknown = f"the price of {self.options.model} is not known, so that --max-cost cannot be kept"
            raise InputError(Problem("--price", unknown, "give the dollars for a million tokens in and out: IN,OUT"))

    def ask(self, prompt: Prompt, call: Call) -> Reply:
        """Ask once, trying again while failures are passing.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """
        client, meter = self._client(), call.meter
        sent, received = self.expected(prompt)
        try:
            reply, _ = self._sender.send(
                partial(self._send, client, prompt), self._cost(sent, received), call, pace=sent
            )
        except _Declined as refusal:
            meter.count(declined=1)
            return Reply("", declined=str(refusal))
        if reply.declined:
            meter.count(declined=1)
        if prompt.form and self._with_schema is False:
            meter.count(without_schema=1)
        return reply

    def _open(self) -> OpenAIClient:
        return OpenAIClient(self._server(), _to_exception)

    def _send(self, client: HttpClient, prompt: Prompt) -> tuple[Reply, Charge]:
        chosen = self.options
        # OpenAI's newer models know only the second name, most other servers only the first.
        longest = "max_completion_tokens" if is_server_of(chosen.server, OPENAI_URL) else "max_tokens"
        body = {
            "model": chosen.model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            _TEMPERATURE: chosen.temperature,
            longest: chosen.max_tokens,
        }
        try:
            answer = self._asked(client, body, prompt.form)
        except TooLong as refusal:
            raise _Declined(str(refusal)) from None
        if not answer.choices:
            raise BackendError(f"{client.server.name}: a reply without choices came back")
        choice = answer.choices[0]
        text = choice.message.content or ""
        usage = answer.usage
        if usage is None or not usage.prompt_tokens:  # no prompt has no tokens
            cost = self._cost(self.expected(prompt)[0], int(estimate([text])[0]))
        else:
            cost = self._cost(usage.prompt_tokens, usage.completion_tokens)
        if choice.finish_reason == "content_filter":
            return Reply("", declined="the endpoint's content filter stopped the reply"), cost
        if choice.message.refusal and not text:
            return Reply("", declined=choice.message.refusal), cost
        return Reply(text, cost.tokens, whole=choice.finish_reason != "length"), cost

    def _asked(self, client: HttpClient, body: dict[str, object], form: str) -> _Completion:
        """Send a request, with the temperature as long as the model takes one."""
        if not self._at_its_own:
            try:
                return self._shaped(client, body, form)
            except _Malformed as refusal:
                if _TEMPERATURE not in refusal.words:
                    raise
        own = {key: value for key, value in body.items() if key != _TEMPERATURE}
        answer = self._shaped(client, own, form)
        if not self._at_its_own:
            log.warning("%s takes no temperature but its own: its replies may vary from run to run", client.server.name)
        self._at_its_own = True
        return answer

    def _shaped(self, client: HttpClient, body: Mapping[str, object], form: str) -> _Completion:
        """Send a request, with the schema of its reply as long as the server takes one."""
        if not form or self._with_schema is False:
            return client.ask("chat/completions", body, _Completion)
        schema = {"name": "reply", "strict": True, "schema": json.loads(form)}
        shaped = {**body, "response_format": {"type": "json_schema", "json_schema": schema}}
        try:
            answer = client.ask("chat/completions", shaped, _Completion)
        except _Malformed as refusal:
            named = _SCHEMA_WORDS.search(refusal.words)
            if not named and (self._with_schema or (_TEMPERATURE in refusal.words and _TEMPERATURE in body)):
                raise
            # Some servers refuse a schema in words of their own: it is to blame where the same goes without it.
            answer = client.ask("chat/completions", body, _Completion)
            self._with_schema = False
            return answer
        self._with_schema = True
        return answer


class _Declined(Exception):
    """The endpoint will not answer this prompt; asking again would not help, asking others does."""


class _Malformed(BackendError):
    """The endpoint calls the request wrong: perhaps for the schema or the temperature in it."""

    words = ""


def _to_exception(refusal: Refusal) -> Exception:
    """What a refusal means; one for the content of the prompt leaves the other prompts as they are."""
    if refusal.code == "content_filter":
        return _Declined(refusal.message)
    meaning = to_exception(refusal)
    if refusal.status not in _FOR_THE_REQUEST or isinstance(meaning, TooLong):
        return meaning
    malformed = _Malformed(str(meaning))
    malformed.words = refusal.words
    return malformed
