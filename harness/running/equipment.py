"""What retrievers are built with: encoders and rerankers, checked before a model loads, and what they share."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from harness.dataset import Dataset
from harness.experiment import BM25, Block, Dense, Experiment, expanded
from harness.experiment.options import Kind
from harness.records import StageLatency
from retrievers import encoder_class, reranker_class
from retrievers.bm25 import BM25Retriever
from retrievers.cache import Cache
from retrievers.chunking import Chunks, passages
from retrievers.dense import WINDOW
from retrievers.embedding import Embedder, Forecast
from retrievers.errors import InputError, Problem
from retrievers.meter import Budget, Meter
from retrievers.rerankers.cross_encoder import CrossEncoderReranker
from retrievers.types import Document, Encoder, Role

Watch = Callable[[str, Meter], None]
"""Told the retriever's name and its meter whenever something was counted."""


@dataclass(frozen=True, slots=True)
class Shared:
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
    latencies: Mapping[str, Mapping[str, StageLatency]] = field(default_factory=dict)
    """Retriever -> stage -> what was measured before: kept, so that a warm run loads no model."""


@dataclass(frozen=True, slots=True)
class Equipment:
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


def equip(blocks: Sequence[Block], bench: Shared) -> dict[str, Equipment]:
    """Build encoders, equal ones once, and rerankers, without loading a model."""
    built: dict[str, tuple[Encoder, Meter]] = {}
    equipment: dict[str, Equipment] = {}
    problems: list[Problem] = []
    for block in blocks:
        meter = _meter(block.name, bench)
        try:
            encoder = None
            if isinstance(block, Dense):
                key = canonical(block.encoder.written())
                if key not in built:
                    built[key] = _encoder(block.encoder, meter), meter
                encoder = built[key][0]
                _check_access(block, encoder, bench)
            equipment[block.name] = Equipment(meter, encoder, _reranker(block, bench, meter))
        except InputError as error:
            problems += [Problem(f"retriever {block.name!r}: {p.where}", p.what, p.remedy) for p in error.problems]
    if problems:
        raise InputError(problems)
    return equipment


def _encoder(kind: Kind, meter: Meter) -> Encoder:
    encoder = encoder_of(kind, meter)
    _check_model(encoder)
    return encoder


def _check_access(block: Dense, encoder: Encoder, bench: Shared) -> None:
    """Let an encoder say that a key, credentials or a region is missing: no matter where all its texts are cached."""
    try:
        getattr(encoder, "check", lambda: None)()
    except InputError:
        timed = bench.sample and not bench.latencies.get(block.name)
        expected = forecast(Embedder(encoder, bench.cache, meter=Meter()), bench.dataset, chunks_of(block))
        if timed or any(one.cached < one.texts for one in expected.values()):
            raise


def _reranker(block: Block, bench: Shared, meter: Meter) -> CrossEncoderReranker | None:
    if block.rerank is None:
        return None
    cls: Any = reranker_class(block.rerank.kind)
    reranker: CrossEncoderReranker = cls(
        **expanded(block.rerank.options), content=_Contents(bench.dataset), cache=bench.cache, meter=meter
    )
    _check_model(reranker)
    return reranker


def _meter(name: str, bench: Shared) -> Meter:
    return Meter(budget=bench.budget, watch=lambda meter: bench.watch(name, meter))


def check_models(experiment: Experiment) -> None:
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
                _check_model(encoder_of(block.encoder, meter))
            if block.rerank is not None:
                cls: Any = reranker_class(block.rerank.kind)
                _check_model(cls(**expanded(block.rerank.options), content=None, cache=None, meter=meter))
        except InputError as error:
            problems += [p._replace(where=f"retriever {block.name!r}: {p.where}") for p in error.problems]
    if problems:
        raise InputError(problems)


def _check_model(model: Any) -> None:
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


def chunks_of(block: Dense) -> Chunks | None:
    """How a retriever cuts its documents."""
    return Chunks(block.chunk.size, block.chunk.overlap) if block.chunk else None


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


def canonical(table: Mapping[str, Any]) -> str:
    """One text for equal tables, so that what is equal is built and computed once."""
    return json.dumps(table, sort_keys=True, default=str)
