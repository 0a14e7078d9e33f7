"""A chat model behind an API."""

import json
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import Field

from retrievers.errors import InputError, Problem
from retrievers.identity import fingerprint
from retrievers.meter import Call, Meter
from retrievers.options.placeholders import expand, redact_url
from retrievers.options.tables import NonNegativeNumber, PositiveInt
from retrievers.prices import is_on_this_machine
from retrievers.remedy import Option, compose_remedy
from retrievers.services import remote_model
from retrievers.services.addresses import (
    OPENAI_URL,
    OPENAI_URL_VARIABLE,
    check_address,
    is_server_of,
    openai_key_variable,
    openai_server_url,
)
from retrievers.services.caller import PaidAnswer, RequestCost
from retrievers.services.clients import OpenAIClient
from retrievers.services.concurrency import run_request
from retrievers.services.service_errors import RequestRefused, explain_unreadable
from retrievers.texts.token_estimate import estimate_tokens

log = logging.getLogger(__name__)
TEMPERATURE = "temperature"
"""The option of a request, which some models refuse."""
_RESPONSE_FORMAT = "response_format"
_REFUSABLE_OPTIONS = (_RESPONSE_FORMAT, TEMPERATURE)
"""Options that a server may not support; the first is left out first."""
_UNDROPPABLE_CODES = {"content_filter", "context_length_exceeded"}
"""Codes of refusals that no option causes."""
_FRAME_TOKENS = 8
"""Tokens of one message besides its text, at most."""


class Prompt(NamedTuple):
    """One prompt for a model."""

    system: str
    user: str
    round: int = 1
    """More than 1 if the prompt is repeated, to measure the model's own agreement."""
    schema: str = ""
    """The JSON schema of the reply, as text; it follows from `system`, so that keys of
    the cache do not have it."""


class Reply(NamedTuple):
    """The reply to one prompt."""

    text: str
    tokens: int = 0
    """Billed tokens of prompt and reply; an estimate if the server reports none; 0 if
    the prompt was declined."""
    is_complete: bool = True
    """False if the reply was cut at `max_tokens`."""
    declined: str = ""
    """Why the endpoint declined the prompt, in its own words; empty if it did not."""
    cached: bool = False
    """Whether it comes from the cache, and not from the server."""


class ChatForecast(NamedTuple):
    """What sending some prompts would take: an estimate."""

    prompts: int
    cached: int
    """Prompts whose replies are cached."""
    calls: int
    """Requests: one for each distinct prompt that is not cached."""
    tokens: int
    """Tokens of prompts and replies that are not cached; replies at their longest."""
    usd: float | None
    """None if the price is unknown."""


class ChatModel(remote_model.RemoteModel):
    """One model behind a chat endpoint."""

    base_url: str = ""
    """An OpenAI-compatible server; left out, OPENAI_BASE_URL, else OpenAI's own."""
    key_name: str = ""
    """The environment variable that holds the key; left out, OPENAI_API_KEY for
    OpenAI's server and that of OPENAI_BASE_URL, no key for others."""
    max_tokens: PositiveInt = 300
    """Tokens of one reply, at most."""
    temperature: NonNegativeNumber = 0.0
    max_requests: PositiveInt = Field(default=4, alias="concurrency")
    """Requests at once, at most."""
    input_price: NonNegativeNumber | None = None
    """Dollars for a million tokens of prompts; None: unknown, or 0 for a server on this
    machine."""
    output_price: NonNegativeNumber | None = None
    """Dollars for a million tokens of replies; None likewise."""
    _unsupported: frozenset[str] = frozenset()
    """Options that the server refused: a schema for its replies, or a temperature, as
    OpenAI's models that reason."""
    _supported: frozenset[str] = frozenset()
    """Options that it accepted."""

    def model_post_init(self, _: object) -> None:
        """Set how the model is reached; nothing is sent."""
        server = self.server
        key_variable = self.key_name or openai_key_variable(self.base_url)
        check_address("base_url" if self.base_url else OPENAI_URL_VARIABLE, server)
        access = remote_model.EndpointAccess(
            provider="openai",
            base_url=server,
            # Only the server that has a key gets it.
            provider_url=server if key_variable else "",
            key_variables=(key_variable,),
        )
        self._set_access(access, self.max_tokens)

    @property
    def server(self) -> str:
        """The address of the server."""
        return openai_server_url(self.base_url)

    @property
    def other_server(self) -> str:
        """The server as it may be stored; empty for OpenAI's default address.

        Another server may have another model with the same name.
        """
        if self.server == OPENAI_URL:
            return ""
        return redact_url(self.server)

    @property
    def has_prices(self) -> bool:
        """Whether both prices are known; on this machine they are 0 by default."""
        if is_on_this_machine(expand(self.server)):
            return True
        return None not in (self.input_price, self.output_price)

    @property
    def fingerprint(self) -> str:
        """All that changes a reply, except the prompt."""
        return fingerprint(
            "chat",
            self.model,
            server=self.server,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
        )

    def estimate_prompt_tokens(self, prompts: Sequence[Prompt]) -> int:
        """Return an estimate of the tokens of prompts."""
        texts = []
        for prompt in prompts:
            texts += [prompt.system, prompt.user]
        return int(estimate_tokens(texts).sum()) + _FRAME_TOKENS * len(texts)

    def forecast(self, prompts: Sequence[Prompt]) -> ChatForecast:
        """Return what sending these prompts would take if none were cached."""
        sent = self.estimate_prompt_tokens(prompts)
        received = self.max_tokens * len(prompts)
        usd = self.usd_of_tokens(sent, received) if self.has_prices else None
        return ChatForecast(
            prompts=len(prompts),
            cached=0,
            calls=len(prompts),
            tokens=sent + received,
            usd=usd,
        )

    def usd_of_tokens(self, sent: int, received: int) -> float:
        """Return the dollars for some tokens; an unknown price counts as 0."""
        input_price = self.input_price or 0.0
        output_price = self.output_price or 0.0
        return (sent * input_price + received * output_price) / 1e6

    def _cost(self, sent: int, received: int) -> RequestCost:
        return RequestCost(sent + received, self.usd_of_tokens(sent, received))

    def check_budget(self, meter: Meter) -> None:
        """Check that there is a key, and prices if dollars are limited.

        Raises:
            InputError: one of them is missing.
        """
        self.check()
        if meter.budget.limit is not None and not self.has_prices:
            problem = (
                f"the price of {self.model} is not known, "
                "so that the limit of dollars cannot be kept"
            )
            remedy = compose_remedy(
                "set input_price and output_price, dollars for a million tokens",
                Option("--price IN,OUT"),
                ", or set no limit",
                Option("--max-cost"),
            )
            raise InputError(Problem("price", problem, remedy))

    def _open(self) -> OpenAIClient:
        return OpenAIClient(self._url, self._headers(), self.name)

    def ask(self, prompt: Prompt, call: Call) -> Reply:
        """Return the reply to a prompt.

        Raises:
            BackendError: the request failed for good.
            InputError: the key is missing.
        """
        self._client()  # here, not in the event loop: the first call takes a second
        reply = run_request(self._request_reply(prompt, call), call.stopped)
        if reply.declined:
            call.meter.count(declined=1)
        elif prompt.schema and _RESPONSE_FORMAT in self._unsupported:
            call.meter.count(without_schema=1)
        return reply

    async def _request_reply(self, prompt: Prompt, call: Call) -> Reply:
        """Send a prompt with schema and temperature, unless the server refuses them.

        A prompt that it refuses for another reason is declined.
        """
        omitted = self._unsupported
        if not prompt.schema:
            omitted |= {_RESPONSE_FORMAT}
        first_refusal: RequestRefused | None = None
        while True:
            try:
                reply = await self._send(prompt, omitted, call)
            except RequestRefused as refusal:
                first_refusal = first_refusal or refusal
                option = self._refused_option(refusal, omitted)
                if not option:
                    return Reply("", declined=str(first_refusal))
                omitted |= {option}
            else:
                self._learn_options(prompt, omitted)
                return reply

    def _refused_option(self, refusal: RequestRefused, omitted: frozenset[str]) -> str:
        """Return the option that may have caused a refusal; empty if none may."""
        if refusal.code in _UNDROPPABLE_CODES:
            return ""
        for option in _REFUSABLE_OPTIONS:
            is_candidate = option not in omitted | self._supported
            if is_candidate and (
                not refusal.parameter or refusal.parameter.startswith(option)
            ):
                return option
        return ""

    def _learn_options(self, prompt: Prompt, omitted: frozenset[str]) -> None:
        """Remember which options the server refused, and which it accepted."""
        if TEMPERATURE in omitted and TEMPERATURE not in self._unsupported:
            log.warning(
                "%s takes no temperature but its own: "
                "its replies may vary from run to run",
                self.name,
            )
        # Without a schema, nothing is known of the response format.
        self._unsupported |= omitted if prompt.schema else omitted - {_RESPONSE_FORMAT}
        self._supported |= set(_REFUSABLE_OPTIONS) - omitted

    async def _send(self, prompt: Prompt, omitted: frozenset[str], call: Call) -> Reply:
        """Send one request without some options."""
        client = self._client()
        body = self._request_body(prompt, omitted)
        prompt_tokens = self.estimate_prompt_tokens([prompt])

        async def attempt() -> PaidAnswer[Reply]:
            answer = await client.ask(client.completions, **body)
            with explain_unreadable(self.name, answer):
                return self._read_answer(answer, prompt_tokens)

        expected_cost = self._cost(prompt_tokens, self.max_tokens)
        return await self._caller.call(attempt, expected_cost, call, prompt_tokens)

    def _request_body(self, prompt: Prompt, omitted: frozenset[str]) -> dict[str, Any]:
        """Return the JSON of a request."""
        # OpenAI's newer models know only the first name, most other servers only the
        # second.
        is_openai = is_server_of(self.server, OPENAI_URL)
        max_tokens_option = "max_completion_tokens" if is_openai else "max_tokens"
        body: dict[str, Any] = {
            "model": expand(self.model),
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            TEMPERATURE: self.temperature,
            max_tokens_option: self.max_tokens,
        }
        if prompt.schema:
            body[_RESPONSE_FORMAT] = {
                "type": "json_schema",
                "json_schema": {
                    "name": "reply",
                    "strict": True,
                    "schema": json.loads(prompt.schema),
                },
            }
        return {key: option for key, option in body.items() if key not in omitted}

    def _read_answer(self, answer: Any, prompt_tokens: int) -> PaidAnswer[Reply]:
        """Return the reply in an answer, and its cost.

        Raises:
            Exception: one of UNREADABLE_ERRORS if the answer is not of the protocol.
        """
        choice = answer["choices"][0]
        usage = answer.get("usage") or {}
        message = choice["message"]
        text = message.get("content") or ""
        refusal = message.get("refusal")
        finish_reason = choice.get("finish_reason")
        sent = remote_model.billed_tokens(usage.get("prompt_tokens"))
        received = remote_model.billed_tokens(usage.get("completion_tokens"))
        if not isinstance(text, str):
            raise ValueError
        if not sent:
            sent = prompt_tokens
            received = int(estimate_tokens([text])[0])
        cost = self._cost(sent, received)
        if finish_reason == "content_filter":
            reason = "the endpoint's content filter stopped the reply"
            return PaidAnswer(Reply("", declined=reason), cost)
        if refusal and not text:
            return PaidAnswer(Reply("", declined=str(refusal)), cost)
        is_complete = finish_reason != "length"
        return PaidAnswer(Reply(text, cost.tokens, is_complete=is_complete), cost)
