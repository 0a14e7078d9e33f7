"""Whose models wrote the questions, judged the documents and made the vectors: one vendor's may favour each other."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.records import Results

VENDORS = {
    "OpenAI": ("gpt", "chatgpt", "o1", "o3", "o4", "text-embedding-3", "text-embedding-ada", "openai"),
    "Anthropic": ("claude", "anthropic"),
    "Google": ("gemini", "gemma", "embeddinggemma", "google"),
    "Amazon": ("amazon", "titan", "nova"),
    "Cohere": ("cohere", "command", "embed-english", "embed-multilingual", "embed-v4"),
    "Mistral": ("mistral", "mixtral", "ministral", "codestral"),
    "Alibaba": ("qwen", "gte", "alibaba"),
    "Meta": ("llama", "meta"),
    "Jina": ("jina",),
    "NVIDIA": ("nvidia", "nv-embed", "nemotron"),
}
"""Vendor -> how the names of its models begin, or a part of them after a slash, a dot or a hyphen."""


def vendor_of(model: str) -> str:
    """Return the vendor of a model by its name, "" where the name does not tell.

    >>> vendor_of("gpt-4o-mini"), vendor_of("amazon.titan-embed-text-v1"), vendor_of("all-MiniLM-L6-v2")
    ('OpenAI', 'Amazon', '')
    """
    parts = [model.lower(), *re.split(r"[/.:]", model.lower())]
    return next((vendor for vendor, names in VENDORS.items() for part in parts if part.startswith(names)), "")


def one_vendor(results: Results) -> str:
    """The vendor of all three: of a model that wrote questions, one that judged, and one that made vectors; or ""."""
    queries = [labelled.query for labelled in results.queries.values()]
    authors = {query.fields["origin"].removeprefix("llm:") for query in queries if "origin" in query.fields}
    judges = {name for labelled in results.queries.values() for name in labelled.labels.by.split(", ")}
    encoders = {results.manifest.retrievers[name].provenance.get("model", "") for name in results.retrievers}
    return next(iter(sorted(_vendors(authors) & _vendors(judges) & _vendors(encoders))), "")


def _vendors(models: Iterable[str]) -> set[str]:
    return {vendor for model in models if (vendor := vendor_of(model))}
