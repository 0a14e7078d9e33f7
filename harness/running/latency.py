"""Percentiles of the seconds that single queries take."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from harness.preflight.latency_queries import LatencyQueries
from harness.records import StageLatency
from retrievers.meter import Meter
from retrievers.types import Query

TimeQuery = Callable[[Query], Mapping[str, float]]
"""Answers one query and returns the seconds of each stage."""
BILLED_COUNTS = ("calls", "tokens", "usd", "retries")
"""Counts of a timed answer that are added to those of its retriever."""


def measure_latency(
    queries: LatencyQueries,
    time_query: TimeQuery,
    *,
    max_seconds: float = math.inf,
) -> dict[str, StageLatency]:
    """Time some queries one at a time, after those that warm up.

    Args:
        queries: in the order in which they are sent.
        time_query: answers one query.
        max_seconds: after these no further query is sent; one is always timed.

    Returns:
        Stage -> percentiles in milliseconds.
    """
    end = time.perf_counter() + max_seconds
    for query in queries.warm_up:
        if time.perf_counter() < end:
            time_query(query)
    seconds_by_query: list[Mapping[str, float]] = []
    for query in queries.timed:
        if not seconds_by_query or time.perf_counter() < end:
            seconds_by_query.append(time_query(query))
    stages = dict.fromkeys(stage for seconds in seconds_by_query for stage in seconds)
    latencies: dict[str, StageLatency] = {}
    for stage in stages:
        # A query may pass a stage that another does not need.
        seconds = [by_stage.get(stage, 0.0) for by_stage in seconds_by_query]
        latencies[stage] = stage_latency(seconds)
    return latencies


def stage_latency(seconds: Sequence[float]) -> StageLatency:
    """Return the percentiles, in milliseconds, of seconds that were measured now."""
    p50, p95, p99 = (1000 * np.quantile(seconds, [0.5, 0.95, 0.99])).tolist()
    measured_at = datetime.now(UTC).isoformat(timespec="seconds")
    return StageLatency(p50, p95, p99, measured_at)


def time_call(
    stage: str, answer: Callable[[Meter], object], meter: Meter
) -> dict[str, float]:
    """Answer once, and return the seconds by stage.

    Args:
        stage: of the whole time, if the call opens no stage of its own.
        answer: receives a meter of its own, which shares the retriever's budget.
        meter: the retriever's, which counts what the answer costs.
    """
    call_meter = Meter(meter.budget)
    started = time.perf_counter()
    try:
        answer(call_meter)
    finally:
        seconds = time.perf_counter() - started
        for totals in call_meter.stages().values():
            billed = {
                count: number
                for count, number in totals.counts.items()
                if count in BILLED_COUNTS
            }
            meter.count(**billed)
    stage_seconds = {
        call_stage: totals.seconds
        for call_stage, totals in call_meter.stages().items()
        if totals.seconds
    }
    return stage_seconds or {stage: seconds}
