"""What retrievers are made of, built once a run: encoders, rerankers, whole retrievers; nothing is loaded or sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from harness.experiment import Block, Dense, Encoded, QueryField, Standalone
from harness.experiment.option_tables import Kind
from retrievers import encoder_class, reranker_class, retriever_class
from retrievers.errors import BackendError, InputError, Problem
from retrievers.filters import Condition
from retrievers.placeholders import made, without_keys
from retrievers.types import Encoder, Model, Reranker, Retriever
from retrievers.user_objects import faults_of

Part = TypeVar("Part", bound=Model)
SIZE = "dimensions"
"""The option by which an encoder's service is asked for fewer dimensions."""


class Components(NamedTuple):
    """What one retriever is made of."""

    encoder: Encoder | None = None
    """Shared by the blocks that describe it alike."""
    retriever: Retriever | None = None
    """A whole retriever; of the first block where several describe it alike, since it is indexed once."""
    reranker: Reranker | None = None
    """Shared by the blocks that describe it alike."""
    asked: Encoder | None = None
    """The encoder's model at the smaller size to which vectors are cut: what it gives must be what cutting gives."""


def build_components(blocks: Sequence[Block]) -> dict[str, Components]:
    """Build the components of each block, equal encoders and rerankers once, with no network.

    Returns:
        Components by the name of the block.

    Raises:
        InputError: with what is wrong of each.
    """
    encoders: dict[str, Encoder] = {}
    rerankers: dict[str, Reranker] = {}
    components: dict[str, Components] = {}
    problems: list[Problem] = []
    for block in blocks:
        try:
            encoder = _built_once(block.encoder, encoder_class, encoders) if isinstance(block, Encoded) else None
            retriever = whole_retriever(block) if isinstance(block, Standalone) else None
            reranker = _built_once(block.rerank, reranker_class, rerankers) if block.rerank is not None else None
            asked = _at_its_own_size(block, encoders) if isinstance(block, Dense) else None
            components[block.name] = Components(encoder, retriever, reranker, asked)
        except InputError as error:
            problems += in_block(block, error)
    if problems:
        raise InputError(problems)
    return components


def in_block(block: Block, error: InputError) -> list[Problem]:
    """Return the problems of an error, each with the name of the retriever that has it."""
    return [
        one._replace(where=f"retriever {block.name!r}: {one.where}", what=without_keys(one.what))
        for one in error.problems
    ]


def lacking(block: Block, part: Model | Retriever) -> list[Problem]:
    """Ask a part of a retriever what it lacks, such as a key; that the code of another package fails at it, too."""
    try:
        with faults_of((part,)):
            part.check()
    except InputError as error:
        return in_block(block, error)
    except BackendError as failure:
        return in_block(block, InputError(Problem("check", str(failure))))
    return []


def described(model: Model) -> dict[str, str]:
    """Return what the manifest keeps of an encoder or a reranker, its price included where that is known."""
    provenance = dict(model.provenance)
    if model.price is None:
        return provenance
    search = model.price.usd_per_thousand_searches
    price = {"usd_per_million_tokens": f"{model.price.usd_per_million_tokens:g}"}
    price |= {"usd_per_thousand_searches": f"{search:g}"} if search else {}
    return {**provenance, **price, **({"price_source": model.price.source} if model.price.usd(1, 1) else {})}


def canonical(table: Mapping[str, Any]) -> str:
    """Return one text for equal tables, so that what is equal is built and computed once."""
    return json.dumps(table, sort_keys=True, default=str)


def reading_of(block: Encoded) -> str:
    """Return one text for blocks whose equal encoders read the same texts of a corpus: they cut it alike."""
    return canonical({"encoder": block.encoder.written(), "chunk": block.chunk and block.chunk.model_dump()})


def conditions_of(table: Mapping[str, str | tuple[str, ...] | QueryField]) -> list[Condition]:
    """Return what the `filter` of a block asks of documents."""
    conditions = []
    for name, value in table.items():
        if isinstance(value, QueryField):
            conditions.append(Condition(name, query_field=value.query))
        else:
            conditions.append(Condition(name, (value,) if isinstance(value, str) else tuple(sorted(value))))
    return conditions


def whole_retriever(block: Standalone) -> Retriever:
    """Build a retriever that indexes and searches by itself."""
    retriever: Retriever = _built(retriever_class(block.kind), block.options)
    return retriever


def _built(cls: Any, options: Mapping[str, Any]) -> Any:
    with _problems_of(cls):
        return made(cls, options)


@contextmanager
def _problems_of(part: object) -> Iterator[None]:
    """Turn what a part raises while it is built into a problem of the experiment."""
    try:
        with faults_of((part,)):
            yield
    except BackendError as failure:
        remedy = "look at the documentation of its package"
        raise InputError(Problem("kind", f"its options are refused: {failure}", remedy)) from failure


def _at_its_own_size(block: Dense, built: dict[str, Encoder]) -> Encoder | None:
    """Build the encoder that asks a service for as many dimensions as are kept; None where none can be asked."""
    encoder = _built_once(block.encoder, encoder_class, built)
    if block.dimensions is None or not block.proof or encoder.limits is None or SIZE not in block.encoder.options:
        return None
    smaller = Kind(kind=block.encoder.kind, options={**block.encoder.options, SIZE: block.dimensions})
    try:
        return _built_once(smaller, encoder_class, built)
    except InputError as error:
        remedy = "proof = false takes the cut vectors as they are"
        raise InputError([Problem("dimensions", one.what, remedy) for one in error.problems]) from None


def _built_once(kind: Kind, find: Any, built: dict[str, Part]) -> Part:
    """Build an encoder or a reranker unless an equal one is there.

    Its fingerprint is asked for, which reads a model's folder; what only the hub knows is asked when the run begins.
    """
    key = canonical(kind.written())
    if key not in built:
        model: Part = _built(find(kind.kind), kind.options)
        with _problems_of(model):
            if model.at_hand:
                _ = model.fingerprint
        built[key] = model
    return built[key]
