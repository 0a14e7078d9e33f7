"""Where stores are tested: in this process, in a folder, on fakes of servers, and on
real ones that options name.
"""

from __future__ import annotations

import uuid
from contextlib import suppress

import pytest

from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter
from retrievers.stores.connection import Connection
from retrievers.stores.open import open_store
from retrievers.stores.options import StoreOptions

REAL = tuple(
    pytest.param(option, marks=[pytest.mark.server, pytest.mark.slow])
    for option in ("--qdrant", "--qdrant-grpc")
)
KEEPING = ("folder", "edge", "server")
LOCATIONS = (":memory:", *KEEPING, *REAL)


def rows_of(locations):
    """Rows of a parametrized test: a form and a location, with its marks; all but dense
    vectors are slow.
    """
    rows = [
        (
            form,
            getattr(location, "values", (location,)),
            list(getattr(location, "marks", ())),
        )
        for form, locations_of_form in locations.items()
        for location in locations_of_form
    ]
    return [
        pytest.param(
            form, *location, marks=marks + [pytest.mark.slow] * (form != "dense")
        )
        for form, location, marks in rows
    ]


def fill(store, ids, vectors, notes=None):
    """Upload all in requests of 200, and return the finished store."""
    store.create(vectors.shape[1])
    for start in range(0, len(ids), 200):
        store.upsert(ids[start : start + 200], vectors[start : start + 200])
    store.finish(notes or {})
    return store


class Places:
    """Opens stores at a location, the same collection each time unless another content
    is named.
    """

    def __init__(self, server, real, key, folder):
        self.server, self.content = server, uuid.uuid4().hex
        self._real = real
        self._key = key
        self._folder = folder
        self._stores = []

    def __call__(
        self, location, form="dense", *, documents=16_384, content="", **options
    ):
        if location == "edge":
            pytest.importorskip(
                "qdrant_edge", reason="the extra `edge` is not installed"
            )
        places = {"folder": str(self._folder / "qdrant"), "server": self.server.url}
        location = (
            self._real(location)
            if location.startswith("--")
            else places.get(location, location)
        )
        if location.startswith("--"):
            options = {"api_key": self._key, **options}
        store = open_store(
            StoreOptions(location, **options),
            content or self.content,
            documents=documents,
            folder=self._folder,
            meter=Meter(),
            form=form,
        )
        self._stores.append((store, location if location.startswith("--") else None))
        return store

    def close(self):
        """Close all; what real servers hold of them is removed."""
        for store, location in self._stores:
            store.close()
            if location is not None:
                connection = Connection(StoreOptions(location, self._key))
                with suppress(InputError, BackendError):
                    connection.remove(store.collection)
                connection.close()
