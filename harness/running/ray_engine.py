"""The same as `embed`, on a Ray cluster: tasks plan the requests, a pool of actors for each encoder embeds them.

Every actor writes each answered request at once, and skips what lies in a part already: a request that Ray gives to
another actor, since the first was killed, is paid again only where its answer had not been written.
"""

from __future__ import annotations

import importlib
import logging
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from harness.running.embed import EncoderShare, Task, tasks_of
from retrievers.embedding import Embedder
from retrievers.errors import BackendError, HarnessError, InputError, OverBudget, Problem
from retrievers.meter import Budget, Meter
from retrievers.roots import open_root
from retrievers.sharding import PartWriter, Writing

COUNTS = ("calls", "tokens", "usd", "retries")
LOCAL_REQUESTS = 32
"""Requests that an actor embeds and writes together where nothing is paid."""
FAILURES = {kind.__name__: kind for kind in (InputError, BackendError, OverBudget)}
"""What a node may fail with, by the name that it sends: Ray would print and wrap an exception."""
ANSWERS_WITHIN = 10.0
"""Seconds in which a cluster takes a connection: Ray itself waits for minutes where nothing is."""
READERS = 4
"""Tasks that plan requests, for each actor that embeds them: enough that no actor waits for the slowest."""


class SharedBudget:
    """The dollars of all actors, kept by one actor of its own: what a killed actor had promised stays promised."""

    def __init__(self, limit: float | None) -> None:
        """Take the limit in dollars, None for none."""
        self._budget = Budget(limit)

    def take(self, usd: float) -> str:
        """Promise dollars; return why they are refused, "" where they are not."""
        try:
            self._budget.take(usd)
        except OverBudget as refusal:
            return str(refusal)
        return ""

    def give_back(self, usd: float) -> None:
        """Return what was promised and not spent."""
        self._budget.give_back(usd)


class LeasedBudget(Budget):
    """A budget whose dollars are kept by the ledger of the cluster."""

    def __init__(self, ledger: Any) -> None:
        super().__init__()
        self._ledger = ledger

    @property
    def limited(self) -> bool:
        """Whether there is a limit: the ledger alone knows."""
        return True

    def take(self, usd: float) -> None:
        """Promise dollars, or raise OverBudget."""
        if usd > 0 and (refusal := _ray().get(self._ledger.take.remote(usd))):
            raise OverBudget(refusal)

    def give_back(self, usd: float) -> None:
        """Return what was promised and not spent."""
        if usd:
            _ray().get(self._ledger.give_back.remote(usd))


class Cluster(NamedTuple):
    """What the tasks of one command share."""

    ledger: Any
    """The actor that keeps the dollars."""
    watch: Callable[[str, Meter], None]


class Embed:
    """An actor: it holds one encoder, and embeds and writes one batch of requests a call."""

    def __init__(self, experiment: str, url: str, task: int, ledger: Any) -> None:
        """Take what the first call needs: an actor that failed here could not say why."""
        self._experiment, self._url, self._number = experiment, url, task
        self._budget = LeasedBudget(ledger)

    @cached_property
    def _writer(self) -> PartWriter:
        """Builds the encoder and lists what is written, once in the actor's life."""
        encoder, role, _ = tasks_of(Path(self._experiment))[self._number]
        return PartWriter(Embedder(encoder, None), role, open_root(self._url))

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[float] | list[str]]:
        """Embed and write requests; return one row of counts, and why it ended early, "" where it did not."""
        meter = Meter(budget=self._budget)
        requests = [tuple(request) for request in batch["texts"]]
        written = Writing(0, 0, 0)
        failed = (pair for pair in zip(batch["kind"], batch["reason"], strict=True) if pair[0])
        kind, reason = next(failed, ("", ""))
        try:
            with meter.stage("embed"):
                written = written if kind else self._writer.write(requests, meter)
        except HarnessError as failure:
            kind, reason = type(failure).__name__, str(failure)
        counts = {name: meter.counts("embed").get(name, 0) for name in COUNTS}
        return {
            name: [value] for name, value in {**written._asdict(), **counts, "kind": kind, "reason": reason}.items()
        }


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
        url: where parts go, written by every node.
        address: of the cluster; None for one on this machine.
        max_cost: dollars that all actors together may spend.
        code: whether the experiment may name code that is run.
        watch: is called with the encoder's name and its meter as batches come back.
    """
    Budget(max_cost)  # what is no limit is refused here, not by an actor
    tasks = tasks_of(experiment, limited=max_cost is not None, code=code)
    ray = _ray()
    started_here = not ray.is_initialized()
    if started_here:
        _connect(ray, address)
    try:
        cluster = Cluster(ray.remote(num_cpus=0)(SharedBudget).remote(max_cost), watch)
        return [_embed_task(task, number, experiment, url, cluster) for number, task in enumerate(tasks)]
    except ray.exceptions.RayError as failure:
        raise BackendError(f"the Ray cluster failed: {str(failure).strip().splitlines()[-1]}") from failure
    finally:
        if started_here:
            ray.shutdown()


def _embed_task(task: Task, number: int, experiment: Path, url: str, cluster: Cluster) -> EncoderShare:
    """Embed the texts of one encoder and role: tasks plan shares of the requests, actors embed them."""
    data: Any = importlib.import_module("ray.data")
    data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.WARNING)  # progress is shown as that of any embedding is
    resources = _ray().cluster_resources()
    # The limits of a provider hold for all its requests, so one actor sends them, several at once.
    remote = task.encoder.limits is not None
    gpus = 0 if remote else int(resources.get("GPU", 0))
    actors = 1 if remote else gpus or max(1, int(resources.get("CPU", 1)) // 2)
    shares = READERS * actors
    place = str(experiment.absolute())

    def requests(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        try:
            for request in islice(tasks_of(Path(place))[number].requests(), int(row["id"]), None, shares):
                yield {"texts": list(request), "kind": "", "reason": ""}
        except HarnessError as failure:
            yield {"texts": [""], "kind": type(failure).__name__, "reason": str(failure)}

    rows = (
        data.range(shares, override_num_blocks=shares)
        .flat_map(requests, num_cpus=0.5)
        .map_batches(
            Embed,
            fn_constructor_args=(place, url, number, cluster.ledger),
            batch_size=task.encoder.concurrency if remote else LOCAL_REQUESTS,
            compute=data.ActorPoolStrategy(size=actors),
            num_cpus=0 if gpus else 1,
            num_gpus=1 if gpus else None,
        )
    )
    meter = Meter(watch=lambda meter: cluster.watch(task.encoder.fingerprint_for(task.role), meter))
    stage = "embed-documents" if task.role == "document" else "embed-queries"
    total = Writing(0, 0, 0)
    with meter.stage(stage):
        for row in rows.iter_rows():
            if row["kind"]:
                raise FAILURES.get(row["kind"], BackendError)(row["reason"])
            done = Writing(*(int(row[name]) for name in Writing._fields))
            total = Writing(*(a + b for a, b in zip(total, done, strict=True)))
            counts = {name: float(row[name]) for name in COUNTS}
            meter.count(texts=done.texts - done.present, **{name: value for name, value in counts.items() if value})
    sums = meter.counts(stage)
    name = task.encoder.fingerprint_for(task.role)
    return EncoderShare(name, task.role, total, 0, int(sums.get("tokens", 0)), sums.get("usd", 0.0))


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
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise InputError(
            Problem("--engine ray", "Ray is not installed", "pip install 'retriever-harness[ray]'")
        ) from None
