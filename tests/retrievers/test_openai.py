"""OpenAI's protocol: what any server of it may do wrong, and every block of docs/how-to/providers.md against a fake."""

import numpy as np
import pytest

from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, single_call
from tests.support import dialects
from tests.support.dialects import ALL
from tests.support.provider_blocks import BLOCKS, at, check_embeddings
from tests.support.servers import OpenAIProvider, real_vectors, serving, tokens_of

pytestmark = pytest.mark.usefixtures("no_keys")

TEXTS = [f"text number {i} about " + ["wing", "flow", "heat", "shock", "wave"][i % 5] for i in range(10)]


@pytest.fixture
def serve(stack):
    return lambda *script, **more: stack.enter_context(serving(OpenAIProvider(script, **more)))


def encoder(provider, **more):
    options = {"batch_size": 4, "concurrency": 2, "timeout": 60, "patience": 60, **more}
    return OpenAIEncoder("text-embedding-3-small", base_url=provider.url, **options)


def embed(provider, tmp_path, texts=TEXTS, meter=None, **more):
    meter = meter or Meter()
    with Cache(tmp_path / "c") as cache, meter.stage("embed-documents"):
        return Embedder(encoder(provider, **more), cache).embed(texts, "document", meter)


@pytest.mark.parametrize("fault", ["", "shuffled"])
def test_vectors_come_back_in_their_texts_places_in_whatever_order_they_are_answered(serve, tmp_path, fault):
    provider = serve(always=fault)
    meter = Meter()
    found = embed(provider, tmp_path, meter=meter)
    assert np.array_equal(found.vectors, real_vectors(TEXTS).astype(np.float32))
    assert found.tokens.sum() == sum(map(tokens_of, TEXTS))
    assert found.truncated_tokens.tolist() == [0] * 10
    counts = meter.stages()["embed-documents"].counts
    assert counts == {"texts": 10, "cached": 0, "calls": 3, "tokens": sum(map(tokens_of, TEXTS)), "usd": 0}
    assert sorted(provider.embedded) == sorted(TEXTS)


def test_openais_key_is_not_sent_to_other_servers(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-for-openai-only")
    provider = serve()
    encoder(provider).embed(["wing"], "query", single_call())
    assert "authorization" not in provider.requests[0]["headers"]


# Blocks of the docs


ELSEWHERE = ("Cohere", "Gemini")
"""Protocols of their own, with a test file each."""


def test_every_block_has_a_fake():
    assert list(BLOCKS) == [*ALL, *ELSEWHERE, *(name for name in BLOCKS if name.endswith("reranking"))]


@pytest.mark.parametrize("name", ALL)
def test_a_block_of_embeddings_is_ready(keys, name, tmp_path):
    check_embeddings(name, ALL[name], tmp_path)


def test_a_servers_own_words_reach_the_user(keys, cache):
    with serving(dialects.Voyage()) as provider:
        block = BLOCKS["Voyage"].replace('input_type = "document"', 'input_type = "paper"')
        with pytest.raises(BackendError, match=r"400 input_type must be one of \('document', 'query'\)"):
            Embedder(at(block, "encoder", provider.url), cache).embed(["a"], "document", Meter())


def test_azures_key_goes_to_azures_servers_alone(keys, monkeypatch):
    url = "https://name.openai.azure.com/openai/v1"
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    with pytest.raises(InputError, match="AZURE_OPENAI_API_KEY: is not set"):
        OpenAIEncoder("m", base_url=url).check()
    OpenAIEncoder("m", base_url=url, headers={"api-key": "k"}).check()
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    OpenAIEncoder("m", base_url=url).check()
