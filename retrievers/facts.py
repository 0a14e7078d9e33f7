"""What a retriever used.

Retrievers return these records; `stored_facts` writes them to a manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from retrievers.prices import Price


class Fact(NamedTuple):
    """A fact that has no field: an option, or what another package says."""

    key: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A model, or a function in its place; "" and None for what it does not have."""

    model: str = ""
    source: str = ""
    """Where it is: a server's address, the hub, a folder."""
    revision: str = ""
    """Its commit in the hub."""
    sha256: str = ""
    """The digest of its weights."""
    fingerprint: str = ""
    """All that changes a ranking, if the retriever itself is the model."""
    word_stemming: str = ""
    """How the words that are compared are stemmed."""
    call: str = ""
    """The function that is called."""
    version: str = ""
    """Version of the function."""
    settings: tuple[Fact, ...] = ()
    """Options that people want to know: prompts, number type, region."""
    dimensions: int | None = None
    price: Price | None = None
    """None if it is unknown; without a source if it is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerFacts:
    """A reranker, and how many hits of a query it reads; None if that is unknown."""

    model: ModelFacts = ModelFacts()
    depth: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionFacts:
    """The engine of a store, and the state of a collection's index."""

    server: str = ""
    """The server with its version; "" if there is none."""
    points: int | None = None
    """Vectors in an approximate collection."""
    indexed_points: int | None = None
    """Vectors in the graph, or compressed."""
    optimizer: str = ""
    indexing_threshold_kb: int | None = None
    full_scan_threshold_kb: int | None = None
    other: tuple[Fact, ...] = ()
    """Facts from a store of another package, under its own keys."""

    @property
    def unindexed_points(self) -> int:
        """Points that are neither in the graph nor compressed."""
        return max((self.points or 0) - (self.indexed_points or 0), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorFacts:
    """The vectors of a corpus, and how they are searched."""

    derived_from: str = ""
    """The retriever whose encoder's vectors are made smaller."""
    cut_from: int | None = None
    """The dimensions of vectors that were cut."""
    least_cosine: float | None = None
    """The lowest cosine between cut vectors and the encoder's own of this size."""
    store: str = ""
    search: str = ""
    """"exact" or "approximate"."""
    quantization: str = ""
    collection: CollectionFacts = CollectionFacts()
    dimensions: int | None = None
    texts: int | None = None
    """Documents, or passages, that have vectors."""
    size_bytes: float | None = None
    """Bytes of memory that a fast search needs."""
    nonzeros_per_text: float | None = None
    nonzeros_per_query: float | None = None
    tokens_per_text: float | None = None
    """Vectors of a text, one for each token."""
    tokens_per_query: float | None = None

    @property
    def per_text(self) -> float | None:
        """The numbers, or vectors, of a text; None if all texts have equally many."""
        if self.nonzeros_per_text is None:
            return self.tokens_per_text
        return self.nonzeros_per_text

    @property
    def per_query(self) -> float | None:
        """The numbers, or vectors, of a query; None if all have equally many."""
        if self.nonzeros_per_query is None:
            return self.tokens_per_query
        return self.nonzeros_per_query


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where answers are from that an agent, a service or a file gave."""

    tools: str = ""
    """The names of an agent's tools."""
    server: str = ""
    """The name of an MCP server."""
    tool: str = ""
    url: str = ""
    run: str = ""
    """A file of rankings."""
    sha256: str = ""
    """The digest of that file."""
    answered_at: str = ""
    """The time of the oldest answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFacts:
    """What a run noticed about a retriever's answers."""

    passages: str = ""
    """What counts as its passages (whole documents), if it did not return any."""
    trials: int | None = None
    """How often a retriever was run that may answer differently each time."""
    compared: int | None = None
    """Timed answers that were compared with those of the run."""
    changed: int | None = None
    """How many of the compared answers were different."""
    not_timed: str = ""
    """Why single queries could not be timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverFacts:
    """What one retriever used: its model, vectors, reranker, the origin of answers."""

    model: ModelFacts = ModelFacts()
    origin: Origin = Origin()
    vectors: VectorFacts = VectorFacts()
    conditions: str = ""
    """The conditions of queries on documents, as JSON."""
    reranker: RerankerFacts | None = None
    answers: AnswerFacts = AnswerFacts()
    other: tuple[Fact, ...] = ()
    """Facts from retrievers of other packages, under their own keys."""

    @property
    def dimensions(self) -> int | None:
        """The numbers of a vector: of those that were searched, else of the model."""
        if self.vectors.dimensions is None:
            return self.model.dimensions
        return self.vectors.dimensions
