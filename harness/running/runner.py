"""Indexes and replays queries: an experiment and its data set -> Runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.dataset import Dataset
from harness.experiment import (
    Block,
    Encoded,
    Experiment,
    Fusion,
    QdrantFusion,
    Reranked,
    Standalone,
    inputs,
    unexpanded,
)
from harness.records import Run, StageLatency
from harness.running.components import Components, canonical, conditions_of, described, whole_retriever
from harness.running.forecast import check_needs
from harness.running.hybrid import hybrid_retriever
from harness.running.latency import measure, sampled, time_call
from harness.running.shared import Shared, Stores
from harness.running.vector_search import vector_retriever
from retrievers.cache import UsesCache
from retrievers.errors import BackendError, DataChanged, HarnessError
from retrievers.filters import Narrowed, Narrows
from retrievers.fusion import distribution_based_fusion, reciprocal_rank_fusion
from retrievers.meter import Meter
from retrievers.reranking import CachedReranker
from retrievers.types import Document, Query, Ranking, Retriever, collapsed, without


@dataclass(frozen=True, slots=True)
class _Answered:
    """The answers to all queries, and how to answer one again against the clock."""

    answers: Mapping[str, Ranking]
    timed: Callable[[Query, Meter], Mapping[str, float]] = lambda query, meter: {}
    provenance: Mapping[str, str] = field(default_factory=dict)
    """What the manifest keeps of the first stage: models, store, kind of search, dimensions, bytes."""


class _Corpus:
    """The documents, with their number for progress; and by id, each looked up once."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._held: dict[str, Document] = {}

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
                what = f"{len(strangers):,} of its hits are no documents of the data set, such as {strangers[0]!r}"
                raise BackendError(f"{what}: they cannot be reranked")
        return {id_: self._held[id_] for id_ in ids}


@dataclass(frozen=True, slots=True)
class _State:
    """One run under way: what its retrievers share, and what was already computed, to be computed once."""

    shared: Shared
    corpus: _Corpus
    runs: dict[str, Run]
    first_stages: dict[str, _Answered] = field(default_factory=dict)
    """By the canonical form of the first stage."""
    stores: Stores = field(default_factory=dict)
    blocks: Mapping[str, Block] = field(default_factory=dict)
    """The tables of all retrievers, by name."""
    units: dict[str, Mapping[str, Ranking]] = field(default_factory=dict)
    """Where labels name fields: the rankings of the units that are indexed, by retriever."""

    def before_collapse(self, name: str) -> Mapping[str, Ranking]:
        """What a retriever answered, for what is made of it."""
        return self.units.get(name, self.runs[name].rankings)


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
    blocks = {block.name: block for block in experiment.retrievers}
    state = _State(shared, _Corpus(shared.dataset), dict(known or {}), blocks=blocks)
    wanted = [block for block in in_order(experiment.retrievers) if block.name not in state.runs]
    timed = [block.name for block in wanted if shared.sample and not shared.latencies.get(block.name)]
    limited = shared.budget.limit is not None
    check_needs(wanted, components, shared.dataset, shared.embedder, timed=timed, limited=limited)
    try:
        for block in wanted:
            state.runs[block.name] = _run(block, components[block.name], state)
            yield state.runs[block.name]
    finally:
        for store in state.stores.values():
            store.close()


def in_order(blocks: tuple[Block, ...]) -> list[Block]:
    """Return the blocks, each after those it is made of."""
    waiting, placed = list(blocks), dict[str, Block]()
    while waiting:
        block = next(block for block in waiting if placed.keys() >= set(inputs(block)))
        placed[block.name] = block
        waiting.remove(block)
    return list(placed.values())


def _run(block: Block, components: Components, state: _State) -> Run:
    """Answer with one retriever."""
    shared = state.shared
    meter = Meter(shared.budget, lambda meter: shared.watch(block.name, meter))
    answered, error = _Answered({}), ""
    latency = shared.latencies.get(block.name, {})
    try:
        failed = [name for name in inputs(block) if state.runs[name].error]
        if failed:
            raise BackendError(f"it is made of {', '.join(failed)}, which failed")
        answered = _first_stage(block, components, state, meter)
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
        answered, error = _Answered({}), unexpanded(str(failure), block.model_dump())
    answers = answered.answers
    if shared.dataset.same_as:
        state.units[block.name] = answers
        with meter.stage("collapse"):
            answers = {id_: collapsed(ranking, shared.dataset.same_as) for id_, ranking in answers.items()}
            meter.count(collapsed=sum(map(len, answered.answers.values())) - sum(map(len, answers.values())))
    return Run(block.name, answers, meter.stages(), meter.notes(), answered.provenance, latency, error)


def _latency(answered: _Answered, shared: Shared, meter: Meter) -> dict[str, StageLatency]:
    """Time some queries one at a time, each a step of progress."""

    def timed(query: Query) -> Mapping[str, float]:
        seconds = answered.timed(query, meter)
        meter.step()
        return seconds

    with meter.stage("latency", total=sum(map(len, sampled(shared.dataset.queries, shared.sample)))):
        return measure(shared.dataset.queries, shared.sample, timed)


def _reranked(first: _Answered, reranker: CachedReranker, queries: Sequence[Query], meter: Meter) -> _Answered:
    before = [first.answers[query.id] for query in queries]
    with meter.stage("rerank", total=sum(min(reranker.reranker.depth, len(ranking)) for ranking in before)):
        after = reranker.rerank_all(queries, before, meter)

    def timed(query: Query, meter: Meter) -> Mapping[str, float]:
        def rerank(alone: Meter) -> Ranking:
            return reranker.rerank(query, first.answers[query.id], alone)

        return {**first.timed(query, meter), **time_call("rerank", rerank, meter)}

    answers = {query.id: ranking for query, ranking in zip(queries, after, strict=True)}
    model = {f"reranker {key}": value for key, value in described(reranker.reranker).items()}
    return _Answered(answers, timed, {**first.provenance, **model})


def _first_stage(block: Block, components: Components, state: _State, meter: Meter) -> _Answered:
    """The answers before any reranking; equal first stages are computed once."""
    match block:
        case Fusion():
            return _fused(block, [state.before_collapse(name) for name in block.of], state.shared, meter)
        case Reranked():
            return _Answered(state.before_collapse(block.of))
    key = canonical(block.model_dump(exclude={"name", "rerank", "color"}))
    if key not in state.first_stages:
        state.first_stages[key] = _searched(_retriever(block, components, state), state, meter)
    return state.first_stages[key]


def _retriever(block: Block, components: Components, state: _State) -> Retriever:
    """What answers a block that is made of no other, among the documents that its filter leaves."""
    if isinstance(block, Encoded):
        return vector_retriever(block, components, state.shared, state.stores)
    if isinstance(block, QdrantFusion) and components.encoder is not None:
        lexical = state.blocks[block.of[1]]
        assert isinstance(lexical, Standalone)
        return hybrid_retriever(block, lexical, components.encoder, state.shared)
    if components.retriever is None or not isinstance(block, Standalone):
        raise TypeError(f"{type(block).__name__} has no first stage of its own")
    conditions = conditions_of(block.filter)
    if not conditions:
        return components.retriever
    retriever = whole_retriever(block)  # another of its own, since it keeps what it is asked to look among
    if not isinstance(retriever, Narrows):
        return Narrowed(retriever, conditions)
    retriever.narrow(conditions)
    return retriever


def _fused(block: Fusion, of: Sequence[Mapping[str, Ranking]], shared: Shared, meter: Meter) -> _Answered:
    def fuse(query: Query) -> Ranking:
        rankings = [run[query.id] for run in of]
        if block.method == "dbsf":
            return distribution_based_fusion(rankings, shared.depth)
        return reciprocal_rank_fusion(rankings, shared.depth, constant=block.constant)

    def timed(query: Query, meter: Meter) -> Mapping[str, float]:
        return time_call("fuse", lambda _: fuse(query), meter)

    with meter.stage("fuse"):
        return _Answered({query.id: fuse(query) for query in shared.dataset.queries}, timed)


def _searched(retriever: Retriever, state: _State, meter: Meter) -> _Answered:
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
    return _Answered(answers, timed, retriever.provenance)
