"""What to try if a retriever loses.

It follows from the slice on which it loses, and from its own parts. The words are in
`wording.explanation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from harness.evaluation.property_slices import Condition, SliceName
from harness.records import (
    DIGITS,
    DOCUMENT_LENGTH,
    QUERY_LENGTH,
    RAREST_WORD,
    SHARED_WORDS,
    TRUNCATED_BY,
    Manifest,
)

WORD_KINDS = frozenset({"bm25"})
"""Kinds that know a document by its words alone."""
VECTOR_KINDS = frozenset({"dense"})
"""Kinds that know it by a vector alone."""


class Suggestion(Enum):
    """What may help, as the documentation explains."""

    CHUNK = "chunk"
    """Cut documents that the model does not read to their end."""
    DENSE = "dense"
    """Add vectors if queries use other words than their documents."""
    LEXICAL = "lexical"
    """Add BM25 if queries have numbers or rare words."""
    LONG_QUERIES = "long queries"
    """Add a fusion and a reranker if long queries lose."""


def suggestion_for(
    slice_name: SliceName, loser: str, manifest: Manifest
) -> Suggestion | None:
    """Return what may help the loser on a slice; None if it is unknown.

    Words are added only to a loser without them, and vectors likewise.

    Args:
        slice_name: the slice on which it loses.
        loser: the retriever.
        manifest: has the parts of the loser, and what its models truncated.
    """
    parts = manifest.resolved.retriever_with_parts(loser)
    kinds = _leaf_kinds(parts, manifest)
    if _is_truncated(slice_name, parts, manifest):
        return Suggestion.CHUNK
    if _is_half(slice_name, SHARED_WORDS, Condition.AT_MOST) and kinds <= WORD_KINDS:
        return Suggestion.DENSE
    if _has_rare_words(slice_name) and kinds <= VECTOR_KINDS:
        return Suggestion.LEXICAL
    if _is_half(slice_name, QUERY_LENGTH, Condition.ABOVE):
        return Suggestion.LONG_QUERIES
    return None


def _leaf_kinds(parts: Sequence[str], manifest: Manifest) -> frozenset[str]:
    """Return the kinds of a retriever's parts that use no other one."""
    retrievers = manifest.resolved.retriever_by_name
    return frozenset(
        retrievers[part].kind for part in parts if not retrievers[part].uses
    )


def _is_half(slice_name: SliceName, property_name: str, condition: Condition) -> bool:
    """Whether a slice is the lower, or upper, half by a property."""
    return (
        slice_name.property_name == property_name and slice_name.condition is condition
    )


def _has_rare_words(slice_name: SliceName) -> bool:
    """Whether the queries of a slice have rare words, or numbers."""
    if slice_name.property_name == DIGITS:
        return slice_name.value is True
    return _is_half(slice_name, RAREST_WORD, Condition.AT_MOST)


def _is_truncated(
    slice_name: SliceName, parts: Sequence[str], manifest: Manifest
) -> bool:
    """Whether a part of the loser does not read the documents of a slice to the end."""
    if slice_name.property_name.startswith(TRUNCATED_BY):
        retriever = slice_name.property_name.removeprefix(TRUNCATED_BY)
        return slice_name.value is True and retriever in parts
    if not _is_half(slice_name, DOCUMENT_LENGTH, Condition.ABOVE):
        return False
    quality = manifest.ledger.retrievers
    return any(quality[part].notes.get("truncated") for part in parts)
