"""Which store is opened."""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from retrievers import store_class
from retrievers.meter import Meter
from retrievers.ragged import VectorForm
from retrievers.store import Store
from retrievers.stores.options import StoreOptions

COLLECTION_PREFIX = "harness-"
"""With which the names of collections begin."""


class StoreOpening(NamedTuple):
    """What a store's class is given."""

    options: StoreOptions
    """With the location where the collection is."""
    collection: str
    """What is in it, and what it was built for."""
    documents: int
    """How many there are, about."""
    folder: Path
    """Where collections of this machine live from run to run."""
    meter: Meter
    """Counts a server's retries."""
    form: VectorForm
    """Of the vectors."""


MAX_COLLECTION_NAME = 80
"""Characters of a collection's name, at most."""


def open_store(
    options: StoreOptions,
    content: str,
    *,
    documents: int,
    folder: Path,
    meter: Meter,
    form: VectorForm = "dense",
) -> Store:
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
    located = options.model_copy(
        update={"location": options.resolve_location(documents, form)}
    )
    located.check(form)
    name = collection_name(content + options.suffix)
    store: Store = store_class(located.kind)(
        StoreOpening(located, name, documents, folder, meter, form)
    )
    return store


def collection_name(content: str) -> str:
    """Return the name of the collection with a content: it says whose it is, and is short enough for every engine.

    >>> collection_name("hashing-3-4-grams-0a81ff12fb0165f4-" + "9" * 64)
    'harness-hashing-3-4-grams-0a81ff12fb0165f4-99999999999999999999-a93a8c0056fa9055'
    """
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", content)[
        : MAX_COLLECTION_NAME - len(COLLECTION_PREFIX) - len(digest) - 1
    ]
    return f"{COLLECTION_PREFIX}{readable.strip('-')}-{digest}"
