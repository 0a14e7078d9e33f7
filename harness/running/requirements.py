"""What a run lacks."""

from __future__ import annotations

from collections.abc import Sequence

from harness.build.built_retriever import BuiltRetriever
from harness.build.missing import (
    collect_part_errors,
    missing_price,
    missing_requirements,
)
from harness.preflight.embedding import forecast_embedding
from harness.running.context import RunContext
from retrievers.dense import Dense
from retrievers.embedder import Embedder
from retrievers.errors import InputError, Problem
from retrievers.types import Model, Retriever


def check_requirements(
    built: Sequence[BuiltRetriever], shared: RunContext, *, timed: Sequence[str] = ()
) -> None:
    """Let every part say what a run lacks, such as a key; of an encoder whose texts are all cached nothing is needed.

    Args:
        built: the retrievers that are run.
        shared: what is embedded, where vectors may be, and whether the run may not spend more than a limit, so that
            every price must be known.
        timed: those whose queries are asked past the cache.

    Raises:
        InputError: with what is missing of each.
    """
    problems: list[Problem] = []
    names = {one.name for one in built}
    for one in built:
        parts: list[Model | Retriever] = [*one.other_retrievers, *one.rerankers]
        problems += [
            fault for part in parts for fault in missing_requirements(one.name, part)
        ]
        if shared.budget.limit is not None:
            for where, models in (
                ("encoder", [dense.encoder for dense in one.dense_parts]),
                ("rerank", one.rerankers),
            ):
                problems += [
                    fault
                    for model in models
                    for fault in missing_price(one.name, where, model)
                ]
        for dense in one.dense_parts:
            if dense.reduction.derived_from not in names:
                problems += _lacking_of(one, dense, shared, timed=one.name in timed)
    if problems:
        raise InputError(problems)


def _lacking_of(
    one: BuiltRetriever, dense: Dense, shared: RunContext, *, timed: bool
) -> list[Problem]:
    """What a retriever by vectors lacks for the texts that are not cached, and for the queries that are timed."""
    problems: list[Problem] = []
    with collect_part_errors(problems, one.name, dense.encoder):
        if dense.chunks is not None:
            dense.chunks.check()
        if lacks := missing_requirements(one.name, dense.encoder):
            embedder, queries = (
                Embedder(dense.encoder, shared.cache),
                one.conversation_queries(shared.dataset.queries),
            )
            expected = forecast_embedding(
                embedder, shared.dataset, dense.chunks, queries
            )
            problems += (
                lacks
                if timed or any(some.cached < some.texts for some in expected.values())
                else []
            )
    return problems
