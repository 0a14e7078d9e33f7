"""The one loop over retrievers."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.build.built_retriever import BuiltRetriever, without_filter
from harness.records import Run
from harness.running.context import RunContext, run_resources
from harness.running.latency import time_retriever
from harness.running.replayed import ReplayedRetriever, StageResult, replay_costs
from harness.running.requirements import check_requirements
from retrievers import is_built_in
from retrievers.errors import BackendError, DataChanged, HarnessError
from retrievers.external import known_documents, order_foreign_hits
from retrievers.meter import Meter
from retrievers.options.placeholders import redact_keys
from retrievers.options.user_code import wrap_user_errors
from retrievers.resources import Resources
from retrievers.types import (
    Ranking,
    Retriever,
    merge_duplicates,
    with_min_score,
    without_document,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunState:
    """One run under way: what its retrievers share, and what was already answered."""

    context: RunContext
    resources: Resources
    runs: dict[str, Run]
    conversations: Mapping[str, str]
    """What each retriever searches with in a conversation."""
    answered: dict[tuple[int, str], StageResult] = field(default_factory=dict)
    """By retriever and what it searches with, before documents that stand for one are put together."""

    def result_of(self, name: str, part: Retriever) -> StageResult:
        """What a retriever of the experiment answered, for what uses it."""
        return self.answered.get((id(part), self.conversations[name])) or StageResult(
            self.runs[name].rankings
        )


def run_retrievers(
    built: Sequence[BuiltRetriever],
    shared: RunContext,
    *,
    known: Mapping[str, Run] | None = None,
) -> Iterator[Run]:
    """Answer all queries with every retriever; each Run is yielded as soon as it is whole.

    A retriever that fails for good yields a Run with an error, as does what uses it; the others go on.

    Args:
        built: the retrievers, each after those that it uses.
        shared: what they share.
        known: runs to be taken as they are, by retriever.

    Raises:
        InputError: some part lacks a key, or a price, that it needs; raised before anything is embedded.
    """
    state = RunState(
        shared,
        run_resources(shared),
        dict(known or {}),
        {one.name: one.conversation for one in built},
    )
    wanted = [one for one in built if one.name not in state.runs]
    timed = [
        one.name
        for one in wanted
        if shared.latency_sample and not shared.latencies.get(one.name)
    ]
    check_requirements(wanted, shared, timed=timed)
    try:
        for one in wanted:
            state.runs[one.name] = _run(one, state)
            yield state.runs[one.name]
    finally:
        for store in state.resources.stores.values():
            store.close()


def _run(one: BuiltRetriever, state: RunState) -> Run:
    """Answer with one retriever."""
    shared = state.context
    meter = Meter(shared.budget, lambda meter: shared.on_progress(one.name, meter))
    answered, error = StageResult({}), ""
    latency = shared.latencies.get(one.name, {})
    try:
        failed = [name for name in one.uses if state.runs[name].error]
        if failed:
            raise BackendError(f"needs {', '.join(failed)}, which failed")
        with wrap_user_errors(one.components):
            whole, answered = _answered(one, one.retriever, state, meter)
            if shared.latency_sample and not latency:
                latency = time_retriever(one, whole, shared, meter)
    except DataChanged:
        raise
    except HarnessError as failure:
        # What can only be seen now (a model that the hub does not have, a store that another process holds) stops
        # this retriever and those that use it, not the others.
        log.debug("%s failed", one.name, exc_info=failure)
        answered, error = StageResult({}), _writable(redact_keys(str(failure)))
    answers = answered.answers
    if shared.dataset.representatives:
        with meter.stage("collapse"):
            answers = {
                id_: merge_duplicates(ranking, shared.dataset.representatives)
                for id_, ranking in answers.items()
            }
            meter.count(
                collapsed=sum(map(len, answered.answers.values()))
                - sum(map(len, answers.values()))
            )
    provenance = {key: _writable(value) for key, value in answered.provenance.items()}
    return Run(
        one.name, answers, meter.stages(), meter.notes(), provenance, latency, error
    )


def _answered(
    one: BuiltRetriever, retriever: Retriever, state: RunState, meter: Meter
) -> tuple[Retriever, StageResult]:
    """Answer with a retriever, each of its parts first; what answered before is not asked again.

    Returns:
        The retriever with parts that have answered, and its answers.
    """
    key = id(retriever), one.conversation
    if known := state.answered.get(key):
        return retriever, replay_costs(known, meter)
    if not retriever.parts:
        answered = _floored(one, retriever, _searched(one, retriever, state, meter))
        state.answered[key] = replace(
            answered, notes=meter.notes(), per_query=_per_query(meter)
        )
        return retriever, answered
    held: list[Retriever] = []
    for part in retriever.parts:
        if name := one.part_names.get(id(part)):
            held.append(
                ReplayedRetriever(part, state.result_of(name, part), named=True)
            )
        else:
            held.append(
                ReplayedRetriever(*_answered(one, part, state, meter), named=False)
            )
    whole = retriever.with_parts(tuple(held))
    whole.setup(state.resources)
    with meter.stage_by_default("search"):
        rankings = whole.search(
            one.conversation_queries(state.context.dataset.queries),
            state.context.depth,
            meter,
        )
    answered = _floored(
        one, retriever, StageResult(_by_query(rankings, state), whole.provenance)
    )
    state.answered[key] = replace(
        answered, notes=meter.notes(), per_query=_per_query(meter)
    )
    return whole, answered


def _floored(
    one: BuiltRetriever, retriever: Retriever, answered: StageResult
) -> StageResult:
    """The answers without the hits below the floor, where one is declared."""
    if one.min_score is None or retriever is not one.retriever:
        return answered
    return replace(
        answered,
        answers={
            id_: with_min_score(found, one.min_score)
            for id_, found in answered.answers.items()
        },
    )


def _searched(
    one: BuiltRetriever, retriever: Retriever, state: RunState, meter: Meter
) -> StageResult:
    """Index and search with a retriever that has an index."""
    queries, depth, corpus = (
        one.conversation_queries(state.context.dataset.queries),
        state.context.depth,
        state.resources.corpus,
    )
    spare = 1 if state.context.exclude_self else 0
    retriever.setup(state.resources)
    with meter.stage_by_default("index"):
        retriever.index(corpus, meter)
    with meter.stage_by_default("search"):
        rankings = retriever.search(queries, depth + spare, meter)
    answers = _by_query(rankings, state)
    if spare:
        answers = {
            id_: without_document(ranking, id_, depth)
            for id_, ranking in answers.items()
        }
    if not is_built_in(type(without_filter(retriever))):
        with meter.stage_by_default("search"):
            answers = order_foreign_hits(answers, known_documents(corpus), depth, meter)
    return StageResult(answers, dict(retriever.provenance))


def _by_query(rankings: Sequence[Ranking], state: RunState) -> dict[str, Ranking]:
    queries = state.context.dataset.queries
    if len(rankings) != len(queries):
        raise BackendError(
            f"{len(rankings)} rankings came back for {len(queries)} queries"
        )
    return {query.id: ranking for query, ranking in zip(queries, rankings, strict=True)}


def _per_query(meter: Meter) -> dict[str, dict[str, float]]:
    return {
        stage: meter.counts(stage)
        for stage in ("embed-queries", "search")
        if meter.counts(stage)
    }


def _writable(text: str) -> str:
    """A text that somebody else's code or service gave, half characters spelt out: no file could hold them."""
    return text.encode("utf-8", "backslashreplace").decode()
