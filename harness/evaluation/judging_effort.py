"""The time to label the rankings.

Without labels nothing is decided: this says how much there is to judge, and with which
command.
"""

from typing import NamedTuple

from harness.english import count_of
from harness.evaluation.judging_pace import SECONDS_PER_JUDGMENT
from harness.evaluation.pair_diagnostics import DEFAULT_CUTOFF
from harness.records import Results
from harness.records.staging import quoted_folder
from harness.scoring.stored_scores import rankings_by_retriever

MAX_LISTED_QUERIES = 10
"""Queries that the output lists, those with most documents to judge first."""
MAX_SAMPLED_QUERIES = 30
"""Queries beyond which a sample is proposed."""
POOL_DEPTH = 5
"""Hits of each retriever that are proposed to be labelled."""


class QueryEffort(NamedTuple):
    """A query, and how many documents people would judge."""

    query_id: str
    documents: int


class JudgingEffort(NamedTuple):
    """The effort to judge these rankings, and where it is most useful."""

    pairs: int
    """Pairs of a query and a document among the first hits of any retriever for it."""
    queries: tuple[QueryEffort, ...]
    """At most ten queries, those with most documents to judge first."""

    @property
    def time(self) -> str:
        """How long the judging takes, at twenty seconds a judgment."""
        return judging_time(self.pairs)


class SampledEffort(NamedTuple):
    """The effort to judge what the proposed command draws."""

    queries: int
    pairs: int
    """Pairs of a query and a document."""

    @property
    def time(self) -> str:
        """How long the judging takes, at twenty seconds a judgment."""
        return judging_time(self.pairs)


def judging_time(pairs: int) -> str:
    """Return how long the judgments take: minutes, at least one, below an hour.

    >>> judging_time(12), judging_time(360)
    ('4 minutes', '2 hours')
    >>> judging_time(179)
    '1 hour'
    """
    minutes = pairs * SECONDS_PER_JUDGMENT / 60
    if round(minutes) >= 60:
        hours = f"{minutes / 60:,.1f}".removesuffix(".0")
        return f"{hours} hour" if hours == "1" else f"{hours} hours"
    return count_of(max(1, round(minutes)), "minute")


def sampled_effort(results: Results) -> SampledEffort:
    """Return the effort of the proposed command, from the mean of all queries."""
    queries = min(MAX_SAMPLED_QUERIES, len(results.queries))
    pairs = judging_effort(results, POOL_DEPTH).pairs
    sampled_pairs = round(pairs * queries / max(1, len(results.queries)))
    return SampledEffort(queries, sampled_pairs)


def judging_effort(results: Results, depth: int = DEFAULT_CUTOFF) -> JudgingEffort:
    """Count the pairs to judge, and list the queries with most of them.

    Args:
        results: the rankings.
        depth: first hits of each retriever; by default those that reports compare,
            which are more than those of the proposed command.
    """
    pools: dict[str, set[str]] = {query_id: set() for query_id in results.queries}
    for read_rankings in rankings_by_retriever(results).values():
        for query_id, documents in read_rankings().items():
            pools[query_id].update(documents[:depth])
    pooled = [QueryEffort(query_id, len(pool)) for query_id, pool in pools.items()]
    pooled.sort(key=lambda query: (-query.documents, query.query_id))
    pairs = sum(query.documents for query in pooled)
    return JudgingEffort(pairs, tuple(pooled[:MAX_LISTED_QUERIES]))


def pool_command(results: Results) -> str:
    """Return the command that draws pairs to judge from these rankings."""
    sample = ""
    if len(results.queries) > MAX_SAMPLED_QUERIES:
        sample = f" --sample {MAX_SAMPLED_QUERIES}"
    folder = quoted_folder(results.folder)
    return f"harness pool {folder} --depth {POOL_DEPTH}{sample} --seed 1"
