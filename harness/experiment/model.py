"""The experiment as data: frozen tables, checked as they are made."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from harness.experiment.options import Kind, Strict
from harness.measures import Measure
from harness.pages.colors import VISIBLE, WHITE, contrast, is_color
from harness.stats.settings import Statistics
from retrievers.errors import did_you_mean
from retrievers.fusion import FusionMethod
from retrievers.quantization import NumberFormat
from retrievers.ragged import Form
from retrievers.stores import MEMORY, StoreOptions

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
RESERVED = "dataset"
"""What no retriever may be called: the manifest's ledger has the data set beside the retrievers."""
Name = Annotated[str, Field(pattern=NAME)]


class DatasetTable(Strict):
    """Which data set, and which part of it."""

    path: str
    """A folder, a zip archive or a file; or a name: hf:NAME@REVISION of the hub, irds:NAME of ir_datasets."""
    split: str | None = None
    """Which file or part of judgments; left out, the only one, else test."""
    queries: str | tuple[str, ...] | None = None
    """The file of queries, or several asked as one set; left out, queries.* or questions.*."""
    format: str | None = None
    """The reader; left out, seen from what is there."""
    documents: str | None = None
    """A table of documents, or a folder of them; left out, documents.* or corpus.*."""
    labels: str | None = None
    """The table of labels; left out, labels.*, qrels.* or judgments.*, else the queries' own."""
    columns: dict[str, str] = Field(default_factory=dict)
    """What columns of tables are called: { text = "body", relevant = "answers" }."""
    match: str | tuple[str, ...] | None = None
    """The field, or fields, by which labels name documents, such as page; left out, their ids."""
    exclude_self: bool = False
    """Keep the document that has a query's id out of that query's answers."""


class Relevance(Strict):
    """How labels become grades and gains."""

    grades: Literal["linear", "binary", "reciprocal", "explicit"] | tuple[tuple[int, int], ...] | None = None
    """A rule, or buckets: pairs of the last place and the grade down to it, `[[1, 3], [3, 2], [10, 1]]`. Left out:
    explicit where the data has grades, else linear."""
    gain: Literal["linear", "exponential"] = "linear"
    """The grade itself, or 2^grade - 1."""
    ideal: Literal["judged", "retrieved"] = "judged"
    """What nDCG is divided by: the best order of all judged documents, or of those retrieved."""
    dangling: Literal["error", "drop"] = "error"
    """What to do with labels of documents or queries that do not exist."""


class JudgeOptions(Strict):
    """Who decides whether a text entails a claim."""

    kind: Literal["lexical", "nli", "openai"] = "lexical"
    """Words alone (weak, offline), a local model of natural language inference, or a chat model."""
    model: str = ""
    """A name of the hub or a folder (nli); a name that the endpoint knows (openai)."""
    base_url: str = ""
    """An OpenAI-compatible endpoint; left out, OpenAI's own."""
    key_name: str = ""
    """The environment variable that holds the key; left out, OPENAI_API_KEY for OpenAI's server."""
    threshold: float | None = Field(default=None, gt=0, le=1)
    """lexical: the share of a claim's distinct words that a text must hold, 0.8 if left out; nli: the least
    probability, 0.5 if left out."""
    longest: int | None = Field(default=None, ge=100)
    """openai: tokens of a text that the model is shown, by an upper estimate, 8,000 if left out; the rest is cut off,
    and counted."""
    concurrency: int = Field(default=4, ge=1)
    """Requests at once."""
    rpm: float = Field(default=0, ge=0)
    """Requests a minute that the endpoint allows; 0: unknown."""
    tpm: float = Field(default=0, ge=0)
    """Tokens a minute that the endpoint allows; 0: unknown."""
    input_price: float | None = Field(default=None, ge=0)
    """Dollars for a million tokens sent."""
    output_price: float | None = Field(default=None, ge=0)
    """Dollars for a million tokens received."""
    encoder: Kind | None = None
    """What answer relevancy compares questions by."""

    @model_validator(mode="after")
    def _keys_fit_the_kind(self) -> Self:
        if self.kind != "lexical" and not self.model:
            raise ValueError(f"a judge of kind {self.kind!r} needs a model")
        without_effect = {
            "lexical": ("model", "base_url", "key_name", "longest", "input_price", "output_price"),
            "nli": ("base_url", "key_name", "longest", "input_price", "output_price"),
            "openai": ("threshold",),
        }[self.kind]
        if given := [key for key in without_effect if getattr(self, key) not in ("", None)]:
            raise ValueError(f"{', '.join(given)} has no effect on a judge of kind {self.kind!r}")
        return self


class LatencyOptions(Strict):
    """How the time of a single query is measured."""

    sample: int = Field(ge=1)
    """So many queries are asked one at a time, the cache bypassed."""


class CacheOptions(Strict):
    """How far the cache is believed."""

    probe: int = Field(default=3, ge=0, le=100)
    """So many cached texts are embedded again by a remote model before anything new is, to see whether its vectors have
    moved; 0: none."""


class Chunk(Strict):
    """Passages of at most `size` characters or tokens, each beginning `overlap` of them before the end of the last."""

    size: int = Field(ge=1)
    """Characters of a passage, at most; or the encoder's tokens, with those of the title and the prompt."""
    overlap: int = Field(default=0, ge=0)
    """Characters of the last passage with which the next begins; tokens, about."""
    unit: Literal["characters", "tokens"] = "characters"
    """What is counted; tokens are those of the retriever's own encoder, which BM25 has not."""

    @model_validator(mode="after")
    def _moves_on(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError(f"an overlap of {self.overlap} is not below the size, {self.size}")
        return self


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
            raise ValueError("names neither dimensions nor quantization; write derive = { dimensions = [256] }")
        for key, choices in (("dimensions", self.dimensions), ("quantization", self.quantization)):
            if twice := [one for one in dict.fromkeys(choices) if choices.count(one) > 1]:
                raise ValueError(f"{key} names {twice[0]} twice")
        return self


class StoredVectors(Strict):
    """Vectors that were embedded elsewhere, by `harness embed`."""

    location: str = Field(alias="from")
    """A folder, or a URL (`s3://…`, `gs://…`, what fsspec opens): read before anything is embedded."""


class Block(Strict):
    """One `[[retrievers]]` table."""

    name: Name
    """As in the report; names differ by more than case."""
    rerank: Kind | None = None
    """A reranker of the first hits."""
    color: str = ""
    """Of the retriever in every report, such as "#0b6e4f"; left out, it follows from what the retriever is."""

    @field_validator("color")
    @classmethod
    def _is_seen(cls, color: str) -> str:
        if color and not is_color(color.lower()):
            raise ValueError(f"{color!r} is no colour; write six hexadecimal digits, such as '#0b6e4f'")
        if color and contrast(color, WHITE) < VISIBLE:
            raise ValueError(
                f"{color!r} is too light to be seen on white paper (contrast {contrast(color, WHITE):.1f} : 1); "
                f"take a darker one, {VISIBLE:g} : 1 or more"
            )
        return color.lower()


class QueryField(Strict):
    """A field of the query whose value a document must have."""

    query: str
    """The field's name."""


FieldFilter = dict[str, str | tuple[str, ...] | QueryField]


class Encoded(Block):
    """The documents whose vectors are nearest to the query's, in one collection."""

    kind: Form
    """What stands for a text: what the encoder gives."""
    encoder: Kind
    """What turns texts into vectors."""
    store: dict[str, Any] = Field(default_factory=dict)
    """Where the vectors are: `:memory:`, `edge`, a folder, a server's URL, or a table that says more."""
    filter: FieldFilter = Field(default_factory=dict)
    """Documents that are searched: field = "value", several values, or { query = "field" }, the query's own."""
    chunk: Chunk | None = None
    """Cut long documents into passages; a document is worth its best one."""
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Further retrievers by the same model, NAME-KEY, each with options of the encoder in place of those above:
    { plain = { query_prompt = "" } }."""

    @field_validator("variants")
    @classmethod
    def _of_one_kind(cls, variants: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        if named := [name for name, options in variants.items() if "kind" in options]:
            raise ValueError(f"{named[0]!r} has a kind of its own: write a retriever of its own for it")
        return variants


class Dense(Encoded):
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
        if self.quantization and (self.store.get("m") or self.store.get("quantization")):
            raise ValueError("quantization is searched exactly: give the store no m and no quantization beside it")
        return self


class Sparse(Encoded):
    """Learned sparse retrieval: weights of a vocabulary's words, compared by their dot product."""

    kind: Literal["sparse"] = "sparse"
    """What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank)."""


class Multivector(Encoded):
    """Late interaction: a vector for each token, compared by MaxSim."""

    kind: Literal["multivector"] = "multivector"
    """What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank)."""


class Standalone(Block):
    """A whole retriever that indexes and searches by itself, such as BM25 or one of another package."""

    kind: str
    """What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank)."""
    filter: FieldFilter = Field(default_factory=dict)
    """Documents that are searched, as of a dense retriever; of BM25 alone."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The keyword arguments of its class, defaults filled in; they stand beside `kind` in the file."""


class Fusion(Block):
    """Fusion of other retrievers' rankings."""

    kind: Literal["fusion"] = "fusion"
    """What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank)."""
    of: tuple[str, ...] = Field(min_length=2)
    """The retriever, or retrievers, that this one is made of."""
    method: FusionMethod = "rrf"
    """By ranks (rrf: reciprocal rank fusion), or by scores of one scale (dbsf: distribution-based score fusion)."""
    constant: float = Field(default=60, gt=0, allow_inf_nan=False)
    """Of rrf: added to every rank, the first being 1."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        twice = [name for name in dict.fromkeys(self.of) if self.of.count(name) > 1]
        if twice:
            raise ValueError(f"{', '.join(map(repr, twice))} stands twice in `of`; name each retriever once")
        return self


class QdrantFusion(Block):
    """A dense retriever and BM25 in one collection, whose two searches Qdrant itself fuses."""

    kind: Literal["qdrant-fusion"] = "qdrant-fusion"
    """What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank)."""
    of: tuple[str, str]
    """A dense retriever and one of kind bm25, whose encoder and options it has; in this order."""
    method: FusionMethod = "rrf"
    """How Qdrant fuses: reciprocal rank fusion, or distribution-based score fusion."""
    k: int = Field(default=2, ge=1)
    """Of rrf: added to every rank, the first being 0 as Qdrant counts; 2 is Qdrant's own, the paper's 60 is 61 here."""
    store: dict[str, Any] = Field(default_factory=dict)
    """Where the collection is: `:memory:` (left out), or a server's URL, or a table that says more."""

    @model_validator(mode="after")
    def _fuses_there(self) -> Self:
        options = StoreOptions(**self.store)
        if options.approximate or not (options.on_server or options.location in (None, MEMORY)):
            raise ValueError(f"Qdrant fuses exact searches in {MEMORY!r} or on a server: give no other store, no m")
        return self


class Reranked(Block):
    """Another retriever, its first hits put into a better order."""

    kind: Literal["rerank"] = "rerank"
    """What it is; left out where there is an encoder (dense), or a rerank with an `of` (rerank)."""
    of: str
    """The retriever, or retrievers, that this one is made of."""
    rerank: Kind
    """A reranker of the first hits."""


KINDS: dict[str, type[Block]] = {
    "dense": Dense,
    "fusion": Fusion,
    "multivector": Multivector,
    "qdrant-fusion": QdrantFusion,
    "rerank": Reranked,
    "sparse": Sparse,
}
"""Blocks that the harness makes; any other kind is a whole retriever."""


class Experiment(Strict):
    """One question, fixed before the run: data, retrievers, measures, tests."""

    name: Name
    """Of the results folder: letters, digits, full stops, hyphens, underscores; at most 64."""
    dataset: DatasetTable
    """A folder, or a table that says more; relative to the working directory, else to the nearest folder above this
    file that has it."""
    primary: str
    """The measure that decides, one of `measures`."""
    baseline: str | None = None
    """The retriever with which each other one is compared; left out, all pairs."""
    measures: tuple[str, ...] = Field(min_length=1)
    """What is measured, such as nDCG@10."""
    depth: int = Field(default=100, ge=1)
    """Hits kept per query."""
    seed: int = 0
    """Of every random draw."""
    relevance: Relevance = Relevance()
    """How labels become grades and gains."""
    statistics: Statistics = Statistics()
    """Which test decides, and how strict it is."""
    judge: JudgeOptions | None = None
    """Who decides whether a text entails a claim: for measures by claims, and for answers."""
    latency: LatencyOptions | None = None
    """Whether single queries are timed."""
    cache: CacheOptions = CacheOptions()
    """How far the cache is believed."""
    vectors: StoredVectors | None = None
    """Where vectors lie that were embedded elsewhere."""
    retrievers: tuple[SerializeAsAny[Block], ...] = Field(min_length=1)
    """What is compared, in the order of the tables."""

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [block.name for block in self.retrievers]
        if RESERVED in names:
            raise ValueError(f"retriever name {RESERVED!r} stands for the data set in manifest.json; choose another")
        for number, name in enumerate(names):
            alike = [other for other in names[:number] if other.lower() == name.lower()]
            if alike:
                twice = f"{name!r} stands twice" if name in alike else f"{alike[0]!r} and {name!r} differ by case only"
                raise ValueError(f"retriever names: {twice}; names must differ by more than case")
        if self.baseline is not None and self.baseline not in names:
            raise ValueError(f"baseline {self.baseline!r} is no retriever; {did_you_mean(self.baseline, names)}")
        self._check_graph(names)
        self._check_sides()
        return self

    def _check_sides(self) -> None:
        by_name = {block.name: block for block in self.retrievers}
        for block in self.retrievers:
            if not isinstance(block, QdrantFusion):
                continue
            dense, lexical = by_name[block.of[0]], by_name[block.of[1]]
            if not isinstance(dense, Dense) or not isinstance(lexical, Standalone) or lexical.kind != "bm25":
                raise ValueError(
                    f"retriever {block.name!r} needs a dense retriever and one of kind bm25, in this order"
                )
            of_dense = ("chunk", "filter", "dimensions", "quantization")
            set_keys = [key for key in of_dense if getattr(dense, key)] + ["filter"] * bool(lexical.filter)
            if lexical.options.get("chunk"):
                set_keys.append("chunk")
            if set_keys:
                raise ValueError(f"{block.name!r} is made of whole documents and vectors: {set_keys[0]} is not for it")

    def _check_graph(self, names: list[str]) -> None:
        done: set[str] = set()
        waiting = {block.name: set(inputs(block)) for block in self.retrievers}
        for name, of in waiting.items():
            for other in of - set(names):
                raise ValueError(f"retriever {name!r} is made of unknown {other!r}; {did_you_mean(other, names)}")
        while waiting:
            ready = {name for name, of in waiting.items() if of <= done}
            if not ready:
                raise ValueError(f"retrievers are made of each other in a circle: {', '.join(waiting)}")
            done |= ready
            waiting = {name: of for name, of in waiting.items() if name not in ready}

    def resolved(self) -> dict[str, Any]:
        """The experiment with every default filled in, as the manifest keeps it."""
        dumped = self.model_dump(mode="json", by_alias=True)
        for table, block in zip(dumped["retrievers"], self.retrievers, strict=True):
            if isinstance(block, Encoded):
                table["encoder"] = block.encoder.written()
                for key in ("derive", "variants"):
                    if key in table and not table[key]:  # the retrievers that it gave stand beside it
                        del table[key]
            if isinstance(block, Standalone):
                table.update(table.pop("options"))
            if block.rerank is not None:
                table["rerank"] = block.rerank.written()
        if self.judge is not None and self.judge.encoder is not None:
            dumped["judge"]["encoder"] = self.judge.encoder.written()
        return dumped


def inputs(block: Block) -> tuple[str, ...]:
    """The names of the retrievers that a block is made of."""
    match block:
        case Fusion() | QdrantFusion():
            return block.of
        case Reranked():
            return (block.of,)
        case Dense(derived_from=str(base)):
            return (base,)
    return ()


def origin(block: Block) -> str | None:
    """The name of the retriever whose vectors a derived one has, None where it has its own."""
    return block.derived_from if isinstance(block, Dense) else None


class Question(NamedTuple):
    """An experiment with its measures parsed."""

    experiment: Experiment
    measures: tuple[Measure, ...]
    """What is measured, `[relevance]` filled in; each once."""
    primary: Measure
    """The measure that decides, one of them."""
