"""Outputs of a model for some texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.ragged import AnyVectors, concatenate_vectors
from retrievers.ranking import Floats
from retrievers.texts.token_estimate import Counts

Role = Literal["document", "query"]
DenseVectors = npt.NDArray[np.float32]
MAX_DIMENSIONS = 65_536
"""Numbers of a vector, at most: Qdrant's limit."""


class Embedded(NamedTuple):
    """Vectors of some texts, in the order of the texts."""

    vectors: AnyVectors
    """float32, (n, dimensions); other forms as in `retrievers.ragged`."""
    tokens: Counts
    """(n,): tokens that the model read, with special ones if the model counts them."""
    truncated_tokens: Counts
    """(n,): tokens beyond the model's limit, cut off unread."""

    @classmethod
    def concatenate(cls, parts: Iterable[Embedded]) -> Embedded:
        """Join the texts of one or more parts."""
        vectors, tokens, truncated = zip(*parts, strict=True)
        return cls(
            vectors=concatenate_vectors(vectors),
            tokens=np.concatenate(tokens),
            truncated_tokens=np.concatenate(truncated),
        )

    def take(self, rows: Sequence[int] | npt.NDArray[np.intp]) -> Embedded:
        """Return the texts at some positions, in the order of the positions."""
        return Embedded(
            self.vectors[rows], self.tokens[rows], self.truncated_tokens[rows]
        )


class PairScores(NamedTuple):
    """Scores of some pairs of a query and a document, in the order of the pairs."""

    scores: Floats
    """(n,), float64: higher is better; comparable within one query."""
    tokens: Counts
    """(n,): tokens that the model read."""
    truncated_tokens: Counts
    """(n,): tokens beyond the model's limit, cut off unread."""
