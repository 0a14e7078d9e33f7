"""Cohere's and Gemini's embeddings: what is asked, and what is made of the answer."""

import base64
from typing import NamedTuple

import numpy as np
import pytest

from retrievers.embedding import Embedder
from retrievers.encoders.cohere import CohereEncoder
from retrievers.encoders.gemini import GeminiEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, single_call
from tests.support.dialects import KEY
from tests.support.provider_blocks import LONG, TEXTS, check_embeddings
from tests.support.servers import OpenAIProvider, Refusal, real_vectors, resized, serving, tokens_of

pytestmark = pytest.mark.usefixtures("keys")


class Cohere(OpenAIProvider):
    """POST /v2/embed."""

    base = ""

    def answer(self, path, body, headers, fault):
        assert path == "/v2/embed", path
        if headers.get("Authorization") != f"Bearer {KEY}":
            raise Refusal(401, "unauthorized", "invalid api token")
        if body["input_type"] not in {"search_document", "search_query"} or len(body["texts"]) > 96:
            raise Refusal(400, "bad_request", "input_type or texts are wrong")
        texts = body["texts"]
        vectors = resized(self.vectors(texts, fault), body.get("output_dimension"))
        (kind,) = body["embedding_types"]
        rows = written(vectors, kind)
        if fault == "words":
            rows[0] = ["a", "b"]
        billed = {"billed_units": {"input_tokens": sum(map(tokens_of, texts))}}
        return {"id": "1", "texts": texts, "embeddings": {kind: rows}, "meta": billed}, {}

    def error(self, refusal):
        return {"id": "1", "message": refusal.message}


def written(vectors, kind):
    """Rows in a number format of Cohere's."""
    bytes_ = np.rint(vectors * 127).clip(-128, 127)
    bits = np.packbits(vectors > 0, axis=1)
    match kind:
        case "float":
            return vectors.tolist()
        case "base64":
            return [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
        case "int8":
            return bytes_.astype(int).tolist()
        case "uint8":
            return (bytes_ + 128).astype(int).tolist()
        case "ubinary":
            return bits.astype(int).tolist()
        case "binary":
            return (bits.astype(int) - 128).tolist()


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
        vectors = resized(self.vectors(texts, fault), requests[0].get("outputDimensionality"))
        rows = [{"values": row} for row in vectors.tolist()]
        if fault == "words":
            rows[0] = {"values": ["a", "b"]}
        return {"embeddings": rows, "usageMetadata": {"promptTokenCount": sum(map(tokens_of, texts))}}, {}

    def error(self, refusal):
        return {"error": {"code": refusal.status, "message": refusal.message, "status": refusal.kind}}


class Service(NamedTuple):
    """A provider with a protocol of its own."""

    name: str
    fake: type[OpenAIProvider]
    encoder: type
    model: str
    own: str
    variables: tuple[str, ...]

    def __str__(self):
        return self.name


COHERE = Service("Cohere", Cohere, CohereEncoder, "embed-v4.0", "https://api.cohere.com", ("CO_API_KEY",))
GEMINI = Service("Gemini", Gemini, GeminiEncoder, "gemini-embedding-001",
                 "https://generativelanguage.googleapis.com/v1beta", ("GEMINI_API_KEY", "GOOGLE_API_KEY"))  # fmt: skip
SERVICES = (COHERE, GEMINI)


def encoder(service, provider, **more):
    return service.encoder(service.model, base_url=provider.url, api_key=KEY, **more)


@pytest.mark.parametrize("service", SERVICES, ids=str)
def test_the_block_of_the_docs_is_ready(service, tmp_path):
    check_embeddings(service.name, service.fake, tmp_path)


@pytest.mark.parametrize("kind", ["float", "base64", "int8", "uint8", "binary", "ubinary"])
def test_every_number_format_keeps_the_neighbours(kind):
    with serving(Cohere()) as provider:
        vectors = encoder(COHERE, provider, embedding_type=kind).embed(TEXTS, "document", single_call()).vectors
    real = real_vectors(TEXTS)
    assert vectors.shape == real.shape
    if kind in {"float", "base64"}:
        assert np.array_equal(vectors, real)
    elif kind in {"int8", "uint8"}:
        assert np.array_equal(vectors, np.rint(real * 127).clip(-128, 127))
    else:
        assert np.array_equal(vectors, np.where(real > 0, 1, -1))


def test_cohere_is_told_the_role_and_the_dimensions():
    with serving(Cohere()) as provider:
        assert encoder(COHERE, provider, dimensions=16).embed(["a"], "query", single_call()).vectors.shape == (1, 16)
        body = provider.requests[0]["body"]
        assert (body["input_type"], body["output_dimension"], body["truncate"]) == ("search_query", 16, "NONE")


def test_gemini_is_told_the_task_and_the_dimensions_and_vectors_brought_to_length_1():
    with serving(Gemini()) as provider:
        vectors = encoder(GEMINI, provider, dimensions=16).embed(["wing flow"], "query", single_call()).vectors
        assert np.linalg.norm(vectors) == pytest.approx(1)
        (one,) = provider.requests[0]["body"]["requests"]
        assert (one["taskType"], one["outputDimensionality"]) == ("RETRIEVAL_QUERY", 16)


def test_what_gemini_drops_without_a_word_is_counted():
    with serving(Gemini()) as provider:
        embedded = encoder(GEMINI, provider, max_tokens=50).embed(["a", LONG], "document", single_call())
    assert embedded.truncated_tokens[0] == 0
    assert embedded.truncated_tokens[1] >= 70


@pytest.mark.parametrize("fault", ["few", "expired", "words"])
@pytest.mark.parametrize("service", SERVICES, ids=str)
def test_a_lasting_fault_is_one_message_and_what_was_paid_for_is_kept(service, fault, cache):
    with serving(service.fake(["", fault])) as provider:
        own = encoder(service, provider, batch_size=20, concurrency=1, patience=0.1)
        with pytest.raises(BackendError) as caught:
            Embedder(own, cache).embed(TEXTS, "document", Meter())
        assert "\n" not in str(caught.value)
        assert KEY not in str(caught.value)
        assert len(provider.requests) == 2
        assert cache.info()[0].rows == 20
        assert np.allclose(Embedder(own, cache).embed(TEXTS, "document", Meter()).vectors, real_vectors(TEXTS))
        assert len(provider.requests) == 3


@pytest.mark.parametrize("service", SERVICES, ids=str)
def test_the_key_is_needed_for_the_providers_own_server_alone(service, monkeypatch):
    for name in service.variables:
        monkeypatch.delenv(name, raising=False)
    for where in ({}, {"base_url": f"{service.own}/"}):
        with pytest.raises(InputError, match="is not set in the environment"):
            service.encoder(service.model, **where).check()
    plain = service.own.replace("https", "http")  # a key is not sent in the clear
    for elsewhere in (plain, "https://elsewhere.example.org"):
        service.encoder(service.model, base_url=elsewhere).check()


def test_fingerprints_differ_where_vectors_do():
    made = [CohereEncoder("m"), CohereEncoder("m", dimensions=8), CohereEncoder("m", embedding_type="int8")]
    assert len({one.fingerprint for one in made}) == 3
    assert GeminiEncoder("m").fingerprint != GeminiEncoder("m", query_task="").fingerprint
