"""A chat endpoint on the loopback: it answers as it is told, or fails in every way that
is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from tests.support.servers import OpenAIProvider, Refusal, tokens_of

ANSWERS = {
    "prose": "I think that this document is quite relevant, maybe a 2.",
    "seven": '{"grade": 7}',
    "text": '{"grade": "three"}',
    "true": '{"grade": true}',
    "half-grade": '{"grade": 1.5}',
    "two": '{"grade": 3} or rather {"grade": 0}',
    "a-list": "[3]",
    "no-text": "",
    "fenced": '```json\n{"grade": 2}\n```',
    "thought": '<think>perhaps {"grade": 0}</think>\n{"grade": 2}',
}
"""Fault -> what is replied with status 200."""


class ChatProvider(OpenAIProvider):
    """POST /v1/chat/completions; `reply` turns the user's message into the text of the
    answer.

    `schemas`: what a server says that takes no schema for its replies; "" for one that
    does. `temperatures`: likewise.
    """

    refusals: Mapping[str, tuple] = {
        **OpenAIProvider.refusals,
        "filter": (
            400,
            "content_filter",
            "The prompt was stopped by the content policy",
        ),
        "long": (
            400,
            "context_length_exceeded",
            "This model's maximum context length is 8192 tokens",
        ),
    }

    def __init__(
        self,
        script=(),
        *,
        reply: Callable[[str], str] = lambda user: '{"grade": 1}',
        schemas="",
        temperatures="",
        **more,
    ):
        super().__init__(script, **more)
        self.reply = reply
        self.schemas, self.temperatures = schemas, temperatures

    def answer(self, path, body, headers, fault):
        assert path.endswith("/chat/completions")
        for reply, key in (
            (self.schemas, "response_format"),
            (self.temperatures, "temperature"),
        ):
            if reply and key in body:
                raise Refusal(
                    400,
                    "invalid_request_error",
                    reply,
                    param=key if key in reply else None,
                )
        user = body["messages"][-1]["content"]
        text = ANSWERS.get(fault, self.reply(user))
        finish = (
            "length"
            if fault == "cut"
            else "content_filter"
            if fault == "filtered"
            else "stop"
        )
        if fault == "cut":
            text = text[: len(text) // 2]
        choices = [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish,
            }
        ]
        sent = sum(tokens_of(message["content"]) for message in body["messages"])
        received = tokens_of(text)
        usage = {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
        }
        reply = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": choices,
            "usage": usage,
        }
        return {
            key: value
            for key, value in reply.items()
            if (fault, key) != ("no-usage", "usage")
        }, {}


def quotation(user: str, mark: str) -> str:
    """The text between two marks of a prompt."""
    return re.search(rf"<{mark}>\n(.*?)\n</{mark}>", user, re.DOTALL)[1]


def graded(grade: int | None) -> str:
    """A reply as the judge should give it."""
    return json.dumps({"grade": grade})
