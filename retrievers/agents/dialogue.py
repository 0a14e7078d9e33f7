"""The dialogue of an agent about one query."""

import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

from retrievers.agents.tool_model import (
    Message,
    NumberedCall,
    ToolCall,
    ToolReply,
    ToolRequest,
)
from retrievers.agents.tool_table import ANSWER, ANSWER_TOOL, ToolDefinition
from retrievers.agents.toolbox import ToolResult
from retrievers.ids import CONTROL_CHARACTERS, hit_id
from retrievers.trace import AgentEnd, ToolUse, Trace

SYSTEM_PROMPT = (
    "You find the documents of a corpus that are relevant to a query. Use the tools, "
    "then call `answer` with the ids of the relevant documents, the most relevant "
    "first. Ids are what tools print before the first colon."
)
LAST_CALL_PROMPT = "No further search is possible: call `answer` now."
FORM_PROMPT = (
    "That is not in form: call one of the tools; end by calling `answer` with "
    '{"doc_ids": ["…"]}.'
)
ANSWER_CALLS = 2
"""The last requests of a query allow only an answer: two, since the model is reminded
once of the form."""


class DialogueLimits(NamedTuple):
    """What ends a dialogue."""

    calls: int
    """Requests to the model, at most."""
    tokens: int
    """Tokens of prompts and replies; a request that would exceed them is not sent."""
    reply_tokens: int
    """Tokens of one reply, at most."""


class DialogueResult(NamedTuple):
    """The documents of an answer, best first, with the way to them."""

    doc_ids: list[str]
    trace: Trace


class Dialogue:
    """Leads a model to the answer of one query, or to a limit.

    It makes the next `request`, and receives the reply, so that many dialogues can wait
    for their replies at once.

    Args:
        query_text: the query.
        use: uses a tool by its name and arguments.
        definitions: the tools.
        limits: what ends it.
    """

    def __init__(
        self,
        query_text: str,
        use: Callable[[str, str], ToolResult],
        definitions: tuple[ToolDefinition, ...],
        limits: DialogueLimits,
    ) -> None:
        self._use = use
        self._definitions = definitions
        self._limits = limits
        self._messages: list[Message] = [
            Message("system", SYSTEM_PROMPT),
            Message("user", query_text),
        ]
        self._replies: list[ToolReply] = []
        self._uses: list[ToolUse] = []
        self._is_reminded = False
        self.request: ToolRequest | None = None
        """The next request; None when the dialogue has ended."""
        self.result: DialogueResult | None = None
        """The documents, when the dialogue has ended.

        If a limit of tokens ended it, they are those that the tools returned, the first
        returned first.
        """
        self._advance()

    def receive(self, reply: ToolReply) -> None:
        """Take the reply to the request; tools are used here."""
        self._replies.append(reply)
        if reply.declined:
            self._end([], "declined")
            return
        doc_ids = _answered_ids(reply.tool_calls)
        if doc_ids is not None:
            self._end(doc_ids, "calls" if self._had_to_answer else "answer")
        elif _asks_for_tools(reply) and not self._had_to_answer:
            self._use_tools(reply)
            self._advance()
        elif self._remind(reply):
            self._advance()
        else:
            self._end([], "form")

    @property
    def _had_to_answer(self) -> bool:
        """Whether the request of the last reply had only the answer as a tool."""
        return len(self._replies) > self._limits.calls - ANSWER_CALLS

    def _advance(self) -> None:
        """Make the next request, unless a limit is reached."""
        number = len(self._replies) + 1
        if number > self._limits.calls:
            # The last request was for an answer, and had none in form.
            self._end([], "form")
            return
        must_answer = number > self._limits.calls - ANSWER_CALLS
        request = self._next_request(must_answer=must_answer)
        if self._exceeds_tokens(request):
            self._end(self._met_documents(), "tokens")
        else:
            self.request = request

    def _next_request(self, *, must_answer: bool) -> ToolRequest:
        """Return the next request; with the answer as only tool near the limit."""
        if not must_answer:
            return ToolRequest(tuple(self._messages), self._definitions)
        last_call = Message("user", LAST_CALL_PROMPT)
        if last_call not in self._messages:
            self._messages.append(last_call)
        return ToolRequest(tuple(self._messages), (ANSWER,))

    def _exceeds_tokens(self, request: ToolRequest) -> bool:
        spent = sum(reply.tokens for reply in self._replies)
        needed = request.estimated_tokens + self._limits.reply_tokens
        return spent + needed > self._limits.tokens

    def _use_tools(self, reply: ToolReply) -> None:
        """Use the tools that a reply calls, and add their results."""
        first_number = len(self._uses) + 1
        calls = tuple(
            NumberedCall(f"call_{number}", call)
            for number, call in enumerate(reply.tool_calls, start=first_number)
        )
        self._messages.append(Message("assistant", reply.text, calls))
        for id_, call in calls:
            result = self._use(call.tool, call.arguments)
            self._uses.append(ToolUse(call.tool, call.arguments, result.hits))
            self._messages.append(Message("tool", result.text, tool_call_id=id_))

    def _remind(self, reply: ToolReply) -> bool:
        """Ask once more after a reply that is out of form; False if that was done."""
        if self._is_reminded:
            return False
        self._is_reminded = True
        self._messages += [
            Message("assistant", reply.text or "(no text)"),
            Message("user", FORM_PROMPT),
        ]
        return True

    def _met_documents(self) -> list[str]:
        """Return the documents that tools returned, each once, first returned first."""
        return _distinct(doc_id for use in self._uses for doc_id in use.hits)

    def _end(self, doc_ids: list[str], end: AgentEnd) -> None:
        seconds = sum(reply.seconds for reply in self._replies)
        trace = Trace(
            tuple(self._uses),
            calls=len(self._replies),
            tokens=sum(reply.tokens for reply in self._replies),
            usd=sum(reply.usd for reply in self._replies),
            seconds=round(seconds, 3),
            end=end,
        )
        self.request = None
        self.result = DialogueResult(doc_ids, trace)


def _asks_for_tools(reply: ToolReply) -> bool:
    """Whether a reply calls only tools, and gives no answer."""
    names = [call.tool for call in reply.tool_calls]
    return bool(names) and ANSWER_TOOL not in names


def _answered_ids(tool_calls: Iterable[ToolCall]) -> list[str] | None:
    """Return the ids of an answer, each once; None without an answer in form.

    >>> _answered_ids([ToolCall("answer", '{"doc_ids": ["b", "a", "b"]}')])
    ['b', 'a']
    >>> _answered_ids([ToolCall("answer", '{"doc_ids": "b"}')])
    """
    for call in tool_calls:
        if call.tool == ANSWER_TOOL:
            return _ids_in(call.arguments)
    return None


def _ids_in(arguments: str) -> list[str] | None:
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    listed = parsed.get("doc_ids") if isinstance(parsed, dict) else None
    if not isinstance(listed, list):
        return None
    doc_ids = [hit_id(id_) for id_ in listed]
    valid_ids = [doc_id for doc_id in doc_ids if doc_id and _is_possible_id(doc_id)]
    return _distinct(valid_ids) if len(valid_ids) == len(doc_ids) else None


def _is_possible_id(doc_id: str) -> bool:
    """Whether a document may have this id; `match_hit_ids` refuses any other."""
    return bool(doc_id.strip()) and not CONTROL_CHARACTERS.search(doc_id)


def _distinct(doc_ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(doc_ids))
