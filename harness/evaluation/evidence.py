"""Evidence beside the verdicts: effect sizes, what two rankings have in common."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from shlex import quote
from typing import NamedTuple

from harness.english import counted
from harness.evaluation.readers import lists_of
from harness.evaluation.scores import Lists, Scores
from harness.records import Results
from harness.stats.agreement import mean_overlap
from harness.stats.differences import differences
from harness.stats.signed_rank import effect_size

CUTOFF = 10


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


def overlaps(results: Results) -> Iterator[RankingsOverlap]:
    """Compare each two retrievers of a results folder, in the experiment's order."""
    lists = {name: read() for name, read in lists_of(results).items()}
    for a, b in combinations(lists, 2):
        yield overlap_of(a, b, lists)


def overlap_of(a: str, b: str, lists: Mapping[str, Lists]) -> RankingsOverlap:
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
        same_first=sum(x[:1] == y[:1] for x, y in pairs) / n,
        top=means.top if means else 0.0,
    )


SECONDS = 20
"""What a person takes for a judgment."""


class ToJudge(NamedTuple):
    """What judging these rankings takes, and where it tells most."""

    pairs: int
    """Different documents among the first ten of any retriever, over all queries."""
    queries: tuple[tuple[str, int], ...]
    """Those whose rankings have least in common, each with its number of documents: at most ten."""

    @property
    def time(self) -> str:
        """At twenty seconds a judgment: minutes below an hour."""
        minutes = self.pairs * SECONDS / 60
        return f"{minutes / 60:.1f} hours" if minutes >= 60 else counted(max(1, round(minutes)), "minute")


def to_judge(results: Results) -> ToJudge:
    """Count what people would judge, and name the queries on which the retrievers differ most."""
    pools: dict[str, set[str]] = {query: set() for query in results.queries}
    for read in lists_of(results).values():
        for query, documents in read().items():
            pools[query].update(documents[:CUTOFF])
    order = sorted(pools, key=lambda query: (-len(pools[query]), query))
    return ToJudge(sum(map(len, pools.values())), tuple((query, len(pools[query])) for query in order[:10]))


def next_step(results: Results) -> str:
    """What to do with rankings that have no labels."""
    n = len(results.queries)
    sample = f" --sample {min(n, 60)}" if n > 60 else ""
    # A run writes its page before its folder is put in place.
    folder = results.folder.with_name(results.folder.name.removesuffix(".unfinished"))
    return f"harness pool {quote(folder.as_posix())} --depth 10{sample} --seed 1"


MOST = 40_000
"""Pairs times queries that are looked at: about three seconds of one core at 2,000 queries."""


class PairEvidence(NamedTuple):
    """What there is to say about a pair beside its verdict, on the primary measure."""

    a: str
    b: str
    effect_size: float | None
    """The rank-biserial correlation; None where no query differs."""
    top_10_in_common: float | None
    """Share of the first ten, of the rankings as deep as they were kept; None where scores are all there is."""
    rbo: float | None
    """Rank-biased overlap of the same."""


def pairs_by_weight(names: Sequence[str], baseline: str | None, n: int, most: int = MOST) -> list[tuple[str, str]]:
    """Return the pairs to look at: all, or as many as can be looked at, the leader's first, then the baseline's.

    Args:
        names: the retrievers by their means, highest first.
        baseline: the declared one.
        n: queries.
        most: pairs times queries.
    """
    pairs = list(combinations(names, 2))
    leader = names[0] if names else ""
    pairs.sort(key=lambda pair: (leader not in pair, baseline not in pair))
    return pairs[: max(1, most // max(1, n))]


def evidence(scores: Scores, pairs: Sequence[tuple[str, str]]) -> list[PairEvidence]:
    """Return the evidence on pairs, compared or not.

    Args:
        scores: queries for which the primary measure is undefined for one are left out.
        pairs: whom to look at.
    """
    scores = scores.only(scores.defined(scores.primary))
    if not pairs or not scores.n:
        return []
    units, group = scores.units, scores.values[scores.primary]
    lists = {name: scores.lists[name]() for name in {name for pair in pairs for name in pair} if name in scores.lists}
    found = []
    for a, b in pairs:
        size = effect_size(differences(units.means(group[a]), units.means(group[b])))
        both = overlap_of(a, b, lists) if a in lists and b in lists else None
        found.append(PairEvidence(a, b, size, both and both.top, both and both.rbo))
    return found
