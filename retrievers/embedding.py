"""Embeds many texts through the cache: each distinct text once, each finished request stored at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrievers.cache import Cache, keys
from retrievers.errors import BackendError
from retrievers.meter import Meter
from retrievers.parallel import answers
from retrievers.types import Embedded, Encoder, Role


class Embedder:
    """An encoder with its cache and its meter."""

    def __init__(self, encoder: Encoder, cache: Cache, *, meter: Meter) -> None:
        self.encoder = encoder
        self._cache = cache
        self._meter = meter
        self._dimensions = 0

    def embed(self, texts: Sequence[str], role: Role) -> Embedded:
        """Return the vectors of texts, in their order; none of them may be blank.

        Requests are planned from the distinct texts, sorted by length, then text, as if nothing were cached, so
        that an interrupted run sends the same requests as an undisturbed one. Counts `texts` (distinct) and
        `cached`; the encoder itself counts calls, tokens and dollars.

        Raises:
            BackendError: a request failed for good (what the others brought is stored), or its vectors are
                too few or too many, of another dimension, or not finite.
        """
        distinct = sorted(set(texts), key=lambda text: (len(text), text))
        names = keys(self.encoder.fingerprint, role, distinct)
        held, cached = self._cache.vectors(names)
        missing = np.ones(len(distinct), dtype=bool)
        missing[held] = False
        self._meter.count(texts=len(distinct), cached=len(held))
        if len(held):
            self._expect(cached.vectors.shape[1])

        places, parts = [held], [cached]
        if missing.any():
            requests = self.encoder.batches(distinct, role)
            wanted = [some for request in requests if (some := [i for i in request if missing[i]])]

            def ask(some: list[int]) -> Embedded:
                return self._ask([distinct[i] for i in some], role)

            for some, embedded in answers(ask, wanted, width=self.encoder.concurrency, stopped=self._meter.stopped):
                self._cache.store_vectors(self.encoder.fingerprint, [names[i] for i in some], embedded)
                places.append(np.asarray(some, dtype=np.intp))
                parts.append(embedded)

        row = np.empty(len(distinct), dtype=np.intp)
        row[np.concatenate(places)] = np.arange(len(distinct))
        at = dict(zip(distinct, row.tolist(), strict=True))
        order = [at[text] for text in texts]
        filled = [part for part in parts if len(part.tokens)]
        return Embedded(*(np.concatenate(column)[order] for column in zip(*filled, strict=True))) if filled else cached

    def one(self, text: str, role: Role = "query") -> Embedded:
        """Embed one text with the cache bypassed, as latency is measured."""
        return self._ask([text], role)

    def _ask(self, texts: list[str], role: Role) -> Embedded:
        """Send one request and check the answer."""
        vectors, tokens, lost = self.encoder.embed(texts, role)
        if vectors.ndim != 2 or not len(vectors) == len(tokens) == len(lost) == len(texts):
            raise BackendError(f"{len(vectors)} vectors came back for {len(texts)} texts")
        self._expect(vectors.shape[1])
        if not np.isfinite(vectors).all():
            raise BackendError("a vector that is not finite came back")
        return Embedded(np.asarray(vectors, dtype=np.float32), tokens, lost)

    def _expect(self, dimensions: int) -> None:
        self._dimensions = self._dimensions or dimensions
        if dimensions != self._dimensions:
            raise BackendError(f"a vector has {dimensions} dimensions where others have {self._dimensions}")
