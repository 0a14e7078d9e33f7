"""What an agent did for one query, in words."""

from harness.english import count_of
from retrievers.types import Trace

END_PHRASES = {
    "answer": "answered",
    "calls": "answered at the limit of calls",
    "tokens": "ended by the limit of tokens",
    "form": "gave no answer that can be read",
    "declined": "declined by the endpoint",
}
"""How an agent's answer ended (`Trace.end`) -> that in words."""
_ARGUMENT_CHARACTERS = 60
"""Characters of a tool's arguments that a sentence shows."""


def trace_sentence(trace: Trace) -> str:
    """Return the uses of tools, what they took, and how it ended.

    >>> from retrievers.types import ToolUse
    >>> use = ToolUse("grep", '{"pattern": "red"}', ("a", "b"))
    >>> trace_sentence(Trace((use,), 2, 240, 0.0, 1.25, "answer"))
    'grep {"pattern": "red"} (2 documents); answered: 2 calls, 240 tokens, 1.2 s'
    >>> trace_sentence(Trace((), 1, 1, 0.00001, 0.5, "answer"))
    'answered: 1 call, 1 token, under $0.0001, 0.5 s'
    """
    steps = []
    for use in trace.uses:
        arguments = " ".join(use.arguments.split())
        if len(arguments) > _ARGUMENT_CHARACTERS:
            arguments = arguments[: _ARGUMENT_CHARACTERS - 1] + "…"
        documents = count_of(len(use.hits), "document")
        steps.append(f"{use.tool} {arguments} ({documents})")
    took = [count_of(trace.calls, "call"), count_of(trace.tokens, "token")]
    if trace.usd:
        is_little = trace.usd < 0.00005
        took.append("under $0.0001" if is_little else f"${trace.usd:.4f}")
    took.append(f"{trace.seconds:.1f} s")
    end = f"{END_PHRASES[trace.end]}: {', '.join(took)}"
    return "; ".join([*steps, end])
