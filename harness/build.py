"""An experiment and its data set -> retrievers as objects that hold their parts. Nothing is loaded or sent.

`check`, `run` and `embed` call it; after it only the manifest reads the tables of the experiment's retrievers.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from harness.experiment import blocks as tables
from harness.experiment.option_tables import Kind, walk
from retrievers import encoder_class, reranker_class, retriever_class
from retrievers.composed import Fused, Reranked
from retrievers.dense import Dense, Smaller
from retrievers.errors import BackendError, InputError, Problem, collecting
from retrievers.filters import Condition, Filtered, SupportsFilter, conditions_of
from retrievers.placeholders import made, without_keys
from retrievers.types import Encoder, Model, Query, Reranker, Retriever
from retrievers.user_objects import wrap_user_errors

Part = TypeVar("Part")
SIZE = "dimensions"
"""The option by which an encoder's service is asked for fewer dimensions."""


@dataclass(frozen=True, slots=True)
class Built:
    """One retriever of an experiment, ready to be asked."""

    name: str
    retriever: Retriever
    of: tuple[str, ...] = ()
    """The retrievers of the experiment that it uses: where one fails, it is not asked."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Which of its parts are such retrievers, by `id`: they bear their own costs."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """The user's functions that it calls: key -> "package.module:function"."""
    conditions: tuple[Condition, ...] = ()
    """What its filter asks of documents."""
    models: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """Encoders and rerankers as they are written, by `id`: earlier runs of the same tell how fast they are."""

    conversation: str = "last"
    """What it searches with where a query has a history, as `Conversation` has it."""

    floor: float | None = None
    """Hits with a lower score are dropped."""

    def searched(self, queries: Sequence[Query]) -> list[Query]:
        """The queries as it searches with them: alone, or with what was said before."""
        form = "{history}\n{query}" if self.conversation == "all" else self.conversation
        if form == "last":
            return list(queries)
        texts = (
            form.replace("{history}", "\n".join(one.history)).replace(
                "{query}", one.text
            )
            for one in queries
        )
        return [
            replace(one, text=text) if one.history else one
            for one, text in zip(queries, texts, strict=True)
        ]

    @property
    def own(self) -> tuple[Retriever, ...]:
        """The retriever, and before it the parts that have no name of their own."""
        return tuple(self._own(self.retriever))

    def _own(self, retriever: Retriever) -> Iterator[Retriever]:
        for part in retriever.parts:
            if id(part) not in self.names:
                yield from self._own(part)
        yield retriever

    @property
    def denses(self) -> list[Dense]:
        """What embeds for it."""
        return [one for one in self.own if isinstance(one, Dense)]

    @property
    def rerankers(self) -> list[Reranker]:
        """What reads first hits again for it."""
        return [one.reranker for one in self.own if isinstance(one, Reranked)]

    @property
    def wholes(self) -> list[Retriever]:
        """What finds for it and is no vector search, such as BM25 or an endpoint."""
        return [one for one in self.own if not one.parts and not isinstance(one, Dense)]

    @property
    def blamed(self) -> list[object]:
        """Whose code may fail for it."""
        encoders = [
            one for dense in self.denses for one in (dense.encoder, dense.cut.asked)
        ]
        return [*encoders, *map(unfiltered, self.own), *self.rerankers]


def unfiltered(retriever: Retriever) -> Retriever:
    """What is asked behind a filter."""
    return retriever.retriever if isinstance(retriever, Filtered) else retriever


class BuiltOnce(NamedTuple):
    """What was built so far: equal tables are one object."""

    parts: dict[str, Any]
    models: dict[int, Mapping[str, Any]]
    """Encoders and rerankers as they are written, by `id`."""


class NamedParts(NamedTuple):
    """The retrievers that are built, and those of them that one uses, by `id`."""

    retrievers: Mapping[str, Retriever]
    used: dict[int, str]


def build(blocks: Sequence[tables.Block]) -> tuple[Built, ...]:
    """Build the retrievers of an experiment, each after those that it uses.

    Raises:
        InputError: with what is wrong of each.
    """
    parts = BuiltOnce({}, {})
    named: dict[str, Retriever] = {}
    built: list[Built] = []
    problems: list[Problem] = []
    for block in tables.in_order(tuple(blocks)):
        with collecting(problems, partial(in_block, block.name)):
            of = tables.inputs(block)
            if not set(of) <= named.keys():
                continue  # what is wrong with its part is reported
            found: dict[int, str] = {}
            named[block.name] = retriever = _retriever(
                block, NamedParts(named, found), parts
            )
            functions, conditions = dict(functions_of(block)), tuple(_conditions(block))
            text = block.conversation.text if block.conversation else "last"
            more = (functions, conditions, parts.models, text, block.floor)
            built.append(Built(block.name, retriever, of, found, *more))
    if problems:
        raise InputError(problems)
    return tuple(built)


def _retriever(block: tables.Block, known: NamedParts, parts: BuiltOnce) -> Retriever:
    """Build what answers for a table, out of what is built already."""
    match block:
        case tables.Fusion():
            of = tuple(_part(part, known, parts) for part in block.of)
            first: Retriever = Fused(
                of, block.method, block.constant, block.weights, block.minimum
            )
        case tables.RerankedTable():
            first = _part(block.of, known, parts)
        case tables.VectorConfig() | tables.CustomConfig():
            make = (
                partial(_dense, block, parts)
                if isinstance(block, tables.VectorConfig)
                else partial(_standalone, block)
            )
            first = _once(
                canonical(block.model_dump(exclude={"name", "rerank", "color"})),
                parts,
                make,
            )
        case _:
            raise TypeError(f"{type(block).__name__} is no retriever")
    if block.rerank is None:
        return first
    return Reranked(first, _model(block.rerank, reranker_class, parts, "reranker"))


def _part(part: str | tables.Block, known: NamedParts, parts: BuiltOnce) -> Retriever:
    """A part that is another retriever of the experiment, which is noted; or that has a table of its own."""
    if isinstance(part, tables.Block):
        return _retriever(part, known, parts)
    retriever = known.retrievers[part]
    known.used[id(retriever)] = part
    return retriever


def _once(key: str, parts: BuiltOnce, make: Callable[[], Part]) -> Part:
    """What several tables describe alike is one, indexed and searched once."""
    if key not in parts.parts:
        parts.parts[key] = make()
    found: Part = parts.parts[key]
    return found


def _dense(block: tables.VectorConfig, parts: BuiltOnce) -> Dense:
    encoder = _model(block.encoder, encoder_class, parts)
    cut = None
    if isinstance(block, tables.DenseTable):
        asked = _at_its_own_size(block, encoder, parts)
        cut = Smaller(
            block.dimensions, block.quantization, asked, block.derived_from or ""
        )
    return Dense(
        encoder,
        store=block.store,
        chunk=block.chunk,
        conditions=_conditions(block),
        cut=cut,
        name=block.name,
    )


def _standalone(block: tables.CustomConfig) -> Retriever:
    """Build a retriever that indexes and searches by itself, among the documents that its filter leaves."""
    retriever: Retriever = _built(retriever_class(block.kind), block.options)
    conditions = _conditions(block)
    if not conditions:
        return retriever
    if not isinstance(retriever, SupportsFilter):
        return Filtered(retriever, conditions)
    retriever.set_filter(conditions)
    return retriever


def in_block(name: str, error: InputError) -> list[Problem]:
    """Return the problems of an error, each with the name of the retriever that has it."""
    return [
        p._replace(where=f"retriever {name!r}: {p.where}", what=without_keys(p.what))
        for p in error.problems
    ]


def missing_requirements(name: str, part: Model | Retriever) -> list[Problem]:
    """Return what a part of a retriever lacks, such as a key, or that the code of another package fails there."""
    problems: list[Problem] = []
    with collecting_of(problems, name, part):
        part.check()
    return problems


@contextmanager
def collecting_of(
    problems: list[Problem], name: str, part: Model | Retriever
) -> Iterator[None]:
    """Add the problems that are raised inside, by us or by a part's own code, under the name of the retriever."""
    with collecting(problems, partial(in_block, name)):
        try:
            with wrap_user_errors((part,)):
                yield
        except BackendError as failure:
            raise InputError(Problem("check", str(failure))) from None


def canonical(table: Mapping[str, Any]) -> str:
    """Return one text for equal tables, so that what is equal is built and computed once."""
    return json.dumps(table, sort_keys=True, default=str)


def _conditions(block: tables.Block) -> list[Condition]:
    """Return what the `filter` of a table, and of those in it, asks of documents."""
    asked = (
        block.filter
        if isinstance(block, tables.VectorConfig | tables.CustomConfig)
        else {}
    )
    own = conditions_of(
        {
            name: one.model_dump() if isinstance(one, tables.QueryField) else one
            for name, one in asked.items()
        }
    )
    inner = (part for part in tables.parts_in(block) if isinstance(part, tables.Block))
    return [*own, *(one for part in inner for one in _conditions(part))]


def _built(cls: Any, options: Mapping[str, Any]) -> Any:
    """Make a part; of a model the fingerprint is asked for, which reads its folder, unless only the hub knows it."""
    try:
        with wrap_user_errors((cls,)):
            part = made(cls, options)
            if isinstance(part, Model) and part.at_hand:
                _ = part.fingerprint
            return part
    except BackendError as failure:
        remedy = "look at the documentation of its package"
        raise InputError(
            Problem("kind", f"its options are refused: {failure}", remedy)
        ) from failure


def _at_its_own_size(
    block: tables.DenseTable, encoder: Encoder, parts: BuiltOnce
) -> Encoder | None:
    """Build the encoder that asks a service for as many dimensions as are kept; None where none can be asked."""
    if (
        block.dimensions is None
        or not block.proof
        or encoder.limits is None
        or SIZE not in block.encoder.options
    ):
        return None
    smaller = Kind(
        kind=block.encoder.kind,
        options={**block.encoder.options, SIZE: block.dimensions},
    )
    try:
        asked: Encoder = _model(smaller, encoder_class, parts)
        return asked
    except InputError as error:
        remedy = "proof = false takes the cut vectors as they are"
        raise InputError(
            [Problem("dimensions", one.what, remedy) for one in error.problems]
        ) from None


def _model(kind: Kind, find: Any, parts: BuiltOnce, what: str = "encoder") -> Any:
    """Build an encoder or a reranker unless an equal one is there."""
    written = kind.written()
    model = _once(
        f"{what} {canonical(written)}",
        parts,
        lambda: _built(find(kind.kind), kind.options),
    )
    parts.models[id(model)] = written
    return model


def functions_of(block: tables.Block) -> Iterator[tuple[str, str]]:
    """Yield the user's functions that a retriever calls: the key, and "package.module:function"."""
    for place, one in walk(block.model_dump()):
        if (
            isinstance(one, Mapping)
            and one.get("call")
            and (one.get("kind") == "python" or place.endswith("chunk"))
        ):
            yield f"{place}.call".lstrip("."), one["call"]
