"""Stores keep vectors and find the nearest: one file each."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from retrievers.errors import InputError, Problem
from retrievers.meter import Meter
from retrievers.ragged import Form
from retrievers.stores.options import CSR, EDGE, MEMORY, StoreOptions
from retrievers.stores.quantized import QuantizedStore
from retrievers.types import Store


def open_store(options: StoreOptions, collection: str, *, documents: int, folder: Path, meter: Meter,
               form: Form = "dense") -> Store:  # fmt: skip
    """Return the store that the options name; nothing is opened or connected before its first use.

    Args:
        options: as the experiment has them, with `${NAME}` expanded.
        collection: what is in it, `<encoder fingerprint>-<dataset digest>`; in memory any name.
        documents: how many there are, about: it decides where the options leave the location open.
        folder: where edge collections live from run to run.
        meter: counts a server's retries.
        form: of the vectors.

    Raises:
        InputError: the options do not suit the vectors, or a package is missing.
    """
    options.check(form)
    location = options.resolved(documents, form)
    name = collection + options.suffix
    if options.on_server:
        from retrievers.stores.server import ServerStore

        return ServerStore(options, name, meter, form)
    if location == EDGE:
        if importlib.util.find_spec("qdrant_edge") is None:
            what = f"the edge store, for {documents} documents, needs the package qdrant-edge-py"
            raise InputError(Problem("store", what, "pip install qdrant-edge-py, or name another store"))
        from retrievers.stores.edge import EdgeStore

        return EdgeStore(folder, name, options, form, documents=documents)
    if location == CSR:
        from retrievers.stores.csr import CsrStore

        return CsrStore()
    from retrievers.stores.qdrant import QdrantStore

    return QdrantStore(location, name, form)


__all__ = ["CSR", "EDGE", "MEMORY", "QuantizedStore", "StoreOptions", "open_store"]
