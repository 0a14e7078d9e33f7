"""How one run is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from harness.dataset import Dataset
from harness.records import StageLatency
from retrievers.cache import Cache
from retrievers.meter import Budget, Meter
from retrievers.resources import Corpus, Resources

OnProgress = Callable[[str, Meter], None]
"""Called with the retriever's name and its meter whenever something was counted; the name is "" where a stage, such as
scoring, is for all of them."""


class RunOptions(NamedTuple):
    """How one run is made.

    >>> RunOptions(results="out", only=("bm25",)).fresh
    False
    """

    results: Path | str = Path("results")
    """The folder under which `<name>/` is written."""
    only: tuple[str, ...] = ()
    """Retrievers to run; the others' rankings are taken from the existing folder."""
    fresh: bool = False
    """Embed this run's texts anew and replace them in the cache."""
    max_cost: float | None = None
    """Dollars."""
    allow_code: bool = True
    """Whether the experiment may name code that is run."""
    on_message: Callable[[str], None] = lambda line: None
    """Called with each message: how many of a folder's files are not read, and where earlier results went that say
    something else."""
    on_progress: OnProgress = lambda name, meter: None

    def with_progress_prefix(self, name: str) -> RunOptions:
        """The options of one run among several, with its name before what its progress is called by."""
        return self._replace(
            on_progress=lambda part, meter: self.on_progress(
                ": ".join(filter(None, (name, part))), meter
            )
        )


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
    """Retriever -> stage -> what was measured before: kept, so that a warm run loads no model."""


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
