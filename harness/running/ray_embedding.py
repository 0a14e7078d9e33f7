"""Embedding on a Ray cluster."""

import importlib
import logging
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from harness.running.embedding_tasks import EmbeddingTask, embedding_tasks
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
from retrievers.types import Encoder, Role

RAY_BATCH_SIZE = 1024
"""Texts that an actor is given at once; its requests are planned among them."""
CLUSTER_TIMEOUT_SECONDS = 10.0
"""Seconds in which a cluster takes a connection: Ray itself waits for minutes where nothing is."""


class EncoderVectors(NamedTuple):
    """What was done for one encoder and role."""

    encoder: str
    """Its fingerprint."""
    role: Role
    texts: int
    """Distinct texts."""
    present: int
    """Of which the vectors were there."""


class RaySettings(NamedTuple):
    """How the texts of an experiment are embedded."""

    address: str | None = None
    """Of the Ray cluster; None for one on this machine."""
    max_cost: float | None = None
    """Dollars that each encoder may spend."""
    allow_code: bool = True
    """Whether the experiment may name code that is run."""
    progress: bool = True
    """Whether Ray shows how far it is."""


def embed_on_ray(
    experiment: Path, url: str, settings: RaySettings
) -> list[EncoderVectors]:
    """Embed the texts of every encoder in an experiment on a Ray cluster; what is there is not embedded again.

    Each node keeps in its cache what it was answered, so that a batch which Ray gives out again is not paid twice.

    Args:
        experiment: its file; every node can read it and its data set.
        url: where files go, reached by every node: a folder, or what fsspec opens.
        settings: how.

    Raises:
        InputError: the experiment, its data or its environment is at fault, or no cluster answers.
        BackendError: an encoder failed for good, or the cluster; what was written stays.
    """
    tasks = embedding_tasks(
        experiment,
        limited=settings.max_cost is not None,
        allow_code=settings.allow_code,
    )
    planned = [_planned(task, url) for task in tasks]
    if any(one.tables for one in planned):
        # Ray calls its own deprecated options, also while it connects.
        with (
            warnings.catch_warnings(action="ignore", category=DeprecationWarning),
            _connected(settings),
        ):
            for number, (task, one) in enumerate(zip(tasks, planned, strict=True)):
                if one.tables:
                    _embed_tables(
                        (str(experiment.absolute()), number, settings),
                        task.encoder,
                        one,
                    )
    return [one.vectors for one in planned]


class _Planned(NamedTuple):
    """What is to be embedded for one encoder and role."""

    folder: VectorFolder
    tables: list[Any]
    """Of pyarrow, with the columns id, text, digest."""
    vectors: EncoderVectors


def _planned(task: EmbeddingTask, url: str) -> _Planned:
    """Read the texts of one encoder and role, and leave out those whose vectors are there."""
    folder = vector_folder(url, task.encoder.fingerprint_for(task.role), task.role)
    there = read_digests(folder)
    distinct: set[bytes] = set()
    tables = [
        table
        for read in task.passages
        for table in _new_texts(read(), task, there, distinct)
    ]
    absent = sum(table.num_rows for table in tables)
    vectors = EncoderVectors(
        folder.fingerprint, task.role, len(distinct), len(distinct) - absent
    )
    return _Planned(folder, tables, vectors)


def _embed_tables(
    arguments: tuple[Any, ...], encoder: Encoder, planned: _Planned
) -> None:
    """Embed the texts of one encoder and role on the cluster that Ray is connected to."""
    ray, data = importlib.import_module("ray"), importlib.import_module("ray.data")
    write_vector_manifest(planned.folder, encoder.form)
    resources = ray.cluster_resources()
    gpus = 0 if encoder.limits is not None else int(resources.get("GPU", 0))
    cpus = (
        1 if encoder.limits is not None else max(1, int(resources.get("CPU", 1)) // 2)
    )
    embedded = data.from_arrow(planned.tables).map_batches(
        _EmbedTexts,
        fn_constructor_args=arguments,
        batch_format="pyarrow",
        batch_size=RAY_BATCH_SIZE,
        compute=data.ActorPoolStrategy(
            size=gpus or cpus
        ),  # a provider's limits, and the dollars, hold for one actor
        num_gpus=1 if gpus else None,
    )
    embedded.write_parquet(
        planned.folder.path, filesystem=planned.folder.files, try_create_dir=False
    )


def _new_texts(
    passages: Iterator[tuple[str, str]],
    task: EmbeddingTask,
    there: set[bytes],
    distinct: set[bytes],
) -> Iterator[Any]:
    """Yield the texts whose vectors are not there, sorted by length within a window, and note all that were met."""
    import pyarrow as pa

    for window in split_windows(passages, task.encoder.form):
        names = text_keys(
            task.encoder.fingerprint_for(task.role),
            task.role,
            [text for _, text in window],
        )
        new = {
            name: row
            for name, row in zip(names, window, strict=True)
            if row[1].strip() and name not in distinct
        }
        distinct.update(new)
        rows = sorted(
            (len(text), text, id_, name)
            for name, (id_, text) in new.items()
            if name not in there
        )
        if rows:
            _, texts, ids, digest = zip(*rows, strict=True)
            yield pa.table({"id": ids, "text": texts, "digest": digest})


class _EmbedTexts:
    """An actor of Ray: an encoder that is built once, with the cache of its node."""

    def __init__(self, experiment: str, number: int, settings: RaySettings) -> None:
        self._task = embedding_tasks(Path(experiment), allow_code=settings.allow_code)[
            number
        ]
        self._meter = Meter(Budget(settings.max_cost))

    def __call__(self, batch: Any) -> Any:
        """Embed a table of texts."""
        with Cache(default_cache_path()) as cache, self._meter.stage("embed"):
            embedder = Embedder(self._task.encoder, cache)
            embedded = embedder.embed(
                batch["text"].to_pylist(), self._task.role, self._meter
            )
        return vector_table(
            batch["id"].to_pylist(), batch["digest"].to_pylist(), embedded
        )


@contextmanager
def _connected(settings: RaySettings) -> Iterator[None]:
    """Connect Ray to a cluster, or to one that is started on this machine, inside.

    Raises:
        InputError: none answers.
        BackendError: what is done inside failed.
    """
    with require_package("harness embed", "ray[data]", "ray"):
        ray, data = importlib.import_module("ray"), importlib.import_module("ray.data")
    address = settings.address
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():
            socket.create_connection((host, int(port)), CLUSTER_TIMEOUT_SECONDS).close()
        # "local": without an address Ray would take any cluster that runs on this machine, and end with it.
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level="ERROR",
            include_dashboard=False,
        )
    except (OSError, ValueError) as failure:
        where = f"at {address}" if address else "on this machine"
        raise InputError(
            Problem(
                "--address",
                f"no Ray cluster {where}: {failure}",
                "`ray status` names it",
            )
        ) from None
    try:
        data.DataContext.get_current().enable_progress_bars = settings.progress
        if not settings.progress:
            logging.getLogger("ray.data").setLevel(logging.ERROR)
        yield
    except ray.exceptions.RayError as failure:
        raise BackendError(
            f"embedding failed: {str(failure).strip().splitlines()[-1]}"
        ) from None
    finally:
        ray.shutdown()
