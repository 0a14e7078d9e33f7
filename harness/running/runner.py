"""Indexes and replays queries: an experiment and its data set -> Runs; what several describe alike is asked once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.dataset import Dataset
from harness.evaluation.families import READ
from harness.experiment import Block, Encoded, Experiment, Fusion, Reranked, Standalone, in_order, inputs
from harness.records import Run, StageLatency
from harness.running.components import Components, canonical, conditions_of, described, whole_retriever
from harness.running.forecast import check_needs
from harness.running.machine import measure, sampled, time_call
from harness.running.options import Shared, Stores
from harness.running.vector_search import vector_retriever
from retrievers import is_built_in
from retrievers.cache import UsesCache
from retrievers.errors import BackendError, DataChanged, HarnessError
from retrievers.external import accepted, known_documents
from retrievers.filters import FilteredRetriever, SupportsFilter
from retrievers.meter import Meter
from retrievers.placeholders import without_keys
from retrievers.ranking import fuse
from retrievers.reranking import CachedReranker
from retrievers.types import Document, Query, Ranking, Retriever, collapsed, without
from retrievers.user_objects import faults_of

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
    try:
        for block in wanted:
            state.runs[block.name] = _run(block, components[block.name], state)
            yield state.runs[block.name]
        shared.dataset.refuse_changes()
    finally:
        for store in state.stores.values():
            store.close()


def _run(block: Block, components: Components, state: State) -> Run:
    """Answer with one retriever."""
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
        answered, error = Answered({}), _writable(without_keys(str(failure)))
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


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers to all queries, and how to answer one again against the clock."""

    answers: Mapping[str, Ranking]
    timed: Callable[[Query, Meter], Mapping[str, float]] = lambda query, meter: {}
    provenance: Mapping[str, str] = field(default_factory=dict)
    """What the manifest keeps of the first stage: models, store, kind of search, dimensions, bytes."""
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What was noted of documents and queries, by kind."""
    per_query: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The counts of the stages that every query passes, by stage."""


class Corpus:
    """The documents, with their number for progress; by id, each looked up once; and what was made of them."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._held: dict[str, Document] = {}
        self.made: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Document]:
        return self._dataset.documents()

    def __length_hint__(self) -> int:
        return self._dataset.count

    def contents(self, ids: Collection[str]) -> Mapping[str, Document]:
        """Return documents by id."""
        missing = {id_ for id_ in ids if id_ not in self._held}
        if missing:
            self._held.update(self._dataset.texts(missing))
            if strangers := sorted(missing - self._held.keys()):
                what = f"{len(strangers):,} of its hits are not documents of the data set, such as {strangers[0]!r}"
                raise BackendError(f"{what}: they cannot be reranked")
        return {id_: self._held[id_] for id_ in ids}


@dataclass(frozen=True, slots=True)
class State:
    """One run under way: what its retrievers share, and what was already computed, to be computed once."""

    shared: Shared
    corpus: Corpus
    runs: dict[str, Run]
    first_stages: dict[str, Answered] = field(default_factory=dict)
    """By the canonical form of the first stage."""
    stores: Stores = field(default_factory=dict)
    units: dict[str, Mapping[str, Ranking]] = field(default_factory=dict)
    """Where labels name fields: the rankings of the units that are indexed, by retriever."""

    def before_collapse(self, name: str) -> Mapping[str, Ranking]:
        """What a retriever answered, for what is made of it."""
        return self.units.get(name, self.runs[name].rankings)


def first_stage(block: Block, components: Components, state: State, meter: Meter) -> Answered:
    """Return the answers before any reranking; equal first stages are computed once."""
    match block:
        case Fusion():
            return _fused(block, [state.before_collapse(name) for name in block.of], state.shared, meter)
        case Reranked():
            return Answered(state.before_collapse(block.of))
    key = canonical(block.model_dump(exclude={"name", "rerank", "color"}))
    if known := state.first_stages.get(key):
        return _taken_over(known, meter)
    answered = _searched(_retriever(block, components, state), state, meter)
    if components.retriever is not None and not is_built_in(type(components.retriever)):
        answered = _accepted(answered, state, meter)
    state.first_stages[key] = replace(answered, notes=meter.notes(), per_query=_per_query(meter))
    return answered


def _per_query(meter: Meter) -> dict[str, dict[str, float]]:
    return {stage: meter.counts(stage) for stage in ("embed-queries", "search") if meter.counts(stage)}


def _taken_over(first: Answered, meter: Meter) -> Answered:
    """The answers of an equal first stage: what was noted holds here too, and each query costs what it cost there.

    Nothing was asked again, so that every text counts as cached and nothing as spent.
    """
    for kind, ids in first.notes.items():
        for id_ in ids:
            meter.note(kind, id_)
    for stage, counts in first.per_query.items():
        texts, tokens = counts.get("texts", 0), counts.get("tokens", 0) + counts.get("cached_tokens", 0)
        with meter.stage(stage):
            meter.count(texts=texts, cached=texts, **({"cached_tokens": tokens} if tokens else {}))
    return first


def _retriever(block: Block, components: Components, state: State) -> Retriever:
    """What answers a block that is made of no other, among the documents that its filter leaves."""
    if isinstance(block, Encoded):
        return vector_retriever(block, components, state.shared, state.stores)
    if components.retriever is None or not isinstance(block, Standalone):
        raise TypeError(f"{type(block).__name__} has no first stage of its own")
    conditions = conditions_of(block.filter)
    if not conditions:
        return components.retriever
    retriever = whole_retriever(block)  # another of its own, since it keeps what it is asked to look among
    if not isinstance(retriever, SupportsFilter):
        return FilteredRetriever(retriever, conditions)
    retriever.narrow(conditions)
    return retriever


def _fused(block: Fusion, of: Sequence[Mapping[str, Ranking]], shared: Shared, meter: Meter) -> Answered:
    def answer(query: Query) -> Ranking:
        return fuse(
            [run[query.id] for run in of], shared.depth, block.method,
            constant=block.constant, weights=block.weights, minimum=block.minimum,
        )  # fmt: skip

    def timed(query: Query, meter: Meter) -> Mapping[str, float]:
        return time_call("fuse", lambda _: answer(query), meter)

    with meter.stage("fuse"):
        return Answered({query.id: answer(query) for query in shared.dataset.queries}, timed)


def _searched(retriever: Retriever, state: State, meter: Meter) -> Answered:
    """Index and search with any retriever."""
    queries, depth = state.shared.dataset.queries, state.shared.depth
    spare = 1 if state.shared.exclude_self else 0
    if isinstance(retriever, UsesCache):
        retriever.use(state.shared.cache)
    with meter.stage_by_default("index"):
        retriever.index(state.corpus, meter)
    with meter.stage_by_default("search"):
        rankings = retriever.search(queries, depth + spare, meter)
    if len(rankings) != len(queries):
        raise BackendError(f"{len(rankings)} rankings came back for {len(queries)} queries")

    def timed(query: Query, meter: Meter) -> Mapping[str, float]:
        return time_call("search", lambda alone: retriever.answer(query, depth, alone), meter)

    answers = {query.id: ranking for query, ranking in zip(queries, rankings, strict=True)}
    if spare:
        answers = {id_: without(ranking, id_, depth) for id_, ranking in answers.items()}
    return Answered(answers, timed, retriever.provenance)


def _accepted(answered: Answered, state: State, meter: Meter) -> Answered:
    """The answers of a retriever of another package, held to what ours keep."""
    with meter.stage_by_default("search"):
        answers = accepted(answered.answers, known_documents(state.corpus), state.shared.depth, meter)
    return replace(answered, answers=answers, provenance=dict(answered.provenance))
