"""Figures beside the verdict on a pair."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from harness.records import Results
from harness.scoring.scores import RankedIds, Scores
from harness.scoring.stored_scores import rankings_by_retriever
from harness.stats.differences import paired_differences
from harness.stats.rank_overlap import mean_rank_overlap
from harness.stats.signed_rank import effect_size

DEFAULT_CUTOFF = 10
"""First hits: what rankings have in common, what is judged; a success, where the primary measure has no cutoff."""


class RankingsOverlap(NamedTuple):
    """Two retrievers, over all queries that both answered."""

    a: str
    b: str
    common: float
    """The mean number of documents that are among the first ten of both."""
    rbo: float
    """The mean rank-biased overlap of the two lists, p = 0.9, as if both went on agreeing: 1 for the same list."""
    same_first: float
    """The share of the queries with the same first document."""
    top: float
    """The mean share of the first ten in common; of shorter lists, of as many as the longer one has."""


def ranking_overlaps(results: Results) -> Iterator[RankingsOverlap]:
    """Compare each two retrievers of a results folder, in the experiment's order."""
    lists = {name: read() for name, read in rankings_by_retriever(results).items()}
    for a, b in combinations(lists, 2):
        yield ranking_overlap(a, b, lists)


def ranking_overlap(a: str, b: str, lists: Mapping[str, RankedIds]) -> RankingsOverlap:
    """Compare two retrievers.

    Args:
        a: one of them.
        b: the other.
        lists: retriever -> query id -> document ids, best first.
    """
    pairs = [
        (lists[a][query], lists[b][query]) for query in lists[a] if query in lists[b]
    ]
    n = len(pairs) or 1
    return RankingsOverlap(
        a,
        b,
        common=sum(
            len(set(x[:DEFAULT_CUTOFF]) & set(y[:DEFAULT_CUTOFF])) for x, y in pairs
        )
        / n,
        rbo=means.extrapolated if (means := mean_rank_overlap(pairs)) else 0.0,
        same_first=sum(x[:1] == y[:1] for x, y in pairs) / n,
        top=means.top if means else 0.0,
    )


MAX_PAIR_QUERIES = 40_000
"""Pairs times queries that are looked at: about three seconds of one core at 2,000 queries."""


class PairDiagnostics(NamedTuple):
    """What there is to say about a pair beside its verdict, on the primary measure."""

    a: str
    b: str
    effect_size: float | None
    """The rank-biserial correlation; None where no query differs."""
    top_10_in_common: float | None
    """Share of the first ten, of the rankings as deep as they were kept; None where scores are all there is."""
    rbo: float | None
    """Rank-biased overlap of the same."""


def pairs_to_inspect(
    names: Sequence[str], baseline: str | None, n: int, most: int = MAX_PAIR_QUERIES
) -> list[tuple[str, str]]:
    """Return the pairs to look at: all, or as many as can be looked at, the leader's first, then the baseline's.

    Args:
        names: the retrievers by their means, highest first.
        baseline: the declared one.
        n: queries.
        most: pairs times queries.

    >>> pairs_to_inspect(("a", "b", "c", "d"), "d", n=10, most=50)
    [('a', 'd'), ('a', 'b'), ('a', 'c'), ('b', 'd'), ('c', 'd')]
    """
    pairs = list(combinations(names, 2))
    leader = names[0] if names else ""
    pairs.sort(key=lambda pair: (leader not in pair, baseline not in pair))
    return pairs[: max(1, most // max(1, n))]


def diagnose_pairs(
    scores: Scores, pairs: Sequence[tuple[str, str]]
) -> list[PairDiagnostics]:
    """Return the evidence on pairs, compared or not.

    Args:
        scores: queries for which the primary measure is undefined for one are left out.
        pairs: whom to look at.
    """
    scores = scores.select_queries(scores.defined(scores.primary))
    if not pairs or not scores.n:
        return []
    units, group = scores.units, scores.values[scores.primary]
    lists = {
        name: scores.rankings[name]()
        for name in {name for pair in pairs for name in pair}
        if name in scores.rankings
    }
    found = []
    for a, b in pairs:
        size = effect_size(
            paired_differences(units.means(group[a]), units.means(group[b]))
        )
        both = ranking_overlap(a, b, lists) if a in lists and b in lists else None
        found.append(PairDiagnostics(a, b, size, both and both.top, both and both.rbo))
    return found
