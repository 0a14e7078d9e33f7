"""How large sparse vectors, and those of tokens, are: what a text has of them, and what that takes."""

from __future__ import annotations

from typing import NamedTuple

from harness.records import Results

UNITS = {"sparse": ("nonzeros", "numbers that are not 0"), "multivector": ("tokens", "vectors, one a token")}
"""Kind -> the key of the manifest, and what is counted."""


class VectorSize(NamedTuple):
    """The vectors of one retriever."""

    counted: str
    """What is counted."""
    per_text: float
    """Of a document, or of a passage, on average."""
    per_query: float
    dimensions: int
    bytes_per_document: float


def vector_sizes(results: Results) -> dict[str, VectorSize]:
    """Return the retrievers by vectors of unequal size, in the order of the experiment."""
    sizes = {}
    for name in results.retrievers:
        facts = results.manifest.retrievers[name].provenance
        key, counted = UNITS.get(results.manifest.resolved.blocks[name]["kind"], ("", ""))
        if f"{key}_per_text" in facts:
            sizes[name] = VectorSize(
                counted,
                float(facts[f"{key}_per_text"]),
                float(facts[f"{key}_per_query"]),
                int(facts["dimensions"]),
                float(facts["vector_bytes"]) / results.manifest.dataset.documents,
            )
    return sizes
