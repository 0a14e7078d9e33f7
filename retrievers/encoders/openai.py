"""OpenAI's embeddings, and every server that speaks their protocol: docs/how-to/providers.md has ready blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from retrievers.costs import Tokens, openai_tokens
from retrievers.errors import BackendError, InputError, Problem
from retrievers.remote.http_client import (
    AZURE_KEY,
    BASE_URL,
    KEY,
    OPENAI_URL,
    AnswerPart,
    Listed,
    OpenAIClient,
    Refusal,
    TokenCount,
    by_deployment,
    check_address,
    is_azure,
    server_url,
    to_exception,
)
from retrievers.remote.redaction import as_written_json
from retrievers.remote.remote_encoder import (
    EmbeddingReply,
    RemoteEncoder,
    rectangular,
    unpacked,
)
from retrievers.remote.remote_model import Access
from retrievers.types import MOST_DIMENSIONS, Role


class _Row(AnswerPart):
    index: Annotated[int, Field(ge=0)]
    embedding: Annotated[Listed[float], Field(min_length=1)] | Annotated[str, Field(min_length=1)]
    """Numbers, or the base64 form of 32-bit floats; a server may send the first where it was asked for the second."""


class _Usage(AnswerPart):
    prompt_tokens: TokenCount | None = None
    total_tokens: TokenCount | None = None
    """What Voyage gives alone."""


class _Embeddings(AnswerPart):
    data: Listed[_Row]
    usage: _Usage | None = None


class _NoPacking(BackendError):
    """The server refuses `encoding_format`."""


class OpenAIEncoder(RemoteEncoder):
    """Embeds through OpenAI's protocol; the key is asked for at the first request, from the environment."""

    service = "OpenAI's server"
    kind = "openai"
    most_texts = 2048
    most_tokens = 300_000

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        api_key: str = "",
        headers: Mapping[str, str] | None = None,
        query_prompt: str = "",
        document_prompt: str = "",
        query_extra: Mapping[str, Any] | None = None,
        document_extra: Mapping[str, Any] | None = None,
        batch_size: int = 256,
        max_tokens: int = 8192,
        **options: Any,
    ) -> None:
        """Describe the model; nothing is sent.

        Args:
            model: the provider's name for it.
            base_url: another server; left out, OPENAI_BASE_URL, else OpenAI's. A query in it, such as Azure's
                `?api-version=…`, is kept.
            api_key: "${NAME}" in an experiment; left out, OPENAI_API_KEY for OpenAI's own server and that of
                OPENAI_BASE_URL, AZURE_OPENAI_API_KEY for Azure's, none for others.
            headers: sent with every request, secrets as "${NAME}": `{ api-key = "${AZURE_OPENAI_API_KEY}" }`.
            query_prompt: put before every query.
            document_prompt: put before every document.
            query_extra: added to the body of every request of queries: `{ input_type = "query" }`.
            document_extra: added to the body of every request of documents: `{ input_type = "document" }`.
            batch_size: texts a request, at most 2,048; their tokens stay below 300,000.
            max_tokens: tokens that the model reads of one text.
            options: of every remote encoder.
        """
        url = server_url(base_url)
        check_address("encoder.base_url" if base_url else BASE_URL, url)
        headers = dict(headers or {})
        azure = is_azure(url) and not {name.lower() for name in headers} & {"api-key", "authorization"}
        self._extra: dict[Role, Mapping[str, Any]] = {
            "query": dict(query_extra or {}),
            "document": dict(document_extra or {}),
        }
        self._encoding: dict[str, Any] = {"encoding_format": "base64"}
        access = Access(
            provider="openai", own=OPENAI_URL if base_url and not azure else url,
            base_url="" if url == OPENAI_URL else url, api_key=api_key, headers=headers,
            variables=(AZURE_KEY,) if azure else (KEY,),
            key_header="api-key" if azure or by_deployment(url) else "Authorization",
            sent=(query_prompt, document_prompt, self._extra),
        )  # fmt: skip
        super().__init__(
            model, access, batch_size, max_tokens, {"query": query_prompt, "document": document_prompt}, **options
        )  # fmt: skip
        if self._dimensions is not None and self._dimensions > MOST_DIMENSIONS:
            raise InputError(Problem("encoder.dimensions", f"{self._dimensions} is above {MOST_DIMENSIONS}"))

    @property
    def _by_role(self) -> Mapping[str, Mapping[Role, Any]]:
        return {"prompts": self._prompts, "extra": self._extra}

    def _named(self, by_role: Mapping[str, Mapping[Role, Any]]) -> str:
        extra = any(by_role["extra"].values())  # as it was before anything could be added
        return super()._named(by_role if extra else {"prompts": by_role["prompts"]})

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        extra = {f"{role}_extra": as_written_json(extra) for role, extra in self._extra.items() if extra}
        return self._described(**extra)

    def _counted(self, texts: Sequence[str]) -> Tokens:
        return openai_tokens(texts)

    def _open(self) -> OpenAIClient:
        return OpenAIClient(self._server(), _to_exception)

    def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        client = self._client()
        fewer: dict[str, Any] = {} if self._dimensions is None else {"dimensions": self._dimensions}
        body = {"input": texts, "model": self.model, **self._encoding, **fewer, **self._extra[role]}
        try:
            answer = client.ask("embeddings", body, _Embeddings)
        except _NoPacking:
            if not body.pop("encoding_format", ""):  # it was refused, and did not stand there
                raise
            self._encoding = {}  # decimals say the same numbers in more bytes
            answer = client.ask("embeddings", body, _Embeddings)
        rows = sorted(answer.data, key=lambda one: one.index)
        if [one.index for one in rows] != list(range(len(texts))):
            count = len(rows) or "no"
            raise BackendError(f"{client.server.name}: {count} vectors came back for {len(texts)} texts, "
                               "not one for each")  # fmt: skip
        usage = answer.usage or _Usage()
        vectors = rectangular([unpacked(one.embedding) for one in rows])
        return EmbeddingReply(vectors, usage.prompt_tokens or usage.total_tokens or 0)


def _to_exception(refusal: Refusal) -> Exception:
    """What a refusal means; a server that will not pack vectors says so in words of its own."""
    if refusal.status in {400, 422} and "encoding_format" in refusal.words:
        return _NoPacking(refusal.message)
    return to_exception(refusal)
