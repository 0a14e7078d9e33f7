"""How many passages the retrievers cut documents into."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever, without_filter
from harness.dataset import Dataset
from retrievers.bm25 import BM25
from retrievers.texts.chunking import Chunk, passages_of
from retrievers.types import sample_documents

PASSAGE_SAMPLE = 1_000
"""Documents that are cut; the passages of more are estimated, about 0.1 s a size."""


class PassageCount(NamedTuple):
    """The passages of the retrievers that cut documents alike."""

    retrievers: tuple[str, ...]
    size: int
    """Characters of a passage, at most."""
    passages: int
    exact: bool
    """Whether all documents were cut; else it is estimated from a sample."""


def count_passages(
    retrievers: Sequence[BuiltRetriever], dataset: Dataset, *, seed: int
) -> tuple[PassageCount, ...]:
    """Return the passages of each way to cut the documents, in the retrievers' order.

    Left out are documents cut by tokens, which a tokenizer would have to count, or by a
    function of the user, which is not run.

    Args:
        retrievers: of the experiment.
        dataset: whose documents are cut.
        seed: of the sample.
    """
    chunks_by_name: dict[str, Chunk] = {}
    users: dict[str, list[str]] = {}
    for built in retrievers:
        for chunks in _chunks_of(built):
            if chunks.unit == "characters" and not chunks.call:
                chunks_by_name[chunks.name] = chunks
                users.setdefault(chunks.name, []).append(built.name)
    if not users:
        return ()
    documents = sample_documents(dataset.documents(), seed=seed, size=PASSAGE_SAMPLE)
    counts: list[PassageCount] = []
    for name, chunks in chunks_by_name.items():
        passages = sum(1 for _ in passages_of(documents, chunks))
        total = round(passages * dataset.document_count / max(len(documents), 1))
        retriever_names = tuple(dict.fromkeys(users[name]))
        is_exact = len(documents) == dataset.document_count
        counts.append(PassageCount(retriever_names, chunks.size or 0, total, is_exact))
    return tuple(counts)


def _chunks_of(built: BuiltRetriever) -> Iterator[Chunk]:
    """Yield how the parts of a retriever cut documents."""
    for dense in built.dense_parts:
        if dense.chunks is not None:
            yield dense.chunks
    for part in map(without_filter, built.own_parts):
        if isinstance(part, BM25) and part.chunk is not None:
            yield part.chunk
