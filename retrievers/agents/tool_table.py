"""The tools as the chat protocol describes them."""

import re
from collections.abc import Iterable
from typing import Any

ANSWER_TOOL = "answer"
SEARCH_PREFIX = "search_"
Definition = dict[str, Any]
"""A tool in the JSON of a request."""
_TEXT = {"type": "string"}


def _define(name: str, description: str, **parameters: Any) -> Definition:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": parameters,
                "required": list(parameters),
                "additionalProperties": False,
            },
        },
    }


def search_tool_name(retriever: str) -> str:
    """Return the name of the tool of a retriever.

    >>> search_tool_name("dense[MiniLM, 256]")
    'search_dense_MiniLM_256_'
    """
    return SEARCH_PREFIX + re.sub(r"[^A-Za-z0-9_-]+", "_", retriever)[:56]


ANSWER = _define(
    ANSWER_TOOL,
    "End with the ids of the relevant documents, the most relevant first.",
    doc_ids={"type": "array", "items": _TEXT},
)
BUILT_IN = {
    "grep": _define(
        "grep",
        "Lines of the documents that match a regular expression, as id:line: text.",
        pattern=_TEXT,
    ),
    "read": _define("read", "The text of a document.", doc_id=_TEXT),
}


def define_tools(searches: Iterable[str], built_in: Iterable[str]) -> list[Definition]:
    """Return all tools, `answer` last.

    Args:
        searches: names of the tools that search.
        built_in: "grep", "read".
    """
    found = [
        _define(
            name, "Documents for a query, best first, as id: beginning.", query=_TEXT
        )
        for name in searches
    ]
    return [*found, *(BUILT_IN[name] for name in built_in), ANSWER]
