"""Embeddings by OpenAI's protocol."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from retrievers.embedded import Role
from retrievers.encoders.remote_encoder import (
    EmbeddingReply,
    EmbeddingRow,
    RemoteEncoder,
)
from retrievers.facts import Fact, ModelFacts
from retrievers.options.placeholders import expand
from retrievers.options.tables import PositiveInt
from retrievers.services import remote_model
from retrievers.services.addresses import (
    AZURE_KEY_VARIABLE,
    OPENAI_KEY_VARIABLE,
    OPENAI_URL,
    OPENAI_URL_VARIABLE,
    check_address,
    is_azure,
    is_azure_deployment,
    openai_server_url,
)
from retrievers.services.clients import OpenAIClient
from retrievers.services.headers import NO_HEADERS, Headers
from retrievers.services.service_errors import check_indexed, explain_unreadable


class OpenAIEncoder(RemoteEncoder):
    """Embeds through OpenAI's protocol; the key is asked for at the first request, from
    the environment.
    """  # noqa: D205

    kind = "openai"
    max_request_tokens = 300_000

    base_url: str = ""
    """Another server; left out, OPENAI_BASE_URL, else OpenAI's. A query in it, such as
    Azure's `?api-version=…`, is kept."""
    api_key: str = ""
    """"${NAME}" in an experiment; left out, OPENAI_API_KEY for OpenAI's own server and
    that of OPENAI_BASE_URL, AZURE_OPENAI_API_KEY for Azure's, none for others."""
    headers: Headers | None = None
    """Sent with every request, secrets as "${NAME}":
    `{ api-key = "${AZURE_OPENAI_API_KEY}" }`."""
    query_prompt: str = ""
    """Put before every query."""
    document_prompt: str = ""
    """Put before every document."""
    query_extra: dict[str, Any] | None = None
    """Added to the body of every request of queries: `{ input_type = "query" }`."""
    document_extra: dict[str, Any] | None = None
    """Added to the body of every request of documents:
    `{ input_type = "document" }`."""
    batch_size: Annotated[int, Field(ge=1, le=2048)] = 256
    """Texts a request, at most 2,048; their tokens stay below 300,000."""
    max_tokens: PositiveInt = 8192
    """Tokens that the model reads of one text."""

    def model_post_init(self, _: object) -> None:
        """Set how the model is reached; nothing is sent."""
        url = openai_server_url(self.base_url)
        check_address("encoder.base_url" if self.base_url else OPENAI_URL_VARIABLE, url)
        headers = self.headers or NO_HEADERS
        has_key_header = headers.has_any("api-key", "authorization")
        uses_azure_key = is_azure(url) and not has_key_header
        is_foreign_server = bool(self.base_url) and not uses_azure_key
        key_header = "Authorization"
        if uses_azure_key or is_azure_deployment(url):
            key_header = "api-key"
        access = remote_model.EndpointAccess(
            provider="openai",
            # The environment's key is sent only there.
            provider_url=OPENAI_URL if is_foreign_server else url,
            base_url="" if url == OPENAI_URL else url,
            api_key=self.api_key,
            headers=headers,
            key_variables=(
                AZURE_KEY_VARIABLE if uses_azure_key else OPENAI_KEY_VARIABLE,
            ),
            key_header=key_header,
        )
        self._set_access(access, self.max_tokens)

    @property
    def _extra(self) -> Mapping[Role, Mapping[str, Any]]:
        return {"query": self.query_extra or {}, "document": self.document_extra or {}}

    @property
    def _role_options(self) -> Mapping[str, Mapping[Role, Any]]:
        return {"prompts": self._prompts, "extra": self._extra}

    def _fingerprint_of(self, **role_options: Any) -> str:
        """Return the fingerprint; without an empty `extra`, which old ones lack."""
        if not any(role_options["extra"].values()):
            del role_options["extra"]
        return super()._fingerprint_of(**role_options)

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records."""
        extra_facts = [
            Fact(f"{role}_extra", json.dumps(extra, ensure_ascii=False, sort_keys=True))
            for role, extra in self._extra.items()
            if extra
        ]
        return self._facts(*extra_facts)

    def _open(self) -> OpenAIClient:
        return OpenAIClient(self._url, self._headers(), self.name)

    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        """Send one request, and read its vectors with their positions."""
        client: OpenAIClient = self._client()
        answer = await client.ask(
            client.embeddings,
            input=texts,
            model=expand(self.model),
            encoding_format="base64",
            extra_body=expand(self._extra[role]),
            **self._dimensions_option("dimensions"),
        )
        with explain_unreadable(self.name, answer):
            check_indexed(self.name, answer["data"])
            rows = [
                EmbeddingRow(int(row["index"]), row["embedding"])
                for row in answer["data"]
            ]
            usage = answer.get("usage")
        if not isinstance(usage, dict):
            usage = {}
        tokens = usage.get("prompt_tokens") or usage.get("total_tokens")
        return EmbeddingReply(rows, tokens, answer.get("model"))
