"""What all retrievers of one run share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.dataset import Dataset
from harness.experiment import LoadedExperiment
from harness.records import StageLatency
from harness.running.accounts import RunAccounts
from harness.running.options import OnProgress
from retrievers.cache import Cache
from retrievers.meter import Budget
from retrievers.resources import Corpus, Resources


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all retrievers of one run share."""

    dataset: Dataset
    cache: Cache
    stores_folder: Path
    """Where edge collections live from run to run."""
    depth: int
    budget: Budget
    on_progress: OnProgress = lambda name, meter: None

    fresh: bool = False
    """Index anew what a store holds."""
    exclude_self: bool = False
    """Keep the document with a query's id out of that query's answers."""
    latency_sample: int = 0
    """Queries timed one at a time; 0: none."""
    latencies: Mapping[str, Mapping[str, StageLatency]] = field(default_factory=dict)
    """Retriever -> stage -> what was measured before: kept, so that a warm run loads no
    model.
    """


def build_run_context(
    loaded: LoadedExperiment,
    dataset: Dataset,
    cache: Cache,
    accounts: RunAccounts,
    *,
    latencies: Mapping[str, Mapping[str, StageLatency]],
) -> RunContext:
    """Return what the retrievers of an experiment share.

    Args:
        loaded: the experiment.
        dataset: its data.
        cache: of the models' answers; collections on disk are beside it.
        accounts: of the run.
        latencies: retriever -> stage -> what was measured before.
    """
    experiment = loaded.experiment
    return RunContext(
        dataset,
        cache,
        cache.path.parent / "collections",
        experiment.depth,
        accounts.budget,
        accounts.options.on_progress,
        fresh=accounts.options.fresh,
        exclude_self=experiment.dataset.exclude_self,
        latency_sample=experiment.latency.sample if experiment.latency else 0,
        latencies=latencies,
    )


def run_resources(shared: RunContext) -> Resources:
    """What the retrievers of a run are given."""
    dataset: Dataset = shared.dataset
    corpus = Corpus(dataset.documents, dataset.document_count, dataset.texts)
    return Resources(
        corpus,
        shared.cache,
        dataset.corpus_digest,
        shared.stores_folder,
        fresh=shared.fresh,
    )
