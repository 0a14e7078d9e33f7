import os

import numpy as np
import pytest

from retrievers.cache import Cache
from retrievers.costs import estimate
from retrievers.embedding import Embedder
from retrievers.encoders.bedrock import BedrockEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, single_call
from tests.support.servers import BedrockProvider, real_vectors, serving, stored, tokens_of

TEXTS = [f"text number {i} about " + ["wing", "flow", "heat", "shock", "wave"][i % 5] for i in range(10)]
V1, V2, COHERE = "amazon.titan-embed-text-v1", "amazon.titan-embed-text-v2:0", "cohere.embed-multilingual-v3"
TOKEN = "canary/session+token==0123456789abcdef"


@pytest.fixture(autouse=True)
def dummy_credentials(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIACANARY0123456789")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary0123456789abcdefghijklmnopqrstuvwx")
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def serve(stack):
    return lambda *script, **more: stack.enter_context(serving(BedrockProvider(script, **more)))


def encoder(provider, model=V1, **more):
    options = {"region": "us-east-1", "concurrency": 2, "timeout": 60, "patience": 60, **more}
    return BedrockEncoder(model, endpoint_url=provider.url, **options)


def embed(provider, tmp_path, texts=TEXTS, meter=None, **more):
    meter = meter or Meter()
    with Cache(tmp_path / "c") as cache, meter.stage("embed-documents"):
        return Embedder(encoder(provider, **more), cache).embed(texts, "document", meter)


def padded(texts, dimensions):
    found = np.zeros((len(texts), dimensions), dtype=np.float32)
    found[:, :128] = real_vectors(texts)
    return found


def test_titan_takes_one_text_a_call(serve, tmp_path):
    provider = serve(dimensions=1536)
    meter = Meter()
    found = embed(provider, tmp_path, meter=meter)
    assert np.array_equal(found.vectors, padded(TEXTS, 1536))
    assert found.tokens.tolist() == [tokens_of(text) for text in TEXTS]
    counts = meter.stages()["embed-documents"].counts
    assert (counts["calls"], counts["tokens"]) == (10, sum(map(tokens_of, TEXTS)))
    assert counts["usd"] == pytest.approx(counts["tokens"] * 0.1e-6)
    assert all(set(request["body"]) == {"inputText"} for request in provider.requests)


def test_requests_are_signed(serve):
    provider = serve()
    encoder(provider).embed(["wing"], "query", single_call())
    signed = provider.requests[0]["headers"]["authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIACANARY0123456789/")
    assert "/us-east-1/bedrock/aws4_request" in signed


def test_titan_v2_has_dimensions_and_normalisation(serve):
    provider = serve(dimensions=1024)
    found = encoder(provider, model=V2, dimensions=256, normalize=False).embed(["wing"], "query", single_call())
    assert found.vectors.shape == (1, 256)
    assert provider.requests[0]["body"] == {"inputText": "wing", "dimensions": 256, "normalize": False}
    encoder(provider, model=V2).embed(["wing"], "query", single_call())
    assert provider.requests[1]["body"] == {"inputText": "wing", "normalize": True}


def test_cohere_is_told_the_role_and_takes_96_texts(serve, tmp_path):
    provider = serve(dimensions=1024)
    texts = [f"text {i}" for i in range(100)]
    found = embed(provider, tmp_path, texts, model=COHERE)
    assert np.array_equal(found.vectors, padded(texts, 1024))
    assert found.tokens.sum() == sum(map(tokens_of, texts))
    assert sorted(len(request["body"]["texts"]) for request in provider.requests) == [4, 96]
    encoder(provider, model=COHERE).embed(["wing"], "query", single_call())
    assert {request["body"]["input_type"] for request in provider.requests[:2]} == {"search_document"}
    assert provider.requests[2]["body"]["input_type"] == "search_query"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("few", "without dimensions"),
        ("expired", "renew the credentials and run again"),
        ("denied", "ask for access to the model"),
    ],
)
def test_a_lasting_fault_stops_with_one_message_and_keeps_what_was_paid_for(serve, tmp_path, fault, message):
    provider = serve("", "", "", fault)
    with pytest.raises(BackendError, match=message):
        embed(provider, tmp_path, concurrency=1)
    assert len(provider.requests) == 4
    assert stored(tmp_path) == 3
    embed(provider, tmp_path, concurrency=1)
    assert len(provider.requests) == 11


def test_the_limits_of_characters_are_kept_without_asking(serve, tmp_path):
    provider = serve(max_tokens=10**6)
    found = embed(provider, tmp_path, ["x y " * 20_000], model=V1)
    assert [len(request["body"]["inputText"]) for request in provider.requests] == [50_000]
    assert found.tokens.tolist() == [25_000]
    assert found.truncated_tokens.tolist() == [15_000]
    provider = serve()
    found = embed(provider, tmp_path, [*TEXTS, "ab " * 1000], model=COHERE)
    assert max(len(text) for request in provider.requests for text in request["body"]["texts"]) == 2048
    assert found.truncated_tokens.tolist() == [0] * 10 + [pytest.approx(317, abs=1)]


@pytest.mark.parametrize("source", ["environment", "profile"])
def test_no_secret_reaches_a_message_or_the_cache(serve, tmp_path, monkeypatch, tmp_path_factory, source):
    if source == "profile":  # whose secrets no variable of the environment holds
        profile = tmp_path_factory.mktemp("aws") / "credentials"
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        profile.write_text("[default]\n" + "".join(f"{name.lower()} = {os.environ[name]}\n" for name in names))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
        for name in names:
            monkeypatch.delenv(name)
    with pytest.raises(BackendError) as caught:
        embed(serve("", always="expired"), tmp_path, concurrency=1)
    own = encoder(serve())
    said = f"{caught.value} {caught.value.__cause__} {own.fingerprint} {dict(own.provenance)}"
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    for canary in ("canary", "CANARY", TOKEN):
        assert canary not in said
        assert canary.encode() not in written


def test_what_is_missing_is_seen_before_the_first_request(monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(InputError, match="credentials: were not found"):
        BedrockEncoder(V1, region="us-east-1").check()
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "x")
    with pytest.raises(InputError, match=r"encoder\.region"):
        BedrockEncoder(V1).check()
    BedrockEncoder(V1, region="us-east-1").check()
    with pytest.raises(InputError, match="profile"):
        BedrockEncoder(V1, profile="nobody").check()


@pytest.mark.parametrize(
    ("model", "option", "message"),
    [
        ("amazon.titan-text-express-v1", {}, "is not an embedding model"),
        (V1, {"dimensions": 256}, "only its own"),
        (V2, {"dimensions": 300}, "256, 512, 1024"),
        (V2, {"concurrency": 0}, "concurrency"),
    ],
)
def test_options_that_cannot_be(model, option, message):
    with pytest.raises(InputError, match=message):
        BedrockEncoder(model, **option)


def test_fingerprints():
    def made(model=V2, **more):
        return BedrockEncoder(model, **more).fingerprint

    assert len({made(), made(V1), made(dimensions=256), made(normalize=False)}) == 4
    assert made(region="eu-west-1", profile="x", concurrency=2, rpm=9) == made()


@pytest.mark.parametrize("count", ["9" * 5000, "9" * 13, "²", "-1", ""])
def test_a_count_of_tokens_that_cannot_be_meant_is_estimated(serve, monkeypatch, count):
    """Python refuses to read a number of thousands of digits."""
    whole = BedrockProvider.answer
    header = {"x-amzn-bedrock-input-token-count": count}
    monkeypatch.setattr(BedrockProvider, "answer", lambda *asked: (whole(*asked)[0], header))
    own = encoder(serve(dimensions=1024), model="cohere.embed-english-v3")
    assert own.embed(TEXTS, "document", single_call()).tokens.sum() == estimate(TEXTS).sum()
