"""The queries that are timed."""

from collections.abc import Sequence
from typing import NamedTuple

from retrievers.types import Query

WARM_UP_QUERIES = 3
"""Queries that are sent once without being timed, before all are timed."""


class LatencyQueries(NamedTuple):
    """The queries that are sent one at a time."""

    warm_up: Sequence[Query]
    """The first of `timed`: they are sent once before, and not timed then."""
    timed: Sequence[Query]


def latency_queries(queries: Sequence[Query], sample: int) -> LatencyQueries:
    """Choose the queries that are timed: evenly spread over all of them.

    Args:
        queries: all of them.
        sample: how many, at most; 0 for none.
    """
    count = min(sample, len(queries))
    chosen = [queries[i * len(queries) // count] for i in range(count)]
    return LatencyQueries(chosen[:WARM_UP_QUERIES], chosen)
