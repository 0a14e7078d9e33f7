"""How far models read documents.

This is an estimate from a sample before a run; after it, the ledger counts what was
truncated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.preflight.embedding import has_user_chunker
from retrievers.dense import Dense
from retrievers.texts.chunking import Chunk, passages_of
from retrievers.texts.passage_ranking import document_of_passage
from retrievers.types import Document

MIN_TRUNCATED_DOCUMENT_SHARE = 0.05
"""Share of documents from which, if a model cuts off more, it is a warning."""


class TruncationEstimate(NamedTuple):
    """What an encoder would not read of a sample of documents, or of their passages."""

    retriever: str
    limit: int
    """Tokens of a text that the model reads."""
    beyond: int
    """Documents with a text, or a passage, that is longer."""
    sampled: int
    """Documents in the sample."""
    lost: int
    """Tokens that would not be read."""
    tokens: int
    """All tokens of the sample, prompts included."""
    exact: bool
    """Whether the model's own tokenizer counted the tokens; else they are estimated."""
    others: tuple[str, ...] = ()
    """Retrievers that use this one: through it they read no more, either."""

    @property
    def is_much(self) -> bool:
        """Whether it is more than 5 % of the documents, which is a warning."""
        return self.beyond > MIN_TRUNCATED_DOCUMENT_SHARE * self.sampled


def estimate_truncation(
    retrievers: Sequence[BuiltRetriever], documents: Sequence[Document]
) -> Iterator[TruncationEstimate]:
    """Yield how far each encoder would read; no model is loaded, and nothing is sent.

    Left out are encoders without a limit, or whose files are not on this machine;
    retrievers that use another one's vectors; and documents cut by a user's function.

    Args:
        retrievers: of the experiment.
        documents: a sample.
    """
    if not documents:
        return
    estimates: dict[tuple[int, Chunk | None], TruncationEstimate] = {}
    uses = {built.name: built.uses for built in retrievers}
    for built in retrievers:
        others = tuple(name for name in uses if _is_used_by(name, built.name, uses))
        for dense in built.dense_parts:
            limit = _known_limit(dense)
            if limit is None:
                continue
            key = (id(dense.encoder), dense.chunks)
            if key not in estimates:
                estimates[key] = _estimate(built.name, dense, limit, documents)
            yield estimates[key]._replace(retriever=built.name, others=others)


def _is_used_by(retriever: str, part: str, uses: Mapping[str, Sequence[str]]) -> bool:
    """Whether a retriever uses another one, directly or through others."""
    return any(
        direct == part or _is_used_by(direct, part, uses) for direct in uses[retriever]
    )


def _known_limit(dense: Dense) -> int | None:
    """Return the tokens that an encoder reads; None if it is left out."""
    if dense.reduction.derived_from or has_user_chunker(dense):
        return None
    return dense.encoder.token_limit if dense.encoder.at_hand else None


def _estimate(
    retriever: str, dense: Dense, limit: int, documents: Sequence[Document]
) -> TruncationEstimate:
    """Return how much of some documents an encoder would not read."""
    # The order in which the run plans them: a tokenizer may depend on its batch.
    passages = sorted(
        passages_of(documents, dense.chunks),
        key=lambda passage: (len(passage.content), passage.content),
    )
    tokens = dense.encoder.count_whole(
        [passage.content for passage in passages], "document"
    )
    truncated_documents = {
        document_of_passage(passage.id)
        for passage, count in zip(passages, tokens.counts.tolist(), strict=True)
        if count > limit
    }
    return TruncationEstimate(
        retriever,
        limit,
        beyond=len(truncated_documents),
        sampled=len(documents),
        lost=int((tokens.counts - limit).clip(min=0).sum()),
        tokens=int(tokens.counts.sum()),
        exact=tokens.exact,
    )
