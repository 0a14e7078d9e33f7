"""A chat model on the loopback that uses tools as a script says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.support.chat_fake import ChatProvider
from tests.support.servers import tokens_of


class Dialogue(NamedTuple):
    """The messages that the model has received so far."""

    question: str
    """The query."""
    results: tuple[str, ...]
    """What tools returned, in their order."""
    last: str
    """The text of the newest message."""
    tools: tuple[str, ...]
    """The names of the tools that may be used."""


class Reply(NamedTuple):
    """A message of the assistant: a text, or the use of one tool."""

    text: str | None = None
    tool: str = ""
    arguments: str = ""
    """As JSON, where it is in form."""


Script = Callable[[Dialogue], Reply]


def uses(tool: str, **arguments: Any) -> Reply:
    """A message that asks for one tool."""
    return Reply(tool=tool, arguments=json.dumps(arguments))


def ids_in(result: str) -> list[str]:
    """The ids before the first colons of a tool's result, each once."""
    lines = [line for line in result.split("\n") if ":" in line]
    return list(dict.fromkeys(line.partition(":")[0] for line in lines))


def once(tool: str, argument: str) -> Script:
    """Use one tool with the query, and answer with the documents it returned."""

    def script(dialogue: Dialogue) -> Reply:
        if not dialogue.results:
            return uses(tool, **{argument: dialogue.question})
        return uses("answer", doc_ids=ids_in(dialogue.results[0]))

    return script


class AgentProvider(ChatProvider):
    """POST /v1/chat/completions with tools."""

    def __init__(self, script: Script, faults: Sequence[str] = (), **more: Any) -> None:
        super().__init__(faults, **more)
        self.dialogue = script

    def answer(self, path, body, headers, fault):
        message = _as_message(self.dialogue(_read_dialogue(body)))
        contents = [str(message.get("content")) for message in body["messages"]]
        sent = sum(tokens_of(content) for content in contents)
        reply = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": sent,
                "completion_tokens": 10,
                "total_tokens": sent + 10,
            },
        }
        return reply, {}


def _read_dialogue(body) -> Dialogue:
    messages = body["messages"]
    results = [
        str(message["content"]) for message in messages if message["role"] == "tool"
    ]
    tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    return Dialogue(
        str(messages[1]["content"]),
        tuple(results),
        str(messages[-1]["content"]),
        tuple(tools),
    )


def _as_message(reply: Reply):
    """The reply as the protocol has it."""
    if not reply.tool:
        return {"role": "assistant", "content": reply.text}
    function = {"name": reply.tool, "arguments": reply.arguments}
    call = {"id": "x", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
