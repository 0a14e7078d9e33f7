"""Cohere's embeddings: what is asked, and what is made of the answer."""

import base64

import numpy as np
import pytest

from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.cohere import CohereEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, single_call
from tests.dialects import KEY
from tests.provider_blocks import TEXTS, check_embeddings, set_keys
from tests.servers import BROKEN_PARTS, BROKEN_ROWS, OpenAIProvider, Refusal, real_vectors, serving, tokens_of

FAULTS = ["few", "many", "expired", "embedding-null", "embedding-words", "data-text", "data-null"]
"""Answers that are not of this protocol; what any service may answer is in test_remote_answers.py."""


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    set_keys(monkeypatch)


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
        vectors = self.vectors(texts, fault)[:, : body.get("output_dimension")]
        (kind,) = body["embedding_types"]
        rows = written(vectors, kind)
        if fault in BROKEN_ROWS and "embedding" in BROKEN_ROWS[fault]:
            rows[0] = BROKEN_ROWS[fault]["embedding"]
        billed = {"billed_units": {"input_tokens": sum(map(tokens_of, texts))}}
        whole = {"id": "1", "texts": texts, "embeddings": {kind: rows}, "meta": billed}
        return (whole | {"embeddings": BROKEN_PARTS[fault].get("data", "x")} if fault in BROKEN_PARTS else whole), {}

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


def encoder(provider, **more):
    return CohereEncoder("embed-v4.0", base_url=provider.url, api_key=KEY, **more)


def test_the_block_of_the_docs_is_ready(tmp_path):
    check_embeddings("Cohere", Cohere, tmp_path)


@pytest.mark.parametrize("kind", ["float", "base64", "int8", "uint8", "binary", "ubinary"])
def test_every_number_format_keeps_the_neighbours(kind):
    with serving(Cohere()) as provider:
        vectors = encoder(provider, embedding_type=kind).embed(TEXTS, "document", single_call()).vectors
    real = real_vectors(TEXTS)
    assert vectors.shape == real.shape
    if kind in {"float", "base64"}:
        assert np.array_equal(vectors, real)
    elif kind in {"int8", "uint8"}:
        assert np.array_equal(vectors, np.rint(real * 127).clip(-128, 127))
    else:
        assert np.array_equal(vectors, np.where(real > 0, 1, -1))


def test_the_role_and_the_dimensions_are_told():
    with serving(Cohere()) as provider:
        assert encoder(provider, dimensions=16).embed(["a"], "query", single_call()).vectors.shape == (1, 16)
        body = provider.requests[0]["body"]
        assert (body["input_type"], body["output_dimension"], body["truncate"]) == ("search_query", 16, "NONE")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lasting_fault_is_one_message_and_what_was_paid_for_is_kept(fault, tmp_path):
    with serving(Cohere(["", fault])) as provider, Cache(tmp_path / "c") as cache:
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
    with serving(Cohere(["429"])) as provider, Cache(tmp_path / "c") as cache:
        meter = Meter()
        found = Embedder(encoder(provider), cache).embed(TEXTS, "document", meter)
        assert np.allclose(found.vectors, real_vectors(TEXTS))
        assert meter.counts("")["retries"] == 1


def test_the_key_is_needed_for_the_providers_own_server_alone(monkeypatch):
    for name in ("CO_API_KEY",):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="is not set in the environment"):
        CohereEncoder("embed-v4.0").check()
    with pytest.raises(InputError, match="is not set in the environment"):
        CohereEncoder("embed-v4.0", base_url="https://api.cohere.com/").check()
    CohereEncoder("embed-v4.0", base_url="http://api.cohere.com").check()  # a key is not sent in the clear
    CohereEncoder("embed-v4.0", base_url="https://elsewhere.example.org").check()


def test_fingerprints_differ_where_vectors_do():
    made = [CohereEncoder("m"), CohereEncoder("m", dimensions=8), CohereEncoder("m", embedding_type="int8")]
    assert len({one.fingerprint for one in made}) == 3
