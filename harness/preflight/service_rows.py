"""What queries to services cost."""

from collections.abc import Iterator
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.preflight.plan_rows import PlanContext, PlanRow
from harness.preflight.throughput import Throughput
from retrievers.agents.agent import Agent
from retrievers.asked_service import AskedService
from retrievers.types import Limits


class AskedPlan(NamedTuple):
    """What it takes to send all queries to one service or agent."""

    row: PlanRow
    calls: int
    """Requests for one query; for an agent, at most."""
    trials: int
    """How often each query is sent."""
    queries: int
    """How many different queries are sent."""
    is_upper_bound: bool
    """Whether the row has upper bounds."""


def asked_plans(built: BuiltRetriever, context: PlanContext) -> Iterator[AskedPlan]:
    """Yield what a retriever's services and agents take, in all trials."""
    yield from _service_plans(built, context)
    yield from _agent_plans(built, context)


def _service_plans(built: BuiltRetriever, context: PlanContext) -> Iterator[AskedPlan]:
    """Yield the plans of search services (http, mcp): a call a query and trial."""
    experiment = context.loaded.experiment
    # As in a run: one hit more if the document with the query's id is left out.
    depth = experiment.depth + (1 if experiment.dataset.exclude_self else 0)
    queries = built.conversation_queries(context.dataset.queries)
    texts = list(dict.fromkeys(query.text for query in queries))
    for service in built.other_retrievers:
        if not isinstance(service, AskedService):
            continue
        cached = sum(
            service.count_cached(texts, depth, context.cache, trial)
            for trial in range(1, built.trials + 1)
        )
        asked = len(texts) * built.trials
        throughput = Throughput(limits=Limits(service.concurrency, 0, 0, 0.0, 0))
        calls = asked - cached
        minutes = throughput.minutes(calls, 0)
        row = PlanRow(built.name, "search", asked, cached, calls, 0, True, 0.0, minutes)
        yield AskedPlan(row, 1, built.trials, len(texts), is_upper_bound=False)


def _agent_plans(built: BuiltRetriever, context: PlanContext) -> Iterator[AskedPlan]:
    """Yield the plans of agents: calls, tokens and dollars at their most.

    An agent that this very run has finished before finds all replies in the cache.
    """
    queries = built.conversation_queries(context.dataset.queries)
    count = len(dict.fromkeys(query.text for query in queries))
    timed_count = len(context.timed_queries(built.name))
    for agent in built.agents:
        asked = count * built.trials
        row = _agent_row(built.name, "search", agent, asked)
        if _is_finished(built.name, context):
            row = PlanRow(built.name, "search", asked, asked, 0, 0, True, 0.0, 0.0)
        calls = agent.limits.calls
        yield AskedPlan(row, calls, built.trials, count, is_upper_bound=True)
        if timed_count:
            row = _agent_row(built.name, "latency", agent, timed_count)
            yield AskedPlan(row, calls, 1, timed_count, is_upper_bound=True)


def _agent_row(name: str, stage: str, agent: Agent, asked: int) -> PlanRow:
    """Return the row of so many dialogues, each at its limits."""
    calls = agent.limits.calls * asked
    tokens = agent.limits.tokens * asked
    throughput = Throughput(limits=agent.model.limits)
    minutes = throughput.minutes(calls, tokens, together=stage == "search")
    return PlanRow(
        name, stage, asked, 0, calls, tokens, False, _most_usd(agent, asked), minutes
    )


def _most_usd(agent: Agent, asked: int) -> float | None:
    """Return the dollars of so many dialogues, at most; None without prices."""
    model = agent.model
    if not model.has_prices:
        return None
    limits = agent.limits
    received = min(limits.tokens, limits.calls * limits.reply_tokens)
    with_replies = model.usd_of_tokens(limits.tokens - received, received)
    return asked * max(with_replies, model.usd_of_tokens(limits.tokens, 0))


def _is_finished(name: str, context: PlanContext) -> bool:
    earlier = context.same_run()
    return earlier is not None and name in earlier.manifest.finished
