"""The protocol of stores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from retrievers.conditions import QueryFilters
from retrievers.ragged import AnyVectors, VectorForm
from retrievers.ranking import Ranking


class Store(Protocol):
    """Keeps the vectors of one collection and finds the nearest.

    Dense vectors by cosine, sparse ones by their dot product, those of tokens by MaxSim: the sum, over the query's
    tokens, of the largest dot product with any token of the document.

    Either `finished` finds the collection complete, or it is made: `create`, `upsert` as often as needed, `finish`.
    """

    forms: ClassVar[tuple[VectorForm, ...]] = ("dense", "sparse", "multivector")
    """The forms of vectors that it keeps."""

    @property
    def approximate(self) -> bool:
        """Whether a search that is not told to be exact may miss some of the nearest."""
        return False

    @property
    def facts(self) -> Mapping[str, str]:
        """What the engine says of itself and of the collection, which the manifest keeps.

        Of an approximate collection `points`, and of them `indexed_points`: those in the graph or compressed.
        """
        return {}

    def finished(self) -> Mapping[str, Sequence[str]] | None:
        """Return the notes kept with the collection if it is there and complete, else None."""
        return None

    @abstractmethod
    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Make the collection ready for points; a half-built one may be resumed unless it is to be made `anew`."""

    @abstractmethod
    def upsert(
        self,
        ids: Sequence[str],
        vectors: AnyVectors,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add points: each document's once, or `finish` ends in an error.

        `fields` are those of each document by which searches may be narrowed: their payload, where there are any.
        """

    @abstractmethod
    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Make the collection ready for search, mark it complete, and keep the ids noted by kind with it."""

    @abstractmethod
    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = False,
        query_filters: QueryFilters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points, ties at the limit resolved.

        `exact` compares every vector in full, also where the collection is approximate. `query_filters` says for each vector
        what the payload of its hits must hold; left out, every point may be a hit.
        """

    def close(self) -> None:
        """Let go of the collection, so that another process may have it."""
        return
