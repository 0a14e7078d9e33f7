"""Google's Gemini embeddings in their own protocol, with a task for each text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Annotated, Any
from urllib.parse import quote

import numpy as np
from pydantic import Field

from retrievers.errors import BackendError, InputError, Problem, check_not_negative, check_positive
from retrievers.fingerprints import fingerprint
from retrievers.meter import Call, Stop
from retrievers.prices import Price, price_of
from retrievers.ragged import dense, unit_rows
from retrievers.remote.redaction import Expanded, as_written, secrets_in, shown
from retrievers.remote.secrets import is_server_of, key_of
from retrievers.remote.service import AnswerPart, JsonService, Listed, Server, check_address
from retrievers.remote.service import TokenCount as Billed
from retrievers.remote.splitting import EmbeddingReply, EmbeddingRequests, packed, rectangular
from retrievers.tokens import Tokens, estimate
from retrievers.types import Embedded, Encoder, Limits, Role

_URL = "https://generativelanguage.googleapis.com/v1beta"
_TEXTS = 100


class _Row(AnswerPart):
    values: Annotated[Listed[float], Field(min_length=1)]


class _Usage(AnswerPart):
    prompt_tokens: Annotated[Billed | None, Field(alias="promptTokenCount")] = None


class _Embeddings(AnswerPart):
    embeddings: Listed[_Row]
    usage: Annotated[_Usage | None, Field(alias="usageMetadata")] = None


class GeminiEncoder(Encoder):
    """Embeds with Gemini's batchEmbedContents; vectors of fewer dimensions are brought to length 1."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        api_key: str = "",
        dimensions: int | None = None,
        query_task: str = "RETRIEVAL_QUERY",
        document_task: str = "RETRIEVAL_DOCUMENT",
        query_prompt: str = "",
        document_prompt: str = "",
        batch_size: int = _TEXTS,
        max_tokens: int = 2048,
        concurrency: int = 8,
        rpm: float = 0,
        tpm: float = 0,
        timeout: float = 60,
        patience: float = 300,
        price: float | None = None,
    ) -> None:
        """Describe the model; nothing is sent.

        Args:
            model: such as gemini-embedding-001.
            base_url: another server that speaks this protocol; left out, Google's.
            api_key: "${NAME}" in an experiment; left out, GEMINI_API_KEY or GOOGLE_API_KEY for Google's own server,
                none for others.
            dimensions: fewer dimensions.
            query_task: the task type of queries, such as QUESTION_ANSWERING; "" for a model that takes none.
            document_task: the task type of documents; "" for a model that takes none.
            query_prompt: put before every query.
            document_prompt: put before every document.
            batch_size: texts a request, at most 100.
            max_tokens: tokens that the model reads of one text; the service drops the rest without a word, so that it
                is counted from an estimate.
            concurrency: requests at once.
            rpm: requests a minute that the account may send; 0: unknown.
            tpm: tokens a minute; 0: unknown.
            timeout: seconds for one whole answer.
            patience: seconds after which a request that keeps failing is given up.
            price: dollars for a million tokens; left out, the list price, and unknown for another server.
        """
        check_positive("encoder", batch_size=batch_size, concurrency=concurrency, timeout=timeout, patience=patience,
                       max_tokens=max_tokens, dimensions=1 if dimensions is None else dimensions)  # fmt: skip
        check_not_negative("encoder", rpm=rpm, tpm=tpm, price=price)
        if batch_size > _TEXTS:
            raise InputError(Problem("encoder.batch_size", f"{batch_size} is above Gemini's {_TEXTS}"))
        if base_url:
            check_address("encoder.base_url", base_url)
        plain = model.removeprefix("models/")
        self.model = Expanded(plain, model.written) if isinstance(model, Expanded) else plain
        self._price = price_of("gemini", self.model, own=price, base_url=base_url)
        self._base_url = base_url or _URL
        self._key = api_key
        self._dimensions = dimensions
        self._tasks: dict[Role, str] = {"query": query_task, "document": document_task}
        self._prompts: dict[Role, str] = {"query": query_prompt, "document": document_prompt}
        self._batch_size = batch_size
        self._timeout = timeout
        self._lock = Lock()
        self._service: JsonService | None = None
        self._limits = Limits(concurrency, rpm, tpm, patience, max_tokens)
        self._requests = EmbeddingRequests(self._limits, self._price, count=estimate)

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: server, model, dimensions, tasks, prompts."""
        return self._named(self._tasks, self._prompts)

    def fingerprint_for(self, role: Role) -> str:
        """All that changes a vector in this role: not the task and the prompt of the other."""
        bare: dict[Role, str] = {"query": "", "document": ""}
        return self._named(bare | {role: self._tasks[role]}, bare | {role: self._prompts[role]})

    def _named(self, tasks: Mapping[Role, str], prompts: Mapping[Role, str]) -> str:
        return fingerprint("gemini", self.model, server=self._base_url, dimensions=self._dimensions,
                           tasks=tasks, prompts=prompts)  # fmt: skip

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        prompts = {f"{role}_prompt": as_written(prompt) for role, prompt in self._prompts.items() if prompt}
        tasks = {f"{role}_extra": f"taskType {task}" for role, task in self._tasks.items() if task}
        dimensions = {} if self._dimensions is None else {"dimensions": str(self._dimensions)}
        return {"model": as_written(self.model), "source": shown(self._base_url), **prompts, **tasks, **dimensions}

    @property
    def price(self) -> Price | None:
        """The experiment's price, else Google's list price."""
        return self._price

    @property
    def limits(self) -> Limits:
        """The declared limits of the rate."""
        return self._limits

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Estimate the tokens that would be billed; no network."""
        return Tokens(estimate([self._prompts[role] + text for text in texts]), exact=False)

    def batches(self, texts: Sequence[str], role: Role) -> Iterator[Sequence[int]]:
        """Pack texts into requests."""
        counts = np.minimum(self.count(texts, role).counts, self._limits.tokens)
        return packed(counts, size=self._batch_size, total=self._limits.tokens * _TEXTS, alone=self._limits.tokens + 1)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Send one request; what the model did not read of long texts is estimated."""
        service = self._connected()
        prompted = [self._prompts[role] + text for text in texts]
        embedded = self._requests.embed(prompted, lambda some: self._send(service, some, role, call.stopped), call)
        unread = np.maximum(estimate(prompted) - self._limits.tokens, 0)
        return embedded._replace(lost=np.maximum(embedded.lost, unread))

    def check(self) -> None:
        """Look for what a run needs, before it starts: the key.

        Raises:
            InputError: there is none.
        """
        _ = self._secret

    @property
    def _secret(self) -> str:
        own = is_server_of(self._base_url, _URL)
        return key_of(self._key, "GEMINI_API_KEY", "GOOGLE_API_KEY") if own else self._key

    def _connected(self) -> JsonService:
        with self._lock:
            if self._service is None:
                key = self._secret
                headers = {"x-goog-api-key": key} if key else {}
                secrets = (key, *secrets_in(self._base_url, self._prompts))
                server = Server(self._base_url, self.model, headers, secrets, self._timeout, self._limits.concurrency)
                self._service = JsonService(server)
            return self._service

    def _send(self, service: JsonService, texts: list[str], role: Role, stopped: Stop) -> EmbeddingReply:
        more: dict[str, Any] = {"taskType": self._tasks[role]} if self._tasks[role] else {}
        if self._dimensions is not None:
            more["outputDimensionality"] = self._dimensions
        name = f"models/{self.model}"
        requests = [{"model": name, "content": {"parts": [{"text": text}]}, **more} for text in texts]
        path = f"models/{quote(self.model, safe='')}:batchEmbedContents"
        answer = service.ask(path, {"requests": requests}, _Embeddings, stopped)
        if len(answer.embeddings) != len(texts):
            count = len(answer.embeddings) or "no"
            raise BackendError(f"{service.server.name}: {count} vectors came back for {len(texts)} texts")
        vectors = rectangular([row.values for row in answer.embeddings])
        tokens = answer.usage.prompt_tokens if answer.usage else None
        return EmbeddingReply(vectors if self._dimensions is None else dense(unit_rows(vectors)), tokens or 0)
