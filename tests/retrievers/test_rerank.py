"""Rerankers: on this machine, against sentence-transformers' own ways, and by services of every protocol."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import records
from harness.evaluation.costs import costs_of
from retrievers.dense import Dense
from retrievers.errors import BackendError, InputError, OverBudget
from retrievers.local_models import LocalModel
from retrievers.meter import Budget, Meter, single_call
from retrievers.reranked import Reranked, above_the_rest
from retrievers.rerankers.cross_encoder import CrossEncoderReranker, LateInteractionReranker
from retrievers.rerankers.http_reranker import HttpReranker
from retrievers.types import Document, Query, ranked
from tests.support import small, tiny
from tests.support.dialects import KEY, RerankProvider, Vllm, overlap
from tests.support.over_store import reranking
from tests.support.provider_blocks import BLOCKS, at
from tests.support.servers import serving, tokens_of
from tests.support.small import ended, ends, planned

DOCUMENTS = {
    name: Document(name, "", text)
    for name, text in {
        "d1": "the cat sits",
        "d2": "a dog runs fast",
        "d3": "shock wave of the wing",
        "d4": "heat flow",
        "d5": "slow body " * 8,
        "d6": "title of a passage",
    }.items()
}
QUERIES = [Query("q1", "cat"), Query("q2", "heat of the wing"), Query("q3", "dog")]
RANKINGS = [
    ranked(["d1", "d2", "d3", "d4", "d5"], [0.9, 0.8, 0.7, 0.6, 0.5]),
    ranked(["d5", "d4", "d1", "d6"], [4, 3, 2, 1]),
    ranked([], []),
]


def content(ids):
    return {name: DOCUMENTS[name] for name in ids}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.cross_encoder(tmp_path_factory.mktemp("cross"))


@pytest.fixture(scope="module")
def bi_encoder(tmp_path_factory):
    return tiny.bi_encoder(tmp_path_factory.mktemp("bi"))


def reranker(folder, cache, cls=CrossEncoderReranker, **more):
    return reranking(cls(str(folder), **{"device": "cpu", "depth": 3, **more}), cache, content)


def late(folder, cache):
    return reranker(folder, cache, LateInteractionReranker, depth=5)


def logits(folder, pairs):
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    return CrossEncoder(str(folder), device="cpu").predict(pairs, activation_fn=Identity(), show_progress_bar=False)


@pytest.mark.parametrize("prompt", ["", "passage of the body "])
def test_the_head_is_in_the_librarys_order_and_the_rest_stays(folder, cache, tmp_path, prompt):
    """Models that take an instruction, such as Qwen3-Reranker, name it in their files."""
    plain = CrossEncoderReranker(str(folder), device="cpu")
    if prompt:
        folder = tiny.with_prompt(folder, tmp_path / "prompted", prompt)
    found = reranker(folder, cache).rerank(QUERIES, RANKINGS, Meter())
    for query, before, after in zip(QUERIES[:2], RANKINGS, found, strict=False):
        scores = logits(folder, [(query.text, DOCUMENTS[name].content) for name in before.doc_ids[:3]])
        order = np.argsort(-scores)
        assert after.doc_ids == (*[before.doc_ids[i] for i in order], *before.doc_ids[3:])
        assert np.allclose(after.scores[:3], scores[order], atol=2e-5)
        assert (np.diff(after.scores) < 0).all()
    assert len(found[2]) == 0
    own = CrossEncoderReranker(str(folder), device="cpu")
    read, without = (one.score([("cat", "dog")], single_call()).tokens for one in (own, plain))
    assert (read - without).tolist() == [len(prompt.split())]
    assert (own.fingerprint == plain.fingerprint) == (not prompt)


WARM = {
    CrossEncoderReranker: {"texts": 6, "cached": 0, "calls": 3, "tokens": 55, "lost_tokens": 11},
    # Of the longest document 16 words and two marks are to be read, and 12 are.
    LateInteractionReranker: {"texts": 6, "cached": 0, "calls": 3, "tokens": 66, "lost_tokens": 6},
}


@pytest.mark.parametrize("cls", WARM)
def test_a_warm_run_gives_the_same_and_loads_no_model(folder, bi_encoder, cache, monkeypatch, cls):
    place = folder if cls is CrossEncoderReranker else bi_encoder
    cold, warm = Meter(), Meter()
    with cold.stage("rerank"):
        first = reranker(place, cache, cls, batch_size=2).rerank(QUERIES, RANKINGS, cold)
    monkeypatch.setattr(LocalModel, "_load", lambda *_: pytest.fail("a model was loaded"))
    with warm.stage("rerank"):
        second = reranker(place, cache, cls).rerank(QUERIES, RANKINGS, warm)
    assert first == second
    assert cold.stages()["rerank"].counts == WARM[cls]
    assert warm.stages()["rerank"].counts == {"texts": 6, "cached": 6, "lost_tokens": WARM[cls]["lost_tokens"]}
    assert warm.notes() == cold.notes() == {"truncated-pair": ("q2",)}


def test_a_single_query_bypasses_the_cache(folder, cache):
    own = reranker(folder, cache)
    alone = own.rerank_alone(QUERIES[0], RANKINGS[0], Meter())
    assert cache.info() == ()
    assert alone.doc_ids == own.rerank(QUERIES[:1], RANKINGS[:1], Meter())[0].doc_ids
    assert len(own.rerank_alone(QUERIES[2], RANKINGS[2], Meter())) == 0


@given(
    st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=10), st.integers(0, 90), st.floats(allow_nan=False, width=16)
)
def test_candidates_beneath_keep_their_order(scores, more, shift):
    before = ranked([f"d{i:03}" for i in range(len(scores) + more)], np.arange(len(scores) + more, 0, -1))
    after = above_the_rest(before, np.asarray(scores))
    assert set(after.doc_ids[: len(scores)]) == set(before.doc_ids[: len(scores)])
    assert after.doc_ids[len(scores) :] == before.doc_ids[len(scores) :]


def test_a_model_with_two_outputs_is_refused(tmp_path, cache):
    with pytest.raises(InputError, match="has 2 outputs"):
        reranker(tiny.cross_encoder(tmp_path, outputs=2), cache).rerank_alone(QUERIES[0], RANKINGS[0], Meter())


def max_sim(folder, query, text):
    """The same by sentence-transformers' own `encode`, one text at a time."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    sides = [
        model.encode(one, output_value="token_embeddings", show_progress_bar=False).numpy() for one in (query, text)
    ]
    q, d = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    return (q @ d.T).max(axis=1).mean()


def test_scores_are_those_of_single_texts_whatever_they_are_padded_with(bi_encoder, cache):
    found = late(bi_encoder, cache).rerank(QUERIES[1:], RANKINGS[:2], Meter())
    for query, ranking in zip(QUERIES[1:], found, strict=True):
        for hit in ranking:
            assert hit.score == pytest.approx(max_sim(bi_encoder, query.text, DOCUMENTS[hit.doc_id].text), abs=3e-6)


def test_a_model_without_vectors_of_tokens_is_refused(cache, tmp_path):
    with pytest.raises(InputError, match="has no vectors of tokens"):
        late(tiny.static(tmp_path / "static"), cache).rerank_alone(QUERIES[0], RANKINGS[0], Meter())


def test_a_model_that_was_trained_for_it_reads_queries_and_documents_in_its_own_ways(cache, tmp_path):
    from sentence_transformers import MultiVectorEncoder

    colbert = tiny.colbert(tmp_path / "colbert")
    rankings = late(colbert, cache).rerank(QUERIES[:2], RANKINGS[:2], Meter())
    theirs = MultiVectorEncoder(str(colbert), device="cpu", similarity_fn_name="meanmaxsim")
    texts = [one.content for one in DOCUMENTS.values()]
    documents = theirs.encode_document(texts, show_progress_bar=False)
    for query, ranking in zip(QUERIES, rankings, strict=False):
        scores = theirs.similarity(theirs.encode_query([query.text], show_progress_bar=False), documents)[0].tolist()
        for hit in ranking:
            assert hit.score == pytest.approx(scores[list(DOCUMENTS).index(hit.doc_id)], abs=3e-6)


def test_its_tokens_are_counted_as_it_reads_them(tmp_path):
    colbert = LateInteractionReranker(str(tiny.colbert(tmp_path / "colbert")), device="cpu")
    # Its prompt, the words and two marks, of the longest document 10 of 19.
    assert colbert.count([one.content for one in DOCUMENTS.values()]).counts.tolist() == [6, 7, 8, 5, 10, 7]


def test_a_model_of_the_hub_that_turns_out_to_be_trained_for_it_is_not_read_as_another(cache, tmp_path, monkeypatch):
    colbert = tiny.colbert(tmp_path / "colbert")
    model = LateInteractionReranker(str(colbert), device="cpu")
    known = iter([False, True])
    monkeypatch.setattr(LateInteractionReranker, "_trained", property(lambda self: next(known)))
    with pytest.raises(InputError, match="run again"):
        model.score([("a", "b")], single_call())


def test_without_a_run_they_take_the_cache_of_the_user(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    found = Dense({"kind": "hashing"})
    again = Reranked(found, CrossEncoderReranker(str(folder), device="cpu"), depth=2)
    again.index(iter(DOCUMENTS.values()), meter := Meter())
    (before,), (after,) = (one.search(QUERIES[:1], 3, meter) for one in (found, again))
    assert set(before.doc_ids) == set(after.doc_ids)
    assert before.doc_ids[2] == after.doc_ids[2]
    assert [*tmp_path.glob("cache.sqlite")]


pytestmark = pytest.mark.usefixtures("keys")

PLANES = {f"d{i}": Document(f"d{i}", "", f"{'the wing of' if i % 2 else 'a'} plane {i} " + "x " * i) for i in range(8)}
ASKED = [Query("q1", "the wing"), Query("q2", "plane of x"), Query("q3", "plane 3")]
FOUND = [ranked(list(PLANES), range(8, 0, -1)) for _ in ASKED]
DIALECTS = ["cohere", "voyage", "jina", "tei", "vllm"]


def contents(ids):
    return {name: PLANES[name] for name in ids}


def service(provider, **more):
    options = {"depth": 8, "concurrency": 1, "patience": 60, "model": "r", **more}
    return HttpReranker(provider.dialect, base_url=provider.url, api_key=KEY, **options)


def rerank(provider, cache, meter=None, rankings=FOUND, **more):
    return reranking(service(provider, **more), cache, contents).rerank(ASKED, rankings, meter or Meter())


def expected():
    return [ranked(list(PLANES), [overlap(query.text, one.content) for one in PLANES.values()]) for query in ASKED]


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
        pairs = [("plane of x", one.content) for one in PLANES.values()]
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
        shorter = [ranked(one.doc_ids[:4], one.scores[:4]) for one in FOUND]
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
    pairs = [("plane", one.content) for one in PLANES.values()]
    with serving(RerankProvider(dialect="tei", most=3)) as provider:
        own = service(provider)
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
