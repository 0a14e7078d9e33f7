"""The protocol of models.

A model answers one request at a time. The cache, and which texts go into a request, are
in `retrievers.embedder` and `retrievers.reranked`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from retrievers.embedded import Embedded, PairScores, Role
from retrievers.errors import BackendError
from retrievers.facts import ModelFacts
from retrievers.meter import Call, Meter
from retrievers.prices import FREE_PRICE, Price
from retrievers.ragged import VectorForm
from retrievers.stored_facts import parse_model_facts, stored_model_facts
from retrievers.texts.token_estimate import Tokens, estimate_tokens

TextPair = tuple[str, str]
"""A query's text and a document's."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a provider's requests."""

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
    """What encoders and rerankers have in common.

    Here only `fingerprint` is required; all other members have defaults. A model keeps
    no meter and no cache, because it may serve several retrievers at once. Creating a
    model loads and sends nothing.
    """

    expands: ClassVar[bool] = False
    """Whether it receives options with `${NAME}` and replaces them itself."""

    @property
    def request_size(self) -> int:
        """Texts, or pairs, of one request: the option `batch_size`; 32 without it."""
        size: int = getattr(self, "batch_size", 32)
        return size

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """All that changes a vector or a score.

        For a local folder it has the weights' digest, never the folder's name.
        """

    @property
    def concurrency(self) -> int:
        """How many requests may be open at once; 1 for a model on this machine."""
        return 1 if self.limits is None else self.limits.concurrency

    @property
    def is_loaded(self) -> bool:
        """Whether a request needs nothing that is still to be loaded."""
        return True

    def load(self) -> None:  # noqa: B027 - most models load nothing
        """Load what requests need."""

    @property
    def runs_here(self) -> bool:
        """Whether a request costs nothing and calls no other program.

        Single queries are then timed without a table [latency] in the experiment.
        """
        return False

    @property
    def at_hand(self) -> bool:
        """Whether the fingerprint can be computed without the network."""
        return True

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records besides the price: model, revision, options."""
        return ModelFacts()

    @property
    def provenance(self) -> Mapping[str, str]:
        """The facts as texts, under the manifest's keys.

        A class of another package may give texts under its own keys instead of `facts`.
        """
        return stored_model_facts(self.facts)

    @property
    def price(self) -> Price | None:
        """The price of its tokens or searches; None if it is unknown."""
        return FREE_PRICE if self.limits is None else None

    @property
    def limits(self) -> Limits | None:
        """The limits of a provider's requests; None for a model on this machine."""
        return None

    def check(self) -> None:
        """Check the requirements of a run, such as a key, before it starts.

        Raises:
            InputError: a requirement is missing.
        """
        return


def load_model(model: Model, meter: Meter) -> None:
    """Load a model that is not loaded, as a stage of its own."""
    if not model.is_loaded:
        with meter.loading():
            model.load()


class Encoder(Model):
    """Turns texts into vectors, one request at a time.

    `retrievers.embedder` plans the requests.
    """

    form: ClassVar[VectorForm] = "dense"
    """The form of its vectors, which decides the kinds of retriever that may use it."""

    contextual: ClassVar[bool] = False
    """Whether it reads a passage together with the passage's document."""
    supports_late_chunking: ClassVar[bool] = False
    """Whether it can read documents whole for `chunk = { late = true }`."""

    @property
    def has_token_vectors(self) -> bool:
        """Whether its model gives a vector for each token, as far as is known."""
        return True

    def fingerprint_for(self, role: Role) -> str:
        """Return all that changes the vector of a text in this role.

        Models that differ only in the other role share vectors.
        """
        return self.fingerprint

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Return the tokens that would be read or billed, counted without network."""
        return Tokens(estimate_tokens(texts), exact=False)

    @property
    def is_cacheable(self) -> bool:
        """Whether the fingerprint is complete, so that other runs may use vectors."""
        return True

    @property
    def token_limit(self) -> int | None:
        """Tokens of one text that the model reads, before it cuts the text off.

        None if it reads all, or the limit is unknown.
        """
        return None if self.limits is None else self.limits.tokens

    def count_whole(self, texts: Sequence[str], role: Role) -> Tokens:
        """Return the tokens of whole texts, also of what is cut off."""
        return self.count(texts, role)

    def batches(self, texts: Sequence[str], role: Role) -> Iterable[Sequence[int]]:
        """Split texts (distinct, sorted by length) into requests.

        Returns:
            The positions of each request; each position occurs exactly once.
        """
        return index_ranges(len(texts), self.request_size)

    @abstractmethod
    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Embed the texts of one request.

        It counts `calls` and `tokens`, and `usd` if it costs money, in `call.meter`.
        """

    def embed_passages(
        self, passages: Sequence[str], documents: Sequence[str], call: Call
    ) -> Embedded:
        """Embed passages with the document of each.

        The passages of one document follow each other, in their order.
        """
        raise NotImplementedError(f"{type(self).__name__} reads passages alone")


class Reranker(Model):
    """Scores pairs of a query and a document, one request at a time.

    `retrievers.reranked` plans the requests.
    """

    depth = 10
    """How many candidates of each query are scored; the others stay below them."""
    is_listwise: ClassVar[bool] = False
    """Whether all scored documents of a query are sent together.

    A score might depend on the other documents, so it is cached by list."""

    def count(self, texts: Sequence[str]) -> Tokens:
        """Return the tokens of texts, each as one side of a pair, without network."""
        return Tokens(estimate_tokens(texts), exact=False)

    def batches(self, pairs: Sequence[TextPair]) -> Iterable[Sequence[int]]:
        """Split pairs into requests.

        They are distinct and sorted by length; for a listwise reranker they are those
        of one query, in the order of its hits.

        Returns:
            The positions of each request; each position occurs exactly once.
        """
        return index_ranges(len(pairs), self.request_size)

    @abstractmethod
    def score(self, pairs: Sequence[TextPair], call: Call) -> PairScores:
        """Score the pairs of one request; counts as `Encoder.embed` does."""


def is_model(value: object) -> bool:
    """Return whether an object embeds or scores by itself.

    A name, a table or an object of a library only describes a model.
    """
    return hasattr(type(value), "fingerprint")


def is_encoder(model: object) -> bool:
    """Return whether an object is a model that embeds."""
    return is_model(model) and hasattr(model, "embed")


def is_reranker(model: object) -> bool:
    """Return whether an object is a model that scores pairs."""
    return is_model(model) and hasattr(model, "score")


def model_facts(model: Model) -> ModelFacts:
    """Return what the manifest records of a model, with its price if it is known.

    The price of a free model has no source.

    Raises:
        BackendError: a class of another package gives a fact of the wrong type.
    """
    try:
        facts = parse_model_facts(model.provenance)
    except ValueError as error:
        raise BackendError(f"{type(model).__name__}.provenance: {error}") from None
    price = model.price
    if price is None:
        return facts
    is_free = not price.usd(1, 1)
    return replace(facts, price=price._replace(source="") if is_free else price)


def index_ranges(count: int, size: int) -> list[range]:
    """Split positions into ranges of `size`.

    >>> index_ranges(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return [range(start, min(start + size, count)) for start in range(0, count, size)]
