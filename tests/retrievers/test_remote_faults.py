"""What a provider may do wrong: each fault ends right, or with one clear line, in time, and never silently wrong."""

import time

import numpy as np
import pytest

from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.bedrock import BedrockEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError
from retrievers.meter import Meter
from tests.support.servers import BedrockProvider, OpenAIProvider, real_vectors, serving, tokens_of

pytestmark = pytest.mark.usefixtures("no_keys", "aws_keys")

TEXTS = ["a wing in a flow of heat", "the shock wave of a body", "plates and shells", "a slender cone at rest"]
TIMEOUT, PATIENCE, SLACK = 1.5, 3, 8
RIGHT = ""
"""The vectors are those that the provider meant."""

OPENAI = {
    "429 with seconds": (["429-after"], "", RIGHT),
    "429 with a date": (["429-date"], "", RIGHT),
    "429 several times without a header": (["429"] * 6, "", RIGHT),
    "429 for ever": ([], "429", "gave up after .* 429 Rate limit"),
    "500 in a burst": (["500"] * 3, "", RIGHT),
    "502 in a burst": (["502"] * 3, "", RIGHT),
    "503 in a burst": (["503"] * 3, "", RIGHT),
    "503 for long": (["503"] * 8, "", RIGHT),
    "503 for ever": ([], "503", r"gave up after \d+ tries in \d s \(patience = 3\): .* 503 Overloaded"),
    "reset": (["reset"], "", RIGHT),
    "closed": (["drop"], "", RIGHT),
    "closed for ever": ([], "drop", "gave up after .* no complete response"),
    "truncated": (["half"], "", RIGHT),
    "stalled": (["slow"], "", RIGHT),
    "stalled for ever": ([], "slow", r"no complete response within 1.5 s \(timeout\)"),
    "dripping": (["drip"], "", RIGHT),
    "dripping headers": (["drip-headers"], "", RIGHT),
    "cut JSON": (["garbage"], "", RIGHT),
    "cut gzip": (["cut-gzip"], "", RIGHT),
    "gzip": (["packed"], "", RIGHT),
    "empty": (["nothing"], "", RIGHT),
    "null": (["null"], "", RIGHT),
    "nested too deep": (["deep"], "", RIGHT),
    "HTML": (["page"], "", RIGHT),
    "HTML for ever": ([], "page", "gave up after 3 tries .* look at the address"),
    "an error in a 200": (["error-with-200"], "", RIGHT),
    "an error in a 200 for ever": ([], "error-with-200", "the model is being moved"),
    "shuffled": ([], "shuffled", RIGHT),
    "few": (["", "few"], "", "1 vectors came back for 2 texts"),
    "many": (["", "many"], "", "3 vectors came back for 2 texts"),
    "none": (["", "empty"], "", "no vectors came back for 2 texts"),
    "one twice": (["", "twice"], "", "not one for each"),
    "without index": ([], "unindexed", "gave up after .* not of the protocol"),
    "NaN": (["", "nan"], "", "not finite"),
    "too large": (["", "embedding-huge"], "", "not finite"),
    "holes in a vector": (["", "embedding-holed"], "", "not finite"),
    "null for a vector": (["", "embedding-null"], "", "vectors came back that are none"),
    "a number for a vector": (["", "embedding-number"], "", "vectors came back that are none"),
    "words in a vector": (["", "embedding-words"], "", "vectors came back that are none"),
    "no base64": (["", "base64-bad"], "", "vectors came back that are none"),
    "a word for the usage": ([], "usage-word", RIGHT),
    "another width": (["", "narrow"], "", "127 dimensions instead of 128"),
    "another model": (["", "other-model"], "", "'another' answers now, and 'm' did before"),
    "a batch is too large": (["batch"], "", RIGHT),
    "quota": (["", "quota"], "", "429 You exceeded your current quota; the quota is used up"),
    "expired key": (["", "expired"], "", "401 Incorrect API key provided: .*; the key was refused"),
    "no such model": (["", "missing"], "", "404 The model does not exist; look at the model's name"),
}
BEDROCK = {
    "throttled": (["429"] * 3, "", RIGHT),
    "500": (["500"], "", RIGHT),
    "503 in a burst": (["503"] * 3, "", RIGHT),
    "503 for ever": ([], "503", "gave up after .* Bedrock is unable"),
    "the model times out": (["model-timeout"], "", RIGHT),
    "reset": (["reset"], "", RIGHT),
    "closed": (["drop"], "", RIGHT),
    "truncated": (["half"], "", RIGHT),
    "stalled": (["slow"], "", RIGHT),
    "dripping": (["drip"], "", RIGHT),
    "cut JSON": (["garbage"], "", RIGHT),
    "empty": (["nothing"], "", RIGHT),
    "HTML for ever": ([], "page", "gave up after .* look at the address"),
    "NaN": (["", "nan"], "", "not finite"),
    "another width": (["", "narrow"], "", "127 dimensions instead of 128"),
    "quota": (["", "quota"], "", "the quota is used up"),
    "expired": (["", "expired"], "", r"is expired: \*\*\*; renew the credentials"),
    "denied": (["", "denied"], "", "ask for access to the model"),
}
CASES = [(service, name) for service, faults in (("openai", OPENAI), ("bedrock", BEDROCK)) for name in faults]


@pytest.fixture
def aws_keys(monkeypatch, tmp_path):
    nowhere = str(tmp_path / "none")
    values = {"ACCESS_KEY_ID": "AKIACANARY", "SECRET_ACCESS_KEY": "canary-0", "SESSION_TOKEN": "canary-1",
              "CONFIG_FILE": nowhere, "SHARED_CREDENTIALS_FILE": nowhere, "EC2_METADATA_DISABLED": "true"}  # fmt: skip
    for name, value in values.items():
        monkeypatch.setenv(f"AWS_{name}", value)


def encoder(service, provider, **more):
    options = {"timeout": TIMEOUT, "patience": PATIENCE, "concurrency": 1, "batch_size": 2, **more}
    if service == "openai":
        return OpenAIEncoder("m", base_url=provider.url, **options)
    return BedrockEncoder("amazon.titan-embed-text-v1", region="us-east-1", endpoint_url=provider.url, **options)


@pytest.mark.parametrize(("service", "name"), CASES)
def test_a_fault_ends_right_or_with_one_line_in_time(service, name, tmp_path):
    script, always, told = {"openai": OPENAI, "bedrock": BEDROCK}[service][name]
    fake = {"openai": OpenAIProvider, "bedrock": BedrockProvider}[service]
    with serving(fake(script, always=always)) as provider, Cache(tmp_path / "c") as cache:
        embedder, meter = Embedder(encoder(service, provider), cache), Meter()
        embedder.one("warm", "query", meter) if not script and not always else None
        started = time.monotonic()
        if told == RIGHT:
            assert np.array_equal(embedder.embed(TEXTS, "document", meter).vectors, real_vectors(TEXTS))
        else:
            with pytest.raises(BackendError, match=told) as caught:
                embedder.embed(TEXTS, "document", meter)
            assert "\n" not in str(caught.value) and "canary" not in str(caught.value)
        assert time.monotonic() - started < TIMEOUT + PATIENCE + SLACK
        faults = len(script) - script.count("") if not always and told == RIGHT and "batch" not in script else 0
        assert meter.counts("").get("retries", 0) == (faults if "packed" not in script else 0) or always


@pytest.mark.parametrize("service", ["openai", "bedrock"])
def test_a_zero_vector_is_handed_on(service):
    fake = {"openai": OpenAIProvider, "bedrock": BedrockProvider}[service]
    with serving(fake(["zero"])) as provider:
        found = Embedder(encoder(service, provider), None).embed(TEXTS[:1], "document", Meter())
        assert not found.vectors.any() and found.vectors.shape == (1, 128)


@pytest.mark.parametrize("service", ["openai", "bedrock"])
def test_a_text_that_is_refused_is_halved_and_counted_and_its_batch_goes_on(service):
    fake = {"openai": OpenAIProvider, "bedrock": BedrockProvider}[service]
    long = "many words of a long text " * 20  # 120 of the servers' tokens
    with serving(fake(max_tokens=50)) as provider:
        found = Embedder(encoder(service, provider), None).embed([TEXTS[0], long], "document", Meter())
        assert tokens_of(provider.embedded[-1]) == 30
        assert np.array_equal(found.vectors, real_vectors([TEXTS[0], long[: len(long) // 4]]))
        assert found.truncated_tokens[0] == 0 and 85 <= found.truncated_tokens[1] <= 95


@pytest.mark.parametrize("service", ["openai", "bedrock"])
def test_what_cannot_be_halved_enough_is_told_in_the_first_words(service):
    fake = {"openai": OpenAIProvider, "bedrock": BedrockProvider}[service]
    with serving(fake(max_tokens=0)) as provider:
        with pytest.raises(BackendError, match=r"400 .*6"):
            Embedder(encoder(service, provider), None).embed(["one two three four five six"], "document", Meter())
        assert len(provider.requests) in {5, 6}
