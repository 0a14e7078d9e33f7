"""Stores keep vectors and find the nearest: one file each."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

from retrievers import store_class
from retrievers.meter import Meter
from retrievers.ragged import Form
from retrievers.stores.matrices import QuantizedStore
from retrievers.stores.options import CSR, EDGE, MEMORY, PREFIX, Opening, StoreOptions
from retrievers.types import Store

LONGEST = 80
"""Characters of a collection's name, at most."""


def open_store(options: StoreOptions, content: str, *, documents: int, folder: Path, meter: Meter,
               form: Form = "dense") -> Store:  # fmt: skip
    """Return the store that the options name; nothing is opened or connected before its first use.

    Args:
        options: as the experiment has them, with `${NAME}` expanded.
        content: what is in the collection, `<encoder fingerprint>-<corpus digest>`; its name follows from it.
        documents: how many there are, about: it decides where the options leave the location open.
        folder: where edge collections live from run to run.
        meter: counts a server's retries.
        form: of the vectors.

    Raises:
        InputError: the options do not suit the vectors, or a package is missing.
    """
    located = replace(options, location=options.resolved(documents, form))
    located.check(form)
    name = collection_name(content + options.suffix)
    store: Store = store_class(located.kind)(Opening(located, name, documents, folder, meter, form))
    return store


def collection_name(content: str) -> str:
    """Return the name of the collection with a content: it says whose it is, and is short enough for every engine.

    >>> collection_name("hashing-3-4-grams-0a81ff12fb0165f4-" + "9" * 64)
    'harness-hashing-3-4-grams-0a81ff12fb0165f4-99999999999999999999-a93a8c0056fa9055'
    """
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", content)[: LONGEST - len(PREFIX) - len(digest) - 1]
    return f"{PREFIX}{readable.strip('-')}-{digest}"


__all__ = ["CSR", "EDGE", "MEMORY", "QuantizedStore", "StoreOptions", "collection_name", "open_store"]
