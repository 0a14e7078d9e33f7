"""An encoder behind an API.

Texts are packed into requests. One that the provider refuses is split, down to a single
text; of that, as long a beginning is embedded as the provider accepts, and the tokens
beyond it are counted as truncated. A subclass sends one request and reads the reply
(`_send`); `services/remote_model.py` has the access, `services/caller.py` retries and
budget.
"""

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
from retrievers.facts import Fact, ModelFacts
from retrievers.identity import fingerprint
from retrievers.meter import Call
from retrievers.model import Encoder
from retrievers.options.placeholders import expand, redact_url
from retrievers.services.caller import MAX_EQUAL_ERRORS, PaidAnswer
from retrievers.services.concurrency import run_request
from retrievers.services.remote_model import (
    RemoteModel,
    billed_tokens,
    share_by_weight,
    split_when_refused,
)
from retrievers.services.service_errors import RepeatedError, RequestRefused
from retrievers.texts.token_estimate import Counts, Tokens, estimate_tokens

MAX_TEXT_HALVINGS = 5
"""How often a text that is refused is cut in half, at most."""


class EmbeddingRow(NamedTuple):
    """The vector of one text in a reply."""

    position: int
    """The text's position in the request."""
    vector: Any
    """Numbers, or the base64 form of 32-bit floats."""


class EmbeddingReply(NamedTuple):
    """The reply to one request, unchecked."""

    rows: Sequence[EmbeddingRow]
    tokens: object = None
    """Billed tokens, as the service says; None if it does not."""
    model: object = None
    """The service's name for the model."""


class _WholeVectors(NamedTuple):
    """Checked vectors of texts that were not cut, and the tokens billed for them."""

    vectors: DenseVectors
    tokens: int


class RemoteEncoder(RemoteModel, Encoder):
    """An encoder behind an API; each provider defines a request and reads the reply.

    A batch that is refused is split; a single text is halved until it is accepted, at
    most MAX_TEXT_HALVINGS times, and counted as truncated.
    """

    kind: ClassVar[str]
    max_request_tokens: ClassVar[int] = sys.maxsize
    """Tokens of all texts of one request, at most."""
    refuses_long_texts: ClassVar[bool] = True
    """Whether the provider refuses texts that it cannot read to the end.

    A text that may be too long is then sent alone."""
    dimensions: Annotated[int, Field(ge=1, le=MAX_DIMENSIONS)] | None = None
    """Fewer dimensions, where the model can."""
    batch_size: Annotated[int, Field(ge=1, le=96)] = 96
    """Texts a request, at most."""
    _received_dimensions: int | None = None
    """Dimensions of the vectors received; None before the first reply."""
    _longest_accepted: int = 0
    """Tokens, as we count them, of the longest text that was embedded whole."""
    _answering_model: str = ""
    """The service's name for the model that replied first."""

    @property
    def max_characters(self) -> int:
        """Characters of one text that the provider accepts, at most; 0: no limit."""
        return 0

    @property
    def _prompts(self) -> Mapping[Role, str]:
        """The text before every query and every document."""
        return {
            "query": getattr(self, "query_prompt", ""),
            "document": getattr(self, "document_prompt", ""),
        }

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: server, model, dimensions, roles' options."""
        return self._fingerprint_of(**self._role_options)

    def fingerprint_for(self, role: Role) -> str:
        """Return all that changes a vector in this role, not the other's options."""
        role_options = {}
        for name, options in self._role_options.items():
            role_options[name] = {
                each_role: option if each_role == role else type(option)()
                for each_role, option in options.items()
            }
        return self._fingerprint_of(**role_options)

    @property
    def _role_options(self) -> Mapping[str, Mapping[Role, Any]]:
        """Options of each role, by their name in the fingerprint."""
        return {"prompts": self._prompts}

    def _fingerprint_of(self, **role_options: Any) -> str:
        """Return the fingerprint for some options of the roles."""
        return fingerprint(
            self.kind,
            self.model,
            server=self._url,
            dimensions=self.dimensions,
            **role_options,
        )

    def _dimensions_option(self, name: str) -> dict[str, int]:
        """Return the dimensions by the provider's name; empty if none are set."""
        return {} if self.dimensions is None else {name: self.dimensions}

    @abstractmethod
    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        """Send one request.

        Raises:
            TransientFailure: the failure may pass.
            RequestRefused: the provider refuses the texts.
            BackendError: the request failed for good.
        """

    def _count_billed(self, texts: Sequence[str]) -> Tokens:
        """Return the tokens billed for texts with their prompts, without network."""
        return Tokens(estimate_tokens(texts), exact=False)

    def _facts(self, *provider_settings: Fact) -> ModelFacts:
        """Return what the manifest records, with settings of the provider."""
        prompts = [
            Fact(f"{role}_prompt", prompt)
            for role, prompt in self._prompts.items()
            if prompt
        ]
        return ModelFacts(
            model=self.model,
            source=redact_url(self._url),
            settings=(*prompts, *provider_settings),
            dimensions=self.dimensions,
        )

    def _with_prompts(self, texts: Sequence[str], role: Role) -> list[str]:
        """Return texts with the role's prompt before them."""
        prompt = expand(self._prompts[role])
        return [prompt + text for text in texts]

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Return the tokens that would be billed, with those of the prompt."""
        return self._count_billed(self._with_prompts(texts, role))

    def batches(self, texts: Sequence[str], role: Role) -> Iterator[Sequence[int]]:
        """Pack texts into requests by tokens.

        A text of the limit or more goes alone if it may be refused.
        """
        limit = self._limits.tokens
        counts = np.minimum(self.count(texts, role).counts, limit)
        return pack_requests(
            counts,
            max_texts=self.request_size,
            max_tokens=self.max_request_tokens,
            # Counts are at most `limit`: with one more, no text goes alone.
            lone_tokens=limit if self.refuses_long_texts else limit + 1,
        )

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Embed the texts of one request, which is split if it is refused.

        Billed `tokens` are divided among the texts.

        Raises:
            BackendError: a request failed for good; OverBudget before it is sent.
            InputError: a key is missing.
        """
        self._client()  # here, not in the event loop
        prompted_texts = self._with_prompts(texts, role)
        sent_texts = [text[: self.max_characters or None] for text in prompted_texts]

        async def send(some_texts: list[str]) -> Embedded:
            return await self._embed_accepted(some_texts, role, call)

        request = split_when_refused(sent_texts, send)
        embedded = Embedded.concatenate(run_request(request, call.stopped))
        # Of a text that was refused, only a beginning has tokens.
        sent_tokens = (embedded.tokens + embedded.truncated_tokens).tolist()
        truncated = embedded.truncated_tokens + np.asarray(
            [
                _estimate_cut_tokens(text, sent_text, tokens)
                for text, sent_text, tokens in zip(
                    prompted_texts, sent_texts, sent_tokens, strict=True
                )
            ],
            dtype=np.int64,
        )
        return embedded._replace(truncated_tokens=truncated)

    async def _embed_accepted(
        self, texts: list[str], role: Role, call: Call
    ) -> Embedded:
        """Embed texts; of one that is refused, as much as the provider accepts.

        Raises:
            RequestRefused: several texts are refused, or even the beginning of one; the
                message is that of the whole text.
        """
        try:
            return await self._embed_whole(texts, role, call)
        except RequestRefused as refusal:
            whole_refusal = refusal
        if len(texts) > 1:
            raise whole_refusal
        (text,) = texts
        if isinstance(whole_refusal, RepeatedError):
            return await self._embed_after_errors(text, role, call)
        beginning = await self._embed_beginning(text, role, call)
        if beginning is None:
            raise whole_refusal
        return beginning

    async def _embed_after_errors(self, text: str, role: Role, call: Call) -> Embedded:
        """Embed a text to which the server answered with equal errors 500.

        It may be too long, or the server broken, or overloaded for a while. So the
        whole text is tried once more, even if a beginning was accepted; only if that
        fails, too, the beginning is returned.

        Raises:
            BackendError: the errors go on; RequestRefused if even the beginning is
                refused.
        """
        beginning = None
        if await self._may_be_too_long(text, role, call):
            beginning = await self._embed_beginning(text, role, call)
        try:
            return await self._embed_whole([text], role, call, max_equal_errors=1)
        except RequestRefused as refusal:
            is_error = isinstance(refusal, RepeatedError)
            if beginning is None and not is_error:  # the server is well, and refuses it
                beginning = await self._embed_beginning(text, role, call)
            if beginning is not None:
                return beginning
            if is_error:
                reason = f"{refusal} ({MAX_EQUAL_ERRORS} equal errors)"
                raise BackendError(reason) from None
            raise

    async def _embed_beginning(
        self, text: str, role: Role, call: Call
    ) -> Embedded | None:
        """Embed the longest half, quarter … that is accepted; None if none is."""
        for halving in range(1, MAX_TEXT_HALVINGS + 1):
            beginning = text[: len(text) >> halving]
            if not beginning.strip():
                break
            try:
                embedded = await self._embed_whole([beginning], role, call)
            except RequestRefused:
                continue
            tokens = int(embedded.tokens[0])
            cut_tokens = max(_estimate_cut_tokens(text, beginning, tokens), 1)
            truncated = np.asarray([cut_tokens], dtype=np.int64)
            return embedded._replace(truncated_tokens=truncated)
        return None

    async def _may_be_too_long(self, text: str, role: Role, call: Call) -> bool:
        """Return whether a text that fails may be too long, and not the server broken.

        Its shortest beginning is accepted, and no text as long has been.
        """
        tokens = int(self._count_billed([text]).counts[0])
        shortest = text[: len(text) >> MAX_TEXT_HALVINGS]
        if tokens <= self._longest_accepted or not shortest.strip():
            return False
        try:
            await self._embed_whole([shortest], role, call, max_equal_errors=1)
        except RepeatedError:
            return False
        return True

    async def _embed_whole(
        self,
        texts: list[str],
        role: Role,
        call: Call,
        *,
        max_equal_errors: int = MAX_EQUAL_ERRORS - 1,
    ) -> Embedded:
        """Embed texts in one request, none of them cut.

        Args:
            texts: the texts, with their prompts.
            role: their role.
            call: counts the cost, and stops the request.
            max_equal_errors: equal errors 500 in a row that end the tries. Fewer than
                MAX_EQUAL_ERRORS are a RepeatedError, a kind of refusal: the default
                leaves `_embed_after_errors` one more try.

        Raises:
            RequestRefused: they are refused; RepeatedError: by so many equal errors.
        """
        expected_tokens = self._count_billed(texts).counts
        expected_cost = self._billed_cost(int(expected_tokens.sum()))

        async def attempt() -> PaidAnswer[_WholeVectors]:
            reply = await self._send(texts, role)
            dimensions = self._received_dimensions or self.dimensions
            vectors = check_vectors(self.name, reply.rows, len(texts), dimensions)
            self._check_model(reply.model)
            self._received_dimensions = vectors.shape[1]
            # A text has at least one token.
            tokens = billed_tokens(reply.tokens, minimum=len(texts))
            cost = self._billed_cost(tokens) if tokens else expected_cost
            return PaidAnswer(_WholeVectors(vectors, cost.tokens), cost)

        answer = await self._caller.call(
            attempt,
            expected_cost,
            call,
            expected_cost.tokens,
            max_equal_errors=max_equal_errors,
        )
        longest = int(expected_tokens.max())
        self._longest_accepted = max(self._longest_accepted, longest)
        return Embedded(
            vectors=answer.vectors,
            tokens=share_by_weight(answer.tokens, expected_tokens),
            truncated_tokens=np.zeros(len(texts), dtype=np.int64),
        )

    def _check_model(self, model: object) -> None:
        """Raise BackendError if another model replies than before."""
        if not isinstance(model, str):
            return
        self._answering_model = self._answering_model or model
        if model != self._answering_model:
            raise BackendError(
                f"{self.name}: {model!r} answers now, and {self._answering_model!r} "
                "did before: their vectors cannot be compared; run again with --fresh "
                "(in Python fresh=True)"
            )


def check_vectors(
    name: str, rows: Iterable[EmbeddingRow], count: int, dimensions: int | None
) -> DenseVectors:
    """Return a reply's vectors as (n, d) of float32, in the order of their texts.

    Args:
        name: the service's name in messages.
        rows: the vectors.
        count: the number of texts.
        dimensions: numbers that a vector must have; None if unknown.

    Raises:
        BackendError: there is not one vector for each text, or a vector is invalid.

    >>> rows = [EmbeddingRow(1, [3.0]), EmbeddingRow(0, "AACAPw==")]
    >>> check_vectors("it", rows, 2, None).tolist()
    [[1.0], [3.0]]
    """
    ordered = sorted(rows, key=lambda row: row[0])
    if [position for position, _ in ordered] != list(range(count)):
        raise BackendError(
            f"{name} returned {len(ordered) or 'no'} vectors for {count} texts, "
            "not one for each"
        )
    try:
        # Numbers that overflow are not finite, and refused below.
        with np.errstate(over="ignore"):
            vectors = np.stack([_as_float32(vector) for _, vector in ordered])
    except (ValueError, TypeError, OverflowError):
        raise BackendError(
            f"{name} returned no vectors of numbers, or of several dimensions"
        ) from None
    if vectors.ndim != 2 or vectors.shape[1] != (dimensions or vectors.shape[1] or -1):
        expected = f" instead of {dimensions}" if dimensions else ""
        raise BackendError(
            f"{name}: a vector has {vectors.shape[-1]} dimensions{expected}"
        )
    finite_rows = np.isfinite(vectors).all(axis=1)
    if not finite_rows.all():
        row = int(np.argmin(finite_rows))
        number = "NaN" if np.isnan(vectors[row]).any() else "infinity"
        raise BackendError(
            f"{name}: the server returned {number} for text {row + 1:,} of {count:,}"
        )
    return vectors


def _as_float32(vector: Any) -> npt.NDArray[np.float32]:
    """Return a vector of numbers, or of their base64 form."""
    if isinstance(vector, str):
        return np.frombuffer(binascii.a2b_base64(vector, strict_mode=True), dtype="<f4")
    return np.asarray(vector, dtype=np.float32)


def _estimate_cut_tokens(text: str, beginning: str, beginning_tokens: int) -> int:
    """Return the tokens that were cut off, by the tokens per character before them."""
    cut_characters = len(text) - len(beginning)
    return -(-cut_characters * beginning_tokens // len(beginning))


def pack_requests(
    counts: Counts, *, max_texts: int, max_tokens: int, lone_tokens: int
) -> Iterator[range]:
    """Split texts into requests: the positions of each, in order.

    Args:
        counts: the tokens of each text.
        max_texts: texts of one request, at most.
        max_tokens: tokens of one request, at most; a longer text is sent alone.
        lone_tokens: a text with so many tokens or more is sent alone.

    >>> counts = np.array([1, 2, 3, 9, 4])
    >>> list(pack_requests(counts, max_texts=3, max_tokens=5, lone_tokens=9))
    [range(0, 2), range(2, 3), range(3, 4), range(4, 5)]
    """
    start = 0
    request_tokens = 0
    for i, count in enumerate(counts.tolist()):
        is_full = i - start >= max_texts or request_tokens + count > max_tokens
        # This text, or the one before it.
        is_alone = count >= lone_tokens or counts[i - 1] >= lone_tokens
        if i > start and (is_full or is_alone):
            yield range(start, i)
            start = i
            request_tokens = 0
        request_tokens += count
    if len(counts) > start:
        yield range(start, len(counts))
