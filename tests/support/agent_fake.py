"""A chat model on the loopback that uses tools as a script says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.chat_fake import ChatProvider
from tests.support.servers import tokens_of

Messages = Sequence[dict[str, Any]]
Script = Callable[[Messages, list[str]], dict[str, Any]]
"""Messages and names of tools -> the message of the assistant."""


def uses(tool: str, **arguments: Any) -> dict[str, Any]:
    """A message that asks for one tool."""
    return uses_raw(tool, json.dumps(arguments))


def uses_raw(tool: str, arguments: str) -> dict[str, Any]:
    function = {"name": tool, "arguments": arguments}
    call = {"id": "x", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def says(text: str) -> dict[str, Any]:
    """A message without a tool."""
    return {"role": "assistant", "content": text}


def question(messages: Messages) -> str:
    """The query of a dialogue."""
    return str(messages[1]["content"])


def results(messages: Messages) -> list[str]:
    """What tools returned so far."""
    return [str(one["content"]) for one in messages if one["role"] == "tool"]


def ids_in(result: str) -> list[str]:
    """The ids before the first colons of a tool's result, each once."""
    lines = [line for line in result.split("\n") if ":" in line]
    return list(dict.fromkeys(line.partition(":")[0] for line in lines))


def once(tool: str, argument: str) -> Script:
    """Use one tool with the query, and answer with the documents it returned."""

    def script(messages: Messages, tools: list[str]) -> dict[str, Any]:
        if not results(messages):
            return uses(tool, **{argument: question(messages)})
        return uses("answer", doc_ids=ids_in(results(messages)[0]))

    return script


class AgentProvider(ChatProvider):
    """POST /v1/chat/completions with tools."""

    def __init__(self, script: Script, faults: Sequence[str] = (), **more: Any) -> None:
        super().__init__(faults, **more)
        self.dialogue = script

    def answer(self, path, body, headers, fault):
        tools = [tool["function"]["name"] for tool in body.get("tools", [])]
        message = self.dialogue(body["messages"], tools)
        sent = sum(tokens_of(str(one.get("content"))) for one in body["messages"])
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
