"""A reranker behind HTTP."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from retrievers.embedded import PairScores
from retrievers.errors import BackendError, InputError, Problem
from retrievers.identity import fingerprint
from retrievers.meter import Call
from retrievers.model import Reranker, TextPair, index_ranges
from retrievers.options.placeholders import expand, hide_values, redact_url
from retrievers.options.tables import NonNegativeNumber, PositiveInt
from retrievers.prices import Price, count_searches
from retrievers.ranking import Floats
from retrievers.services.caller import RequestCost
from retrievers.services.concurrency import run_request
from retrievers.services.remote_model import (
    EndpointAccess,
    RemoteModel,
    billed_tokens,
    share_by_weight,
    split_when_refused,
)
from retrievers.services.service_errors import explain_unreadable
from retrievers.texts.token_estimate import (
    Counts,
    Tokens,
    estimate_tokens,
    truncate_to_tokens,
)

RerankDialect = Literal["cohere", "voyage", "jina", "tei", "vllm"]


class RerankProtocol(NamedTuple):
    """What one provider's protocol for reranking has of its own."""

    url: str
    """The provider's own server; "" where everybody has their own."""
    path: str
    key: str
    """The environment variable of the provider's key."""
    tokens: int
    """Of one document, that the service reads."""
    more: Mapping[str, Any] = MappingProxyType({})
    """What else is in the body."""
    documents: str = "documents"
    """What the list of documents is called in the body."""


RERANK_PROTOCOLS: Mapping[RerankDialect, RerankProtocol] = {
    "cohere": RerankProtocol("https://api.cohere.com", "v2/rerank", "CO_API_KEY", 4096),
    "voyage": RerankProtocol(
        "https://api.voyageai.com/v1",
        "rerank",
        "VOYAGE_API_KEY",
        8000,
        {"truncation": True},
    ),
    "jina": RerankProtocol(
        "https://api.jina.ai/v1",
        "rerank",
        "JINA_API_KEY",
        8192,
        {"return_documents": False},
    ),
    "tei": RerankProtocol(
        "", "rerank", "", 512, {"raw_scores": True, "truncate": True}, "texts"
    ),
    "vllm": RerankProtocol("", "rerank", "", 512),
}


class HttpReranker(RemoteModel, Reranker):
    """Orders the first `depth` candidates by the scores of a service; the others keep their order beneath."""

    table_name = "rerank"
    is_listwise: ClassVar[bool] = True
    positional_option = "dialect"
    dialect: RerankDialect
    """Whose protocol it speaks."""
    model: str = ""
    """The provider's name for it; TEI serves one model and needs none."""
    base_url: str = ""
    """A server of your own, to which `rerank` is added (`v2/rerank` for cohere); required for tei and vllm."""
    api_key: str = ""
    """"${NAME}" in an experiment; left out, CO_API_KEY, VOYAGE_API_KEY or JINA_API_KEY for the providers' own servers,
    none for others."""
    headers: dict[str, str] | None = None
    """Sent with every request, secrets as "${NAME}"."""
    extra: dict[str, Any] | None = None
    """Added to the body of every request."""
    candidate_depth: PositiveInt = Field(default=10, alias="depth")
    """How many candidates of each query are read again."""
    max_tokens: Annotated[int, Field(ge=0)] = 0
    """Documents are cut to so many tokens, as estimated, and counted; 0: 4,096 for cohere, 8,000 for voyage, 8,192 for
    jina, 512 for tei and vllm."""
    batch_size: PositiveInt = 100
    """Documents a request."""
    search_price: NonNegativeNumber | None = None
    """Dollars for a thousand searches, as Cohere bills: one query with up to 100 documents, of which one above 500
    tokens counts several times."""

    def model_post_init(self, _: object) -> None:
        """Describe the service; nothing is sent."""
        protocol, dialect = self._protocol, self.dialect
        if not (self.base_url or protocol.url):
            raise InputError(
                Problem(
                    "rerank.base_url",
                    f"{dialect} has no server of its own",
                    "http://localhost:8080",
                )
            )
        if not (self.model or dialect == "tei"):
            raise InputError(
                Problem(
                    "rerank.model",
                    "is missing",
                    f"the name of one of {dialect}'s models",
                )
            )
        access = EndpointAccess(
            dialect,
            protocol.url,
            self.base_url,
            self.api_key,
            (protocol.key,),
            headers=self.headers or {},
        )
        self._reached(access, self.max_tokens or protocol.tokens)

    @property
    def _protocol(self) -> RerankProtocol:
        return RERANK_PROTOCOLS[self.dialect]

    @property
    def depth(self) -> int:  # type: ignore[override]
        """How many candidates of each query are read again."""
        return self.candidate_depth

    @cached_property
    def price(self) -> Price | None:
        """The experiment's prices, nothing for a server on this machine, else the list price."""
        if self.search_price is None:
            return super().price
        return Price(
            self.given_price or 0.0, "the experiment's price", self.search_price
        )

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the service, the model, what is added to the body, and where documents are cut."""
        return fingerprint(
            f"http-{self.dialect}",
            self.model,
            server=self._url,
            extra=self.extra or {},
            tokens=self._limits.tokens,
        )

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        extra = (
            {"extra": json.dumps(self.extra, ensure_ascii=False, sort_keys=True)}
            if self.extra
            else {}
        )
        model = self.model or "the server's"
        return {
            "model": model,
            "source": redact_url(self._url),
            "dialect": self.dialect,
            "depth": str(self.depth),
            "max_tokens": str(self._limits.tokens),
            **extra,
        }

    def count(self, texts: Sequence[str]) -> Tokens:
        """Estimate the tokens of texts, each as one side of a pair."""
        return Tokens(
            np.minimum(estimate_tokens(texts), self._limits.tokens), exact=False
        )

    def batches(self, pairs: Sequence[TextPair]) -> Iterator[Sequence[int]]:
        """Put the documents of a query into requests of at most `batch_size`, in the order of the pairs."""
        of: dict[str, list[int]] = {}
        for i, (query, _) in enumerate(pairs):
            of.setdefault(query, []).append(i)
        for positions in of.values():
            yield from (
                positions[some.start : some.stop]
                for some in index_ranges(len(positions), self.batch_size)
            )

    def score(self, pairs: Sequence[TextPair], call: Call) -> PairScores:
        """Score the documents of one query."""
        self._client()
        hide_values(self.extra)
        query = pairs[0][0]
        whole = [document for _, document in pairs]
        sent = [truncate_to_tokens(document, self._limits.tokens) for document in whole]
        parts = run_request(
            split_when_refused(sent, lambda some: self._whole(query, some, call)),
            call.stopped,
        )
        scores, tokens = map(np.concatenate, zip(*parts, strict=True))
        return PairScores(
            scores, tokens, estimate_tokens(whole) - estimate_tokens(sent)
        )

    async def _whole(
        self, query: str, documents: list[str], call: Call
    ) -> tuple[Floats, Counts]:
        """Send documents as they are."""
        counts = estimate_tokens(documents) + int(estimate_tokens([query])[0])
        expected = (
            int(counts.sum()),
            count_searches(estimate_tokens(documents).tolist()),
        )
        promised = self._charge(*expected)

        async def attempt() -> tuple[tuple[Floats, int], RequestCost]:
            scores, tokens, searched = await self._send(query, documents)
            charge = self._charge(tokens or expected[0], searched or expected[1])
            return (scores, charge.tokens), charge

        scores, tokens = await self._caller.call(
            attempt, promised, call, promised.tokens
        )
        return scores, share_by_weight(tokens, counts)

    async def _send(
        self, query: str, documents: list[str]
    ) -> tuple[Floats, int, float]:
        """Return the scores of documents, and the tokens and searches that are billed, 0 where the service says none.

        Fewer tokens than documents cannot be meant.
        """
        model = {"model": expand(self.model)} if self.model else {}
        limit = (
            {"max_tokens_per_doc": self._limits.tokens}
            if self.dialect == "cohere"
            else {}
        )
        body = {
            **model,
            "query": query,
            self._protocol.documents: documents,
            **self._protocol.more,
            **limit,
            **expand(self.extra or {}),
        }
        answer = await self._client().ask(self._protocol.path, body)
        with explain_unreadable(self.name, answer):
            whole = {"results": answer} if self.dialect == "tei" else answer
            rows = whole["data"] if self.dialect == "voyage" else whole["results"]
            key = "score" if self.dialect == "tei" else "relevance_score"
            results = sorted((int(row["index"]), float(row[key])) for row in rows)
            tokens = billed_tokens(
                (whole.get("usage") or {}).get("total_tokens"), least=len(documents)
            )
            units = ((whole.get("meta") or {}).get("billed_units") or {}).get(
                "search_units"
            )
            searched = (
                float(units)
                if isinstance(units, int | float) and 0 < units <= 1e9
                else 0.0
            )
        scores = np.asarray([score for _, score in results], dtype=np.float64)
        if [place for place, _ in results] != list(
            range(len(documents))
        ) or not np.isfinite(scores).all():
            what = f"{len(results) or 'no'} scores came back for {len(documents)} documents, not a finite one for each"
            raise BackendError(f"{self.name}: {what}")
        return scores, tokens, searched
