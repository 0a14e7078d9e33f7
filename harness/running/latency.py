"""Single queries timed."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from harness.build.built_retriever import BuiltRetriever, without_filter
from harness.preflight.latency_queries import LatencyQueries, latency_queries
from harness.records import StageLatency
from harness.running.context import RunContext
from retrievers.meter import Meter
from retrievers.types import Query, Ranking, Retriever

TimeQuery = Callable[[Query], Mapping[str, float]]
"""Answers one query and returns the seconds of each stage."""
DEFAULT_SECONDS = 10.0
"""Seconds for which a retriever is timed, at most, if the experiment names none."""
BILLED_COUNTS = ("calls", "tokens", "usd", "retries")
"""Counts of a timed answer that its retriever bears."""


def is_timed(built: BuiltRetriever, context: RunContext) -> bool:
    """Whether single queries of a retriever, which has answered, are timed now.

    They are not timed if an earlier run timed them. If the experiment does not ask for
    it, only retrievers are timed that cost nothing, call no other program and have
    their models loaded.
    """
    if not context.latency_sample or context.latencies.get(built.name):
        return False
    return context.times_services or all(part.answers_here for part in built.own_parts)


def request_latency(
    built: BuiltRetriever, context: RunContext, meter: Meter
) -> dict[str, StageLatency]:
    """Return the latency of the requests of a run that sent each query by itself.

    Empty if fewer queries were sent than would be timed, or if a query passes other
    stages too.
    """
    is_single = len(built.own_parts) == 1 and without_filter(built.retriever).own_index
    queries = min(context.latency_sample, len(context.dataset.queries))
    if not is_single or not queries:
        return {}
    return {
        stage: _percentiles(seconds, _now())
        for stage, seconds in meter.request_seconds().items()
        if len(seconds) >= queries
    }


def time_retriever(
    built: BuiltRetriever,
    retriever: Retriever,
    context: RunContext,
    meter: Meter,
    *,
    on_answer: Callable[[Query, Ranking], None],
) -> dict[str, StageLatency]:
    """Time some queries one at a time; each is a step of progress.

    Args:
        built: the retriever of the experiment.
        retriever: the same, its parts having answered.
        context: of the run.
        meter: of the retriever.
        on_answer: called with each query and its answer, outside of its time.
    """

    def time_query(query: Query) -> Mapping[str, float]:
        answers: list[Ranking] = []

        def answer(query_meter: Meter) -> None:
            answers.append(retriever.answer(query, context.depth, query_meter))

        seconds = time_call("search", answer, meter)
        for ranking in answers:
            on_answer(query, ranking)
        meter.step()
        return seconds

    queries = latency_queries(
        built.conversation_queries(context.dataset.queries), context.latency_sample
    )
    total = len(queries.warm_up) + len(queries.timed)
    with meter.stage("latency", total=total):
        return measure_latency(
            queries,
            time_query,
            max_seconds=math.inf if context.times_services else DEFAULT_SECONDS,
        )


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
    measured_at = _now()
    stages = dict.fromkeys(stage for seconds in seconds_by_query for stage in seconds)
    latencies: dict[str, StageLatency] = {}
    for stage in stages:
        # A query may pass a stage that another does not need.
        seconds = [by_stage.get(stage, 0.0) for by_stage in seconds_by_query]
        latencies[stage] = _percentiles(seconds, measured_at)
    return latencies


def _percentiles(seconds: Sequence[float], measured_at: str) -> StageLatency:
    p50, p95, p99 = (1000 * np.quantile(seconds, [0.5, 0.95, 0.99])).tolist()
    return StageLatency(p50, p95, p99, measured_at)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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
