"""Services on the loopback that speak the dialects of docs/how-to/providers.md, each
with what it alone does.

They are stricter than the services: what a dialect needs and did not get is refused.
"""

from __future__ import annotations

from functools import partial
from urllib.parse import urlsplit

from tests.support.servers import OpenAIProvider, Refusal, tokens_of

KEY = "test-key-0123456789"


class Dialect(OpenAIProvider):
    """OpenAI's protocol as others speak it.

    Args:
        base: path and query of the server's address.
        header: which carries the key; "" for a server that wants none.
        packs: whether it knows base64; None where it refuses what asks for it.
        most: texts a request.
        roles: key of the body -> its value for documents and for queries.
    """

    def __init__(
        self,
        script=(),
        *,
        base="/v1",
        header="Authorization",
        packs=True,
        most=2048,
        roles=None,
        **more,
    ):
        super().__init__(script, **more)
        self.base = base
        self.header = header
        self.packs = packs
        self.most = most
        self.roles = roles or {}

    def answer(self, path, body, headers, fault):
        own = urlsplit(self.base)
        asked = urlsplit(path)
        keys = {"Authorization": f"Bearer {KEY}", "api-key": KEY}
        if any(
            headers.get(name) != (keys[name] if name == self.header else None)
            for name in keys
        ):
            raise Refusal(401, "invalid_api_key", "no key, or another")
        if (asked.path, asked.query) != (f"{own.path}/embeddings", own.query):
            raise Refusal(404, "not_found", f"no route {path}")
        for key, values in self.roles.items():
            if body.get(key) not in values:
                raise Refusal(
                    400, "invalid_request_error", f"{key} must be one of {values}"
                )
        if len(body["input"]) > self.most:
            raise Refusal(
                422,
                "Validation",
                f"batch size {len(body['input'])} > maximum allowed {self.most}",
            )
        if self.packs is None and body["encoding_format"] == "base64":
            raise Refusal(
                400,
                "invalid_request_error",
                "Setting {'encoding_format': 'base64'} is not supported",
            )
        whole, more = super().answer(
            path,
            body if self.packs else {**body, "encoding_format": "float"},
            headers,
            fault,
        )
        if "input_type" in self.roles:  # Voyage counts no prompt apart
            whole["usage"] = {"total_tokens": whole["usage"]["total_tokens"]}
        return whole, more

    def error(self, refusal):
        return (
            {"detail": refusal.message}
            if "input_type" in self.roles
            else super().error(refusal)
        )


class RerankProvider(OpenAIProvider):
    """The rerank routes of every dialect: the score of a document is the share of the
    query's words that it has.
    """

    def __init__(self, script=(), *, dialect, most=1000, **more):
        super().__init__(script, **more)
        self.dialect, self.most = dialect, most
        self.base = {"cohere": "", "tei": ""}.get(dialect, "/v1")
        self.scored: list[tuple[str, str]] = []

    def answer(self, path, body, headers, fault):
        assert path == {"cohere": "/v2/rerank", "tei": "/rerank"}.get(
            self.dialect, "/v1/rerank"
        ), path
        if (
            self.dialect in {"cohere", "voyage", "jina"}
            and headers.get("Authorization") != f"Bearer {KEY}"
        ):
            raise Refusal(401, "unauthorized", "invalid api token")
        documents = body["texts" if self.dialect == "tei" else "documents"]
        if len(documents) > self.most:
            raise Refusal(
                422,
                "Validation",
                f"batch size {len(documents)} > maximum allowed batch size {self.most}",
            )
        with self.lock:
            self.scored += [(body["query"], document) for document in documents]
        name = "score" if self.dialect == "tei" else "relevance_score"
        results = [
            {"index": i, name: overlap(body["query"], document)}
            for i, document in enumerate(documents)
        ]
        results = _spoiled(
            sorted(results, key=lambda result: -result[name]), name, fault
        )
        total = sum(
            tokens_of(body["query"]) + tokens_of(document) for document in documents
        )
        match self.dialect:
            case "tei":
                return results, {}
            case "cohere":
                return {
                    "id": "1",
                    "results": results,
                    "meta": {"billed_units": {"search_units": 1}},
                }, {}
            case "voyage":
                return {
                    "object": "list",
                    "data": results,
                    "usage": {"total_tokens": total},
                }, {}
        return {
            "model": body["model"],
            "results": results,
            "usage": {"total_tokens": total},
        }, {}

    def error(self, refusal):
        return {"message": refusal.message}


def _spoiled(results, name, fault):
    """Results after a fault."""
    first, *other_results = results
    spoiled = {
        "few": results[:-1],
        "many": [*results, first],
        "twice": [*results[:-1], first],
        "empty": [],
        "nan": [first | {name: float("nan")}, *other_results],
        "index-null": [first | {"index": None}, *other_results],
        "unindexed": [
            {key: value for key, value in first.items() if key != "index"},
            *other_results,
        ],
        "score-text": [first | {name: "high"}, *other_results],
    }
    return spoiled.get(fault, results)


def overlap(query, document):
    """The share of a query's words that a document has, less a little for its length,
    so that no two are equal.
    """
    words = query.split()
    return (
        sum(word in document.split() for word in words) / len(words)
        - len(document) / 10_000
    )


Voyage = partial(Dialect, most=1000, roles={"input_type": ("document", "query")})
Vllm = partial(Dialect, header="")
DEPLOYMENT = "/openai/deployments/embedder?api-version=2024-10-21"
ALL = {
    "OpenAI": Dialect,
    "Azure OpenAI, by deployment": partial(Dialect, base=DEPLOYMENT, header="api-key"),
    "Azure OpenAI, v1": partial(Dialect, base="/openai/v1", header="api-key"),
    "Voyage": Voyage,
    "Jina": partial(Dialect, roles={"task": ("retrieval.passage", "retrieval.query")}),
    "Mistral": Dialect,
    "Gemini, compatible endpoint": partial(
        Dialect, base="/v1beta/openai", packs=False, most=100
    ),
    "Text Embeddings Inference": partial(Dialect, header="", most=32),
    "vLLM": Vllm,
    "Ollama": partial(Dialect, header="", packs=False),
    "LiteLLM proxy": partial(Dialect, packs=None),
    "llama.cpp": partial(Dialect, header="", packs=False),
}
"""Heading in docs/how-to/providers.md -> the fake that speaks this dialect."""
