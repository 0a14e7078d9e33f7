"""Retrievers answer queries; they know nothing of judgments or measures."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points

from retrievers.errors import InputError, Problem, did_you_mean

ENCODERS = {
    "bedrock": "retrievers.encoders.bedrock:BedrockEncoder",
    "hashing": "retrievers.encoders.hashing:HashingEncoder",
    "openai": "retrievers.encoders.openai:OpenAIEncoder",
    "sentence-transformers": "retrievers.encoders.sentence_transformers:SentenceTransformerEncoder",
}
"""kind -> class. The keyword arguments of a class are the options of its kind."""
RERANKERS = {
    "cross-encoder": "retrievers.rerankers.cross_encoder:CrossEncoderReranker",
    "late-interaction": "retrievers.rerankers.late_interaction:LateInteractionReranker",
}
ENTRY_POINTS = "retriever_harness.encoders"
"""Third parties add encoder kinds through this entry-point group."""


def encoder_class(kind: str) -> type:
    """Import the class of an encoder kind; the heavy library behind it is loaded at its first use, not here."""
    foreign = {} if kind in ENCODERS else {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    return _class(kind, {**foreign, **ENCODERS}, "encoder")


def reranker_class(kind: str) -> type:
    """Import the class of a reranker kind."""
    return _class(kind, RERANKERS, "reranker")


def _class(kind: str, table: dict[str, str], what: str) -> type:
    if kind not in table:
        raise InputError(Problem("kind", f"unknown {what} {kind!r}", did_you_mean(kind, table)))
    module, name = table[kind].split(":")
    found: type = getattr(importlib.import_module(module), name)
    return found
