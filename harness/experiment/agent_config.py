"""The table of an agent."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from harness.experiment.retriever_config import RetrieverConfig
from retrievers.agents.tool_table import search_tool_name
from retrievers.errors import InputError
from retrievers.services.addresses import check_address

AGENT_TRIALS = 3
"""Trials of an agent, if the experiment does not say."""
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class AgentConfig(RetrieverConfig):
    """A chat model that finds documents with tools, and answers with their ids."""

    kind: Literal["agent"]
    """What it is."""
    model: str
    """A name that the endpoint knows."""
    of: tuple[str, ...] = ()
    """Retrievers of the experiment that it may search with, by name."""
    tools: tuple[Literal["grep", "read"], ...] = ("grep", "read")
    """What it has besides: lines by a regular expression, a document by its id."""
    calls: int = Field(default=8, ge=2)
    """Requests of one query, at most; the last two take an answer alone."""
    tokens: int = Field(default=20_000, ge=1000)
    """Tokens of one query's prompts and replies, at most: a request that would exceed
    them is not sent, and what its tools returned is its answer."""
    hits: int = Field(default=10, ge=1, le=100)
    """Documents that one search returns, at most."""
    base_url: str = ""
    """An OpenAI-compatible endpoint; left out, OPENAI_BASE_URL, else OpenAI's own."""
    key_name: str = ""
    """The environment variable that holds the key; left out, OPENAI_API_KEY for
    OpenAI's server and that of OPENAI_BASE_URL, none for others."""
    max_tokens: int = Field(default=1000, ge=1)
    """Tokens of one reply, at most."""
    temperature: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Temperature of its replies; not sent to models that accept only their own."""
    concurrency: int = Field(default=4, ge=1)
    """Requests at once."""
    rpm: float = Field(default=0, ge=0)
    """Requests a minute that the endpoint allows; 0: unknown."""
    tpm: float = Field(default=0, ge=0)
    """Tokens a minute that the endpoint allows; 0: unknown."""
    timeout: float = Field(default=60, gt=0, allow_inf_nan=False)
    """Seconds of one attempt, its whole answer read."""
    patience: float = Field(default=300, gt=0, allow_inf_nan=False)
    """Seconds after which a request that keeps failing is given up."""
    input_price: Price | None = None
    """Dollars for a million tokens sent."""
    output_price: Price | None = None
    """Dollars for a million tokens received."""
    omitted_when_empty = ("of",)

    @property
    def parts(self) -> tuple[str | RetrieverConfig, ...]:
        """The retrievers that it may search with."""
        return self.of

    @property
    def is_repeatable(self) -> bool:
        """No: a model may answer differently each time."""
        return False

    @property
    def own_trials(self) -> int:
        """The declared trials, else three."""
        return self.trials or AGENT_TRIALS

    @model_validator(mode="after")
    def _can_work(self) -> Self:
        if not self.of and not self.tools:
            raise ValueError("has no tools; name retrievers in `of`, or tools")
        if len(set(self.of)) < len(self.of):
            raise ValueError("names a retriever twice in `of`; name each once")
        retriever_by_tool: dict[str, str] = {}
        for name in self.of:
            other = retriever_by_tool.setdefault(search_tool_name(name), name)
            if other != name:
                raise ValueError(
                    f"{other!r} and {name!r} would be one tool for the model, "
                    f"{search_tool_name(name)}; rename one of them"
                )
        if self.base_url:
            try:
                check_address("base_url", self.base_url)
            except InputError as error:
                raise ValueError(str(error)) from None
        return self
