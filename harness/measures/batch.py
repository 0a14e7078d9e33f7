"""Judged rankings of many queries as arrays: what every measure is computed from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

UNJUDGED = -(2**31)
"""Stands for a grade where there is no judgment; below every grade that a file can hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The grades of n rankings, padded to one depth, and the grades of all documents judged for them."""

    grades: Ints
    """(n, depth), depth at least 1: the grade at each rank; UNJUDGED without a judgment or past the end."""
    lengths: Ints
    """(n,): how many documents were returned."""
    judged: Ints
    """(n, m), m at least 1: each query's judged grades, descending, padded with UNJUDGED."""
    largest: int
    """The largest grade of the whole qrels, not of this batch alone; at least 0."""
    _shared: dict[tuple[object, ...], Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lengths)

    def relevant(self, rel: int) -> Ints:
        """(n,): R, the judged documents with at least grade `rel`."""
        return self._once(("R", rel), lambda: (self.judged >= rel).sum(axis=1))

    def hits(self, rel: int) -> Bools:
        """(n, depth): whether the document at a rank has at least grade `rel`."""
        return self._once(("hits", rel), lambda: self.grades >= rel)

    def hits_so_far(self, rel: int) -> Ints:
        """(n, depth): relevant documents down to each rank."""
        return self._once(("so far", rel), lambda: np.cumsum(self.hits(rel), axis=1, dtype=np.int64))

    def hits_within(self, rel: int, cutoff: int | None) -> Ints:
        """(n,): relevant documents among the first `cutoff`."""
        return self.at(self.hits_so_far(rel), cutoff)

    def precisions_so_far(self, rel: int) -> Floats:
        """(n, depth): the sum of the precisions at the hits down to each rank."""

        def add_up() -> Floats:
            precisions = self.hits_so_far(rel) / self.ranks
            return np.cumsum(np.where(self.hits(rel), precisions, 0.0), axis=1)

        return self._once(("precisions", rel), add_up)

    def dcg(self, gain: Callable[[Ints], Floats]) -> Floats:
        """(n, depth): the discounted cumulative gain down to each rank."""
        return self._once(("dcg", gain), lambda: discounted(gain(self.grades)))

    def ideal_dcg(self, gain: Callable[[Ints], Floats]) -> Floats:
        """(n, m): the same for all judged documents, best first."""
        return self._once(("ideal", gain), lambda: discounted(gain(self.judged)))

    @property
    def ranks(self) -> Ints:
        """(depth,): 1, 2, 3 and so on."""
        return np.arange(1, self.grades.shape[1] + 1)

    def returned(self, cutoff: int | None) -> Ints:
        """(n,): how many documents stand within the cutoff."""
        return self.lengths if cutoff is None else np.minimum(self.lengths, cutoff)

    @staticmethod
    def at(running: Array, cutoff: int | None) -> Array:
        """(n,): the value of a running (n, width) sum at a cutoff, or at its end."""
        width = running.shape[1]
        return running[:, (width if cutoff is None else min(cutoff, width)) - 1]

    def _once(self, key: tuple[object, ...], compute: Callable[[], Array]) -> Array:
        if key not in self._shared:
            self._shared[key] = compute()
        return self._shared[key]


def discounted(gains: Floats) -> Floats:
    """(n, width): the running sums of gain / log2(rank + 1)."""
    return np.cumsum(gains / np.log2(np.arange(2, gains.shape[1] + 2)), axis=1)


def batch(judgments: Sequence[Mapping[str, int]], rankings: Sequence[Collection[str]], *, largest: int) -> Batch:
    """Look the documents of each ranking up in the judgments of its query."""
    looked_up = chain.from_iterable(map(j.get, r, repeat(UNJUDGED)) for j, r in zip(judgments, rankings, strict=True))
    grades, lengths = padded(looked_up, [len(r) for r in rankings])
    judged, _ = padded(chain.from_iterable(j.values() for j in judgments), [len(j) for j in judgments])
    judged.sort(axis=1)
    return Batch(grades, lengths, judged[:, ::-1], largest)


def padded(values: Iterable[int], lengths: Sequence[int]) -> tuple[Ints, Ints]:
    """Lay values out in rows of the given lengths, filled up with UNJUDGED to the longest (at least 1)."""
    sizes = np.asarray(lengths, dtype=np.int64)
    flat = np.fromiter(values, np.int64, int(sizes.sum()))
    width = int(sizes.max(initial=1))
    if flat.size == len(sizes) * width:
        return flat.reshape(len(sizes), width), sizes
    table = np.full((len(sizes), width), UNJUDGED, dtype=np.int64)
    table[np.arange(width) < sizes[:, None]] = flat
    return table, sizes
