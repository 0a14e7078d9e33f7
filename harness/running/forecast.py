"""What embedding a data set would take, what models would not read of it, and whether what a run needs is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.dataset import Dataset
from harness.english import counted, join
from harness.experiment import Block, Encoded, Experiment, origin, parts_of
from harness.running.components import Components, in_block, lacking, reading_of
from retrievers.cache import Cache
from retrievers.chunking import Chunks, document_of, pieces
from retrievers.embedding import Embedder, Forecast
from retrievers.errors import BackendError, InputError, Problem
from retrievers.parquet_vectors import import_vectors
from retrievers.types import Counts, Document, Encoder, Model, Role
from retrievers.user_objects import faults_of
from retrievers.vector_search import windows

UNREAD = 0.05
"""Share of documents that a model may cut off before it is a warning."""


def take_over(experiment: Experiment, components: Iterable[Components], cache: Cache) -> None:
    """Copy the vectors that `[vectors]` names into the cache; raises InputError where there are none."""
    if experiment.vectors is not None:
        roles: tuple[Role, ...] = ("document", "query")
        encoders = filter(None, (one for built in components for one in (built.encoder, built.asked)))
        names = {one.fingerprint_for(role) for one in encoders for role in roles}
        import_vectors(cache, experiment.vectors.location, sorted(names))


def chunks_of(block: Encoded, encoder: Encoder) -> Chunks | None:
    """Return how a retriever cuts its documents: by characters, or by the tokens of its encoder."""
    if block.chunk is None:
        return None
    size, overlap, by = block.chunk.size or 0, block.chunk.overlap, block.chunk.by
    if block.chunk.unit == "characters":
        return Chunks(size, overlap, by=by, call=block.chunk.call)

    def count(texts: Sequence[str]) -> Counts:
        return encoder.lengths(texts, "document").counts

    return Chunks(size, overlap, count, "tokens", by)


def forecast(embedder: Embedder, dataset: Dataset, chunks: Chunks | None) -> dict[Role, Forecast]:
    """Count what embedding documents and queries would take, window by window as they are embedded.

    A text that stands in two windows counts in both: the figures are then a little too high.
    """
    texts = (piece.content for piece in pieces(dataset.documents(), chunks))
    parts = [embedder.forecast(window, "document") for window in windows(texts, embedder.form)]
    whole = Forecast(
        texts=sum(one.texts for one in parts),
        cached=sum(one.cached for one in parts),
        calls=sum(one.calls for one in parts),
        tokens=sum(one.tokens for one in parts),
        exact=all(one.exact for one in parts),
    )
    return {"document": whole, "query": embedder.forecast((query.text for query in dataset.queries), "query")}


def check_needs(blocks: Sequence[Block], components: dict[str, Components], dataset: Dataset,
                embedder_of: Callable[[Encoder], Embedder], *,
                timed: Sequence[str] = (), limited: bool = False) -> None:  # fmt: skip
    """Let every part say what a run lacks, such as a key; of an encoder whose texts are all cached nothing is needed.

    Args:
        blocks: those that are run.
        components: what they are made of, by name.
        dataset: what is embedded.
        embedder_of: gives an encoder the places where its vectors may lie.
        timed: the blocks whose queries are asked past the cache.
        limited: whether the run may not spend more than a limit, so that every price must be known.

    Raises:
        InputError: with what is missing of each.
    """
    problems: list[Problem] = []
    names = {block.name for block in blocks}
    for block in blocks:
        encoder, retriever, reranker, _ = components[block.name]
        problems += [one for part in (retriever, reranker) if part is not None for one in lacking(block, part)]
        if limited:
            problems += [*unpriced(block, "encoder", encoder), *unpriced(block, "rerank", reranker)]
        if encoder is None or not isinstance(block, Encoded) or origin(block) in names:
            continue
        try:
            with faults_of((encoder,)):
                if (chunks := chunks_of(block, encoder)) is not None:
                    chunks.check()
                if lacks := lacking(block, encoder):
                    expected = forecast(embedder_of(encoder), dataset, chunks)
                    if block.name in timed or any(one.cached < one.texts for one in expected.values()):
                        problems += lacks
        except InputError as error:
            problems += in_block(block, error)
        except BackendError as failure:
            problems += in_block(block, InputError(Problem("check", str(failure))))
    if problems:
        raise InputError(problems)


def unpriced(block: Block, where: str, model: Model | None) -> list[Problem]:
    """The problem of a model whose price nobody knows, where no more than so many dollars may be spent."""
    if model is None or model.price is not None:
        return []
    name = model.provenance.get("model", "the model")
    unknown = f"the price of {name} is not known, so that --max-cost cannot be kept"
    return in_block(block, InputError(Problem(f"{where}.price", unknown, "write price = dollars for a million tokens")))


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
    """Retrievers that are made of this one, and so have read no more by it."""

    @property
    def is_much(self) -> bool:
        """Whether it is more than 5 % of the documents, which is a warning."""
        return self.beyond > UNREAD * self.sampled

    def warning(self) -> str:
        """The same in words, with what can be done."""
        about = "" if self.exact else "about "
        share = f"{about}{self.beyond:,} of {counted(self.sampled, 'document')} ({self.limit:,} tokens)"
        left = (
            f"{about}{self.lost:,} of {counted(self.tokens, 'token')} ({100 * self.lost / max(self.tokens, 1):.0f} %)"
        )
        remedy = "cut them into passages (chunk), or take a model that reads more"
        are = "is" if len(self.others) == 1 else "are"
        made = f"; {join(list(self.others))} {are} made of it" if self.others else ""
        return f"{self.retriever} would read only the beginning of {share} and leave {left} unread: {remedy}{made}"


def truncation_estimates(
    blocks: tuple[Block, ...], components: Mapping[str, Components], documents: Sequence[Document]
) -> Iterator[TruncationEstimate]:
    """Yield how far each encoder would read, with what is made of it; nothing is loaded or sent.

    Encoders without a limit, and those whose files are not on this machine, are left out.

    Args:
        blocks: the retrievers.
        components: what they are made of, by name.
        documents: a sample.
    """
    known: dict[str, TruncationEstimate] = {}
    parts = parts_of(blocks)
    for block in blocks:
        encoder = components[block.name].encoder
        if not isinstance(block, Encoded) or origin(block) or encoder is None or not encoder.at_hand:
            continue
        if block.chunk is not None and block.chunk.call:  # the user's own code, which is not run here
            continue
        key = reading_of(block)
        if key not in known and (limit := encoder.reads) is not None and documents:
            known[key] = _reach(block, encoder, limit, documents)
        if key in known:
            made = (one.name for one in blocks if any(part is block for part in parts[one.name][:-1]))
            yield known[key]._replace(retriever=block.name, others=tuple(made))


def _reach(block: Encoded, encoder: Encoder, limit: int, documents: Sequence[Document]) -> TruncationEstimate:
    parts = list(pieces(documents, chunks_of(block, encoder)))
    order = sorted(range(len(parts)), key=lambda i: (len(parts[i].content), parts[i].content))  # as they are planned
    tokens = encoder.lengths([parts[i].content for i in order], "document")
    beyond = {document_of(parts[i].id) for i, count in zip(order, tokens.counts.tolist(), strict=True) if count > limit}
    lost = int((tokens.counts - limit).clip(min=0).sum())
    total = int(tokens.counts.sum())
    return TruncationEstimate(block.name, limit, len(beyond), len(documents), lost, total, tokens.exact)
