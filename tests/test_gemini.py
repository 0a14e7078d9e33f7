"""Gemini's embeddings: what is asked, and what is made of the answer."""

import numpy as np
import pytest

from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.gemini import GeminiEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, single_call
from tests.dialects import KEY
from tests.provider_blocks import LONG, TEXTS, check_embeddings, set_keys
from tests.servers import BROKEN_PARTS, BROKEN_ROWS, OpenAIProvider, Refusal, real_vectors, serving, tokens_of

FAULTS = ["few", "many", "expired", "embedding-null", "embedding-words", "data-text", "data-null"]
"""Answers that are not of this protocol; what any service may answer is in test_remote_answers.py."""


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    set_keys(monkeypatch)


class Gemini(OpenAIProvider):
    """POST /v1beta/models/<model>:batchEmbedContents."""

    base = "/v1beta"

    def answer(self, path, body, headers, fault):
        if headers.get("x-goog-api-key") != KEY:
            raise Refusal(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers")
        requests = body["requests"]
        name = path.removeprefix("/v1beta/").removesuffix(":batchEmbedContents")
        if len(requests) > 100 or any(one["model"] != name for one in requests):
            raise Refusal(400, "INVALID_ARGUMENT", "at most 100 requests can be in one batch")
        if any(one.get("taskType") not in {"RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"} for one in requests):
            raise Refusal(400, "INVALID_ARGUMENT", "taskType is wrong")
        texts = [one["content"]["parts"][0]["text"] for one in requests]
        vectors = self.vectors(texts, fault)[:, : requests[0].get("outputDimensionality")]
        rows = [{"values": row} for row in vectors.tolist()]
        if fault in BROKEN_ROWS and "embedding" in BROKEN_ROWS[fault]:
            rows[0] = {"values": BROKEN_ROWS[fault]["embedding"]}
        whole = {"embeddings": rows, "usageMetadata": {"promptTokenCount": sum(map(tokens_of, texts))}}
        return (whole | {"embeddings": BROKEN_PARTS[fault].get("data", "x")} if fault in BROKEN_PARTS else whole), {}

    def error(self, refusal):
        return {"error": {"code": refusal.status, "message": refusal.message, "status": refusal.kind}}


def encoder(provider, **more):
    return GeminiEncoder("gemini-embedding-001", base_url=provider.url, api_key=KEY, **more)


def test_the_block_of_the_docs_is_ready(tmp_path):
    check_embeddings("Gemini", Gemini, tmp_path)


def test_the_task_and_the_dimensions_are_told_and_vectors_brought_to_length_1():
    with serving(Gemini()) as provider:
        vectors = encoder(provider, dimensions=16).embed(["wing flow"], "query", single_call()).vectors
        assert np.linalg.norm(vectors) == pytest.approx(1)
        (one,) = provider.requests[0]["body"]["requests"]
        assert (one["taskType"], one["outputDimensionality"]) == ("RETRIEVAL_QUERY", 16)


def test_what_is_dropped_without_a_word_is_counted():
    with serving(Gemini()) as provider:
        embedded = encoder(provider, max_tokens=50).embed(["a", LONG], "document", single_call())
    assert embedded.truncated_tokens[0] == 0
    assert embedded.truncated_tokens[1] >= 70


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lasting_fault_is_one_message_and_what_was_paid_for_is_kept(fault, tmp_path):
    with serving(Gemini(["", fault])) as provider, Cache(tmp_path / "c") as cache:
        own = encoder(provider, batch_size=20, concurrency=1, patience=0.1)
        with pytest.raises(BackendError) as caught:
            Embedder(own, cache).embed(TEXTS, "document", Meter())
        assert "\n" not in str(caught.value)
        assert KEY not in str(caught.value)
        assert len(provider.requests) == 2
        assert cache.info()[0].rows == 20
        assert np.allclose(Embedder(own, cache).embed(TEXTS, "document", Meter()).vectors, real_vectors(TEXTS))
        assert len(provider.requests) == 3


def test_a_passing_fault_is_tried_again(tmp_path):
    with serving(Gemini(["429"])) as provider, Cache(tmp_path / "c") as cache:
        meter = Meter()
        found = Embedder(encoder(provider), cache).embed(TEXTS, "document", meter)
        assert np.allclose(found.vectors, real_vectors(TEXTS))
        assert meter.counts("")["retries"] == 1


def test_the_key_is_needed_for_the_providers_own_server_alone(monkeypatch):
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="is not set in the environment"):
        GeminiEncoder("gemini-embedding-001").check()
    with pytest.raises(InputError, match="is not set in the environment"):
        GeminiEncoder("gemini-embedding-001", base_url="https://generativelanguage.googleapis.com/v1beta/").check()
    GeminiEncoder(
        "gemini-embedding-001", base_url="http://generativelanguage.googleapis.com"
    ).check()  # a key is not sent in the clear
    GeminiEncoder("gemini-embedding-001", base_url="https://elsewhere.example.org").check()


def test_fingerprints_differ_where_vectors_do():
    assert GeminiEncoder("m").fingerprint != GeminiEncoder("m", query_task="").fingerprint
