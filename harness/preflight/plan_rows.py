"""What one stage takes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.dataset import Dataset
from harness.experiment import LoadedExperiment
from harness.identity import run_identity
from harness.preflight.embedding import (
    forecast_embedding,
    has_user_chunker,
    latency_queries,
)
from harness.preflight.throughput import (
    REQUEST_SECONDS,
    EarlierRun,
    Throughput,
    price_sentence,
)
from retrievers.cache import Cache
from retrievers.dense import Dense
from retrievers.embedder import Embedder, EmbeddingForecast
from retrievers.prices import count_searches
from retrievers.texts.chunking import Chunk, passages_of
from retrievers.types import Limits, Model, Reranker, Role
from retrievers.vector_reduction import verification_texts

CANDIDATE_SAMPLE = 1000
"""Documents whose tokens are counted, to know those of a reranker's pairs."""


class PlanRow(NamedTuple):
    """One stage of one retriever."""

    retriever: str
    stage: str
    texts: int
    """Distinct texts, or a reranker's pairs."""
    cached: int
    calls: int
    """Requests, or a local model's batches."""
    tokens: int
    """Of what is not cached."""
    exact: bool
    """Whether the tokens are counted; else they are estimated."""
    usd: float | None
    """None: the price is unknown."""
    minutes: float | None
    """None: how fast the model is on this machine is unknown."""


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What planning one experiment needs."""

    loaded: LoadedExperiment
    dataset: Dataset
    cache: Cache
    earlier_runs: Sequence[EarlierRun]
    planned_rows: dict[str, PlanRow] = field(default_factory=dict)
    """What is embedded, by what it is -> its row: equal texts by an equal model occur once."""

    def same_run(self) -> EarlierRun | None:
        """The earlier run of this very experiment on these data: what it timed is not timed again."""
        asked = run_identity(self.loaded.tables, self.dataset.digest)
        made = (
            (run, run_identity(run.manifest.experiment, run.manifest.dataset.digest))
            for run in self.earlier_runs
        )
        return next((run for run, of in made if of == asked), None)

    def speed(self, part: str, model: Mapping[str, Any]) -> float | None:
        """Tokens a second of a local model, by the earlier runs."""
        tokens, seconds = map(
            sum,
            zip(
                (0, 0),
                *(one.speed(part, model) for one in self.earlier_runs),
                strict=True,
            ),
        )
        return tokens / seconds if seconds else None

    def timed_queries(self, name: str) -> list[str]:
        """The queries that are asked one at a time, past the cache."""
        latency, same = self.loaded.experiment.latency, self.same_run()
        if latency is None or (same is not None and name in same.timed_retrievers):
            return []
        return [
            query.text
            for some in latency_queries(self.dataset.queries, latency.sample)
            for query in some
        ]


def model_throughput(
    part: str, one: BuiltRetriever, model: Model, context: PlanContext
) -> tuple[Throughput, str]:
    """What a model's tokens cost and how fast it is, with a sentence that says where that is from."""
    limits = model.limits
    if limits is None:
        speed = context.speed(part, one.model_configs[id(model)])
        known = f", {speed:,.0f} tokens a second in earlier runs" if speed else ""
        return Throughput(
            model.price, speed=speed
        ), f"{price_sentence(model.price)}{known}"
    rates = [
        f"{rate:g} {name} a minute"
        for rate, name in ((limits.rpm, "requests"), (limits.tpm, "tokens"))
        if rate
    ]
    rate = ", ".join(
        [f"{limits.concurrency} requests of {REQUEST_SECONDS:g} s at once", *rates]
    )
    return Throughput(model.price, limits), f"{price_sentence(model.price)}; {rate}"


def _row(
    retriever: str,
    stage: str,
    counts: EmbeddingForecast,
    throughput: Throughput,
    *,
    together: bool = True,
    searched: int = 0,
) -> PlanRow:
    """The row of a stage whose texts are counted.

    Args:
        retriever: its name; "" for what is done for all of them together.
        stage: what is done.
        counts: of texts, calls and tokens.
        throughput: of the model.
        together: whether requests are sent together, or one after another.
        searched: searches that a reranking service bills.
    """
    minutes = throughput.minutes(counts.calls, counts.tokens, together=together)
    return PlanRow(
        retriever, stage, *counts, throughput.usd(counts.tokens, searched), minutes
    )


def embedding_rows(
    one: BuiltRetriever, dense: Dense, throughput: Throughput, context: PlanContext
) -> Iterator[PlanRow]:
    """The rows of an encoder, which are planned from then on; texts that are planned already are left out."""
    planned, encoder, name = context.planned_rows, dense.encoder, one.name
    cut = f" {dense.chunks and dense.chunks.name}"
    stages: tuple[tuple[Role, str, str], ...] = (
        ("document", "embed-documents", cut),
        ("query", "embed-queries", one.conversation),
    )
    keys = {
        f"{role} {encoder.fingerprint_for(role) if encoder.at_hand else one.model_configs[id(encoder)]}{cut}": (
            role,
            stage,
        )
        for role, stage, cut in stages
    }
    if not keys.keys() <= planned.keys():
        embedder = Embedder(encoder, context.cache)
        expected = forecast_embedding(
            embedder,
            context.dataset,
            _chunks(dense),
            one.conversation_queries(context.dataset.queries),
        )
        if has_user_chunker(dense):
            expected["document"] = expected["document"]._replace(exact=False)
        for key, (role, stage) in keys.items():
            if key not in planned:
                planned[key] = _row(name, stage, expected[role], throughput)
                yield planned[key]
    if timed := context.timed_queries(name):
        counts, exact = encoder.count(timed, "query")
        alone = EmbeddingForecast(len(timed), 0, len(timed), int(counts.sum()), exact)
        yield _row(name, "latency", alone, throughput, together=False)


def _chunks(dense: Dense) -> Chunk | None:
    """How documents are cut, as far as no code of the user's is run for it."""
    return None if has_user_chunker(dense) else dense.chunks


def verification_rows(
    one: BuiltRetriever, dense: Dense, throughput: Throughput, context: PlanContext
) -> Iterator[PlanRow]:
    """The row of the texts that are embedded at the size to which vectors are cut, to compare the two."""
    key = f"{one.model_configs[id(dense.encoder)]} {dense.chunks and dense.chunks.name} {dense.reduction.dimensions}"
    if dense.reduction.native_encoder is not None and key not in context.planned_rows:
        some = verification_texts(
            piece.content
            for piece in passages_of(context.dataset.documents(), _chunks(dense))
        )
        expected = Embedder(dense.reduction.native_encoder, context.cache).forecast(
            some, "document"
        )
        context.planned_rows[key] = _row(
            one.name, "embed-documents", expected, throughput
        )
        yield context.planned_rows[key]


def reranking_rows(
    name: str, reranker: Reranker, throughput: Throughput, context: PlanContext
) -> Iterator[PlanRow]:
    """The rows of a reranker: at most `depth` pairs a query, the first documents standing for the candidates."""
    width = min(
        reranker.depth, context.loaded.experiment.depth, context.dataset.document_count
    )
    documents = [
        document.content
        for document in islice(context.dataset.documents(), CANDIDATE_SAMPLE)
    ]
    average = float(reranker.count(documents).counts.mean())

    def requests(texts: Sequence[str]) -> int:
        pairs = [
            (text, documents[number % len(documents)])
            for text in texts
            for number in range(width)
        ]
        return sum(1 for _ in reranker.batches(pairs))

    def row(
        stage: str, texts: Sequence[str], calls: int, *, cached: bool = False
    ) -> PlanRow:
        pairs = width * len(texts)
        tokens = (
            0
            if cached
            else int(
                width * reranker.count(texts).counts.sum()
                + width * len(texts) * average
            )
        )
        counts = EmbeddingForecast(
            pairs, pairs if cached else 0, calls, tokens, not tokens
        )
        searched = len(texts) * count_searches([math.ceil(average)] * width)
        return _row(
            name,
            stage,
            counts,
            throughput,
            together=stage == "rerank",
            searched=searched,
        )

    asked = [query.text for query in context.dataset.queries]
    # Whether pairs are cached cannot be looked up before they are known: they are, where this very run was finished
    # before and nothing it embeds has gone from the cache since.
    same = context.same_run()
    embedded = all(one.texts == one.cached for one in context.planned_rows.values())
    cached = same is not None and name in same.manifest.finished and embedded
    yield row("rerank", asked, 0 if cached else requests(asked), cached=cached)
    if timed := context.timed_queries(name):
        yield row("latency-rerank", timed, sum(requests([text]) for text in timed))


def judging_rows(context: PlanContext) -> tuple[list[PlanRow], list[str]]:
    """The row of a chat model that judges claims for all retrievers together; none for a judge on this machine."""
    experiment, measures = context.loaded.experiment, context.loaded.question.measures
    table = experiment.judge
    if (
        table is None
        or table.kind != "openai"
        or not any(measure.uses_claims for measure in measures)
    ):
        return [], []
    from harness.answers.chat_forecast import forecast_claims

    needed = forecast_claims(
        table, context.dataset, measures, len(experiment.retrievers), context.cache
    )
    same = context.same_run()
    done = (
        same is not None
        and same.manifest.judge.get("judge") == needed.judge
        and "verdicts" in same.manifest.judge
    )
    calls, tokens, usd = (0, 0, 0.0) if done else needed.requests[2:]
    counts = EmbeddingForecast(
        needed.pairs, needed.pairs if done else 0, calls, tokens, done
    )
    throughput = Throughput(
        limits=Limits(table.concurrency, table.rpm, table.tpm, 0.0, 0)
    )
    price = (
        "price unknown: write input_price and output_price"
        if needed.requests.usd is None
        else f"${table.input_price or 0:g} a million tokens in, ${table.output_price or 0:g} out"
    )
    note = f"judge: {price}; at most, as if no two retrievers found the same document and nothing were cached"
    return [_row("", "judge", counts, throughput)._replace(usd=usd)], [note]
