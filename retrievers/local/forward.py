"""One request through a local model, in passes of a size that suits a processor: vectors, scores, vectors of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from retrievers.errors import BackendError
from retrievers.meter import Stop
from retrievers.types import Role

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch

PASS = 2048
"""Tokens, padding included, that a processor treats at once: what passes from layer to layer stays in its cache."""


def outputs(
    model: Any, features: Mapping[str, Any], name: str, stopped: Stop | None = None, **options: Any
) -> torch.Tensor:
    """Run a model over one request and return one of its outputs: a row a text, 32-bit floats.

    On a processor texts of like length go together, up to PASS tokens.

    Args:
        model: of sentence-transformers.
        features: what it is given.
        name: of the output.
        stopped: tells before each pass whether the run was interrupted.
        options: of the model's own `forward`.

    Raises:
        BackendError: the run was interrupted.
    """
    import torch

    rows, parts = [], []
    for some, part in passes(features, model.device.type, stopped):
        rows.append(some)
        parts.append(model(moved(part, model.device), **options)[name].float())
    joined = torch.cat(parts)
    return joined[torch.argsort(torch.cat(rows)).to(joined.device)]


def passes(
    features: Mapping[str, Any], device: str, stopped: Stop | None = None
) -> Iterator[tuple[torch.Tensor, Mapping[str, Any]]]:
    """Yield rows, and their features without the columns that are padding in all of them.

    Raises:
        BackendError: before a further pass, where the run was interrupted.
    """
    import torch

    mask = features.get("attention_mask")
    if mask is None or device != "cpu":
        yield torch.arange(len(features["offsets"] if mask is None else mask)), features
        return
    lengths = mask.sum(dim=1)
    order = torch.argsort(lengths, descending=True, stable=True)
    padded_left = not bool(mask[:, 0].all())
    start = 0
    while start < len(order):
        if stopped is not None and stopped.interrupted:
            raise BackendError("stopped, since the run was interrupted")
        longest = max(1, int(lengths[order[start]]))
        rows = order[start : start + max(1, PASS // longest)]
        columns = slice(-longest, None) if padded_left else slice(longest)
        yield (
            rows,
            {
                key: value[rows][:, columns] if isinstance(value, torch.Tensor) and value.shape == mask.shape else value
                for key, value in features.items()
            },
        )
        start += len(rows)


def moved(features: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Return the features with every tensor on the device."""
    return {name: value.to(device) if hasattr(value, "to") else value for name, value in features.items()}


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
