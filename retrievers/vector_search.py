"""How texts are embedded for a search by vectors: window by window, and counted."""

import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

from retrievers.meter import Meter
from retrievers.ragged import Form
from retrievers.types import Document, Embedded, Role

Item = TypeVar("Item")
WINDOW = 16_384
"""Texts embedded together: requests are planned within a window, so that they do not depend on the cache."""
TOKENS_WINDOW = 1_024
"""The same where each token has a vector."""


class CorpusSize(NamedTuple):
    """How many texts there are, and how large their vectors are."""

    texts: int = 0
    """Documents, or passages, that are not blank; 0 in collections of before, which did not keep it."""
    dimensions: int = 0
    """Of a text's vector, or of a token's."""
    document_numbers: float = 0.0
    """Numbers that are kept of a document, or passage, on average; 0 where all have one vector."""
    query_numbers: float = 0.0


class Embeds(Protocol):
    """Turns texts, none of them blank, into vectors in the same order: normally an `Embedder`."""

    @property
    def form(self) -> Form:
        """How a text is represented."""
        return "dense"

    def embed(self, texts: Sequence[str], role: Role, meter: Meter, documents: Sequence[str] = ()) -> Embedded:
        """Embed texts, or passages with the document of each, normally through the cache."""

    def one(self, text: str, role: Role, meter: Meter) -> Embedded:
        """Embed one text past the cache."""


class CountedCorpus:
    """A corpus that knows how far it was read, so that progress can say how many texts there will be.

    `empty` holds the ids of the blank documents that were met.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = documents
        self._total = operator.length_hint(documents)
        self._read = 0
        self._ended = False
        self.empty: list[str] = []

    def __iter__(self) -> Iterator[Document]:
        for document in self._documents:
            self._read += 1
            if not document.content.strip():
                self.empty.append(document.id)
            yield document
        self._ended = True

    def expected(self, texts: int) -> int | None:
        """How many texts the corpus will give if `texts` came of what was read: exact at its end, None if unknown."""
        if self._ended:
            return texts
        return round(texts * self._total / self._read) if self._total else None


def windows(items: Iterable[Item], form: Form) -> Iterator[list[Item]]:
    """Yield documents, or texts, as they are embedded together: fewer where each of their tokens has a vector."""
    stream, size = iter(items), TOKENS_WINDOW if form == "multivector" else WINDOW
    while window := list(islice(stream, size)):
        yield window
