"""The same as `embed`, on a Ray cluster: the shares are tasks, and each node keeps what it paid for in its own cache.

A task that Ray gives to another worker, since the first was killed, finds in the node's cache what was answered, and in
the storage what was written: only what was in flight is paid again, and on a node that is lost, a share.
"""

from __future__ import annotations

import importlib
import socket
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from harness.running.embed_shards import EncoderShare, Shard, Task, tasks_of
from retrievers.cache import Cache, default_path
from retrievers.embedding import Embedder
from retrievers.errors import BackendError, HarnessError, InputError, OverBudget, Problem, needing
from retrievers.meter import Budget, Meter
from retrievers.storage import open_storage
from retrievers.vector_shards import Writing, write_shard

COUNTS = ("calls", "tokens", "usd", "retries", "cached")
SHARES = 4
"""Shares for each worker: enough that no worker waits long for the slowest."""
FAILURES = {kind.__name__: kind for kind in (InputError, BackendError, OverBudget)}
"""What a node may fail with, by the name that it sends: Ray would print and wrap an exception."""
ANSWERS_WITHIN = 10.0
"""Seconds in which a cluster takes a connection: Ray itself waits for minutes where nothing is."""


class FinishedShare(NamedTuple):
    """What became of one share; as a node sends it."""

    written: tuple[int, int, int]
    """As `Writing`."""
    counts: dict[str, float]
    failure: tuple[str, str] = ("", "")
    """The kind and the reason of a failure."""


def embed_on_cluster(
    experiment: Path,
    url: str,
    *,
    address: str | None = None,
    max_cost: float | None = None,
    code: bool = True,
    watch: Callable[[str, Meter], None] = lambda name, meter: None,
) -> list[EncoderShare]:
    """Embed all texts of an experiment on a Ray cluster; arguments and errors as for `embed`.

    Args:
        experiment: its file; like its data set, it lies where every node can read it.
        url: where files go, written by every node.
        address: of the cluster; None for one on this machine.
        max_cost: dollars that all nodes together may spend.
        code: whether the experiment may name code that is run.
        watch: is called with the encoder's name and its meter as shares come back.
    """
    budget = Budget(max_cost)
    tasks = tasks_of(experiment, limited=max_cost is not None, code=code)
    ray = _ray()
    started_here = not ray.is_initialized()
    if started_here:
        _connect(ray, address)
    try:
        place = str(experiment.absolute())
        shares = [_embed_task(task, (place, url, number), budget, watch) for number, task in enumerate(tasks)]
    except ray.exceptions.RayError as failure:
        raise BackendError(f"the Ray cluster failed: {str(failure).strip().splitlines()[-1]}") from failure
    finally:
        if started_here:
            ray.shutdown()
    budget.check("the vectors are written")
    return shares


def _embed_task(
    task: Task, what: tuple[str, str, int], budget: Budget, watch: Callable[[str, Meter], None]
) -> EncoderShare:
    """Embed the texts of one encoder and role, and add up the results of the shares."""
    name = task.encoder.fingerprint_for(task.role)
    meter = Meter(budget, lambda meter: watch(name, meter))
    total = Writing(0, 0, 0)
    stage = "embed-documents" if task.role == "document" else "embed-queries"
    with meter.stage(stage):
        for done in _shares(task, what, budget):
            kind, reason = done.failure
            if kind:
                raise FAILURES.get(kind, BackendError)(reason)
            budget.give_back(-done.counts.get("usd", 0.0))
            total = Writing(*(a + b for a, b in zip(total, done.written, strict=True)))
            texts, present, _ = done.written
            meter.count(texts=texts - present, **done.counts)
    sums = meter.counts(stage)
    return EncoderShare(
        name, task.role, total, int(sums.get("cached", 0)), int(sums.get("tokens", 0)), sums.get("usd", 0.0)
    )


def _shares(task: Task, what: tuple[str, str, int], budget: Budget) -> Iterator[FinishedShare]:
    """Run the shares, as many at once as the cluster has room for, and yield their results.

    The limits of a provider, and of the dollars, hold for all its requests together: its shares follow each other.
    """
    ray = _ray()
    resources = ray.cluster_resources()
    remote = task.encoder.limits is not None
    gpus = 0 if remote else int(resources.get("GPU", 0))
    workers = 1 if remote else gpus or max(1, int(resources.get("CPU", 1)) // 2)
    embed = ray.remote(num_cpus=0 if gpus else 1, num_gpus=1 if gpus else 0, max_retries=-1)(embed_share)
    running: list[Any] = []
    for number in range(1, SHARES * workers + 1):
        if len(running) == workers:
            yield FinishedShare(*ray.get(_first(running)))
        left = None if budget.limit is None else max(budget.limit - budget.spent, 0.0)
        running.append(embed.remote(*what, Shard(number, SHARES * workers), left))
    while running:
        yield FinishedShare(*ray.get(_first(running)))


def _first(running: list[Any]) -> Any:
    """Take out of what is running what is done first."""
    (done,), rest = _ray().wait(running)
    running[:] = rest
    return done


def embed_share(experiment: str, url: str, number: int, shard: Shard, max_cost: float | None) -> tuple[Any, ...]:
    """Embed one share of one task on a node; what goes wrong is returned, in words."""
    meter = Meter(Budget(max_cost))
    written, kind, reason = Writing(0, 0, 0), "", ""
    try:
        task = _tasks(experiment)[number]
        mine = islice(task.requests(), shard.number - 1, None, shard.total)
        with Cache(default_path()) as held, meter.stage("embed"):
            written = write_shard(Embedder(task.encoder, held), task.role, open_storage(url), mine, meter)
    except HarnessError as failure:
        kind, reason = type(failure).__name__, str(failure)
    counts = {name: value for name, value in meter.counts("embed").items() if name in COUNTS}
    return (*written,), counts, (kind, reason)


@cache
def _tasks(experiment: str) -> list[Task]:
    """Read an experiment once in the life of a worker, so that its model is loaded once."""
    return tasks_of(Path(experiment))


def _connect(ray: Any, address: str | None) -> None:
    """Connect to a cluster, or start one on this machine.

    Raises:
        InputError: nothing answers at the address.
    """
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():
            socket.create_connection((host, int(port)), ANSWERS_WITHIN).close()
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    except (OSError, ValueError) as failure:
        where = f"at {address}" if address else "on this machine"
        raise InputError(Problem("--address", f"no Ray cluster {where}: {failure}", "`ray status` names it")) from None


def _ray() -> Any:
    with needing("--engine ray", "ray", "ray"):
        return importlib.import_module("ray")
