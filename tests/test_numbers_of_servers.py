"""Numbers of thousands of digits in a server's headers and versions: Python would refuse to read them as numbers."""

import pytest

from retrievers.encoders.bedrock import BedrockEncoder
from retrievers.errors import InputError
from retrievers.meter import Meter, single_call
from retrievers.stores.connection import Connection
from retrievers.tokens import estimate
from tests.qdrant_fake import fake_qdrant
from tests.servers import BedrockProvider, serving

TEXTS = ["the first text", "the second"]


@pytest.mark.parametrize("count", ["9" * 5000, "9" * 13, "²", "-1", ""])
def test_a_count_of_tokens_that_cannot_be_meant_is_estimated(monkeypatch, count):
    class Boasting(BedrockProvider):
        def answer(self, path, body, headers, fault):
            return super().answer(path, body, headers, fault)[0], {"x-amzn-bedrock-input-token-count": count}

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with serving(Boasting(dimensions=1024)) as provider:
        encoder = BedrockEncoder("cohere.embed-english-v3", region="us-east-1", endpoint_url=provider.url)
        assert encoder.embed(TEXTS, "document", single_call()).tokens.sum() == estimate(TEXTS).sum()


@pytest.mark.parametrize("version", ["1." + "9" * 5000, "9" * 5000 + ".1"])
def test_a_version_that_cannot_be_meant_is_not_supported(version):
    with fake_qdrant() as fake:
        fake.version = version
        with pytest.raises(InputError, match="does not support"):
            Connection(fake.url, None, Meter()).call(lambda client: client.info())
