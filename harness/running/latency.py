"""Single queries timed."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from harness.build.built_retriever import BuiltRetriever
from harness.preflight.embedding import latency_queries
from harness.records import StageLatency
from harness.running.context import RunContext
from retrievers.meter import Meter
from retrievers.types import Query, Retriever

TimeQuery = Callable[[Query], Mapping[str, float]]
"""Answers one query and returns the seconds of each stage."""


BILLED_COUNTS = ("calls", "tokens", "usd", "retries")
"""What a timed answer costs, which its retriever has to bear; what it counts besides is the clock's business alone."""


def time_call(
    stage: str, answer: Callable[[Meter], object], meter: Meter
) -> dict[str, float]:
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
            meter.count(
                **{
                    name: number
                    for name, number in totals.counts.items()
                    if name in BILLED_COUNTS
                }
            )
    timed = {
        name: totals.seconds
        for name, totals in alone.stages().items()
        if totals.seconds
    }
    return timed or {stage: seconds}


def measure_latency(
    queries: Sequence[Query], sample: int, timed: TimeQuery
) -> dict[str, StageLatency]:
    """Ask some queries one at a time, evenly spread over all of them.

    Args:
        queries: in the data set's order.
        sample: how many to time; all of them if there are fewer.
        timed: answers one query.

    Returns:
        Percentiles by stage, in milliseconds.
    """
    warm_up, chosen = latency_queries(queries, sample)
    for query in warm_up:
        timed(query)
    seconds = [timed(query) for query in chosen]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    percentiles = {}
    for stage in dict.fromkeys(stage for one in seconds for stage in one):
        taken = [
            one.get(stage, 0.0) for one in seconds
        ]  # a query may pass a stage that another does not need
        p50, p95, p99 = (1000 * np.quantile(taken, [0.5, 0.95, 0.99])).tolist()
        percentiles[stage] = StageLatency(p50, p95, p99, now)
    return percentiles


def time_retriever(
    one: BuiltRetriever, retriever: Retriever, shared: RunContext, meter: Meter
) -> dict[str, StageLatency]:
    """Time some queries one at a time, each a step of progress."""

    def timed(query: Query) -> Mapping[str, float]:
        seconds = time_call(
            "search", lambda alone: retriever.answer(query, shared.depth, alone), meter
        )
        meter.step()
        return seconds

    queries = one.conversation_queries(shared.dataset.queries)
    with meter.stage(
        "latency", total=sum(map(len, latency_queries(queries, shared.latency_sample)))
    ):
        return measure_latency(queries, shared.latency_sample, timed)
