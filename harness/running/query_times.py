"""The time of a retriever's single queries.

They are timed after the retriever has answered all queries, if that costs nothing or
the experiment asks for it. Else the times are those of this run's requests, or of an
earlier run.
"""

import logging
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.preflight.latency_queries import latency_queries
from harness.records import StageLatency
from harness.running.answer import ReplayableResult, RunState
from harness.running.context import RunContext
from harness.running.latency import measure_latency, stage_latency, time_call
from harness.running.repetition import Repetition
from retrievers.errors import DataChanged, HarnessError
from retrievers.meter import Meter
from retrievers.options.placeholders import redact_keys
from retrievers.types import AnswerFacts, Query, Ranking, Retriever

DEFAULT_SECONDS = 10.0
"""Seconds for which a retriever is timed, at most, without a table [latency]."""

log = logging.getLogger(__name__)


class QueryTimes(NamedTuple):
    """What is known of the time of a retriever's single queries."""

    latency: Mapping[str, StageLatency]
    """Stage -> percentiles; empty if not measured."""
    facts: AnswerFacts
    """How the timed answers compared, or why they could not be timed."""


def query_times(
    built: BuiltRetriever, replayed: ReplayableResult, state: RunState, meter: Meter
) -> QueryTimes:
    """Time single queries, or return the times of this run's requests, or earlier ones.

    A timed query that fails leaves the retriever without a latency: its rankings hold.

    Args:
        built: the retriever of the experiment.
        replayed: the same, its parts having answered, and its rankings.
        state: of the run.
        meter: of the retriever.
    """
    context = state.context
    if not (_is_timed(built, context) and _may_sum(built, state)):
        latency = _request_latency(built, context, meter)
        latency = latency or dict(context.latencies.get(built.name, {}))
        repetition_facts = context.repetitions.get(built.name, AnswerFacts())
        return QueryTimes(latency, repetition_facts)
    repetition = Repetition(built, replayed.result.answers, state)
    try:
        latency = _time_retriever(
            built, replayed.retriever, context, meter, on_answer=repetition.compare
        )
    except DataChanged:
        raise
    except HarnessError as failure:
        log.debug("%s is not timed", built.name, exc_info=failure)
        reason = redact_keys(str(failure))
        latency = _request_latency(built, context, meter)
        return QueryTimes(latency, AnswerFacts(not_timed=reason))
    return QueryTimes(latency, repetition.facts)


def _is_timed(built: BuiltRetriever, context: RunContext) -> bool:
    """Whether single queries of a retriever, which has answered, are timed now.

    They are not timed if an earlier run timed them. If the experiment does not ask for
    it, only retrievers are timed that cost nothing, call no other program and have
    their models loaded.
    """
    if not context.latency_sample or context.latencies.get(built.name):
        return False
    return context.times_services or all(part.answers_here for part in built.own_parts)


def _may_sum(built: BuiltRetriever, state: RunState) -> bool:
    """Whether the sum of its own time and its parts' can be shown.

    Unless the experiment has a table [latency], a part whose answers came from the
    cache, its model not loaded, has no time: timing a reranker over it would be in
    vain.
    """
    if state.context.times_services:
        return True
    return all(state.runs[part].latency for part in built.uses)


def _request_latency(
    built: BuiltRetriever, context: RunContext, meter: Meter
) -> dict[str, StageLatency]:
    """Return the latency of the requests of a run that sent each query by itself.

    Empty if fewer queries were sent than would be timed, or if a query passes other
    stages too: of a retriever with parts, or with its index here.
    """
    is_single = len(built.own_parts) == 1 and built.retriever.own_index
    queries = min(context.latency_sample, len(context.dataset.queries))
    if not is_single or not queries:
        return {}
    return {
        stage: stage_latency(seconds)
        for stage, seconds in meter.request_seconds().items()
        if len(seconds) >= queries
    }


def _time_retriever(
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
