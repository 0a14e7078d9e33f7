"""OpenAI's embeddings, and every server that speaks their protocol: docs/how-to/providers.md has ready blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from retrievers.errors import BackendError, InputError, Problem, check_not_negative, check_positive
from retrievers.fingerprints import fingerprint
from retrievers.meter import Call, Stop
from retrievers.prices import Price, price_of
from retrievers.remote.redaction import as_written, as_written_json, secrets_in, shown
from retrievers.remote.secrets import is_server_of, key_of
from retrievers.remote.service import (
    AnswerPart,
    JsonService,
    Listed,
    Refusal,
    Server,
    check_address,
    understood,
)
from retrievers.remote.service import (
    TokenCount as Billed,
)
from retrievers.remote.splitting import EmbeddingReply, EmbeddingRequests, packed, rectangular, unpacked
from retrievers.tokens import Tokens, openai_tokens
from retrievers.types import MOST_DIMENSIONS, Embedded, Encoder, Limits, Role

_URL = "https://api.openai.com/v1"
_INPUTS = 2048
_REQUEST_TOKENS = 300_000


class _Row(AnswerPart):
    index: Annotated[int, Field(ge=0)]
    embedding: Annotated[Listed[float], Field(min_length=1)] | Annotated[str, Field(min_length=1)]
    """Numbers, or the base64 form of 32-bit floats; a server may send the first where it was asked for the second."""


class _Usage(AnswerPart):
    prompt_tokens: Billed | None = None
    total_tokens: Billed | None = None
    """What Voyage gives alone."""


class _Embeddings(AnswerPart):
    data: Listed[_Row]
    usage: _Usage | None = None


class _NoPacking(Exception):
    """The server refuses `encoding_format`."""


class OpenAIEncoder(Encoder):
    """Embeds through OpenAI's protocol; the key is asked for at the first request, from the environment."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        api_key: str = "",
        headers: Mapping[str, str] | None = None,
        dimensions: int | None = None,
        query_prompt: str = "",
        document_prompt: str = "",
        query_extra: Mapping[str, Any] | None = None,
        document_extra: Mapping[str, Any] | None = None,
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
            base_url: another server; left out, OpenAI's. A query in it, such as Azure's `?api-version=…`, is kept.
            api_key: "${NAME}" in an experiment; left out, OPENAI_API_KEY for OpenAI's own server, none for others.
            headers: sent with every request, secrets as "${NAME}": `{ api-key = "${AZURE_OPENAI_API_KEY}" }`.
            dimensions: fewer dimensions, where the model can.
            query_prompt: put before every query.
            document_prompt: put before every document.
            query_extra: added to the body of every request of queries: `{ input_type = "query" }`.
            document_extra: added to the body of every request of documents: `{ input_type = "document" }`.
            batch_size: texts a request, at most 2,048; their tokens stay below 300,000.
            max_tokens: tokens that the model reads of one text.
            concurrency: requests at once.
            rpm: requests a minute that the provider allows; 0: unknown.
            tpm: tokens a minute; 0: unknown.
            timeout: seconds for one whole answer.
            patience: seconds after which a request that keeps failing is given up.
            price: dollars for a million tokens; left out, the list price, 0 for a server on this machine, and unknown
                for other servers.
        """
        check_positive(
            "encoder", batch_size=batch_size, concurrency=concurrency, max_tokens=max_tokens, timeout=timeout,
            patience=patience, dimensions=1 if dimensions is None else dimensions,
        )  # fmt: skip
        check_not_negative("encoder", rpm=rpm, tpm=tpm, price=price)
        if dimensions is not None and dimensions > MOST_DIMENSIONS:
            raise InputError(Problem("encoder.dimensions", f"{dimensions} is above {MOST_DIMENSIONS}"))
        if batch_size > _INPUTS:
            raise InputError(Problem("encoder.batch_size", f"{batch_size} is above OpenAI's {_INPUTS}"))
        if base_url:
            check_address("encoder.base_url", base_url)
        self.model = model
        self._price = price_of("openai", model, own=price, base_url=base_url)
        self._base_url = base_url or _URL
        self._key = api_key
        self._headers = dict(headers or {})
        self._dimensions = dimensions
        self._prompts: dict[Role, str] = {"query": query_prompt, "document": document_prompt}
        self._extra: dict[Role, Mapping[str, Any]] = {"query": query_extra or {}, "document": document_extra or {}}
        self._batch_size = batch_size
        self._timeout = timeout
        self._lock = Lock()
        self._service: JsonService | None = None
        self._packing: dict[str, Any] = {"encoding_format": "base64"}
        self._limits = Limits(concurrency, rpm, tpm, patience, max_tokens)
        self._requests = EmbeddingRequests(self._limits, self._price, count=lambda texts: openai_tokens(texts).counts)

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: server, model, dimensions, prompts, what is added to the body."""
        return self._named(self._prompts, self._extra)

    def fingerprint_for(self, role: Role) -> str:
        """All that changes a vector in this role: not what is sent with the other."""
        bare: dict[Role, str] = {"query": "", "document": ""}
        nothing: dict[Role, Mapping[str, Any]] = {"query": {}, "document": {}}
        return self._named(bare | {role: self._prompts[role]}, nothing | {role: self._extra[role]})

    def _named(self, prompts: Mapping[Role, str], extra: Mapping[Role, Mapping[str, Any]]) -> str:
        added = {"extra": extra} if any(extra.values()) else {}
        return fingerprint(
            "openai", self.model, server=self._base_url, dimensions=self._dimensions, prompts=prompts, **added
        )

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        prompts = {f"{role}_prompt": as_written(prompt) for role, prompt in self._prompts.items() if prompt}
        extra = {f"{role}_extra": as_written_json(extra) for role, extra in self._extra.items() if extra}
        dimensions = {} if self._dimensions is None else {"dimensions": str(self._dimensions)}
        return {"model": as_written(self.model), "source": shown(self._base_url), **prompts, **extra, **dimensions}

    @property
    def price(self) -> Price | None:
        """The experiment's price, nothing for a server on this machine, else OpenAI's list price."""
        return self._price

    @property
    def limits(self) -> Limits:
        """The declared limits of the rate."""
        return self._limits

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that would be billed; no network."""
        return openai_tokens([self._prompts[role] + text for text in texts])

    def batches(self, texts: Sequence[str], role: Role) -> Iterator[Sequence[int]]:
        """Pack texts into requests by their tokens, those that may be too long alone."""
        counts = np.minimum(self.count(texts, role).counts, self._limits.tokens)
        return packed(counts, size=self._batch_size, total=_REQUEST_TOKENS, alone=self._limits.tokens)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Send one request; `tokens` are shared out from what the provider billed."""
        service = self._connected()  # before the clock of the rate runs
        prompted = [self._prompts[role] + text for text in texts]
        return self._requests.embed(prompted, lambda some: self._send(service, some, role, call.stopped), call)

    def check(self) -> None:
        """Look for what a run needs, before it starts: the key.

        Raises:
            InputError: there is none.
        """
        _ = self._secret

    @property
    def _own(self) -> bool:
        """Whether the server is OpenAI's."""
        return is_server_of(self._base_url, _URL)

    @property
    def _secret(self) -> str:
        return key_of(self._key, "OPENAI_API_KEY") if self._own else self._key

    def _connected(self) -> JsonService:
        with self._lock:
            if self._service is None:
                key = self._secret
                headers = {"Authorization": f"Bearer {key}"} if key else {}
                if self._own:  # which account is billed is OpenAI's affair alone
                    accounts = (("OpenAI-Organization", "OPENAI_ORG_ID"), ("OpenAI-Project", "OPENAI_PROJECT_ID"))
                    headers |= {name: os.environ[variable] for name, variable in accounts if os.environ.get(variable)}
                server = Server(
                    self._base_url,
                    self.model,
                    {**headers, **self._headers},
                    tuple(secrets_in(self._prompts, self._extra)) + ((key,) if key else ()),
                    self._timeout,
                    self._limits.concurrency,
                )
                self._service = JsonService(server, _understood)
            return self._service

    def _send(self, service: JsonService, texts: list[str], role: Role, stopped: Stop) -> EmbeddingReply:
        fewer: dict[str, Any] = {} if self._dimensions is None else {"dimensions": self._dimensions}
        body = {"input": texts, "model": self.model, **self._packing, **fewer, **self._extra[role]}
        try:
            answer = service.ask("embeddings", body, _Embeddings, stopped)
        except _NoPacking:
            self._packing = {}  # decimals say the same numbers in more bytes
            body.pop("encoding_format")
            answer = service.ask("embeddings", body, _Embeddings, stopped)
        rows = sorted(answer.data, key=lambda one: one.index)
        if [one.index for one in rows] != list(range(len(texts))):
            count = len(rows) or "no"
            raise BackendError(f"{service.server.name}: {count} vectors came back for {len(texts)} texts, "
                               "not one for each")  # fmt: skip
        usage = answer.usage or _Usage()
        vectors = rectangular([unpacked(one.embedding) for one in rows])
        return EmbeddingReply(vectors, usage.prompt_tokens or usage.total_tokens or 0)


def _understood(refusal: Refusal) -> Exception:
    """What a refusal means; a server that will not pack vectors says so in words of its own."""
    if refusal.status in {400, 422} and "encoding_format" in refusal.words:
        return _NoPacking(refusal.message)
    return understood(refusal)
