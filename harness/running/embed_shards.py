"""Embedding apart from a run: shares of its texts as Parquet, on any number of machines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from harness.dataset import Dataset
from harness.experiment import Encoded, load
from harness.running.check import prepare
from harness.running.components import lacking
from harness.running.forecast import chunks_of, unpriced
from retrievers.cache import Cache, default_path
from retrievers.chunking import Chunks, pieces
from retrievers.derived import proof_texts
from retrievers.embedding import Embedder
from retrievers.errors import InputError, Problem
from retrievers.meter import Budget, Meter
from retrievers.ragged import Form
from retrievers.storage import open_storage
from retrievers.types import Encoder, Role
from retrievers.user_objects import faults_of
from retrievers.vector_search import windows
from retrievers.vector_shards import Imported, Request, Writing, import_into, planned_requests, write_shard

SHARD = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")


class Shard(NamedTuple):
    """One share of several: every `total`-th request, beginning with number `number`."""

    number: int = 1
    total: int = 1


class Task(NamedTuple):
    """The texts of one role that one encoder embeds."""

    encoder: Encoder
    role: Role
    windows: tuple[Callable[[], Iterator[list[str]]], ...]
    """For each choice of the documents' texts, these as a run meets them."""

    def requests(self) -> Iterator[Request]:
        """Plan all requests, each distinct text in one of them."""
        planned: set[bytes] = set()
        for read in self.windows:
            yield from planned_requests(self.encoder, read(), self.role, planned)


class EncoderShare(NamedTuple):
    """What was done for one encoder and role."""

    encoder: str
    """Its fingerprint."""
    role: Role
    written: Writing
    cached: int
    tokens: int
    usd: float


def parse_shard(text: str) -> Shard:
    """Read "3/16": the third of sixteen shares.

    Raises:
        InputError: it is no such share.

    >>> parse_shard("3/16")
    Shard(number=3, total=16)
    """
    match = SHARD.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise InputError(Problem("--shard", f"{text!r} is not a share", "write 3/16 for the third of sixteen"))
    return Shard(int(match[1]), int(match[2]))


def embed(
    experiment: Path,
    url: str,
    *,
    shard: Shard = Shard(),  # noqa: B008 - immutable
    max_cost: float | None = None,
    code: bool = True,
    watch: Callable[[str, Meter], None] = lambda name, meter: None,
) -> list[EncoderShare]:
    """Embed a share of the texts of every encoder in an experiment, and write their vectors as a file.

    Args:
        experiment: its file.
        url: where files go: a folder, or what `open_storage` opens.
        shard: which share of the requests.
        max_cost: dollars that all shares together may spend; each may spend an equal part of it.
        code: whether the experiment may name code that is run.
        watch: is called with the encoder's name and its meter whenever something was counted.

    Raises:
        InputError: the experiment, its data or its environment is at fault.
        BackendError: an encoder failed for good; what was answered is written.
    """
    limit = None if max_cost is None else max_cost / shard.total
    budget = Budget(limit)
    storage = open_storage(url)
    shares = []
    with Cache(default_path()) as cache:
        for task in tasks_of(experiment, limited=max_cost is not None, code=code):
            fingerprint = task.encoder.fingerprint_for(task.role)
            meter = Meter(budget=budget, watch=lambda meter, name=fingerprint: watch(name, meter))  # type: ignore[misc]
            stage = "embed-documents" if task.role == "document" else "embed-queries"
            mine = islice(task.requests(), shard.number - 1, None, shard.total)
            with meter.stage(stage), faults_of((task.encoder,)):
                written = write_shard(Embedder(task.encoder, cache), task.role, storage, mine, meter)
            counts = meter.counts(stage)
            cached, tokens = (int(counts.get(name, 0)) for name in ("cached", "tokens"))
            shares.append(EncoderShare(fingerprint, task.role, written, cached, tokens, counts.get("usd", 0.0)))
    budget.check(f"the vectors are kept in {storage.url}")
    return shares


def import_vectors(url: str) -> list[Imported]:
    """Copy the vectors under a URL into the cache; see `retrievers.vector_shards.import_into`."""
    with Cache(default_path()) as cache:
        return import_into(cache, open_storage(url))


def tasks_of(experiment: Path, *, limited: bool = False, code: bool = True) -> list[Task]:
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
    blocks = [block for block in loaded.experiment.retrievers if isinstance(block, Encoded)]
    if not blocks:
        raise InputError(Problem(str(experiment), "has no encoder", "nothing is to be embedded"))
    cuts: dict[str, tuple[Encoder, dict[_Cut, None]]] = {}
    asking: dict[str, Encoder] = {}
    problems: list[Problem] = []
    for block in blocks:
        encoder, asked = built[block.name].encoder, built[block.name].asked
        assert encoder is not None
        for one, proof in ((encoder, False), (asked, True)):
            if one is not None:
                problems += [*lacking(block, one), *(unpriced(block, "encoder", one) if limited else ())]
                cut = _Cut(chunks_of(block, one), proof)
                cuts.setdefault(one.fingerprint_for("document"), (one, {}))[1][cut] = None
        asking.setdefault(encoder.fingerprint_for("query"), encoder)
    if problems:
        raise InputError(problems)
    documents = [
        Task(encoder, "document", tuple(_documents(dataset, cut, encoder.form) for cut in some))
        for encoder, some in cuts.values()
    ]
    return [*documents, *(Task(encoder, "query", (_queries(dataset),)) for encoder in asking.values())]


class _Cut(NamedTuple):
    """Which texts of the documents an encoder embeds."""

    chunks: Chunks | None
    proof: bool
    """Only those by which a service shows that its smaller vectors are what cutting gives."""


def _documents(dataset: Dataset, cut: _Cut, form: Form) -> Callable[[], Iterator[list[str]]]:
    def read() -> Iterator[list[str]]:
        texts = (piece.content for piece in pieces(dataset.documents(), cut.chunks))
        return windows(proof_texts(texts) if cut.proof else texts, form)

    return read


def _queries(dataset: Dataset) -> Callable[[], Iterator[list[str]]]:
    return lambda: iter([[query.text for query in dataset.queries]])
