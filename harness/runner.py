"""Builds retrievers, indexes, replays queries: an experiment and its data set -> Runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from harness.dataset import Dataset
from harness.experiment import BM25, Block, Dense, Experiment, Fusion, Reranked, expanded, inputs
from harness.latency import Stopwatch, Timed, measure
from harness.options import Kind
from harness.records import Latency, Run
from retrievers import encoder_class, reranker_class
from retrievers.bm25 import BM25Retriever
from retrievers.cache import Cache
from retrievers.chunking import Chunks, passages
from retrievers.dense import WINDOW, DenseRetriever
from retrievers.embedding import Embedder, Forecast
from retrievers.errors import BackendError, HarnessError, InputError, Problem
from retrievers.fusion import reciprocal_rank_fusion
from retrievers.meter import Budget, Meter
from retrievers.rerank import CrossEncoderReranker
from retrievers.stores import MEMORY, StoreOptions, open_store
from retrievers.types import Document, Encoder, Query, Ranking, Retriever, Role, Store

Watch = Callable[[str, Meter], None]
"""Told the retriever's name and its meter whenever something was counted."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What all retrievers of one run share."""

    dataset: Dataset
    cache: Cache
    stores: Path
    """Where edge collections live from run to run."""
    depth: int
    budget: Budget
    watch: Watch = lambda name, meter: None

    fresh: bool = False
    """Index anew what a store holds."""
    sample: int = 0
    """Queries timed one at a time; 0: none."""
    latencies: Mapping[str, Mapping[str, Latency]] = field(default_factory=dict)
    """Retriever -> stage -> what was measured before: kept, so that a warm run loads no model."""


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


class _Contents:
    """Documents by id, each looked up in the corpus once."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._held: dict[str, Document] = {}

    def __call__(self, ids: Collection[str]) -> Mapping[str, Document]:
        missing = {id_ for id_ in ids if id_ not in self._held}
        if missing:
            self._held.update(self._dataset.texts(missing))
        return {id_: self._held[id_] for id_ in ids}


class _Corpus:
    """The documents, with their number for progress."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Document]:
        return self._dataset.documents()

    def __length_hint__(self) -> int:
        return self._dataset.count


def run_all(experiment: Experiment, bench: Bench, *, known: Mapping[str, Run] | None = None) -> Iterator[Run]:
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
    equipment = _equipment([block for block in experiment.retrievers if block.name not in done.runs], bench)
    for block in in_order(experiment.retrievers):
        if block.name not in done.runs:
            done.runs[block.name] = _run(block, equipment[block.name], bench, done)
            yield done.runs[block.name]


def see_models(experiment: Experiment) -> None:
    """See, with no network, that every retriever can be built.

    Raises:
        InputError: with what is wrong of each.
    """
    problems: list[Problem] = []
    for block in experiment.retrievers:
        meter = Meter()
        try:
            if isinstance(block, BM25):
                BM25Retriever(k1=block.k1, b=block.b, stemming=block.stemming, meter=meter)
            if isinstance(block, Dense):
                _see(encoder_of(block.encoder, meter))
            if block.rerank is not None:
                cls: Any = reranker_class(block.rerank.kind)
                _see(cls(**expanded(block.rerank.options), content=None, cache=None, meter=meter))
        except InputError as error:
            problems += [p._replace(where=f"retriever {block.name!r}: {p.where}") for p in error.problems]
    if problems:
        raise InputError(problems)


def _see(model: Any) -> None:
    """Ask for the fingerprint, which reads a model's folder; what only the hub knows is asked when the run begins."""
    if getattr(model, "at_hand", True):
        _ = model.fingerprint


def encoder_of(kind: Kind, meter: Meter) -> Encoder:
    """Build an encoder as an experiment describes it; nothing is loaded or sent."""
    cls: Any = encoder_class(kind.kind)
    encoder: Encoder = cls(**expanded(kind.options), meter=meter)
    return encoder


def forecast(embedder: Embedder, dataset: Dataset, chunks: Chunks | None) -> dict[Role, Forecast]:
    """Count what embedding documents and queries would take, window by window as they are embedded.

    A text that stands in two windows counts in both: the figures are then a little too high.
    """
    texts = pieces(dataset, chunks)
    windows = []
    while window := [piece.content for piece in islice(texts, WINDOW)]:
        windows.append(embedder.forecast(window, "document"))
    whole = Forecast(
        texts=sum(one.texts for one in windows),
        cached=sum(one.cached for one in windows),
        calls=sum(one.calls for one in windows),
        tokens=sum(one.tokens for one in windows),
        exact=all(one.exact for one in windows),
    )
    return {"document": whole, "query": embedder.forecast((query.text for query in dataset.queries), "query")}


def pieces(dataset: Dataset, chunks: Chunks | None) -> Iterator[Document]:
    """What is embedded of a corpus: every document that is not empty, or its passages."""
    for document in dataset.documents():
        if document.content.strip():
            yield from passages(document, chunks) if chunks else (document,)


def in_order(blocks: tuple[Block, ...]) -> list[Block]:
    """The blocks, each after those it is made of."""
    waiting, placed = list(blocks), dict[str, Block]()
    while waiting:
        block = next(block for block in waiting if placed.keys() >= set(inputs(block)))
        placed[block.name] = block
        waiting.remove(block)
    return list(placed.values())


@dataclass(frozen=True, slots=True)
class _Equipped:
    """What one retriever works with."""

    meter: Meter
    encoder: Encoder | None = None
    """Shared by equal blocks; it writes to the meter of the first of them."""
    reranker: CrossEncoderReranker | None = None

    @property
    def provenance(self) -> dict[str, str]:
        """Which models answer, as the manifest keeps it."""
        first = getattr(self.encoder, "provenance", {})
        second = getattr(self.reranker, "provenance", {})
        return {**first, **{f"reranker {key}": value for key, value in second.items()}}


def _equipment(blocks: Sequence[Block], bench: Bench) -> dict[str, _Equipped]:
    """Build encoders, equal ones once, and rerankers, without loading a model."""
    built: dict[str, tuple[Encoder, Meter]] = {}
    equipment: dict[str, _Equipped] = {}
    problems: list[Problem] = []
    for block in blocks:
        meter = _meter(block.name, bench)
        try:
            encoder = None
            if isinstance(block, Dense):
                key = _canonical(block.encoder.written())
                if key not in built:
                    built[key] = _encoder(block.encoder, meter), meter
                encoder = built[key][0]
                _see_that_it_can_work(block, encoder, bench)
            equipment[block.name] = _Equipped(meter, encoder, _reranker(block, bench, meter))
        except InputError as error:
            problems += [Problem(f"retriever {block.name!r}: {p.where}", p.what, p.remedy) for p in error.problems]
    if problems:
        raise InputError(problems)
    return equipment


def _encoder(kind: Kind, meter: Meter) -> Encoder:
    encoder = encoder_of(kind, meter)
    _ = encoder.fingerprint  # asked for now, since it finds out whether a model's folder is there
    return encoder


def _see_that_it_can_work(block: Dense, encoder: Encoder, bench: Bench) -> None:
    """Let an encoder say that a key, credentials or a region is missing: no matter where all its texts are cached."""
    try:
        getattr(encoder, "check", lambda: None)()
    except InputError:
        timed = bench.sample and not bench.latencies.get(block.name)
        expected = forecast(Embedder(encoder, bench.cache, meter=Meter()), bench.dataset, chunks_of(block))
        if timed or any(one.cached < one.texts for one in expected.values()):
            raise


def _reranker(block: Block, bench: Bench, meter: Meter) -> CrossEncoderReranker | None:
    if block.rerank is None:
        return None
    cls: Any = reranker_class(block.rerank.kind)
    reranker: CrossEncoderReranker = cls(
        **expanded(block.rerank.options), content=_Contents(bench.dataset), cache=bench.cache, meter=meter
    )
    _ = reranker.fingerprint
    return reranker


def _meter(name: str, bench: Bench) -> Meter:
    return Meter(budget=bench.budget, watch=lambda meter: bench.watch(name, meter))


def _run(block: Block, equipped: _Equipped, bench: Bench, done: _Done) -> Run:
    """Answer with one retriever."""
    answered, error = _Answered({}), ""
    latency = bench.latencies.get(block.name, {})
    try:
        failed = [name for name in inputs(block) if done.runs[name].error]
        if failed:
            raise BackendError(f"it is made of {', '.join(failed)}, which failed")
        answered = _answered(block, equipped, bench, done)
        if bench.sample and not latency:
            with equipped.meter.stage("latency"):
                latency = measure(bench.dataset.queries, bench.sample, answered.timed)
    except HarnessError as failure:
        # What can only be seen now (a model that the hub does not have, a store that another process holds) stops
        # this retriever and what is made of it, not the others.
        answered, error = _Answered({}), str(failure)
    meter = equipped.meter
    provenance = {**equipped.provenance, **answered.facts}
    return Run(block.name, answered.answers, meter.stages(), meter.notes(), provenance, latency, error)


def _answered(block: Block, equipped: _Equipped, bench: Bench, done: _Done) -> _Answered:
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


def _first_stage(block: Block, equipped: _Equipped, bench: Bench, done: _Done) -> _Answered:
    """The answers before any reranking; equal first stages are computed once."""
    match block:
        case Fusion():
            return _fused(block, equipped.meter, bench, [done.runs[name].rankings for name in block.of])
        case Reranked():
            return _Answered(dict(done.runs[block.of].rankings))
    key = _canonical(block.model_dump(exclude={"name", "rerank"}))
    if key not in done.first_stages:
        done.first_stages[key] = _searched(block, equipped, bench)
    return done.first_stages[key]


def _fused(block: Fusion, meter: Meter, bench: Bench, of: Sequence[Mapping[str, Ranking]]) -> _Answered:
    def fuse(query: Query) -> Ranking:
        return reciprocal_rank_fusion([run[query.id] for run in of], bench.depth, constant=block.constant)

    def timed(query: Query) -> Mapping[str, float]:
        watch = Stopwatch()
        fuse(query)
        watch.split("fuse")
        return watch.seconds

    with meter.stage("fuse"):
        return _Answered({query.id: fuse(query) for query in bench.dataset.queries}, timed)


def _searched(block: Block, equipped: _Equipped, bench: Bench) -> _Answered:
    retriever, timed = _retriever(block, equipped, bench)
    retriever.index(_Corpus(bench.dataset))
    rankings = retriever.search(bench.dataset.queries, bench.depth)
    answers = {query.id: ranking for query, ranking in zip(bench.dataset.queries, rankings, strict=True)}
    facts = _facts(block, retriever, bench) if isinstance(block, Dense) else {}
    return _Answered(answers, timed, facts)


def _facts(block: Dense, retriever: Retriever, bench: Bench) -> dict[str, str]:
    """What the index is made of, for the manifest."""
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


def _retriever(block: Block, equipped: _Equipped, bench: Bench) -> tuple[Retriever, Timed]:
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


def chunks_of(block: Dense) -> Chunks | None:
    """How a retriever cuts its documents."""
    return Chunks(block.chunk.size, block.chunk.overlap) if block.chunk else None


def _store(block: Dense, equipped: _Equipped, bench: Bench) -> Store:
    """The collection: in memory by the retriever's name, elsewhere by what is in it."""
    assert equipped.encoder is not None
    options = StoreOptions(**expanded(block.store))
    chunks = chunks_of(block)
    inside = f"{equipped.encoder.fingerprint}-{bench.dataset.corpus_digest}{chunks.suffix if chunks else ''}"
    collection = block.name if options.resolved(bench.dataset.count) == MEMORY else inside
    return open_store(options, collection, documents=bench.dataset.count, folder=bench.stores, meter=equipped.meter)


def _canonical(table: Mapping[str, Any]) -> str:
    return json.dumps(table, sort_keys=True, default=str)
