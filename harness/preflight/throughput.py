"""The speed of models in earlier runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness import records
from harness.records import Manifest
from harness.records.environment import describe_machine
from retrievers.errors import InputError
from retrievers.prices import FREE_PRICE, Price
from retrievers.types import Limits

REQUEST_SECONDS = 0.5
"""Seconds that a request to an API is taken to last."""


class Throughput(NamedTuple):
    """What a model's tokens cost, and how fast it reads them."""

    price: Price | None = FREE_PRICE
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

    def minutes(
        self, calls: int, tokens: int, *, together: bool = True
    ) -> float | None:
        """Minutes of so many requests, sent together or one after another."""
        if not calls:
            return 0.0
        if self.limits is None:
            return tokens / self.speed / 60 if self.speed else None
        at_once = self.limits.concurrency if together else 1
        paces = [-(-calls // at_once) * REQUEST_SECONDS / 60]
        paces += [calls / self.limits.rpm] if self.limits.rpm else []
        paces += [tokens / self.limits.tpm] if self.limits.tpm else []
        return max(paces)


class EarlierRun(NamedTuple):
    """An earlier run on this machine."""

    manifest: Manifest
    costs: Sequence[dict[str, Any]]
    """The rows of costs.csv."""

    def speed(self, part: str, model: Mapping[str, Any]) -> tuple[float, float]:
        """The tokens that an encoder or reranker read, and the seconds that it took, its loading included."""
        blocks = self.manifest.resolved.retrievers
        same = _lasting(model)
        names = {
            block["name"] for block in blocks if _lasting(block.get(part) or {}) == same
        }
        stages = {
            "encoder": ("embed-documents", "embed-queries"),
            "rerank": ("rerank",),
        }[part]
        read = [
            row
            for row in self.costs
            if row["retriever"] in names and row["stage"] in stages and row["tokens"]
        ]
        return math.fsum(row["tokens"] for row in read), math.fsum(
            row["seconds"] for row in read
        )

    @property
    def timed_retrievers(self) -> set[str]:
        """The retrievers whose single queries were timed."""
        return {row["retriever"] for row in self.costs if not math.isnan(row["p50_ms"])}


def read_earlier_runs(results: Path) -> Iterator[EarlierRun]:
    """The results folders made on this machine, those of several data sets too, which are one level deeper."""
    for manifest in sorted(
        [*results.glob("*/manifest.json"), *results.glob("*/*/manifest.json")]
    ):
        try:
            run = EarlierRun(
                records.read_manifest(manifest.parent),
                records.read_table_rows(manifest.parent / "costs.csv"),
            )
        except (InputError, OSError, ValueError):
            continue  # no results folder of today's form: nothing is known from it
        if _lasting(run.manifest.machine) == _lasting(describe_machine()):
            yield run


def _lasting(table: Mapping[str, Any]) -> dict[str, Any]:
    """A machine without how busy it was; an encoder or reranker without what leaves its speed as it is."""
    return {key: value for key, value in table.items() if key not in ("load", "depth")}


def price_sentence(price: Price | None) -> str:
    """What a price is and where it is from, in words."""
    if price is None:
        return "price unknown: write price = dollars for a million tokens"
    if price.usd_per_thousand_searches:
        return (
            f"${price.usd_per_thousand_searches:g} a thousand searches ({price.source})"
        )
    return (
        price.source
        if price is FREE_PRICE
        else f"${price.usd_per_million_tokens:g} a million tokens ({price.source})"
    )
