"""The collections that runs have left on a server of Qdrant: listed and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from retrievers.meter import Meter
from retrievers.stores.connection import Connection
from retrievers.stores.options import PREFIX, StoreOptions

if TYPE_CHECKING:
    from qdrant_client import models


def notes_of(info: models.CollectionInfo) -> dict[str, tuple[str, ...]] | None:
    """Return the notes that a complete collection has in its metadata; None where it is not complete."""
    kept = (info.config.metadata or {}).get("finished")
    return None if kept is None else {kind: tuple(ids) for kind, ids in kept.items()}


class HeldCollection(NamedTuple):
    """A collection on a server."""

    name: str
    points: int
    complete: bool


class Collections:
    """The collections of a server that runs have made there."""

    def __init__(self, options: StoreOptions) -> None:
        self._connection = Connection(options, "", Meter())

    def list(self) -> list[HeldCollection]:
        """Return them by name."""
        names = [one.name for one in self._connection.call(lambda client: client.get_collections()).collections]
        held = []
        for name in sorted(name for name in names if name.startswith(PREFIX)):
            info = self._connection.call(lambda client, name=name: client.get_collection(name))  # type: ignore[misc]
            held.append(HeldCollection(name, info.points_count or 0, notes_of(info) is not None))
        return held

    def remove(self, name: str) -> None:
        """Remove one of them."""
        self._connection.remove(name)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
