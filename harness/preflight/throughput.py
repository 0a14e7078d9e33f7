"""The speed of models in earlier runs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from harness import records
from harness.experiment import PartConfig
from harness.records import CostRow, Manifest
from harness.records.environment import describe_machine
from retrievers.errors import InputError
from retrievers.prices import FREE_PRICE, Price
from retrievers.types import Limits

REQUEST_SECONDS = 0.5
"""Seconds that a request to an API is assumed to last."""
ModelKey = Literal["encoder", "rerank"]
"""The key of a model's table."""
PART_STAGES: dict[ModelKey, tuple[str, ...]] = {
    "encoder": ("embed-documents", "embed-queries"),
    "rerank": ("rerank",),
}
"""Key of a model's table -> the stages in which it works."""


class Throughput(NamedTuple):
    """What a model's tokens cost, and how fast it reads them."""

    price: Price | None = FREE_PRICE
    """What the model charges; None if unknown."""
    limits: Limits | None = None
    """Limits of an API; None for a local model."""
    speed: float | None = None
    """Tokens a second of a local model; None if it was never measured."""

    def usd(self, tokens: int, searches: int = 0) -> float | None:
        """Dollars of so many tokens and searches; None if the price is unknown.

        0 without tokens: the cache has all texts.
        """
        if not tokens:
            return 0.0
        return None if self.price is None else self.price.usd(tokens, searches)

    def minutes(
        self, calls: int, tokens: int, *, together: bool = True
    ) -> float | None:
        """Minutes of so many requests; None if the speed of a local model is unknown.

        Args:
            calls: requests, or batches.
            tokens: of all of them.
            together: whether as many are under way at once as an API allows; else one
                after another.
        """
        if not calls:
            return 0.0
        if self.limits is None:
            return tokens / self.speed / 60 if self.speed else None
        concurrency = self.limits.concurrency if together else 1
        rounds = -(-calls // concurrency)
        minutes = [rounds * REQUEST_SECONDS / 60]
        if self.limits.rpm:
            minutes.append(calls / self.limits.rpm)
        if self.limits.tpm:
            minutes.append(tokens / self.limits.tpm)
        return max(minutes)


class TokensRead(NamedTuple):
    """Tokens that a model read, and the seconds that it took."""

    tokens: float
    seconds: float


class EarlierRun(NamedTuple):
    """An earlier run on this machine."""

    manifest: Manifest
    costs: Sequence[CostRow]

    def tokens_read(self, part: ModelKey, model: PartConfig) -> TokensRead:
        """The tokens that an encoder or a reranker read, of all that have its table.

        The seconds exclude its loading, which is a stage of its own.
        """
        comparable_model = _without_depth(model)
        retrievers: set[str] = set()
        for retriever in self.manifest.resolved.retrievers:
            config = retriever.encoder if part == "encoder" else retriever.rerank
            if config is not None and _without_depth(config) == comparable_model:
                retrievers.add(retriever.name)
        rows = [
            row
            for row in self.costs
            if row.retriever in retrievers and row.stage in PART_STAGES[part]
        ]
        rows = [row for row in rows if row.tokens]
        return TokensRead(
            math.fsum(row.tokens for row in rows),
            math.fsum(row.seconds for row in rows),
        )

    @property
    def timed_retrievers(self) -> set[str]:
        """The retrievers whose single queries were timed."""
        return {row.retriever for row in self.costs if row.latency is not None}


def read_earlier_runs(results: Path) -> Iterator[EarlierRun]:
    """Yield the results folders that were made on this machine.

    Those of several data sets are one level deeper.
    """
    # How busy it was changes from run to run.
    machine = replace(describe_machine(), load=None)
    manifests = [*results.glob("*/manifest.json"), *results.glob("*/*/manifest.json")]
    for manifest_file in sorted(manifests):
        folder = manifest_file.parent
        try:
            manifest = records.read_manifest(folder)
            costs = records.read_costs(folder / "costs.csv")
        except (InputError, OSError, ValueError):
            continue  # not a results folder of today's form
        if replace(manifest.machine, load=None) == machine:
            yield EarlierRun(manifest, costs)


def _without_depth(config: PartConfig) -> PartConfig:
    """Return a model's table without `depth`, which changes no speed of a reranker."""
    options = {key: option for key, option in config.options.items() if key != "depth"}
    return PartConfig(kind=config.kind, options=options)
