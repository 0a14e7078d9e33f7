"""The first hits of a retriever, read again by a reranker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from retrievers.meter import Meter
from retrievers.reranking import CachedReranker
from retrievers.resources import Resources
from retrievers.types import Document, Query, Ranking, Reranker, Retriever, facts_of

READ = "reranker depth"
"""What the manifest keeps of a reranker: how many hits of a query it read."""


class Reranked(Retriever):
    """Another retriever, its first hits put into a better order.

    Args:
        retriever: finds them.
        reranker: scores pairs of a query and a document; its `depth` says how many of a query's.
    """

    def __init__(self, retriever: Retriever, reranker: Reranker) -> None:
        self.parts = (retriever,)
        self.reranker = reranker
        self._cached: CachedReranker

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the first stage says of itself, and the reranker."""
        model = {f"reranker {key}": value for key, value in facts_of(self.reranker).items()}
        return {**self.parts[0].provenance, **model, READ: str(self.reranker.depth)}

    def made_of(self, parts: tuple[Retriever, ...]) -> Reranked:
        """Return the same reranker of another retriever's hits."""
        return Reranked(parts[0], self.reranker)

    def check(self) -> None:
        """Look for what the reranker needs, such as a key."""
        self.reranker.check()

    def use(self, resources: Resources) -> None:
        """Take the run's cache, and its documents, which the reranker reads."""
        self._cached = CachedReranker(self.reranker, resources.cache, resources.corpus.contents)

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Index the first stage."""
        self.parts[0].index(documents, meter)

    def search(self, queries: Sequence[Query], depth: int, meter: Meter) -> list[Ranking]:
        """Return each query's hits, the first of them in the order of the reranker's scores."""
        before = self.parts[0].search(queries, depth, meter)
        with meter.stage("rerank", total=sum(min(self.reranker.depth, len(ranking)) for ranking in before)):
            return self._cached.rerank_all(queries, before, meter)

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query, past every cache."""
        before = self.parts[0].answer(query, depth, meter)
        with meter.stage("rerank"):
            return self._cached.rerank(query, before, meter)
