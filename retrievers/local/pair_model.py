"""What the rerankers share that run a model on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from retrievers.errors import check_positive
from retrievers.fingerprints import fingerprint
from retrievers.local.models import Backend, Dtype, Replicas, Setup
from retrievers.local.weights import Weights
from retrievers.types import Pair, Reranker, runs


class PairOptions(NamedTuple):
    """How a model is loaded and how pairs are given to it; the rerankers' docstrings describe each."""

    model: str
    depth: int
    revision: str
    device: str
    dtype: Dtype
    batch_size: int
    backend: Backend
    trust_remote_code: bool


class PairModelReranker(Reranker):
    """What every reranker over a local model answers alike; a kind adds its fingerprint and how it scores."""

    def __init__(self, options: PairOptions, load: Callable[[Setup, str], Any]) -> None:
        """Describe the model; nothing is loaded before the first pair that is not cached.

        Args:
            options: of the reranker.
            load: puts a copy of the model on a device.
        """
        check_positive("rerank", depth=options.depth, batch_size=options.batch_size)
        self._options = options
        self._weights = Weights(options.model, options.revision)
        setup = Setup(self._weights, options.dtype, options.backend, options.trust_remote_code)
        self._replicas: Replicas[Any] = Replicas(setup, options.device, partial(load, setup))

    def _named(self, kind: str, **parts: object) -> str:
        """The name of all that changes a score: the weights, dtype, backend, and the parts that are given."""
        options = self._options
        return fingerprint(
            kind,
            self._weights.name,
            weights=self._weights.revision,
            dtype=options.dtype,
            backend=options.backend,
            **parts,
        )

    @property
    def depth(self) -> int:
        """How many candidates of each query are read again."""
        return self._options.depth

    @property
    def concurrency(self) -> int:
        """Requests at once: one for each device, several on a processor; loads the model."""
        return len(self._replicas)

    @property
    def at_hand(self) -> bool:
        """Whether the weights lie on this machine, so that the fingerprint needs no network."""
        return self._weights.at_hand

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are."""
        options = self._options
        own = {"dtype": options.dtype, "backend": options.backend, "depth": str(options.depth)}
        return {**self._weights.provenance, **own}

    def batches(self, pairs: Sequence[Pair]) -> Iterable[Sequence[int]]:
        """Split pairs into runs of the batch size, so that pairs of like length are padded together."""
        return runs(len(pairs), self._options.batch_size)
