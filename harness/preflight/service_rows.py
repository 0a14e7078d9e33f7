"""What queries to services cost."""

from collections.abc import Iterator
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.preflight.plan_rows import PlanContext, PlanRow
from harness.preflight.throughput import Throughput
from retrievers.agents.agent import Agent
from retrievers.asked_service import AskedService
from retrievers.types import Limits


class ServicePlan(NamedTuple):
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


def service_plans(built: BuiltRetriever, context: PlanContext) -> Iterator[ServicePlan]:
    """Yield what a retriever's services and agents take, in all trials."""
    yield from _search_plans(built, context)
    yield from _agent_plans(built, context)


def _search_plans(built: BuiltRetriever, context: PlanContext) -> Iterator[ServicePlan]:
    """Yield the plans of search services (http, mcp): a call a query and trial."""
    experiment = context.loaded.experiment
    queries = built.conversation_queries(context.dataset.queries)
    # As in a run: so many more hits as documents are left out of a ranking.
    exclude_self = experiment.dataset.exclude_self
    left_out = [query.left_out(exclude_self=exclude_self) for query in queries]
    depth = experiment.depth + max(map(len, left_out), default=0)
    texts = list(dict.fromkeys(query.text for query in queries))
    for service in built.other_retrievers:
        if not isinstance(service, AskedService):
            continue
        cached = sum(
            service.count_cached(texts, depth, context.cache, trial)
            for trial in range(1, built.trials + 1)
        )
        count = len(texts) * built.trials
        limits = Limits(service.concurrency, rpm=0, tpm=0, patience=0.0, tokens=0)
        calls = count - cached
        row = PlanRow(
            built.name,
            "search",
            texts=count,
            cached=cached,
            calls=calls,
            tokens=0,
            exact=True,
            usd=0.0,
            minutes=Throughput(limits=limits).minutes(calls, 0),
        )
        yield ServicePlan(row, 1, built.trials, len(texts), is_upper_bound=False)


def _agent_plans(built: BuiltRetriever, context: PlanContext) -> Iterator[ServicePlan]:
    """Yield the plans of agents: calls, tokens and dollars at their most.

    An agent that this very run has finished before finds all replies in the cache.
    """
    queries = built.conversation_queries(context.dataset.queries)
    query_count = len(dict.fromkeys(query.text for query in queries))
    timed_count = len(context.timed_queries(built.name))
    for agent in built.agents:
        count = query_count * built.trials
        row = _agent_row(built.name, "search", agent, count)
        if _is_finished(built.name, context):
            row = row._replace(
                cached=count, calls=0, tokens=0, exact=True, usd=0.0, minutes=0.0
            )
        calls = agent.limits.calls
        yield ServicePlan(row, calls, built.trials, query_count, is_upper_bound=True)
        if timed_count:
            row = _agent_row(built.name, "latency", agent, timed_count)
            yield ServicePlan(row, calls, 1, timed_count, is_upper_bound=True)


def _agent_row(name: str, stage: str, agent: Agent, dialogues: int) -> PlanRow:
    """Return the row of so many dialogues, one for each query, each at its limits."""
    calls = agent.limits.calls * dialogues
    tokens = agent.limits.tokens * dialogues
    throughput = Throughput(limits=agent.model.limits)
    minutes = throughput.minutes(calls, tokens, together=stage == "search")
    return PlanRow(
        name,
        stage,
        texts=dialogues,
        cached=0,
        calls=calls,
        tokens=tokens,
        exact=False,
        usd=_most_usd(agent, dialogues),
        minutes=minutes,
    )


def _most_usd(agent: Agent, dialogues: int) -> float | None:
    """Return the dollars of so many dialogues, at most; None without prices.

    A dialogue costs most with as many tokens of replies as its limits allow, or with
    none: it depends on which tokens are dearer.
    """
    model = agent.model
    if not model.has_prices:
        return None
    limits = agent.limits
    received = min(limits.tokens, limits.calls * limits.reply_tokens)
    with_replies = model.usd_of_tokens(limits.tokens - received, received)
    return dialogues * max(with_replies, model.usd_of_tokens(limits.tokens, 0))


def _is_finished(name: str, context: PlanContext) -> bool:
    """Whether a retriever finished in an earlier run of this experiment on its data."""
    earlier = context.same_run()
    return earlier is not None and name in earlier.manifest.finished
