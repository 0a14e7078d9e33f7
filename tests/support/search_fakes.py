"""Search services on the loopback, as far as one search goes: what their references say of request and answer.

Each refuses what the real one refuses: another path or method, a key that is missing, a parameter that it does not
know, more hits than it gives at once. Hits are ranked by shared words.

- Elasticsearch and OpenSearch: `POST /<index>/_search` (Query DSL, search API; at most 10,000 hits).
- Vespa: `POST /search/` (query API; `root.children` is left out where nothing matches; at most 400 hits).
- Typesense: `GET /collections/<name>/documents/search` (documents API, v27; at most 250 hits).
- Meilisearch: `POST /indexes/<uid>/search` (search API, v1; an unknown key is a bad request).
- Azure AI Search: `POST /indexes/<name>/docs/search?api-version=2024-07-01` (Documents - Search Post).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit

from tests.support import small
from tests.support.servers import Answering, running

KEY = "secret-token-123456"


class Refused(Exception):
    """What a service answers instead of hits: a status and a body."""


def found(text: str, size: int) -> list[tuple[str, float]]:
    """The documents that share a word with a text, best first."""
    words = set(text.split())
    scored = {d: float(len(words & set(t.split()))) for d, t in small.TEXTS.items()}
    return sorted(((d, s) for d, s in scored.items() if s), key=lambda pair: (-pair[1], pair[0]))[:size]


def _only(known: set[str], given: dict[str, object], code: int, message: str) -> None:
    if strange := given.keys() - known:
        raise Refused(code, {"message": f"{message} {sorted(strange)[0]}", "code": "bad_request"})


def elastic(scheme: str):
    """Elasticsearch or OpenSearch, which differ here by their keys alone."""

    def answer(method, path, given, body, headers):
        if headers.get("Authorization") != f"{scheme} {KEY}":
            raise Refused(401, {"error": {"type": "security_exception", "reason": "missing authentication"}})
        if (method, path, given) != ("POST", "/docs/_search", {}):
            raise Refused(404, {"error": {"type": "index_not_found_exception"}})
        _only({"size", "_source", "query"}, body, 400, "unknown key for a VALUE:")
        if not isinstance(body["size"], int) or body["size"] > 10_000:
            raise Refused(400, {"error": {"reason": "Result window is too large"}})
        ((field, text),) = body["query"]["match"].items()
        assert field == "text"
        hits = [{"_index": "docs", "_id": d, "_score": s} for d, s in found(text, body["size"])]
        total = {"value": len(hits), "relation": "eq"}
        return {"took": 1, "timed_out": False, "hits": {"total": total, "max_score": None, "hits": hits}}

    return answer


def vespa(method, path, given, body, headers):
    if (method, path, given) != ("POST", "/search/", {}):
        raise Refused(404, {"error-code": "NOT_FOUND"})
    if body["hits"] > 400:
        message = f"{body['hits']} hits requested, configured limit: 400."
        raise Refused(400, {"root": {"errors": [{"code": 3, "summary": "Illegal query", "message": message}]}})
    assert body["yql"] == "select doc_id from docs where userQuery()"
    children = [
        {"id": f"index:docs/0/{d}", "relevance": s, "source": "docs", "fields": {"doc_id": d}}
        for d, s in found(body["query"], body["hits"])
    ]
    root = {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": len(children)}}
    return {"root": {**root, **({"children": children} if children else {})}}


def typesense(method, path, given, body, headers):
    if headers.get("X-TYPESENSE-API-KEY") != KEY:
        raise Refused(401, {"message": "Forbidden - a valid `x-typesense-api-key` header must be sent."})
    if (method, path) != ("GET", "/collections/docs/documents/search"):
        raise Refused(404, {"message": "Not Found"})
    _only({"q", "query_by", "per_page", "include_fields"}, given, 400, "unknown parameter")
    if given["query_by"] != "text":
        raise Refused(404, {"message": f"Could not find a field named `{given['query_by']}` in the schema."})
    if int(given["per_page"]) > 250:
        raise Refused(422, {"message": "Only upto 250 hits can be fetched per page."})
    hits = found(given["q"], int(given["per_page"]))
    return {"facet_counts": [], "found": len(hits), "out_of": 6, "page": 1, "search_time_ms": 0,
            "hits": [{"document": {"id": d}, "highlights": [], "text_match": 578730123365711993 + int(s)}
                     for d, s in hits]}  # fmt: skip


def meilisearch(method, path, given, body, headers):
    if "Authorization" not in headers:
        raise Refused(401, {"message": "The Authorization header is missing.", "code": "missing_authorization_header"})
    if headers["Authorization"] != f"Bearer {KEY}":
        raise Refused(403, {"message": "The provided API key is invalid.", "code": "invalid_api_key"})
    if (method, path, given) != ("POST", "/indexes/docs/search", {}):
        raise Refused(404, {"message": "Index `docs` not found.", "code": "index_not_found"})
    _only({"q", "limit", "showRankingScore", "attributesToRetrieve"}, body, 400, "Unknown field")
    hits = [
        {"id": d, **({"_rankingScore": s / 10} if body.get("showRankingScore") else {})}
        for d, s in found(body["q"], min(body["limit"], 1_000))
    ]
    return {"hits": hits, "query": body["q"], "processingTimeMs": 0, "limit": body["limit"], "offset": 0}


def azure(method, path, given, body, headers):
    if headers.get("api-key") != KEY:
        raise Refused(403, {"error": {"code": "", "message": "Access denied: the api-key is missing or wrong."}})
    if given != {"api-version": "2024-07-01"}:
        raise Refused(400, {"error": {"message": "The request is missing the api-version parameter."}})
    if (method, path) != ("POST", "/indexes/docs/docs/search"):
        raise Refused(404, {"error": {"message": "The index was not found."}})
    _only({"search", "top", "select"}, body, 400, "is not a valid parameter of the operation 'search':")
    if not 0 <= body["top"] <= 1_000:
        raise Refused(400, {"error": {"message": "Value must be between 0 and 1000. Parameter name: $top"}})
    value = [{"@search.score": s, "id": d} for d, s in found(body["search"], body["top"])]
    return {"@odata.context": "https://x/indexes('docs')/$metadata#docs(*)", "value": value}


def own(method, path, given, body, headers):
    """A service as a team might write it."""
    if headers.get("Authorization") != f"Bearer {KEY}":
        raise Refused(401, {"detail": "Not authenticated"})
    if (method, path, body.keys()) != ("POST", "/search", {"text", "top_k"}):
        raise Refused(422, {"detail": "Unprocessable"})
    return {"results": [{"document_id": d, "score": s} for d, s in found(body["text"], body["top_k"])]}


SERVICES = {
    "elasticsearch": elastic("ApiKey"), "opensearch": elastic("Basic"), "vespa": vespa, "typesense": typesense,
    "meilisearch": meilisearch, "azure": azure, "ours": own,
}  # fmt: skip


class Service(Answering):
    """One service."""

    name: str
    asked: list[tuple[str, dict[str, str], object]]

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_GET(self) -> None:
        self._answer(None)

    def _answer(self, body) -> None:
        self.asked.append((self.path, dict(self.headers), body))
        url = urlsplit(self.path)
        given = dict(parse_qsl(url.query, strict_parsing=bool(url.query)))
        try:
            code, reply = 200, SERVICES[self.name](self.command, url.path, given, body, self.headers)
        except Refused as refusal:
            code, reply = refusal.args
        self.send(code, json.dumps(reply).encode())


@contextmanager
def service(name: str) -> Iterator[tuple[str, type[Service]]]:
    """Yields its URL, and what it was asked."""
    handler = type("Handler", (Service,), {"name": name, "asked": []})
    with running(handler) as server:
        yield f"http://127.0.0.1:{server.server_port}", handler
