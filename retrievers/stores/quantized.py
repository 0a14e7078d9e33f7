"""Collections of quantised vectors, in memory, compared one and all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from retrievers.filters import FieldValues
from retrievers.quantization import (
    Codes,
    NumberFormat,
    ValueRanges,
    calibrated,
    from_bits,
    from_bytes,
    to_bits,
    to_bytes,
)
from retrievers.ragged import AnyVectors, dense, unit_rows
from retrievers.types import RESOLUTION, FilterValues, Floats, Ranking, Store, Vectors, ranked, rounded

Mask = npt.NDArray[np.bool_]
DOCUMENTS = 16_384
QUERIES = 512
"""Documents, and queries, that are compared at once."""


class QuantizedStore(Store):
    """One collection of codes; nothing of the full vectors is kept.

    Scores are cosines of what the codes stand for: of int8 between the query's own numbers and each document's levels;
    of binary between the bits of both, which is 1 - 2 x Hamming distance / dimensions; of binary-dot between the
    query's own numbers and each document's bits (1 or -1). The levels of int8 lie between the smallest and the largest
    number of each dimension among the documents that are added first.
    """

    def __init__(self, quantization: NumberFormat) -> None:
        self._quantization = quantization
        self._dimensions = 0
        self._buckets: ValueRanges | None = None
        self._ids: list[str] = []
        self._codes: list[Codes] = []
        self._fields: list[Mapping[str, str]] = []
        self._values = FieldValues(())

    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Begin anew, with no document."""
        self._dimensions, self._buckets, self._ids, self._codes, self._fields = dimensions, None, [], [], []

    def upsert(self, ids: Sequence[str], vectors: AnyVectors, fields: Sequence[Mapping[str, str]] = ()) -> None:
        """Add the codes of documents that are not there yet; of int8 the first call decides where the levels lie."""
        if not len(ids):
            return
        units = dense(unit_rows(vectors))
        if self._quantization == "int8":
            self._buckets = self._buckets or calibrated(units)
            self._codes.append(to_bytes(units, self._buckets))
        else:
            self._codes.append(to_bits(units))
        self._ids.extend(ids)
        self._fields.extend(fields)

    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Put all codes together."""
        self._codes = [np.concatenate(self._codes)] if self._codes else []
        self._values = FieldValues({name for own in self._fields for name in own})
        for own in self._fields:
            self._values.add(own)

    def search(
        self, vectors: AnyVectors, limit: int, *, exact: bool = True, wanted: Sequence[FilterValues] = ()
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` documents, ties at the limit resolved."""
        masks = {one: self._values.matching(one) for one in set(wanted)}
        answers: list[Ranking] = []
        for start in range(0, len(vectors), QUERIES):
            some = [masks[one] for one in wanted[start : start + QUERIES]]
            answers += self._ranked(dense(unit_rows(vectors[start : start + QUERIES])), limit, some)
        return answers

    def _ranked(self, queries: Vectors, limit: int, masks: Sequence[Mask]) -> list[Ranking]:
        """Rank the documents for each query, or those of them that its mask leaves."""
        asked = from_bits(to_bits(queries), self._dimensions) if self._quantization == "binary" else queries
        positions: list[list[int]] = [[] for _ in queries]
        scores: list[list[float]] = [[] for _ in queries]
        for codes in self._codes:
            for start in range(0, len(codes), DOCUMENTS):
                block = self._scores(asked, codes[start : start + DOCUMENTS])
                for query, row in enumerate(block):
                    matching = np.flatnonzero(masks[query][start : start + DOCUMENTS]) if masks else np.arange(len(row))
                    best = matching[_best(row[matching], limit)]
                    positions[query] += (best + start).tolist()
                    scores[query] += row[best].tolist()
        return [
            ranked([self._ids[position] for position in some], rounded(values), limit)
            for some, values in zip(positions, scores, strict=True)
        ]

    def _scores(self, asked: Vectors, codes: Codes) -> Floats:
        """(queries, documents)."""
        if self._buckets is not None:
            return np.asarray(asked @ from_bytes(codes, self._buckets).T, dtype=np.float64)
        products = (asked @ from_bits(codes, self._dimensions).T).astype(np.float64)
        lengths = self._dimensions if self._quantization == "binary" else np.sqrt(self._dimensions)
        return np.asarray(products / lengths)


def _best(scores: Floats, limit: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Positions of the scores that could stand in the first `limit`, ties at the end included."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    cut = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    return np.flatnonzero(scores >= cut - 2 * RESOLUTION * float(np.abs(scores).max()))
