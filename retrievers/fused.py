"""Rankings of several retrievers, fused into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from retrievers.meter import Meter
from retrievers.ranking import FusionMethod, fuse
from retrievers.types import Document, Query, Ranking, Retriever


@dataclass(frozen=True, eq=False)
class Fused(Retriever):
    """Fusion of other retrievers' rankings: by ranks, or by scores (`retrievers.ranking.fuse`)."""

    parts: tuple[Retriever, ...]
    """What is fused."""
    method: FusionMethod = "rrf"
    constant: float = 60
    weights: tuple[float, ...] = ()
    minimum: tuple[float, ...] = ()

    def made_of(self, parts: tuple[Retriever, ...]) -> Fused:
        """Return the same fusion of other parts."""
        return replace(self, parts=parts)

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Index what is fused."""
        for part in self.parts:
            part.index(documents, meter)

    def search(self, queries: Sequence[Query], depth: int, meter: Meter) -> list[Ranking]:
        """Return the fused rankings of all parts."""
        found = [part.search(queries, depth, meter) for part in self.parts]
        with meter.stage("fuse"):
            return [self._fuse(of_query, depth) for of_query in zip(*found, strict=True)]

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query with every part, then fuse."""
        found = [part.answer(query, depth, meter) for part in self.parts]
        with meter.stage("fuse"):
            return self._fuse(found, depth)

    def _fuse(self, rankings: Sequence[Ranking], depth: int) -> Ranking:
        return fuse(
            rankings, depth, self.method, constant=self.constant, weights=self.weights, minimum=self.minimum
        )  # fmt: skip
