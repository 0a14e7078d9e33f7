"""The tools as the chat protocol describes them."""

import re
from collections.abc import Iterable
from typing import NamedTuple

ANSWER_TOOL = "answer"
SEARCH_PREFIX = "search_"


class ToolDefinition(NamedTuple):
    """A tool with its one parameter."""

    name: str
    description: str
    parameter: str
    takes_list: bool = False
    """Whether the parameter is a list of texts; else it is one text."""

    def as_object(self) -> dict[str, object]:
        """Return the tool as the chat protocol has it."""
        schema: dict[str, object] = {"type": "string"}
        if self.takes_list:
            schema = {"type": "array", "items": schema}
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": {
                    "type": "object",
                    "properties": {self.parameter: schema},
                    "required": [self.parameter],
                    "additionalProperties": False,
                },
            },
        }


def search_tool_name(retriever: str) -> str:
    """Return the name of the tool of a retriever, of at most 64 characters.

    The chat protocol allows no more, and only these. Names that differ in other
    characters, or beyond 56, have the same tool: an experiment with both is refused.

    >>> search_tool_name("dense[MiniLM, 256]")
    'search_dense_MiniLM_256_'
    """
    return SEARCH_PREFIX + re.sub(r"[^A-Za-z0-9_-]+", "_", retriever)[:56]


ANSWER = ToolDefinition(
    ANSWER_TOOL,
    "End with the ids of the relevant documents, the most relevant first.",
    "doc_ids",
    takes_list=True,
)
BUILT_IN = {
    "grep": ToolDefinition(
        "grep",
        "Lines of the documents that match a regular expression, as id:line: text.",
        "pattern",
    ),
    "read": ToolDefinition("read", "The text of a document.", "doc_id"),
}


def define_tools(
    searches: Iterable[str], built_in: Iterable[str]
) -> tuple[ToolDefinition, ...]:
    """Return all tools, `answer` last.

    Args:
        searches: names of the tools that search.
        built_in: "grep", "read".
    """
    description = "Documents for a query, best first, as id: beginning."
    search_tools = [ToolDefinition(name, description, "query") for name in searches]
    return (*search_tools, *(BUILT_IN[name] for name in built_in), ANSWER)
