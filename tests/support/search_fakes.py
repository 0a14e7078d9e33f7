"""Search services on the loopback, as far as one search goes: what their references say
of request and answer.

Each refuses what the real one refuses: another path or method, a key that is missing, a
parameter that it does not know. Hits are ranked by shared words.

- Elasticsearch and OpenSearch: `POST /<index>/_search` (Query DSL, search API).
- Vespa: `POST /search/` (query API; `root.children` is left out where nothing matches).
- Typesense: `GET /collections/<name>/documents/search` (documents API, v27).
- Meilisearch: `POST /indexes/<uid>/search` (search API, v1; an unknown key is a bad
request).
- Azure AI Search: `POST /indexes/<name>/docs/search?api-version=2024-07-01` (Documents
- Search Post).
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.support import small
from tests.support.servers import Answering, running

KEY = "secret-token-123456"
Hits = list[tuple[str, float]]


class Refused(Exception):
    """What a service answers instead of hits: a status and a body."""


def found(text: str, size: int) -> Hits:
    """The documents that share a word with a text, best first."""
    words = set(text.split())
    scored = {d: float(len(words & set(t.split()))) for d, t in small.TEXTS.items()}
    return sorted(
        ((d, s) for d, s in scored.items() if s), key=lambda pair: (-pair[1], pair[0])
    )[:size]


class Protocol(NamedTuple):
    """What one service wants of a request, and how it gives hits."""

    method: str
    parameter_place: str
    """Path and query; of a GET without the search's own parameters."""
    key: tuple[str, str]
    """Header and value; "" for a service that is open."""
    denied: int
    fixed: dict[str, Any]
    """What the search holds beside the text and the number of hits."""
    text: str
    size: str
    reply: Callable[[Hits], dict[str, Any]]


def elastic(scheme: str) -> Protocol:
    """Elasticsearch or OpenSearch, which differ here by their keys alone."""

    def reply(hits: Hits) -> dict[str, Any]:
        total = {"value": len(hits), "relation": "eq"}
        listed = [{"_index": "docs", "_id": d, "_score": s} for d, s in hits]
        return {
            "took": 1,
            "timed_out": False,
            "hits": {"total": total, "max_score": None, "hits": listed},
        }

    key = ("Authorization", f"{scheme} {KEY}")
    return Protocol(
        "POST", "/docs/_search", key, 401, {"_source": False}, "query", "size", reply
    )


def vespa(hits: Hits) -> dict[str, Any]:
    root = {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": len(hits)}}
    children = [
        {
            "id": f"index:docs/0/{d}",
            "relevance": s,
            "source": "docs",
            "fields": {"doc_id": d},
        }
        for d, s in hits
    ]
    return {"root": {**root, **({"children": children} if children else {})}}


def typesense(hits: Hits) -> dict[str, Any]:
    listed = [
        {
            "document": {"id": d},
            "highlights": [],
            "text_match": 578730123365711993 + int(s),
        }
        for d, s in hits
    ]
    return {
        "facet_counts": [],
        "found": len(hits),
        "out_of": 6,
        "page": 1,
        "search_time_ms": 0,
        "hits": listed,
    }


def meilisearch(hits: Hits) -> dict[str, Any]:
    listed = [{"id": d, "_rankingScore": s / 10} for d, s in hits]
    return {"hits": listed, "query": "", "processingTimeMs": 0, "limit": 5, "offset": 0}


def azure(hits: Hits) -> dict[str, Any]:
    return {
        "@odata.context": "https://x/$metadata#docs(*)",
        "value": [{"@search.score": s, "id": d} for d, s in hits],
    }


def own(hits: Hits) -> dict[str, Any]:
    """A service as a team might write it."""
    return {"results": [{"document_id": d, "score": s} for d, s in hits]}


BEARER = ("Authorization", f"Bearer {KEY}")
SERVICES = {
    "elasticsearch": elastic("ApiKey"),
    "opensearch": elastic("Basic"),
    "vespa": Protocol(
        "POST",
        "/search/",
        ("", ""),
        0,
        {"yql": "select doc_id from docs where userQuery()"},
        "query",
        "hits",
        vespa,
    ),
    "typesense": Protocol(
        "GET",
        "/collections/docs/documents/search",
        ("X-TYPESENSE-API-KEY", KEY),
        401,
        {"query_by": "text", "include_fields": "id"},
        "q",
        "per_page",
        typesense,
    ),
    "meilisearch": Protocol(
        "POST",
        "/indexes/docs/search",
        BEARER,
        403,
        {"showRankingScore": True, "attributesToRetrieve": ["id"]},
        "q",
        "limit",
        meilisearch,
    ),
    "azure": Protocol(
        "POST",
        "/indexes/docs/docs/search?api-version=2024-07-01",
        ("api-key", KEY),
        403,
        {"select": "id"},
        "search",
        "top",
        azure,
    ),
    "ours": Protocol("POST", "/search", BEARER, 401, {}, "text", "top_k", own),
}


def answered(
    protocol: Protocol, method: str, path: str, body: Any, headers: Any
) -> dict[str, Any]:
    """What a service answers."""
    url = urlsplit(path)
    parameters = dict(parse_qsl(url.query)) if protocol.method == "GET" else body
    header, value = protocol.key
    if header and headers.get(header) != value:
        raise Refused(protocol.denied, {"message": "the key is missing or wrong"})
    if (method, url.path if protocol.method == "GET" else path) != (
        protocol.method,
        protocol.parameter_place,
    ):
        raise Refused(404, {"message": f"no route {method} {path}"})
    text = parameters.get(protocol.text)
    size = int(parameters.get(protocol.size, 0))
    strange = {
        **protocol.fixed,
        protocol.text: text,
        protocol.size: parameters.get(protocol.size),
    } != parameters
    if strange or (
        protocol.method == "POST" and not isinstance(parameters[protocol.size], int)
    ):
        raise Refused(400, {"message": f"unknown or missing parameters: {parameters}"})
    return protocol.reply(
        found(text if isinstance(text, str) else text["match"]["text"], size)
    )


class Service(Answering):
    """One service."""

    name: str
    requests: list[tuple[str, dict[str, str], object]]

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_GET(self) -> None:
        self._answer(None)

    def _answer(self, body: object) -> None:
        self.requests.append((self.path, dict(self.headers), body))
        try:
            code = 200
            reply = answered(
                SERVICES[self.name], self.command, self.path, body, self.headers
            )
        except Refused as refusal:
            code, reply = refusal.args
        self.send(code, json.dumps(reply).encode())


@contextmanager
def service(name: str) -> Iterator[tuple[str, type[Service]]]:
    """Yields its URL, and what it was asked."""
    handler = type("Handler", (Service,), {"name": name, "requests": []})
    with running(handler) as server:
        yield f"http://127.0.0.1:{server.server_port}", handler
