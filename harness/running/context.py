"""What all retrievers of one run share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.build.build import BuiltExperiment
from harness.dataset import Dataset
from harness.experiment import LatencyConfig, LoadedExperiment
from harness.records import StageLatency
from harness.running.accounts import RunAccounts
from harness.running.options import OnProgress
from harness.running.reuse import ReusableRuns
from retrievers.cache import Cache
from retrievers.meter import Budget
from retrievers.resources import Corpus, Resources
from retrievers.texts.token_estimate import TokenCounter
from retrievers.types import AnswerFacts


@dataclass(frozen=True, slots=True)
class RunContext:
    """The data, the limits and the earlier times that every retriever of a run has."""

    dataset: Dataset
    cache: Cache
    stores_folder: Path
    """The folder in which edge collections are kept between runs."""
    depth: int
    """How many hits of a query are stored, at most."""
    budget: Budget
    """Dollars that the run may still spend."""
    on_progress: OnProgress
    fresh: bool
    """Whether to index again what a store already has."""
    exclude_self: bool
    """Whether to keep the document with a query's id out of that query's answers."""
    latency_sample: int
    """Queries timed one at a time; 0: none."""
    times_services: bool
    """Whether queries are timed that cost money or call another program."""
    latencies: Mapping[str, Mapping[str, StageLatency]]
    """Retriever -> stage -> what was measured before: kept, so that a warm run loads no
    model.
    """
    repetitions: Mapping[str, AnswerFacts]
    """Retriever -> how its answers were compared when those times were measured."""
    count_tokens: TokenCounter
    """Counts the tokens of passages, for all retrievers alike."""
    keeps_passages: bool
    """Whether rankings have passages: whole documents if a retriever returns none."""
    context_tokens: int
    """The tokens of the longest context that is measured (`tokens=`); 0: none is."""


def build_run_context(
    loaded: LoadedExperiment,
    built: BuiltExperiment,
    cache: Cache,
    accounts: RunAccounts,
    *,
    reusable: ReusableRuns,
) -> RunContext:
    """Return the context of an experiment's retrievers.

    Args:
        loaded: the experiment.
        built: has its data.
        cache: of the models' answers; collections on disk are beside it.
        accounts: of the run.
        reusable: what an earlier run of the same experiment measured.
    """
    experiment = loaded.experiment
    measures = loaded.question.measures
    reads_passages = any(measure.uses_passages for measure in measures)
    return RunContext(
        built.dataset,
        cache,
        cache.path.parent / "collections",
        experiment.depth,
        accounts.budget,
        accounts.options.on_progress,
        fresh=accounts.options.fresh,
        exclude_self=experiment.dataset.exclude_self,
        latency_sample=(experiment.latency or LatencyConfig()).sample,
        times_services=experiment.latency is not None,
        latencies=reusable.latencies,
        repetitions=reusable.repetitions,
        count_tokens=built.count_tokens,
        # The table [budget] is about the tokens of a context, not about dollars.
        keeps_passages=reads_passages or experiment.budget is not None,
        context_tokens=max((measure.tokens or 0 for measure in measures), default=0),
    )


def run_resources(context: RunContext) -> Resources:
    """Return the corpus, the cache and the folder of stores that retrievers receive."""
    dataset = context.dataset
    corpus = Corpus(dataset.documents, dataset.document_count, dataset.texts)
    return Resources(
        corpus,
        context.cache,
        dataset.corpus_digest,
        context.stores_folder,
        fresh=context.fresh,
        count_tokens=context.count_tokens,
    )
