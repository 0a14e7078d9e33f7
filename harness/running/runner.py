"""Indexes and replays queries: an experiment and its data set -> Runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from harness.evaluation.score_tables import READ
from harness.experiment import Block, Experiment, in_order, inputs, unexpanded
from harness.records import Run, StageLatency
from harness.running.answering import Answered, Corpus, State, first_stage
from harness.running.components import Components, described
from harness.running.forecast import check_needs
from harness.running.latency import measure, sampled, time_call
from harness.running.shared import Shared
from retrievers.errors import BackendError, DataChanged, HarnessError
from retrievers.held import faults_of
from retrievers.meter import Meter
from retrievers.reranking import CachedReranker
from retrievers.types import Query, Ranking, collapsed

log = logging.getLogger(__name__)


def run_all(
    experiment: Experiment, components: dict[str, Components], shared: Shared, *, known: Mapping[str, Run] | None = None
) -> Iterator[Run]:
    """Answer all queries with every retriever; each Run is yielded as soon as it is whole.

    A retriever that fails for good yields a Run with an error, as does what is made of it; the others go on.

    Args:
        experiment: names the retrievers; equal first stages are computed once.
        components: what the retrievers are made of.
        shared: what they share.
        known: runs to be taken as they are, by retriever.

    Raises:
        InputError: some part lacks a key, or a price, that it needs; raised before anything is embedded.
    """
    state = State(shared, Corpus(shared.dataset), dict(known or {}))
    wanted = [block for block in in_order(experiment.retrievers) if block.name not in state.runs]
    timed = [block.name for block in wanted if shared.sample and not shared.latencies.get(block.name)]
    limited = shared.budget.limit is not None
    check_needs(wanted, components, shared.dataset, shared.embedder, timed=timed, limited=limited)
    elsewhere = experiment.vectors.location if experiment.vectors else ""
    try:
        for block in wanted:
            state.runs[block.name] = _run(block, components[block.name], state, elsewhere)
            yield state.runs[block.name]
    finally:
        for store in state.stores.values():
            store.close()


def _run(block: Block, components: Components, state: State, elsewhere: str) -> Run:
    """Answer with one retriever; `elsewhere`, as it was written, is where vectors are read from."""
    shared = state.shared
    meter = Meter(shared.budget, lambda meter: shared.watch(block.name, meter))
    answered, error = Answered({}), ""
    latency = shared.latencies.get(block.name, {})
    try:
        failed = [name for name in inputs(block) if state.runs[name].error]
        if failed:
            raise BackendError(f"it is made of {', '.join(failed)}, which failed")
        with faults_of(components):
            answered = first_stage(block, components, state, meter)
            if components.reranker is not None:
                reranker = CachedReranker(components.reranker, shared.cache, state.corpus.contents)
                answered = _reranked(answered, reranker, shared.dataset.queries, meter)
            if shared.sample and not latency:
                latency = _latency(answered, shared, meter)
    except DataChanged:
        raise
    except HarnessError as failure:
        # What can only be seen now (a model that the hub does not have, a store that another process holds) stops
        # this retriever and what is made of it, not the others.
        log.debug("%s failed", block.name, exc_info=failure)
        answered, error = Answered({}), _writable(unexpanded(str(failure), [block.model_dump(), elsewhere]))
    answers = answered.answers
    if shared.dataset.same_as:
        state.units[block.name] = answers
        with meter.stage("collapse"):
            answers = {id_: collapsed(ranking, shared.dataset.same_as) for id_, ranking in answers.items()}
            meter.count(collapsed=sum(map(len, answered.answers.values())) - sum(map(len, answers.values())))
    provenance = {key: _writable(value) for key, value in answered.provenance.items()}
    return Run(block.name, answers, meter.stages(), meter.notes(), provenance, latency, error)


def _writable(text: str) -> str:
    """A text that somebody else's code or service gave, half characters spelt out: no file could hold them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _latency(answered: Answered, shared: Shared, meter: Meter) -> dict[str, StageLatency]:
    """Time some queries one at a time, each a step of progress."""

    def timed(query: Query) -> Mapping[str, float]:
        seconds = answered.timed(query, meter)
        meter.step()
        return seconds

    with meter.stage("latency", total=sum(map(len, sampled(shared.dataset.queries, shared.sample)))):
        return measure(shared.dataset.queries, shared.sample, timed)


def _reranked(first: Answered, reranker: CachedReranker, queries: Sequence[Query], meter: Meter) -> Answered:
    before = [first.answers[query.id] for query in queries]
    with meter.stage("rerank", total=sum(min(reranker.reranker.depth, len(ranking)) for ranking in before)):
        after = reranker.rerank_all(queries, before, meter)

    def timed(query: Query, meter: Meter) -> Mapping[str, float]:
        def rerank(alone: Meter) -> Ranking:
            return reranker.rerank(query, first.answers[query.id], alone)

        return {**first.timed(query, meter), **time_call("rerank", rerank, meter)}

    answers = {query.id: ranking for query, ranking in zip(queries, after, strict=True)}
    model = {f"reranker {key}": value for key, value in described(reranker.reranker).items()}
    return Answered(answers, timed, {**first.provenance, **model, READ: str(reranker.reranker.depth)})
