"""Voyage's contextualized embeddings.

https://docs.voyageai.com/docs/contextualized-chunk-embeddings: `inputs` has one list
per document, and one per query.
"""

from collections.abc import Sequence
from typing import ClassVar

from retrievers.embedded import Embedded, Role
from retrievers.encoders.remote_encoder import (
    EmbeddingReply,
    EmbeddingRow,
    RemoteEncoder,
)
from retrievers.facts import Fact, ModelFacts
from retrievers.meter import Call
from retrievers.options.placeholders import expand
from retrievers.services.concurrency import run_request
from retrievers.services.remote_model import EndpointAccess, split_when_refused
from retrievers.services.service_errors import check_indexed, explain_unreadable

_VOYAGE_URL = "https://api.voyageai.com/v1"
_MAX_DOCUMENT_TOKENS = 32_000
"""Tokens of one document that the service reads."""


class VoyageContextEncoder(RemoteEncoder):
    """Embeds passages with their neighbours by Voyage's contextualized embeddings; a
    request for each document.
    """  # noqa: D205

    kind = "voyage-context"
    contextual: ClassVar[bool] = True

    model: str
    """Such as voyage-context-3."""
    base_url: str = ""
    """Another server that speaks this protocol; left out, Voyage's."""
    api_key: str = ""
    """"${NAME}" in an experiment; left out, VOYAGE_API_KEY for Voyage's own server,
    none for others."""

    def model_post_init(self, _: object) -> None:
        """Set how the model is reached; nothing is sent."""
        access = EndpointAccess(
            provider="voyage",
            provider_url=_VOYAGE_URL,
            base_url=self.base_url,
            api_key=self.api_key,
            key_variables=("VOYAGE_API_KEY",),
        )
        self._set_access(access, _MAX_DOCUMENT_TOKENS)

    @property
    def request_size(self) -> int:
        """1: a request has one document with its passages, or one query."""
        return 1

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records."""
        return self._facts(
            Fact("query_extra", "input_type query"),
            Fact("document_extra", "input_type document, by document"),
        )

    def embed_passages(
        self, passages: Sequence[str], documents: Sequence[str], call: Call
    ) -> Embedded:
        """Embed the passages of one document; in parts if the request is refused."""
        self._client()

        async def send(some_passages: list[str]) -> Embedded:
            return await self._embed_accepted(some_passages, "document", call)

        request = split_when_refused(list(passages), send)
        return Embedded.concatenate(run_request(request, call.stopped))

    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        """Send one request, and read its vectors in the order of the texts.

        The passages of a document are one group, whose vectors know of each other;
        queries are groups of one.
        """
        inputs = [texts] if role == "document" else [[text] for text in texts]
        body = {
            "model": expand(self.model),
            "inputs": inputs,
            "input_type": role,
            **self._dimensions_option("output_dimension"),
        }
        answer = await self._client().ask("contextualizedembeddings", body)
        with explain_unreadable(self.name, answer):
            rows: list[EmbeddingRow] = []
            check_indexed(self.name, answer["data"])
            for group in sorted(answer["data"], key=lambda group: group["index"]):
                check_indexed(self.name, group["data"])
                for passage in sorted(group["data"], key=lambda row: row["index"]):
                    rows.append(EmbeddingRow(len(rows), passage["embedding"]))
            tokens = answer["usage"]["total_tokens"]
            return EmbeddingReply(rows, tokens, answer.get("model"))
