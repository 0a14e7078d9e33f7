"""Late interaction: a vector for each token, and how well those of a query are met by a document's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from retrievers.local.forward import moved, passes
from retrievers.meter import Stop
from retrievers.types import Role

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch


class ScoredTokens(NamedTuple):
    """The tokens of some texts."""

    vectors: torch.Tensor
    """(texts, length, dimensions)."""
    mask: torch.Tensor
    """(texts, length): which are scored; the others are padding, or marks that the model leaves out."""


def token_vectors(model: Any, features: Mapping[str, Any], role: Role | None = None) -> ScoredTokens | None:
    """Run a model over one request; None where it has no vectors of tokens.

    Args:
        model: of sentence-transformers.
        features: what it is given.
        role: of the texts, where the model treats queries and documents in two ways.
    """
    output = model(moved(features, model.device), **({"task": role} if role else {}))
    if "token_embeddings" not in output:
        return None
    return ScoredTokens(output["token_embeddings"].float(), output["attention_mask"].bool())


def scored_tokens(
    model: Any, features: Mapping[str, Any], role: Role, stopped: Stop | None = None
) -> list[npt.NDArray[np.float32]] | None:
    """Return the (tokens, dimensions) of each text that are scored; None where the model has no vectors of tokens.

    On a processor documents of like length go together. Queries stay together: what a model fills them up with, and
    scores, looks like padding.
    """
    device = model.device.type if role == "document" else ""
    texts: dict[int, npt.NDArray[np.float32]] = {}
    for rows, part in passes(features, device, stopped):
        tokens = token_vectors(model, part, role)
        if tokens is None:
            return None
        for row, vectors, mask in zip(rows.tolist(), tokens.vectors.cpu(), tokens.mask.cpu(), strict=True):
            texts[row] = vectors[mask].numpy()
    return [texts[row] for row in range(len(texts))]


def max_sim(queries: ScoredTokens, documents: ScoredTokens) -> torch.Tensor:
    """Return MaxSim of some pairs (Khattab & Zaharia 2020): the sum, over the query's tokens, of the largest product.

    Args:
        queries: the queries of the pairs; their vectors have length 1.
        documents: the documents of the pairs, likewise.

    Returns:
        (pairs,)
    """
    import torch

    products = torch.einsum("pqd,pkd->pqk", queries.vectors, documents.vectors)
    best = products.masked_fill(~documents.mask[:, None, :], -1).amax(dim=2)
    return (best * queries.mask).sum(dim=1)
