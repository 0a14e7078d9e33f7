"""The answers of a retriever, those of its parts first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever, may_vary, without_filter
from harness.records import Run
from harness.running.context import RunContext
from harness.running.kept_passages import keep_passages
from harness.running.replayed import ReplayedRetriever, StageResult, replay_costs
from retrievers import is_built_in
from retrievers.errors import BackendError
from retrievers.external import known_documents, order_hits_of_packages
from retrievers.meter import Meter
from retrievers.resources import Resources
from retrievers.types import (
    Ranking,
    Retriever,
    read_facts,
    with_min_score,
    without_documents,
)

REPLAYED_STAGES = ("embed-queries", "search")
"""Stages that each query passes, whose counts `replay_costs` repeats."""


@dataclass(frozen=True, slots=True)
class RunState:
    """One run under way: what its retrievers share, and their answers so far."""

    context: RunContext
    resources: Resources
    runs: dict[str, Run]
    """Retriever -> its run, of those that are reused, finished or failed."""
    retrievers: Mapping[str, BuiltRetriever]
    """Name -> retriever, of all of the experiment."""
    results: dict[tuple[int, str, int], StageResult] = field(default_factory=dict)
    """(`id` of a retriever, its conversation, trial) -> its answers.

    In them, documents that labels name by one value are not yet one.
    """
    trial: int = 1
    """The repetition that is under way."""

    def of_trial(self, trial: int) -> RunState:
        """The state of another trial of the run, which shares all but the trial."""
        resources = replace(self.resources, trial=trial)
        return replace(self, trial=trial, resources=resources)

    def result_of(self, name: str, part: Retriever) -> StageResult:
        """The answers of a retriever of the experiment, for one that uses it.

        They are those of the present trial; of a retriever with fewer trials, those of
        its first.

        Args:
            name: of the retriever.
            part: the retriever itself.
        """
        conversation = self.retrievers[name].conversation
        for trial in (self.trial, 1):
            result = self.results.get((id(part), conversation, trial))
            if result is not None:
                return result
        trials = self.runs[name].trials  # it is reused: it has not answered in this run
        index = self.trial - 1
        return StageResult(trials[index if index < len(trials) else 0])


class ReplayableResult(NamedTuple):
    """A retriever whose parts have answered, with its own answers."""

    retriever: Retriever
    result: StageResult


def answer_queries(
    built: BuiltRetriever, retriever: Retriever, state: RunState, meter: Meter
) -> ReplayableResult:
    """Answer all queries with a retriever, or a part of it; equal work is done once.

    Args:
        built: the retriever of the experiment.
        retriever: the same, or one of its parts without a name.
        state: of the run; the answers are added to it.
        meter: of the retriever.
    """
    if state.trial > 1 and not may_vary(retriever):
        state = state.of_trial(1)
    key = (id(retriever), built.conversation, state.trial)
    if key in state.results:
        result = state.results[key]
        # The counts of a later trial include those of the first.
        if state.trial == 1:
            result = replay_costs(result, meter)
        return ReplayableResult(retriever, result)
    if retriever.parts:
        retriever = _replay_parts(built, retriever, state, meter)
        result = _combine_parts(built, retriever, state, meter)
    else:
        result = _index_and_search(built, retriever, state, meter)
    result = keep_passages(result, state.resources.corpus, state.context, meter)
    # `retriever` may be a copy by now, with replayed parts: the key has the original.
    is_whole = key[0] == id(built.retriever)
    if is_whole and built.min_score is not None:
        result = _drop_low_scores(result, built.min_score)
    # The meter has notes and counts already; an equal retriever has another meter.
    state.results[key] = replace(
        result, notes=meter.notes(), per_query=_query_counts(meter)
    )
    return ReplayableResult(retriever, result)


def _replay_parts(
    built: BuiltRetriever, retriever: Retriever, state: RunState, meter: Meter
) -> Retriever:
    """Return a retriever whose parts give the answers that they gave."""
    replayed: list[Retriever] = []
    for part in retriever.parts:
        name = built.part_names.get(id(part))
        if name:
            result = state.result_of(name, part)
            replayed.append(ReplayedRetriever(part, result, named=True))
        else:
            part, result = answer_queries(built, part, state, meter)
            replayed.append(ReplayedRetriever(part, result, named=False))
    return retriever.with_parts(tuple(replayed))


def _combine_parts(
    built: BuiltRetriever, retriever: Retriever, state: RunState, meter: Meter
) -> StageResult:
    retriever.setup(state.resources)
    queries = built.conversation_queries(state.context.dataset.queries)
    with meter.stage_by_default("search"):
        rankings = retriever.search(queries, state.context.depth, meter)
    return StageResult(_by_query(rankings, state), read_facts(retriever))


def _index_and_search(
    built: BuiltRetriever, retriever: Retriever, state: RunState, meter: Meter
) -> StageResult:
    """Index the corpus once, in the first trial, and search for all queries.

    Documents that a query leaves out are dropped after the search, for which so many
    more hits are requested.
    """
    context = state.context
    corpus = state.resources.corpus
    queries = built.conversation_queries(context.dataset.queries)
    left_out = {
        query.id: query.left_out(exclude_self=context.exclude_self) for query in queries
    }
    spare_hits = max(map(len, left_out.values()), default=0)
    retriever.setup(state.resources)
    if state.trial == 1:
        with meter.stage_by_default("index"):
            retriever.index(corpus, meter)
    with meter.stage_by_default("search"):
        rankings = retriever.search(queries, context.depth + spare_hits, meter)
    answers = _by_query(rankings, state)
    # A class of another package may return any order, and ids in another spelling.
    if not is_built_in(type(without_filter(retriever))):
        documents = known_documents(corpus)
        depth = context.depth + spare_hits
        with meter.stage_by_default("search"):
            answers = order_hits_of_packages(answers, documents, depth, meter)
    if spare_hits:
        answers = {
            query_id: without_documents(ranking, left_out[query_id], context.depth)
            for query_id, ranking in answers.items()
        }
    return StageResult(answers, read_facts(retriever))


def _by_query(rankings: Sequence[Ranking], state: RunState) -> dict[str, Ranking]:
    queries = state.context.dataset.queries
    if len(rankings) != len(queries):
        message = f"returned {len(rankings)} rankings for {len(queries)} queries"
        raise BackendError(message)
    return {query.id: ranking for query, ranking in zip(queries, rankings, strict=True)}


def _drop_low_scores(result: StageResult, min_score: float) -> StageResult:
    answers = {
        query_id: with_min_score(ranking, min_score)
        for query_id, ranking in result.answers.items()
    }
    return replace(result, answers=answers)


def _query_counts(meter: Meter) -> dict[str, dict[str, float]]:
    counts = {stage: meter.counts(stage) for stage in REPLAYED_STAGES}
    return {stage: numbers for stage, numbers in counts.items() if numbers}
