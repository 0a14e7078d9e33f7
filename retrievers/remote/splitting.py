"""Texts to embed behind an API: packed into requests, and split or cut where they are refused for their length."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.errors import BackendError
from retrievers.meter import Call
from retrievers.prices import Price
from retrievers.insisting import TooLong
from retrievers.remote.retries import Bill, RequestSender
from retrievers.tokens import Count
from retrievers.types import Counts, Embedded, Limits, Vectors

_CUTS = 8


class EmbeddingReply(NamedTuple):
    """What one request brought: (n, d) vectors in the order of its texts, and the tokens billed (0: not said)."""

    vectors: Vectors
    tokens: int


Send = Callable[[list[str]], EmbeddingReply]


class EmbeddingRequests:
    """The requests of one encoder to its provider; several threads and several retrievers may share it."""

    def __init__(self, limits: Limits, price: Callable[[], Price | None], *, count: Count) -> None:
        """Take the limits, the price, and the way tokens are counted."""
        self._limits = limits
        self._texts = 0
        self._count = count
        self._sender = RequestSender(limits, price)

    def embed(self, texts: Sequence[str], send: Send, call: Call) -> Embedded:
        """Embed the texts of one request; a refusal for length splits it once, and a single text is then cut.

        A refusal that names how many texts a request may have is learnt: later requests are split before they are sent.

        Args:
            texts: of one request, prompts included.
            send: asks the provider once; raises Transient, TooLong or BackendError.
            call: for which retriever it is sent, and what stops it.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """
        limit = self._limits.characters
        sent = [text[:limit] for text in texts] if limit else list(texts)
        parts = [part for some in self._few(sent) for part in self._parts(some, send, call)]
        embedded = Embedded(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        beyond = [_beyond(*pair) for pair in zip(texts, sent, embedded.tokens.tolist(), strict=True)]
        return embedded._replace(truncated_tokens=embedded.truncated_tokens + np.asarray(beyond, dtype=np.int64))

    def _few(self, texts: list[str]) -> list[list[str]]:
        """Split texts into as many as the provider is known to take at once."""
        most = self._texts or len(texts)
        return [texts[start : start + most] for start in range(0, len(texts), most)]

    def _parts(self, texts: list[str], send: Send, call: Call, *, named: bool = False) -> list[Embedded]:
        """Send texts; `named`: they are as many as the provider has just named, and it may not name fewer again."""
        try:
            return [self._whole(texts, send, call)]
        except TooLong as refusal:
            if len(texts) == 1:
                return [self._cut(texts[0], refusal, send, call)]
            if refusal.texts and refusal.texts < len(texts):
                if named:
                    raise BackendError(f"the server takes fewer texts than it said: {refusal}") from None
                self._texts = refusal.texts
                return [part for some in self._few(texts) for part in self._parts(some, send, call, named=True)]
            return [self._part(some, send, call) for some in self._split(texts, refusal)]

    def _split(self, texts: list[str], refusal: TooLong) -> list[list[str]]:
        """Split a refused request once: texts that may be too long each alone, else into halves."""
        limit = refusal.limit or self._limits.tokens
        lengths = [len(text) for text in texts] if refusal.characters else self._count(texts).tolist()
        suspect = [length > limit for length in lengths]
        if not any(suspect):
            half = (len(texts) + 1) // 2
            return [part for part in (texts[:half], texts[half:]) if part]
        parts: list[list[str]] = []
        for i, text in enumerate(texts):
            if i and not suspect[i] and not suspect[i - 1]:
                parts[-1].append(text)
            else:
                parts.append([text])
        return parts

    def _part(self, texts: list[str], send: Send, call: Call) -> Embedded:
        try:
            return self._whole(texts, send, call)
        except TooLong as refusal:
            if len(texts) == 1:
                return self._cut(texts[0], refusal, send, call)
            remedy = "set batch_size lower" if refusal.limit is None else f"set max_tokens = {refusal.limit} or lower"
            raise BackendError(f"half a request is still too long: {refusal}; {remedy}") from None

    def _cut(self, text: str, refusal: TooLong, send: Send, call: Call) -> Embedded:
        """Embed the beginning of a text that is refused for its length: as much as the provider's words allow."""
        whole = 0 if refusal.characters else refusal.length or 0
        kept = text
        for _ in range(_CUTS):
            limit = refusal.limit or self._limits.tokens
            length = refusal.length or (len(kept) if refusal.characters else int(self._count([kept])[0]))
            share = 0.98 * limit / max(length, 1)
            kept = kept[: int(len(kept) * (share if share < 1 else 0.8))]
            if not kept.strip():
                break
            try:
                embedded = self._whole([kept], send, call)
            except TooLong as again:
                refusal = again
            else:
                tokens = int(embedded.tokens[0])
                truncated = whole - tokens if whole else _beyond(text, kept, tokens)
                return embedded._replace(truncated_tokens=np.asarray([max(truncated, 1)], dtype=np.int64))
        raise BackendError(f"a text of {len(text)} characters cannot be cut to fit: {refusal}")

    def _whole(self, texts: list[str], send: Send, call: Call) -> Embedded:
        expected = self._count(texts)

        def request() -> tuple[Vectors, Bill]:
            vectors, tokens = send(texts)
            return vectors, Bill(tokens if tokens >= len(texts) else 0)  # each text has a token at least

        vectors, billed = self._sender.send(request, Bill(int(expected.sum())), call)
        if len(vectors) != len(texts):
            raise BackendError(f"{len(vectors)} vectors came back for {len(texts)} texts")
        return Embedded(vectors, shared_out(billed, expected), np.zeros(len(texts), dtype=np.int64))


def _beyond(text: str, kept: str, tokens: int) -> int:
    """The tokens that were cut off, as many to a character as in what was kept."""
    return -(-(len(text) - len(kept)) * tokens // len(kept))


def shared_out(total: int, weights: Counts) -> Counts:
    """Divide the billed tokens among the texts by their estimates, so that they add up."""
    ends = np.rint(np.cumsum(weights) * (total / max(int(weights.sum()), 1))).astype(np.int64)
    shares: Counts = ends - np.concatenate([[0], ends[:-1]])
    return shares


def packed(counts: Counts, size: int, total: int, alone: int) -> Iterator[range]:
    """Split texts into requests of at most `size` texts and `total` tokens; one of `alone` tokens goes alone.

    >>> list(packed(np.array([1, 2, 3, 9, 4]), 3, 5, 9))
    [range(0, 2), range(2, 3), range(3, 4), range(4, 5)]
    """
    start, sum_ = 0, 0
    for i, count in enumerate(counts.tolist()):
        full = i - start >= size or sum_ + count > total or count >= alone or counts[i - 1] >= alone
        if full and i > start:
            yield range(start, i)
            start, sum_ = i, 0
        sum_ += count
    if len(counts) > start:
        yield range(start, len(counts))


def unpacked(row: list[float] | str) -> npt.ArrayLike:
    """Return a vector that came as numbers, or as the base64 form of little-endian 32-bit floats.

    Raises:
        BackendError: it is not.

    >>> unpacked("AACAPwAAAEA=").tolist()
    [1.0, 2.0]
    """
    if not isinstance(row, str):
        return row
    try:
        return np.frombuffer(binascii.a2b_base64(row, strict_mode=True), dtype="<f4")
    except ValueError:
        raise BackendError("a vector came back that is no base64 form of 32-bit floats") from None


def rectangular(rows: Sequence[npt.ArrayLike]) -> Vectors:
    """Return vectors as (n, d) of float32.

    Raises:
        BackendError: they have several dimensions, or none.
    """
    with np.errstate(over="ignore"):  # what overflows is not finite, and refused as such
        vectors = [np.asarray(row, dtype=np.float32) for row in rows]
    if len({vector.size for vector in vectors}) > 1:
        raise BackendError("vectors of several dimensions came back")
    if vectors and not vectors[0].size:
        raise BackendError("a vector without dimensions came back")
    return np.stack(vectors) if vectors else np.zeros((0, 0), dtype=np.float32)
