"""What a model gave for some texts."""

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
"""Numbers of a vector, at most: what Qdrant takes."""


class Embedded(NamedTuple):
    """Vectors of some texts, in the order of the texts."""

    vectors: AnyVectors
    """float32, (n, dimensions); sparse ones, and those of tokens, as `retrievers.ragged` has them."""
    tokens: Counts
    """(n,): tokens that the model read, special tokens included where the model counts them."""
    truncated_tokens: Counts
    """(n,): tokens beyond the model's limit, cut off unread."""

    @classmethod
    def concatenate(cls, parts: Iterable[Embedded]) -> Embedded:
        """Put some texts and others together, at least one part."""
        vectors, tokens, truncated = zip(*parts, strict=True)
        return cls(
            concatenate_vectors(vectors),
            np.concatenate(tokens),
            np.concatenate(truncated),
        )

    def take(self, rows: Sequence[int] | npt.NDArray[np.intp]) -> Embedded:
        """Return some of the texts, in the order of their positions."""
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
