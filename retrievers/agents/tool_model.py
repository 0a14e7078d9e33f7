"""A chat model that uses tools."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter

from retrievers.agents.tool_table import ToolDefinition
from retrievers.meter import Call
from retrievers.options.placeholders import expand
from retrievers.services import remote_model
from retrievers.services.addresses import OPENAI_URL, is_server_of
from retrievers.services.caller import PaidAnswer
from retrievers.services.chat_model import TEMPERATURE, ChatModel
from retrievers.services.concurrency import run_request
from retrievers.services.service_errors import RequestRefused, explain_unreadable
from retrievers.texts.token_estimate import estimate_tokens


class ToolCall(NamedTuple):
    """A tool that the model calls."""

    tool: str
    arguments: str
    """JSON, unless the model made a mistake."""


@dataclass(frozen=True, slots=True)
class ToolReply:
    """One reply in the form that the cache stores."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tokens: int = 0
    """Billed tokens of prompt and reply; an estimate if the server reports none."""
    usd: float = 0.0
    """Price of the tokens."""
    seconds: float = 0.0
    """Time from the request to the reply, with its retries."""
    declined: str = ""
    """Why the endpoint declined; empty if it did not."""

    def as_json(self) -> str:
        """Return the text that is cached."""
        return json.dumps(asdict(self), ensure_ascii=False)


_REPLIES = TypeAdapter(ToolReply)


def reply_from_json(text: str) -> ToolReply:
    """Return a reply of the cache."""
    return _REPLIES.validate_json(text)


class NumberedCall(NamedTuple):
    """A tool that the model called, with the id that its result refers to."""

    id: str
    call: ToolCall

    def as_object(self) -> dict[str, object]:
        """Return the call as the chat protocol has it."""
        function = {"name": self.call.tool, "arguments": self.call.arguments}
        return {"id": self.id, "type": "function", "function": function}


class Message(NamedTuple):
    """A message of a dialogue."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[NumberedCall, ...] = ()
    """The tools that the model calls."""
    tool_call_id: str = ""
    """Id of the call whose result the message has; "" in other messages."""

    def as_object(self) -> dict[str, object]:
        """Return the message as the chat protocol has it."""
        message: dict[str, object] = {"role": self.role}
        if self.tool_call_id:
            message["tool_call_id"] = self.tool_call_id
        message["content"] = self.content
        if self.tool_calls:
            message["tool_calls"] = [call.as_object() for call in self.tool_calls]
        return message


class ToolRequest(NamedTuple):
    """All messages so far, and the tools that may be used."""

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]

    def as_json(self) -> str:
        """Return the text by which its reply is cached."""
        messages = [message.as_object() for message in self.messages]
        tools = [tool.as_object() for tool in self.tools]
        return json.dumps([messages, tools], ensure_ascii=False, sort_keys=True)

    @property
    def estimated_tokens(self) -> int:
        """An estimate of its tokens."""
        return int(estimate_tokens([self.as_json()])[0])


class ToolModel(ChatModel):
    """A chat model whose requests have tools."""

    def request(self, tool_request: ToolRequest, call: Call) -> ToolReply:
        """Return the reply to a request.

        Raises:
            BackendError: it failed for good.
        """
        self._client()
        started = time.perf_counter()
        reply = run_request(self._request(tool_request, call), call.stopped)
        if reply.declined:
            call.meter.count(declined=1)
        seconds = time.perf_counter() - started
        return ToolReply(
            reply.text,
            reply.tool_calls,
            reply.tokens,
            reply.usd,
            round(seconds, 3),
            reply.declined,
        )

    async def _request(self, tool_request: ToolRequest, call: Call) -> ToolReply:
        """Send a request, without a temperature if the server refuses it."""
        omitted = self._unsupported | {"response_format"}
        while True:
            try:
                return await self._send_tools(tool_request, omitted, call)
            except RequestRefused as refusal:
                option = self._refused_option(refusal, omitted)
                if not option:
                    return ToolReply("", declined=str(refusal))
                omitted |= {option}
                self._unsupported |= {option}

    async def _send_tools(
        self, tool_request: ToolRequest, omitted: frozenset[str], call: Call
    ) -> ToolReply:
        """Send a request without some options, again while its failures may pass.

        Raises:
            RequestRefused: the server does not accept the request.
            BackendError: it failed for good.
        """
        client = self._client()
        is_openai = is_server_of(self.server, OPENAI_URL)
        body: dict[str, Any] = {
            "model": expand(self.model),
            "messages": [message.as_object() for message in tool_request.messages],
            "tools": [tool.as_object() for tool in tool_request.tools],
            "max_completion_tokens" if is_openai else "max_tokens": self.max_tokens,
        }
        if TEMPERATURE not in omitted:
            body[TEMPERATURE] = self.temperature
        sent = tool_request.estimated_tokens

        async def attempt() -> PaidAnswer[ToolReply]:
            answer = await client.ask(client.completions, **body)
            with explain_unreadable(self.name, answer):
                return self._read_tools(answer, sent)

        expected_cost = self._cost(sent, self.max_tokens)
        return await self._caller.call(attempt, expected_cost, call, sent)

    def _read_tools(self, answer: Any, estimated: int) -> PaidAnswer[ToolReply]:
        """Return the reply in an answer, and its cost.

        Args:
            answer: as the server sent it, parsed from JSON.
            estimated: tokens of the request, in case that the server reports none.

        Raises:
            Exception: one of UNREADABLE_ERRORS if the answer is not of the protocol.
        """
        message = answer["choices"][0]["message"]
        usage = answer.get("usage") or {}
        text = message.get("content") or ""
        if not isinstance(text, str):
            raise ValueError
        functions = [call["function"] for call in message.get("tool_calls") or []]
        tool_calls = tuple(
            ToolCall(str(function["name"]), str(function["arguments"]))
            for function in functions
        )
        sent = remote_model.billed_tokens(usage.get("prompt_tokens"))
        received = remote_model.billed_tokens(usage.get("completion_tokens"))
        if not sent:
            sent = estimated
            received = int(estimate_tokens([text + json.dumps(functions)])[0])
        cost = self._cost(sent, received)
        refusal = str(message.get("refusal") or "") if not (text or functions) else ""
        reply = ToolReply(text, tool_calls, cost.tokens, cost.usd, declined=refusal)
        return PaidAnswer(reply, cost)
