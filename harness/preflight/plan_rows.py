"""What one stage of a run takes.

That is texts, requests, tokens, dollars, minutes: of an encoder, of a reranker, of the
check of cut vectors. `plan` puts the rows of all retrievers together.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.dataset import Dataset
from harness.experiment import LoadedExperiment, PartConfig
from harness.identity import run_identity
from harness.preflight.embedding import (
    forecast_embedding,
    has_user_chunker,
)
from harness.preflight.latency_queries import latency_queries
from harness.preflight.throughput import EarlierRun, ModelKey, Throughput
from retrievers.cache import Cache
from retrievers.dense import Dense
from retrievers.embedder import Embedder, EmbeddingForecast
from retrievers.prices import count_searches
from retrievers.texts.chunking import Chunk, passages_of
from retrievers.types import Encoder, Model, Reranker, Role
from retrievers.vector_reduction import verification_texts

CANDIDATE_SAMPLE = 1000
"""Documents whose tokens are counted, to estimate those of a reranker's pairs."""


class PlanRow(NamedTuple):
    """One stage of one retriever."""

    retriever: str
    """Its name; "" for a stage that serves all retrievers."""
    stage: str
    """Its name in costs.csv."""
    texts: int
    """Distinct texts, or a reranker's pairs."""
    cached: int
    """Those of `texts` that the cache has."""
    calls: int
    """Requests, or a local model's batches."""
    tokens: int
    """Tokens of the texts that are not cached."""
    exact: bool
    """Whether the tokens are counted; else they are estimated."""
    usd: float | None
    """Dollars; None if the price is unknown."""
    minutes: float | None
    """Minutes; None if the speed of the model on this machine is unknown."""


@dataclass(frozen=True, slots=True)
class PlanContext:
    """The experiment that is planned, and the rows that are planned already."""

    loaded: LoadedExperiment
    dataset: Dataset
    cache: Cache
    earlier_runs: Sequence[EarlierRun]
    planned_rows: dict[str, PlanRow] = field(default_factory=dict)
    """Model and texts -> the row in which they are planned; equal ones occur once."""

    def same_run(self) -> EarlierRun | None:
        """The earlier run of this experiment on these data, whose timings are kept."""
        identity = run_identity(self.loaded.tables, self.dataset.digest)
        for run in self.earlier_runs:
            digest = run.manifest.dataset.digest
            if run_identity(run.manifest.experiment, digest) == identity:
                return run
        return None

    def speed(self, part: ModelKey, model: PartConfig) -> float | None:
        """Tokens a second of a local model in the earlier runs."""
        totals = [run.tokens_read(part, model) for run in self.earlier_runs]
        tokens = sum(total.tokens for total in totals)
        seconds = sum(total.seconds for total in totals)
        return tokens / seconds if seconds else None

    def timed_queries(self, retriever: str) -> list[str]:
        """The queries that are sent one at a time, past the cache.

        Empty if the experiment times none, or this run has timed the retriever before.
        """
        latency = self.loaded.experiment.latency
        if latency is None:
            return []
        earlier = self.same_run()
        if earlier is not None and retriever in earlier.timed_retrievers:
            return []
        queries = latency_queries(self.dataset.queries, latency.sample)
        return [query.text for query in (*queries.warm_up, *queries.timed)]


def model_throughput(
    part: ModelKey, built: BuiltRetriever, model: Model, context: PlanContext
) -> Throughput:
    """Return what a model's tokens cost and how fast it reads them.

    `part` is its key in the retriever's table: "encoder" or "rerank".
    """
    if model.limits is not None:
        return Throughput(model.price, model.limits)
    speed = context.speed(part, built.model_configs[id(model)])
    return Throughput(model.price, speed=speed)


def _row(
    retriever: str,
    stage: str,
    forecast: EmbeddingForecast,
    throughput: Throughput,
    *,
    together: bool = True,
    searches: int = 0,
) -> PlanRow:
    """Return the row of a stage whose texts are counted.

    Args:
        retriever: its name; "" for a stage that serves all retrievers.
        stage: its name in costs.csv.
        forecast: texts, requests and tokens.
        throughput: of the model.
        together: whether requests are sent together, or one after another.
        searches: that a reranking service bills.
    """
    minutes = throughput.minutes(forecast.calls, forecast.tokens, together=together)
    usd = throughput.usd(forecast.tokens, searches)
    # The fields of a forecast are those of a row from `texts` to `exact`.
    return PlanRow(retriever, stage, *forecast, usd, minutes)


def embedding_rows(
    built: BuiltRetriever, dense: Dense, throughput: Throughput, context: PlanContext
) -> Iterator[PlanRow]:
    """Yield the rows of an encoder, without texts that are planned already."""
    document_key = _planned_key(built, dense, "document", context)
    query_key = _planned_key(built, dense, "query", context)
    planned = context.planned_rows
    if not {document_key, query_key} <= planned.keys():
        forecasts = _forecast(built, dense, context)
        if document_key not in planned:
            forecast = forecasts["document"]
            row = _row(built.name, "embed-documents", forecast, throughput)
            planned[document_key] = row
            yield row
        if query_key not in planned:
            forecast = forecasts["query"]
            row = _row(built.name, "embed-queries", forecast, throughput)
            planned[query_key] = row
            yield row
    timed_queries = context.timed_queries(built.name)
    if timed_queries:
        forecast = _forecast_single(dense.encoder, timed_queries)
        yield _row(built.name, "latency", forecast, throughput, together=False)


def _planned_key(
    built: BuiltRetriever, dense: Dense, role: Role, context: PlanContext
) -> str:
    """Return a text that is equal for equal texts and models."""
    encoder = dense.encoder
    if encoder.at_hand:
        model: object = encoder.fingerprint_for(role)
    else:
        model = built.model_configs[id(encoder)]
    if role == "query":
        return f"{role} {model}{built.conversation}"
    return f"{role} {model} {_chunk_name(dense)}"


def _chunk_name(dense: Dense) -> object:
    return dense.chunks and dense.chunks.name


def _forecast(
    built: BuiltRetriever, dense: Dense, context: PlanContext
) -> dict[Role, EmbeddingForecast]:
    forecasts = forecast_embedding(
        Embedder(dense.encoder, context.cache),
        context.dataset,
        _known_chunks(dense),
        built.conversation_queries(context.dataset.queries),
    )
    if has_user_chunker(dense):
        uncut = forecasts["document"]
        forecasts["document"] = uncut._replace(exact=False)
    return forecasts


def _known_chunks(dense: Dense) -> Chunk | None:
    """How documents are cut, unless code of the user cuts them."""
    return None if has_user_chunker(dense) else dense.chunks


def _forecast_single(encoder: Encoder, texts: list[str]) -> EmbeddingForecast:
    """One request for each text, past the cache."""
    counts, exact = encoder.count(texts, "query")
    return EmbeddingForecast(
        texts=len(texts),
        cached=0,
        calls=len(texts),
        tokens=int(counts.sum()),
        exact=exact,
    )


def verification_rows(
    built: BuiltRetriever, dense: Dense, throughput: Throughput, context: PlanContext
) -> Iterator[PlanRow]:
    """Yield the row of texts that a service also embeds at the reduced size.

    They verify that its vectors may be cut; no row if the vectors are not cut.
    """
    reduction = dense.reduction
    if reduction.native_encoder is None:
        return
    model = built.model_configs[id(dense.encoder)]
    key = f"{model} {_chunk_name(dense)} {reduction.dimensions}"
    if key in context.planned_rows:
        return
    passages = passages_of(context.dataset.documents(), _known_chunks(dense))
    texts = verification_texts(passage.content for passage in passages)
    embedder = Embedder(reduction.native_encoder, context.cache)
    forecast = embedder.forecast(texts, "document")
    row = _row(built.name, "embed-documents", forecast, throughput)
    context.planned_rows[key] = row
    yield row


@dataclass(frozen=True, slots=True)
class RerankingPlan:
    """What a reranker reads: the pairs of each query with the first documents.

    The documents are those of the corpus's start: candidates are known only when the
    first stage has answered.
    """

    retriever: str
    reranker: Reranker
    throughput: Throughput
    width: int
    """Pairs of a query."""
    documents: Sequence[str]
    """The first texts of the corpus."""
    mean_tokens: float
    """Mean tokens of a document."""

    def count_requests(self, queries: Sequence[str]) -> int:
        """Requests, or batches, for the pairs of some queries."""
        pairs = [
            (query, self.documents[i % len(self.documents)])
            for query in queries
            for i in range(self.width)
        ]
        return sum(1 for _ in self.reranker.batches(pairs))

    def row(
        self, stage: str, queries: Sequence[str], calls: int, *, cached: bool = False
    ) -> PlanRow:
        """The row of the pairs of some queries.

        Args:
            stage: its name in costs.csv; only in "rerank" requests are sent together.
            queries: texts of queries.
            calls: requests, or batches, that are sent.
            cached: whether the cache has all pairs.
        """
        pair_count = self.width * len(queries)
        tokens = 0
        if not cached:
            query_tokens = self.reranker.count(queries).counts.sum()
            tokens = int(self.width * query_tokens + pair_count * self.mean_tokens)
        forecast = EmbeddingForecast(
            pair_count, pair_count if cached else 0, calls, tokens, exact=not tokens
        )
        searches_per_query = count_searches([math.ceil(self.mean_tokens)] * self.width)
        return _row(
            self.retriever,
            stage,
            forecast,
            self.throughput,
            together=stage == "rerank",
            searches=len(queries) * searches_per_query,
        )


def reranking_rows(
    retriever: str, reranker: Reranker, throughput: Throughput, context: PlanContext
) -> Iterator[PlanRow]:
    """Yield the rows of a reranker: at most `depth` pairs per query."""
    depth = context.loaded.experiment.depth
    first_documents = islice(context.dataset.documents(), CANDIDATE_SAMPLE)
    documents = [document.content for document in first_documents]
    plan = RerankingPlan(
        retriever,
        reranker,
        throughput,
        width=min(reranker.depth, depth, context.dataset.document_count),
        documents=documents,
        mean_tokens=float(reranker.count(documents).counts.mean()),
    )
    queries = [query.text for query in context.dataset.queries]
    cached = _are_pairs_cached(retriever, context)
    calls = 0 if cached else plan.count_requests(queries)
    yield plan.row("rerank", queries, calls, cached=cached)
    timed_queries = context.timed_queries(retriever)
    if timed_queries:
        calls = sum(plan.count_requests([query]) for query in timed_queries)
        yield plan.row("latency-rerank", timed_queries, calls)


def _are_pairs_cached(retriever: str, context: PlanContext) -> bool:
    """Whether a reranker's pairs are cached, though they are not known yet.

    They are if this very run finished before, and nothing that it embeds has left
    the cache since.
    """
    earlier = context.same_run()
    if earlier is None or retriever not in earlier.manifest.finished:
        return False
    return all(row.texts == row.cached for row in context.planned_rows.values())
