"""Every block of embeddings in docs/how-to/providers.md against a fake of its dialect of OpenAI's protocol."""

import pytest

from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, single_call
from tests import dialects
from tests.dialects import ALL
from tests.provider_blocks import BLOCKS, LONG, TEXTS, at, check_embeddings, set_keys
from tests.servers import serving, tokens_of

ELSEWHERE = ("Cohere", "Gemini")
"""Protocols of their own, with a test file each."""


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    set_keys(monkeypatch)


def test_every_block_has_a_fake():
    assert list(BLOCKS) == [*ALL, *ELSEWHERE, *(name for name in BLOCKS if name.endswith("reranking"))]


@pytest.mark.parametrize("name", ALL)
def test_a_block_of_embeddings_is_ready(name, tmp_path):
    check_embeddings(name, ALL[name], tmp_path)


def test_a_limit_of_texts_is_learnt_from_the_refusal(tmp_path):
    with serving(dialects.Tei()) as provider, Cache(tmp_path / "c") as cache:
        encoder = at(BLOCKS["Text Embeddings Inference"], "encoder", provider.url)
        Embedder(encoder, cache).embed(TEXTS, "document", Meter())
        assert [len(one["body"]["input"]) for one in provider.requests] == [40, 32, 8]
        encoder.embed([f"more {i}" for i in range(40)], "document", single_call())
        assert [len(one["body"]["input"]) for one in provider.requests[3:]] == [32, 8]


@pytest.mark.parametrize("name", ["OpenAI", "vLLM", "llama.cpp"])
def test_a_text_that_is_refused_for_its_length_is_cut(name, tmp_path):
    with serving(ALL[name](max_tokens=50)) as provider, Cache(tmp_path / "c") as cache:
        encoder = at(BLOCKS[name], "encoder", provider.url)
        embedded = Embedder(encoder, cache).embed([LONG], "document", Meter())
        assert 40 <= tokens_of(provider.embedded[-1]) <= 50
        assert embedded.truncated_tokens[0] > 60


def test_decimals_are_asked_for_once_where_base64_is_refused(tmp_path):
    with serving(dialects.LiteLlm()) as provider, Cache(tmp_path / "c") as cache:
        encoder = at(BLOCKS["LiteLLM proxy"], "encoder", provider.url)
        for text in ("a", "b", "c"):
            Embedder(encoder, cache).embed([text], "document", Meter())
        assert ["encoding_format" in one["body"] for one in provider.requests] == [True, False, False, False]


def test_a_servers_own_words_reach_the_user(tmp_path):
    with serving(dialects.Voyage()) as provider, Cache(tmp_path / "c") as cache:
        block = BLOCKS["Voyage"].replace('input_type = "document"', 'input_type = "paper"')
        with pytest.raises(BackendError, match=r"400 input_type must be one of \('document', 'query'\)"):
            Embedder(at(block, "encoder", provider.url), cache).embed(["a"], "document", Meter())


def test_openais_own_server_needs_its_key_however_it_is_written(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    own = "https://API.openai.com/v1/"
    with pytest.raises(InputError, match="is not set in the environment"):
        OpenAIEncoder("m", base_url=own).check()
    OpenAIEncoder("m", base_url=own.replace("https", "http")).check()  # a key is not sent in the clear
    OpenAIEncoder("m", base_url="https://elsewhere.example.org").check()
    assert OpenAIEncoder("text-embedding-3-small", base_url="https://api.openai.com/v1/").price.usd(10**6) == 0.02


def test_azures_key_goes_to_azures_servers_alone(monkeypatch):
    url = "https://name.openai.azure.com/openai/v1"
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    with pytest.raises(InputError, match="AZURE_OPENAI_API_KEY: is not set"):
        OpenAIEncoder("m", base_url=url).check()
    OpenAIEncoder("m", base_url=url, headers={"api-key": "k"}).check()
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    OpenAIEncoder("m", base_url=url).check()
    assert OpenAIEncoder("text-embedding-3-small", base_url=url).price.usd(10**6) == 0.02


def test_fingerprints_differ_where_vectors_do():
    made = [
        OpenAIEncoder("m"), OpenAIEncoder("m", document_extra={"input_type": "document"}),
        OpenAIEncoder("m", query_extra={"input_type": "query"}),
    ]  # fmt: skip
    assert len({one.fingerprint for one in made}) == len(made)
    # As kept by caches from before there was anything to add to the body: retriever-harness 0.1.0 at commit 81ac002.
    assert OpenAIEncoder("text-embedding-3-small").fingerprint == "openai-text-embedding-3-small-792914b8b5799174"
    there = OpenAIEncoder("m", base_url="http://localhost:1/v1", dimensions=5, query_prompt="q")
    assert there.fingerprint == "openai-m-ab19acf2a03a6c0d"
    assert OpenAIEncoder("m", headers={"a": "b"}).fingerprint == OpenAIEncoder("m").fingerprint
