"""Stores keep vectors and find the nearest: one file each."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from retrievers.meter import Meter
from retrievers.ragged import Form
from retrievers.stores.options import CSR, EDGE, MEMORY, Opening, StoreOptions
from retrievers.stores.quantized import QuantizedStore
from retrievers.types import Store

ADDRESS = "://"
STORES = {ADDRESS: "server", EDGE: "edge", CSR: "csr", MEMORY: "qdrant"}
"""Location -> the file whose `opened` returns its store; ADDRESS stands for that of a server."""
OTHERWISE = "qdrant"
"""The file for every other location, which is a folder."""


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
    file = STORES.get(ADDRESS if options.on_server else location, OTHERWISE)
    opening = Opening(location, options, collection + options.suffix, documents, folder, meter, form)
    store: Store = import_module(f"retrievers.stores.{file}").opened(opening)
    return store


__all__ = ["CSR", "EDGE", "MEMORY", "STORES", "QuantizedStore", "StoreOptions", "open_store"]
