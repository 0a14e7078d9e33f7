"""Embeddings by OpenAI's protocol."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from retrievers.embedded import Role
from retrievers.encoders.remote_encoder import EmbeddingReply, RemoteEncoder
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
from retrievers.services.service_errors import explain_unreadable


class OpenAIEncoder(RemoteEncoder):
    """Embeds through OpenAI's protocol; the key is asked for at the first request, from the environment."""

    kind = "openai"
    max_request_tokens = 300_000

    base_url: str = ""
    """Another server; left out, OPENAI_BASE_URL, else OpenAI's. A query in it, such as Azure's `?api-version=…`, is
    kept."""
    api_key: str = ""
    """"${NAME}" in an experiment; left out, OPENAI_API_KEY for OpenAI's own server and that of OPENAI_BASE_URL,
    AZURE_OPENAI_API_KEY for Azure's, none for others."""
    headers: dict[str, str] | None = None
    """Sent with every request, secrets as "${NAME}": `{ api-key = "${AZURE_OPENAI_API_KEY}" }`."""
    query_prompt: str = ""
    """Put before every query."""
    document_prompt: str = ""
    """Put before every document."""
    query_extra: dict[str, Any] | None = None
    """Added to the body of every request of queries: `{ input_type = "query" }`."""
    document_extra: dict[str, Any] | None = None
    """Added to the body of every request of documents: `{ input_type = "document" }`."""
    batch_size: Annotated[int, Field(ge=1, le=2048)] = 256
    """Texts a request, at most 2,048; their tokens stay below 300,000."""
    max_tokens: PositiveInt = 8192
    """Tokens that the model reads of one text."""

    def model_post_init(self, _: object) -> None:
        """Describe the model; nothing is sent."""
        url, headers = openai_server_url(self.base_url), self.headers or {}
        check_address("encoder.base_url" if self.base_url else OPENAI_URL_VARIABLE, url)
        azure = is_azure(url) and not {name.lower() for name in headers} & {
            "api-key",
            "authorization",
        }
        access = remote_model.EndpointAccess(
            provider="openai",
            provider_url=OPENAI_URL if self.base_url and not azure else url,
            base_url="" if url == OPENAI_URL else url,
            api_key=self.api_key,
            headers=headers,
            key_variables=(AZURE_KEY_VARIABLE,) if azure else (OPENAI_KEY_VARIABLE,),
            key_header="api-key"
            if azure or is_azure_deployment(url)
            else "Authorization",
        )
        self._reached(access, self.max_tokens)

    @property
    def _extra(self) -> Mapping[Role, Mapping[str, Any]]:
        return {"query": self.query_extra or {}, "document": self.document_extra or {}}

    @property
    def _by_role(self) -> Mapping[str, Mapping[Role, Any]]:
        return {"prompts": self._prompts, "extra": self._extra}

    def _named(self, said: Mapping[str, Any]) -> str:
        # as it was before anything could be added
        return super()._named(
            said if any(said["extra"].values()) else {"prompts": said["prompts"]}
        )

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        written = partial(json.dumps, ensure_ascii=False, sort_keys=True)
        return self._described(
            **{
                f"{role}_extra": written(extra)
                for role, extra in self._extra.items()
                if extra
            }
        )

    def _open(self) -> OpenAIClient:
        return OpenAIClient(self._url, self._headers(), self.name)

    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        client: OpenAIClient = self._client()
        answer = await client.ask(
            client.embeddings,
            input=texts,
            model=expand(self.model),
            encoding_format="base64",
            extra_body=expand(self._extra[role]),
            **self._fewer("dimensions"),
        )
        with explain_unreadable(self.name, answer):
            rows = [(int(one["index"]), one["embedding"]) for one in answer["data"]]
            usage = answer.get("usage")
        said = usage if isinstance(usage, dict) else {}
        return EmbeddingReply(
            rows,
            said.get("prompt_tokens") or said.get("total_tokens"),
            answer.get("model"),
        )
