"""OpenAI's protocol: what any server of it may do wrong, and every block of docs/how-to/providers.md against a fake."""

import numpy as np
import pytest

from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError, OverBudget
from retrievers.meter import Budget, Meter, single_call
from retrievers.types import facts_of
from tests.support import dialects
from tests.support.dialects import ALL
from tests.support.provider_blocks import BLOCKS, LONG, at, check_embeddings
from tests.support.servers import OpenAIProvider, real_vectors, serving, stored, tokens_of

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


def test_the_budget_is_asked_before_each_request(serve, tmp_path):
    provider = serve()
    # A text has 5 tokens of the server's, and is estimated at 7: a request of four costs $20, and is promised at $28.
    meter = Meter(budget=Budget(50))
    with pytest.raises(OverBudget, match=r"--max-cost"):
        embed(provider, tmp_path, meter=meter, price=1e6, concurrency=1)
    assert len(provider.requests) == 2
    assert meter.budget.spent == pytest.approx(40)
    assert meter.stages()["embed-documents"].counts["usd"] == pytest.approx(40)
    assert stored(tmp_path) == 8


def test_prompts_dimensions_and_roles_are_sent(serve):
    provider = serve()
    own = encoder(provider, dimensions=16, query_prompt="query: ", document_prompt="passage: ")
    assert own.embed(["wing"], "query", single_call()).vectors.shape == (1, 16)
    own.embed(["wing"], "document", single_call())
    assert [request["body"]["input"] for request in provider.requests] == [["query: wing"], ["passage: wing"]]
    assert provider.requests[0]["body"]["dimensions"] == 16


def test_openais_key_is_not_sent_to_other_servers(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-for-openai-only")
    provider = serve()
    encoder(provider).embed(["wing"], "query", single_call())
    assert "authorization" not in provider.requests[0]["headers"]


@pytest.mark.parametrize("option", [{"batch_size": 0}, {"batch_size": 4096}, {"concurrency": 0}, {"timeout": 0}])
def test_options_out_of_range(option):
    with pytest.raises(InputError, match=next(iter(option))):
        OpenAIEncoder("m", **option)


@pytest.mark.parametrize(
    ("option", "usd"),
    [
        ({}, 0.02),
        ({"price": 5}, 5),
        ({"base_url": "http://localhost:1/v1"}, 0),
        ({"base_url": "http://127.0.0.1:11434/v1"}, 0),
        ({"base_url": "http://[::1]:11434/v1"}, 0),
        ({"base_url": "https://models.example.org/v1", "price": 0.5}, 0.5),
        ({"base_url": "https://models.example.org/v1"}, None),
        ({"base_url": "http://192.168.0.7:8000/v1"}, None),
    ],
)
def test_the_price_is_the_experiments_or_the_list_price_or_nothing_here(option, usd):
    price = OpenAIEncoder("text-embedding-3-small", **option).price
    assert (price and price.usd_per_million_tokens) == usd
    described = facts_of(OpenAIEncoder("text-embedding-3-small", **option))
    assert described.get("usd_per_million_tokens") == (None if usd is None else f"{usd:g}")


# Blocks of the docs


ELSEWHERE = ("Cohere", "Gemini")
"""Protocols of their own, with a test file each."""


def test_every_block_has_a_fake():
    assert list(BLOCKS) == [*ALL, *ELSEWHERE, *(name for name in BLOCKS if name.endswith("reranking"))]


@pytest.mark.parametrize("name", ALL)
def test_a_block_of_embeddings_is_ready(keys, name, tmp_path):
    check_embeddings(name, ALL[name], tmp_path)


@pytest.mark.parametrize("name", ["OpenAI", "vLLM"])
def test_a_text_that_is_refused_for_its_length_is_cut(keys, name, cache):
    with serving(ALL[name](max_tokens=50)) as provider:
        own = at(BLOCKS[name], "encoder", provider.url)
        embedded = Embedder(own, cache).embed([LONG], "document", Meter())
        assert tokens_of(provider.embedded[-1]) == 30
        assert embedded.truncated_tokens[0] > 80


def test_a_servers_own_words_reach_the_user(keys, cache):
    with serving(dialects.Voyage()) as provider:
        block = BLOCKS["Voyage"].replace('input_type = "document"', 'input_type = "paper"')
        with pytest.raises(BackendError, match=r"400 input_type must be one of \('document', 'query'\)"):
            Embedder(at(block, "encoder", provider.url), cache).embed(["a"], "document", Meter())


def test_openais_own_server_needs_its_key_however_it_is_written(keys, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    own = "https://API.openai.com/v1/"
    with pytest.raises(InputError, match="is not set in the environment"):
        OpenAIEncoder("m", base_url=own).check()
    OpenAIEncoder("m", base_url=own.replace("https", "http")).check()  # a key is not sent in the clear
    OpenAIEncoder("m", base_url="https://elsewhere.example.org").check()
    assert OpenAIEncoder("text-embedding-3-small", base_url="https://api.openai.com/v1/").price.usd(10**6) == 0.02


def test_azures_key_goes_to_azures_servers_alone(keys, monkeypatch):
    url = "https://name.openai.azure.com/openai/v1"
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    with pytest.raises(InputError, match="AZURE_OPENAI_API_KEY: is not set"):
        OpenAIEncoder("m", base_url=url).check()
    OpenAIEncoder("m", base_url=url, headers={"api-key": "k"}).check()
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    OpenAIEncoder("m", base_url=url).check()
    assert OpenAIEncoder("text-embedding-3-small", base_url=url).price.usd(10**6) == 0.02


def test_fingerprints_differ_where_vectors_do():
    options = [{}, {"model": "n"}, {"dimensions": 256}, {"base_url": "http://localhost:1"}, {"query_prompt": "q"},
               {"document_extra": {"input_type": "document"}}, {"query_extra": {"input_type": "query"}}]  # fmt: skip
    assert len({OpenAIEncoder(**{"model": "m", **some}).fingerprint for some in options}) == len(options)
    same = {"batch_size": 7, "concurrency": 1, "rpm": 9, "api_key": "x", "price": 3, "headers": {"a": "b"}}
    assert OpenAIEncoder("m", **same).fingerprint == OpenAIEncoder("m").fingerprint
    # As kept by caches from before there was anything to add to the body: retriever-harness 0.1.0 at commit 81ac002.
    assert OpenAIEncoder("text-embedding-3-small").fingerprint == "openai-text-embedding-3-small-792914b8b5799174"
    there = OpenAIEncoder("m", base_url="http://localhost:1/v1", dimensions=5, query_prompt="q")
    assert there.fingerprint == "openai-m-ab19acf2a03a6c0d"
