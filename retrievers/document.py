"""One document."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

CORPUS_SAMPLE_SIZE = 10_000
"""Documents that represent a corpus if looking at all would take long."""


def no_fields() -> Mapping[str, str]:
    """Return the fields of a document or query that has none."""
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Document:
    """One document that can be retrieved."""

    id: str
    title: str
    text: str
    fields: Mapping[str, str] = field(default_factory=no_fields, hash=False)
    """Further values by name, for filters."""

    @property
    def content(self) -> str:
        """The text for encoders and BM25: title + " " + text, stripped.

        Without a title it is the text as it is.
        """
        if not self.title:
            return self.text
        return f"{self.title} {self.text}".strip()


class _SampledDocument(NamedTuple):
    """A document with the hash that selects it and its position in the corpus."""

    id_hash: bytes
    position: int
    document: Document


def sample_documents(
    documents: Iterable[Document], *, seed: int = 0, size: int = CORPUS_SAMPLE_SIZE
) -> list[Document]:
    """Return the `size` documents with the smallest hashed ids, in the corpus's order.

    A corpus in another order gives the same documents; a smaller one gives all.
    """
    seed_hash = hashlib.blake2b(f"{seed}\0".encode(), digest_size=8)

    def with_hash(position: int, document: Document) -> _SampledDocument:
        id_hash = seed_hash.copy()
        id_hash.update(document.id.encode("utf-8", "surrogatepass"))
        return _SampledDocument(id_hash.digest(), position, document)

    hashed = (with_hash(i, document) for i, document in enumerate(documents))
    sample = heapq.nsmallest(size, hashed, key=lambda sampled: sampled.id_hash)
    sample.sort(key=lambda sampled: sampled.position)
    return [sampled.document for sampled in sample]
