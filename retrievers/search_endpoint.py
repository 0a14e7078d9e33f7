"""A search endpoint behind HTTP."""

import hashlib
import json
import weakref
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal
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
from retrievers.services.caller import RequestCost, ServiceCaller
from retrievers.services.clients import JsonClient
from retrievers.services.concurrency import close_later, completed, run_request

QUERY_PLACEHOLDER, DEPTH_PLACEHOLDER = "{query}", "{depth}"


class Endpoint(ExternalRetriever):
    """Sends each query to an endpoint and reads ids, and scores where there are any, out of the JSON of its answer."""

    expands: ClassVar[bool] = True
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
    """Sent as JSON; {query} and {depth} in its strings are replaced, a string that is {depth} by a number."""
    concurrency: PositiveInt = 4
    """Requests at once."""
    rpm: NonNegativeNumber = 0
    """Requests a minute that the service allows; 0: unknown."""
    timeout: PositiveNumber = 30
    """Seconds for one try, its whole answer read."""
    patience: PositiveNumber = 60
    """Seconds after which a request that keeps failing is given up."""
    _ids: Any
    _scores: Any
    _digest: str
    """Of the request: a URL may hold a secret, and is never written down."""
    _client: JsonClient | None = None
    _caller: ServiceCaller
    _cache: Cache | None = None
    _oldest: str = ""

    def model_post_init(self, _: object) -> None:
        """Check the request; nothing is sent."""
        url, method, body = self.url, self.method, self.body
        check_address("url", url)
        if QUERY_PLACEHOLDER not in f"{url}{json.dumps(body, default=list)}":
            raise InputError(
                Problem(
                    "body",
                    f"{QUERY_PLACEHOLDER} is missing",
                    f"write {QUERY_PLACEHOLDER} in the body or the URL",
                )
            )
        self._ids = _path("ids", expand(self.ids))
        self._scores = _path("scores", expand(self.scores)) if self.scores else None
        # Keys change from day to day, and answers do not: a header counts as it is written.
        headers = [self.headers] if self.headers else []
        shape = json.dumps(
            [*expand([url, method, body, self.ids, self.scores]), *headers],
            default=list,
        )
        self._digest = hashlib.sha256(shape.encode()).hexdigest()
        limits = Limits(
            self.concurrency, self.rpm, tpm=0, patience=self.patience, tokens=0
        )
        self._caller = ServiceCaller(limits, self.timeout, lambda: self._where)

    @property
    def provenance(self) -> Mapping[str, str]:
        """The address without its query string, and since when the oldest answer is kept."""
        return {
            "url": redact_url(self.url),
            **({"answered_at": self._oldest} if self._oldest else {}),
        }

    def setup(self, resources: Resources) -> None:
        """Keep answers in the run's cache, and take those that are there: --fresh asks anew."""
        self._cache = resources.cache

    def _opened(self) -> JsonClient:
        if self._client is None:
            hide_values(self.url, self.body)
            self._client = JsonClient(
                self.url, request_headers(self.url, self.headers or {}), self._where
            )
            weakref.finalize(self, close_later, self._client.close_async)
        return self._client

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return the endpoint's hits for each query.

        Raises:
            BackendError: it refused a request, kept failing, or its answer is not as described.
        """
        name = fingerprint("http", self._where, request=self._digest, depth=depth)
        digests = text_keys(name, "query", [query.text for query in queries])
        distinct = dict(zip(digests, queries, strict=True))
        held = () if self._cache is None else self._cache.get_texts(list(distinct))
        replies = {list(distinct)[i]: text for i, text, _ in held}

        def ask(digest: bytes, stopped: Stop) -> str:
            return self._asked(distinct[digest], depth, Call(meter, stopped))

        with meter.stage("search", total=len(queries)):
            meter.count(
                texts=len(queries), cached=sum(digest in replies for digest in digests)
            )
            waiting = [digest for digest in distinct if digest not in replies]
            if waiting:
                self._opened()
            for digest, reply in completed(ask, waiting, width=self.concurrency):
                replies[digest] = reply
                if self._cache is not None:
                    self._cache.put_text(name, digest, reply)
        kept = [json.loads(replies[digest]) for digest in digests]
        self._oldest = min((reply["at"] for reply in kept), default="")
        refuse_distances(reply["scores"] for reply in kept)
        rankings = [ranked(reply["ids"], reply["scores"], depth) for reply in kept]
        return self._recognised(rankings, meter)

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Ask the endpoint, past the cache."""
        reply = json.loads(self._asked(query, depth, single_call(meter)))
        return ranked(reply["ids"], reply["scores"], depth)

    def _asked(self, query: Query, depth: int, call: Call) -> str:
        client = self._opened()

        async def attempt() -> tuple[object, RequestCost]:
            url = (
                expand(self.url)
                .replace(QUERY_PLACEHOLDER, quote(query.text, safe=""))
                .replace(DEPTH_PLACEHOLDER, str(depth))
            )
            body = (
                b""
                if self.body is None
                else json.dumps(_filled(expand(self.body), query.text, depth)).encode()
            )
            return await client.send(self.method, url, body), RequestCost(0, 0.0)

        answer = run_request(
            self._caller.call(attempt, RequestCost(0, 0.0), call, 0), call.stopped
        )
        ids, scores = self._read(answer, query)
        first = dict(reversed(list(zip(ids, scores, strict=True))))
        if len(first) < len(ids):
            call.meter.note("repeated-hit-query", query.id)
        kept = list(dict.fromkeys(ids))[:depth]
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return json.dumps(
            {"at": at, "ids": kept, "scores": [first[id_] for id_ in kept]},
            ensure_ascii=False,
        )

    def _read(self, answer: object, query: Query) -> tuple[list[str], list[float]]:
        where = f"{self._where}: query {query.id!r}"
        try:
            listed, scores = (
                self._ids.search(answer),
                self._scores.search(answer) if self._scores else None,
            )
        except ValueError as error:  # of JMESPath
            raise BackendError(
                f"{where}: the answer is not as described: {error_line(str(error))}"
            ) from None
        named = [hit_id(one) for one in listed] if isinstance(listed, list) else [None]
        ids = [one for one in named if one is not None]
        if len(ids) < len(named):
            raise BackendError(
                f"{where}: `ids` finds no list of ids in the answer: {error_line(json.dumps(answer))}"
            )
        if self._scores is None:
            return ids, [float(len(ids) - place) for place in range(len(ids))]
        if (
            not isinstance(scores, list)
            or len(scores) != len(ids)
            or not all(map(is_finite_number, scores))
        ):
            raise BackendError(
                f"{where}: `scores` does not find one number for each of {len(ids)} ids"
            )
        return ids, list(map(float, scores))

    @property
    def _where(self) -> str:
        return self.provenance["url"]


def _path(key: str, written: str) -> Any:
    import jmespath

    try:
        return jmespath.compile(written)
    except jmespath.exceptions.JMESPathError as error:
        what = f"{written!r} is not JMESPath: {' '.join(str(error).split())[:120]}"
        raise InputError(Problem(key, what, "such as hits.hits[*]._id")) from None


def _filled(value: Any, text: str, depth: int) -> Any:
    """A template with the query and the depth in it; texts are put in as data, never as JSON."""
    if isinstance(value, str):
        return (
            depth
            if value == DEPTH_PLACEHOLDER
            else value.replace(DEPTH_PLACEHOLDER, str(depth)).replace(
                QUERY_PLACEHOLDER, text
            )
        )
    if isinstance(value, Mapping):
        return {key: _filled(inner, text, depth) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(inner, text, depth) for inner in value]
    return value
