"""Figures that accompany the verdict on a pair."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

from harness.records import Results
from harness.scoring.scores import RankedIds, Scores
from harness.scoring.stored_scores import rankings_by_retriever
from harness.stats.differences import paired_differences
from harness.stats.rank_overlap import mean_rank_overlap
from harness.stats.signed_rank import effect_size

DEFAULT_CUTOFF = 10
"""The number of first hits if the primary measure has no cutoff.

It is used for documents in common, documents to judge, and successes.
"""
MAX_PAIR_QUERIES = 40_000
"""Pairs times queries to inspect: about three seconds of one core at 2,000 queries."""


class RankingsOverlap(NamedTuple):
    """The overlap of two retrievers' rankings, over all queries that both have.

    Two empty rankings are the same. All values are 0 without such a query.
    """

    a: str
    b: str
    common: float
    """The mean number of documents that are among the first ten of both."""
    rbo: float
    """The mean rank-biased overlap of the two lists, p = 0.9: 1 for the same list.

    It is extrapolated: below their ends the lists are assumed to agree as much.
    """
    same_first: float
    """The share of the queries with the same first document."""
    top: float
    """The mean share of the first ten in common.

    If both lists are shorter than ten, the share of the longer one.
    """


def ranking_overlaps(results: Results) -> Iterator[RankingsOverlap]:
    """Compare each two retrievers of a results folder, in the experiment's order."""
    rankings = {
        name: read_rankings()
        for name, read_rankings in rankings_by_retriever(results).items()
    }
    for a, b in combinations(rankings, 2):
        yield ranking_overlap(a, b, rankings)


def ranking_overlap(
    a: str, b: str, rankings: Mapping[str, RankedIds]
) -> RankingsOverlap:
    """Compare the rankings of two retrievers.

    Args:
        a: one of them.
        b: the other.
        rankings: retriever -> query id -> document ids, best first.
    """
    ranking_pairs: list[tuple[Sequence[str], Sequence[str]]] = []
    common = 0
    same_first = 0
    for query_id, ranking_a in rankings[a].items():
        ranking_b = rankings[b].get(query_id)
        if ranking_b is None:
            continue
        ranking_pairs.append((ranking_a, ranking_b))
        common += len({*ranking_a[:DEFAULT_CUTOFF]} & {*ranking_b[:DEFAULT_CUTOFF]})
        same_first += ranking_a[:1] == ranking_b[:1]
    n = len(ranking_pairs) or 1
    means = mean_rank_overlap(ranking_pairs)
    return RankingsOverlap(
        a,
        b,
        common=common / n,
        rbo=0.0 if means is None else means.extrapolated,
        same_first=same_first / n,
        top=0.0 if means is None else means.top,
    )


class PairDiagnostics(NamedTuple):
    """Further figures of a pair, on the primary measure."""

    a: str
    b: str
    effect_size: float | None
    """The rank-biserial correlation; None if no query differs."""
    top_10_in_common: float | None
    """Share of the first ten stored hits in common; None if there are only scores."""
    rbo: float | None
    """Rank-biased overlap of all stored hits; None if there are only scores."""


def pairs_to_inspect(
    names: Sequence[str], baseline: str | None, n: int, limit: int = MAX_PAIR_QUERIES
) -> list[tuple[str, str]]:
    """Return the pairs to inspect: all, or as many as there is time for.

    The leader's are first, then the baseline's.

    Args:
        names: the retrievers by their means, highest first.
        baseline: the declared one.
        n: queries.
        limit: pairs times queries.

    >>> pairs_to_inspect(("a", "b", "c", "d"), "d", n=10, limit=50)
    [('a', 'd'), ('a', 'b'), ('a', 'c'), ('b', 'd'), ('c', 'd')]
    """
    pairs = list(combinations(names, 2))
    leader = names[0] if names else ""
    pairs.sort(key=lambda pair: (leader not in pair, baseline not in pair))
    return pairs[: max(1, limit // max(1, n))]


def diagnose_pairs(
    scores: Scores, pairs: Sequence[tuple[str, str]]
) -> list[PairDiagnostics]:
    """Return the further figures of pairs, compared or not, in their order.

    Empty if no query has a value from every retriever.

    Args:
        scores: queries for which the primary measure is undefined for a retriever are
            left out.
        pairs: the pairs.
    """
    complete = scores.select_queries(scores.defined(scores.primary))
    if not pairs or not complete.n:
        return []
    columns = complete.values[complete.primary]
    units = complete.units
    rankings: dict[str, RankedIds] = {}
    for name in dict.fromkeys(chain.from_iterable(pairs)):
        if name in complete.rankings:
            rankings[name] = complete.rankings[name]()
    diagnostics: list[PairDiagnostics] = []
    for a, b in pairs:
        differences = paired_differences(
            units.means(columns[a]), units.means(columns[b])
        )
        size = effect_size(differences)
        if a in rankings and b in rankings:
            overlap = ranking_overlap(a, b, rankings)
            diagnostics.append(PairDiagnostics(a, b, size, overlap.top, overlap.rbo))
        else:
            diagnostics.append(PairDiagnostics(a, b, size, None, None))
    return diagnostics
