"""Builds retrievers, indexes, replays queries: an experiment and its data set -> Runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.dataset import Dataset
from harness.experiment import BM25, Block, Dense, Experiment, Fusion, Reranked, expanded, inputs
from harness.options import Kind
from harness.records import Run
from retrievers import encoder_class, reranker_class
from retrievers.bm25 import BM25Retriever
from retrievers.cache import Cache
from retrievers.dense import DenseRetriever
from retrievers.embedding import Embedder
from retrievers.errors import BackendError, HarnessError, InputError, Problem
from retrievers.fusion import reciprocal_rank_fusion
from retrievers.meter import Budget, Meter
from retrievers.stores import MEMORY, StoreOptions, open_store
from retrievers.types import Document, Encoder, Ranking

Watch = Callable[[str, Meter], None]
"""Told the retriever's name and its meter whenever something was counted."""
Answers = dict[str, Ranking]
"""Query id -> ranking."""


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


@dataclass(slots=True)
class _Done:
    """What was already computed in this run, to be computed once."""

    runs: dict[str, Run] = field(default_factory=dict)
    first_stages: dict[str, Answers] = field(default_factory=dict)
    """Canonical first stage -> its answers."""


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
        InputError: some encoder cannot be built; told before anything is embedded.
    """
    encoders = _encoders(experiment, bench)
    done = _Done(dict(known or {}))
    for block in in_order(experiment.retrievers):
        if block.name not in done.runs:
            done.runs[block.name] = _run(block, encoders.get(block.name), bench, done)
            yield done.runs[block.name]


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
    """An encoder, and the meter that it writes to: that of the first retriever which uses it."""

    encoder: Encoder
    fingerprint: str
    meter: Meter
    owner: str


def _encoders(experiment: Experiment, bench: Bench) -> dict[str, _Equipped]:
    """Build the encoders, equal ones once, without loading a model."""
    built: dict[str, _Equipped] = {}
    by_block: dict[str, _Equipped] = {}
    problems: list[Problem] = []
    for block in experiment.retrievers:
        if not isinstance(block, Dense):
            continue
        key = _canonical(block.encoder.written())
        if key not in built:
            meter = _meter(block.name, bench)
            try:
                cls: Any = encoder_class(block.encoder.kind)
                encoder: Encoder = cls(**expanded(block.encoder.options), meter=meter)
                # Asked for now, since it finds out whether a model's folder is there.
                built[key] = _Equipped(encoder, encoder.fingerprint, meter, block.name)
            except InputError as error:
                problems += [Problem(f"retriever {block.name!r}: {p.where}", p.what, p.remedy) for p in error.problems]
                continue
        by_block[block.name] = built[key]
    if problems:
        raise InputError(problems)
    return by_block


def _meter(name: str, bench: Bench) -> Meter:
    return Meter(budget=bench.budget, watch=lambda meter: bench.watch(name, meter))


def _run(block: Block, equipped: _Equipped | None, bench: Bench, done: _Done) -> Run:
    """Answer with one retriever."""
    meter = equipped.meter if equipped and equipped.owner == block.name else _meter(block.name, bench)
    provenance: Mapping[str, str] = {}
    answers: Answers = {}
    error = ""
    try:
        failed = [name for name in inputs(block) if done.runs[name].error]
        if failed:
            raise BackendError(f"it is made of {', '.join(failed)}, which failed")
        answers = _first_stage(block, equipped, meter, bench, done)
        if block.rerank is not None:
            answers = _reranked(block.rerank, answers, meter, bench)
        if equipped is not None:
            provenance = dict(getattr(equipped.encoder, "provenance", {}))
    except HarnessError as failure:
        # What can only be seen now (a model that the hub does not have, a store that another process holds) stops
        # this retriever and what is made of it, not the others.
        answers, error = {}, str(failure)
    return Run(block.name, answers, meter.stages(), meter.notes(), provenance, error=error)


def _first_stage(block: Block, equipped: _Equipped | None, meter: Meter, bench: Bench, done: _Done) -> Answers:
    queries, depth = bench.dataset.queries, bench.depth
    match block:
        case Fusion():
            of = [done.runs[name].rankings for name in block.of]
            with meter.stage("fuse"):
                return {
                    query.id: reciprocal_rank_fusion([run[query.id] for run in of], depth, constant=block.constant)
                    for query in queries
                }
        case Reranked():
            return dict(done.runs[block.of].rankings)
    key = _canonical(block.model_dump(exclude={"name", "rerank"}))
    if key not in done.first_stages:
        retriever = _retriever(block, equipped, meter, bench)
        retriever.index(_Corpus(bench.dataset))
        rankings = retriever.search(queries, depth)
        done.first_stages[key] = {query.id: ranking for query, ranking in zip(queries, rankings, strict=True)}
    return done.first_stages[key]


def _retriever(block: Block, equipped: _Equipped | None, meter: Meter, bench: Bench) -> BM25Retriever | DenseRetriever:
    match block:
        case BM25():
            return BM25Retriever(k1=block.k1, b=block.b, stemming=block.stemming, meter=meter)
        case Dense() if equipped is not None:
            embedder = Embedder(equipped.encoder, bench.cache, meter=meter)
            options = StoreOptions(**expanded(block.store))
            inside = f"{equipped.fingerprint}-{bench.dataset.corpus_digest}"
            collection = block.name if options.resolved(bench.dataset.count) == MEMORY else inside
            store = open_store(options, collection, documents=bench.dataset.count, folder=bench.stores, meter=meter)
            return DenseRetriever(embedder.embed, store, meter)
    raise TypeError(f"{type(block).__name__} has no first stage of its own")


def _reranked(kind: Kind, answers: Answers, meter: Meter, bench: Bench) -> Answers:
    cls: Any = reranker_class(kind.kind)
    reranker = cls(**expanded(kind.options), content=bench.dataset.texts, cache=bench.cache, meter=meter)
    queries = bench.dataset.queries
    with meter.stage("rerank", total=len(queries)):
        better: list[Ranking] = reranker.rerank_all(queries, [answers[query.id] for query in queries])
    return {query.id: ranking for query, ranking in zip(queries, better, strict=True)}


def _canonical(table: Mapping[str, Any]) -> str:
    return json.dumps(table, sort_keys=True, default=str)
