"""The forward pass of a loaded SentenceTransformer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.embedded import Role
from retrievers.texts.token_estimate import Counts

CHARACTERS_PER_TOKEN = 4
"""Characters of prose per token, by which texts of similar length are grouped."""


class EncodedText(NamedTuple):
    """One text as a model has read it."""

    vector: npt.NDArray[np.float32]
    tokens: int
    """Tokens that the model has read, with its marks around the text."""


def counts_tokens(model: Any) -> bool:
    """Return whether a model's features show how many tokens of each text it reads.

    Those of flash attention without padding do not.
    """
    return _read_tokens(model.preprocess(["a"], task="document")) is not None


def grouping_lengths(texts: Sequence[str], limit: int) -> Counts:
    """Return about how many tokens of each text are read, to group texts before a pass.

    They are estimated by its characters; the pass shows the true numbers.

    Args:
        texts: the texts.
        limit: tokens that the model reads of a text, at most.
    """
    characters = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    return np.minimum(characters // CHARACTERS_PER_TOKEN + 1, limit)


def encode_texts(
    model: Any, texts: Sequence[str], *, prompt: str, role: Role
) -> list[EncodedText]:
    """Return the vector and the tokens of each text, in order, by one forward pass.

    With the library's `encode`, which returns no tokens, every text would be tokenised
    twice. Vectors are neither scaled nor cut.

    Raises:
        TypeError: `counts_tokens` is false of the model.
    """
    import torch
    from sentence_transformers.util import batch_to_device

    with torch.inference_mode():
        features = model.preprocess(list(texts), prompt=prompt, task=role)
        tokens = _read_tokens(features)
        features = batch_to_device(features, model.device)
        vectors = model(features, task=role)["sentence_embedding"]
        rows = vectors.float().cpu().numpy()
    if tokens is None:
        raise TypeError("the model's features do not show the tokens of each text")
    return list(map(EncodedText, rows, tokens.tolist()))


def _read_tokens(features: Any) -> Counts | None:
    """Return the tokens of each text in a model's features; None if they are not shown.

    A static model has the tokens of all texts in one row, and where each text begins.
    """
    if "attention_mask" in features:
        counts: Counts = features["attention_mask"].sum(dim=1).numpy()
        return counts
    if "offsets" in features:
        ends = len(features["input_ids"])
        lengths: Counts = np.diff(features["offsets"].numpy(), append=ends)
        return lengths
    return None
