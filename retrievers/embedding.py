"""Embeds many texts through the cache: each distinct text once, each finished request stored at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Event
from typing import NamedTuple

import numpy as np

from retrievers.cache import Cache, keys
from retrievers.errors import BackendError
from retrievers.meter import Call, Meter, single_call
from retrievers.parallel import answers
from retrievers.types import Embedded, Encoder, Role, Vectors


class Forecast(NamedTuple):
    """What embedding some texts would take."""

    texts: int
    """Distinct texts."""
    cached: int
    calls: int
    tokens: int
    """Tokens of the texts that are not cached."""
    exact: bool
    """Whether the tokens are counted; else they are an upper estimate."""


class Drift(NamedTuple):
    """How far vectors that were embedded anew lie from those in the cache: 1 - cosine."""

    compared: int
    largest: float
    mean: float


class Embedder:
    """An encoder with its cache."""

    def __init__(self, encoder: Encoder, cache: Cache) -> None:
        self.encoder = encoder
        self._cache = cache
        self._dimensions = 0

    def embed(self, texts: Sequence[str], role: Role, meter: Meter) -> Embedded:
        """Return the vectors of texts, in their order; none of them may be blank.

        Requests are planned from the distinct texts, sorted by length, then text, as if nothing were cached, so
        that an interrupted run sends the same requests as an undisturbed one. The meter counts `texts` (distinct) and
        `cached`; the encoder itself counts calls, tokens and dollars in it.

        Raises:
            BackendError: a request failed for good (what the others brought is stored), or its vectors are
                too few or too many, of another dimension, or not finite.
        """
        distinct = _distinct(texts)
        names = keys(self.encoder.fingerprint, role, distinct)
        held, cached = self._cache.get(names)
        missing = np.ones(len(distinct), dtype=bool)
        missing[held] = False
        meter.count(texts=len(held), cached=len(held))
        if role == "query" and len(held):
            meter.count(cached_tokens=int(cached.tokens.sum()))  # what queries cost is told from them
        if len(held):
            self._expect(cached.vectors.shape[1])

        places, parts = [held], [cached]
        if missing.any():
            requests = self.encoder.batches(distinct, role)
            wanted = [some for request in requests if (some := [i for i in request if missing[i]])]

            def ask(some: list[int], stopped: Event) -> Embedded:
                return self._ask([distinct[i] for i in some], role, Call(meter, stopped))

            for some, embedded in answers(ask, wanted, width=self.encoder.concurrency):
                self._cache.put(self.encoder.fingerprint, [names[i] for i in some], embedded)
                meter.count(texts=len(some))
                places.append(np.asarray(some, dtype=np.intp))
                parts.append(embedded)

        row = np.empty(len(distinct), dtype=np.intp)
        row[np.concatenate(places)] = np.arange(len(distinct))
        at = dict(zip(distinct, row.tolist(), strict=True))
        order = [at[text] for text in texts]
        filled = [part for part in parts if len(part.tokens)]
        return Embedded(*(np.concatenate(column)[order] for column in zip(*filled, strict=True))) if filled else cached

    def one(self, text: str, role: Role, meter: Meter) -> Embedded:
        """Embed one text with the cache bypassed, as latency is measured."""
        return self._ask([text], role, single_call(meter))

    def forecast(self, texts: Iterable[str], role: Role) -> Forecast:
        """Count what `embed` would do, with no network and no model; blank texts are left out.

        A model that is not on this machine yet has nothing in the cache.
        """
        distinct = _distinct(text for text in texts if text.strip())
        at_hand = self.encoder.at_hand
        names = keys(self.encoder.fingerprint, role, distinct) if at_hand else []
        held = self._cache.held(names)
        missing = (
            [text for text, name in zip(distinct, names, strict=True) if name not in held] if at_hand else distinct
        )
        tokens = self.encoder.count(missing, role)
        gone = set(missing)
        calls = sum(any(distinct[i] in gone for i in request) for request in self.encoder.batches(distinct, role))
        return Forecast(len(distinct), len(held), calls, int(tokens.counts.sum()), tokens.exact)

    def drift(self, texts: Iterable[str], role: Role, *, sample: int = 100, seed: int = 0) -> Drift:
        """Embed a sample of the texts that are cached anew, and compare; the cache stays as it is."""
        distinct = _distinct(texts)
        names = keys(self.encoder.fingerprint, role, distinct)
        held = self._cache.held(names)
        known = [i for i, name in enumerate(names) if name in held]
        chosen = sorted(np.random.default_rng(seed).permutation(len(known))[:sample].tolist())
        picked = [distinct[known[i]] for i in chosen]
        places, cached = self._cache.get([names[known[i]] for i in chosen])
        old = dict(zip(places.tolist(), cached.vectors, strict=True))
        distances: list[float] = []
        call = single_call()
        for request in self.encoder.batches(picked, role):
            new = self._ask([picked[i] for i in request], role, call).vectors
            distances += [_distance(old[i], vector) for i, vector in zip(request, new, strict=True) if i in old]
        return Drift(len(distances), max(distances, default=0.0), float(np.mean(distances)) if distances else 0.0)

    def _ask(self, texts: list[str], role: Role, call: Call) -> Embedded:
        """Send one request and check the answer."""
        vectors, tokens, lost = self.encoder.embed(texts, role, call)
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


def _distinct(texts: Iterable[str]) -> list[str]:
    return sorted(set(texts), key=lambda text: (len(text), text))


def _distance(a: Vectors, b: Vectors) -> float:
    """1 - cosine; a zero vector is at distance 0 from another, and 1 from anything else."""
    wide = a.astype(np.float64), b.astype(np.float64)
    lengths = float(np.linalg.norm(wide[0]) * np.linalg.norm(wide[1]))
    if not lengths:
        return 0.0 if a.any() == b.any() else 1.0
    return max(1 - float(wide[0] @ wide[1]) / lengths, 0.0)
