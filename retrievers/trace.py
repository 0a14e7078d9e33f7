"""What an agent did for one query."""

from dataclasses import dataclass
from typing import Literal

AgentEnd = Literal["answer", "calls", "tokens", "form", "declined"]
"""How it ended: it answered; it answered when the limit of calls left it nothing else;
a limit of tokens ended it, and what its tools had returned counts; its answer could not
be read; or the model declined."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One use of a tool."""

    tool: str
    arguments: str
    """JSON, as the model sent it."""
    hits: tuple[str, ...]
    """The ids of the documents that it returned, in its order."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The uses of tools for one query, with what they took."""

    uses: tuple[ToolUse, ...]
    calls: int
    """Requests to the model."""
    tokens: int
    """Tokens of its prompts and replies, as billed, also of cached ones."""
    usd: float
    """Dollars for the requests when they were sent."""
    seconds: float
    """Seconds of the requests when they were sent, without those of the tools; a run
    from the cache writes the same."""
    end: AgentEnd
