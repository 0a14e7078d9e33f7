"""Rankings of several retrievers, fused into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from retrievers.meter import Meter
from retrievers.ranking import FusionMethod, fuse
from retrievers.types import Document, Query, Ranking, Retriever


@dataclass(frozen=True, eq=False)
class Fused(Retriever):
    """Fusion of other retrievers' rankings: by ranks, or by scores (`retrievers.ranking.fuse`).

    >>> from retrievers import BM25
    >>> Fused([BM25(), BM25(b=0.7)], constant=10).written()
    {'kind': 'fusion', 'of': [{'kind': 'bm25'}, {'kind': 'bm25', 'b': 0.7}], 'constant': 10}
    """

    of: Sequence[Retriever]
    """What is fused."""
    method: FusionMethod = "rrf"
    constant: float = 60
    weights: tuple[float, ...] = ()
    minimum: tuple[float, ...] = ()

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """What is fused."""
        return tuple(self.of)

    def written(self) -> dict[str, Any]:
        """Its table in an experiment file."""
        options = {one.name: (getattr(self, one.name), one.default) for one in fields(self)[1:]}
        said = {name: value for name, (value, default) in options.items() if value != default}
        return {"kind": "fusion", "of": [part.written() for part in self.of], **said}

    def made_of(self, parts: tuple[Retriever, ...]) -> Fused:
        """Return the same fusion of other parts."""
        return replace(self, of=parts)

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
