"""Vectors that follow from others: the first numbers of each, scaled to length 1 again; nothing is embedded twice."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import numpy as np

from retrievers.embedding import Embeds
from retrievers.errors import BackendError, OverBudget
from retrievers.meter import Meter
from retrievers.ragged import Form, dense, unit_rows
from retrievers.types import Embedded, Role, Vectors

PROOF = 20
"""Texts that are asked for at the smaller size."""
LEAST_COSINE = 0.9999
"""Between a vector that was cut and one that was asked for, from which on they are the same."""


class Cut:
    """The vectors of an embedder, of which the leading numbers are kept.

    Args:
        embedder: gives the full vectors.
        dimensions: how many numbers are kept.
        asked: embeds by the same model at this size; what it gives must be what cutting gives, before anything is
            believed. None where there is nothing to compare with.
    """

    form: Form = "dense"

    def __init__(self, embedder: Embeds, dimensions: int, asked: Embeds | None = None) -> None:
        self._embedder = embedder
        self._dimensions = dimensions
        self._asked = asked
        self._full = 0
        self._least: float | None = None

    @property
    def provenance(self) -> Mapping[str, str]:
        """How vectors were cut, and how near they are to those that were asked for."""
        proof = {} if self._least is None else {"least_cosine_with_asked": f"{self._least:.6f}"}
        return {"cut_from": str(self._full), **proof}

    def embed(self, texts: Sequence[str], role: Role, meter: Meter, documents: Sequence[str] = ()) -> Embedded:
        """Embed texts, normally through the cache, and cut their vectors.

        Raises:
            BackendError: the vectors have too few numbers, or the model gives others when it is asked for few.
        """
        embedded = self._cut(self._embedder.embed(texts, role, meter, documents))
        if self._asked is not None and not documents and self._least is None and role == "document":
            self._compare(self._asked, texts, embedded, meter)
        return embedded

    def one(self, text: str, role: Role, meter: Meter) -> Embedded:
        """Embed one text past the cache, and cut its vector."""
        return self._cut(self._embedder.one(text, role, meter))

    def _cut(self, embedded: Embedded) -> Embedded:
        self._full = embedded.vectors.shape[1]
        if not len(embedded.vectors):
            return embedded
        if self._dimensions > self._full:
            raise BackendError(f"the model's vectors have {self._full} dimensions: {self._dimensions} cannot be kept")
        return embedded._replace(vectors=cut(dense(embedded.vectors), self._dimensions))

    def _compare(self, asked: Embeds, texts: Sequence[str], embedded: Embedded, meter: Meter) -> None:
        rows = {text: row for row, text in reversed(list(enumerate(texts)))}
        some = proof_texts(texts)
        try:
            other = asked.embed(some, "document", meter).vectors
        except OverBudget:
            raise
        except BackendError as failure:
            what = f"asked for {self._dimensions} dimensions, the service failed: {failure}"
            raise BackendError(f"{what} {_REMEDY}") from None
        gave = f"vectors of {other.shape[1]}"
        if other.shape[1] == self._dimensions:
            pairs = np.stack([dense(embedded.vectors)[[rows[text] for text in some]], dense(other)]).astype(np.float64)
            lengths = np.linalg.norm(pairs, axis=2).prod(axis=0)
            least = min(float((pairs.prod(axis=0).sum(axis=1) / np.where(lengths, lengths, 1)).min()), 1.0)
            if least > LEAST_COSINE:
                self._least = least
                return
            gave = f"others (the least cosine is {least:.4f})"
        what = f"cutting to {self._dimensions} dimensions differs from the service's own vectors of that size"
        raise BackendError(f"{what}: it gave {gave} for {len(some)} texts {_REMEDY}")


_REMEDY = "(proof = false takes the cut vectors as they are; or write a retriever with these encoder.dimensions)"


def cut(vectors: Vectors, dimensions: int) -> Vectors:
    """Return the leading numbers of each vector, scaled to length 1; what has no length stays as it is.

    >>> import numpy as np
    >>> cut(np.array([[3, 4, 12]], dtype=np.float32), 2).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    return dense(unit_rows(vectors[:, :dimensions]))


def proof_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts that are asked for at the smaller size: the first 20 that differ.

    >>> proof_texts(["a", "b", "a"])
    ['a', 'b']
    """
    seen: dict[str, str] = {}
    return list(islice((seen.setdefault(text, text) for text in texts if text not in seen), PROOF))
