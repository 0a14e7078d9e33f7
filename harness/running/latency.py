"""How long one query takes, as a user feels it: one at a time, after a warm-up, the cache bypassed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from harness.records import StageLatency
from retrievers.types import Query

WARM_UP = 3
"""Queries that are answered first and not counted."""
Timed = Callable[[Query], Mapping[str, float]]
"""Answers one query and returns the seconds of each stage."""


class Stopwatch:
    """Splits one answer into stages.

    >>> watch = Stopwatch()
    >>> watch.split("search")
    >>> list(watch.seconds)
    ['search']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def split(self, stage: str) -> None:
        """Book the time since the last split to a stage."""
        now = time.perf_counter()
        self.seconds[stage] = now - self._last
        self._last = now


def sampled(queries: Sequence[Query], sample: int) -> tuple[Sequence[Query], Sequence[Query]]:
    """Return the queries that are asked first and not counted, and those that are timed: evenly spread over all."""
    count = min(sample, len(queries))
    chosen = [queries[i * len(queries) // count] for i in range(count)]
    return chosen[:WARM_UP], chosen


def measure(queries: Sequence[Query], sample: int, timed: Timed) -> dict[str, StageLatency]:
    """Ask some queries one at a time, evenly spread over all of them.

    Args:
        queries: in the data set's order.
        sample: how many to time; all of them if there are fewer.
        timed: answers one query.

    Returns:
        Percentiles by stage, in milliseconds.
    """
    warm_up, chosen = sampled(queries, sample)
    for query in warm_up:
        timed(query)
    told = [timed(query) for query in chosen]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    found = {}
    for stage in told[0]:
        p50, p95, p99 = (1000 * np.quantile([one[stage] for one in told], [0.5, 0.95, 0.99])).tolist()
        found[stage] = StageLatency(p50, p95, p99, now)
    return found
