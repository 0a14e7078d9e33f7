"""Queries that look like paraphrases of each other: the tests would count one need several times."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from harness.dataset import Labels
from retrievers.types import Query

SAMPLE = 2_000
"""Queries, at most, that are compared."""
GRAM = 3
"""Letters that are compared together: words are not separated in every language."""
ALIKE = 0.6
"""Share of all runs of letters of two queries that both have, from which on they look like paraphrases."""
ALIKE_SAME_LABELS = 0.2
"""The same for two queries with the same relevant documents."""
MANY = 0.4
"""Share of the queries from which on it is many.

Calibrated with benchmarks/paraphrases.py. Right alarms: thirteen needs asked five times each, which a language model
wrote, 82 % alike in English and 60 % in Japanese (asked twice: 100 and 69 %); where only half of the queries are such,
41 % (alarm) and 30 % (none). False alarms: none among the survey templates (0 % in both languages), Cranfield (4 %),
SciFact (26 %: many of its claims come with their opposite) and JSQuAD (32 %: several questions on one paragraph). With
shares of 0.3 and 0.2, the first guess, SciFact and JSQuAD raised alarms. Without labels paraphrases in other words stay
unseen: 26 and 3 %, no alarm.
"""


class Paraphrases(NamedTuple):
    """Queries that look like paraphrases of another one."""

    compared: int
    queries: tuple[str, ...]
    """Their ids, in the order of the queries."""
    example: tuple[str, str] | None
    """The first two that look alike."""

    def warning(self) -> str:
        """Return the warning, "" where they are few."""
        if self.example is None or len(self.queries) < MANY * self.compared:
            return ""
        first, second = self.example
        return (
            f"{len(self.queries):,} of {self.compared:,} queries look like paraphrases of another, such as {first} and "
            f'{second}: they are no separate observations. Declare the field that they share: cluster = "field" '
            "under [statistics]"
        )


def paraphrases(queries: Sequence[Query], labels: Mapping[str, Labels]) -> Paraphrases:
    """Find queries that share most runs of letters with another, or some of them and all relevant documents.

    It sees words, not meanings: paraphrases without common words and without the same labels are not found.

    Args:
        queries: of more than 2,000, those whose hashed ids are the smallest are compared.
        labels: query id -> its labels.
    """
    some = set(sorted((query.id for query in queries), key=_hash)[:SAMPLE])
    kept = [query for query in queries if query.id in some and query.text.strip()]
    if len(kept) < 2:
        return Paraphrases(len(kept), (), None)
    likeness = _likeness([query.text for query in kept])
    relevant = [frozenset(labels[query.id].relevant) if query.id in labels else frozenset() for query in kept]
    numbers = {group: number for number, group in enumerate(dict.fromkeys(relevant))}
    groups = np.array([numbers[group] for group in relevant])
    labelled = np.array([bool(group) for group in relevant])
    same = (groups[:, None] == groups[None, :]) & labelled[:, None]
    alike = (likeness >= ALIKE) | (same & (likeness >= ALIKE_SAME_LABELS))
    np.fill_diagonal(alike, val=False)
    places = np.flatnonzero(alike.any(axis=1))
    if not len(places):
        return Paraphrases(len(kept), (), None)
    example = kept[places[0]].id, kept[int(alike[places[0]].argmax())].id
    return Paraphrases(len(kept), tuple(kept[place].id for place in places), example)


def _likeness(texts: Sequence[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the Jaccard similarity of each two texts, (n, n)."""
    grams = [_grams(text) for text in texts]
    places = {gram: place for place, gram in enumerate(dict.fromkeys(gram for one in grams for gram in sorted(one)))}
    rows = np.repeat(np.arange(len(grams)), [len(one) for one in grams])
    columns = np.array([places[gram] for one in grams for gram in one])
    held = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(grams), len(places)))
    common = (held @ held.T).toarray()
    sizes = common.diagonal()
    shares: np.ndarray[tuple[int, int], np.dtype[np.float64]] = common / (sizes[:, None] + sizes[None, :] - common)
    return shares


def _grams(text: str) -> set[str]:
    """Return the runs of three letters of a text, its words set apart by single spaces.

    >>> sorted(_grams("A  cat"))
    [' a ', ' ca', 'a c', 'at ', 'cat']
    """
    plain = f" {' '.join(text.casefold().split())} "
    return {plain[i : i + GRAM] for i in range(max(1, len(plain) - GRAM + 1))}


def _hash(id_: str) -> bytes:
    return hashlib.blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=8).digest()
