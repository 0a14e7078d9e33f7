"""Attention for 16-bit models on a processor: text by text, so that the weights of a text stay in its cache.

torch's own kernel takes as long with 16 bits as with 32. Products of matrices, which are twice as fast with half the
bits, and a softmax between them take 0.7 of its time, as long as what lies between them is small.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

NAME = "text-by-text"
LONGEST = 512
"""Tokens of a text up to which its attention weights, a matrix of its tokens for each head, are small."""

HEEDED = {"cache", "output_attentions", "position_bias", "softcap"}
"""Options, beside scale and cause, by which the attention of transformers goes; it passes over all others."""


def attend_text_by_text(model: Any) -> None:
    """Let the transformer inside a model attend text by text, where it leaves the choice to its library.

    Args:
        model: of sentence-transformers.
    """
    registry: Any = importlib.import_module("transformers")
    masks: Any = importlib.import_module("transformers.masking_utils")
    registry.AttentionInterface.register(NAME, _attend)
    registry.AttentionMaskInterface.register(NAME, masks.sdpa_mask)
    transformer: Any = getattr(model, "transformers_model", None)
    if getattr(transformer, "_supports_attention_backend", False) and transformer.config._attn_implementation == "sdpa":
        transformer.set_attn_implementation(NAME)


def _attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attend as `sdpa_attention_forward` of transformers does, to which goes all but the plain case.

    Args:
        module: the layer.
        query: (texts, heads, tokens, dimensions).
        key: as the query.
        value: as the query.
        attention_mask: (texts, 1, 1 or tokens, tokens): what may be attended to; None is all.
        options: of transformers.
    """
    import torch

    plain = query.shape == key.shape == value.shape and query.shape[2] <= LONGEST
    causal = options.get("is_causal", getattr(module, "is_causal", True))
    given = {name for name, value in options.items() if value is not None and value is not False}
    if causal or not plain or given & HEEDED:
        sdpa: Any = importlib.import_module("transformers.integrations.sdpa_attention")
        attended, _ = sdpa.sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return attended, None
    texts, heads, tokens, size = query.shape
    scaling = options.get("scaling") or size**-0.5
    found = query.new_empty(texts, tokens, heads, size)
    zero = query.new_zeros(1, 1, 1)
    query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    for i in range(texts):
        bias = zero if attention_mask is None else zero.masked_fill(~attention_mask[i], float("-inf"))
        weights = torch.baddbmm(bias, query[i], key[i].transpose(1, 2), alpha=scaling).softmax(dim=2)
        found[i] = torch.bmm(weights, value[i]).transpose(0, 1)
    return found, None
