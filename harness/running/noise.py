"""How far a mean moves when the same texts are embedded again in other ways: below that, no difference counts."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from harness import records
from harness.dataset import Dataset
from harness.evaluation.readers import Judged, score_lists
from harness.experiment import Encoded, Loaded, load
from harness.experiment.option_tables import Kind, options_of
from harness.records import EncodingNoise, Results
from harness.running.answering import Corpus, State, first_stage
from harness.running.check import Prepared, prepare
from harness.running.components import build_components
from harness.running.options import Options
from harness.running.shared import Shared
from retrievers import encoder_class
from retrievers.cache import Cache, default_path
from retrievers.costs import Tokens
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.held import faults_of
from retrievers.meter import Budget, Call, Meter
from retrievers.stores import MEMORY
from retrievers.types import Document, Embedded, Encoder, Ranking, Role, collapsed

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
    """One way to embed the same texts that ought to change nothing."""

    name: str
    options: Mapping[str, Any] = NOTHING
    """Of the encoder, in place of its own."""
    backwards: bool = False
    """Whether the longest texts come first, and each request holds other ones."""
    threads: int | None = None
    """Of the processor; None: as always."""


class Sample(NamedTuple):
    """What is embedded again."""

    dataset: Dataset
    """Some of the queries, and the documents that were among the first of any of them."""
    judged: Judged
    depth: int


def measure_noise(
    experiment: str | Path,
    retrievers: Sequence[str] = (),
    *,
    queries: int = QUERIES,
    options: Options = Options(),  # noqa: B008 - immutable
) -> Results:
    """Embed a sample of a run again in other ways, rank again, and keep what moved in the results' manifest.

    Queries are drawn with the experiment's seed; of the documents those are embedded that the retriever had among its
    first hundred for any of them. Nothing that is embedded for this enters the cache.

    Args:
        experiment: its file; it was run, and its results lie where `options` say.
        retrievers: those that are measured; none: all that embed.
        queries: how many are asked again, at most.
        options: where results lie, what may be spent, who sees progress.

    Returns:
        The results, read back.

    Raises:
        InputError: there are no results of this experiment and this data; or no such retriever, or it does not embed.
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
    results = records.read(place)
    found, budget = dict(results.manifest.noise), Budget(options.max_cost)
    for block in _measured(loaded, results, retrievers):
        sample = _sample(prepared, loaded, results.rankings(block.name), queries)
        found[block.name] = _noise(block, sample, options, budget)
    records.rewrite_manifest(place, replace(results.manifest, noise=found))
    return records.read(place)


def _measured(loaded: Loaded, results: Results, names: Sequence[str]) -> list[Encoded]:
    """The blocks that are measured."""
    embedding = {
        block.name: block
        for block in loaded.experiment.retrievers
        if isinstance(block, Encoded) and block.name in results.retrievers
    }
    for name in names:
        if name not in embedding:
            what = f"{name!r} is no retriever that embeds and has answered"
            raise InputError(Problem("--retriever", what, did_you_mean(name, embedding)))
    if not embedding:
        raise InputError(Problem(str(loaded.path), "no retriever embeds", "what only compares words has no noise"))
    return [block for name, block in embedding.items() if not names or name in names]


def _sample(prepared: Prepared, loaded: Loaded, rankings: Mapping[str, Ranking], most: int) -> Sample:
    """Draw queries that have scores, and take the documents that were found first for any of them."""
    dataset, graded, question = prepared.dataset, prepared.graded, loaded.question
    scored = [query for query in dataset.queries if query.id in graded.grades]
    drawn = np.random.default_rng(loaded.experiment.seed).permutation(len(scored))[:most]
    chosen = tuple(scored[i] for i in sorted(drawn.tolist()))
    first = {id_ for query in chosen for id_ in rankings[query.id].doc_ids[:READ]}

    def documents() -> Iterator[Document]:
        return (one for one in dataset.documents() if dataset.same_as.get(one.id, one.id) in first)

    part = replace(dataset, queries=chosen, count=sum(1 for _ in documents()), read_documents=documents)
    labels = graded._replace(grades={query.id: graded.grades[query.id] for query in chosen})
    judged = Judged(
        (question.primary,), question.primary, labels, {query.id: query for query in chosen},
        loaded.experiment.statistics,
    )  # fmt: skip
    return Sample(part, judged, loaded.experiment.depth)


def _noise(block: Encoded, sample: Sample, options: Options, budget: Budget) -> EncodingNoise:
    """Embed and rank the sample as the run did, then in every other way."""
    with Cache(default_path()) as cache:
        plain = _answers(block, sample, cache, Way("as in the run"), (options, budget))
    means, moved = [_mean(sample, block.name, plain)], set[str]()
    ways = _ways(block)
    for way in ways:
        with TemporaryDirectory() as folder, Cache(Path(folder) / "cache.sqlite") as empty:
            again = _answers(block, sample, empty, way, (options, budget))
        means.append(_mean(sample, block.name, again))
        moved |= {id_ for id_, of in plain.items() if of.doc_ids[:LOOKED_AT] != again[id_].doc_ids[:LOOKED_AT]}
    return EncodingNoise(
        queries=len(plain),
        documents=sample.dataset.count,
        means=dict(zip(["as in the run", *(way.name for way in ways)], means, strict=True)),
        deviation=statistics.stdev(means),
        moved=len(moved) / len(plain),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _ways(block: Encoded) -> list[Way]:
    """The other ways to embed: a service is asked again; a model here is loaded with what options and machine allow."""
    (components,) = build_components([block]).values()
    if components.encoder is None or components.encoder.limits is not None:
        return [Way(f"asked again ({number})") for number in range(1, TIMES + 1)]
    ways = [Way("reverse order", backwards=True), Way("one thread", threads=1)]
    known, own = options_of(encoder_class(block.encoder.kind)).model_fields, block.encoder.options
    if "batch_size" in known:
        ways += [
            Way(f"{size} a batch", {"batch_size": size}) for size in (SMALL, LARGE) if own.get("batch_size") != size
        ]
    if own.get("dtype") == "float32" and own.get("backend", "torch") == "torch" and _has_bfloat16():
        ways.append(Way("bfloat16", {"dtype": "bfloat16"}))
    return ways


def _has_bfloat16() -> bool:
    """Whether the processor computes in bfloat16; elsewhere it would be imitated, slowly."""
    import torch

    able = torch.cpu.get_capabilities()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))


def _answers(block: Encoded, sample: Sample, cache: Cache, way: Way, run: tuple[Options, Budget]) -> dict[str, Ranking]:
    """Embed and rank the sample in one way, every vector compared."""
    options, budget = run
    kind = Kind(kind=block.encoder.kind, options={**block.encoder.options, **way.options})
    block = block.model_copy(update={"encoder": kind, "store": {"location": MEMORY}})
    (components,) = build_components([block]).values()
    if way.backwards and components.encoder is not None:
        components = components._replace(encoder=Backwards(components.encoder))
    meter = Meter(budget, lambda meter: options.watch(f"{block.name}, {way.name}", meter))
    shared = Shared(sample.dataset, cache, cache.path.parent, sample.depth, budget)
    state = State(shared, Corpus(sample.dataset), {})
    with _threads(way.threads), faults_of(components):
        answers = first_stage(block, components, state, meter).answers
    same_as = sample.dataset.same_as
    return {id_: collapsed(ranking, same_as) if same_as else ranking for id_, ranking in answers.items()}


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
