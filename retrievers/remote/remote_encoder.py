"""What encoders behind an API share: texts are packed into requests, and split or cut where these are refused."""

from __future__ import annotations

import binascii
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.costs import Tokens, estimate
from retrievers.errors import BackendError, InputError, Problem, check_positive
from retrievers.meter import Call
from retrievers.remote.redaction import as_written, shown
from retrievers.remote.remote_model import Access, Charge, RemoteModel, RequestSize, shared_out
from retrievers.retrying import TooLong
from retrievers.types import Counts, Embedded, Encoder, Role, Vectors, fingerprint

_CUTS = 8


class EmbeddingReply(NamedTuple):
    """What one request brought: (n, d) vectors in the order of its texts, and the tokens billed (0: not said)."""

    vectors: Vectors
    tokens: int


class RemoteEncoder(RemoteModel, Encoder):
    """An encoder behind an API, of which each provider says what one request is, and what comes back.

    A refusal for length splits a request once, and a single text is then cut. A refusal that names how many texts a
    request may have is learnt: later requests are split before they are sent.
    """

    kind: ClassVar[str]
    """In the fingerprint."""
    most_texts: ClassVar[int] = sys.maxsize
    """That the provider takes in one request."""
    most_tokens: ClassVar[int] = sys.maxsize
    """Of all texts of one request."""
    refuses: ClassVar[bool] = True
    """Whether the provider refuses what it does not read to the end, so that a text that may be too long goes alone."""
    characters: int = 0
    """Of one text that the provider takes, at most; 0: no limit."""

    def __init__(
        self, model: str, access: Access, size: int, tokens: int, prompts: Mapping[Role, str] | None = None, *,
        dimensions: int | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """Take what the experiment says; `prompts` are put before every text of their role.

        Args:
            model: the provider's name for it.
            access: how it is reached.
            size: texts a request, at most.
            tokens: of one text that the model reads, at most.
            prompts: by role.
            dimensions: fewer dimensions, where the model can.
            options: of every remote model.
        """
        super().__init__(model, access, tokens, **options)
        check_positive("encoder", batch_size=size, dimensions=dimensions)
        if size > self.most_texts:
            what = f"{size} is above the {self.most_texts:,} that {self.service} takes"
            raise InputError(Problem("encoder.batch_size", what))
        self.request_size = size
        self._dimensions = dimensions
        self._prompts: Mapping[Role, str] = prompts or {"query": "", "document": ""}
        self._most = RequestSize()

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: server, model, dimensions, what is said with texts of either role."""
        return self._named(self._by_role)

    def fingerprint_for(self, role: Role) -> str:
        """All that changes a vector in this role: not what is said with the other."""
        return self._named({
            name: {one: value if one == role else _nothing(value) for one, value in said.items()}
            for name, said in self._by_role.items()
        })  # fmt: skip

    @property
    def _by_role(self) -> Mapping[str, Mapping[Role, Any]]:
        """What is said with texts of each role, by the name that it has in the fingerprint."""
        return {"prompts": self._prompts}

    def _named(self, by_role: Mapping[str, Mapping[Role, Any]]) -> str:
        return fingerprint(self.kind, self.model, server=self._url, dimensions=self._dimensions, **by_role)

    @abstractmethod
    def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        """Ask the provider once; raises Transient, TooLong or BackendError."""

    def _counted(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens that would be billed; no network."""
        return Tokens(estimate(texts), exact=False)

    def _described(self, **more: str) -> Mapping[str, str]:
        """What the manifest keeps."""
        prompts = {f"{role}_prompt": as_written(prompt) for role, prompt in self._prompts.items() if prompt}
        dimensions = {} if self._dimensions is None else {"dimensions": str(self._dimensions)}
        return {"model": as_written(self.model), "source": shown(self._url), **prompts, **more, **dimensions}

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that would be billed, the prompt's among them; no network."""
        return self._counted([self._prompts[role] + text for text in texts])

    def batches(self, texts: Sequence[str], role: Role) -> Iterator[Sequence[int]]:
        """Pack texts into requests by their tokens, those that may be too long alone."""
        limit = self._limits.tokens
        counts = np.minimum(self.count(texts, role).counts, limit)
        return packed(counts, self.request_size, self.most_tokens, limit if self.refuses else limit + 1)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Send one request; `tokens` are shared out from what the provider billed.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """
        self._client()  # before the clock of the rate runs: loading an SDK takes a while
        prompted = [self._prompts[role] + text for text in texts]
        sent = [text[: self.characters or None] for text in prompted]

        def whole(some: list[str]) -> Embedded:
            return self._whole(some, role, call)

        def split(some: list[str], refusal: TooLong) -> list[Embedded]:
            if len(some) == 1:
                return [self._cut(some[0], refusal, whole)]
            return [self._half(part, whole) for part in self._split(some, refusal)]

        embedded = Embedded.of(self._most.in_requests(sent, whole, split))
        beyond = [_beyond(*pair) for pair in zip(prompted, sent, embedded.tokens.tolist(), strict=True)]
        return embedded._replace(truncated_tokens=embedded.truncated_tokens + np.asarray(beyond, dtype=np.int64))

    def _whole(self, texts: list[str], role: Role, call: Call) -> Embedded:
        """Send texts as they are."""
        expected = self._counted(texts).counts
        promised = self._charge(int(expected.sum()))

        def request() -> tuple[Vectors, Charge]:
            vectors, tokens = self._send(texts, role)
            if len(vectors) != len(texts):
                count = len(vectors) or "no"
                raise BackendError(f"{self._client().server.name}: {count} vectors came back for {len(texts)} texts")
            return vectors, self._charge(tokens) if tokens >= len(texts) else promised  # each has a token at least

        vectors, charge = self._sender.send(request, promised, call)
        return Embedded(vectors, shared_out(charge.tokens, expected), np.zeros(len(texts), dtype=np.int64))

    def _split(self, texts: list[str], refusal: TooLong) -> list[list[str]]:
        """Split a refused request once: texts that may be too long each alone, else into halves."""
        limit = refusal.limit or self._limits.tokens
        lengths = [len(text) for text in texts] if refusal.characters else self._counted(texts).counts.tolist()
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

    def _half(self, texts: list[str], whole: Callable[[list[str]], Embedded]) -> Embedded:
        try:
            return whole(texts)
        except TooLong as refusal:
            if len(texts) == 1:
                return self._cut(texts[0], refusal, whole)
            remedy = "set batch_size lower" if refusal.limit is None else f"set max_tokens = {refusal.limit} or lower"
            raise BackendError(f"half a request is still too long: {refusal}; {remedy}") from None

    def _cut(self, text: str, refusal: TooLong, whole: Callable[[list[str]], Embedded]) -> Embedded:
        """Embed the beginning of a text that is refused for its length: as much as the provider's words allow."""
        stated = 0 if refusal.characters else refusal.length or 0
        kept = text
        for _ in range(_CUTS):
            limit = refusal.limit or self._limits.tokens
            length = refusal.length or (len(kept) if refusal.characters else int(self._counted([kept]).counts[0]))
            share = 0.98 * limit / max(length, 1)
            kept = kept[: int(len(kept) * (share if share < 1 else 0.8))]
            if not kept.strip():
                break
            try:
                embedded = whole([kept])
            except TooLong as again:
                refusal = again
            else:
                tokens = int(embedded.tokens[0])
                truncated = stated - tokens if stated else _beyond(text, kept, tokens)
                return embedded._replace(truncated_tokens=np.asarray([max(truncated, 1)], dtype=np.int64))
        raise BackendError(f"a text of {len(text)} characters cannot be cut to fit: {refusal}")


def _nothing(value: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    return "" if isinstance(value, str) else {}


def _beyond(text: str, kept: str, tokens: int) -> int:
    """The tokens that were cut off, as many to a character as in what was kept."""
    return -(-(len(text) - len(kept)) * tokens // len(kept))


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
