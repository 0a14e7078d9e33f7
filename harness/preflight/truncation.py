"""What models cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.english import count_of, join_names
from harness.preflight.embedding import has_user_chunker
from retrievers.dense import Dense
from retrievers.texts.chunking import Chunk, document_of_passage, passages_of
from retrievers.types import Document

MIN_TRUNCATED_DOCUMENT_SHARE = 0.05
"""Share of documents that a model may cut off before it is a warning."""


class TruncationEstimate(NamedTuple):
    """What an encoder would not read of a sample of documents, or of their passages."""

    retriever: str
    limit: int
    """Tokens of a text that it reads."""
    beyond: int
    """Documents that it would not read to their end; of passages: any of a document's."""
    sampled: int
    """Documents that were looked at."""
    lost: int
    """Tokens that it would not read."""
    tokens: int
    """All tokens of the sample, prompts included."""
    exact: bool
    """Whether tokens were counted by the model's own tokenizer, or estimated."""
    others: tuple[str, ...] = ()
    """Retrievers that use this one, and so have read no more by it."""

    @property
    def is_much(self) -> bool:
        """Whether it is more than 5 % of the documents, which is a warning."""
        return self.beyond > MIN_TRUNCATED_DOCUMENT_SHARE * self.sampled

    def warning(self) -> str:
        """The same in words, with what can be done."""
        about = "" if self.exact else "about "
        share = f"{about}{self.beyond:,} of {count_of(self.sampled, 'document')} ({self.limit:,} tokens)"
        unread = 100 * self.lost / max(self.tokens, 1)
        left = (
            f"{about}{self.lost:,} of {count_of(self.tokens, 'token')} ({unread:.0f} %)"
        )
        remedy = "add chunk, or use a model that reads more"
        use = "uses" if len(self.others) == 1 else "use"
        made = f"; {join_names(list(self.others))} {use} it" if self.others else ""
        return f"{self.retriever} reads only the start of {share}; {left} are not read: {remedy}{made}"


def estimate_truncation(
    built: Sequence[BuiltRetriever], documents: Sequence[Document]
) -> Iterator[TruncationEstimate]:
    """Yield how far each encoder would read, with what uses it; nothing is loaded or sent.

    Encoders without a limit, and those whose files are not on this machine, are left out.

    Args:
        built: the retrievers.
        documents: a sample.
    """
    known: dict[tuple[int, Chunk | None], TruncationEstimate] = {}
    parts = {one.name: one.uses for one in built}

    def made_of(name: str, part: str) -> bool:
        return any(of == part or made_of(of, part) for of in parts[name])

    for one, dense in [(each, dense) for each in built for dense in each.dense_parts]:
        if (
            dense.reduction.derived_from
            or not dense.encoder.at_hand
            or has_user_chunker(dense)
        ):
            continue
        key = id(dense.encoder), dense.chunks
        if (
            key not in known
            and (limit := dense.encoder.token_limit) is not None
            and documents
        ):
            known[key] = _reach(one.name, dense, limit, documents)
        if key in known:
            others = tuple(
                other.name for other in built if made_of(other.name, one.name)
            )
            yield known[key]._replace(retriever=one.name, others=others)


def _reach(
    name: str, dense: Dense, limit: int, documents: Sequence[Document]
) -> TruncationEstimate:
    parts = list(passages_of(documents, dense.chunks))
    order = sorted(
        range(len(parts)), key=lambda i: (len(parts[i].content), parts[i].content)
    )  # as they are planned
    tokens = dense.encoder.count_whole([parts[i].content for i in order], "document")
    beyond = {
        document_of_passage(parts[i].id)
        for i, count in zip(order, tokens.counts.tolist(), strict=True)
        if count > limit
    }
    lost = int((tokens.counts - limit).clip(min=0).sum())
    total = int(tokens.counts.sum())
    return TruncationEstimate(
        name, limit, len(beyond), len(documents), lost, total, tokens.exact
    )
