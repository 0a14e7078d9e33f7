"""How far models would read: documents and tokens beyond their limits, told before anything is embedded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.experiment import Block, Chunk, Encoded, inputs, origin
from harness.running.components import Components, canonical
from harness.running.forecast import chunks_of
from harness.stats.words import counted, join
from retrievers.chunking import document_of, pieces
from retrievers.types import Document, Encoder

UNREAD = 0.05
"""Share of documents that a model may cut off before it is a warning."""


class Reach(NamedTuple):
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
    """Whether tokens were counted by the model's own tokenizer, or estimated from above."""
    others: tuple[str, ...] = ()
    """Retrievers that are made of this one, and so have read no more by it."""

    @property
    def is_much(self) -> bool:
        """Whether it is more than 5 % of the documents, which is a warning."""
        return self.beyond > UNREAD * self.sampled

    def warning(self) -> str:
        """The same in words, with what can be done."""
        about = "" if self.exact else "about "
        share = f"{about}{self.beyond:,} of {counted(self.sampled, 'document')} ({self.limit:,} tokens)"
        left = f"{about}{self.lost:,} of {counted(self.tokens, 'token')} ({self.lost / max(self.tokens, 1):.0%})"
        remedy = "cut them into passages (chunk), or take a model that reads more"
        are = "is" if len(self.others) == 1 else "are"
        made = f"; {join(list(self.others))} {are} made of it" if self.others else ""
        return f"{self.retriever} would read only the beginning of {share} and leave {left} unread: {remedy}{made}"


def reaches(
    blocks: Sequence[Block], components: Mapping[str, Components], documents: Sequence[Document]
) -> Iterator[Reach]:
    """Yield how far each encoder would read, with what is made of it; nothing is loaded or sent.

    Encoders without a limit, and those whose files are not on this machine, are left out.

    Args:
        blocks: the retrievers.
        components: what they are made of, by name.
        documents: a sample.
    """
    known: dict[str, Reach] = {}
    for block in blocks:
        encoder = components[block.name].encoder
        if not isinstance(block, Encoded) or origin(block) or encoder is None or not encoder.at_hand:
            continue
        key = canonical({"encoder": block.encoder.written(), "chunk": _written(block.chunk)})
        if key not in known and (limit := encoder.reads) is not None and documents:
            known[key] = _reach(block, encoder, limit, documents)
        if key in known:
            yield known[key]._replace(retriever=block.name, others=made_of(block.name, blocks))


def made_of(name: str, blocks: Sequence[Block]) -> tuple[str, ...]:
    """Return the retrievers that are made of one, directly or through others, in the order of the file."""
    made = {name}
    while more := {block.name for block in blocks if block.name not in made and made & set(inputs(block))}:
        made |= more
    return tuple(block.name for block in blocks if block.name in made and block.name != name)


def _reach(block: Encoded, encoder: Encoder, limit: int, documents: Sequence[Document]) -> Reach:
    parts = list(pieces(documents, chunks_of(block, encoder)))
    order = sorted(range(len(parts)), key=lambda i: (len(parts[i].content), parts[i].content))  # as they are planned
    tokens = encoder.lengths([parts[i].content for i in order], "document")
    beyond = {document_of(parts[i].id) for i, count in zip(order, tokens.counts.tolist(), strict=True) if count > limit}
    lost = int((tokens.counts - limit).clip(min=0).sum())
    total = int(tokens.counts.sum())
    return Reach(block.name, limit, len(beyond), len(documents), lost, total, tokens.exact)


def _written(chunk: Chunk | None) -> dict[str, object] | None:
    return None if chunk is None else chunk.model_dump()
