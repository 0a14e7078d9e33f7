"""Padding behind the texts of a batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def padded_behind(model: Any) -> Iterator[None]:
    """Let a SentenceTransformer pad behind texts, not before them, inside.

    It cuts only padding behind a text off its token vectors; a tokenizer that pads
    before texts, as some of decoders do, would leave vectors of padding among them.
    """
    tokenizer = model.tokenizer
    side = getattr(tokenizer, "padding_side", None)
    if side is None:  # that of a static model, which pads nothing
        yield
        return
    tokenizer.padding_side = "right"
    try:
        yield
    finally:
        tokenizer.padding_side = side
