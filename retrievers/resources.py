"""What a run lends its retrievers."""

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


class Corpus:
    """The documents of a run, read anew by each retriever; by id, each is looked up once.

    Args:
        documents: begins to read them.
        count: how many there are.
        texts: finds some of them by id; ids that no document has are left out.
    """

    def __init__(
        self,
        documents: Callable[[], Iterator[Document]],
        count: int,
        texts: Callable[[Collection[str]], Mapping[str, Document]],
    ) -> None:
        self._documents, self._count, self._texts = documents, count, texts
        self._held: dict[str, Document] = {}
        self.shared_indexes: dict[str, Any] = {}
        """What a retriever computed from the documents, for others that need the same."""

    def __iter__(self) -> Iterator[Document]:
        return self._documents()

    def __length_hint__(self) -> int:
        return self._count

    def contents(self, ids: Collection[str]) -> Mapping[str, Document]:
        """Return documents by id; raises BackendError where one of them is no document."""
        missing = {id_ for id_ in ids if id_ not in self._held}
        if missing:
            self._held.update(self._texts(missing))
            if strangers := sorted(missing - self._held.keys()):
                what = f"{len(strangers):,} of its hits have unknown ids, such as {strangers[0]!r}"
                raise BackendError(f"{what}: they cannot be reranked")
        return {id_: self._held[id_] for id_ in ids}


@dataclass(frozen=True, slots=True)
class Resources:
    """What a retriever is given before it indexes or searches."""

    corpus: Corpus
    cache: Cache
    """Of vectors, scores and answers."""
    corpus_digest: str = ""
    """Of what is embedded: collections that outlive a run are named by it."""
    folder: Path = field(
        default_factory=lambda: Path(tempfile.gettempdir()) / "retriever-harness"
    )
    """Where collections of this machine live from run to run."""
    fresh: bool = True
    """Index anew what a store holds."""
    stores: dict[Any, Store] = field(default_factory=dict)
    """What is open, to be closed at the end, by place and content: one folder cannot be opened twice."""


def own_resources(owner: object, documents: Iterable[Document]) -> Resources:
    """What a retriever is given that no run gave anything: the user's cache, and documents in memory."""
    held = {document.id: document for document in documents}
    cache = Cache(default_cache_path())
    weakref.finalize(owner, cache.close)
    corpus = Corpus(
        lambda: iter(held.values()),
        len(held),
        lambda ids: {id_: held[id_] for id_ in ids if id_ in held},
    )
    return Resources(corpus, cache)
