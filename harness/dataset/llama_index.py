"""LlamaIndex's EmbeddingQAFinetuneDataset as it saves itself: `queries`, `corpus`, `relevant_docs` in no order.

The shape is that of llama-index-finetuning 0.4.2.
"""

from harness.dataset.keyed import KeyedSource, listed, looks_like, source_of
from harness.dataset.reference import DatasetReference


def matches(reference: DatasetReference) -> bool:
    """Whether the reference is such a file."""
    return looks_like(reference, "queries", "corpus", "relevant_docs")


def read(reference: DatasetReference) -> KeyedSource:
    """Open the file."""
    return source_of(reference, "relevant_docs", listed)
