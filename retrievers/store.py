"""The protocol of stores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from retrievers.conditions import QueryFilters
from retrievers.facts import CollectionFacts
from retrievers.ragged import AnyVectors, VectorForm
from retrievers.ranking import Ranking


class Store(Protocol):
    """Keeps the vectors of one collection and finds the nearest.

    A point is the vectors of a document, or a passage, with its id and fields.
    Dense vectors are compared by cosine, sparse ones by their dot product, token
    vectors by MaxSim: the sum, over the query's tokens, of the largest dot product with
    any token of the document.

    A collection for which `finished` returns notes is complete. Any other is built:
    `create`, then `upsert` as often as needed, then `finish`.
    """

    forms: ClassVar[tuple[VectorForm, ...]] = ("dense", "sparse", "multivector")
    """The forms of vectors that it can store."""
    always_exact: ClassVar[bool] = False
    """Whether it compares all vectors, so that `m` and `quantization` are refused."""
    in_process: ClassVar[bool] = False
    """Whether its collections end with the process, so that each retriever has its
    own."""
    sparse_number_bytes: ClassVar[int] = 8
    """Bytes of one number of a sparse vector with its index."""

    @property
    def approximate(self) -> bool:
        """Whether a search without `exact` may miss some of the nearest."""
        return False

    @property
    def facts(self) -> CollectionFacts:
        """What the manifest records of the engine and the collection."""
        return CollectionFacts()

    def finished(self) -> Mapping[str, Sequence[str]] | None:
        """Return the notes stored with a complete collection; None for any other."""
        return None

    @abstractmethod
    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Prepare the collection for points.

        Args:
            dimensions: the numbers of each vector.
            anew: whether to delete points of an earlier, interrupted build.
        """

    @abstractmethod
    def upsert(
        self,
        ids: Sequence[str],
        vectors: AnyVectors,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add points, each document once; `finish` fails otherwise.

        Args:
            ids: the documents' ids.
            vectors: one for each document.
            fields: the fields of each document that filters use; empty without filters.
        """

    @abstractmethod
    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Prepare the collection for search, store the notes, and mark it complete.

        Args:
            notes: document ids by kind.
        """

    @abstractmethod
    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = False,
        query_filters: QueryFilters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points, ties resolved.

        Args:
            vectors: the queries' vectors.
            limit: hits of each ranking, at most.
            exact: whether to compare every vector in full if the collection is
                approximate.
            query_filters: the values that the hits of each query must have; empty if
                every point may be a hit.
        """

    def close(self) -> None:
        """Release the collection, so that another process may open it."""
        return
