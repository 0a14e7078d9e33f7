"""Services on the loopback that speak the dialects of docs/how-to/providers.md, each with what it alone does.

They are stricter than the services: what a dialect needs and did not get is refused.
"""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.support.servers import BROKEN_PARTS, OpenAIProvider, Provider, Refusal, tokens_of

KEY = "test-key-0123456789"


class Dialect(OpenAIProvider):
    """OpenAI's protocol as others speak it."""

    base = "/v1"
    packs = True
    """Whether it knows base64."""
    most = 2048
    """Texts a request."""
    needs_key = True
    roles: ClassVar[dict[str, tuple[str, str]]] = {}
    """Key of the body -> its value for documents and for queries."""

    def check(self, path, body, headers):
        if self.needs_key and headers.get("Authorization") != f"Bearer {KEY}":
            raise Refusal(401, "invalid_api_key", "no key")
        if urlsplit(path).path != f"{urlsplit(self.base).path}/embeddings":
            raise Refusal(404, "not_found", f"no route {path}")
        for key, values in self.roles.items():
            if body.get(key) not in values:
                raise Refusal(400, "invalid_request_error", f"{key} must be one of {values}")

    def answer(self, path, body, headers, fault):
        self.check(path, body, headers)
        texts = body["input"]
        if len(texts) > self.most:
            raise self.too_many(len(texts))
        if not self.packs:
            body = {**body, "encoding_format": "float"}
        return super().answer(path, body, headers, fault)

    def too_many(self, count):
        return Refusal(400, "invalid_request_error", f"maximum batch size is {self.most}, got {count}")


class Azure(Dialect):
    base = "/openai/deployments/embedder?api-version=2024-10-21"

    def check(self, path, body, headers):
        if headers.get("api-key") != KEY or headers.get("Authorization"):
            raise Refusal(401, "401", "Access denied due to invalid subscription key or wrong API endpoint.")
        parts = urlsplit(path)
        if parts.path != "/openai/deployments/embedder/embeddings" or "api-version" not in parse_qs(parts.query):
            raise Refusal(404, "404", "Resource not found")


class AzureV1(Dialect):
    base = "/openai/v1"

    def check(self, path, body, headers):
        if headers.get("api-key") != KEY:
            raise Refusal(401, "401", "Access denied due to invalid subscription key or wrong API endpoint.")
        if path != "/openai/v1/embeddings":
            raise Refusal(404, "404", "Resource not found")


class Voyage(Dialect):
    roles: ClassVar = {"input_type": ("document", "query")}
    most = 1000

    def answer(self, path, body, headers, fault):
        whole, more = super().answer(path, body, headers, fault)
        usage = {"total_tokens": whole["usage"]["total_tokens"]}
        return (whole if fault in BROKEN_PARTS else whole | {"usage": usage}), more

    def error(self, refusal):
        return {"detail": refusal.message}


class Jina(Dialect):
    roles: ClassVar = {"task": ("retrieval.passage", "retrieval.query")}


class GeminiCompatible(Dialect):
    base = "/v1beta/openai"
    packs = False
    most = 100


class Tei(Dialect):
    needs_key = False
    most = 32

    def too_many(self, count):
        return Refusal(422, "Validation", f"batch size {count} > maximum allowed batch size {self.most}")

    def error(self, refusal):
        return {"message": refusal.message, "code": refusal.status, "type": refusal.kind}


class Vllm(Dialect):
    needs_key = False

    def too_long(self, tokens):
        words = f"This model's maximum context length is {self.max_tokens} tokens. However, your request has {tokens}"
        return Refusal(400, "BadRequestError", f"{words} input tokens. Please reduce the length of the input.")


class Ollama(Dialect):
    needs_key = False
    packs = False


class LiteLlm(Dialect):
    def check(self, path, body, headers):
        super().check(path, body, headers)
        if body.get("encoding_format") == "base64":
            words = "litellm.UnsupportedParamsError: Setting {'encoding_format': 'base64'} is not supported"
            raise Refusal(400, "invalid_request_error", words)


class LlamaCpp(Dialect):
    needs_key = False
    packs = False

    def too_long(self, tokens):
        words = f"input ({tokens} tokens) is too large to process. increase the physical batch size"
        return Refusal(500, "server_error", f"{words} (current batch size: {self.max_tokens})")


class RerankProvider(OpenAIProvider):
    """The rerank routes of every dialect: the score of a document is the share of the query's words that it has.

    `companions` adds to each score the number of documents that it came with.
    """

    def __init__(self, script=(), *, dialect, companions=False, most=1000, **more):
        super().__init__(script, **more)
        self.dialect = dialect
        self.companions = companions
        self.most = most
        self.base = {"cohere": "", "tei": ""}.get(dialect, "/v1")
        self.scored: list[tuple[str, str]] = []

    def answer(self, path, body, headers, fault):
        assert path == {"cohere": "/v2/rerank", "tei": "/rerank"}.get(self.dialect, "/v1/rerank"), path
        needs_key = self.dialect in {"cohere", "voyage", "jina"}
        if needs_key and headers.get("Authorization") != f"Bearer {KEY}":
            raise Refusal(401, "unauthorized", "invalid api token")
        documents = body["texts" if self.dialect == "tei" else "documents"]
        if len(documents) > self.most:
            raise Refusal(422, "Validation", f"batch size {len(documents)} > maximum allowed batch size {self.most}")
        with self.lock:
            self.scored += [(body["query"], document) for document in documents]
        scores = [overlap(body["query"], document) for document in documents]
        if self.companions:
            scores = [score + len(documents) for score in scores]
        name = "score" if self.dialect == "tei" else "relevance_score"
        results = [{"index": i, name: score} for i, score in enumerate(scores)]
        results.sort(key=lambda one: -one[name])
        results = _spoiled(results, name, fault)
        total = sum(tokens_of(body["query"]) + tokens_of(document) for document in documents)
        match self.dialect:
            case "tei":
                return results, {}
            case "cohere":
                return {"id": "1", "results": results, "meta": {"billed_units": {"search_units": 1}}}, {}
            case "voyage":
                return {"object": "list", "data": results, "usage": {"total_tokens": total}}, {}
        return {"model": body["model"], "results": results, "usage": {"total_tokens": total}}, {}

    def error(self, refusal):
        return {"message": refusal.message}


def _spoiled(results, name, fault):
    """Results after a fault."""
    first, *rest = results
    spoiled = {
        "few": results[:-1],
        "many": [*results, first],
        "twice": [*results[:-1], first],
        "empty": [],
        "nan": [first | {name: float("nan")}, *rest],
        "index-null": [first | {"index": None}, *rest],
        "score-null": [first | {name: None}, *rest],
        "score-text": [first | {name: "high"}, *rest],
    }
    return spoiled.get(fault, results)


def overlap(query, document):
    """The share of a query's words that a document has, less a little for its length, so that no two are equal."""
    words = query.split()
    return sum(word in document.split() for word in words) / len(words) - len(document) / 10_000


ALL: dict[str, type[Provider]] = {
    "OpenAI": Dialect, "Azure OpenAI, by deployment": Azure, "Azure OpenAI, v1": AzureV1, "Voyage": Voyage,
    "Jina": Jina, "Mistral": Dialect, "Gemini, compatible endpoint": GeminiCompatible,
    "Text Embeddings Inference": Tei, "vLLM": Vllm, "Ollama": Ollama, "LiteLLM proxy": LiteLlm, "llama.cpp": LlamaCpp,
}  # fmt: skip
"""Heading in docs/how-to/providers.md -> the fake that speaks this dialect."""
