"""embench's JSON: `queries` and `corpus` by id, `qrels` as grades by query and document (embench 0.1.0)."""

from harness.dataset.keyed import KeyedSource, graded, looks_like, source_of
from harness.dataset.reference import DatasetReference


def matches(reference: DatasetReference) -> bool:
    """Whether the reference is such a file."""
    return looks_like(reference, "queries", "corpus", "qrels")


def read(reference: DatasetReference) -> KeyedSource:
    """Open the file."""
    return source_of(reference, "qrels", graded)
