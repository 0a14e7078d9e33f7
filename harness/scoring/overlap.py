"""How far retrievers find the same: what can be said of rankings before anybody has judged them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from shlex import quote
from typing import NamedTuple

from harness.records import Results
from harness.stats import mean_overlap

CUTOFF = 10


class RankingsOverlap(NamedTuple):
    """Two retrievers, over all queries that both answered."""

    a: str
    b: str
    common: float
    """The mean number of documents that are among the first ten of both."""
    rbo: float
    """The mean rank-biased overlap of the two lists, p = 0.9, as if both went on agreeing: 1 for the same list."""
    residual: float
    """How much the ranks that nobody has seen could add to what is certain."""
    same_first: float
    """The share of the queries with the same first document."""
    top: float
    """The mean share of the first ten in common; of shorter lists, of as many as the longer one has."""


def overlaps(results: Results) -> Iterator[RankingsOverlap]:
    """Compare each two retrievers of a results folder, in the experiment's order."""
    lists = {name: answers_of(results, name) for name in results.retrievers}
    for a, b in combinations(lists, 2):
        yield overlap_of(a, b, lists)


def answers_of(results: Results, retriever: str) -> dict[str, Sequence[str]]:
    """Return what a retriever answered: query id -> document ids, best first."""
    return {query: ranking.doc_ids for query, ranking in results.answers(retriever)}


def overlap_of(a: str, b: str, lists: Mapping[str, Mapping[str, Sequence[str]]]) -> RankingsOverlap:
    """Compare two retrievers.

    Args:
        a: one of them.
        b: the other.
        lists: retriever -> query id -> document ids, best first.
    """
    pairs = [(lists[a][query], lists[b][query]) for query in lists[a] if query in lists[b]]
    n = len(pairs) or 1
    return RankingsOverlap(
        a,
        b,
        common=sum(len(set(x[:CUTOFF]) & set(y[:CUTOFF])) for x, y in pairs) / n,
        rbo=means.extrapolated if (means := mean_overlap(pairs)) else 0.0,
        residual=means.residual if means else 1.0,
        same_first=sum(x[:1] == y[:1] for x, y in pairs) / n,
        top=means.top if means else 0.0,
    )


def next_step(results: Results) -> str:
    """What to do with rankings that nobody has judged."""
    n = len(results.queries)
    sample = f" --sample {min(n, 60)}" if n > 60 else ""
    # A run writes its page before its folder is put in place.
    folder = results.folder.with_name(results.folder.name.removesuffix(".unfinished"))
    return f"harness pool {quote(folder.as_posix())} --depth 10{sample} --seed 1"
