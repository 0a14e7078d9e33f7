"""Numbers of thousands of digits in a server's headers: Python would refuse to read them as numbers."""

import pytest

from retrievers.encoders.bedrock import BedrockEncoder
from retrievers.meter import single_call
from retrievers.tokens import estimate
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
