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
from retrievers.services import remote_model
from retrievers.services.addresses import (
    OPENAI_KEY_VARIABLE,
    OPENAI_URL,
    OPENAI_URL_VARIABLE,
    check_address,
    is_server_of,
    openai_server_url,
)
from retrievers.services.caller import RequestCost
from retrievers.services.clients import OpenAIClient
from retrievers.services.concurrency import run_request
from retrievers.services.service_errors import RequestRefused, explain_unreadable
from retrievers.texts.token_estimate import estimate_tokens

log = logging.getLogger(__name__)
_TEMPERATURE, _FORM, _FRAME = "temperature", "response_format", 8
"""Options that a server may not take; and tokens that the frame of one message takes at most, beside its text."""


class Prompt(NamedTuple):
    """What a model is asked once."""

    system: str
    user: str
    round: int = 1
    """More where the same is asked again, to see how far the model agrees with itself."""
    schema: str = ""
    """The JSON schema of the reply, as text; it follows from `system`, so that the cache does without it."""


class Reply(NamedTuple):
    """What came back for one prompt."""

    text: str
    tokens: int = 0
    """Billed, of prompt and reply together; an estimate where the server tells none."""
    is_complete: bool = True
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


class ChatModel(remote_model.RemoteModel):
    """One model behind a chat endpoint; the key is asked for at the first request."""

    base_url: str = ""
    """An OpenAI-compatible server; left out, OPENAI_BASE_URL, else OpenAI's own."""
    key_name: str = ""
    """The environment variable that holds the key; left out, OPENAI_API_KEY for OpenAI's server, no key for others."""
    max_tokens: PositiveInt = 300
    """Tokens of one reply, at most."""
    temperature: NonNegativeNumber = 0.0
    max_requests: PositiveInt = Field(default=4, alias="concurrency")
    """Requests at once, at most."""
    input_price: NonNegativeNumber | None = None
    """Dollars for a million tokens of prompts; None: unknown, or 0 for a server on this machine."""
    output_price: NonNegativeNumber | None = None
    """Dollars for a million tokens of replies."""
    _without: frozenset[str] = frozenset()
    """What the server does not take: a schema for its replies, or a temperature, as OpenAI's models that reason."""
    _taken: frozenset[str] = frozenset()
    """What it has taken."""

    def model_post_init(self, _: object) -> None:
        """Describe the model; nothing is sent."""
        server, name = (
            self.server,
            self.key_name or ("" if self.base_url else OPENAI_KEY_VARIABLE),
        )
        check_address("base_url" if self.base_url else OPENAI_URL_VARIABLE, server)
        own = server if name else ""
        self._reached(
            remote_model.EndpointAccess(
                provider="openai",
                base_url=server,
                provider_url=own,
                key_variables=(name,),
            ),
            self.max_tokens,
        )

    @property
    def server(self) -> str:
        """The address that is asked."""
        return openai_server_url(self.base_url)

    @property
    def other_server(self) -> str:
        """The server as it may be kept, where it is not OpenAI's own: another may have another model of that name."""
        return (
            redact_url(self.base_url or self.server)
            if self.server != OPENAI_URL
            else ""
        )

    @property
    def has_prices(self) -> bool:
        """Whether both prices are known; a server on this machine costs nothing unless you give a price."""
        return is_on_this_machine(expand(self.server)) or None not in (
            self.input_price,
            self.output_price,
        )

    @property
    def fingerprint(self) -> str:
        """All that changes a reply but for the prompt: server, model, temperature, length."""
        how = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return fingerprint("chat", self.model, server=self.server, **how)

    def estimate_prompt_tokens(self, prompts: Sequence[Prompt]) -> int:
        """Estimate the tokens of prompts."""
        return int(
            estimate_tokens([text for one in prompts for text in one[:2]]).sum()
        ) + 2 * _FRAME * len(prompts)

    def forecast(self, prompts: Sequence[Prompt]) -> ChatForecast:
        """Count what asking these prompts would take, were none of them in the cache."""
        sent, received = (
            self.estimate_prompt_tokens(prompts),
            self.max_tokens * len(prompts),
        )
        usd = self.usd_of_tokens(sent, received) if self.has_prices else None
        return ChatForecast(len(prompts), 0, len(prompts), sent + received, usd)

    def usd_of_tokens(self, sent: int, received: int) -> float:
        """Return the dollars of so many tokens; 0 where no price is known."""
        return (
            sent * (self.input_price or 0.0) + received * (self.output_price or 0.0)
        ) / 1e6

    def _cost(self, sent: int, received: int) -> RequestCost:
        return RequestCost(sent + received, self.usd_of_tokens(sent, received))

    def check_budget(self, meter: Meter) -> None:
        """Raise InputError if the key is not set, or a limit of dollars cannot be kept without prices."""
        self.check()
        if meter.budget.limit is not None and not self.has_prices:
            unknown = f"the price of {self.model} is not known, so that --max-cost cannot be kept"
            raise InputError(
                Problem(
                    "--price",
                    unknown,
                    "give the dollars for a million tokens in and out: IN,OUT",
                )
            )

    def _open(self) -> OpenAIClient:
        return OpenAIClient(self._url, self._headers(), self.name)

    def ask(self, prompt: Prompt, call: Call) -> Reply:
        """Ask once, trying again while failures are passing; raises BackendError for good."""
        self._client()
        reply = run_request(self._replied(prompt, call), call.stopped)
        if reply.declined:
            call.meter.count(declined=1)
        elif prompt.schema and _FORM in self._without:
            call.meter.count(without_schema=1)
        return reply

    async def _replied(self, prompt: Prompt, call: Call) -> Reply:
        """Ask with a schema and a temperature, unless the server takes none; what it refuses even then, it declines."""
        without = self._without if prompt.schema else self._without | {_FORM}
        first: RequestRefused | None = None
        while True:
            try:
                reply = await self._asked(prompt, without, call)
            except RequestRefused as refusal:
                first = first or refusal
                left = [
                    one
                    for one in (_FORM, _TEMPERATURE)
                    if one not in without | self._taken
                ]
                blamed = [
                    one
                    for one in left
                    if refusal.parameter.startswith(one) or not refusal.parameter
                ]
                if not blamed or refusal.code in {
                    "content_filter",
                    "context_length_exceeded",
                }:
                    return Reply("", declined=str(first))
                without |= {blamed[0]}
                continue
            if _TEMPERATURE in without and _TEMPERATURE not in self._without:
                log.warning(
                    "%s takes no temperature but its own: its replies may vary from run to run",
                    self.name,
                )
            self._without |= without if prompt.schema else without - {_FORM}
            self._taken |= {_FORM, _TEMPERATURE} - without
            return reply

    async def _asked(
        self, prompt: Prompt, without: frozenset[str], call: Call
    ) -> Reply:
        """Send one request."""
        client = self._client()
        # OpenAI's newer models know only the second name, most other servers only the first.
        longest = (
            "max_completion_tokens"
            if is_server_of(self.server, OPENAI_URL)
            else "max_tokens"
        )
        messages = [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": prompt.user},
        ]
        how = {_TEMPERATURE: self.temperature, longest: self.max_tokens}
        body: dict[str, Any] = {
            "model": expand(self.model),
            "messages": messages,
            **how,
        }
        if prompt.schema:
            schema = {
                "name": "reply",
                "strict": True,
                "schema": json.loads(prompt.schema),
            }
            body[_FORM] = {"type": "json_schema", "json_schema": schema}
        body = {key: value for key, value in body.items() if key not in without}
        sent = self.estimate_prompt_tokens([prompt])

        async def attempt() -> tuple[Reply, RequestCost]:
            answer = await client.ask(client.completions, **body)
            with explain_unreadable(self.name, answer):
                choice, usage = answer["choices"][0], answer.get("usage") or {}
                message = choice["message"]
                text, refused, ended = (
                    message.get("content") or "",
                    message.get("refusal"),
                    choice.get("finish_reason"),
                )
                used = [
                    remote_model.billed_tokens(usage.get(one))
                    for one in ("prompt_tokens", "completion_tokens")
                ]
                if not isinstance(text, str):
                    raise ValueError
            cost = (
                self._cost(*used)
                if used[0]
                else self._cost(sent, int(estimate_tokens([text])[0]))
            )
            if ended == "content_filter":
                return Reply(
                    "", declined="the endpoint's content filter stopped the reply"
                ), cost
            if refused and not text:
                return Reply("", declined=str(refused)), cost
            return Reply(text, cost.tokens, is_complete=ended != "length"), cost

        return await self._caller.call(
            attempt, self._cost(sent, self.max_tokens), call, sent
        )
