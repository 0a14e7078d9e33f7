"""`harness plan` needs no key, no network and no model, for every kind; list prices are those that can be known."""

import os
import socket

import pytest

from harness.running.plan import plan
from tests import small
from tests.small import BM25, ended

OPENAI = 'encoder = {{ kind = "openai", model = "{}", base_url = "{}", api_key = "${{SOME_KEY}}" }}'
HTTP = 'of = "bm25"\nrerank = {{ kind = "http", dialect = "{}", model = "{}", api_key = "${{SOME_KEY}}" }}'
BEDROCK = 'encoder = {{ kind = "bedrock", model = "{}", region = "eu-west-1" }}'
JUDGE = '[judge]\nkind = "openai"\nmodel = "m"\ninput_price = 1\noutput_price = 1\n'
BLOCKS = {
    "openai": ('encoder = { kind = "openai", model = "text-embedding-3-large" }', 0.13),
    "azure": (OPENAI.format("text-embedding-3-small", "https://x.openai.azure.com/openai/v1"), 0.02),
    "voyage": (OPENAI.format("voyage-4", "https://api.voyageai.com/v1"), 0.06),
    "mistral": (OPENAI.format("mistral-embed", "https://api.mistral.ai/v1"), 0.1),
    "cohere": ('encoder = { kind = "cohere", model = "embed-v4.0" }', 0.12),
    "gemini": ('encoder = { kind = "gemini", model = "gemini-embedding-001" }', 0.15),
    "bedrock": (BEDROCK.format("amazon.titan-embed-text-v2:0"), 0.02),
    "local": ('encoder = { kind = "sentence-transformers", model = "nobody/none" }', 0.0),
    "sparse": ('kind = "sparse"\nencoder = { kind = "sparse-encoder", model = "nobody/none" }', 0.0),
    "tokens": ('kind = "multivector"\nencoder = { kind = "multivector-encoder", model = "nobody/none" }', 0.0),
    "cohere reranking": (HTTP.format("cohere", "rerank-v3.5"), None),
    "voyage reranking": (HTTP.format("voyage", "rerank-2.5"), 0.05),
    "cross-encoder": ('of = "bm25"\nrerank = { kind = "cross-encoder", model = "nobody/none" }', 0.0),
    "endpoint": ('kind = "http"\nids = "[*]"\nurl = "https://x.org/?q={query}"\n'
                 'headers = { Authorization = "Bearer ${SOME_KEY}" }', 0.0),
    "server": ('encoder = { kind = "hashing" }\n'
               'store = { location = "https://x.qdrant.io:6333", api_key = "${SOME_KEY}" }', 0.0),
}  # fmt: skip
"""Kind -> its table, and the dollars for a million tokens of its list price: None where nobody has one."""


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """No key in the environment, and no network."""
    for name in [one for one in os.environ if "KEY" in one or "TOKEN" in one or one.startswith("AWS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))

    def refused(*_):
        raise AssertionError("the network is asked")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_plan_needs_no_key_no_network_and_no_model(tmp_path, name):
    block, price = BLOCKS[name]
    path = small.experiment(tmp_path, retrievers=f'{BM25}[[retrievers]]\nname = "theirs"\n{block}\n')
    total = plan(path).total()
    assert total["usd"] == (None if price is None else pytest.approx(total["tokens"] * price / 1e6))


def test_a_plan_of_a_judge_needs_no_key(tmp_path, capsys):
    path = small.experiment(tmp_path, retrievers=BM25 + JUDGE)
    path.write_text(path.read_text().replace('"DCG@3"]', '"DCG@3", "ClaimRecall@3"]'))
    queries = tmp_path / "data" / "queries.json"
    queries.write_text(queries.read_text().replace('"query":', '"claims": ["It swims."], "query":'))
    assert ended("plan", path) == 0
    assert "judge" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["azure", "endpoint", "server"])
def test_a_run_needs_the_key_before_it_begins(tmp_path, capsys, name):
    path = small.experiment(tmp_path, retrievers=f'{BM25}[[retrievers]]\nname = "theirs"\n{BLOCKS[name][0]}\n')
    assert ended("run", path, "--results", tmp_path / "out") == 2
    assert "${SOME_KEY} is not set in the environment" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["cohere reranking"])
def test_a_limit_with_an_unknown_price_names_the_key_to_set(tmp_path, monkeypatch, capsys, name):
    monkeypatch.setenv("SOME_KEY", "0123456789")
    path = small.experiment(tmp_path, retrievers=f'{BM25}[[retrievers]]\nname = "theirs"\n{BLOCKS[name][0]}\n')
    assert ended("run", path, "--max-cost", "1") == 2
    assert "rerank.price: the price of rerank-v3.5 is not known" in capsys.readouterr().err
