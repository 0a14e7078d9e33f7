"""The words that every room shares: the protocols, what passes between them, and documents, queries and rankings."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from retrievers.costs import FREE, Price, Tokens, estimate
from retrievers.errors import InputError, Problem
from retrievers.meter import Call, Meter
from retrievers.ragged import AnyVectors, Form, joined
from retrievers.ranking import (
    RESOLUTION,
    Claim,
    Document,
    Floats,
    Hit,
    Query,
    Ranking,
    Reference,
    above,
    collapsed,
    ranked,
    rounded,
    sample,
    without,
)

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
"""What no id may hold: it would make a row of its own in a table, or cannot be written."""
Role = Literal["document", "query"]
Vectors = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int64]
Pair = tuple[str, str]
"""A query's text and a document's."""
FilterValues = tuple[tuple[str, tuple[str, ...]], ...]
"""What a query wants of documents: fields, and for each the values of which a document must have one."""
Filters = Sequence[FilterValues]
"""Of each query; nothing where all documents are wanted."""

MOST_DIMENSIONS = 65_536
"""Numbers of a vector, at most: what Qdrant takes."""


class Embedded(NamedTuple):
    """Vectors of some texts, in the order of the texts."""

    vectors: AnyVectors
    """float32, (n, dimensions); sparse ones, and those of tokens, as `retrievers.ragged` has them."""
    tokens: Counts
    """(n,): tokens that the model read, special tokens included where the model counts them."""
    truncated_tokens: Counts
    """(n,): tokens beyond the model's limit, cut off unread."""

    @classmethod
    def of(cls, parts: Iterable[Embedded]) -> Embedded:
        """Put some texts and others together, at least one part."""
        vectors, tokens, truncated = zip(*parts, strict=True)
        return cls(joined(vectors), np.concatenate(tokens), np.concatenate(truncated))

    def at(self, rows: Sequence[int] | npt.NDArray[np.intp]) -> Embedded:
        """Return some of the texts, in the order of their positions."""
        return Embedded(
            self.vectors[rows], self.tokens[rows], self.truncated_tokens[rows]
        )


class PairScores(NamedTuple):
    """Scores of some pairs of a query and a document, in the order of the pairs."""

    scores: Floats
    """(n,), float64: higher is better; comparable within one query."""
    tokens: Counts
    """(n,): tokens that the model read."""
    truncated_tokens: Counts
    """(n,): tokens beyond the model's limit, cut off unread."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How fast and how long a provider may be asked."""

    concurrency: int
    """Requests at once, at most."""
    rpm: float
    """Requests a minute; 0: no limit."""
    tpm: float
    """Tokens a minute; 0: no limit."""
    patience: float
    """Seconds after which a request that keeps failing is given up."""
    tokens: int
    """Tokens of one text, at most."""


class Model(ABC):
    """What encoders and rerankers have in common. Only `fingerprint` must be given; the rest has defaults.

    A model keeps no meter and no cache: it may serve several retrievers at once. Building one loads and sends nothing.
    """

    expands: ClassVar[bool] = False
    """Whether it takes options as they are written, and puts in itself what `${NAME}` stands for."""

    @property
    def request_size(self) -> int:
        """Texts, or pairs, of one request: the option `batch_size`, where there is one."""
        size: int = getattr(self, "batch_size", 32)
        return size

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """All that changes a vector or a score; for a local folder the weights' digest, never its name."""

    @property
    def concurrency(self) -> int:
        """How many requests may be under way at once: what `limits` say; 1 for what runs on this machine."""
        return 1 if self.limits is None else self.limits.concurrency

    @property
    def at_hand(self) -> bool:
        """Whether the fingerprint can be had without the network."""
        return True

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps beside the price: model, source, revision, options that matter."""
        return {}

    @property
    def price(self) -> Price | None:
        """What a million tokens cost; None where that is not known, as of a service that does not say."""
        return FREE if self.limits is None else None

    @property
    def limits(self) -> Limits | None:
        """How a provider behind a network may be asked; None for what runs on this machine."""
        return None

    def check(self) -> None:
        """Look for what a run needs before it starts, such as a key; raises InputError where it is missing."""
        return


class Encoder(Model):
    """Turns texts into vectors, one request at a time; `retrievers.embedding` plans the requests."""

    form: ClassVar[Form] = "dense"
    """How a text is represented: it decides which kinds of retriever may use the encoder."""

    contextual: ClassVar[bool] = False
    """Whether it reads, with a passage, the document that it was cut from."""
    late: ClassVar[bool] = False
    """Whether it can: `chunk = { late = true }`."""

    def fingerprint_for(self, role: Role) -> str:
        """All that changes the vector of a text in this role: models that differ in the other role alone share vectors.

        Equal to `fingerprint` where the other role is as the model has it by default.
        """
        return self.fingerprint

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that would be read or billed, with no network: exactly, or estimated."""
        return Tokens(estimate(texts), exact=False)

    @property
    def lasting(self) -> bool:
        """Whether the fingerprint says all that it should, so that vectors may be kept for other runs."""
        return True

    @property
    def reads(self) -> int | None:
        """Tokens of one text that the model reads, the rest being cut off; None if it reads all, or that is unknown."""
        return None if self.limits is None else self.limits.tokens

    def lengths(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens of whole texts, with no network: exactly, or estimated."""
        return self.count(texts, role)

    def batches(self, texts: Sequence[str], role: Role) -> Iterable[Sequence[int]]:
        """Split texts (distinct, sorted by length) into requests: positions, each exactly once."""
        return runs(len(texts), self.request_size)

    @abstractmethod
    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Embed the texts of one request; counts `calls` and `tokens`, and `usd` where it costs, in `call.meter`."""

    def embed_passages(
        self, passages: Sequence[str], documents: Sequence[str], call: Call
    ) -> Embedded:
        """Embed passages with the document of each, those of one document together and in their order."""
        raise NotImplementedError(f"{type(self).__name__} reads passages alone")


class Reranker(Model):
    """Scores pairs of a query and a document, one request at a time; `retrievers.composed` plans the requests."""

    depth = 10
    """How many candidates of each query are scored; the others keep their order beneath them."""
    by_list: ClassVar[bool] = False
    """Whether the documents of a query travel together: a score might depend on its companions, and is kept by list."""

    def count(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens of texts, each as one side of a pair, with no network: exactly, or estimated."""
        return Tokens(estimate(texts), exact=False)

    def batches(self, pairs: Sequence[Pair]) -> Iterable[Sequence[int]]:
        """Split pairs (distinct, sorted by length) into requests: positions, each exactly once."""
        return runs(len(pairs), self.request_size)

    @abstractmethod
    def score(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        """Score the pairs of one request; counts as `Encoder.embed` does."""


class Store(Protocol):
    """Keeps the vectors of one collection and finds the nearest.

    Dense vectors by cosine, sparse ones by their dot product, those of tokens by MaxSim: the sum, over the query's
    tokens, of the largest dot product with any token of the document.

    Either `finished` finds the collection complete, or it is made: `create`, `upsert` as often as needed, `finish`.
    """

    forms: ClassVar[tuple[Form, ...]] = ("dense", "sparse", "multivector")
    """The forms of vectors that it keeps."""

    @property
    def approximate(self) -> bool:
        """Whether a search that is not told to be exact may miss some of the nearest."""
        return False

    @property
    def facts(self) -> Mapping[str, str]:
        """What the engine says of itself and of the collection, which the manifest keeps.

        Of an approximate collection `points`, and of them `indexed_points`: those in the graph or compressed.
        """
        return {}

    def finished(self) -> Mapping[str, Sequence[str]] | None:
        """Return the notes kept with the collection if it is there and complete, else None."""
        return None

    @abstractmethod
    def create(self, dimensions: int, *, anew: bool = False) -> None:
        """Make the collection ready for points; a half-built one may be resumed unless it is to be made `anew`."""

    @abstractmethod
    def upsert(
        self,
        ids: Sequence[str],
        vectors: AnyVectors,
        fields: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Add points: each document's once, or `finish` ends in an error.

        `fields` are those of each document by which searches may be narrowed: their payload, where there are any.
        """

    @abstractmethod
    def finish(self, notes: Mapping[str, Sequence[str]]) -> None:
        """Make the collection ready for search, mark it complete, and keep the ids noted by kind with it."""

    @abstractmethod
    def search(
        self,
        vectors: AnyVectors,
        limit: int,
        *,
        exact: bool = False,
        wanted: Filters = (),
    ) -> list[Ranking]:
        """Return one ranking per query vector: the best `limit` points, ties at the limit resolved.

        `exact` compares every vector in full, also where the collection is approximate. `wanted` says for each vector
        what the payload of its hits must hold; left out, every point may be a hit.
        """

    def close(self) -> None:
        """Let go of the collection, so that another process may have it."""
        return


class Retriever(ABC):
    """Answers queries over an indexed corpus. Building one loads and sends nothing."""

    expands: ClassVar[bool] = False
    """As of a model."""
    own_index: ClassVar[bool] = False
    """Whether it searches an index made elsewhere, from which no document can be left out here."""

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """What it uses: other retrievers, which index and search by themselves; then it has no index."""
        return ()

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps, asked for after the search; `usd_per_million_tokens` where a price is known."""
        return {}

    def check(self) -> None:
        """Look for what a run needs before it starts, such as a key; raises InputError where it is missing."""
        return

    def written(self) -> dict[str, Any]:
        """Its table in an experiment file, the tables of its parts in it."""
        what = f"a {type(self).__name__} does not say how it is written"
        raise InputError(Problem("retrievers", what, "give a table, with its kind"))

    def made_of(self, parts: tuple[Retriever, ...]) -> Retriever:
        """Return a retriever like this of other parts; for what has parts."""
        return self

    def use(self, resources: Any) -> None:
        """Take the `retrievers.cache.Resources` of a run, its cache among them; called before anything else."""
        return

    @abstractmethod
    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Take in the corpus; called once, before any search. Where no stage is opened, the time is that of "index"."""

    @abstractmethod
    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return one ranking of at most `depth` hits per query, in the order of the queries."""

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query as a user would ask it, past every cache, as latency is measured.

        Stages opened in the meter are timed apart; without any, the whole time is that of "search".
        """
        return self.search([query], depth, meter)[0]


def is_model(value: object) -> bool:
    """Return whether something embeds or scores by itself, and is no name or object that stands for a model."""
    return hasattr(type(value), "fingerprint")


def facts_of(model: Model) -> dict[str, str]:
    """Return what the manifest keeps of an encoder or a reranker, its price included where that is known."""
    provenance = dict(model.provenance)
    if model.price is None:
        return provenance
    search = model.price.usd_per_thousand_searches
    price = {"usd_per_million_tokens": f"{model.price.usd_per_million_tokens:g}"}
    price |= {"usd_per_thousand_searches": f"{search:g}"} if search else {}
    return {
        **provenance,
        **price,
        **({"price_source": model.price.source} if model.price.usd(1, 1) else {}),
    }


def runs(count: int, size: int) -> list[range]:
    """Split positions into runs of `size`.

    >>> runs(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


__all__ = [
    "MOST_DIMENSIONS",
    "RESOLUTION",
    "Claim",
    "Counts",
    "Document",
    "Embedded",
    "Encoder",
    "FilterValues",
    "Filters",
    "Floats",
    "Hit",
    "Limits",
    "Model",
    "Pair",
    "PairScores",
    "Price",
    "Query",
    "Ranking",
    "Reference",
    "Reranker",
    "Retriever",
    "Role",
    "Store",
    "Vectors",
    "above",
    "collapsed",
    "facts_of",
    "is_model",
    "ranked",
    "rounded",
    "runs",
    "sample",
    "without",
]
