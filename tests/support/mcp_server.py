"""A server of the Model Context Protocol over the small corpus, by the SDK's own
server side.

`python -m tests.support.mcp_server [http]`: over its standard input and output, or at
an address that its first line says. A query that is the name of a fault has it.
"""

from __future__ import annotations

import os
import socket
import sys
from functools import cache
from pathlib import Path
from typing import Any

import anyio

from tests.support.small_texts import TEXTS

ASKED = os.environ.get("ASKED_FILE", "")
"""A file that gets a line for each call, if it is given."""


@cache
def index() -> Any:
    """BM25 over them."""
    from retrievers.bm25 import BM25
    from retrievers.document import Document
    from retrievers.meter import Meter

    bm25 = BM25()
    documents = [
        Document(name, name, f"# {name}\n\n{text}") for name, text in TEXTS.items()
    ]
    bm25.index(documents, Meter())
    return bm25


def hits(query: str, depth: int) -> Any:
    """The ranking of BM25."""
    from retrievers.meter import Meter
    from retrievers.query import Query

    [ranking] = index().search([Query("q", query)], depth, Meter())
    return ranking


def note(query: str) -> None:
    if ASKED:
        with Path(ASKED).open("a", encoding="utf-8") as asked:
            asked.write(f"{os.getpid()} {query}\n")


def fault(query: str) -> None:
    if query == "die":
        print("out of memory, good bye", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(3)
    if query == "raise":
        from mcp.server.mcpserver.exceptions import ToolError

        raise ToolError("the index is locked")


async def search(query: str, top_k: int) -> dict[str, Any]:
    """Search the corpus by words."""
    note(query)
    fault(query)
    if query == "hang":
        await anyio.sleep(600)
    if query == "much":
        return {"hits": [{"id": "x" * 10_000_000, "score": 1.0}]}
    if query == "unknown":
        return {"hits": [{"id": "nobody", "score": 1.0}]}
    if query == "shapeless":
        return {"found": []}
    ranking = hits(query, top_k)
    pairs = zip(ranking.doc_ids, ranking.scores, strict=True)
    return {"hits": [{"id": doc_id, "score": score} for doc_id, score in pairs]}


def grep(query: str) -> str:
    """Lines that have a word of the query."""
    note(query)
    words = query.split()
    return "\n".join(
        f"docs/{name}.md:1:{text}"
        for name, text in TEXTS.items()
        if any(word in text for word in words)
    )


def search_as_text(query: str, top_k: int) -> str:
    """The ids alone, as JSON in a text."""
    ranking = hits(query, top_k)
    return "[" + ", ".join(f'"{doc_id}"' for doc_id in ranking.doc_ids) + "]"


def serve(transport: str) -> None:
    """Serve the three tools.

    What reads this file for doctests need not wait for the SDK.
    """
    from mcp.server import MCPServer

    server = MCPServer("small corpus")
    server.add_tool(search)
    server.add_tool(grep, structured_output=False)
    server.add_tool(search_as_text, structured_output=False)
    if transport == "http":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        print(f"http://127.0.0.1:{port}/mcp", flush=True)  # noqa: T201
        server.run("streamable-http", host="127.0.0.1", port=port)
    else:
        server.run("stdio")


if __name__ == "__main__":
    serve("http" if sys.argv[1:] == ["http"] else "stdio")
