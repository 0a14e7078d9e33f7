"""Cohere's embeddings."""

from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from retrievers.embedded import Role
from retrievers.encoders.remote_encoder import (
    EmbeddingReply,
    EmbeddingRow,
    RemoteEncoder,
)
from retrievers.facts import Fact, ModelFacts
from retrievers.options.placeholders import expand
from retrievers.services.remote_model import EndpointAccess
from retrievers.services.service_errors import explain_unreadable

_COHERE_URL = "https://api.cohere.com"
EmbeddingType = Literal["float", "int8", "uint8", "binary", "ubinary", "base64"]


class CohereEncoder(RemoteEncoder):
    """Embeds with Cohere's v2 API; documents and queries are sent as `search_document`
    and `search_query`.
    """  # noqa: D205

    kind = "cohere"

    model: str
    """Such as embed-v4.0 or embed-multilingual-v3.0."""
    base_url: str = ""
    """Another server that speaks this protocol; left out, Cohere's."""
    api_key: str = ""
    """"${NAME}" in an experiment; left out, CO_API_KEY for Cohere's own server, none
    for others."""
    embedding_type: EmbeddingType = "float"
    """The numbers that come back. Bytes are compared as they are, unsigned ones less
    128; bits as -1 and 1."""
    max_tokens: Annotated[int, Field(ge=0)] = 0
    """Tokens that the model reads of one text; 0: 512 of the models named v3, 128,000
    of others."""

    def model_post_init(self, _: object) -> None:
        """Set how the model is reached; nothing is sent."""
        access = EndpointAccess(
            provider="cohere",
            provider_url=_COHERE_URL,
            base_url=self.base_url,
            api_key=self.api_key,
            key_variables=("CO_API_KEY",),
        )
        default_tokens = 512 if "v3" in expand(self.model) else 128_000
        self._set_access(access, self.max_tokens or default_tokens)

    def _fingerprint_of(self, **role_options: Any) -> str:
        # Without the roles' options: it has no prompts.
        return super()._fingerprint_of(type=self.embedding_type)

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records."""
        return self._facts(
            Fact("embedding_type", self.embedding_type),
            Fact("query_extra", "input_type search_query"),
            Fact("document_extra", "input_type search_document"),
        )

    async def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        body = {
            "model": expand(self.model),
            "texts": texts,
            "input_type": f"search_{role}",
            "truncate": "NONE",
            "embedding_types": [self.embedding_type],
            **self._dimensions_option("output_dimension"),
        }
        answer = await self._client().ask("v2/embed", body)
        with explain_unreadable(self.name, answer):
            rows = []
            for i, embedding in enumerate(answer["embeddings"][self.embedding_type]):
                vector = decode_embedding(embedding, self.embedding_type)
                rows.append(EmbeddingRow(i, vector))
            units = (answer.get("meta") or {}).get("billed_units") or {}
            return EmbeddingReply(rows, units.get("input_tokens"))


def decode_embedding(embedding: Any, embedding_type: EmbeddingType) -> npt.ArrayLike:
    """Return a vector of any type as numbers that are compared by their cosine.

    Those of base64 stay text, which `check_vectors` decodes; floats are checked there.

    Raises:
        ValueError: bytes or bits are no numbers.
        TypeError: likewise.

    >>> decode_embedding([-128, 127], "binary").tolist()[:3]
    [-1.0, -1.0, -1.0]
    >>> decode_embedding([129, 0], "uint8").tolist()
    [1.0, -128.0]
    """
    if embedding_type in {"float", "int8", "base64"}:
        return embedding  # type: ignore[no-any-return]
    numbers = np.asarray(embedding, dtype=np.float32)
    if not np.isfinite(numbers).all():
        raise ValueError("a number is missing")
    if embedding_type == "uint8":
        return numbers - np.float32(128)
    if embedding_type == "binary":
        numbers = numbers + 128
    unsigned = numbers.clip(0, 255).astype(np.uint8)
    return np.unpackbits(unsigned).astype(np.float32) * 2 - 1
