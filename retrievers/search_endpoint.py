"""A search endpoint behind HTTP."""

import hashlib
import json
import time
import weakref
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import quote

from retrievers.cache import Cache
from retrievers.errors import BackendError, InputError, Problem
from retrievers.external import ExternalRetriever, is_finite_number, refuse_distances
from retrievers.identity import fingerprint, text_keys
from retrievers.ids import hit_id
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.model import Limits
from retrievers.options.placeholders import error_line, expand, hide_values, redact_url
from retrievers.options.tables import NonNegativeNumber, PositiveInt, PositiveNumber
from retrievers.query import Query
from retrievers.ranking import Ranking, ranked
from retrievers.resources import Resources
from retrievers.services.addresses import check_address, request_headers
from retrievers.services.caller import NO_COST, PaidAnswer, ServiceCaller
from retrievers.services.clients import JsonClient
from retrievers.services.concurrency import close_later, completed, run_request

QUERY_PLACEHOLDER = "{query}"
DEPTH_PLACEHOLDER = "{depth}"


class _EndpointHits(NamedTuple):
    """The hits in one answer."""

    ids: list[str]
    scores: list[float]


class Endpoint(ExternalRetriever):
    """Sends each query to an endpoint and reads ids, and scores where there are any,
    out of the JSON of its answer.
    """  # noqa: D205

    expands: ClassVar[bool] = True
    repeatable: ClassVar[bool] = False
    positional_option = "url"
    url: str
    """Where queries go; {query} and {depth} in it are replaced."""
    ids: str
    """A JMESPath to the ids of the hits, best first, such as hits.hits[*]._id."""
    scores: str | None = None
    """A JMESPath to their scores; left out, their order counts."""
    method: Literal["GET", "POST"] = "POST"
    """How the request is sent."""
    headers: dict[str, str] | None = None
    """Sent along; a secret always as ${NAME}."""
    body: dict[str, Any] | None = None
    """Sent as JSON; {query} and {depth} in its strings are replaced, a string that is
    {depth} by a number."""
    concurrency: PositiveInt = 4
    """Requests at once."""
    rpm: NonNegativeNumber = 0
    """Requests a minute that the service allows; 0: unknown."""
    timeout: PositiveNumber = 30
    """Seconds for one try, its whole answer read."""
    patience: PositiveNumber = 60
    """Seconds after which a request that keeps failing is given up."""
    _ids_path: Any
    _scores_path: Any
    _request_digest: str
    """Identifies the request; a URL may have a secret, and is never stored."""
    _client: JsonClient | None = None
    _caller: ServiceCaller
    _cache: Cache | None = None
    _trial: int = 1
    _oldest_answer: str = ""

    def model_post_init(self, _: object) -> None:
        """Check the request; nothing is sent."""
        check_address("url", self.url)
        if QUERY_PLACEHOLDER not in f"{self.url}{json.dumps(self.body, default=list)}":
            problem = f"{QUERY_PLACEHOLDER} is missing"
            remedy = f"write {QUERY_PLACEHOLDER} in the body or the URL"
            raise InputError(Problem("body", problem, remedy))
        self._ids_path = _compile_path("ids", expand(self.ids))
        self._scores_path = None
        if self.scores:
            self._scores_path = _compile_path("scores", expand(self.scores))
        self._request_digest = self._digest_request()
        limits = Limits(
            self.concurrency, self.rpm, tpm=0, patience=self.patience, tokens=0
        )
        self._caller = ServiceCaller(limits, self.timeout, lambda: self._shown_url)

    def _digest_request(self) -> str:
        """Return the digest of all that changes an answer.

        Keys change from day to day, and answers do not: headers count with `${NAME}`.
        """
        parts = expand([self.url, self.method, self.body, self.ids, self.scores])
        if self.headers:
            parts.append(self.headers)
        return hashlib.sha256(json.dumps(parts, default=list).encode()).hexdigest()

    @property
    def provenance(self) -> Mapping[str, str]:
        """The address without its query string, and the time of the oldest answer."""
        facts = {"url": self._shown_url}
        if self._oldest_answer:
            facts["answered_at"] = self._oldest_answer
        return facts

    def setup(self, resources: Resources) -> None:
        """Receive the run's cache, which stores answers."""
        self._cache = resources.cache
        self._trial = resources.trial

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return the endpoint's hits for each query.

        Raises:
            BackendError: it refused a request, kept failing, or its answer is not as
                described.
        """
        name = fingerprint(
            "http", self._shown_url, request=self._request_digest, depth=depth
        )
        if self._trial > 1:
            name = f"{name} trial {self._trial}"
        keys = text_keys(name, "query", [query.text for query in queries])
        query_by_key = dict(zip(keys, queries, strict=True))
        distinct_keys = list(query_by_key)
        answer_by_key = self._cached_answers(distinct_keys)
        missing_keys = [key for key in distinct_keys if key not in answer_by_key]

        def send(key: bytes, stopped: Stop) -> str:
            return self._request(query_by_key[key], depth, Call(meter, stopped))

        with meter.stage("search", total=len(queries)):
            cached_count = sum(key in answer_by_key for key in keys)
            meter.count(texts=len(queries), cached=cached_count)
            if missing_keys:
                self._open_client()
            for key, answer in completed(send, missing_keys, width=self.concurrency):
                answer_by_key[key] = answer
                if self._cache is not None:
                    self._cache.put_text(name, key, answer)
        answers = [json.loads(answer_by_key[key]) for key in keys]
        self._oldest_answer = min((answer["at"] for answer in answers), default="")
        refuse_distances(answer["scores"] for answer in answers)
        rankings = [
            ranked(answer["ids"], answer["scores"], depth) for answer in answers
        ]
        return self._recognised(rankings, meter)

    def _cached_answers(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Return the answers in the cache by key."""
        if self._cache is None:
            return {}
        return {keys[i]: answer for i, answer, _ in self._cache.get_texts(keys)}

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Return the endpoint's hits for one query, without the cache."""
        answer = json.loads(self._request(query, depth, single_call(meter)))
        return ranked(answer["ids"], answer["scores"], depth)

    def _open_client(self) -> JsonClient:
        """Return the client, created on first use."""
        if self._client is None:
            hide_values(self.url, self.body)
            headers = request_headers(self.url, self.headers or {})
            self._client = JsonClient(self.url, headers, self._shown_url)
            weakref.finalize(self, close_later, self._client.close_async)
        return self._client

    def _request(self, query: Query, depth: int, call: Call) -> str:
        """Return the hits of one query as the JSON text that is cached."""
        client = self._open_client()

        async def attempt() -> PaidAnswer[object]:
            url = expand(self.url)
            url = url.replace(QUERY_PLACEHOLDER, quote(query.text, safe=""))
            url = url.replace(DEPTH_PLACEHOLDER, str(depth))
            body = b""
            if self.body is not None:
                filled_body = _fill_template(expand(self.body), query.text, depth)
                body = json.dumps(filled_body).encode()
            started = time.perf_counter()
            answer = await client.send(self.method, url, body)
            call.meter.time_request(time.perf_counter() - started)
            return PaidAnswer(answer, NO_COST)

        request = self._caller.call(attempt, NO_COST, call, 0)
        hits = self._read_hits(run_request(request, call.stopped), query)
        score_by_id: dict[str, float] = {}
        for doc_id, score in zip(hits.ids, hits.scores, strict=True):
            score_by_id.setdefault(doc_id, score)
        if len(score_by_id) < len(hits.ids):
            call.meter.note("repeated-hit-query", query.id)
        first_ids = list(score_by_id)[:depth]
        stored_answer = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "ids": first_ids,
            "scores": [score_by_id[doc_id] for doc_id in first_ids],
        }
        return json.dumps(stored_answer, ensure_ascii=False)

    def _read_hits(self, answer: object, query: Query) -> _EndpointHits:
        """Return the ids and scores in an answer.

        Raises:
            BackendError: the answer is not as described.
        """
        location = f"{self._shown_url}: query {query.id!r}"
        try:
            ids = self._ids_path.search(answer)
            scores: Any = None
            if self._scores_path is not None:
                scores = self._scores_path.search(answer)
        except ValueError as error:  # of JMESPath
            raise BackendError(
                f"{location}: the answer is not as described: {error_line(str(error))}"
            ) from None
        doc_ids = [hit_id(id_) for id_ in ids] if isinstance(ids, list) else [None]
        valid_ids = [doc_id for doc_id in doc_ids if doc_id is not None]
        if len(valid_ids) < len(doc_ids):
            raise BackendError(
                f"{location}: `ids` finds no list of ids in the answer: "
                f"{error_line(json.dumps(answer))}"
            )
        if self._scores_path is None:
            count = len(valid_ids)
            return _EndpointHits(valid_ids, [float(count - i) for i in range(count)])
        has_scores = isinstance(scores, list) and len(scores) == len(valid_ids)
        if not has_scores or not all(map(is_finite_number, scores)):
            raise BackendError(
                f"{location}: `scores` does not find one number for each of "
                f"{len(valid_ids)} ids"
            )
        return _EndpointHits(valid_ids, list(map(float, scores)))

    @property
    def _shown_url(self) -> str:
        """The address in messages, without its query string."""
        return redact_url(self.url)


def _compile_path(key: str, path: str) -> Any:
    """Return a compiled JMESPath.

    Raises:
        InputError: it is not one.
    """
    import jmespath

    try:
        return jmespath.compile(path)
    except jmespath.exceptions.JMESPathError as error:
        reason = " ".join(str(error).split())[:120]
        problem = f"{path!r} is not JMESPath: {reason}"
        raise InputError(Problem(key, problem, "such as hits.hits[*]._id")) from None


def _fill_template(template: Any, query_text: str, depth: int) -> Any:
    """Return a template with the query and the depth; texts become data, never JSON."""
    if template == DEPTH_PLACEHOLDER:
        return depth
    if isinstance(template, str):
        text = template.replace(DEPTH_PLACEHOLDER, str(depth))
        return text.replace(QUERY_PLACEHOLDER, query_text)
    if isinstance(template, Mapping):
        return {
            key: _fill_template(inner, query_text, depth)
            for key, inner in template.items()
        }
    if isinstance(template, list | tuple):
        return [_fill_template(inner, query_text, depth) for inner in template]
    return template
