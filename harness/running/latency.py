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
from retrievers.types import Query, Ranking, Retriever

TimeQuery = Callable[[Query], Mapping[str, float]]
"""Answers one query and returns the seconds of each stage."""
BILLED_COUNTS = ("calls", "tokens", "usd", "retries")
"""Counts of a timed answer that its retriever bears."""


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

    queries = built.conversation_queries(context.dataset.queries)
    warm_up, timed = latency_queries(queries, context.latency_sample)
    with meter.stage("latency", total=len(warm_up) + len(timed)):
        return measure_latency(queries, context.latency_sample, time_query)


def measure_latency(
    queries: Sequence[Query], sample: int, time_query: TimeQuery
) -> dict[str, StageLatency]:
    """Time some queries one at a time, evenly spread over all of them.

    Args:
        queries: in the data set's order.
        sample: how many to time; all of them if there are fewer.
        time_query: answers one query.

    Returns:
        Stage -> percentiles in milliseconds.
    """
    warm_up, timed = latency_queries(queries, sample)
    for query in warm_up:
        time_query(query)
    seconds_by_query = [time_query(query) for query in timed]
    measured_at = datetime.now(UTC).isoformat(timespec="seconds")
    stages = dict.fromkeys(stage for seconds in seconds_by_query for stage in seconds)
    latencies: dict[str, StageLatency] = {}
    for stage in stages:
        # A query may pass a stage that another does not need.
        seconds = [by_stage.get(stage, 0.0) for by_stage in seconds_by_query]
        p50, p95, p99 = (1000 * np.quantile(seconds, [0.5, 0.95, 0.99])).tolist()
        latencies[stage] = StageLatency(p50, p95, p99, measured_at)
    return latencies


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
