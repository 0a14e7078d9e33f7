"""What embedding a data set would take, and whether what it needs is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

from harness.dataset import Dataset
from harness.experiment import Block, Encoded, Experiment, expanded, origin
from harness.running.components import Components, in_block
from retrievers.chunking import Chunks, pieces
from retrievers.embedding import Embedder, Forecast
from retrievers.errors import BackendError, InputError, Problem
from retrievers.external import faults_of
from retrievers.parts import PartSource
from retrievers.roots import open_root
from retrievers.types import Counts, Encoder, Model, Role
from retrievers.vector_search import window_of
from retrievers.vectors import check_filled


def source_of(experiment: Experiment) -> PartSource | None:
    """Return where the vectors lie that were embedded elsewhere, None where the experiment names no place.

    Raises:
        InputError: no vectors lie there.
    """
    if experiment.vectors is None:
        return None
    root = open_root(expanded(experiment.vectors.location))
    with suppress(BackendError):  # a place that does not answer fails what is read from it, and nothing else
        check_filled(root)
    return PartSource(root)


def chunks_of(block: Encoded, encoder: Encoder) -> Chunks | None:
    """Return how a retriever cuts its documents: by characters, or by the tokens of its encoder."""
    if block.chunk is None:
        return None
    if block.chunk.unit == "characters":
        return Chunks(block.chunk.size, block.chunk.overlap)

    def count(texts: Sequence[str]) -> Counts:
        return encoder.lengths(texts, "document").counts

    return Chunks(block.chunk.size, block.chunk.overlap, count, "tokens")


def forecast(embedder: Embedder, dataset: Dataset, chunks: Chunks | None) -> dict[Role, Forecast]:
    """Count what embedding documents and queries would take, window by window as they are embedded.

    A text that stands in two windows counts in both: the figures are then a little too high.
    """
    texts = pieces(dataset.documents(), chunks)
    windows = []
    while window := [piece.content for piece in islice(texts, window_of(embedder.encoder.form))]:
        windows.append(embedder.forecast(window, "document"))
    whole = Forecast(
        texts=sum(one.texts for one in windows),
        cached=sum(one.cached for one in windows),
        calls=sum(one.calls for one in windows),
        tokens=sum(one.tokens for one in windows),
        exact=all(one.exact for one in windows),
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
        try:
            if limited:
                _check_price("encoder", encoder)
                _check_price("rerank", reranker)
            with faults_of(components[block.name]):
                if retriever is not None:
                    retriever.check()
                if reranker is not None:
                    reranker.check()
                if encoder is not None and isinstance(block, Encoded) and origin(block) not in names:
                    try:
                        encoder.check()
                    except InputError:
                        expected = forecast(embedder_of(encoder), dataset, chunks_of(block, encoder))
                        if block.name in timed or any(one.cached < one.texts for one in expected.values()):
                            raise
        except InputError as error:
            problems += in_block(block, error)
        except BackendError as failure:
            problems += in_block(block, InputError(Problem("check", str(failure))))
    if problems:
        raise InputError(problems)


def _check_price(where: str, model: Model | None) -> None:
    if model is not None and model.price is None:
        name = model.provenance.get("model", "the model")
        unknown = f"the price of {name} is not known, so that --max-cost cannot be kept"
        raise InputError(Problem(f"{where}.price", unknown, "write price = dollars for a million tokens"))
