"""The protocol of models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from retrievers.embedded import Embedded, PairScores, Role
from retrievers.meter import Call
from retrievers.prices import FREE_PRICE, Price
from retrievers.ragged import VectorForm
from retrievers.texts.token_estimate import Tokens, estimate_tokens

TextPair = tuple[str, str]
"""A query's text and a document's."""


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
        return FREE_PRICE if self.limits is None else None

    @property
    def limits(self) -> Limits | None:
        """How a provider behind a network may be asked; None for what runs on this machine."""
        return None

    def check(self) -> None:
        """Look for what a run needs before it starts, such as a key; raises InputError where it is missing."""
        return


class Encoder(Model):
    """Turns texts into vectors, one request at a time; `retrievers.embedder` plans the requests."""

    form: ClassVar[VectorForm] = "dense"
    """How a text is represented: it decides which kinds of retriever may use the encoder."""

    contextual: ClassVar[bool] = False
    """Whether it reads, with a passage, the document that it was cut from."""
    supports_late_chunking: ClassVar[bool] = False
    """Whether it can: `chunk = { late = true }`."""

    def fingerprint_for(self, role: Role) -> str:
        """All that changes the vector of a text in this role: models that differ in the other role alone share vectors.

        Equal to `fingerprint` where the other role is as the model has it by default.
        """
        return self.fingerprint

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that would be read or billed, with no network: exactly, or estimated."""
        return Tokens(estimate_tokens(texts), exact=False)

    @property
    def is_cacheable(self) -> bool:
        """Whether the fingerprint says all that it should, so that vectors may be kept for other runs."""
        return True

    @property
    def token_limit(self) -> int | None:
        """Tokens of one text that the model reads, the rest being cut off; None if it reads all, or that is unknown."""
        return None if self.limits is None else self.limits.tokens

    def count_whole(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens of whole texts, with no network: exactly, or estimated."""
        return self.count(texts, role)

    def batches(self, texts: Sequence[str], role: Role) -> Iterable[Sequence[int]]:
        """Split texts (distinct, sorted by length) into requests: positions, each exactly once."""
        return index_ranges(len(texts), self.request_size)

    @abstractmethod
    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Embed the texts of one request; counts `calls` and `tokens`, and `usd` where it costs, in `call.meter`."""

    def embed_passages(
        self, passages: Sequence[str], documents: Sequence[str], call: Call
    ) -> Embedded:
        """Embed passages with the document of each, those of one document together and in their order."""
        raise NotImplementedError(f"{type(self).__name__} reads passages alone")


class Reranker(Model):
    """Scores pairs of a query and a document, one request at a time; `retrievers.reranked` plans the requests."""

    depth = 10
    """How many candidates of each query are scored; the others keep their order beneath them."""
    is_listwise: ClassVar[bool] = False
    """Whether the documents of a query travel together: a score might depend on its companions, and is kept by list."""

    def count(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens of texts, each as one side of a pair, with no network: exactly, or estimated."""
        return Tokens(estimate_tokens(texts), exact=False)

    def batches(self, pairs: Sequence[TextPair]) -> Iterable[Sequence[int]]:
        """Split pairs (distinct, sorted by length) into requests: positions, each exactly once."""
        return index_ranges(len(pairs), self.request_size)

    @abstractmethod
    def score(self, pairs: Sequence[TextPair], call: Call) -> PairScores:
        """Score the pairs of one request; counts as `Encoder.embed` does."""


def is_model(value: object) -> bool:
    """Return whether something embeds or scores by itself, and is no name or object that stands for a model."""
    return hasattr(type(value), "fingerprint")


def model_facts(model: Model) -> dict[str, str]:
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


def index_ranges(count: int, size: int) -> list[range]:
    """Split positions into runs of `size`.

    >>> index_ranges(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return [range(start, min(start + size, count)) for start in range(0, count, size)]
