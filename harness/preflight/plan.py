"""What a run of an experiment takes."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.build.stored_vectors import import_stored_vectors
from harness.dataset import Dataset
from harness.experiment import LoadedExperiment
from harness.preflight.embedding import has_user_chunker
from harness.preflight.judging_plan import JudgingPlan, plan_judging
from harness.preflight.plan_rows import (
    PlanContext,
    PlanRow,
    embedding_rows,
    model_throughput,
    reranking_rows,
    verification_rows,
)
from harness.preflight.service_rows import ServicePlan, service_plans
from harness.preflight.throughput import Throughput, read_earlier_runs
from retrievers.cache import Cache, default_cache_path


class PlannedModel(NamedTuple):
    """A model of a run, with its price and its speed."""

    retriever: str
    part: str
    """"encoder" or "reranker"."""
    throughput: Throughput
    documents_uncut: bool = False
    """Whether documents count uncut, since the user's function that cuts is not run."""


class PlanTotal(NamedTuple):
    """The sums over stages, of all retrievers or of one."""

    texts: int
    cached: int
    calls: int
    tokens: int
    exact: bool
    usd: float | None
    """Dollars; None if the price of a stage is unknown."""
    minutes: float | None
    """Minutes; None if the speed of a stage is unknown."""


class RunPlan(NamedTuple):
    """What a run would take."""

    rows: tuple[PlanRow, ...]
    models: tuple[PlannedModel, ...] = ()
    """The encoders, and the rerankers that are services."""
    judging: JudgingPlan | None = None
    """Its row is the last of `rows`."""
    remote_vectors: str = ""
    """The location of vectors that were not looked up: planning uses no network."""
    services: tuple[ServicePlan, ...] = ()
    """Services and agents; their rows are in `rows`."""

    def total(self, retriever: str | None = None) -> PlanTotal:
        """The sums of one retriever's rows, or of all."""
        rows = [
            row for row in self.rows if retriever is None or row.retriever == retriever
        ]
        return PlanTotal(
            texts=sum(row.texts for row in rows),
            cached=sum(row.cached for row in rows),
            calls=sum(row.calls for row in rows),
            tokens=sum(row.tokens for row in rows),
            exact=all(row.exact for row in rows),
            usd=_sum_if_known(row.usd for row in rows),
            minutes=_sum_if_known(row.minutes for row in rows),
        )


def _sum_if_known(amounts: Iterable[float | None]) -> float | None:
    """Return the sum; None if any amount is unknown."""
    summands: list[float] = []
    for amount in amounts:
        if amount is None:
            return None
        summands.append(amount)
    return math.fsum(summands)


def plan_run(
    loaded: LoadedExperiment,
    dataset: Dataset,
    retrievers: Sequence[BuiltRetriever],
    results: Path,
) -> RunPlan:
    """Count what a run of an experiment would take; equal first stages count once.

    Tokens are exact if the model's tokenizer is on this machine, else estimated; those
    of a reranker's pairs are always estimated, since the pairs are known only when the
    first stage has answered. Minutes follow from the declared limits of an API, or from
    the speed of a local model in earlier runs.

    Args:
        loaded: the experiment.
        dataset: its data.
        retrievers: those of the experiment.
        results: the folder of earlier runs.

    Raises:
        InputError: the cache or the location of [vectors] cannot be read.
    """
    with Cache(default_cache_path()) as cache:
        remote_vectors = _import_local_vectors(loaded, retrievers, cache)
        earlier_runs = tuple(read_earlier_runs(results))
        context = PlanContext(loaded, dataset, cache, earlier_runs)
        rows: list[PlanRow] = []
        models: list[PlannedModel] = []
        services: list[ServicePlan] = []
        for built in retrievers:
            _plan_encoders(built, context, rows, models)
            _plan_rerankers(built, context, rows, models)
            services += service_plans(built, context)
        rows += [plan.row for plan in services]
        judging = plan_judging(context)
        if judging is not None:
            rows.append(judging.row)
    return RunPlan(tuple(rows), tuple(models), judging, remote_vectors, tuple(services))


def _import_local_vectors(
    loaded: LoadedExperiment, retrievers: Sequence[BuiltRetriever], cache: Cache
) -> str:
    """Copy stored vectors to the cache; if they are remote, return their location.

    "" if they were copied, or there are none.
    """
    vectors = loaded.experiment.vectors
    if vectors is not None and "://" in vectors.location:
        return vectors.location
    import_stored_vectors(vectors, retrievers, cache)
    return ""


def _plan_encoders(
    built: BuiltRetriever,
    context: PlanContext,
    rows: list[PlanRow],
    models: list[PlannedModel],
) -> None:
    """Add the rows and the models of a retriever's encoders."""
    for dense in built.dense_parts:
        throughput = model_throughput("encoder", built, dense.encoder, context)
        rows += embedding_rows(built, dense, throughput, context)
        if not dense.reduction.derived_from:
            uncut = has_user_chunker(dense)
            models.append(PlannedModel(built.name, "encoder", throughput, uncut))
        rows += verification_rows(built, dense, throughput, context)


def _plan_rerankers(
    built: BuiltRetriever,
    context: PlanContext,
    rows: list[PlanRow],
    models: list[PlannedModel],
) -> None:
    """Add the rows of a retriever's rerankers, and the models that are services."""
    for reranker in built.rerankers:
        throughput = model_throughput("rerank", built, reranker, context)
        rows += reranking_rows(built.name, reranker, throughput, context)
        if reranker.limits is not None:
            models.append(PlannedModel(built.name, "reranker", throughput))
