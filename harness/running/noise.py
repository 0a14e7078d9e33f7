"""Noise of embedding: how far a mean moves when the same texts are embedded again; below, no difference counts."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from harness import records
from harness.dataset import Dataset
from harness.evaluation import score_tables
from harness.evaluation.readers import Judged, score_lists
from harness.experiment import Block, Encoded, Experiment, Loaded, inputs, load, parts_of
from harness.experiment.option_tables import Kind, options_of
from harness.records import EncodingNoise, Results, Run
from harness.running.check import Prepared, prepare
from harness.running.components import Components, build_components
from harness.running.options import Options, Shared
from harness.running.runner import run_all
from retrievers import encoder_class, reranker_class
from retrievers.cache import Cache, default_path
from retrievers.costs import Tokens
from retrievers.errors import BackendError, InputError, OverBudget, Problem, did_you_mean
from retrievers.meter import Budget, Call
from retrievers.stores import MEMORY
from retrievers.types import Document, Embedded, Encoder, Query, Ranking, Role

QUERIES = 20
"""Queries that are asked again unless more are wanted; with 100 documents each, a small model takes minutes."""
READ = 100
"""Documents of a query that are embedded again: its first ones."""
LOOKED_AT = 10
"""Hits of a query that are compared one by one."""
TIMES = 5
"""Times that a service is asked again: what it changes between two requests is its own affair."""
SMALL, LARGE = 1, 64
"""Texts a request."""


NOTHING: Mapping[str, Any] = MappingProxyType({})


class Way(NamedTuple):
    """One way to compute the same that ought to change nothing."""

    name: str
    options: Mapping[str, Any] = NOTHING
    """Of encoders and rerankers that have them, in place of their own."""
    backwards: bool = False
    """Whether the longest texts come first, and each request holds other ones."""
    threads: int | None = None
    """Of the processor; None: as always."""


AS_RUN = Way("as in the run")


class Sample(NamedTuple):
    """What is embedded again for one retriever."""

    blocks: tuple[Block, ...]
    """The retriever, and those that it is made of."""
    known: Mapping[str, Run]
    """What of these has no model answered to the queries: their first hits."""
    dataset: Dataset
    """Some of the queries, and the documents that were among the first of any of them."""
    judged: Judged


def measure_noise(
    experiment: str | Path,
    retrievers: Sequence[str] = (),
    *,
    queries: int = QUERIES,
    options: Options = Options(),  # noqa: B008 - immutable
) -> Results:
    """Embed a sample of a run again in other ways, rank again, and keep what moved in the results' manifest.

    Queries are drawn with the experiment's seed; of the documents those are embedded that the retriever, or one that it
    is made of, had among its first hundred for any of them. Rerankers read again, rankings are fused again; what only
    compares words stays as it was. Nothing that is computed for this enters the cache.

    Args:
        experiment: its file; it was run, and its results lie where `options` say.
        retrievers: those that are measured; none: all that a model has a part in.
        queries: how many are asked again, at most.
        options: where results lie, what may be spent, who sees progress.

    Returns:
        The results, read back.

    Raises:
        InputError: there are no results of this experiment and this data; or no such retriever, or it has no model.
        BackendError: a model failed for good. OverBudget: more would be spent than `max_cost`.
    """
    loaded = load(experiment, code=options.code)
    prepared = prepare(loaded)
    place = Path(options.results) / loaded.experiment.name
    if records.experiment_and_data(place) != (loaded.asked, prepared.dataset.digest):
        what = "holds no results of this experiment and this data"
        raise InputError(Problem(str(place), what, f"harness run {experiment}"))
    if loaded.question.primary.claimed:
        what = f"{loaded.question.primary} is judged by claims, which no ranking changes in a known way"
        raise InputError(Problem("primary", what, "name a measure by grades first"))
    results, budget = records.read(place), Budget(options.max_cost)
    samples = {
        name: _sample(prepared, loaded, results, parts, queries)
        for name, parts in _measured(loaded, results, retrievers).items()
    }
    for name in [name for name, sample in samples.items() if not sample.dataset.count]:
        del samples[name]
        options.on_message(f"{name} has no hit for any query that was drawn: it has no noise to measure")
    if not samples:
        raise InputError(Problem(str(place), "no query that was drawn has a hit", "there is nothing to embed again"))
    ways = {name: _ways(sample.blocks) for name, sample in samples.items()}
    answers: dict[str, dict[str, Mapping[str, Ranking]]] = {name: {} for name in samples}
    for way in {way.name: way for way in (AS_RUN, *chain.from_iterable(ways.values()))}.values():
        with _cache_for(way) as cache:
            for name, sample in samples.items():
                if way is AS_RUN or way in ways[name]:
                    answers[name][way.name] = _answers(loaded.experiment, sample, cache, way, (options, budget))
    measured = {name: _noise(name, samples[name], of) for name, of in answers.items()}
    records.rewrite_manifest(place, replace(results.manifest, noise={**results.manifest.noise, **measured}))
    return records.read(place)


def _measured(loaded: Loaded, results: Results, names: Sequence[str]) -> dict[str, tuple[Block, ...]]:
    """The retrievers that are measured, each with the blocks that it is made of, itself last."""
    parts = parts_of(loaded.experiment.retrievers)
    able = {name: of for name, of in parts.items() if name in results.retrievers and any(map(_has_model, of))}
    if not able:
        what = "no retriever that answered has a model"
        raise InputError(Problem(str(loaded.path), what, "what only compares words has no noise"))
    for name in names:
        if name not in able:
            what = f"{name!r} is not a retriever that a model has a part in and that has answered"
            raise InputError(Problem("--retriever", what, did_you_mean(name, able)))
    return {name: of for name, of in able.items() if not names or name in names}


def _has_model(block: Block) -> bool:
    return isinstance(block, Encoded) or block.rerank is not None


def _sample(prepared: Prepared, loaded: Loaded, results: Results, blocks: tuple[Block, ...], most: int) -> Sample:
    """Draw queries that have scores, and take the documents that were found first for any of them."""
    dataset, graded, question = prepared.dataset, prepared.graded, loaded.question
    scored = [query for query in dataset.queries if query.id in graded.grades]
    drawn = np.random.default_rng(loaded.experiment.seed).permutation(len(scored))[:most]
    chosen = tuple(scored[i] for i in sorted(drawn.tolist()))
    runs = {block.name: _first_hits(results.run(block.name), chosen) for block in blocks}
    first = {id_ for run in runs.values() for ranking in run.rankings.values() for id_ in ranking.doc_ids}

    def documents() -> Iterator[Document]:
        return (one for one in dataset.documents() if dataset.same_as.get(one.id, one.id) in first)

    part = replace(dataset, queries=chosen, count=sum(1 for _ in documents()), read_documents=documents)
    labels = graded._replace(grades={query.id: graded.grades[query.id] for query in chosen})
    judged = Judged(
        (question.primary,), question.primary, labels, {query.id: query for query in chosen},
        replace(loaded.experiment.statistics, cluster=None),  # no mean depends on it, and those drawn may all lack it
    )  # fmt: skip
    known = {block.name: runs[block.name] for block in blocks if not _has_model(block) and not inputs(block)}
    return Sample(blocks, known, part, judged)


def _first_hits(run: Run, queries: Sequence[Query]) -> Run:
    """The first hits of some queries, and all that a reranker read: it looks them up again."""
    most = max(READ, int(run.provenance.get(score_tables.READ, 0)))
    rankings = {query.id: run.rankings[query.id] for query in queries}
    first = {id_: Ranking(ranking.doc_ids[:most], ranking.scores[:most]) for id_, ranking in rankings.items()}
    return replace(run, rankings=first)


def _noise(name: str, sample: Sample, answers: Mapping[str, Mapping[str, Ranking]]) -> EncodingNoise:
    """What moved between the ways, that of the run among them."""
    plain, means = answers[AS_RUN.name], {way: _mean(sample, name, of) for way, of in answers.items()}
    moved = {id_ for again in answers.values() for id_, ranking in plain.items()
             if ranking.doc_ids[:LOOKED_AT] != again[id_].doc_ids[:LOOKED_AT]}  # fmt: skip
    return EncodingNoise(
        queries=len(plain),
        documents=sample.dataset.count,
        means=means,
        deviation=statistics.stdev(means.values()),
        moved=len(moved) / len(plain),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


@contextmanager
def _cache_for(way: Way) -> Iterator[Cache]:
    """The cache as it is for what the run did; an empty one for every other way, which all retrievers share."""
    if way is AS_RUN:
        with Cache(default_path()) as cache:
            yield cache
    else:
        with TemporaryDirectory() as folder, Cache(Path(folder) / "cache.sqlite") as cache:
            yield cache


def _ways(blocks: Sequence[Block]) -> list[Way]:
    """The other ways: models here are loaded with what options and machine allow; services alone are asked again."""
    models = [model for one in build_components(blocks).values() for model in (one.encoder, one.reranker) if model]
    if all(model.limits is not None for model in models):
        return [Way(f"asked again ({number})") for number in range(1, TIMES + 1)]
    ways = [Way("reverse order", backwards=True), Way("one thread", threads=1)]
    tables = [part for block in blocks for part in _models_in(block)]
    batches = {part.kind.options.get("batch_size") for part in tables if "batch_size" in part.known}
    ways += [Way(f"{size} a batch", {"batch_size": size}) for size in (SMALL, LARGE) if batches - {size}]
    if any(_in_float32(part.kind.options) for part in tables) and _has_bfloat16():
        ways.append(Way("bfloat16", {"dtype": "bfloat16"}))
    return ways


class _Part(NamedTuple):
    """A table of a block that names a model."""

    key: str
    kind: Kind
    known: Collection[str]
    """The options of its kind."""


def _models_in(block: Block) -> Iterator[_Part]:
    if isinstance(block, Encoded):
        yield _Part("encoder", block.encoder, options_of(encoder_class(block.encoder.kind)).model_fields)
    if block.rerank is not None:
        yield _Part("rerank", block.rerank, options_of(reranker_class(block.rerank.kind)).model_fields)


def _in_float32(options: Mapping[str, Any]) -> bool:
    return options.get("dtype") == "float32" and options.get("backend", "torch") == "torch"


def _has_bfloat16() -> bool:
    """Whether the processor computes in bfloat16; elsewhere it would be imitated, slowly."""
    import torch

    able = torch.cpu.get_capabilities()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))


def _answers(
    experiment: Experiment, sample: Sample, cache: Cache, way: Way, run: tuple[Options, Budget]
) -> Mapping[str, Ranking]:
    """Answer the sample's queries in one way, every vector compared."""
    options, budget = run
    blocks = tuple(_in_another_way(block, way) for block in sample.blocks)
    components = build_components(blocks)
    if way.backwards:
        components = {name: _turned(one) for name, one in components.items()}
    shared = Shared(
        sample.dataset, cache, cache.path.parent, experiment.depth, budget,
        lambda name, meter: options.watch(f"{name}, {way.name}", meter),
        exclude_self=experiment.dataset.exclude_self,
    )  # fmt: skip
    answers: dict[str, Mapping[str, Ranking]] = {}
    part = experiment.model_copy(update={"retrievers": blocks, "vectors": None})
    with _threads(way.threads):
        for answered in run_all(part, components, shared, known=sample.known):
            if answered.error:
                raise (OverBudget if budget.refused else BackendError)(f"{answered.retriever}: {answered.error}")
            answers[answered.retriever] = answered.rankings
    return answers[sample.blocks[-1].name]


def _turned(components: Components) -> Components:
    """The same with a model on this machine given the texts in reverse order; a service is asked as it was."""
    encoder = components.encoder
    return (
        components if encoder is None or encoder.limits is not None else components._replace(encoder=Backwards(encoder))
    )


def _in_another_way(block: Block, way: Way) -> Block:
    """A block with the way's options, where its models have them, and its vectors in memory."""
    changed: dict[str, Any] = {"store": {"location": MEMORY}} if isinstance(block, Encoded) else {}
    for key, kind, known in _models_in(block):
        fitting = {option: value for option, value in way.options.items() if option in known}
        changed[key] = Kind(kind=kind.kind, options={**kind.options, **fitting})
    return block.model_copy(update=changed)


def _mean(sample: Sample, name: str, answers: Mapping[str, Ranking]) -> float:
    """The mean of the primary measure over the sample."""
    documents: dict[str, Sequence[str]] = {id_: ranking.doc_ids for id_, ranking in answers.items()}
    scores = score_lists(sample.judged, {name: lambda: documents})
    return scores.mean(scores.primary, name)


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """On so many threads of the processor what torch computes; a model takes their number as it is loaded."""
    if count is None:
        yield
        return
    import torch

    usual = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(usual)


class Backwards(Encoder):
    """An encoder that is given the texts in reverse order."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.form = encoder.form  # type: ignore[misc]  # what it stands for decides, not its class

    @property
    def fingerprint(self) -> str:
        """That of the encoder."""
        return self._encoder.fingerprint

    @property
    def concurrency(self) -> int:
        """That of the encoder."""
        return self._encoder.concurrency

    @property
    def reads(self) -> int | None:
        """That of the encoder."""
        return self._encoder.reads

    def lengths(self, texts: Sequence[str], role: Role) -> Tokens:
        """Those that the encoder counts: they decide where documents are cut."""
        return self._encoder.lengths(texts, role)

    def batches(self, texts: Sequence[str], role: Role) -> Iterable[Sequence[int]]:
        """The encoder's requests for the longest texts first."""
        last = len(texts) - 1
        return ([last - i for i in request] for request in self._encoder.batches(texts[::-1], role))

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Embed the texts of one request."""
        return self._encoder.embed(texts, role, call)
