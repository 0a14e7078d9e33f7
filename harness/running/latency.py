"""How long one query takes, as a user feels it: one at a time, after a warm-up, the cache bypassed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from harness.records import StageLatency
from retrievers.meter import Meter
from retrievers.types import Query

WARM_UP = 3
"""Queries that are answered first and not counted."""
Timed = Callable[[Query], Mapping[str, float]]
"""Answers one query and returns the seconds of each stage."""


BILLED = ("calls", "tokens", "usd", "retries")
"""What a timed answer costs, which its retriever has to bear; what it counts besides is the clock's business alone."""


def time_call(stage: str, answer: Callable[[Meter], object], meter: Meter) -> dict[str, float]:
    """Answer once, and return the seconds by stage.

    Args:
        stage: what the whole time is booked to where the call opens no stage of its own.
        answer: is given a meter of its own, which shares the retriever's budget.
        meter: the retriever's; what the answer cost is counted in it.
    """
    alone = Meter(meter.budget)
    started = time.perf_counter()
    try:
        answer(alone)
    finally:
        seconds = time.perf_counter() - started
        for totals in alone.stages().values():
            meter.count(**{name: number for name, number in totals.counts.items() if name in BILLED})
    timed = {name: totals.seconds for name, totals in alone.stages().items() if totals.seconds}
    return timed or {stage: seconds}


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
    seconds = [timed(query) for query in chosen]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    percentiles = {}
    for stage in dict.fromkeys(stage for one in seconds for stage in one):
        taken = [one.get(stage, 0.0) for one in seconds]  # a query may pass a stage that another does not need
        p50, p95, p99 = (1000 * np.quantile(taken, [0.5, 0.95, 0.99])).tolist()
        percentiles[stage] = StageLatency(p50, p95, p99, now)
    return percentiles
