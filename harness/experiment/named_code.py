"""Code, not this program's own, that an experiment names: for `--no-code`, and for a check that runs none of it."""

from collections.abc import Iterator, Mapping

from harness.experiment.blocks import KINDS, Block, CustomConfig, VectorConfig, parts_in
from retrievers import ENCODERS, RERANKERS, RETRIEVERS, STORES, store_kinds


def code_of(entry: object) -> str:
    """Return which code a retriever's table makes run; "" for none. Nothing is imported.

    >>> code_of({"name": "ours", "kind": "python", "call": "search:ask"})
    'call = search:ask'
    """
    if not isinstance(entry, Mapping):
        return ""
    if isinstance(chunk := entry.get("chunk"), Mapping) and chunk.get("call"):
        return f"chunk.call = {chunk['call']}"
    of = entry.get("of")
    if runs := next(filter(None, map(code_of, of if isinstance(of, list | tuple) else [of])), ""):
        return runs
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


def functions_of(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the user's functions that a retriever calls: the key, and "package.module:function"."""
    for part in parts_in(block):
        if isinstance(part, Block):
            yield from functions_of(part)
    if isinstance(block, CustomConfig) and block.kind == "python":
        yield "call", block.options["call"]
    chunk = block.options.get("chunk") if isinstance(block, CustomConfig) else None
    if isinstance(chunk, Mapping) and chunk.get("call"):
        yield "chunk.call", chunk["call"]
    if isinstance(block, VectorConfig) and block.encoder.kind == "python":
        yield "encoder.call", block.encoder.options["call"]
    if isinstance(block, VectorConfig) and block.chunk is not None and block.chunk.call:
        yield "chunk.call", block.chunk.call
