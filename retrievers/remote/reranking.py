"""What services that rerank are asked and answer, in the protocol of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AliasChoices, Field, RootModel

from retrievers.remote.requests import Bill
from retrievers.remote.service import AnswerPart, Listed, TokenCount

Dialect = Literal["cohere", "voyage", "jina", "tei", "vllm"]


class Speech(NamedTuple):
    """How a dialect differs from the others."""

    url: str
    """The provider's own server; "" where everybody has their own."""
    path: str
    key: str
    """The environment variable of the provider's key."""
    documents: str
    """What the list of documents is called in the body."""
    more: Mapping[str, Any]
    """What else stands in the body."""
    tokens: int
    """Of one document, that the service reads."""


DIALECTS: Mapping[Dialect, Speech] = {
    "cohere": Speech("https://api.cohere.com", "v2/rerank", "CO_API_KEY", "documents", {}, 4096),
    "voyage": Speech(
        "https://api.voyageai.com/v1", "rerank", "VOYAGE_API_KEY", "documents", {"truncation": True}, 8000
    ),
    "jina": Speech("https://api.jina.ai/v1", "rerank", "JINA_API_KEY", "documents", {"return_documents": False}, 8192),
    "tei": Speech("", "rerank", "", "texts", {"raw_scores": True, "truncate": True}, 512),
    "vllm": Speech("", "rerank", "", "documents", {}, 512),
}


class DocumentScore(AnswerPart):
    """The score of one document, by its place in the request."""

    index: Annotated[int, Field(ge=0)]
    score: Annotated[float, Field(validation_alias=AliasChoices("relevance_score", "score"), allow_inf_nan=False)]


class _Usage(AnswerPart):
    total_tokens: TokenCount | None = None


class BareScores(RootModel[Listed[DocumentScore]]):
    """What TEI answers with: no object around the list."""


class _Units(AnswerPart):
    search_units: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = None


class _Meta(AnswerPart):
    billed_units: _Units | None = None


class ScoredDocuments(AnswerPart):
    """What all but TEI answer with: the scores, and what is billed."""

    results: Annotated[Listed[DocumentScore], Field(validation_alias=AliasChoices("results", "data"))]
    usage: _Usage | None = None
    meta: _Meta | None = None


def bill_of(answer: ScoredDocuments, documents: int) -> Bill:
    """What a service says that it bills for; fewer tokens than documents cannot be meant."""
    tokens = (answer.usage.total_tokens if answer.usage else None) or 0
    units = answer.meta.billed_units if answer.meta else None
    return Bill(tokens if tokens >= documents else 0, (units.search_units if units else None) or 0)
