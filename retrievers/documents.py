"""What is retrieved and what is asked: documents and queries."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

SAMPLE = 10_000
"""Documents that stand for a corpus where looking at each would take long."""


def _no_fields() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Document:
    """One thing that can be retrieved."""

    id: str
    title: str
    text: str
    fields: Mapping[str, str] = field(default_factory=_no_fields, hash=False)

    @property
    def content(self) -> str:
        """What encoders and BM25 read: title + " " + text, or the text alone without a title."""
        return f"{self.title} {self.text}".strip() if self.title else self.text


class Claim(NamedTuple):
    """One statement of a reference answer, which can be checked by itself."""

    text: str
    vital: bool = True
    """Whether an answer without it would be no answer."""


class Reference(NamedTuple):
    """What a right answer to a query says; no retriever looks at it."""

    answers: tuple[str, ...] = ()
    """Each complete by itself."""
    claims: tuple[Claim, ...] = ()


NO_REFERENCE = Reference()


@dataclass(frozen=True, slots=True)
class Query:
    """One question that is asked."""

    id: str
    text: str
    fields: Mapping[str, str] = field(default_factory=_no_fields, hash=False)
    reference: Reference = NO_REFERENCE


def sample(documents: Iterable[Document], *, seed: int = 0, size: int = SAMPLE) -> list[Document]:
    """Return the documents whose hashed ids are the smallest, in the order of the corpus: any order gives the same."""
    start = hashlib.blake2b(f"{seed}\0".encode(), digest_size=8)
    heap: list[tuple[int, int, Document]] = []
    for place, document in enumerate(documents):
        digest = start.copy()
        digest.update(document.id.encode("utf-8", "surrogatepass"))
        item = (-int.from_bytes(digest.digest()), place, document)
        if len(heap) < size:
            heapq.heappush(heap, item)
        elif item[0] > heap[0][0]:
            heapq.heapreplace(heap, item)
    return [document for _, _, document in sorted(heap, key=lambda item: item[1])]
