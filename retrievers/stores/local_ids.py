"""Document ids by point, of Qdrant's engine in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qdrant_client import models

    from retrievers.stores.connection import Connection

IDS_READ_BATCH = 4096
"""Points whose ids are read at once."""


def read_document_ids(
    connection: Connection, collection: str
) -> dict[models.ExtendedPointId, str]:
    """Return the document of each point.

    They are read once: with its payload, each hit would be an object more.
    """
    document_ids: dict[models.ExtendedPointId, str] = {}
    offset: Any = None
    while not document_ids or offset is not None:
        records, offset = _read_page(connection, collection, offset)
        if not records:
            break
        for record in records:
            document_ids[record.id] = record.payload["id"]
    return document_ids


def _read_page(connection: Connection, collection: str, offset: Any) -> Any:
    """Return the next records, and the offset of the page after them."""
    return connection.call(
        lambda client: client.scroll(
            collection,
            limit=IDS_READ_BATCH,
            offset=offset,
            with_payload=["id"],
            with_vectors=False,
        )
    )
