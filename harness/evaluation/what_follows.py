"""What to try where a retriever loses."""

from __future__ import annotations

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


class Remedy(Enum):
    """What may help, as the documentation explains."""

    CHUNK = "chunk"
    """Cut documents that the model does not read to their end."""
    DENSE = "dense"
    """Add vectors where queries use other words than their documents."""
    LEXICAL = "lexical"
    """Add BM25 where queries have numbers or rare words."""
    LONG_QUERIES = "long queries"


def remedy_of(name: SliceName, loser: str, manifest: Manifest) -> Remedy | None:
    """Return what may help the loser on a slice; None if it is unknown."""
    resolved = manifest.resolved
    tables = resolved.retriever_tables
    parts = resolved.retriever_with_parts(loser)
    leaf_kinds = {tables[part]["kind"] for part in parts if not resolved.uses(part)}
    is_low = name.condition is Condition.AT_MOST
    is_high = name.condition is Condition.ABOVE
    if name.property_name.startswith(TRUNCATED_BY):
        retriever = name.property_name.removeprefix(TRUNCATED_BY)
        return Remedy.CHUNK if name.value is True and retriever in parts else None
    if name.property_name == DOCUMENT_LENGTH and is_high:
        notes = manifest.ledger.retrievers
        truncates = any(notes[part].notes.get("truncated") for part in parts)
        return Remedy.CHUNK if truncates else None
    if name.property_name == SHARED_WORDS and is_low and leaf_kinds <= WORD_KINDS:
        return Remedy.DENSE
    has_rare_words = name.property_name == RAREST_WORD and is_low
    has_digits = name.property_name == DIGITS and name.value is True
    if (has_rare_words or has_digits) and leaf_kinds <= VECTOR_KINDS:
        return Remedy.LEXICAL
    if name.property_name == QUERY_LENGTH and is_high:
        return Remedy.LONG_QUERIES
    return None
