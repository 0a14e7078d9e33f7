"""Judged rankings of many queries as arrays."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import chain, repeat
from math import log2, nan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

UNJUDGED_GRADE = -(2**31)
"""The grade of a document without a judgment; below every grade in a file."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The grades of n rankings, and of all documents judged for their queries."""

    grades: Ints
    """(n, depth), depth at least 1: the grade at each rank.

    UNJUDGED_GRADE without a judgment, or beyond the end.
    """
    lengths: Ints
    """(n,): how many documents were returned."""
    judged: Ints
    """(n, m), m at least 1: each query's grades, descending, then UNJUDGED_GRADE."""
    largest: int
    """The largest grade of the whole qrels, not of this batch alone; at least 0."""
    _computed: dict[tuple[object, ...], Array] = field(default_factory=dict)
    """Arrays that several measures need."""

    def __len__(self) -> int:
        return len(self.lengths)

    def relevant_counts(self, rel: int) -> Ints:
        """(n,): R, the judged documents with at least grade `rel`."""
        return self._compute_once(("R", rel), lambda: (self.judged >= rel).sum(axis=1))

    def hits(self, rel: int) -> Bools:
        """(n, depth): whether a document is a hit, of at least grade `rel`, by rank."""
        return self._compute_once(("hits", rel), lambda: self.grades >= rel)

    def hits_so_far(self, rel: int) -> Ints:
        """(n, depth): how many hits there are down to each rank."""
        return self._compute_once(
            ("so far", rel), lambda: np.cumsum(self.hits(rel), axis=1, dtype=np.int32)
        )

    def hits_within(self, rel: int, cutoff: int | None) -> Ints:
        """(n,): how many hits are among the first `cutoff` documents."""
        return self.value_at(self.hits_so_far(rel), cutoff)

    def precisions_so_far(self, rel: int) -> Floats:
        """(n, depth): the sum of the precisions at the hits down to each rank."""

        def add_up() -> Floats:
            precisions = self.hits_so_far(rel) / self.ranks
            precisions *= self.hits(rel)
            return np.cumsum(precisions, axis=1, out=precisions)

        return self._compute_once(("precisions", rel), add_up)

    def dcg(self, gain: Callable[[Ints], Floats]) -> Floats:
        """(n, depth): the discounted cumulative gain down to each rank."""
        return self._compute_once(
            ("dcg", gain), lambda: discounted_sums(gain(self.grades))
        )

    def ideal_dcg(self, gain: Callable[[Ints], Floats]) -> Floats:
        """(n, m): the same for all judged documents, best first."""
        return self._compute_once(
            ("ideal", gain), lambda: discounted_sums(gain(self.judged))
        )

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
        depth = width if cutoff is None else min(cutoff, width)
        return running[:, depth - 1]

    def _compute_once(
        self, key: tuple[object, ...], compute: Callable[[], Array]
    ) -> Array:
        if key not in self._computed:
            self._computed[key] = compute()
        return self._computed[key]


def discounted_sums(gains: Floats) -> Floats:
    """(n, width): the running sums of gain / log2(rank + 1)."""
    terms: Floats = gains / [log2(rank + 1) for rank in range(1, gains.shape[1] + 1)]
    return np.cumsum(terms, axis=1, out=terms)


def row_sums(terms: Floats) -> Floats:
    """(n,): each row's sum, added from the left.

    So padding changes no sum; `sum` adds in pairs.
    """
    sums: Floats = np.cumsum(terms, axis=1)[:, -1]
    return sums


def batch_in_order(
    judgments: Sequence[Mapping[str, int]],
    rankings: Sequence[Collection[str]],
    largest: int,
) -> Batch:
    """Return the batch of rankings whose documents are in order, best first.

    Args:
        judgments: document id -> grade, for each query.
        rankings: document ids, for each query, each at most once.
        largest: the largest grade of the whole qrels.
    """
    lengths = _lengths(rankings)
    pairs = zip(judgments, rankings, strict=True)
    grades = _flatten_lookups(
        (map(judged.get, ranking, repeat(UNJUDGED_GRADE)) for judged, ranking in pairs),
        np.int64,
    )
    return Batch(
        grades=_pad(grades, lengths, UNJUDGED_GRADE),
        lengths=lengths,
        judged=_sorted_grades(judgments),
        largest=largest,
    )


def batch_by_score(
    judgments: Sequence[Mapping[str, int]],
    retrieved: Sequence[Mapping[str, float]],
    largest: int,
    *,
    single: bool,
) -> Batch:
    """Return the batch of scored documents in any order.

    They are ranked by score descending, then by document id descending. A document that
    was both judged and returned gets the rank of its score; ids are compared only if
    another document has that score, too.

    Args:
        judgments: document id -> grade, for each query.
        retrieved: document id -> score, for each query.
        largest: the largest grade of the whole qrels.
        single: scores are compared as 32-bit floats, as trec_eval 9.0.8 does, else as
            doubles.

    Raises:
        InputError: a score is not finite.
    """
    lengths = _lengths(retrieved)
    scores = _flatten((scored.values() for scored in retrieved), np.float64)
    if not np.isfinite(scores).all():
        raise InputError("a score is not a finite number")
    labels = _find_retrieved_labels(judgments, retrieved, scores)
    table = _pad(_sort_keys(scores, single=single), lengths, np.inf)
    rows = labels.rows
    ranks, tied = _ranks_in_rows(table, rows, _sort_keys(labels.scores, single=single))
    grades = np.full(table.shape, UNJUDGED_GRADE, dtype=np.int64)
    grades[rows, ranks] = labels.grades
    # Equal scores are rare: only their rankings are sorted by document ids.
    for row in np.unique(rows[tied]).tolist():
        ids = list(retrieved[row])
        descending_ids = sorted(range(len(ids)), key=ids.__getitem__, reverse=True)
        by_id = np.array(descending_ids)
        # A stable sort keeps this order among equal scores.
        by_score = by_id[np.argsort(table[row, by_id], kind="stable")].tolist()
        judged = judgments[row]
        grades[row, : len(ids)] = [
            judged.get(ids[index], UNJUDGED_GRADE) for index in by_score
        ]
    return Batch(grades, lengths, _sorted_grades(judgments), largest)


class RetrievedLabels(NamedTuple):
    """The k documents that are both judged and retrieved."""

    rows: Ints
    """(k,): the ranking of each."""
    grades: Ints
    scores: Floats


def _find_retrieved_labels(
    judgments: Sequence[Mapping[str, int]],
    retrieved: Sequence[Mapping[str, float]],
    scores: Floats,
) -> RetrievedLabels:
    """Return the labels of retrieved documents; the fewer of both are looked up.

    Args:
        judgments: document id -> grade, for each query.
        retrieved: document id -> score, for each query.
        scores: of all that is retrieved, one query after another.
    """
    pairs = zip(judgments, retrieved, strict=True)
    counts = _lengths(retrieved)
    judged_counts = _lengths(judgments)
    if judged_counts.sum() < counts.sum():
        counts = judged_counts
        grades = _flatten((judged.values() for judged in judgments), np.int64)
        scores = _flatten_lookups(
            (map(scored.get, judged, repeat(nan)) for judged, scored in pairs),
            np.float64,
        )
    else:
        grades = _flatten_lookups(
            (
                map(judged.get, scored, repeat(UNJUDGED_GRADE))
                for judged, scored in pairs
            ),
            np.int64,
        )
    rows = np.repeat(np.arange(len(retrieved)), counts)
    matches = np.flatnonzero((grades != UNJUDGED_GRADE) & ~np.isnan(scores))
    return RetrievedLabels(rows[matches], grades[matches], scores[matches])


def _sort_keys(scores: Floats, *, single: bool) -> Array:
    """Return numbers that rise where scores fall, in the comparison's precision.

    Scores beyond 32-bit floats become infinite, and so equal, as in trec_eval.
    """
    with np.errstate(over="ignore"):
        return np.negative(
            scores, dtype=np.float32 if single else np.float64, casting="same_kind"
        )


class RowRanks(NamedTuple):
    """The rank of some numbers in their rows."""

    ranks: Ints
    """(k,): how many numbers of its row each exceeds."""
    tied: Bools
    """(k,): whether its row has the same number twice."""


def _ranks_in_rows(table: Array, rows: Ints, keys: Array) -> RowRanks:
    """Return the ranks of numbers in the rows of a table, by binary search.

    Args:
        table: (n, width), in any order.
        rows: (k,): the row of each number, which contains it.
        keys: (k,): the numbers.
    """
    # A power of two, so that each step halves every row alike. It is wider than the
    # table: an infinity ends each row, with which its last number is compared below.
    width = 1 << table.shape[1].bit_length()
    rising = np.full((len(table), width), np.inf, dtype=table.dtype)
    rising[:, : table.shape[1]] = table
    rising.sort(axis=1)
    flat = rising.ravel()
    positions = rows * width
    step = width // 2
    while step:
        positions += step * (flat[positions + (step - 1)] < keys)
        step //= 2
    return RowRanks(positions - rows * width, flat[positions + 1] == keys)


def _lengths(rows: Sequence[Sized]) -> Ints:
    return np.fromiter(map(len, rows), np.int64, len(rows))


def _flatten(rows: Iterable[Iterable[float]], kind: type) -> Array:
    """Return the numbers of all rows, one row after another."""
    return np.fromiter(chain.from_iterable(rows), kind)


def _flatten_lookups(rows: Iterable[Iterable[float]], kind: type) -> Array:
    """Return the numbers of all rows as one array; rows may be generators.

    A list first is quicker, since NumPy does not wait between the look-ups.
    """
    return np.fromiter([*chain.from_iterable(rows)], kind)


def _sorted_grades(judgments: Sequence[Mapping[str, int]]) -> Ints:
    """Return the grades of each query, descending and padded: (n, m)."""
    grades = _flatten((judged.values() for judged in judgments), np.int64)
    padded = _pad(grades, _lengths(judgments), UNJUDGED_GRADE)
    descending: Ints = np.sort(padded, axis=1)[:, ::-1]
    return descending


def _pad(flat: Array, lengths: Ints, fill: float) -> Array:
    """Return rows of the given lengths, padded to the longest (at least 1)."""
    width = int(lengths.max(initial=1))
    if flat.size == len(lengths) * width:
        return flat.reshape(len(lengths), width)
    table = np.full((len(lengths), width), fill, dtype=flat.dtype)
    table[np.arange(width) < lengths[:, None]] = flat
    return table
