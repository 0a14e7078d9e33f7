"""Texts embedded through the cache.

Requests are planned from all distinct texts, also those that are cached; of each
request only the missing texts are sent. Vectors may be cut to fewer dimensions
afterwards (`vector_reduction.py`). `vector_index.py` embeds a corpus with this,
`dense.py` queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple, TypeVar

import numpy as np

from retrievers.cache import Cache
from retrievers.embedded import Embedded, Role
from retrievers.errors import BackendError
from retrievers.identity import PassageInDocument, passage_keys
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.model import Encoder, load_model
from retrievers.ragged import (
    AnyVectors,
    VectorForm,
    all_finite,
    as_dense,
    unit_rows,
    vector_form,
)
from retrievers.services.concurrency import completed_batches
from retrievers.vector_reduction import (
    cut_vectors,
    verification_texts,
    verify_cut_vectors,
)

TextType = TypeVar("TextType")
EMBEDDING_WINDOW = 16_384
"""Texts embedded together. Requests are planned within a window, so that they do not
depend on the cache."""
MULTIVECTOR_WINDOW = 1_024
"""Texts embedded together if each token has a vector."""


class EmbeddingForecast(NamedTuple):
    """What embedding some texts would take."""

    texts: int
    """Distinct texts."""
    cached: int
    """Distinct texts that are cached."""
    calls: int
    """Requests with a text that is not cached."""
    tokens: int
    """Tokens of the texts that are not cached; of a passage that is read with its
    document, those of the document."""
    exact: bool
    """Whether the tokens are counted; otherwise they are an estimate."""


class _DistinctTexts(NamedTuple):
    """Distinct texts in the order in which requests are planned."""

    passages: Sequence[PassageInDocument]
    role: Role
    fingerprint: str
    keys: Sequence[bytes]
    """Their keys in the cache."""


class _EmbeddedTexts(NamedTuple):
    """The vectors of some distinct texts."""

    positions: list[int]
    """Their positions among the distinct texts."""
    embedded: Embedded


_NO_VECTORS = Embedded(
    vectors=np.empty((0, 0), np.float32),
    tokens=np.empty(0, np.int64),
    truncated_tokens=np.empty(0, np.int64),
)


class Embedder:
    """An encoder behind the cache, which may cut its vectors.

    Args:
        encoder: embeds the texts that are not cached.
        cache: stores the vectors of a cacheable encoder; None for no cache, as on the
            nodes of a cluster.
        dimensions: how many leading numbers of each vector are kept; None for all.
        native_encoder: the same model, asked for this size itself; cutting must give
            the same vectors. None: they are not compared.
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
        self._native_embedder: Embedder | None = None
        if native_encoder is not None:
            self._native_embedder = Embedder(native_encoder, cache)
        self._cut_dimensions = dimensions
        self._dimensions = 0
        """Dimensions of the encoder's own vectors; 0 until the first is known."""
        self._lowest_cosine = math.nan
        """The lowest between cut and native vectors; NaN until they are compared."""

    @property
    def cut_from(self) -> int | None:
        """The dimensions of vectors that were cut; None if they are whole."""
        return None if self._cut_dimensions is None else self._dimensions

    @property
    def least_cosine(self) -> float | None:
        """The lowest between cut and native vectors; None if they were not compared."""
        return None if math.isnan(self._lowest_cosine) else self._lowest_cosine

    def embed(
        self,
        texts: Sequence[str],
        role: Role,
        meter: Meter,
        documents: Sequence[str] = (),
    ) -> Embedded:
        """Return the vectors of texts, in their order; none of them may be blank.

        Requests are planned from the distinct texts, sorted by length, then text, as if
        nothing were cached, so that an interrupted run sends the same requests as an
        undisturbed one; each answer is cached at once. Passages with their documents
        stay in the order of the documents. The meter counts `texts` (distinct) and
        `cached`; the encoder counts calls, tokens and dollars in it.

        Args:
            texts: the texts.
            role: their role.
            meter: receives the counts.
            documents: for passages that are read with their document, the document of
                each: they are cached and sent by document. Empty for any other texts.

        Raises:
            BackendError: a request failed for good (the other answers are stored), or
                its vectors are too few or too many, of another form or dimension, or
                not finite; or there are fewer dimensions than are kept; or the model's
                native vectors differ from cut ones.
        """
        passages = list(zip(texts, documents or [""] * len(texts), strict=True))
        distinct = self._distinct_texts(passages, role)
        if not distinct.passages:
            return _NO_VECTORS
        cached = self._read_cache(distinct, meter)
        parts = [cached] if cached.positions else []
        parts += self._embed_missing(distinct, set(cached.positions), meter)
        positions = [position for part in parts for position in part.positions]
        rows = np.argsort(positions).tolist()
        row_by_passage = dict(zip(distinct.passages, rows, strict=True))
        embedded = Embedded.concatenate(part.embedded for part in parts)
        embedded = embedded.take([row_by_passage[passage] for passage in passages])
        embedded = self._cut(embedded)
        if role == "document" and not documents:
            self._verify_once(texts, embedded, meter)
        return embedded

    def embed_uncached(self, text: str, role: Role, meter: Meter) -> Embedded:
        """Embed one text without the cache, as latency is measured."""
        load_model(self.encoder, meter)
        return self._cut(self._request([(text, "")], role, single_call(meter)))

    def forecast(self, texts: Iterable[str], role: Role) -> EmbeddingForecast:
        """Return what `embed` would do, without network or model; skip blank texts.

        Nothing counts as cached if the model is not on this machine yet.
        """
        passages = ((text, "") for text in texts if text.strip())
        return self.forecast_passages(sort_distinct_passages(passages), role)

    def forecast_passages(
        self, distinct: Sequence[PassageInDocument], role: Role
    ) -> EmbeddingForecast:
        """Return the forecast for distinct passages, each with its document."""
        missing = dict.fromkeys(distinct)
        if self._cache is not None and self.encoder.at_hand:
            keys = passage_keys(self.encoder.fingerprint_for(role), role, distinct)
            cached_keys = self._cache.cached_keys(keys)
            for passage, key in zip(distinct, keys, strict=True):
                if key in cached_keys:
                    del missing[passage]
        # A document is read once for all of its passages.
        read_texts = dict.fromkeys(document or text for text, document in missing)
        tokens = self.encoder.count(list(read_texts), role)
        calls = 0
        for request in self._plan(distinct, role):
            calls += any(distinct[i] in missing for i in request)
        return EmbeddingForecast(
            texts=len(distinct),
            cached=len(distinct) - len(missing),
            calls=calls,
            tokens=int(tokens.counts.sum()),
            exact=tokens.exact,
        )

    def _distinct_texts(
        self, passages: Sequence[PassageInDocument], role: Role
    ) -> _DistinctTexts:
        """Return each passage once, with its key."""
        distinct = sort_distinct_passages(passages)
        if not distinct:  # a fingerprint may need the network
            return _DistinctTexts((), role, fingerprint="", keys=())
        fingerprint = self.encoder.fingerprint_for(role)
        keys = passage_keys(fingerprint, role, distinct)
        return _DistinctTexts(distinct, role, fingerprint, keys)

    def _read_cache(self, distinct: _DistinctTexts, meter: Meter) -> _EmbeddedTexts:
        """Return the vectors of the texts that are cached."""
        positions: list[int] = []
        embedded = _NO_VECTORS
        if self._cache is not None:
            rows, embedded = self._cache.get(distinct.keys, self.encoder.form)
            positions = rows.tolist()
        meter.count(texts=len(positions), cached=len(positions))
        if positions:
            self._check_dimensions(embedded.vectors.shape[1])
            if distinct.role == "query":
                # The costs of queries are computed from them.
                meter.count(cached_tokens=int(embedded.tokens.sum()))
        return _EmbeddedTexts(positions, embedded)

    def _embed_missing(
        self, distinct: _DistinctTexts, cached: set[int], meter: Meter
    ) -> Iterator[_EmbeddedTexts]:
        """Embed the texts that are not cached; store and yield their vectors."""
        requests = []
        for planned_request in self._plan(distinct.passages, distinct.role):
            missing = [i for i in planned_request if i not in cached]
            if missing:
                requests.append(missing)
        if not requests:
            return
        load_model(self.encoder, meter)

        def send(positions: list[int], stopped: Stop) -> Embedded:
            passages = [distinct.passages[i] for i in positions]
            return self._request(passages, distinct.role, Call(meter, stopped))

        # Answers that arrive together are stored together: a transaction costs as much
        # as many rows.
        for batch in completed_batches(send, requests, width=self.encoder.concurrency):
            positions = [i for request, _ in batch for i in request]
            embedded = Embedded.concatenate(answer for _, answer in batch)
            if self._cache is not None:
                keys = [distinct.keys[i] for i in positions]
                self._cache.put(distinct.fingerprint, keys, embedded)
            meter.count(texts=len(positions))
            yield _EmbeddedTexts(positions, embedded)

    def _plan(
        self, passages: Sequence[PassageInDocument], role: Role
    ) -> Iterable[Sequence[int]]:
        """Return the positions of the passages of each request.

        All passages of a document are in one request.
        """
        # Whether an encoder reads documents with passages is the same for all of them.
        has_documents = bool(passages) and bool(passages[0][1])
        if not has_documents:
            return self.encoder.batches([text for text, _ in passages], role)
        requests: list[list[int]] = [[]]
        for _, group in groupby(range(len(passages)), key=lambda i: passages[i][1]):
            positions = list(group)
            size = len(requests[-1]) + len(positions)
            if requests[-1] and size > self.encoder.request_size:
                requests.append([])
            requests[-1] += positions
        return requests

    def _request(
        self, passages: Sequence[PassageInDocument], role: Role, call: Call
    ) -> Embedded:
        """Send one request and check the answer."""
        texts = [text for text, _ in passages]
        documents = [document for _, document in passages]
        answer = (
            self.encoder.embed_passages(texts, documents, call)
            if any(documents)
            else self.encoder.embed(texts, role, call)
        )
        vectors, tokens, truncated = answer
        if len(vectors) != len(texts):
            raise BackendError(
                f"returned {len(vectors)} vectors for {len(texts)} texts"
            )
        if len(vectors.shape) != 2 or not len(tokens) == len(truncated) == len(texts):
            raise BackendError(
                f"returned vectors of shape {vectors.shape}, with {len(tokens)} and "
                f"{len(truncated)} counts of tokens, for {len(texts)} texts"
            )
        self._check_dimensions(vectors.shape[1])
        if not all_finite(vectors):
            raise BackendError(_describe_not_finite(vectors))
        if vector_form(vectors) != self.encoder.form:
            raise BackendError(
                f"returned {vector_form(vectors)} vectors; its form is "
                f"{self.encoder.form}"
            )
        if self.encoder.form == "dense":
            vectors = np.asarray(vectors, dtype=np.float32)
        return Embedded(vectors, tokens, truncated)

    def _check_dimensions(self, dimensions: int) -> None:
        """Raise BackendError if vectors have other dimensions than earlier ones."""
        self._dimensions = self._dimensions or dimensions
        if dimensions != self._dimensions:
            raise BackendError(
                f"a vector has {dimensions} dimensions where others have "
                f"{self._dimensions}"
            )

    def _cut(self, embedded: Embedded) -> Embedded:
        """Return vectors with as many dimensions as are kept."""
        if self._cut_dimensions is None:
            return embedded
        if self._cut_dimensions > self._dimensions:
            raise BackendError(
                f"the model's vectors have {self._dimensions} dimensions: "
                f"{self._cut_dimensions} cannot be kept"
            )
        return cut_vectors(embedded, self._cut_dimensions)

    def _verify_once(
        self, texts: Sequence[str], embedded: Embedded, meter: Meter
    ) -> None:
        """Compare cut vectors with native ones, the first time.

        Raises:
            BackendError: they differ.
        """
        if self._native_embedder is None or not math.isnan(self._lowest_cosine):
            return
        sample = verification_texts(texts)
        cut = as_dense(embedded.vectors)[[texts.index(text) for text in sample]]
        native = self._native_embedder.embed(sample, "document", meter).vectors
        self._lowest_cosine = verify_cut_vectors(cut, as_dense(unit_rows(native)))


def sort_distinct_passages(
    passages: Iterable[PassageInDocument],
) -> list[PassageInDocument]:
    """Return each passage once, in the order in which requests are planned.

    Passages with documents stay in the documents' order, others are sorted by length,
    then text.
    """
    distinct = list(dict.fromkeys(passages))
    has_documents = bool(distinct) and bool(distinct[0][1])
    if has_documents:
        return distinct
    return sorted(distinct, key=lambda passage: (len(passage[0]), passage[0]))


def split_windows(
    texts: Iterable[TextType], form: VectorForm
) -> Iterator[list[TextType]]:
    """Yield the texts, or passages, that are embedded together.

    They are fewer for vectors of tokens, which are larger.
    """
    size = MULTIVECTOR_WINDOW if form == "multivector" else EMBEDDING_WINDOW
    stream = iter(texts)
    while window := list(islice(stream, size)):
        yield window


def _describe_not_finite(vectors: AnyVectors) -> str:
    """Return which text is the first whose vector has NaN or infinity."""
    count = len(vectors)
    number = next(
        (i + 1 for i in range(count) if not all_finite(vectors[i : i + 1])), count
    )
    return f"the vector of text {number} of {count} has NaN or infinity"
