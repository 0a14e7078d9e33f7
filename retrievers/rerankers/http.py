"""Reranking by a service behind HTTP: Cohere, Voyage and Jina, or a server of one's own (TEI, vLLM)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from retrievers.errors import BackendError, InputError, Problem, check_not_negative, check_positive
from retrievers.fingerprints import fingerprint
from retrievers.meter import Call, Stop
from retrievers.prices import Price, price_of, searches
from retrievers.remote.faults import TooLong
from retrievers.remote.redaction import as_written, as_written_json, secrets_in, shown
from retrievers.remote.requests import Bill, RequestSender
from retrievers.remote.reranking import DIALECTS, BareScores, Dialect, ScoredDocuments, bill_of
from retrievers.remote.secrets import is_server_of, key_of
from retrievers.remote.service import JsonService, Server, check_address
from retrievers.remote.splitting import shared_out
from retrievers.tokens import Tokens, beginning, estimate
from retrievers.types import Counts, Floats, Limits, Pair, PairScores, Reranker, runs


class HttpReranker(Reranker):
    """Orders the first `depth` candidates by the scores of a service; the others keep their order beneath."""

    def __init__(
        self,
        dialect: Dialect,
        *,
        model: str = "",
        base_url: str = "",
        api_key: str = "",
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
        depth: int = 10,
        max_tokens: int = 0,
        batch_size: int = 100,
        concurrency: int = 8,
        rpm: float = 0,
        tpm: float = 0,
        timeout: float = 60,
        patience: float = 300,
        price: float | None = None,
        search_price: float | None = None,
    ) -> None:
        """Describe the service; nothing is sent.

        Args:
            dialect: whose protocol it speaks.
            model: the provider's name for it; TEI serves one model and needs none.
            base_url: a server of your own, to which `rerank` is added (`v2/rerank` for cohere); required for tei and
                vllm.
            api_key: "${NAME}" in an experiment; left out, CO_API_KEY, VOYAGE_API_KEY or JINA_API_KEY for the providers'
                own servers, none for others.
            headers: sent with every request, secrets as "${NAME}".
            extra: added to the body of every request.
            depth: how many candidates of each query are read again.
            max_tokens: documents are cut to so many tokens, by an upper estimate, and counted; 0: 4,096 for cohere,
                8,000 for voyage, 8,192 for jina, 512 for tei and vllm.
            batch_size: documents a request.
            concurrency: requests at once.
            rpm: requests a minute that the account may send; 0: unknown.
            tpm: tokens a minute; 0: unknown.
            timeout: seconds for one whole answer.
            patience: seconds after which a request that keeps failing is given up.
            price: dollars for a million tokens; left out, 0 for a server on this machine, else unknown.
            search_price: dollars for a thousand searches, as Cohere bills: one query with up to 100 documents, of which
                one above 500 tokens counts several times.
        """
        check_positive("rerank", depth=depth, batch_size=batch_size, concurrency=concurrency, timeout=timeout,
                       patience=patience)  # fmt: skip
        check_not_negative("rerank", max_tokens=max_tokens, rpm=rpm, tpm=tpm, price=price, search_price=search_price)
        self._speech = DIALECTS[dialect]
        if not (base_url or self._speech.url):
            raise InputError(Problem("rerank.base_url", f"{dialect} has no server of its own", "http://localhost:8080"))
        if not (model or dialect == "tei"):
            raise InputError(Problem("rerank.model", "is missing", f"the name of one of {dialect}'s models"))
        if base_url:
            check_address("rerank.base_url", base_url)
        self._dialect: Dialect = dialect
        self.model = model
        self._base_url = base_url or self._speech.url
        self._key = api_key
        self._headers = dict(headers or {})
        self._extra = dict(extra or {})
        self._depth = depth
        self._batch_size = batch_size
        self._timeout = timeout
        known = price_of(dialect, model, own=price, base_url=base_url)
        if search_price is not None:
            known = Price(price or 0.0, "the experiment's price", search_price)
        self._price = known
        self._limits = Limits(concurrency, rpm, tpm, patience, max_tokens or self._speech.tokens)
        self._sender = RequestSender(self._limits, self._price)
        self._documents = batch_size
        self._lock = Lock()
        self._service: JsonService | None = None

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the service, the model, what is added to the body, and where documents are cut."""
        return fingerprint(f"http-{self._dialect}", self.model, server=self._base_url, extra=self._extra,
                           tokens=self._limits.tokens)  # fmt: skip

    @property
    def depth(self) -> int:
        """How many candidates of each query are read again."""
        return self._depth

    @property
    def by_list(self) -> bool:
        """The documents of a query travel together."""
        return True

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps."""
        extra = {"extra": as_written_json(self._extra)} if self._extra else {}
        model = as_written(self.model) or "the server's"
        return {"model": model, "source": shown(self._base_url), "dialect": self._dialect, "depth": str(self._depth),
                "max_tokens": str(self._limits.tokens), **extra}  # fmt: skip

    @property
    def price(self) -> Price | None:
        """The experiment's price, nothing for a server on this machine, else the list price."""
        return self._price

    @property
    def limits(self) -> Limits:
        """The declared limits of the rate, and the tokens of a document."""
        return self._limits

    def check(self) -> None:
        """Look for what a run needs, before it starts: the key.

        Raises:
            InputError: there is none.
        """
        _ = self._secret

    def count(self, texts: Sequence[str]) -> Tokens:
        """Estimate the tokens of texts, each as one side of a pair."""
        return Tokens(np.minimum(estimate(texts), self._limits.tokens), exact=False)

    def batches(self, pairs: Sequence[Pair]) -> Iterator[Sequence[int]]:
        """Put the documents of a query into requests of at most `batch_size`, in the order of the pairs."""
        of: dict[str, list[int]] = {}
        for i, (query, _) in enumerate(pairs):
            of.setdefault(query, []).append(i)
        for positions in of.values():
            for some in runs(len(positions), self._batch_size):
                yield [positions[i] for i in some]

    def score(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        """Score the documents of one query."""
        service = self._connected()
        query = pairs[0][0]
        whole = [document for _, document in pairs]
        sent = [beginning(document, self._limits.tokens) for document in whole]
        lost = estimate(whole) - estimate(sent)
        parts = [self._part(service, query, sent[start : start + self._documents], call)
                 for start in range(0, len(sent), self._documents)]  # fmt: skip
        scores, tokens = (np.concatenate(column) for column in zip(*parts, strict=True))
        return PairScores(scores, tokens, lost)

    def _part(
        self, service: JsonService, query: str, documents: list[str], call: Call, *, named: bool = False
    ) -> tuple[Floats, Counts]:
        """Send one request; where the server takes fewer documents, their number is learnt and the request split.

        `named`: they are as many as it has just named, and it may not name fewer again.
        """
        counts = estimate(documents) + int(estimate([query])[0])
        expected = Bill(int(counts.sum()), searches(estimate(documents).tolist()))
        try:
            scores, billed = self._sender.send(
                lambda: self._send(service, query, documents, call.stopped), expected, call
            )
        except TooLong as refusal:
            if named or refusal.texts is None or refusal.texts >= len(documents):
                raise BackendError(
                    f"{refusal}; set max_tokens below {self._limits.tokens}, or batch_size lower"
                ) from None
            self._documents = refusal.texts
            parts = [self._part(service, query, documents[start : start + refusal.texts], call, named=True)
                     for start in range(0, len(documents), refusal.texts)]  # fmt: skip
            scores, tokens = (np.concatenate(column) for column in zip(*parts, strict=True))
            return scores, tokens
        return scores, shared_out(billed, counts)

    def _send(self, service: JsonService, query: str, documents: list[str], stopped: Stop) -> tuple[Floats, Bill]:
        model = {"model": self.model} if self.model else {}
        limit = {"max_tokens_per_doc": self._limits.tokens} if self._dialect == "cohere" else {}
        body = {**model, "query": query, self._speech.documents: documents, **self._speech.more, **limit, **self._extra}
        if self._dialect == "tei":
            results, bill = service.ask(self._speech.path, body, BareScores, stopped).root, Bill(0)
        else:
            answer = service.ask(self._speech.path, body, ScoredDocuments, stopped)
            results, bill = answer.results, bill_of(answer, len(documents))
        ordered = sorted(results, key=lambda one: one.index)
        if [one.index for one in ordered] != list(range(len(documents))):
            count = len(results) or "no"
            raise BackendError(f"{service.server.name}: {count} scores came back for {len(documents)} documents, "
                               "not one for each")  # fmt: skip
        return np.asarray([one.score for one in ordered], dtype=np.float64), bill

    @property
    def _secret(self) -> str:
        own = bool(self._speech.url) and is_server_of(self._base_url, self._speech.url)
        return key_of(self._key, self._speech.key) if own else self._key

    def _connected(self) -> JsonService:
        with self._lock:
            if self._service is None:
                key = self._secret
                headers = {"Authorization": f"Bearer {key}"} if key else {}
                secrets = (key, *secrets_in(self._extra))
                server = Server(self._base_url, self.model or self._dialect, {**headers, **self._headers}, secrets,
                                self._timeout, self._limits.concurrency)  # fmt: skip
                self._service = JsonService(server)
            return self._service
