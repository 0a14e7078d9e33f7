"""One document."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType

CORPUS_SAMPLE_SIZE = 10_000
"""Documents that stand for a corpus where looking at each would take long."""


def no_fields() -> Mapping[str, str]:  # noqa: D103
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Document:
    """One thing that can be retrieved."""

    id: str
    title: str
    text: str
    fields: Mapping[str, str] = field(default_factory=no_fields, hash=False)

    @property
    def content(self) -> str:
        """What encoders and BM25 read: title + " " + text, or the text alone without a title."""
        return f"{self.title} {self.text}".strip() if self.title else self.text


def sample_documents(
    documents: Iterable[Document], *, seed: int = 0, size: int = CORPUS_SAMPLE_SIZE
) -> list[Document]:
    """Return the documents whose hashed ids are the smallest, in the order of the corpus: any order gives the same."""
    start = hashlib.blake2b(f"{seed}\0".encode(), digest_size=8)

    def hashed(item: tuple[int, Document]) -> bytes:
        digest = start.copy()
        digest.update(item[1].id.encode("utf-8", "surrogatepass"))
        return digest.digest()

    return [
        document
        for _, document in sorted(
            heapq.nsmallest(size, enumerate(documents), key=hashed), key=itemgetter(0)
        )
    ]
