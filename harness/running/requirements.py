"""Requirements that a run does not meet."""

from __future__ import annotations

from collections.abc import Sequence

from harness.build.built_retriever import BuiltRetriever
from harness.build.missing import (
    collect_part_errors,
    missing_chat_price,
    missing_price,
    missing_requirements,
    unanswered_queries,
)
from harness.preflight.embedding import forecast_embedding
from harness.running.context import RunContext
from retrievers.dense import Dense
from retrievers.embedder import Embedder
from retrievers.errors import InputError, Problem
from retrievers.types import Model, Retriever


def check_requirements(
    retrievers: Sequence[BuiltRetriever], context: RunContext
) -> None:
    """Refuse a run whose retrievers lack something, such as a key.

    An encoder whose texts are all cached needs nothing.

    Args:
        retrievers: those that run.
        context: of the run; with a limited budget every price must be known.

    Raises:
        InputError: what each of them lacks.
    """
    problems: list[Problem] = []
    query_ids = [query.id for query in context.dataset.queries]
    names = {built.name for built in retrievers}
    for built in retrievers:
        parts: list[Model | Retriever] = [*built.other_retrievers, *built.rerankers]
        for part in parts:
            missing = missing_requirements(built.name, part)
            problems += missing or unanswered_queries(built.name, part, query_ids)
        if context.budget.limit is not None:
            problems += _missing_prices(built)
        for dense in built.dense_parts:
            # Smaller vectors come from those of the retriever they are derived from,
            # which is checked itself if it runs.
            if dense.reduction.derived_from not in names:
                problems += _missing_of_dense(built, dense, context)
    if problems:
        raise InputError(problems)


def _missing_prices(built: BuiltRetriever) -> list[Problem]:
    problems: list[Problem] = []
    for dense in built.dense_parts:
        problems += missing_price(built.name, "encoder", dense.encoder)
    for reranker in built.rerankers:
        problems += missing_price(built.name, "rerank", reranker)
    for agent in built.agents:
        problems += missing_chat_price(built.name, agent.model)
    return problems


def _missing_of_dense(
    built: BuiltRetriever, dense: Dense, context: RunContext
) -> list[Problem]:
    """Return what a vector search lacks to embed uncached texts."""
    problems: list[Problem] = []
    with collect_part_errors(problems, built.name, dense.encoder):
        if dense.chunks is not None:
            dense.chunks.check()
        missing = missing_requirements(built.name, dense.encoder)
        # Without the network its fingerprint, the cache's key, may be unknown.
        is_known = dense.encoder.at_hand
        if missing and not (is_known and _is_cached(built, dense, context)):
            problems += missing
    return problems


def _is_cached(built: BuiltRetriever, dense: Dense, context: RunContext) -> bool:
    """Whether every vector that the retriever needs is in the cache."""
    forecasts = forecast_embedding(
        Embedder(dense.encoder, context.cache),
        context.dataset,
        dense.chunks,
        built.conversation_queries(context.dataset.queries),
    )
    return all(forecast.cached >= forecast.texts for forecast in forecasts.values())
