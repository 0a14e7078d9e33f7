"""Texts embedded through the cache."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple, TypeVar

import numpy as np

from retrievers.cache import Cache
from retrievers.embedded import Embedded, Role
from retrievers.errors import BackendError
from retrievers.identity import PassageInDocument, passage_keys
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.model import Encoder
from retrievers.ragged import VectorForm, all_finite, as_dense, unit_rows, vector_form
from retrievers.services.concurrency import completed_batches

MAX_VERIFICATION_TEXTS = 20
"""Texts that are asked for at the smaller size."""
MIN_VERIFIED_COSINE = 0.9999
"""Between a vector that was cut and one that was asked for, from which on they are the same."""


ItemType = TypeVar("ItemType")
EMBEDDING_WINDOW = 16_384
"""Texts embedded together: requests are planned within a window, so that they do not depend on the cache."""
MULTIVECTOR_WINDOW = 1_024
"""The same where each token has a vector."""


class EmbeddingForecast(NamedTuple):
    """What embedding some texts would take."""

    texts: int
    """Distinct texts."""
    cached: int
    calls: int
    tokens: int
    """Tokens of the texts that are not cached."""
    exact: bool
    """Whether the tokens are counted; else they are an estimate."""


class Embedder:
    """An encoder with the cache in front of it, and what cuts its vectors.

    Args:
        encoder: what embeds.
        cache: keeps every answer of what is lasting; None where there is none, as on the nodes of a cluster.
        size: how many leading numbers of each vector are kept; None for all.
        proof: the same model at this size; what it gives must be what cutting gives, before anything is believed.
    """

    def __init__(
        self,
        encoder: Encoder,
        cache: Cache | None,
        dimensions: int | None = None,
        native_encoder: Encoder | None = None,
    ) -> None:
        self.encoder = encoder
        self._cache = cache if encoder.is_cacheable else None
        self._proof = (
            None if native_encoder is None else Embedder(native_encoder, cache)
        )
        self._size, self._dimensions, self._least = dimensions, 0, math.nan

    @property
    def provenance(self) -> Mapping[str, str]:
        """How vectors were cut, if they were, and how near they are to those that were asked for."""
        proof = (
            {}
            if math.isnan(self._least)
            else {"least_cosine_with_asked": f"{self._least:.6f}"}
        )
        return (
            {} if self._size is None else {"cut_from": str(self._dimensions), **proof}
        )

    def embed(
        self,
        texts: Sequence[str],
        role: Role,
        meter: Meter,
        documents: Sequence[str] = (),
    ) -> Embedded:
        """Return the vectors of texts, in their order; none of them may be blank.

        Requests are planned from the distinct texts, sorted by length, then text, as if nothing were cached, so
        that an interrupted run sends the same requests as an undisturbed one; each answer is cached at once. The meter
        counts `texts` (distinct) and `cached`; the encoder itself counts calls, tokens and dollars in it.

        Args:
            texts: what is embedded.
            role: of the texts.
            meter: see above.
            documents: of passages, the document that each was cut from: passages are kept and sent by document.

        Raises:
            BackendError: a request failed for good (what the others brought is stored), or its vectors are too few or
                too many, of another dimension, or not finite; or the model gives others when it is asked for few.
        """
        items = list(zip(texts, documents or [""] * len(texts), strict=True))
        distinct = sort_distinct_passages(items)
        if not distinct:
            return _NOTHING[1]
        fingerprint = self.encoder.fingerprint_for(role)
        names = passage_keys(fingerprint, role, distinct)
        held, embedded = (
            _NOTHING
            if self._cache is None
            else self._cache.get(names, self.encoder.form)
        )
        meter.count(texts=len(held), cached=len(held))
        if len(held):
            self._expect(embedded.vectors.shape[1])
            if role == "query":
                meter.count(
                    cached_tokens=int(embedded.tokens.sum())
                )  # what queries cost is computed from them
        places, parts = [*held.tolist()], [embedded] if len(held) else []
        missing = set(range(len(distinct))).difference(places)
        wanted = [
            some
            for request in self._plan(distinct, role)
            if (some := [i for i in request if i in missing])
        ]

        def ask(some: list[int], stopped: Stop) -> Embedded:
            return self._ask([distinct[i] for i in some], role, Call(meter, stopped))

        for lot in (
            completed_batches(ask, wanted, width=self.encoder.concurrency)
            if wanted
            else ()
        ):
            answered = [i for some, _ in lot for i in some]
            found = Embedded.concatenate(part for _, part in lot)
            if self._cache is not None:  # a transaction costs as much as many rows
                self._cache.put(fingerprint, [names[i] for i in answered], found)
            meter.count(texts=len(answered))
            places += answered
            parts.append(found)
        at = dict(zip(distinct, np.argsort(places).tolist(), strict=True))
        whole = self._cut(
            Embedded.concatenate(parts).take([at[item] for item in items])
        )
        if (
            self._proof is not None
            and not documents
            and math.isnan(self._least)
            and role == "document"
        ):
            self._least = self._compared(self._proof, texts, whole, meter)
        return whole

    def embed_uncached(self, text: str, role: Role, meter: Meter) -> Embedded:
        """Embed one text with the cache bypassed, as latency is measured."""
        return self._cut(self._ask([(text, "")], role, single_call(meter)))

    def forecast(self, texts: Iterable[str], role: Role) -> EmbeddingForecast:
        """Count what `embed` would do, with no network and no model; blank texts are left out.

        A model that is not on this machine yet has nothing in the cache.
        """
        return self.forecast_passages(
            sort_distinct_passages((text, "") for text in texts if text.strip()), role
        )

    def forecast_passages(
        self, distinct: Sequence[PassageInDocument], role: Role
    ) -> EmbeddingForecast:
        """The same of distinct passages, each with its document."""
        missing = dict.fromkeys(distinct)
        if self._cache is not None and self.encoder.at_hand:
            names = passage_keys(self.encoder.fingerprint_for(role), role, distinct)
            held = self._cache.cached_keys(names)
            missing = {
                text: None
                for text, name in zip(distinct, names, strict=True)
                if name not in held
            }
        read = list(
            dict.fromkeys(document or text for text, document in missing)
        )  # a document is read once
        tokens = self.encoder.count(read, role)
        calls = sum(
            any(distinct[i] in missing for i in request)
            for request in self._plan(distinct, role)
        )
        return EmbeddingForecast(
            len(distinct),
            len(distinct) - len(missing),
            calls,
            int(tokens.counts.sum()),
            tokens.exact,
        )

    def _plan(
        self, texts: Sequence[PassageInDocument], role: Role
    ) -> Iterable[Sequence[int]]:
        """Split distinct texts into requests, as positions; the passages of a document are never apart."""
        if not texts or not texts[0][1]:
            return self.encoder.batches([text for text, _ in texts], role)
        requests: list[list[int]] = [[]]
        for _, group in groupby(range(len(texts)), key=lambda place: texts[place][1]):
            places = list(group)
            if (
                requests[-1]
                and len(requests[-1]) + len(places) > self.encoder.request_size
            ):
                requests.append([])
            requests[-1] += places
        return requests

    def _ask(
        self, texts: Sequence[PassageInDocument], role: Role, call: Call
    ) -> Embedded:
        """Send one request and check the answer."""
        alone, documents = (
            [text for text, _ in texts],
            [document for _, document in texts],
        )
        together = any(documents)
        ask = (
            self.encoder.embed_passages(alone, documents, call)
            if together
            else self.encoder.embed(alone, role, call)
        )
        vectors, tokens, truncated = ask
        if len(vectors.shape) != 2 or not len(vectors) == len(tokens) == len(
            truncated
        ) == len(texts):
            raise BackendError(
                f"{len(vectors)} vectors came back for {len(texts)} texts"
            )
        self._expect(vectors.shape[1])
        if not all_finite(vectors):
            raise BackendError("a vector that is not finite came back")
        if vector_form(vectors) != self.encoder.form:
            raise BackendError(
                f"{vector_form(vectors)} vectors came back from an encoder of {self.encoder.form} ones"
            )
        if self.encoder.form == "dense":
            vectors = np.asarray(vectors, dtype=np.float32)
        return Embedded(vectors, tokens, truncated)

    def _expect(self, dimensions: int) -> None:
        self._dimensions = self._dimensions or dimensions
        if dimensions != self._dimensions:
            raise BackendError(
                f"a vector has {dimensions} dimensions where others have {self._dimensions}"
            )

    def _cut(self, embedded: Embedded) -> Embedded:
        if self._size is None:
            return embedded
        if self._size > self._dimensions:
            raise BackendError(
                f"the model's vectors have {self._dimensions} dimensions: {self._size} cannot be kept"
            )
        return embedded._replace(
            vectors=unit_rows(as_dense(embedded.vectors)[:, : self._size])
        )

    def _compared(
        self, proof: Embedder, texts: Sequence[str], embedded: Embedded, meter: Meter
    ) -> float:
        """Return the least cosine between vectors that were cut and those that were asked for."""
        some = verification_texts(texts)
        own = as_dense(embedded.vectors)[[texts.index(text) for text in some]]
        other = as_dense(unit_rows(proof.embed(some, "document", meter).vectors))
        gave = f"vectors of {other.shape[1]}"
        if other.shape == own.shape:
            least = min(
                float(np.einsum("ij,ij->i", own.astype(np.float64), other).min()), 1.0
            )
            if least > MIN_VERIFIED_COSINE:
                return least
            gave = f"others (the least cosine is {least:.4f})"
        what = f"cutting to {self._size} dimensions differs from the service's own vectors of that size"
        raise BackendError(f"{what}: it gave {gave} for {len(some)} texts {_REMEDY}")


_NOTHING = (
    np.empty(0, np.intp),
    Embedded(np.empty((0, 0), np.float32), *np.empty((2, 0), np.int64)),
)


def sort_distinct_passages(
    items: Iterable[PassageInDocument],
) -> list[PassageInDocument]:
    """Return each once, as requests are planned: by length, then text; those of documents in their order."""
    once = list(dict.fromkeys(items))
    return (
        once
        if once and once[0][1]
        else sorted(once, key=lambda item: (len(item[0]), item[0]))
    )


def split_windows(
    items: Iterable[ItemType], form: VectorForm
) -> Iterator[list[ItemType]]:
    """Yield documents, or texts, as they are embedded together: fewer where each of their tokens has a vector."""
    stream, size = (
        iter(items),
        MULTIVECTOR_WINDOW if form == "multivector" else EMBEDDING_WINDOW,
    )
    while window := list(islice(stream, size)):
        yield window


_REMEDY = "(proof = false takes the cut vectors as they are; or write a retriever with these encoder.dimensions)"


def verification_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts that are asked for at the smaller size: the first 20 that differ.

    >>> verification_texts(["a", "b", "a"])
    ['a', 'b']
    """
    seen: dict[str, None] = {}
    for text in texts:
        seen[text] = None
        if len(seen) == MAX_VERIFICATION_TEXTS:
            break
    return list(seen)
