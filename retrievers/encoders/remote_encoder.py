"""An encoder behind an API."""

import binascii
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from retrievers.embedded import MAX_DIMENSIONS, DenseVectors, Embedded, Role
from retrievers.errors import BackendError
from retrievers.identity import fingerprint
from retrievers.meter import Call
from retrievers.model import Encoder
from retrievers.options.placeholders import expand, redact_url
from retrievers.services.caller import RequestCost
from retrievers.services.concurrency import run_request
from retrievers.services.remote_model import (
    RemoteModel,
    billed_tokens,
    share_by_weight,
    split_when_refused,
)
from retrievers.services.service_errors import RequestRefused
from retrievers.texts.token_estimate import Counts, Tokens, estimate_tokens

_HALVINGS = 5


class EmbeddingReply(NamedTuple):
    """What one request brought, as the service said it."""

    rows: Sequence[tuple[int, Any]]
    """The place of each text and its vector."""
    tokens: object = None
    """Billed."""
    model: object = None
    """What the service calls the model."""


class RemoteEncoder(RemoteModel, Encoder):
    """An encoder behind an API; each provider defines a request and reads the response.

    A batch that is refused is split; a single text is halved until it is taken, and counted as truncated.
    """

    kind: ClassVar[str]
    max_request_tokens: ClassVar[int] = sys.maxsize
    """Of all texts of one request."""
    refuses_long_texts: ClassVar[bool] = True
    """Whether the provider refuses what it does not read to the end, so that a text that may be too long goes alone."""
    dimensions: Annotated[int, Field(ge=1, le=MAX_DIMENSIONS)] | None = None
    """Fewer dimensions, where the model can."""
    batch_size: Annotated[int, Field(ge=1, le=96)] = 96
    """Texts a request, at most."""
    _width: int | None = None
    _answering: str = ""

    @property
    def max_characters(self) -> int:
        """Of one text that the provider takes, at most; 0: no limit."""
        return 0

    @property
    def _prompts(self) -> Mapping[Role, str]:
        """What is put before every text, by role."""
        return {
            "query": getattr(self, "query_prompt", ""),
            "document": getattr(self, "document_prompt", ""),
        }

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: server, model, dimensions, what is said with texts of either role."""
        return self._named(self._by_role)

    def fingerprint_for(self, role: Role) -> str:
        """All that changes a vector in this role: not what is said with the other."""
        return self._named(
            {
                name: {
                    one: value if one == role else type(value)()
                    for one, value in said.items()
                }
                for name, said in self._by_role.items()
            }
        )

    @property
    def _by_role(self) -> Mapping[str, Mapping[Role, Any]]:
        """What is said with texts of each role, by the name that it has in the fingerprint."""
        return {"prompts": self._prompts}

    def _named(self, said: Mapping[str, Any]) -> str:
        return fingerprint(
            self.kind, self.model, server=self._url, dimensions=self.dimensions, **said
        )

    def _fewer(self, name: str) -> dict[str, int]:
        """What is sent of the dimensions that are asked for, by the provider's name for them."""
        return {} if self.dimensions is None else {name: self.dimensions}

    @abstractmethod
    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        """Ask the provider once; raises Transient, Refused or BackendError."""

    def _counted(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens that would be billed; no network."""
        return Tokens(estimate_tokens(texts), exact=False)

    def _described(self, **more: str) -> Mapping[str, str]:
        """What the manifest keeps."""
        prompts = {
            f"{role}_prompt": prompt for role, prompt in self._prompts.items() if prompt
        }
        dimensions = {
            name: str(number) for name, number in self._fewer("dimensions").items()
        }
        return {
            "model": self.model,
            "source": redact_url(self._url),
            **prompts,
            **more,
            **dimensions,
        }

    def _prompted(self, texts: Sequence[str], role: Role) -> list[str]:
        prompt = expand(self._prompts[role])
        return [prompt + text for text in texts]

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that would be billed, the prompt's among them; no network."""
        return self._counted(self._prompted(texts, role))

    def batches(self, texts: Sequence[str], role: Role) -> Iterator[Sequence[int]]:
        """Pack texts into requests by their tokens, those that may be too long alone."""
        limit = self._limits.tokens
        counts = np.minimum(self.count(texts, role).counts, limit)
        return pack_requests(
            counts,
            self.request_size,
            self.max_request_tokens,
            limit if self.refuses_long_texts else limit + 1,
        )

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Send one request; `tokens` are shared out from what the provider billed.

        Raises:
            BackendError: for good; OverBudget before anything is sent.
        """
        self._client()
        prompted = self._prompted(texts, role)
        sent = [text[: self.max_characters or None] for text in prompted]
        embedded = Embedded.concatenate(
            run_request(
                split_when_refused(sent, lambda some: self._taken(some, role, call)),
                call.stopped,
            )
        )
        beyond = [
            _beyond(*pair)
            for pair in zip(prompted, sent, embedded.tokens.tolist(), strict=True)
        ]
        return embedded._replace(
            truncated_tokens=embedded.truncated_tokens
            + np.asarray(beyond, dtype=np.int64)
        )

    async def _taken(self, texts: list[str], role: Role, call: Call) -> Embedded:
        """Send texts as they are; of one that is refused as much as the provider takes.

        Raises:
            Refused: not even the beginning of a text is taken: what was said of the whole text.
        """
        try:
            return await self._whole(texts, role, call)
        except RequestRefused as refusal:
            first = refusal
        if len(texts) > 1:
            raise first
        (text,) = texts
        for halving in range(1, _HALVINGS + 1):
            kept = text[: len(text) >> halving]
            if not kept.strip():
                break
            try:
                embedded = await self._whole([kept], role, call)
            except RequestRefused:
                continue
            lost = max(_beyond(text, kept, int(embedded.tokens[0])), 1)
            return embedded._replace(
                truncated_tokens=np.asarray([lost], dtype=np.int64)
            )
        raise first

    async def _whole(self, texts: list[str], role: Role, call: Call) -> Embedded:
        """Send texts as they are."""
        expected = self._counted(texts).counts
        promised = self._charge(int(expected.sum()))

        async def attempt() -> tuple[tuple[DenseVectors, int], RequestCost]:
            reply = await self._send(texts, role)
            vectors = check_vectors(
                self.name, reply.rows, len(texts), self._width or self.dimensions
            )
            if isinstance(reply.model, str):
                self._answering = self._answering or reply.model
                if reply.model != self._answering:
                    what = f"{reply.model!r} answers now, and {self._answering!r} did before"
                    raise BackendError(
                        f"{self.name}: {what}: their vectors cannot be compared; run again with --fresh"
                    )
            self._width = vectors.shape[1]
            tokens = billed_tokens(
                reply.tokens, least=len(texts)
            )  # each has a token at least
            charge = self._charge(tokens) if tokens else promised
            return (vectors, charge.tokens), charge

        vectors, tokens = await self._caller.call(
            attempt, promised, call, promised.tokens
        )
        return Embedded(
            vectors,
            share_by_weight(tokens, expected),
            np.zeros(len(texts), dtype=np.int64),
        )


def check_vectors(
    name: str, rows: Iterable[tuple[int, Any]], count: int, width: int | None
) -> DenseVectors:
    """Return an answer's vectors as (n, d) of float32, in the order of their texts.

    Args:
        name: of who answered.
        rows: the place of each text and its vector: numbers, or the base64 form of 32-bit floats.
        count: of the texts.
        width: numbers that a vector must have; None: not known yet.

    Raises:
        BackendError: not one vector for each text, or one that no text can have.

    >>> check_vectors("it", [(1, [3.0]), (0, "AACAPw==")], 2, None).tolist()
    [[1.0], [3.0]]
    """
    ordered = sorted(rows, key=lambda row: row[0])
    if [place for place, _ in ordered] != list(range(count)):
        number = len(ordered) or "no"
        raise BackendError(
            f"{name}: {number} vectors came back for {count} texts, not one for each"
        )
    try:
        with np.errstate(
            over="ignore"
        ):  # what overflows is not finite, and refused as such
            vectors = np.stack([_numbers(vector) for _, vector in ordered])
    except (ValueError, TypeError):
        raise BackendError(
            f"{name}: vectors came back that are none, or of several dimensions"
        ) from None
    if vectors.ndim != 2 or vectors.shape[1] != (width or vectors.shape[1] or -1):
        instead = f" instead of {width}" if width else ""
        raise BackendError(
            f"{name}: a vector has {vectors.shape[-1]} dimensions{instead}"
        )
    if not np.isfinite(vectors).all():
        raise BackendError(f"{name}: a vector that is not finite came back")
    return vectors


def _numbers(vector: Any) -> npt.NDArray[np.float32]:
    if isinstance(vector, str):
        return np.frombuffer(binascii.a2b_base64(vector, strict_mode=True), dtype="<f4")
    return np.asarray(vector, dtype=np.float32)


def _beyond(text: str, kept: str, tokens: int) -> int:
    """The tokens that were cut off, as many to a character as in what was kept."""
    return -(-(len(text) - len(kept)) * tokens // len(kept))


def pack_requests(counts: Counts, size: int, total: int, alone: int) -> Iterator[range]:
    """Split texts into requests of at most `size` texts and `total` tokens; one of `alone` tokens goes alone.

    >>> list(pack_requests(np.array([1, 2, 3, 9, 4]), 3, 5, 9))
    [range(0, 2), range(2, 3), range(3, 4), range(4, 5)]
    """
    start, sum_ = 0, 0
    for i, count in enumerate(counts.tolist()):
        full = (
            i - start >= size
            or sum_ + count > total
            or count >= alone
            or counts[i - 1] >= alone
        )
        if full and i > start:
            yield range(start, i)
            start, sum_ = i, 0
        sum_ += count
    if len(counts) > start:
        yield range(start, len(counts))
