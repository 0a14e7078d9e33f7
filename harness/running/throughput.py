"""What a model's tokens cost, and how fast it reads them: by its price and limits, or by earlier runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness import records
from harness.experiment.option_tables import Kind
from harness.records import Manifest
from harness.running import machine
from retrievers.costs import FREE, Price
from retrievers.errors import InputError
from retrievers.types import Limits

REQUEST = 0.5
"""Seconds that a request to an API is taken to last."""


class Throughput(NamedTuple):
    """What a model's tokens cost, and how fast it reads them."""

    price: Price | None = FREE
    """None: unknown."""
    limits: Limits | None = None
    """An API's."""
    speed: float | None = None
    """Tokens a second of a local model; None where it was never measured."""

    def usd(self, tokens: int, searches: int = 0) -> float | None:
        """Dollars of so many tokens and searches; None where the price is unknown."""
        if not tokens:
            return 0.0
        return None if self.price is None else self.price.usd(tokens, searches)

    def minutes(self, calls: int, tokens: int, *, together: bool = True) -> float | None:
        """Minutes of so many requests, sent together or one after another."""
        if not calls:
            return 0.0
        if self.limits is None:
            return tokens / self.speed / 60 if self.speed else None
        at_once = self.limits.concurrency if together else 1
        paces = [-(-calls // at_once) * REQUEST / 60]
        paces += [calls / self.limits.rpm] if self.limits.rpm else []
        paces += [tokens / self.limits.tpm] if self.limits.tpm else []
        return max(paces)


class EarlierRun(NamedTuple):
    """An earlier run on this machine."""

    manifest: Manifest
    costs: Sequence[dict[str, Any]]
    """The rows of costs.csv."""

    def speed(self, part: str, kind: Kind) -> tuple[float, float]:
        """The tokens that an encoder or reranker read, and the seconds that it took, its loading included."""
        blocks = self.manifest.resolved.retrievers
        model = _without_depth(kind.written())
        names = {block["name"] for block in blocks if _without_depth(block.get(part) or {}) == model}
        stages = {"encoder": ("embed-documents", "embed-queries"), "rerank": ("rerank",)}[part]
        read = [row for row in self.costs if row["retriever"] in names and row["stage"] in stages and row["tokens"]]
        return math.fsum(row["tokens"] for row in read), math.fsum(row["seconds"] for row in read)

    @property
    def finished(self) -> set[str]:
        """The retrievers that finished."""
        return set(self.manifest.finished)

    @property
    def timed(self) -> set[str]:
        """The retrievers of which single queries were timed."""
        return {row["retriever"] for row in self.costs if not math.isnan(row["p50_ms"])}


def earlier_runs(results: Path) -> Iterator[EarlierRun]:
    """The results folders that were made on this machine."""
    for manifest in sorted(results.glob("*/manifest.json")):
        try:
            run = EarlierRun(records.read_manifest(manifest.parent), records.read_costs(manifest.parent))
        except (InputError, OSError, ValueError):
            continue  # no results folder of today's form: nothing is known from it
        if _without_load(run.manifest.machine) == _without_load(machine.machine()):
            yield run


def _without_load(machine: Mapping[str, Any]) -> dict[str, Any]:
    """What a machine is, without how busy it was."""
    return {key: value for key, value in machine.items() if key != "load"}


def _without_depth(table: Mapping[str, Any]) -> dict[str, Any]:
    """An encoder or reranker without what leaves its speed as it is."""
    return {key: value for key, value in table.items() if key != "depth"}


def price_sentence(price: Price | None) -> str:
    """What a price is and where it is from, in words."""
    if price is None:
        return "price unknown: write price = dollars for a million tokens"
    if price.usd_per_thousand_searches:
        return f"${price.usd_per_thousand_searches:g} a thousand searches ({price.source})"
    return price.source if price is FREE else f"${price.usd_per_million_tokens:g} a million tokens ({price.source})"
