"""Indexes and replays queries: an experiment and its data set -> Runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.dataset import Dataset
from harness.experiment import BM25, Block, Dense, Experiment, Fusion, Reranked, expanded, inputs
from harness.records import Run
from harness.running.equipment import Equipment, Shared, canonical, chunks_of, equip, pieces
from harness.running.latency import Stopwatch, Timed, measure
from retrievers.bm25 import BM25Retriever
from retrievers.dense import DenseRetriever
from retrievers.embedding import Embedder
from retrievers.errors import BackendError, HarnessError
from retrievers.fusion import reciprocal_rank_fusion
from retrievers.meter import Meter
from retrievers.stores import MEMORY, StoreOptions, open_store
from retrievers.types import Document, Query, Ranking, Retriever, Store


@dataclass(frozen=True, slots=True)
class _Answered:
    """The answers to all queries, and how to answer one again against the clock."""

    answers: Mapping[str, Ranking]
    timed: Timed = lambda query: {}
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the manifest keeps of the index: store, kind of search, dimensions, bytes."""


@dataclass(slots=True)
class _Done:
    """What was already computed in this run, to be computed once."""

    runs: dict[str, Run] = field(default_factory=dict)
    first_stages: dict[str, _Answered] = field(default_factory=dict)
    """By the canonical form of the first stage."""


class _Corpus:
    """The documents, with their number for progress."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Document]:
        return self._dataset.documents()

    def __length_hint__(self) -> int:
        return self._dataset.count


def run_all(experiment: Experiment, bench: Shared, *, known: Mapping[str, Run] | None = None) -> Iterator[Run]:
    """Answer all queries with every retriever; each Run is yielded as soon as it is whole.

    A retriever that fails for good yields a Run with an error, as does what is made of it; the others go on.

    Args:
        experiment: names the retrievers; equal first stages are computed once.
        bench: what they share.
        known: runs to be taken as they are, by retriever.

    Raises:
        InputError: some encoder cannot be built, or lacks a key that it needs; told before anything is embedded.
    """
    done = _Done(dict(known or {}))
    equipment = equip([block for block in experiment.retrievers if block.name not in done.runs], bench)
    for block in in_order(experiment.retrievers):
        if block.name not in done.runs:
            done.runs[block.name] = _run(block, equipment[block.name], bench, done)
            yield done.runs[block.name]


def in_order(blocks: tuple[Block, ...]) -> list[Block]:
    """The blocks, each after those it is made of."""
    waiting, placed = list(blocks), dict[str, Block]()
    while waiting:
        block = next(block for block in waiting if placed.keys() >= set(inputs(block)))
        placed[block.name] = block
        waiting.remove(block)
    return list(placed.values())


def _run(block: Block, equipped: Equipment, bench: Shared, done: _Done) -> Run:
    """Answer with one retriever."""
    answered, error = _Answered({}), ""
    provenance: Mapping[str, str] = {}
    latency = bench.latencies.get(block.name, {})
    try:
        failed = [name for name in inputs(block) if done.runs[name].error]
        if failed:
            raise BackendError(f"it is made of {', '.join(failed)}, which failed")
        answered = _answered(block, equipped, bench, done)
        provenance = {**equipped.provenance, **answered.facts}
        if bench.sample and not latency:
            with equipped.meter.stage("latency"):
                latency = measure(bench.dataset.queries, bench.sample, answered.timed)
    except HarnessError as failure:
        # What can only be seen now (a model that the hub does not have, a store that another process holds) stops
        # this retriever and what is made of it, not the others.
        answered, error = _Answered({}), str(failure)
    meter = equipped.meter
    return Run(block.name, answered.answers, meter.stages(), meter.notes(), provenance, latency, error)


def _answered(block: Block, equipped: Equipment, bench: Shared, done: _Done) -> _Answered:
    first = _first_stage(block, equipped, bench, done)
    if equipped.reranker is None:
        return first
    reranker, queries = equipped.reranker, bench.dataset.queries
    pairs = sum(min(reranker.depth, len(first.answers[query.id])) for query in queries)
    with equipped.meter.stage("rerank", total=pairs):
        better = reranker.rerank_all(queries, [first.answers[query.id] for query in queries])

    def timed(query: Query) -> Mapping[str, float]:
        before = first.timed(query)
        watch = Stopwatch()
        reranker.rerank(query, first.answers[query.id])
        watch.split("rerank")
        return {**before, **watch.seconds}

    answers = {query.id: ranking for query, ranking in zip(queries, better, strict=True)}
    return _Answered(answers, timed, first.facts)


def _first_stage(block: Block, equipped: Equipment, bench: Shared, done: _Done) -> _Answered:
    """The answers before any reranking; equal first stages are computed once."""
    match block:
        case Fusion():
            return _fused(block, equipped.meter, bench, [done.runs[name].rankings for name in block.of])
        case Reranked():
            return _Answered(dict(done.runs[block.of].rankings))
    key = canonical(block.model_dump(exclude={"name", "rerank"}))
    if key not in done.first_stages:
        done.first_stages[key] = _searched(block, equipped, bench)
    return done.first_stages[key]


def _fused(block: Fusion, meter: Meter, bench: Shared, of: Sequence[Mapping[str, Ranking]]) -> _Answered:
    def fuse(query: Query) -> Ranking:
        return reciprocal_rank_fusion([run[query.id] for run in of], bench.depth, constant=block.constant)

    def timed(query: Query) -> Mapping[str, float]:
        watch = Stopwatch()
        fuse(query)
        watch.split("fuse")
        return watch.seconds

    with meter.stage("fuse"):
        return _Answered({query.id: fuse(query) for query in bench.dataset.queries}, timed)


def _searched(block: Block, equipped: Equipment, bench: Shared) -> _Answered:
    retriever, timed = _retriever(block, equipped, bench)
    retriever.index(_Corpus(bench.dataset))
    rankings = retriever.search(bench.dataset.queries, bench.depth)
    answers = {query.id: ranking for query, ranking in zip(bench.dataset.queries, rankings, strict=True)}
    facts = _facts(block, retriever, bench)
    return _Answered(answers, timed, facts)


def _facts(block: Block, retriever: Retriever, bench: Shared) -> dict[str, str]:
    """What the index is made of, for the manifest."""
    if isinstance(retriever, BM25Retriever):
        return {"fingerprint": retriever.fingerprint}
    assert isinstance(block, Dense)
    assert isinstance(retriever, DenseRetriever)
    options = StoreOptions(**block.store)
    points = sum(1 for _ in pieces(bench.dataset, retriever.chunks))
    return {
        "store": options.resolved(bench.dataset.count),
        "search": "approximate" if options.approximate else "exact",
        "dimensions": str(retriever.dimensions),
        "vectors": str(points),
        "vector_bytes": str(options.bytes_read(points, retriever.dimensions)),
    }


def _retriever(block: Block, equipped: Equipment, bench: Shared) -> tuple[Retriever, Timed]:
    """Build what indexes and searches, and what answers one query with each stage timed."""
    match block:
        case BM25():
            bm25 = BM25Retriever(k1=block.k1, b=block.b, stemming=block.stemming, meter=equipped.meter)

            def timed(query: Query) -> Mapping[str, float]:
                watch = Stopwatch()
                bm25.answer(query, bench.depth)
                watch.split("search")
                return watch.seconds

            return bm25, timed
        case Dense() if equipped.encoder is not None:
            embedder = Embedder(equipped.encoder, bench.cache, meter=equipped.meter)
            chunks = chunks_of(block)
            store = _store(block, equipped, bench)
            dense = DenseRetriever(embedder.embed, store, equipped.meter, fresh=bench.fresh, chunks=chunks)

            def embed_and_search(query: Query) -> Mapping[str, float]:
                watch = Stopwatch()
                vectors = embedder.one(query.text).vectors
                watch.split("embed-queries")
                dense.nearest(vectors, bench.depth)
                watch.split("search")
                return watch.seconds

            return dense, embed_and_search
    raise TypeError(f"{type(block).__name__} has no first stage of its own")


def _store(block: Dense, equipped: Equipment, bench: Shared) -> Store:
    """The collection: in memory by the retriever's name, elsewhere by what is in it."""
    assert equipped.encoder is not None
    options = StoreOptions(**expanded(block.store))
    chunks = chunks_of(block)
    inside = f"{equipped.encoder.fingerprint}-{bench.dataset.corpus_digest}{chunks.suffix if chunks else ''}"
    collection = block.name if options.resolved(bench.dataset.count) == MEMORY else inside
    return open_store(options, collection, documents=bench.dataset.count, folder=bench.stores, meter=equipped.meter)
