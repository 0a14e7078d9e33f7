"""The retrievers' tables as data: what each may hold and what it uses."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import pydantic
from pydantic import (
    Field,
    SerializeAsAny,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema

from harness.experiment.option_tables import (
    JsonSchema,
    Kind,
    KindOf,
    options_of,
    read_as,
    table_of,
    union_of,
    unset,
)
from harness.pages import VISIBLE, WHITE, contrast, is_color
from retrievers import (
    encoder_class,
    encoder_kinds,
    reranker_class,
    reranker_kinds,
    retriever_class,
    retriever_kinds,
)
from retrievers.chunking import Chunk
from retrievers.composed import FusionMethod
from retrievers.errors import InputError, Problem
from retrievers.options import Strict, as_validation_error, checked
from retrievers.placeholders import expand, without_user
from retrievers.ragged import Form
from retrievers.stores import StoreOptions
from retrievers.stores.matrices import NumberFormat
from retrievers.types import Retriever

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME)]
SWEPT = (
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(\[[A-Za-z0-9._+-][A-Za-z0-9._+, -]{0,119}\])?$"
)
"""Of a retriever too: a sweep writes its values behind it, such as `dense[MiniLM, 256]`."""
SILENT = ("conversation", "floor", "comparable_scores")
"""Keys of every retriever that are not written where they say nothing."""
RESERVED = {
    *SILENT,
    "name",
    "kind",
    "of",
    "encoder",
    "rerank",
    "store",
    "filter",
    "color",
    "options",
}
"""What keys of retrievers mean everywhere: no option of a whole retriever has such a name."""
OWN = ("name", "kind", "rerank", "color", "filter", *SILENT)
"""The keys of a whole retriever that are not options of its class."""
EncoderTable = Annotated[Kind, KindOf("Encoder", encoder_class, encoder_kinds)]
RerankerTable = Annotated[Kind, KindOf("Reranker", reranker_class, reranker_kinds)]
StoreTable = Annotated[dict[str, Any], read_as(str | StoreOptions, "location")]


class Derive(Strict):
    """Further retrievers from the vectors of this one: every choice of `dimensions`, of `quantization`, and of both."""

    dimensions: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Leading numbers that are kept of each vector, which is scaled to length 1 again: NAME-256."""
    quantization: tuple[NumberFormat, ...] = ()
    """Smaller numbers: NAME-int8, and with dimensions NAME-256-int8."""
    proof: bool = True
    """Whether 20 texts must show, before it is believed, that a service which has dimensions of its own gives what
    cutting gives."""

    @model_validator(mode="after")
    def _gives_something(self) -> Self:
        if not self.dimensions and not self.quantization:
            raise ValueError(
                "names neither dimensions nor quantization; write derive = { dimensions = [256] }"
            )
        for key, choices in (
            ("dimensions", self.dimensions),
            ("quantization", self.quantization),
        ):
            if twice := [
                one for one in dict.fromkeys(choices) if choices.count(one) > 1
            ]:
                raise ValueError(f"{key} names {twice[0]} twice")
        return self


class Conversation(Strict):
    """What is searched with where a query has a history."""

    text: str = Field(default="last", pattern=r"^(last|all|.*\{query\}.*)$")
    """The query alone ("last"), all that was said ("all"), or a text with {history} and {query}."""


class Block(Strict):
    """One `[[retrievers]]` table."""

    name: Annotated[str, Field(pattern=SWEPT)]
    """As in the report; names differ by more than case."""
    rerank: RerankerTable | None = None
    """A reranker of the first hits."""
    color: str = ""
    """Of the retriever in every report, such as "#0b6e4f"; left out, it follows from what the retriever is."""
    conversation: Conversation | None = None
    """What is searched with where a query has a history; left out, as [conversation] says."""
    floor: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Hits with a lower score are dropped: a query that nothing answers may then get an empty answer."""
    comparable_scores: bool = False
    """Whether scores can be compared between queries, as those of cosines and cross-encoders can."""
    silent: ClassVar[tuple[str, ...]] = ()
    """Keys that are not written where they say nothing: manifests of earlier versions know the same retriever."""

    @model_serializer(mode="wrap")
    def _without_silent(
        self, table_of: pydantic.SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        table: dict[str, Any] = table_of(self)
        return self._spoken(table)

    def _spoken(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """A table without the keys that say nothing; a floor of 0 says something."""
        silent = {*self.silent, *SILENT} - ({"floor"} if self.floor == 0 else set())
        return {
            key: value for key, value in table.items() if value or key not in silent
        }

    @field_validator("color")
    @classmethod
    def _is_seen(cls, color: str) -> str:
        if color and not is_color(color.lower()):
            raise ValueError(
                f"{color!r} is not a colour; write six hexadecimal digits, such as '#0b6e4f'"
            )
        if color and (seen := contrast(color, WHITE)) < VISIBLE:
            what = f"{color!r} is too light to be seen on white paper (contrast {seen:.1f} : 1)"
            raise ValueError(f"{what}; take a darker one, {VISIBLE:g} : 1 or more")
        return color.lower()


class QueryField(Strict):
    """A field of the query whose value a document must have."""

    query: str
    """The field's name."""


FieldFilter = dict[
    str, str | Annotated[tuple[str, ...], Field(min_length=1)] | QueryField
]


class VectorConfig(Block):
    """The documents whose vectors are nearest to the query's, in one collection."""

    kind: Form
    """The form of a text's vectors, which the encoder gives."""
    encoder: EncoderTable
    """What turns texts into vectors."""
    store: StoreTable = Field(default_factory=dict)
    """Where the vectors are: `:memory:`, `edge`, a folder, a server's URL, or a table that says more."""
    filter: FieldFilter = Field(default_factory=dict)
    """Documents that are searched: field = "value", several values, or { query = "field" }, the query's own."""
    chunk: Chunk | None = None
    """Cut long documents into passages; a document is worth its best one."""
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Further retrievers by the same model, NAME-KEY, each with options of the encoder in place of those above:
    { plain = { query_prompt = "" } }."""
    silent = ("derive", "variants")

    @field_validator("encoder")
    @classmethod
    def _of_this_form(cls, encoder: Kind) -> Kind:
        with as_validation_error():
            check_form(encoder, cls.model_fields["kind"].annotation)
        return encoder

    @field_validator("store")
    @classmethod
    def _can_be_opened(
        cls, store: dict[str, Any], info: ValidationInfo
    ) -> dict[str, Any]:
        if not store:
            return store
        with as_validation_error():
            return _store(store, info.data.get("kind", ""))

    @field_validator("variants")
    @classmethod
    def _of_one_kind(
        cls, variants: dict[str, dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        if named := [name for name, options in variants.items() if "kind" in options]:
            raise ValueError(
                f"{named[0]!r} has another kind: write another retriever for it"
            )
        return variants


class DenseTable(VectorConfig):
    """Nearest neighbours by cosine in one collection of vectors."""

    kind: Literal["dense"] = "dense"
    """What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank)."""
    dimensions: int | None = Field(default=None, ge=1)
    """Leading numbers that are kept of each of the encoder's vectors, which is scaled to length 1 again."""
    quantization: NumberFormat | None = None
    """How vectors are made smaller: one byte a dimension (int8), or one bit, compared by the bits of the query
    (binary) or by its full numbers (binary-dot). They are searched exactly, in memory."""
    proof: bool = True
    """Whether 20 texts must show that a service which has dimensions of its own gives what cutting gives."""
    derived_from: str | None = None
    """The retriever whose vectors these are; where it fails, this one does not ask again."""
    derive: Derive | None = None
    """Further retrievers from the same vectors; nothing is embedded for them."""

    @model_validator(mode="after")
    def _one_compression(self) -> Self:
        if self.quantization and (
            self.store.get("m") or self.store.get("quantization")
        ):
            raise ValueError(
                "quantization is searched exactly: give the store neither m nor quantization"
            )
        return self


class Sparse(VectorConfig):
    """Learned sparse retrieval: weights of a vocabulary's words, compared by their dot product."""

    kind: Literal["sparse"]
    """What it is."""


class Multivector(VectorConfig):
    """Late interaction: a vector for each token, compared by MaxSim."""

    kind: Literal["multivector"]
    """What it is."""


class CustomConfig(Block):
    """A whole retriever that indexes and searches by itself, such as BM25 or one of another package."""

    kind: str
    """What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank)."""
    filter: FieldFilter = Field(default_factory=dict)
    """Documents that are searched, as of a dense retriever; not where the system has an index of its own."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The keyword arguments of its class, defaults filled in; they follow `kind` in the file."""
    silent = ("unknown_hits",)

    @model_validator(mode="before")
    @classmethod
    def _options_apart(cls, table: Mapping[str, Any]) -> dict[str, Any]:
        own = {key: value for key, value in table.items() if key in OWN}
        with as_validation_error():
            found: type[Retriever] = retriever_class(str(table["kind"]))
            options = options_of(found)
            if own.get("filter") and found.own_index:
                remedy = "filter where its index is: in the body of the request, or in the function"
                what = f"a retriever of kind {table['kind']!r} has its own index"
                raise InputError(Problem("filter", what, remedy))
            if taken := sorted(RESERVED & options.model_fields.keys()):
                what = f"{found.__name__} has an option {taken[0]!r}, which is a word of every experiment"
                raise InputError(
                    Problem("kind", what, "its package has to call it otherwise")
                )
            others = {key: value for key, value in table.items() if key not in own}
            return {
                **own,
                "options": checked(options, others, "").model_dump(by_alias=True),
            }

    @model_serializer(mode="wrap")
    def _options_beside(
        self, table_of: pydantic.SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        table: dict[str, Any] = table_of(self)
        return self._spoken(table | table.pop("options"))


NestedTable = Annotated[
    SerializeAsAny[Block], pydantic.WithJsonSchema({"type": "object"})
]
"""A part without a name of its own: a table as under [[retrievers]]."""


class Fusion(Block):
    """Fusion of other retrievers' rankings."""

    kind: Literal["fusion"]
    """What it is."""
    of: tuple[str | NestedTable, ...] = Field(min_length=2)
    """The retrievers that this one uses: names, or tables without a name."""
    method: FusionMethod = "rrf"
    """By ranks (rrf: reciprocal rank fusion), by scores of one scale (dbsf: distribution-based score fusion), or by
    scores between the query's lowest and highest (convex)."""
    constant: float = Field(default=60, gt=0, allow_inf_nan=False)
    """Of rrf: added to every rank, the first being 1."""
    weights: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = ()
    """How much each ranking counts, in the order of `of`; left out, all alike."""
    minimum: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = ()
    """Of convex: the lowest score that each retriever could give, such as [0, -1] for BM25 and cosine; left out, the
    lowest of its hits."""
    silent = ("weights", "minimum")

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        names = [name for name in self.of if isinstance(name, str)]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise ValueError(
                f"{', '.join(map(repr, twice))} occurs twice in `of`; name each retriever once"
            )
        return self

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        if self.minimum and self.method != "convex":
            raise ValueError(
                f'minimum has no effect on {self.method}; it is for method = "convex"'
            )
        for key, values in (("weights", self.weights), ("minimum", self.minimum)):
            if values and len(values) != len(self.of):
                raise ValueError(
                    f"{key} has {len(values)} numbers for {len(self.of)} retrievers; one for each of `of`"
                )
        if self.weights and not any(self.weights):
            raise ValueError("weights are all 0; one must be above")
        return self


class RerankedTable(Block):
    """Another retriever, its first hits put into a better order."""

    kind: Literal["rerank"] = "rerank"
    """What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank)."""
    of: str | NestedTable
    """The retrievers that this one uses: names, or tables without a name."""
    rerank: RerankerTable
    """A reranker of the first hits."""


KINDS: dict[str, type[Block]] = {
    "dense": DenseTable,
    "fusion": Fusion,
    "multivector": Multivector,
    "rerank": RerankedTable,
    "sparse": Sparse,
}
"""Blocks that the harness makes; any other kind is a whole retriever."""


class BlockUnion:
    """Annotates a retriever: to a reader of the schema it is a union of all kinds, those of other packages too."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> JsonSchema:
        """Blocks that the harness makes, and whole retrievers with the options of their classes."""
        whole = [
            table_of(retriever_class(kind), kind, CustomConfig)
            for kind in sorted(retriever_kinds())
        ]
        made, others = union_of("Made", KINDS.values()), union_of("Standalone", whole)
        return {
            "anyOf": [
                handler(model.__pydantic_core_schema__) for model in (made, others)
            ]
        }


def parts_in(block: Block) -> tuple[str | Block, ...]:
    """What a block uses: names of retrievers, or tables."""
    match block:
        case Fusion():
            return block.of
        case RerankedTable():
            return (block.of,)
    return ()


def inputs(block: Block) -> tuple[str, ...]:
    """The names of the retrievers that a block uses, those in its own tables too."""
    match block:
        case DenseTable(derived_from=str(base)):
            return (base,)
    names = [
        (part,) if isinstance(part, str) else inputs(part) for part in parts_in(block)
    ]
    return tuple(dict.fromkeys(name for some in names for name in some))


def in_order(blocks: tuple[Block, ...]) -> list[Block]:
    """Return the blocks, each after those it uses."""
    waiting, placed = list(blocks), dict[str, Block]()
    while waiting:
        block = next(block for block in waiting if placed.keys() >= set(inputs(block)))
        placed[block.name] = block
        waiting.remove(block)
    return list(placed.values())


def check_form(encoder: Kind, form: object) -> None:
    """Refuse an encoder whose vectors have another form than its place wants; raises InputError.

    Args:
        encoder: its kind and options.
        form: as the type of a key `kind` says it.
    """
    wanted = get_args(form)[0]
    given = getattr(encoder_class(encoder.kind), "form", wanted)
    if given != wanted:
        what = f"the encoder {encoder.kind!r} gives {given} vectors, not {wanted} ones"
        raise InputError(
            Problem("kind", what, f'it belongs to a retriever of kind = "{given}"')
        )


def _store(table: dict[str, Any], form: str) -> dict[str, Any]:
    """The options of a store, which have to suit the form of its vectors."""
    options: dict[str, Any] = checked(options_of(StoreOptions), table, "").model_dump()
    try:
        # As it will be used; as it is written where a variable is not set, which is said elsewhere.
        store = StoreOptions(**(options if any(unset(options)) else expand(options)))
        if form in get_args(Form):
            store.check(form)
    except InputError as error:
        raise InputError(
            [
                one._replace(
                    where=one.where.removeprefix("store").removeprefix("."),
                    what=without_user(one.what),
                )
                for one in error.problems
            ]
        ) from None
    return options
