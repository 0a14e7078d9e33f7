"""The words of a chat: which model is asked, what it is asked, what comes back, and what that would take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from retrievers.errors import check_not_negative, check_positive
from retrievers.prices import on_this_machine
from retrievers.remote.http_client import check_address
from retrievers.remote.openai_client import server_url


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
        if self.base_url:
            check_address("base_url", self.base_url)

    @property
    def server(self) -> str:
        """The address that is asked."""
        return server_url(self.base_url)

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
    """What asking some prompts would take: an upper estimate."""

    prompts: int
    cached: int
    calls: int
    tokens: int
    """Of prompts and replies that are not cached; replies at their longest."""
    usd: float | None
    """None where the price is not known."""
