"""Configurations to retrievers."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from harness.build.built_retriever import BuiltRetriever
from harness.build.missing import name_retriever
from harness.experiment.class_options import PartConfig
from harness.experiment.composed_configs import FusionConfig, RerankConfig
from harness.experiment.graph import direct_parts, order_retrievers, used_retrievers
from harness.experiment.retriever_config import QueryFieldRef, RetrieverConfig
from harness.experiment.retriever_schema import CustomConfig
from harness.experiment.table_values import walk_values
from harness.experiment.vector_configs import DenseConfig, VectorRetrieverConfig
from retrievers import encoder_class, reranker_class, retriever_class
from retrievers.conditions import Condition, parse_conditions
from retrievers.dense import Dense
from retrievers.errors import BackendError, InputError, Problem, collect_errors
from retrievers.filtered import Filtered, SupportsFilter
from retrievers.fused import Fused
from retrievers.options.placeholders import instantiate
from retrievers.options.user_code import wrap_user_errors
from retrievers.reranked import Reranked
from retrievers.types import Encoder, Model, Retriever
from retrievers.vector_reduction import VectorReduction

Part = TypeVar("Part")
DIMENSIONS_OPTION = "dimensions"
"""The option by which an encoder's service is asked for fewer dimensions."""


class PartPool(NamedTuple):
    """What was built so far: equal tables are one object."""

    parts: dict[str, Any]
    models: dict[int, Mapping[str, Any]]
    """Encoders and rerankers as they are written, by `id`."""


class NamedParts(NamedTuple):
    """The retrievers that are built, and those of them that one uses, by `id`."""

    retrievers: Mapping[str, Retriever]
    used: dict[int, str]


def build_retrievers(blocks: Sequence[RetrieverConfig]) -> tuple[BuiltRetriever, ...]:
    """Build the retrievers of an experiment, each after those that it uses.

    Raises:
        InputError: with what is wrong of each.
    """
    parts = PartPool({}, {})
    named: dict[str, Retriever] = {}
    built: list[BuiltRetriever] = []
    problems: list[Problem] = []
    for block in order_retrievers(tuple(blocks)):
        with collect_errors(problems, partial(name_retriever, block.name)):
            of = used_retrievers(block)
            if not set(of) <= named.keys():
                continue  # what is wrong with its part is reported
            found: dict[int, str] = {}
            named[block.name] = retriever = _retriever(
                block, NamedParts(named, found), parts
            )
            functions, conditions = (
                dict(user_functions(block)),
                tuple(_conditions(block)),
            )
            text = block.conversation.text if block.conversation else "last"
            more = (functions, conditions, parts.models, text, block.floor)
            built.append(BuiltRetriever(block.name, retriever, of, found, *more))
    if problems:
        raise InputError(problems)
    return tuple(built)


def _retriever(block: RetrieverConfig, known: NamedParts, parts: PartPool) -> Retriever:
    """Build what answers for a table, out of what is built already."""
    match block:
        case FusionConfig():
            of = tuple(_part(part, known, parts) for part in block.of)
            first: Retriever = Fused(
                of, block.method, block.constant, block.weights, block.minimum
            )
        case RerankConfig():
            first = _part(block.of, known, parts)
        case VectorRetrieverConfig() | CustomConfig():
            make = (
                partial(_dense, block, parts)
                if isinstance(block, VectorRetrieverConfig)
                else partial(_standalone, block)
            )
            first = _once(
                canonical_json(block.model_dump(exclude={"name", "rerank", "color"})),
                parts,
                make,
            )
        case _:
            raise TypeError(f"{type(block).__name__} is no retriever")
    if block.rerank is None:
        return first
    return Reranked(first, _model(block.rerank, reranker_class, parts, "reranker"))


def _part(part: str | RetrieverConfig, known: NamedParts, parts: PartPool) -> Retriever:
    """A part that is another retriever of the experiment, which is noted; or that has a table of its own."""
    if isinstance(part, RetrieverConfig):
        return _retriever(part, known, parts)
    retriever = known.retrievers[part]
    known.used[id(retriever)] = part
    return retriever


def _once(key: str, parts: PartPool, make: Callable[[], Part]) -> Part:
    """What several tables describe alike is one, indexed and searched once."""
    if key not in parts.parts:
        parts.parts[key] = make()
    found: Part = parts.parts[key]
    return found


def _dense(block: VectorRetrieverConfig, parts: PartPool) -> Dense:
    encoder = _model(block.encoder, encoder_class, parts)
    cut = None
    if isinstance(block, DenseConfig):
        asked = _at_its_own_size(block, encoder, parts)
        cut = VectorReduction(
            block.dimensions, block.quantization, asked, block.derived_from or ""
        )
    return Dense(
        encoder,
        store=block.store,
        chunk=block.chunk,
        conditions=_conditions(block),
        reduction=cut,
        name=block.name,
    )


def _standalone(block: CustomConfig) -> Retriever:
    """Build a retriever that indexes and searches by itself, among the documents that its filter leaves."""
    retriever: Retriever = _built(retriever_class(block.kind), block.options)
    conditions = _conditions(block)
    if not conditions:
        return retriever
    if not isinstance(retriever, SupportsFilter):
        return Filtered(retriever, conditions)
    retriever.set_filter(conditions)
    return retriever


def canonical_json(table: Mapping[str, Any]) -> str:
    """Return one text for equal tables, so that what is equal is built and computed once."""
    return json.dumps(table, sort_keys=True, default=str)


def _conditions(block: RetrieverConfig) -> list[Condition]:
    """Return what the `filter` of a table, and of those in it, asks of documents."""
    asked = (
        block.filter if isinstance(block, VectorRetrieverConfig | CustomConfig) else {}
    )
    own = parse_conditions(
        {
            name: one.model_dump() if isinstance(one, QueryFieldRef) else one
            for name, one in asked.items()
        }
    )
    inner = (part for part in direct_parts(block) if isinstance(part, RetrieverConfig))
    return [*own, *(one for part in inner for one in _conditions(part))]


def _built(cls: Any, options: Mapping[str, Any]) -> Any:
    """Make a part; of a model the fingerprint is asked for, which reads its folder, unless only the hub knows it."""
    try:
        with wrap_user_errors((cls,)):
            part = instantiate(cls, options)
            if isinstance(part, Model) and part.at_hand:
                _ = part.fingerprint
            return part
    except BackendError as failure:
        remedy = "look at the documentation of its package"
        raise InputError(
            Problem("kind", f"its options are refused: {failure}", remedy)
        ) from failure


def _at_its_own_size(
    block: DenseConfig, encoder: Encoder, parts: PartPool
) -> Encoder | None:
    """Build the encoder that asks a service for as many dimensions as are kept; None where none can be asked."""
    if (
        block.dimensions is None
        or not block.proof
        or encoder.limits is None
        or DIMENSIONS_OPTION not in block.encoder.options
    ):
        return None
    smaller = PartConfig(
        kind=block.encoder.kind,
        options={**block.encoder.options, DIMENSIONS_OPTION: block.dimensions},
    )
    try:
        asked: Encoder = _model(smaller, encoder_class, parts)
        return asked
    except InputError as error:
        remedy = "proof = false takes the cut vectors as they are"
        raise InputError(
            [Problem("dimensions", one.what, remedy) for one in error.problems]
        ) from None


def _model(kind: PartConfig, find: Any, parts: PartPool, what: str = "encoder") -> Any:
    """Build an encoder or a reranker unless an equal one is there."""
    written = kind.as_table()
    model = _once(
        f"{what} {canonical_json(written)}",
        parts,
        lambda: _built(find(kind.kind), kind.options),
    )
    parts.models[id(model)] = written
    return model


def user_functions(block: RetrieverConfig) -> Iterator[tuple[str, str]]:
    """Yield the user's functions that a retriever calls: the key, and "package.module:function"."""
    for place, one in walk_values(block.model_dump()):
        if (
            isinstance(one, Mapping)
            and one.get("call")
            and (one.get("kind") == "python" or place.endswith("chunk"))
        ):
            yield f"{place}.call".lstrip("."), one["call"]
