"""Resources of a run that its retrievers share."""

import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrievers.cache import Cache, default_cache_path
from retrievers.document import Document
from retrievers.errors import BackendError
from retrievers.store import Store
from retrievers.texts.context_tokens import words_as_tokens
from retrievers.texts.token_estimate import TokenCounter


class Corpus:
    """The documents of a run.

    Each retriever reads all of them again; a document that is looked up by its id is
    read once.

    Args:
        documents: starts to read all documents.
        count: how many there are.
        texts: returns documents by id; unknown ids are left out.
    """

    def __init__(
        self,
        documents: Callable[[], Iterator[Document]],
        count: int,
        texts: Callable[[Collection[str]], Mapping[str, Document]],
    ) -> None:
        self._read_all = documents
        self._count = count
        self._read_by_id = texts
        self._documents_by_id: dict[str, Document] = {}
        self.shared_indexes: dict[str, Any] = {}
        """What one retriever computed from the documents and others can use."""

    def __iter__(self) -> Iterator[Document]:
        return self._read_all()

    def __length_hint__(self) -> int:
        return self._count

    def contents(
        self, ids: Collection[str], purpose: str = "reranked"
    ) -> Mapping[str, Document]:
        """Return documents by id.

        Args:
            ids: of the documents.
            purpose: what cannot be done with unknown ones, for the message.

        Raises:
            BackendError: an id is unknown.
        """
        missing = {id_ for id_ in ids if id_ not in self._documents_by_id}
        if missing:
            self._documents_by_id.update(self._read_by_id(missing))
        unknown = sorted(missing - self._documents_by_id.keys())
        if unknown:
            raise BackendError(
                f"{len(unknown):,} of its hits have unknown ids, "
                f"such as {unknown[0]!r}: they cannot be {purpose}"
            )
        return {id_: self._documents_by_id[id_] for id_ in ids}


def _default_collections_folder() -> Path:
    return Path(tempfile.gettempdir()) / "retriever-harness"


@dataclass(frozen=True, slots=True)
class Resources:
    """What a retriever receives before it indexes or searches."""

    corpus: Corpus
    cache: Cache
    """Stores vectors, scores and replies."""
    corpus_digest: str = ""
    """Digest of the embedded texts; collections that outlive a run have it in their
    names."""
    folder: Path = field(default_factory=_default_collections_folder)
    """Where this machine keeps collections between runs."""
    fresh: bool = True
    """Whether to build collections again that a store has."""
    stores: dict[Any, Store] = field(default_factory=dict)
    """Open stores by location and content, closed at the end: a folder cannot be opened
    twice."""
    trial: int = 1
    """Which repetition of the run this is; stored answers of another one do not
    count."""
    count_tokens: TokenCounter = words_as_tokens
    """Counts the tokens of passages: the same for all retrievers of a run."""


def own_resources(owner: object, documents: Iterable[Document]) -> Resources:
    """Return the resources of a retriever outside a run.

    They are the user's cache, which is closed with the owner, and documents in memory:
    of those with one id the last.
    """
    documents_by_id = {document.id: document for document in documents}
    cache = Cache(default_cache_path())
    weakref.finalize(owner, cache.close)

    def find_documents(ids: Collection[str]) -> dict[str, Document]:
        return {id_: documents_by_id[id_] for id_ in ids if id_ in documents_by_id}

    corpus = Corpus(
        documents=lambda: iter(documents_by_id.values()),
        count=len(documents_by_id),
        texts=find_documents,
    )
    return Resources(corpus, cache)
