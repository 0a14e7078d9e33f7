"""A search endpoint behind HTTP."""

import hashlib
import json
import time
import weakref
from typing import Any, Literal
from urllib.parse import quote

from retrievers.asked_service import AskedService
from retrievers.errors import InputError, Problem
from retrievers.facts import Origin, RetrieverFacts
from retrievers.identity import fingerprint
from retrievers.meter import Call
from retrievers.model import Limits
from retrievers.options.placeholders import expand, hide_values, redact_url
from retrievers.options.tables import NonNegativeNumber, PositiveNumber
from retrievers.query import Query
from retrievers.request_template import (
    DEPTH_PLACEHOLDER,
    QUERY_PLACEHOLDER,
    fill_template,
)
from retrievers.service_hits import (
    ServiceHits,
    check_ids,
    check_scores,
    compile_path,
    hits_in_order,
    search_path,
)
from retrievers.services.addresses import check_address
from retrievers.services.caller import NO_COST, PaidAnswer, ServiceCaller
from retrievers.services.clients import JsonClient
from retrievers.services.concurrency import close_later, run_request
from retrievers.services.headers import NO_HEADERS, Headers


class Endpoint(AskedService):
    """Sends each query to an endpoint and reads ids, and scores where there are any,
    out of the JSON of its answer.
    """  # noqa: D205

    positional_option = "url"
    url: str
    """Where queries go; {query} and {depth} in it are replaced."""
    ids: str
    """A JMESPath to the ids of the hits, best first, such as hits.hits[*]._id."""
    scores: str | None = None
    """A JMESPath to their scores; left out, their order counts."""
    method: Literal["GET", "POST"] = "POST"
    """How the request is sent."""
    headers: Headers | None = None
    """Sent along; a secret always as ${NAME}."""
    body: dict[str, Any] | None = None
    """Sent as JSON; {query} and {depth} in its strings are replaced, a string that is
    {depth} by a number."""
    rpm: NonNegativeNumber = 0
    """Requests a minute that the service allows; 0: unknown."""
    patience: PositiveNumber = 60
    """Seconds after which a request that keeps failing is given up."""
    _ids_path: Any
    _scores_path: Any
    _request_digest: str
    """Identifies the request; a URL may have a secret, and is never stored."""
    _client: JsonClient | None = None
    _caller: ServiceCaller

    def model_post_init(self, _: object) -> None:
        """Check the request; nothing is sent."""
        check_address("url", self.url)
        if QUERY_PLACEHOLDER not in f"{self.url}{json.dumps(self.body, default=list)}":
            problem = f"{QUERY_PLACEHOLDER} is missing"
            remedy = f"write {QUERY_PLACEHOLDER} in the body or the URL"
            raise InputError(Problem("body", problem, remedy))
        self._ids_path = compile_path("ids", expand(self.ids))
        self._scores_path = None
        if self.scores:
            self._scores_path = compile_path("scores", expand(self.scores))
        self._request_digest = self._digest_request()
        limits = Limits(
            self.concurrency, self.rpm, tpm=0, patience=self.patience, tokens=0
        )
        self._caller = ServiceCaller(limits, self.timeout, lambda: self._shown_url)

    def _digest_request(self) -> str:
        """Return the digest of all that changes an answer.

        Headers count with `${NAME}`: a key changes from day to day, answers do not.
        """
        parts = expand([self.url, self.method, self.body, self.ids, self.scores])
        headers = (self.headers or NO_HEADERS).as_table()
        if headers:
            parts.append(headers)
        return hashlib.sha256(json.dumps(parts, default=list).encode()).hexdigest()

    @property
    def facts(self) -> RetrieverFacts:
        """The address without its query string, and the time of the oldest answer."""
        return RetrieverFacts(
            origin=Origin(url=self._shown_url, answered_at=self._oldest_answer)
        )

    def _fingerprint(self, depth: int) -> str:
        return fingerprint(
            "http", self._shown_url, request=self._request_digest, depth=depth
        )

    def _open(self) -> None:
        self._open_client()

    def _open_client(self) -> JsonClient:
        """Return the client, created on first use."""
        if self._client is None:
            hide_values(self.url, self.body)
            headers = self.headers or NO_HEADERS
            self._client = JsonClient(self.url, headers, self._shown_url)
            weakref.finalize(self, close_later, self._client.close_async)
        return self._client

    def _ask(self, query: Query, depth: int, call: Call) -> ServiceHits:
        """Return the hits of one query."""
        client = self._open_client()

        async def attempt() -> PaidAnswer[object]:
            url = expand(self.url)
            url = url.replace(QUERY_PLACEHOLDER, quote(query.text, safe=""))
            url = url.replace(DEPTH_PLACEHOLDER, str(depth))
            body = b""
            if self.body is not None:
                filled_body = fill_template(expand(self.body), query.text, depth)
                body = json.dumps(filled_body).encode()
            started = time.perf_counter()
            answer = await client.send(self.method, url, body)
            call.meter.time_request(time.perf_counter() - started)
            return PaidAnswer(answer, NO_COST)

        request = self._caller.call(attempt, NO_COST, call, 0)
        return self._read_hits(run_request(request, call.stopped), query)

    def _read_hits(self, answer: object, query: Query) -> ServiceHits:
        """Return the ids and scores in an answer.

        Raises:
            BackendError: the answer is not as described.
        """
        location = f"{self._shown_url}: query {query.id!r}"
        found_ids = search_path(self._ids_path, answer, location)
        doc_ids = check_ids(found_ids, "ids", answer, location)
        if self._scores_path is None:
            return hits_in_order(doc_ids)
        found_scores = search_path(self._scores_path, answer, location)
        scores = check_scores(found_scores, "scores", len(doc_ids), location)
        return ServiceHits(doc_ids, scores)

    @property
    def _shown_url(self) -> str:
        """The address in messages, without its query string."""
        return redact_url(self.url)
