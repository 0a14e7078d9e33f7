"""The texts of each encoder."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from harness.build.build import build
from harness.build.missing import missing_price, missing_requirements
from harness.dataset import Dataset
from harness.experiment import load
from retrievers.errors import InputError, Problem
from retrievers.texts.chunking import Chunk, passages_of
from retrievers.types import Encoder, Role
from retrievers.vector_reduction import verification_texts

ReadPassages = Callable[[], Iterator[tuple[str, str]]]
"""Reads the id and the text of each passage, or query."""


class EmbeddingTask(NamedTuple):
    """The texts of one role that one encoder embeds."""

    encoder: Encoder
    role: Role
    passages: tuple[ReadPassages, ...]
    """For each choice of the documents' texts."""


def embedding_tasks(
    experiment: Path, *, limited: bool = False, allow_code: bool = True
) -> list[EmbeddingTask]:
    """Return what an experiment embeds: for each distinct encoder its documents and its queries.

    Args:
        experiment: its file.
        limited: whether every price must be known.
        allow_code: whether the experiment may name code that is run.

    Raises:
        InputError: the experiment, its data or its environment is at fault; or it has no encoder.
    """
    loaded = load(experiment, allow_code=allow_code)
    dataset, _, built = build(loaded)
    cuts: dict[str, tuple[Encoder, dict[tuple[Chunk | None, bool], None]]] = {}
    asking: dict[str, Encoder] = {}
    problems: list[Problem] = []
    for name, dense in [
        (one.name, dense) for one in built for dense in one.dense_parts
    ]:
        for one, proof in (
            (dense.encoder, False),
            (dense.reduction.native_encoder, True),
        ):
            if one is not None:
                problems += [
                    *missing_requirements(name, one),
                    *(missing_price(name, "encoder", one) if limited else ()),
                ]
                fingerprint = one.fingerprint_for("document")
                cuts.setdefault(fingerprint, (one, {}))[1][dense.chunks, proof] = None
        asking.setdefault(dense.encoder.fingerprint_for("query"), dense.encoder)
    if not asking:
        problems = [
            Problem(str(experiment), "has no encoder", "nothing is to be embedded")
        ]
    if problems:
        raise InputError(problems)
    documents = [
        EmbeddingTask(
            encoder,
            "document",
            tuple(_documents(dataset, chunks, proof=proof) for chunks, proof in some),
        )
        for encoder, some in cuts.values()
    ]
    searched = {
        text: query.id
        for one in built
        for query in one.conversation_queries(dataset.queries)
        for text in [query.text]
    }
    queries = [(id_, text) for text, id_ in searched.items()]
    return [
        *documents,
        *(
            EmbeddingTask(encoder, "query", (lambda: iter(queries),))
            for encoder in asking.values()
        ),
    ]


def _documents(dataset: Dataset, chunks: Chunk | None, *, proof: bool) -> ReadPassages:
    """Read a corpus as a retriever cuts it; with `proof` only what shows that a service's smaller vectors are cut."""

    def read() -> Iterator[tuple[str, str]]:
        every = (
            (piece.id, piece.content)
            for piece in passages_of(dataset.documents(), chunks)
        )
        if not proof:
            return every
        some = verification_texts(
            piece.content for piece in passages_of(dataset.documents(), chunks)
        )
        return ((id_, text) for id_, text in every if text in some)

    return read
