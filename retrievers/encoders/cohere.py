"""Cohere's embeddings in their own protocol (v2), with a role for each text and every number format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from retrievers.remote.http_client import AnswerPart, Listed
from retrievers.remote.remote_encoder import (
    EmbeddingReply,
    RemoteEncoder,
    rectangular,
    unpacked,
)
from retrievers.remote.remote_model import Access
from retrievers.types import Role, Vectors, fingerprint

_URL = "https://api.cohere.com"
_TEXTS = 96
EmbeddingType = Literal["float", "int8", "uint8", "binary", "ubinary", "base64"]
_Row = Annotated[Listed[float], Field(min_length=1)]
_Byte = Annotated[Listed[Annotated[int, Field(ge=-128, le=255)]], Field(min_length=1)]


class _ByType(AnswerPart):
    float_: Annotated[Listed[_Row] | None, Field(alias="float")] = None
    int8: Listed[_Byte] | None = None
    uint8: Listed[_Byte] | None = None
    binary: Listed[_Byte] | None = None
    ubinary: Listed[_Byte] | None = None
    base64: Listed[str] | None = None


class _Units(AnswerPart):
    input_tokens: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None = None


class _Meta(AnswerPart):
    billed_units: _Units | None = None


class _Embeddings(AnswerPart):
    embeddings: _ByType
    meta: _Meta | None = None


class CohereEncoder(RemoteEncoder):
    """Embeds with Cohere's v2 API; documents and queries are sent as `search_document` and `search_query`."""

    service = "Cohere's server"
    kind = "cohere"
    most_texts = _TEXTS

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        api_key: str = "",
        embedding_type: EmbeddingType = "float",
        batch_size: int = _TEXTS,
        max_tokens: int = 0,
        **options: Any,
    ) -> None:
        """Describe the model; nothing is sent.

        Args:
            model: such as embed-v4.0 or embed-multilingual-v3.0.
            base_url: another server that speaks this protocol; left out, Cohere's.
            api_key: "${NAME}" in an experiment; left out, CO_API_KEY for Cohere's own server, none for others.
            embedding_type: the numbers that come back. Bytes are compared as they are, unsigned ones less 128; bits as
                -1 and 1.
            batch_size: texts a request, at most 96.
            max_tokens: tokens that the model reads of one text; 0: 512 of the models named v3, 128,000 of others.
            options: of every remote encoder.
        """
        limit = max_tokens or (512 if "v3" in model else 128_000)
        access = Access(provider="cohere", own=_URL, base_url=base_url, api_key=api_key, variables=("CO_API_KEY",))
        super().__init__(model, access, batch_size, limit, **options)
        self._type = embedding_type

    def _named(self, by_role: Mapping[str, Mapping[Role, Any]]) -> str:
        return fingerprint(self.kind, self.model, server=self._url, dimensions=self._dimensions, type=self._type)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        roles = {"query_extra": "input_type search_query", "document_extra": "input_type search_document"}
        return self._described(embedding_type=self._type, **roles)

    def _send(self, texts: list[str], role: Role) -> EmbeddingReply:
        body: dict[str, Any] = {
            "model": self.model, "texts": texts, "input_type": f"search_{role}", "embedding_types": [self._type],
            "truncate": "NONE",
        }  # fmt: skip
        if self._dimensions is not None:
            body["output_dimension"] = self._dimensions
        answer = self._client().ask("v2/embed", body, _Embeddings)
        units = answer.meta.billed_units if answer.meta else None
        rows = getattr(answer.embeddings, "float_" if self._type == "float" else self._type)
        return EmbeddingReply(_as_floats(rows or (), self._type), int((units.input_tokens if units else None) or 0))


def _as_floats(rows: Sequence[Any], kind: EmbeddingType) -> Vectors:
    """Return vectors of any format as (n, d) of float32, their cosine being what the format is compared by.

    >>> _as_floats([[-128, 127]], "binary").tolist()[0][:3], _as_floats([[129, 0]], "uint8").tolist()
    ([-1.0, -1.0, -1.0], [[1.0, -128.0]])
    """
    vectors = rectangular([unpacked(row) for row in rows])
    if kind == "uint8":
        return vectors - np.float32(128)
    if kind in {"binary", "ubinary"}:
        unsigned = (vectors + (128 if kind == "binary" else 0)).clip(0, 255).astype(np.uint8)
        return np.unpackbits(unsigned, axis=1).astype(np.float32) * 2 - 1
    return vectors
