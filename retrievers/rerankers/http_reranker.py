"""A reranker behind HTTP.

It speaks the protocols of five providers (`RERANK_PROTOCOLS`), which differ in path,
keys of the body and forms of the reply. `services/remote_model.py` has the access.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from retrievers.embedded import PairScores
from retrievers.errors import BackendError, InputError, Problem
from retrievers.facts import Fact, ModelFacts
from retrievers.identity import fingerprint
from retrievers.meter import Call
from retrievers.model import Reranker, TextPair, index_ranges
from retrievers.options.placeholders import expand, hide_values, redact_url
from retrievers.options.tables import NonNegativeNumber, PositiveInt
from retrievers.prices import Price, count_searches
from retrievers.ranking import Floats
from retrievers.services.caller import PaidAnswer
from retrievers.services.concurrency import run_request
from retrievers.services.headers import NO_HEADERS, Headers
from retrievers.services.remote_model import (
    EndpointAccess,
    RemoteModel,
    billed_tokens,
    share_by_weight,
    split_when_refused,
)
from retrievers.services.service_errors import check_indexed, explain_unreadable
from retrievers.texts.token_estimate import (
    Counts,
    Tokens,
    estimate_tokens,
    truncate_to_tokens,
)

RerankDialect = Literal["cohere", "voyage", "jina", "tei", "vllm"]
MAX_BILLED_SEARCHES = 1e9
"""A service that reports more searches for one request is wrong."""


class BodySwitch(NamedTuple):
    """A key of a request's body that turns something on or off."""

    key: str
    is_on: bool


class RerankProtocol(NamedTuple):
    """What is special to one provider's protocol for reranking."""

    url: str
    """The provider's own server; empty if each user has another."""
    path: str
    key: str
    """The environment variable of the provider's key; empty without a server of its
    own."""
    tokens: int
    """Tokens of one document that the service reads, at most."""
    switches: tuple[BodySwitch, ...] = ()
    """Further keys of the body."""
    documents: str = "documents"
    """The key of the list of documents in the body."""


RERANK_PROTOCOLS: Mapping[RerankDialect, RerankProtocol] = {
    "cohere": RerankProtocol(
        url="https://api.cohere.com", path="v2/rerank", key="CO_API_KEY", tokens=4096
    ),
    "voyage": RerankProtocol(
        url="https://api.voyageai.com/v1",
        path="rerank",
        key="VOYAGE_API_KEY",
        tokens=8000,
        switches=(BodySwitch("truncation", True),),
    ),
    "jina": RerankProtocol(
        url="https://api.jina.ai/v1",
        path="rerank",
        key="JINA_API_KEY",
        tokens=8192,
        switches=(BodySwitch("return_documents", False),),
    ),
    "tei": RerankProtocol(
        url="",
        path="rerank",
        key="",
        tokens=512,
        switches=(BodySwitch("raw_scores", True), BodySwitch("truncate", True)),
        documents="texts",
    ),
    "vllm": RerankProtocol(url="", path="rerank", key="", tokens=512),
}


class _RerankReply(NamedTuple):
    """The checked reply to one request."""

    scores: Floats
    tokens: int
    """Billed tokens; 0 if the service reports none."""
    searches: float
    """Billed searches; 0 if the service reports none."""


class _BilledScores(NamedTuple):
    """The scores of one request, and the tokens that are billed for it."""

    scores: Floats
    tokens: int


class _DocumentScores(NamedTuple):
    """The scores of some documents, and the tokens that are billed for each."""

    scores: Floats
    tokens: Counts


class HttpReranker(RemoteModel, Reranker):
    """Orders the first `depth` candidates by the scores of a service; the others keep
    their order beneath.
    """  # noqa: D205

    table_name = "rerank"
    is_listwise: ClassVar[bool] = True
    positional_option = "dialect"
    dialect: RerankDialect
    """Whose protocol it speaks."""
    model: str = ""
    """The provider's name for it; TEI serves one model and needs none."""
    base_url: str = ""
    """A server of your own, to which `rerank` is added (`v2/rerank` for cohere);
    required for tei and vllm."""
    api_key: str = ""
    """"${NAME}" in an experiment; left out, CO_API_KEY, VOYAGE_API_KEY or JINA_API_KEY
    for the providers' own servers, none for others."""
    headers: Headers | None = None
    """Sent with every request, secrets as "${NAME}"."""
    extra: dict[str, Any] | None = None
    """Added to the body of every request."""
    candidate_depth: PositiveInt = Field(default=10, alias="depth")
    """How many candidates of each query are read again."""
    max_tokens: Annotated[int, Field(ge=0)] = 0
    """Documents are cut to so many tokens, as estimated; what is cut off is counted.
    0: 4,096 for cohere, 8,000 for voyage, 8,192 for jina, 512 for tei and vllm."""
    batch_size: PositiveInt = 100
    """Documents a request."""
    search_price: NonNegativeNumber | None = None
    """Dollars for a thousand searches, as Cohere bills: one query with up to 100
    documents, of which one above 500 tokens counts several times."""

    def model_post_init(self, _: object) -> None:
        """Set how the service is reached; nothing is sent."""
        protocol = self._protocol
        if not (self.base_url or protocol.url):
            problem = f"{self.dialect} has no server of its own"
            remedy = "http://localhost:8080"
            raise InputError(Problem("rerank.base_url", problem, remedy))
        if not (self.model or self.dialect == "tei"):
            remedy = f"the name of one of {self.dialect}'s models"
            raise InputError(Problem("rerank.model", "is missing", remedy))
        access = EndpointAccess(
            provider=self.dialect,
            provider_url=protocol.url,
            base_url=self.base_url,
            api_key=self.api_key,
            key_variables=(protocol.key,),
            headers=self.headers or NO_HEADERS,
        )
        self._set_access(access, self.max_tokens or protocol.tokens)

    @property
    def _protocol(self) -> RerankProtocol:
        return RERANK_PROTOCOLS[self.dialect]

    @property
    def depth(self) -> int:  # type: ignore[override]
        """How many candidates of each query are scored."""
        return self.candidate_depth

    @cached_property
    def price(self) -> Price | None:
        """The experiment's prices, else 0 on this machine, else the list price.

        With `search_price`, tokens have no list price.
        """
        if self.search_price is None:
            return super().price
        return Price(
            usd_per_million_tokens=self.given_price or 0.0,
            source="the experiment's price",
            usd_per_thousand_searches=self.search_price,
        )

    @property
    def fingerprint(self) -> str:
        """All that changes a score: service, model, further keys, cut documents."""
        return fingerprint(
            f"http-{self.dialect}",
            self.model,
            server=self._url,
            extra=self.extra or {},
            tokens=self._limits.tokens,
        )

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records."""
        settings = [
            Fact("dialect", self.dialect),
            Fact("depth", str(self.depth)),
            Fact("max_tokens", str(self._limits.tokens)),
        ]
        if self.extra:
            extra_text = json.dumps(self.extra, ensure_ascii=False, sort_keys=True)
            settings.append(Fact("extra", extra_text))
        return ModelFacts(
            model=self.model or "the server's",
            source=redact_url(self._url),
            settings=tuple(settings),
        )

    def count(self, texts: Sequence[str]) -> Tokens:
        """Return an estimate of the tokens of texts, each as one side of a pair."""
        counts = np.minimum(estimate_tokens(texts), self._limits.tokens)
        return Tokens(counts, exact=False)

    def batches(self, pairs: Sequence[TextPair]) -> Iterator[Sequence[int]]:
        """Yield requests with documents of one query each, in the order of the pairs.

        They have at most `batch_size` documents.
        """
        positions_by_query: dict[str, list[int]] = {}
        for i, (query, _) in enumerate(pairs):
            positions_by_query.setdefault(query, []).append(i)
        for positions in positions_by_query.values():
            for part in index_ranges(len(positions), self.batch_size):
                yield positions[part.start : part.stop]

    def score(self, pairs: Sequence[TextPair], call: Call) -> PairScores:
        """Score the documents of one query."""
        self._client()
        hide_values(self.extra)
        query = pairs[0][0]
        documents = [document for _, document in pairs]
        max_tokens = self._limits.tokens
        sent = [truncate_to_tokens(document, max_tokens) for document in documents]

        async def send(some_documents: list[str]) -> _DocumentScores:
            return await self._score_documents(query, some_documents, call)

        parts = run_request(split_when_refused(sent, send), call.stopped)
        return PairScores(
            scores=np.concatenate([part.scores for part in parts]),
            tokens=np.concatenate([part.tokens for part in parts]),
            truncated_tokens=estimate_tokens(documents) - estimate_tokens(sent),
        )

    async def _score_documents(
        self, query: str, documents: list[str], call: Call
    ) -> _DocumentScores:
        """Score documents in one request."""
        document_tokens = estimate_tokens(documents)
        pair_tokens = document_tokens + int(estimate_tokens([query])[0])
        expected_tokens = int(pair_tokens.sum())
        expected_searches = count_searches(document_tokens.tolist())
        expected_cost = self._billed_cost(expected_tokens, expected_searches)

        async def attempt() -> PaidAnswer[_BilledScores]:
            reply = await self._send(query, documents)
            cost = self._billed_cost(
                reply.tokens or expected_tokens, reply.searches or expected_searches
            )
            return PaidAnswer(_BilledScores(reply.scores, cost.tokens), cost)

        answer = await self._caller.call(
            attempt, expected_cost, call, expected_cost.tokens
        )
        tokens = share_by_weight(answer.tokens, pair_tokens)
        return _DocumentScores(answer.scores, tokens)

    async def _send(self, query: str, documents: list[str]) -> _RerankReply:
        """Send one request and check the reply.

        Raises:
            BackendError: there is not a finite score for each document.
            Exception: as by the client's `ask`.
        """
        body = self._request_body(query, documents)
        answer = await self._client().ask(self._protocol.path, body)
        with explain_unreadable(self.name, answer):
            content = {"results": answer} if self.dialect == "tei" else answer
            list_key = "data" if self.dialect == "voyage" else "results"
            score_key = "score" if self.dialect == "tei" else "relevance_score"
            check_indexed(self.name, content[list_key])
            score_pairs = sorted(
                (int(row["index"]), float(row[score_key])) for row in content[list_key]
            )
            usage = content.get("usage") or {}
            # A document has at least one token.
            tokens = billed_tokens(usage.get("total_tokens"), minimum=len(documents))
            units = (content.get("meta") or {}).get("billed_units") or {}
            searches = _billed_searches(units.get("search_units"))
        positions = [position for position, _ in score_pairs]
        scores = np.asarray([score for _, score in score_pairs], dtype=np.float64)
        is_complete = positions == list(range(len(documents)))
        if not is_complete or not np.isfinite(scores).all():
            raise BackendError(
                f"{self.name} returned {len(score_pairs) or 'no'} scores for "
                f"{len(documents)} documents, not a finite one for each"
            )
        return _RerankReply(scores, tokens, searches)

    def _request_body(self, query: str, documents: list[str]) -> dict[str, Any]:
        """Return the JSON of a request."""
        body: dict[str, Any] = {}
        if self.model:
            body["model"] = expand(self.model)
        body["query"] = query
        body[self._protocol.documents] = documents
        body |= dict(self._protocol.switches)
        if self.dialect == "cohere":
            body["max_tokens_per_doc"] = self._limits.tokens
        body |= expand(self.extra or {})
        return body


def _billed_searches(reported: object) -> float:
    """Return the searches that a service reports as billed; 0 if not plausible."""
    if not isinstance(reported, int | float):
        return 0.0
    return float(reported) if 0 < reported <= MAX_BILLED_SEARCHES else 0.0
