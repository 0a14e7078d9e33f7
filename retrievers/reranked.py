"""The first hits of a retriever, read again by a reranker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from retrievers import reranker_class
from retrievers.meter import Meter
from retrievers.model_tables import reranker_table
from retrievers.placeholders import made
from retrievers.reranking import CachedReranker
from retrievers.resources import Resources
from retrievers.types import Document, Query, Ranking, Reranker, Retriever, facts_of, is_model

READ = "reranker depth"
"""What the manifest keeps of a reranker: how many hits of a query it read."""


class Reranked(Retriever):
    """Another retriever, its first hits put into a better order.

    Args:
        retriever: finds them.
        reranker: scores pairs of a query and a document: a CrossEncoder's name, folder or object, a table, or what
            scores pairs itself.
        depth: how many hits of each query are read again.

    >>> from retrievers import BM25
    >>> Reranked(BM25(), "cross-encoder/ms-marco-MiniLM-L6-v2", depth=20).written()["rerank"]["depth"]
    20
    """

    def __init__(self, retriever: Retriever, reranker: Any, *, depth: int = 10) -> None:
        self._of = retriever
        self._table = None if is_model(reranker) else reranker_table(reranker, depth)
        self._reranker: Reranker | None = reranker if self._table is None else None
        self._cached: CachedReranker

    @property
    def reranker(self) -> Reranker:
        """What scores pairs; of a name, it is made when it is first asked for."""
        if self._reranker is None:
            options = dict(self._table or {})
            self._reranker = made(reranker_class(options.pop("kind")), options)
        return self._reranker

    def written(self) -> dict[str, Any]:
        """The table that would stand for it in an experiment file."""
        if self._table is None:
            return super().written()
        return {"kind": "rerank", "of": self._of.written(), "rerank": self._table}

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """What finds the hits."""
        return (self._of,)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the first stage says of itself, and the reranker."""
        model = {f"reranker {key}": value for key, value in facts_of(self.reranker).items()}
        return {**self._of.provenance, **model, READ: str(self.reranker.depth)}

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
        self._of.index(documents, meter)

    def search(self, queries: Sequence[Query], depth: int, meter: Meter) -> list[Ranking]:
        """Return each query's hits, the first of them in the order of the reranker's scores."""
        before = self._of.search(queries, depth, meter)
        with meter.stage("rerank", total=sum(min(self.reranker.depth, len(ranking)) for ranking in before)):
            return self._cached.rerank_all(queries, before, meter)

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query, past every cache."""
        before = self._of.answer(query, depth, meter)
        with meter.stage("rerank"):
            return self._cached.rerank(query, before, meter)
