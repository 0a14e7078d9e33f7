"""What encoders behind an API share: one loop of retries, the limits of the rate, the budget, texts too long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from retrievers.errors import BackendError, InputError, Problem
from retrievers.meter import Meter
from retrievers.remote.faults import TooLong
from retrievers.remote.gate import Gate
from retrievers.remote.patience import patiently
from retrievers.tokens import Count
from retrievers.types import Counts, Embedded, Vectors

_CUTS = 8


class Replied(NamedTuple):
    """What one request brought: (n, d) vectors in the order of its texts, and the tokens billed for all of them."""

    vectors: Vectors
    tokens: int


Send = Callable[[list[str]], Replied]


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
    characters: int = 0
    """Characters of one text, at most; 0: no limit."""


class Channel:
    """The way to one provider."""

    def __init__(self, limits: Limits, *, count: Count, meter: Meter) -> None:
        """Take the limits, the way tokens are counted, and the meter."""
        self._limits = limits
        self._count = count
        self._meter = meter
        self._gate = Gate(limits.concurrency, rpm=limits.rpm, tpm=limits.tpm, stopped=meter.stopped)

    def embed(self, texts: Sequence[str], send: Send) -> Embedded:
        """Embed the texts of one request; a refusal for length splits it once, and a single text is then cut.

        Args:
            texts: of one request, prompts included.
            send: asks the provider once; raises Transient, TooLong or BackendError.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """
        limit = self._limits.characters
        sent = [text[:limit] for text in texts] if limit else list(texts)
        try:
            parts = [self._whole(sent, send)]
        except TooLong as refusal:
            if len(sent) == 1:
                parts = [self._cut(sent[0], refusal, send)]
            else:
                parts = [self._part(some, send) for some in self._split(sent, refusal)]
        found = Embedded(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        beyond = [_beyond(*pair) for pair in zip(texts, sent, found.tokens.tolist(), strict=True)]
        return found._replace(lost=found.lost + np.asarray(beyond, dtype=np.int64))

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

    def _part(self, texts: list[str], send: Send) -> Embedded:
        try:
            return self._whole(texts, send)
        except TooLong as refusal:
            if len(texts) == 1:
                return self._cut(texts[0], refusal, send)
            raise BackendError(f"half a request is still too long: {refusal}; set batch_size lower") from None

    def _cut(self, text: str, refusal: TooLong, send: Send) -> Embedded:
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
                found = self._whole([kept], send)
            except TooLong as again:
                refusal = again
            else:
                tokens = int(found.tokens[0])
                lost = whole - tokens if whole else _beyond(text, kept, tokens)
                return found._replace(lost=np.asarray([max(lost, 1)], dtype=np.int64))
        raise BackendError(f"a text of {len(text)} characters cannot be cut to fit: {refusal}")

    def _whole(self, texts: list[str], send: Send) -> Embedded:
        """Send one request until it succeeds, fails for good, or patience ends; settle what it cost."""
        expected = self._count(texts)
        promised = int(expected.sum())
        self._meter.before(promised)
        billed = 0
        try:
            vectors, said = self._patiently(lambda: send(texts), promised)
            billed = said or promised
        finally:
            self._meter.after(promised, billed)
        self._meter.count(calls=1)
        if len(vectors) != len(texts):
            raise BackendError(f"{len(vectors)} vectors came back for {len(texts)} texts")
        return Embedded(vectors, _shared_out(billed, expected), np.zeros(len(texts), dtype=np.int64))

    def _patiently(self, send: Callable[[], Replied], tokens: int) -> Replied:
        return patiently(send, self._gate, tokens, patience=self._limits.patience, meter=self._meter)


def _beyond(text: str, kept: str, tokens: int) -> int:
    """The tokens that were cut off, as many to a character as in what was kept."""
    return -(-(len(text) - len(kept)) * tokens // len(kept))


def _shared_out(total: int, weights: Counts) -> Counts:
    """Divide the billed tokens among the texts by their estimates, so that they add up."""
    ends = np.rint(np.cumsum(weights) * (total / max(int(weights.sum()), 1))).astype(np.int64)
    shares: Counts = ends - np.concatenate([[0], ends[:-1]])
    return shares


def packed(counts: Counts, *, size: int, total: int, alone: int) -> Iterator[range]:
    """Split texts into requests of at most `size` texts and `total` tokens; one of `alone` tokens goes alone.

    >>> list(packed(np.array([1, 2, 3, 9, 4]), size=3, total=5, alone=9))
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


def rectangular(rows: Sequence[Sequence[float]]) -> Vectors:
    """Return vectors as (n, d) of float32.

    Raises:
        BackendError: they have several dimensions.
    """
    if len({len(row) for row in rows}) > 1:
        raise BackendError("vectors of several dimensions came back")
    return np.asarray(rows, dtype=np.float32)


def check_options(**positive: float) -> None:
    """Refuse options that are not positive.

    Raises:
        InputError: naming each.
    """
    problems = [
        Problem(f"encoder.{name}", f"{value} is not positive") for name, value in positive.items() if value <= 0
    ]
    if problems:
        raise InputError(problems)
