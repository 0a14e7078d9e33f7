"""What an experiment of somebody else would do here: where it sends texts, what it reads, runs and writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from harness.experiment.blocks import KINDS
from harness.experiment.guards import REFERENCE
from harness.experiment.variants import written_out
from retrievers import ENCODERS, RERANKERS, RETRIEVERS
from retrievers.remote.redaction import without_user

PAID = {"openai": "OpenAI's server", "bedrock": "Amazon Bedrock", "cohere": "Cohere's server",
        "gemini": "Google's server", "voyage": "Voyage's server", "jina": "Jina's server"}  # fmt: skip
"""Kinds, and dialects of rerankers, that send texts to a service although no address stands in the file."""
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
HARMLESS = ("dataset",)
"""Tables whose paths are only read as data: told where anything else is, which may carry the data away."""


def uses(tables: Mapping[str, Any]) -> list[str]:
    """Return what a reader must agree to before an experiment is run, a sentence each; empty for a harmless one.

    Args:
        tables: the experiment as it was written, `${NAME}` not expanded.

    >>> uses({"retrievers": [{"name": "a", "encoder": {"kind": "openai", "base_url": "https://x.org", "model": "m"}}]})
    ['sends texts to https://x.org (retrievers[0].encoder.base_url)']
    >>> uses({"retrievers": [{"name": "a", "kind": "bm25"}]})
    []
    """
    lines = [*_services(tables, ""), *(line for place, text in _strings(tables, "") for line in _of_text(place, text))]
    blocks = tables.get("retrievers")
    for place, entry in written_out(blocks if isinstance(blocks, list | tuple) else ()):
        if code := code_of(entry):
            lines.append(f"runs code: {code} ({place})")
    judge = tables.get("judge")
    if isinstance(judge, Mapping) and (code := code_of({"encoder": judge.get("encoder")})):
        lines.append(f"runs code: {code} (judge)")
    if lines:
        data = ((place, text) for place, text in _strings(tables, "") if place.split(".")[0] in HARMLESS)
        lines += [f"reads the data at {text} ({place})" for place, text in data if _leads_out(text)]
    return list(dict.fromkeys(lines))


def code_of(entry: object) -> str:
    """Say what code, not this program's own, a retriever's table makes run; "" where none. Nothing is imported.

    >>> code_of({"name": "ours", "kind": "python", "call": "search:ask"})
    'call = search:ask'
    """
    if not isinstance(entry, Mapping):
        return ""
    kind = entry.get("kind")
    if kind == "python":
        return f"call = {entry.get('call')}"
    if isinstance(kind, str) and kind not in {*KINDS, *RETRIEVERS}:
        return f"kind = {kind}, of another package"
    for key, own in (("encoder", ENCODERS), ("rerank", RERANKERS)):
        table = entry.get(key)
        if isinstance(table, Mapping):
            if table.get("kind") not in (*own, None):
                return f"{key}.kind = {table.get('kind')}, of another package"
            if table.get("trust_remote_code"):
                return f"{key}.trust_remote_code"
    return ""


def _of_text(place: str, text: str) -> Iterator[str]:
    for name in dict.fromkeys(REFERENCE.findall(text)):
        yield f"uses the environment variable {name} ({place})"
    if place.split(".")[0] in HARMLESS:
        return
    if ADDRESS.match(text):
        yield f"sends texts to {without_user(text)} ({place})"
    elif _leads_out(text) and not place.endswith(("prompt", "instruction")):
        yield f"uses the path {text} ({place})"


def _services(value: object, place: str) -> Iterator[str]:
    """The services that a kind means where no address is given."""
    for where, table in _tables(value, place):
        service = PAID.get(str(table.get("dialect") or table.get("kind")))
        if service is not None and not table.get("base_url"):
            yield f"sends texts to {service}, at your cost ({where})"


def _tables(value: object, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(value, Mapping):
        yield place, value
    for where, inner in _inner(value, place):
        yield from _tables(inner, where)


def _strings(value: object, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    for where, inner in _inner(value, place):
        yield from _strings(inner, where)


def _inner(value: object, place: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        yield from ((f"{place}.{key}" if place else str(key), inner) for key, inner in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"{place}[{number}]", inner) for number, inner in enumerate(value))


def _leads_out(text: str) -> bool:
    """Whether a text is a path that leaves the working directory."""
    path = PurePosixPath(text)
    return path.is_absolute() or PureWindowsPath(text).is_absolute() or text.startswith("~") or ".." in path.parts
