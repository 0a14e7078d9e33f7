"""Judged rankings of many queries as arrays."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import chain, repeat
from math import log2, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from retrievers.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

UNJUDGED_GRADE = -(2**31)
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

    def relevant_counts(self, rel: int) -> Ints:
        """(n,): R, the judged documents with at least grade `rel`."""
        return self._once(("R", rel), lambda: (self.judged >= rel).sum(axis=1))

    def hits(self, rel: int) -> Bools:
        """(n, depth): whether the document at a rank has at least grade `rel`."""
        return self._once(("hits", rel), lambda: self.grades >= rel)

    def hits_so_far(self, rel: int) -> Ints:
        """(n, depth): relevant documents down to each rank."""
        return self._once(
            ("so far", rel), lambda: np.cumsum(self.hits(rel), axis=1, dtype=np.int32)
        )

    def hits_within(self, rel: int, cutoff: int | None) -> Ints:
        """(n,): relevant documents among the first `cutoff`."""
        return self.value_at(self.hits_so_far(rel), cutoff)

    def precisions_so_far(self, rel: int) -> Floats:
        """(n, depth): the sum of the precisions at the hits down to each rank."""

        def add_up() -> Floats:
            precisions = self.hits_so_far(rel) / self.ranks
            precisions *= self.hits(rel)
            return np.cumsum(precisions, axis=1, out=precisions)

        return self._once(("precisions", rel), add_up)

    def dcg(self, gain: Callable[[Ints], Floats]) -> Floats:
        """(n, depth): the discounted cumulative gain down to each rank."""
        return self._once(("dcg", gain), lambda: discounted_sums(gain(self.grades)))

    def ideal_dcg(self, gain: Callable[[Ints], Floats]) -> Floats:
        """(n, m): the same for all judged documents, best first."""
        return self._once(("ideal", gain), lambda: discounted_sums(gain(self.judged)))

    @property
    def ranks(self) -> Ints:
        """(depth,): 1, 2, 3 and so on."""
        return np.arange(1, self.grades.shape[1] + 1)

    def returned_counts(self, cutoff: int | None) -> Ints:
        """(n,): how many documents are within the cutoff."""
        return self.lengths if cutoff is None else np.minimum(self.lengths, cutoff)

    @staticmethod
    def value_at(running: Array, cutoff: int | None) -> Array:
        """(n,): the value of a running (n, width) sum at a cutoff, or at its end."""
        width = running.shape[1]
        return running[:, (width if cutoff is None else min(cutoff, width)) - 1]

    def _once(self, key: tuple[object, ...], compute: Callable[[], Array]) -> Array:
        if key not in self._shared:
            self._shared[key] = compute()
        return self._shared[key]


def discounted_sums(gains: Floats) -> Floats:
    """(n, width): the running sums of gain / log2(rank + 1)."""
    terms: Floats = gains / [log2(rank + 1) for rank in range(1, gains.shape[1] + 1)]
    return np.cumsum(terms, axis=1, out=terms)


def row_sums(terms: Floats) -> Floats:
    """(n,): each row's sum, added up from the left, so that padding leaves no trace (`sum` adds in pairs)."""
    ends: Floats = np.cumsum(terms, axis=1)[:, -1]
    return ends


def batch_in_order(
    judgments: Sequence[Mapping[str, int]],
    rankings: Sequence[Collection[str]],
    largest: int,
) -> Batch:
    """Look the documents of each ranking up in the judgments of its query; best first."""
    lengths = _lengths(rankings)
    grades = _looked_up(
        (
            map(j.get, d, repeat(UNJUDGED_GRADE))
            for j, d in zip(judgments, rankings, strict=True)
        ),
        np.int64,
    )
    judged = _flat((j.values() for j in judgments), np.int64)
    return Batch(
        _padded(grades, lengths, UNJUDGED_GRADE),
        lengths,
        _best_first(judged, _lengths(judgments)),
        largest,
    )


def batch_by_score(
    judgments: Sequence[Mapping[str, int]],
    hits: Sequence[Mapping[str, float]],
    largest: int,
    *,
    single: bool,
) -> Batch:
    """The same for scored documents in any order: score descending, then document id descending.

    Scores are compared as 32-bit floats where `single`, as trec_eval 9.0.8 keeps them, else as doubles. What was both
    judged and returned gets the rank of its score; ids are compared only where another document has that score too.
    """
    lengths, known = _lengths(hits), _lengths(judgments)
    flat, judged = (
        _flat((s.values() for s in hits), np.float64),
        _flat((j.values() for j in judgments), np.int64),
    )
    if not np.isfinite(flat).all():
        raise InputError("a score is not a finite number")
    pairs = zip(judgments, hits, strict=True)
    if known.sum() < lengths.sum():  # the fewer are looked up among the more
        looked_up, grade = known, judged
        theirs = _looked_up((map(s.get, j, repeat(nan)) for j, s in pairs), np.float64)
    else:
        looked_up, grade = (
            lengths,
            _looked_up(
                (map(j.get, s, repeat(UNJUDGED_GRADE)) for j, s in pairs), np.int64
            ),
        )
        theirs = flat
    with np.errstate(over="ignore"):
        scores, wanted = (
            np.negative(
                some, dtype=np.float32 if single else np.float64, casting="same_kind"
            )
            for some in (flat, theirs)
        )
    found = np.flatnonzero((grade != UNJUDGED_GRADE) & ~np.isnan(wanted))
    rows, table = (
        np.repeat(np.arange(len(hits)), looked_up)[found],
        _padded(scores, lengths, np.inf),
    )
    places, tied = _places(table, rows, wanted[found])
    grades = np.full(table.shape, UNJUDGED_GRADE, dtype=np.int64)
    grades[rows, places] = grade[found]
    for row in np.unique(rows[tied]).tolist():
        ids = list(hits[row])
        by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__, reverse=True))
        settled = by_id[np.argsort(table[row, by_id], kind="stable")].tolist()
        grades[row, : len(ids)] = [
            judgments[row].get(ids[i], UNJUDGED_GRADE) for i in settled
        ]
    return Batch(grades, lengths, _best_first(judged, known), largest)


def _places(table: Array, rows: Ints, wanted: Array) -> tuple[Ints, Bools]:
    """How many numbers of its row each wanted one exceeds, found by halving, and whether it is there twice.

    Args:
        table: (n, width), in any order.
        rows: (k,): the row of each wanted number, which is in it.
        wanted: (k,).
    """
    width = 1 << table.shape[1].bit_length()
    rising = np.full((len(table), width), np.inf, dtype=table.dtype)
    rising[:, : table.shape[1]] = table
    rising.sort(axis=1)
    flat, places, step = rising.ravel(), rows * width, width
    while step := step // 2:
        places += step * (flat[places + (step - 1)] < wanted)
    return places - rows * width, flat[places + 1] == wanted


def _lengths(rows: Sequence[Sized]) -> Ints:
    return np.fromiter(map(len, rows), np.int64, len(rows))


def _flat(rows: Iterable[Iterable[float]], kind: type) -> Array:
    """All values of some rows, one after another."""
    return np.fromiter(chain.from_iterable(rows), kind)


def _looked_up(rows: Iterable[Iterable[float]], kind: type) -> Array:
    """The same of what is looked up while it is asked for: quicker where NumPy does not wait in between."""
    return np.fromiter([*chain.from_iterable(rows)], kind)


def _best_first(flat: Ints, lengths: Ints) -> Ints:
    falling: Ints = np.sort(_padded(flat, lengths, UNJUDGED_GRADE), axis=1)[:, ::-1]
    return falling


def _padded(flat: Array, lengths: Ints, fill: float) -> Array:
    """Lay values out in rows of the given lengths, filled up to the longest (at least 1)."""
    width = int(lengths.max(initial=1))
    if flat.size == len(lengths) * width:
        return flat.reshape(len(lengths), width)
    table = np.full((len(lengths), width), fill, dtype=flat.dtype)
    table[np.arange(width) < lengths[:, None]] = flat
    return table
