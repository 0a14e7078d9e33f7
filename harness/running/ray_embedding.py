"""Embedding on a Ray cluster.

`embedding_tasks` gives the texts; the vectors go to Parquet files
(`retrievers.files.parquet_vectors`), from which a run imports them into its cache.
"""

import importlib
import logging
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from harness.experiment.class_options import PartConfig
from harness.running.embedding_tasks import (
    EmbeddingTask,
    IdentifiedText,
    embedding_tasks,
)
from retrievers import encoder_class
from retrievers.cache import Cache, default_cache_path
from retrievers.embedder import Embedder, split_windows
from retrievers.errors import BackendError, InputError, Problem, require_package
from retrievers.files.parquet_vectors import (
    VectorFolder,
    read_digests,
    vector_folder,
    vector_table,
    write_vector_manifest,
)
from retrievers.identity import text_keys
from retrievers.meter import Budget, Meter
from retrievers.options.placeholders import instantiate
from retrievers.types import Encoder, Role

RAY_BATCH_SIZE = 1024
"""Texts of one call of an actor, among which its requests are planned."""
CLUSTER_TIMEOUT_SECONDS = 10.0
"""Seconds in which a cluster accepts a connection; Ray itself waits for minutes."""


class EncoderVectors(NamedTuple):
    """What was done for one encoder and role."""

    encoder: str
    """Its fingerprint."""
    role: Role
    texts: int
    """Distinct texts."""
    present: int
    """Texts whose vectors existed before."""


class RaySettings(NamedTuple):
    """How the texts of an experiment are embedded."""

    address: str | None = None
    """Address of the Ray cluster; None starts one on this machine."""
    max_cost: float | None = None
    """Dollars that each encoder may spend on documents, and again on queries."""
    allow_code: bool = True
    """Whether the experiment may name code that is run."""
    progress: bool = True
    """Whether Ray shows its progress."""


class EncoderWork(NamedTuple):
    """What an actor needs to embed texts: no data set and no other retriever."""

    config: PartConfig
    """The table of the encoder."""
    role: Role
    max_cost: float | None
    """Dollars that the actor may spend; None for no limit."""


class PlannedTask(NamedTuple):
    """The texts of a task that have no vectors yet."""

    task: EmbeddingTask
    folder: VectorFolder
    tables: list[Any]
    """Tables of pyarrow with the columns id, text, digest."""
    vectors: EncoderVectors
    """How many texts it has, and how many of them have vectors."""


def embed_on_ray(
    experiment: Path, url: str, settings: RaySettings
) -> list[EncoderVectors]:
    """Embed the texts of every encoder in an experiment on a Ray cluster.

    Texts with vectors are not embedded again. Each node caches the vectors, so that a
    batch which Ray sends again is not paid twice.

    Args:
        experiment: its file, which only this machine reads.
        url: of the vectors, writable by every node: a folder, or what fsspec opens.
        settings: how.

    Raises:
        InputError: a problem of the experiment, its data or its environment, or no
            cluster responds.
        BackendError: an encoder failed for good, or the cluster; written vectors stay.
    """
    tasks = embedding_tasks(
        experiment,
        limited=settings.max_cost is not None,
        allow_code=settings.allow_code,
    )
    planned_tasks = [_plan(task, url) for task in tasks]
    pending = [planned for planned in planned_tasks if planned.tables]
    if pending:
        # Ray uses its own deprecated options, also while it connects.
        with (
            warnings.catch_warnings(action="ignore", category=DeprecationWarning),
            _connected(settings),
        ):
            for planned in pending:
                _embed_tables(planned, settings)
    return [planned.vectors for planned in planned_tasks]


def _plan(task: EmbeddingTask, url: str) -> PlannedTask:
    """Read the texts of one encoder and role, without those that have vectors."""
    folder = vector_folder(url, task.encoder.fingerprint_for(task.role), task.role)
    present = read_digests(folder)
    distinct: set[bytes] = set()
    tables: list[Any] = []
    for read_texts in task.sources:
        tables += _tables_without_vectors(read_texts(), task, present, distinct)
    missing = sum(table.num_rows for table in tables)
    vectors = EncoderVectors(
        folder.fingerprint, task.role, len(distinct), len(distinct) - missing
    )
    return PlannedTask(task, folder, tables, vectors)


def _tables_without_vectors(
    passages: Iterator[IdentifiedText],
    task: EmbeddingTask,
    present: set[bytes],
    distinct: set[bytes],
) -> Iterator[Any]:
    """Yield the texts without vectors, sorted by length within a window.

    The digests of all texts are added to `distinct`.
    """
    import pyarrow as pa

    fingerprint = task.encoder.fingerprint_for(task.role)
    for window in split_windows(passages, task.encoder.form):
        digests = text_keys(fingerprint, task.role, [text for _, text in window])
        new: dict[bytes, IdentifiedText] = {
            digest: passage
            for digest, passage in zip(digests, window, strict=True)
            if passage.text.strip() and digest not in distinct
        }
        distinct.update(new)
        missing = sorted(
            (len(passage.text), passage.text, passage.id, digest)
            for digest, passage in new.items()
            if digest not in present
        )
        if missing:
            _, texts, ids, missing_digests = zip(*missing, strict=True)
            yield pa.table({"id": ids, "text": texts, "digest": missing_digests})


def _embed_tables(planned: PlannedTask, settings: RaySettings) -> None:
    """Embed texts on the cluster that Ray is connected to."""
    ray = importlib.import_module("ray")
    data = importlib.import_module("ray.data")
    task = planned.task
    write_vector_manifest(planned.folder, task.encoder.form)
    resources = ray.cluster_resources()
    # The limits of a provider, and the dollars, are those of one actor.
    is_remote = task.encoder.limits is not None
    gpus = 0 if is_remote else int(resources.get("GPU", 0))
    cpus = 1 if is_remote else max(1, int(resources.get("CPU", 1)) // 2)
    work = EncoderWork(task.config, task.role, settings.max_cost)
    embedded = data.from_arrow(planned.tables).map_batches(
        _EmbedTexts,
        fn_constructor_args=(work,),
        batch_format="pyarrow",
        batch_size=RAY_BATCH_SIZE,
        compute=data.ActorPoolStrategy(size=gpus or cpus),
        num_gpus=1 if gpus else None,
    )
    embedded.write_parquet(
        planned.folder.path, filesystem=planned.folder.files, try_create_dir=False
    )


class _EmbedTexts:
    """An actor of Ray: an encoder that is built once, with the cache of its node."""

    def __init__(self, work: EncoderWork) -> None:
        encoder_type = encoder_class(work.config.kind)
        self._encoder: Encoder = instantiate(encoder_type, work.config.options)
        self._role = work.role
        self._meter = Meter(Budget(work.max_cost))

    def __call__(self, batch: Any) -> Any:
        """Embed a table of texts."""
        with Cache(default_cache_path()) as cache, self._meter.stage("embed"):
            embedder = Embedder(self._encoder, cache)
            texts = batch["text"].to_pylist()
            embedded = embedder.embed(texts, self._role, self._meter)
        ids = batch["id"].to_pylist()
        return vector_table(ids, batch["digest"].to_pylist(), embedded)


@contextmanager
def _connected(settings: RaySettings) -> Iterator[None]:
    """Connect Ray to a cluster, or to one that is started on this machine.

    Raises:
        InputError: no cluster responds.
        BackendError: work on the cluster failed.
    """
    with require_package("harness embed", "ray[data]", "ray"):
        ray = importlib.import_module("ray")
        data = importlib.import_module("ray.data")
    _connect(ray, settings.address)
    try:
        data.DataContext.get_current().enable_progress_bars = settings.progress
        if not settings.progress:
            logging.getLogger("ray.data").setLevel(logging.ERROR)
        yield
    except ray.exceptions.RayError as failure:
        last_line = str(failure).strip().splitlines()[-1]
        raise BackendError(f"embedding failed: {last_line}") from None
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    """Connect Ray; before, check that the cluster accepts a connection at all.

    Raises:
        InputError: no cluster responds.
    """
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():
            timeout = CLUSTER_TIMEOUT_SECONDS
            socket.create_connection((host, int(port)), timeout).close()
        # "local": without an address Ray would use any cluster that runs on this
        # machine, and shut it down at the end.
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level="ERROR",
            include_dashboard=False,
        )
    except (OSError, ValueError) as failure:
        where = f"at {address}" if address else "on this machine"
        message = f"no Ray cluster {where}: {failure}"
        remedy = "`ray status` names it"
        raise InputError(Problem("--address", message, remedy)) from None
