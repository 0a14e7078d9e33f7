"""One chat model behind an OpenAI-compatible endpoint: prompts, replies, costs; and how a judge is prompted."""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import Field

from retrievers import clients
from retrievers.calling import Charge, Refused, readable, wait_for
from retrievers.costs import beginning, estimate, on_this_machine
from retrievers.errors import BackendError, InputError, Problem
from retrievers.identity import fingerprint
from retrievers.meter import Call, Meter
from retrievers.options import NotNegative, Whole
from retrievers.placeholders import expand, shown

_TEMPERATURE, _FORM = "temperature", "response_format"
log = logging.getLogger(__name__)
_FRAME = 8
"""Tokens that the roles and marks of one message take at most, beside its text."""


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


class ChatModel(clients.RemoteModel):
    """One model behind a chat endpoint; the key is asked for at the first request."""

    base_url: str = ""
    """An OpenAI-compatible server; left out, OPENAI_BASE_URL, else OpenAI's own."""
    key_name: str = ""
    """The environment variable that holds the key; left out, OPENAI_API_KEY for OpenAI's server, no key for others."""
    max_tokens: Whole = 300
    """Tokens of one reply, at most."""
    temperature: NotNegative = 0.0
    at_once: Whole = Field(default=4, alias="concurrency")
    """Requests at once, at most."""
    input_price: NotNegative | None = None
    """Dollars for a million tokens of prompts; None: unknown, or 0 for a server on this machine."""
    output_price: NotNegative | None = None
    """Dollars for a million tokens of replies."""
    _without: frozenset[str] = frozenset()
    """What the server does not take: a schema for its replies, or a temperature, as OpenAI's models that reason."""
    _taken: frozenset[str] = frozenset()
    """What it has taken."""

    def model_post_init(self, _: object) -> None:
        """Describe the model; nothing is sent."""
        server, name = self.server, self.key_name or ("" if self.base_url else clients.KEY)
        clients.check_address("base_url" if self.base_url else clients.BASE_URL, server)
        own = server if name else ""
        self._reached(clients.Access(provider="openai", base_url=server, own=own, variables=(name,)), self.max_tokens)

    @property
    def server(self) -> str:
        """The address that is asked."""
        return clients.server_url(self.base_url)

    @property
    def elsewhere(self) -> str:
        """The server as it may be kept, where it is not OpenAI's own: another may have another model of that name."""
        return shown(self.base_url or self.server) if self.server != clients.OPENAI_URL else ""

    @property
    def priced(self) -> bool:
        """Whether both prices are known; a server on this machine costs nothing unless you give a price."""
        return on_this_machine(expand(self.server)) or None not in (self.input_price, self.output_price)

    @property
    def fingerprint(self) -> str:
        """All that changes a reply but for the prompt: server, model, temperature, length."""
        how = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        return fingerprint("chat", self.model, server=self.server, **how)

    def expected(self, prompt: Prompt) -> tuple[int, int]:
        """Estimate the tokens of a prompt, and of its reply at most."""
        counts = estimate([prompt.system, prompt.user])
        return int(counts.sum()) + 2 * _FRAME, self.max_tokens

    def forecast(self, prompts: Sequence[Prompt]) -> ChatForecast:
        """Count what asking these prompts would take, were none of them in the cache."""
        expected = [self.expected(prompt) for prompt in prompts]
        sent, received = (sum(column) for column in zip(*expected, strict=True)) if expected else (0, 0)
        usd = self.price_of(sent, received) if self.priced else None
        return ChatForecast(len(prompts), 0, len(prompts), sent + received, usd)

    def price_of(self, sent: int, received: int) -> float:
        """Return the dollars of so many tokens; 0 where no price is known."""
        return (sent * (self.input_price or 0.0) + received * (self.output_price or 0.0)) / 1e6

    def _cost(self, sent: int, received: int) -> Charge:
        return Charge(sent + received, self.price_of(sent, received))

    def check_budget(self, meter: Meter) -> None:
        """Look for what the first request needs.

        Raises:
            InputError: the key is not set, or a limit of dollars cannot be kept since the price is not known.
        """
        self.check()
        if meter.budget.limit is not None and not self.priced:
            unknown = f"the price of {self.model} is not known, so that --max-cost cannot be kept"
            raise InputError(Problem("--price", unknown, "give the dollars for a million tokens in and out: IN,OUT"))

    def _open(self) -> clients.OpenAIClient:
        return clients.OpenAIClient(self._url, self._headers(), self.name)

    def ask(self, prompt: Prompt, call: Call) -> Reply:
        """Ask once, trying again while failures are passing.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """
        self._client()
        reply = wait_for(self._replied(prompt, call), call.stopped)
        if reply.declined:
            call.meter.count(declined=1)
        elif prompt.form and _FORM in self._without:
            call.meter.count(without_schema=1)
        return reply

    async def _replied(self, prompt: Prompt, call: Call) -> Reply:
        """Ask with a schema and a temperature, unless the server takes none; what it refuses even then, it declines."""
        without = self._without if prompt.form else self._without | {_FORM}
        first: Refused | None = None
        while True:
            try:
                reply = await self._asked(prompt, without, call)
            except Refused as refusal:
                first = first or refusal
                if not (blamed := self._to_blame(refusal, without)):
                    return Reply("", declined=str(first))
                without = without | {blamed}
                continue
            if _TEMPERATURE in without and _TEMPERATURE not in self._without:
                log.warning("%s takes no temperature but its own: its replies may vary from run to run", self.name)
            self._without |= without if prompt.form else without - {_FORM}
            self._taken |= {_FORM, _TEMPERATURE} - without
            return reply

    def _to_blame(self, refusal: Refused, without: frozenset[str]) -> str:
        """The part of a request that may be what is refused, "" where it is the prompt."""
        if refusal.code in {"content_filter", "context_length_exceeded"}:
            return ""
        asked = [one for one in (_FORM, _TEMPERATURE) if one not in without | self._taken]
        return next((one for one in asked if refusal.about.startswith(one) or not refusal.about), "")

    async def _asked(self, prompt: Prompt, without: frozenset[str], call: Call) -> Reply:
        """Send one request."""
        client = self._client()
        # OpenAI's newer models know only the second name, most other servers only the first.
        longest = "max_completion_tokens" if clients.is_server_of(self.server, clients.OPENAI_URL) else "max_tokens"
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        how = {_TEMPERATURE: self.temperature, longest: self.max_tokens}
        body: dict[str, Any] = {"model": expand(self.model), "messages": messages, **how}
        if prompt.form:
            schema = {"name": "reply", "strict": True, "schema": json.loads(prompt.form)}
            body[_FORM] = {"type": "json_schema", "json_schema": schema}
        body = {key: value for key, value in body.items() if key not in without}
        sent, received = self.expected(prompt)

        async def attempt() -> tuple[Reply, Charge]:
            answer = await client.ask(client.completions, **body)
            with readable(self.name, answer):
                choice, usage = answer["choices"][0], answer.get("usage") or {}
                message = choice["message"]
                text, refused, ended = message.get("content") or "", message.get("refusal"), choice.get("finish_reason")
                used = [clients.billed(usage.get(one)) for one in ("prompt_tokens", "completion_tokens")]
                if not isinstance(text, str):
                    raise ValueError
            cost = self._cost(*used) if used[0] else self._cost(sent, int(estimate([text])[0]))
            if ended == "content_filter":
                return Reply("", declined="the endpoint's content filter stopped the reply"), cost
            if refused and not text:
                return Reply("", declined=str(refused)), cost
            return Reply(text, cost.tokens, whole=ended != "length"), cost

        return await self._caller.call(attempt, self._cost(sent, received), call, sent)


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
