"""Embedding on many machines: Ray Data reads texts, actors embed them, Parquet files take the vectors."""

import importlib
import logging
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from harness.build import missing_requirements
from harness.dataset import Dataset
from harness.experiment import load
from harness.running.check import prepare
from harness.running.forecast import unpriced
from retrievers.cache import Cache, default_path
from retrievers.chunking import Chunk, pieces
from retrievers.embedding import Embedder, proof_texts, windows
from retrievers.errors import BackendError, InputError, Problem, needing
from retrievers.identity import keys
from retrievers.meter import Budget, Meter
from retrievers.parquet_vectors import (
    VectorFolder,
    digests,
    vector_folder,
    vector_table,
    write_manifest,
)
from retrievers.types import Encoder, Role

BATCH = 1024
"""Texts that an actor is given at once; its requests are planned among them."""
ANSWERS_WITHIN = 10.0
"""Seconds in which a cluster takes a connection: Ray itself waits for minutes where nothing is."""
Passages = Callable[[], Iterator[tuple[str, str]]]
"""Reads the id and the text of each passage, or query."""


class Task(NamedTuple):
    """The texts of one role that one encoder embeds."""

    encoder: Encoder
    role: Role
    passages: tuple[Passages, ...]
    """For each choice of the documents' texts."""


class EncoderVectors(NamedTuple):
    """What was done for one encoder and role."""

    encoder: str
    """Its fingerprint."""
    role: Role
    texts: int
    """Distinct texts."""
    present: int
    """Of which the vectors were there."""


class ClusterSettings(NamedTuple):
    """How the texts of an experiment are embedded."""

    address: str | None = None
    """Of the Ray cluster; None for one on this machine."""
    max_cost: float | None = None
    """Dollars that each encoder may spend."""
    code: bool = True
    """Whether the experiment may name code that is run."""
    progress: bool = True
    """Whether Ray shows how far it is."""


def embed(
    experiment: Path, url: str, settings: ClusterSettings
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
    tasks = tasks_of(
        experiment, limited=settings.max_cost is not None, code=settings.code
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


def tasks_of(
    experiment: Path, *, limited: bool = False, code: bool = True
) -> list[Task]:
    """Return what an experiment embeds: for each distinct encoder its documents and its queries.

    Args:
        experiment: its file.
        limited: whether every price must be known.
        code: whether the experiment may name code that is run.

    Raises:
        InputError: the experiment, its data or its environment is at fault; or it has no encoder.
    """
    loaded = load(experiment, code=code)
    dataset, _, built = prepare(loaded)
    cuts: dict[str, tuple[Encoder, dict[tuple[Chunk | None, bool], None]]] = {}
    asking: dict[str, Encoder] = {}
    problems: list[Problem] = []
    for name, dense in [(one.name, dense) for one in built for dense in one.denses]:
        for one, proof in ((dense.encoder, False), (dense.cut.asked, True)):
            if one is not None:
                problems += [
                    *missing_requirements(name, one),
                    *(unpriced(name, "encoder", one) if limited else ()),
                ]
                fingerprint = one.fingerprint_for("document")
                cuts.setdefault(fingerprint, (one, {}))[1][dense.chunks, proof] = None
        asking.setdefault(dense.encoder.fingerprint_for("query"), dense.encoder)
    if not asking:
        problems = [
            Problem(str(experiment), "has no encoder", "nothing is to be embedded")
        ]
    if problems:
        raise InputError(problems)
    documents = [
        Task(
            encoder,
            "document",
            tuple(_documents(dataset, chunks, proof=proof) for chunks, proof in some),
        )
        for encoder, some in cuts.values()
    ]
    searched = {
        text: query.id
        for one in built
        for query in one.searched(dataset.queries)
        for text in [query.text]
    }
    queries = [(id_, text) for text, id_ in searched.items()]
    return [
        *documents,
        *(
            Task(encoder, "query", (lambda: iter(queries),))
            for encoder in asking.values()
        ),
    ]


def _documents(dataset: Dataset, chunks: Chunk | None, *, proof: bool) -> Passages:
    """Read a corpus as a retriever cuts it; with `proof` only what shows that a service's smaller vectors are cut."""

    def read() -> Iterator[tuple[str, str]]:
        every = (
            (piece.id, piece.content) for piece in pieces(dataset.documents(), chunks)
        )
        if not proof:
            return every
        some = proof_texts(
            piece.content for piece in pieces(dataset.documents(), chunks)
        )
        return ((id_, text) for id_, text in every if text in some)

    return read


class _Planned(NamedTuple):
    """What is to be embedded for one encoder and role."""

    folder: VectorFolder
    tables: list[Any]
    """Of pyarrow, with the columns id, text, digest."""
    vectors: EncoderVectors


def _planned(task: Task, url: str) -> _Planned:
    """Read the texts of one encoder and role, and leave out those whose vectors are there."""
    folder = vector_folder(url, task.encoder.fingerprint_for(task.role), task.role)
    there = digests(folder)
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
    write_manifest(planned.folder, encoder.form)
    resources = ray.cluster_resources()
    gpus = 0 if encoder.limits is not None else int(resources.get("GPU", 0))
    cpus = (
        1 if encoder.limits is not None else max(1, int(resources.get("CPU", 1)) // 2)
    )
    embedded = data.from_arrow(planned.tables).map_batches(
        _EmbedTexts,
        fn_constructor_args=arguments,
        batch_format="pyarrow",
        batch_size=BATCH,
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
    task: Task,
    there: set[bytes],
    distinct: set[bytes],
) -> Iterator[Any]:
    """Yield the texts whose vectors are not there, sorted by length within a window, and note all that were met."""
    import pyarrow as pa

    for window in windows(passages, task.encoder.form):
        names = keys(
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

    def __init__(self, experiment: str, number: int, settings: ClusterSettings) -> None:
        self._task = tasks_of(Path(experiment), code=settings.code)[number]
        self._meter = Meter(Budget(settings.max_cost))

    def __call__(self, batch: Any) -> Any:
        """Embed a table of texts."""
        with Cache(default_path()) as cache, self._meter.stage("embed"):
            embedder = Embedder(self._task.encoder, cache)
            embedded = embedder.embed(
                batch["text"].to_pylist(), self._task.role, self._meter
            )
        return vector_table(
            batch["id"].to_pylist(), batch["digest"].to_pylist(), embedded
        )


@contextmanager
def _connected(settings: ClusterSettings) -> Iterator[None]:
    """Connect Ray to a cluster, or to one that is started on this machine, inside.

    Raises:
        InputError: none answers.
        BackendError: what is done inside failed.
    """
    with needing("harness embed", "ray[data]", "ray"):
        ray, data = importlib.import_module("ray"), importlib.import_module("ray.data")
    address = settings.address
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():
            socket.create_connection((host, int(port)), ANSWERS_WITHIN).close()
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
