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
"""The beginning of all names of collections."""
MAX_COLLECTION_NAME = 80
"""Characters of a collection's name, at most."""


class StoreOpening(NamedTuple):
    """The arguments of a store's class."""

    options: StoreOptions
    """The options with the location of the collection."""
    collection: str
    """The name of the collection, which follows from its content, and how it is
    built."""
    documents: int
    """About how many documents there are; 0 for an iterator, which is not counted."""
    folder: Path
    """Where this machine keeps collections between runs."""
    meter: Meter
    """Counts a server's retries."""
    form: VectorForm
    """The form of the vectors."""


def open_store(
    options: StoreOptions,
    content_key: str,
    *,
    documents: int,
    folder: Path,
    meter: Meter,
    form: VectorForm = "dense",
) -> Store:
    """Return the store that the options name; it is opened at its first use.

    Args:
        options: the experiment's; they may have `${NAME}`.
        content_key: identifies what the collection holds; its name follows from that
            and from how it is built (`StoreOptions.suffix`).
        documents: the number of documents, about; it decides the location if the
            options have none.
        folder: where this machine keeps collections of Qdrant Edge between runs.
        meter: counts a server's retries.
        form: the form of the vectors.

    Raises:
        InputError: the options do not suit the vectors, or a package is missing.
    """
    located_options = options.at_location(documents, form)
    located_options.check(form)
    opening = StoreOpening(
        options=located_options,
        collection=collection_name(content_key + options.suffix),
        documents=documents,
        folder=folder,
        meter=meter,
        form=form,
    )
    store: Store = store_class(located_options.kind)(opening)
    return store


def collection_name(content_key: str) -> str:
    """Return the readable name of a collection, at most 80 characters.

    >>> collection_name("hashing-3-4-grams-0a81ff12fb0165f4-" + "9" * 64)
    'harness-hashing-3-4-grams-0a81ff12fb0165f4-99999999999999999999-a93a8c0056fa9055'
    """
    digest = hashlib.sha256(content_key.encode()).hexdigest()[:16]
    max_readable = MAX_COLLECTION_NAME - len(COLLECTION_PREFIX) - len(digest) - 1
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", content_key)[:max_readable]
    return f"{COLLECTION_PREFIX}{readable.strip('-')}-{digest}"
