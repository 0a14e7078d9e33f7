"""Voyage's contextualized embeddings.

https://docs.voyageai.com/docs/contextualized-chunk-embeddings: `inputs` holds a list for each document; queries stand
alone.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from retrievers.embedded import Embedded, Role
from retrievers.encoders.remote_encoder import EmbeddingReply, RemoteEncoder
from retrievers.meter import Call
from retrievers.options.placeholders import expand
from retrievers.services.concurrency import run_request
from retrievers.services.remote_model import EndpointAccess, split_when_refused
from retrievers.services.service_errors import explain_unreadable

_URL = "https://api.voyageai.com/v1"


class VoyageContextEncoder(RemoteEncoder):
    """Embeds passages with their neighbours by Voyage's contextualized embeddings; a request for each document."""

    kind = "voyage-context"
    contextual: ClassVar[bool] = True

    model: str
    """Such as voyage-context-3."""
    base_url: str = ""
    """Another server that speaks this protocol; left out, Voyage's."""
    api_key: str = ""
    """"${NAME}" in an experiment; left out, VOYAGE_API_KEY for Voyage's own server, none for others."""

    def model_post_init(self, _: object) -> None:
        """Describe the model; nothing is sent."""
        self._reached(
            EndpointAccess(
                "voyage", _URL, self.base_url, self.api_key, ("VOYAGE_API_KEY",)
            ),
            32_000,
        )

    @property
    def request_size(self) -> int:
        """Documents of one request."""
        return 1

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        return self._described(
            query_extra="input_type query",
            document_extra="input_type document, by document",
        )

    def embed_passages(
        self, passages: Sequence[str], documents: Sequence[str], call: Call
    ) -> Embedded:
        """Embed the passages of one document; one that is refused is sent in two parts."""
        self._client()
        sent = split_when_refused(
            list(passages), lambda some: self._taken(some, "document", call)
        )
        return Embedded.concatenate(run_request(sent, call.stopped))

    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        inputs = [texts] if role == "document" else [[text] for text in texts]
        body = {
            "model": expand(self.model),
            "inputs": inputs,
            "input_type": role,
            **self._fewer("output_dimension"),
        }
        answer = await self._client().ask("contextualizedembeddings", body)
        with explain_unreadable(self.name, answer):
            found = sorted(answer["data"], key=lambda one: one["index"])
            rows = [
                one
                for group in found
                for one in sorted(group["data"], key=lambda one: one["index"])
            ]
            vectors = list(enumerate(row["embedding"] for row in rows))
            return EmbeddingReply(
                vectors, answer["usage"]["total_tokens"], answer.get("model")
            )
