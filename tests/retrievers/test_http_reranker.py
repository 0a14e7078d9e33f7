"""Reranking by services: every protocol, the cache, what is billed, and what an answer may get wrong."""

import json

import numpy as np
import pandas as pd
import pytest

from harness import records
from harness.evaluation.costs import costs_of
from retrievers.errors import BackendError, InputError, OverBudget
from retrievers.meter import Budget, Meter, single_call
from retrievers.rerankers.http_reranker import HttpReranker
from retrievers.types import Document, Query, ranked
from tests.support import small
from tests.support.dialects import KEY, RerankProvider, Vllm, overlap
from tests.support.over_store import reranking
from tests.support.provider_blocks import BLOCKS, at
from tests.support.servers import serving, tokens_of
from tests.support.small import ended, ends, planned

pytestmark = pytest.mark.usefixtures("keys")

DOCUMENTS = {
    f"d{i}": Document(f"d{i}", "", f"{'the wing of' if i % 2 else 'a'} plane {i} " + "x " * i) for i in range(8)
}
QUERIES = [Query("q1", "the wing"), Query("q2", "plane of x"), Query("q3", "plane 3")]
RANKINGS = [ranked(list(DOCUMENTS), range(8, 0, -1)) for _ in QUERIES]
DIALECTS = ["cohere", "voyage", "jina", "tei", "vllm"]


def contents(ids):
    return {name: DOCUMENTS[name] for name in ids}


def reranker(provider, **more):
    options = {"depth": 8, "concurrency": 1, "patience": 60, "model": "r", **more}
    return HttpReranker(provider.dialect, base_url=provider.url, api_key=KEY, **options)


def rerank(provider, cache, meter=None, rankings=RANKINGS, **more):
    return reranking(reranker(provider, **more), cache, contents).rerank(QUERIES, rankings, meter or Meter())


def expected():
    return [
        ranked(list(DOCUMENTS), [overlap(query.text, one.content) for one in DOCUMENTS.values()]) for query in QUERIES
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_reranks_and_is_asked_once(dialect, cache):
    with serving(RerankProvider(dialect=dialect)) as provider:
        meter = Meter()
        found = rerank(provider, cache, meter)
        assert [one.doc_ids for one in found] == [one.doc_ids for one in expected()]
        sent = len(provider.requests)
        assert sent == 3
        assert rerank(provider, cache) == found
        assert len(provider.requests) == sent


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_block_of_a_reranker_is_ready(dialect):
    name = {"cohere": "Cohere", "voyage": "Voyage", "jina": "Jina", "tei": "Text Embeddings Inference", "vllm": "vLLM"}
    with serving(RerankProvider(dialect=dialect)) as provider:
        own = at(BLOCKS[f"{name[dialect]}, reranking"], "rerank", provider.url)
        pairs = [("plane of x", one.content) for one in DOCUMENTS.values()]
        scored = own.score(pairs, single_call())
        assert np.allclose(scored.scores, [overlap(*pair) for pair in pairs])
        assert scored.truncated_tokens.tolist() == [0] * 8


def test_scores_that_may_depend_on_companions_are_kept_by_list(cache):
    with serving(RerankProvider(dialect="vllm", companions=True)) as provider:
        found = rerank(provider, cache)
        assert [one.doc_ids for one in found] == [one.doc_ids for one in expected()]
        sent = len(provider.requests)
        assert rerank(provider, cache) == found
        assert len(provider.requests) == sent
        shorter = [ranked(one.doc_ids[:4], one.scores[:4]) for one in RANKINGS]
        rerank(provider, cache, rankings=shorter)
        assert len(provider.requests) == sent + 3


def test_documents_are_cut_and_counted(cache):
    with serving(RerankProvider(dialect="tei")) as provider:
        meter = Meter()
        rerank(provider, cache, meter, max_tokens=5)
        assert max(tokens_of(document) for _, document in provider.scored) <= 5
        assert meter.counts("")["lost_tokens"] > 0
        assert meter.notes()["truncated-pair"] == ("q1", "q2", "q3")


def test_a_list_that_is_too_long_is_split():
    pairs = [("plane", one.content) for one in DOCUMENTS.values()]
    with serving(RerankProvider(dialect="tei", most=3)) as provider:
        own = reranker(provider)
        assert np.allclose(own.score(pairs, single_call()).scores, [overlap(*pair) for pair in pairs])
        assert [len(one["body"]["texts"]) for one in provider.requests] == [8, 4, 2, 2, 4, 2, 2]


@pytest.mark.parametrize(
    ("dialect", "fault"),
    [*(("cohere", fault) for fault in ("few", "many", "twice", "empty", "nan", "index-null", "score-text", "expired")),
     *((dialect, fault) for dialect in ("voyage", "tei") for fault in ("few", "index-null", "score-text"))],
)  # fmt: skip
def test_a_reranker_that_fails_for_good_is_one_message(dialect, fault, cache):
    with serving(RerankProvider(always=fault, dialect=dialect)) as provider:
        with pytest.raises(BackendError) as caught:
            rerank(provider, cache, patience=0.1)
        assert "\n" not in str(caught.value)
        assert KEY not in str(caught.value)
        assert len(provider.requests) == 1 or fault in {"index-null", "score-text"}  # which may pass
        assert cache.info() == ()


def test_searches_are_billed_and_capped(cache):
    with serving(RerankProvider(dialect="cohere")) as provider:
        meter = Meter(budget=Budget(2.5))
        with pytest.raises(OverBudget):
            rerank(provider, cache, meter, search_price=1000)
        assert meter.budget.spent == len(provider.requests) == 2


@pytest.mark.parametrize(
    "options",
    [{"dialect": "tei"}, {"dialect": "vllm", "model": "m"}, {"dialect": "cohere"},
     {"dialect": "voyage", "model": "m", "depth": 0}],
)  # fmt: skip
def test_a_reranker_that_cannot_be(options):
    with pytest.raises(InputError):
        HttpReranker(**options)


def test_the_price_of_a_foreign_server_is_not_known():
    assert HttpReranker("vllm", model="m", base_url="http://gpu.example.org/v1").price is None
    assert HttpReranker("vllm", model="m", base_url="http://localhost:8000/v1").price.usd_per_million_tokens == 0
    assert HttpReranker("voyage", model="rerank-2.5").price.usd_per_million_tokens == 0.05
    assert HttpReranker("cohere", model="m").price is None
    assert HttpReranker("cohere", model="m", search_price=2.0).price.usd(0, 500) == 1.0


PAID = """
[[retrievers]]
name = "bm25"
kind = "bm25"

[[retrievers]]
name = "reranked"
of = "bm25"

[retrievers.rerank]
kind = "http"
dialect = "cohere"
model = "r"
base_url = "{url}"
api_key = "${{CO_API_KEY}}"
depth = 4
{price}

[[retrievers]]
name = "broken"
encoder = {{ kind = "openai", model = "m", base_url = "{broken}", patience = 1 }}
"""


def experiment(tmp_path, monkeypatch, **places):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return small.experiment(tmp_path, retrievers=PAID.format(**places))


def test_a_paid_reranker_is_planned_and_billed_and_a_broken_server_fails_alone(tmp_path, monkeypatch):
    with serving(RerankProvider(dialect="cohere")) as provider, serving(Vllm(always="page")) as broken:
        file = experiment(tmp_path, monkeypatch, url=provider.url, broken=broken.url, price="search_price = 2.0")
        (row,) = [row for row in planned(file).rows if row.stage == "rerank"]
        assert ended("run", file) == 3
        folder = tmp_path / "results" / "small"
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        assert "look at the address" in manifest["retrievers"]["broken"]["error"]
        assert not manifest["retrievers"]["reranked"]["error"]
        costs = pd.read_csv(folder / "costs.csv")
        spent = costs[costs.stage == "rerank"].iloc[0]
        assert spent.usd == pytest.approx(0.002 * len(provider.requests))
        assert len(provider.requests) <= row.calls
        assert spent.usd <= row.usd + 1e-9
        assert (spent.texts, spent.cached) == (16, 0)
        assert costs_of(records.read(folder))["reranked"].usd_per_million > 0


def test_a_cap_without_a_price_is_refused(tmp_path, monkeypatch, capsys):
    places = {"url": "http://gpu.example.org", "broken": "https://models.example.org/v1", "price": "rpm = 0"}
    told = ends(capsys, 2, "run", experiment(tmp_path, monkeypatch, **places), "--max-cost", "1").err
    assert "'reranked': rerank.price" in told
    assert "'broken': encoder.price" in told
