"""What an experiment of somebody else would do here: where it sends texts, what it reads, runs and writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from harness.experiment.blocks import KINDS
from harness.experiment.variants import swept, written_out
from harness.experiment.written import strings, walk
from retrievers import ENCODERS, RERANKERS, RETRIEVERS, STORES, encoder_class, reranker_class, store_kinds
from retrievers.errors import InputError
from retrievers.local.model_files import Weights
from retrievers.placeholders import REFERENCE, without_user
from retrievers.stores import MEMORY

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
ADDRESSES = ("base_url", "endpoint_url", "url")
"""Keys that name a server, whatever their text looks like."""
PROSE = ("prompt", "instruction")
"""Endings of the keys whose values are prompts: what looks like a path in a prompt is none."""
LOADED = ("sentence-transformers", "sparse-encoder", "multivector-encoder", "cross-encoder", "late-interaction", "nli")
"""Kinds whose model comes from a folder, or from the hub."""
VECTORS = "vectors.from"
"""A place that is read and never written to, wherever it is."""
HARMLESS = ("dataset",)
"""Tables whose paths are only read as data: told where anything else is, which may carry the data away."""
SQLITE = "sqlite:///"
"""A file is read as data, as any other; it is told where it leads out."""
HUBS = ("hf:", "irds:")
"""Beginnings of data sets that are fetched from elsewhere."""


def uses(tables: Mapping[str, Any]) -> list[str]:
    """Return what a reader must agree to before an experiment is run, a sentence each; empty for a harmless one.

    Args:
        tables: the experiment as it was written, `${NAME}` not expanded, files named by where they are found.

    >>> uses({"retrievers": [{"name": "a", "encoder": {"kind": "openai", "base_url": "https://x.org", "model": "m"}}]})
    ['sends texts to https://x.org (retrievers[0].encoder.base_url)']
    >>> uses({"retrievers": [{"name": "a", "kind": "bm25"}]})
    []
    """
    if "sweep" in tables:
        tables = _with_configurations(tables)
    lines = [*_services(tables, ""), *(line for place, text in strings(tables) for line in _of_text(place, text))]
    lines += [f"loads the model {table['model']} from the hub ({where}.model)" for where, table in _loaded(tables)
              if _is_on_the_hub(str(table["model"]))]  # fmt: skip
    blocks = tables.get("retrievers")
    for place, entry in written_out(blocks if isinstance(blocks, list | tuple) else ()):
        lines += _services(entry, place)  # a variant may leave an address out
        if code := code_of(entry):
            lines.append(f"runs code: {code} ({place})")
    judge = tables.get("judge")
    if isinstance(judge, Mapping) and (code := code_of({"encoder": judge.get("encoder")})):
        lines.append(f"runs code: {code} (judge)")
    if lines:
        data = ((place, text) for place, text in strings(tables) if place.split(".")[0] in HARMLESS)
        data = ((place, text) for place, text in data if _leads_out(text.removeprefix(SQLITE)))
        lines += [f"reads the data at {text} ({place})" for place, text in data]
        lines += [f"loads the model {table['model']} ({where}.model)" for where, table in _loaded(tables)
                  if not _is_on_the_hub(str(table["model"])) and not _leads_out(str(table["model"]))]  # fmt: skip
    return list(dict.fromkeys(" ".join(line.split()) for line in lines))


def _with_configurations(tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The tables with those that a sweep stands for; a faulty sweep never runs, and stays as it is written."""
    try:
        _, configurations = swept(tables)
    except InputError:
        return tables
    return {**tables, "retrievers": [*tables.get("retrievers", ()), *(table for _, table in configurations)]}


def code_of(entry: object) -> str:
    """Say what code, not this program's own, a retriever's table makes run; "" where none. Nothing is imported.

    >>> code_of({"name": "ours", "kind": "python", "call": "search:ask"})
    'call = search:ask'
    """
    if not isinstance(entry, Mapping):
        return ""
    if isinstance(chunk := entry.get("chunk"), Mapping) and chunk.get("call"):
        return f"chunk.call = {chunk['call']}"
    kind = entry.get("kind")
    if kind == "python":
        return f"call = {entry.get('call')}"
    if isinstance(kind, str) and kind not in {*KINDS, *RETRIEVERS}:
        return f"kind = {kind}, of another package"
    for key, own in (("encoder", ENCODERS), ("rerank", RERANKERS)):
        table = entry.get(key)
        if isinstance(table, Mapping):
            if table.get("kind") == "python":
                return f"{key}.call = {table.get('call')}"
            if table.get("kind") not in (*own, None):
                return f"{key}.kind = {table.get('kind')}, of another package"
            if table.get("trust_remote_code"):
                return f"{key}.trust_remote_code"
    store = entry.get("store")
    location = store.get("location") if isinstance(store, Mapping) else store
    if isinstance(location, str) and (name := location.partition("://")[0]) not in STORES and name in store_kinds():
        return f"store = {location}, of another package"
    return ""


def _of_text(place: str, text: str) -> Iterator[str]:
    for name in dict.fromkeys(REFERENCE.findall(text)):
        yield f"uses the environment variable {name} ({place})"
    key = place.rpartition(".")[2]
    if key == "key_name" and text:
        yield f"uses the environment variable {text} ({place})"
    if place.split(".")[0].partition("[")[0] in HARMLESS and text.startswith(HUBS):
        yield f"fetches the data set {text} ({place})"
    elif place.split(".")[0] in HARMLESS and ADDRESS.match(text) and not text.startswith(SQLITE):
        yield f"asks the database {without_user(text)} ({place})"
    if place.split(".")[0] in HARMLESS or key.endswith(PROSE):
        return
    if place == VECTORS:
        yield f"reads vectors at {without_user(text)} ({place})"
    elif ADDRESS.search(text) or (key in ADDRESSES and text):
        yield f"sends texts to {without_user(text)} ({place})"
    elif _leads_out(text) or (place.endswith((".store", ".store.location")) and text not in (MEMORY, *STORES)):
        yield f"uses the path {text} ({place})"


def _services(value: object, place: str) -> Iterator[str]:
    """The services that a kind means where no address is given, and the keys that go to one without being named."""
    for where, table in _tables(value, place):
        service = _service(str(table.get("kind")), str(table.get("dialect", "")))
        if service and not (table.get("base_url") or table.get("endpoint_url")):
            yield f"sends texts to {service}, at your cost ({where})"
        elif table.get("kind") == "bedrock":
            yield f"uses your credentials for AWS ({where})"


def _service(kind: str, dialect: str) -> str:
    """Who is sent texts where no address stands in the file; "" for what runs on this machine."""
    if dialect:
        services: Mapping[str, str] = getattr(reranker_class("http"), "services")  # noqa: B009 - a class by its name
        return services.get(dialect, "")
    return getattr(encoder_class(kind), "service", "") if kind in ENCODERS else ""


def _loaded(tables: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The tables of models that run on this machine, each with its place."""
    return [(where, one) for where, one in _tables(tables, "") if one.get("kind") in LOADED and "model" in one]


def _is_on_the_hub(model: str) -> bool:
    try:
        return Weights(model).folder is None
    except InputError:  # it can be nowhere
        return False


def _tables(value: object, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((where, one) for where, one in walk(value, place) if isinstance(one, Mapping))


def _leads_out(text: str) -> bool:
    """Whether a text is a path that leaves the working directory."""
    path = PurePosixPath(text)
    if path.is_absolute() and ".." not in path.parts and Path(text).is_relative_to(Path.cwd()):
        return False
    return path.is_absolute() or PureWindowsPath(text).is_absolute() or text.startswith("~") or ".." in path.parts
