"""OpenAI's embeddings, and every server that speaks their protocol (vLLM, Ollama, LM Studio, TEI, Infinity)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from retrievers.errors import BackendError, InputError, Problem, check_positive
from retrievers.fingerprints import fingerprint
from retrievers.meter import Call
from retrievers.prices import Price, price_of
from retrievers.remote.faults import TooLong, Transient, retry_after, says_too_long
from retrievers.remote.redaction import redacted
from retrievers.remote.splitting import EmbeddingReply, EmbeddingRequests, packed, rectangular
from retrievers.tokens import Tokens, openai_tokens
from retrievers.types import Embedded, Encoder, Limits, Role

if TYPE_CHECKING:
    import openai

_URL = "https://api.openai.com/v1"
_INPUTS = 2048
_REQUEST_TOKENS = 300_000
_REMEDIES = {
    401: "; the key was refused: look at OPENAI_API_KEY or api_key",
    403: "; the key may not use this model",
    404: "; look at the model's name and at base_url",
}


class OpenAIEncoder(Encoder):
    """Embeds through OpenAI's SDK; the key is asked for at the first request, from the environment."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        api_key: str = "",
        dimensions: int | None = None,
        query_prompt: str = "",
        document_prompt: str = "",
        batch_size: int = 256,
        max_tokens: int = 8192,
        concurrency: int = 8,
        rpm: float = 0,
        tpm: float = 0,
        timeout: float = 60,
        patience: float = 300,
        price: float | None = None,
    ) -> None:
        """Describe the model; nothing is sent.

        Args:
            model: the provider's name for it.
            base_url: another server; left out, OpenAI's.
            api_key: "${NAME}" in an experiment; left out, OPENAI_API_KEY for OpenAI's own server, none for others.
            dimensions: fewer dimensions, where the model can.
            query_prompt: put before every query.
            document_prompt: put before every document.
            batch_size: texts a request, at most 2,048; their tokens stay below 300,000.
            max_tokens: tokens that the model reads of one text.
            concurrency: requests at once.
            rpm: requests a minute that the provider allows; 0: unknown.
            tpm: tokens a minute; 0: unknown.
            timeout: seconds for one try.
            patience: seconds after which a request that keeps failing is given up.
            price: dollars for a million tokens; left out, the list price, 0 for a server on this machine, and unknown
                for other servers.
        """
        check_positive(
            "encoder", batch_size=batch_size, concurrency=concurrency, max_tokens=max_tokens, timeout=timeout
        )
        if batch_size > _INPUTS:
            raise InputError(Problem("encoder.batch_size", f"{batch_size} is above OpenAI's {_INPUTS}"))
        self.model = model
        self._price = price_of("openai", model, own=price, base_url=base_url)
        self._base_url = base_url or _URL
        self._key = api_key
        self._dimensions = dimensions
        self._prompts: dict[Role, str] = {"query": query_prompt, "document": document_prompt}
        self._batch_size = batch_size
        self._timeout = timeout
        self._lock = Lock()
        self._client: openai.OpenAI | None = None
        self._limits = Limits(concurrency, rpm, tpm, patience, max_tokens)
        self._requests = EmbeddingRequests(self._limits, self._price, count=lambda texts: openai_tokens(texts).counts)

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: server, model, dimensions, prompts."""
        return fingerprint(
            "openai", self.model, server=self._base_url, dimensions=self._dimensions, prompts=self._prompts
        )

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        prompts = {f"{role}_prompt": prompt for role, prompt in self._prompts.items() if prompt}
        dimensions = {} if self._dimensions is None else {"dimensions": str(self._dimensions)}
        server = redacted(self._base_url, secrets=[self._key], keep=[self._base_url])
        return {"model": self.model, "source": server, **prompts, **dimensions}

    @property
    def price(self) -> Price | None:
        """The experiment's price, nothing for a server on this machine, else OpenAI's list price."""
        return self._price

    @property
    def limits(self) -> Limits:
        """The declared limits of the rate."""
        return self._limits

    @property
    def concurrency(self) -> int:
        """Requests at once."""
        return self._limits.concurrency

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that would be billed; no network."""
        return openai_tokens([self._prompts[role] + text for text in texts])

    def batches(self, texts: Sequence[str], role: Role) -> Iterator[Sequence[int]]:
        """Pack texts into requests by their tokens, those that may be too long alone."""
        counts = np.minimum(self.count(texts, role).counts, self._limits.tokens)
        return packed(counts, size=self._batch_size, total=_REQUEST_TOKENS, alone=self._limits.tokens)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Send one request; `tokens` are shared out from what the provider billed."""
        client = self._connected()  # before the clock of the rate runs: loading the SDK takes a second
        prompted = [self._prompts[role] + text for text in texts]
        return self._requests.embed(prompted, lambda some: self._send(client, some), call)

    def check(self) -> None:
        """Look for what a run needs, before it starts: the key.

        Raises:
            InputError: there is none.
        """
        _ = self._secret

    @property
    def _secret(self) -> str:
        if self._key:
            return self._key
        if self._base_url != _URL:
            return "none"
        if not os.environ.get("OPENAI_API_KEY"):
            raise InputError(
                Problem("OPENAI_API_KEY", "is not set in the environment", "export OPENAI_API_KEY=…, or give api_key")
            )
        return os.environ["OPENAI_API_KEY"]

    def _connected(self) -> openai.OpenAI:
        import openai

        with self._lock:
            if self._client is None:
                self._client = openai.OpenAI(
                    api_key=self._secret, base_url=self._base_url, max_retries=0, timeout=self._timeout
                )
            return self._client

    def _send(self, client: openai.OpenAI, texts: list[str]) -> EmbeddingReply:
        fewer: dict[str, Any] = {} if self._dimensions is None else {"dimensions": self._dimensions}
        try:
            answer = client.embeddings.create(input=texts, model=self.model, **fewer)
        except Exception as failure:
            raise self._understood(failure, len(texts)) from None
        rows = sorted(answer.data, key=lambda one: one.index)
        if [one.index for one in rows] != list(range(len(texts))):
            raise BackendError(f"{self._who}: {len(rows)} vectors came back for {len(texts)} texts, not one for each")
        return EmbeddingReply(
            rectangular([one.embedding for one in rows]), answer.usage.prompt_tokens if answer.usage else 0
        )

    def _understood(self, failure: Exception, count: int) -> Exception:
        """What a failure of the SDK means for the request."""
        import openai

        message = redacted(f"{self._who}: {failure}", secrets=[self._key], keep=[self.model])
        if isinstance(failure, openai.APIStatusError):
            status, code = failure.status_code, failure.code
            if status in {400, 413, 422} and says_too_long(str(failure)):
                return TooLong(message)
            if status >= 500 or (status in {408, 409, 425, 429} and code != "insufficient_quota"):
                wait = retry_after(failure.response.headers)
                return Transient(message, retry_after=wait, throttled=status in {429, 503})
            return BackendError(message + _REMEDIES.get(status, ""))
        if isinstance(failure, openai.APIConnectionError | json.JSONDecodeError) or _broken_off(failure):
            return Transient(message)
        if isinstance(failure, ValueError):  # the SDK's way to say that "data" is empty
            return BackendError(f"{self._who}: no vectors came back for {count} texts")
        return failure

    @property
    def _who(self) -> str:
        return f"{self._base_url} ({self.model})"


def _broken_off(failure: Exception) -> bool:
    """Whether the connection broke while the answer was read, which the SDK does not translate."""
    return type(failure).__module__.partition(".")[0] in {"httpx", "httpx2", "httpcore", "httpcore2"}
