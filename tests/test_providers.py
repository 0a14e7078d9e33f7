"""Every block of docs/how-to/providers.md against a fake of its dialect, and every adapter through the faults."""

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import pandas as pd
import pytest

from harness import cli, records
from harness.experiment import expanded, parse
from harness.report.costs import costs_of
from harness.running.components import described
from harness.running.plan import plan
from retrievers import encoder_class, reranker_class
from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.cohere import CohereEncoder
from retrievers.encoders.gemini import GeminiEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.errors import BackendError, InputError, OverBudget
from retrievers.meter import Budget, Meter, single_call
from retrievers.rerankers.http_reranker import HttpReranker
from retrievers.reranking import CachedReranker
from retrievers.types import Document, Query, ranked
from tests import dialects
from tests.dialects import ALL, KEY, RerankProvider, overlap
from tests.servers import BROKEN_BODIES, real_vectors, serving, tokens_of

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "providers.md"
BLOCKS = dict(
    re.findall(r"^### (.+?)\n.*?```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
)
TEXTS = [f"passage number {i} of the wing" for i in range(40)]
LONG = "many words of a long text " * 20  # 120 of the servers' tokens


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name in re.findall(r"\$\{(\w+)\}", PAGE.read_text(encoding="utf-8")):
        if name != "NAME":
            monkeypatch.setenv(name, KEY)
    for name in ("OPENAI_API_KEY", "CO_API_KEY", "GEMINI_API_KEY", "VOYAGE_API_KEY", "JINA_API_KEY"):
        monkeypatch.setenv(name, KEY)


def at(block, part, url):
    """The part of a block, moved to a fake's address; what parsing fills in is left as it is."""
    table = tomllib.loads("name = 'x'\ndataset = 'd'\nprimary = 'P@5'\nmeasures = ['P@5']\n" + block)
    if part == "rerank":
        table["retrievers"].insert(0, {"name": "lexical", "kind": "bm25"})
    kind = getattr(parse(table).retrievers[-1], part)
    options = dict(kind.options)
    own = urlsplit(options["base_url"])
    fake = urlsplit(url)
    if own.netloc:
        assert (own.path, own.query) == (fake.path, fake.query)
    else:
        options["api_key"] = "${OPENAI_API_KEY}"
    options["base_url"] = urlunsplit((fake.scheme, fake.netloc, fake.path, fake.query, ""))
    find = encoder_class if part == "encoder" else reranker_class
    return find(kind.kind)(**expanded(options))


def test_every_block_has_a_fake():
    assert list(BLOCKS) == [*ALL, *(name for name in BLOCKS if name.endswith("reranking"))]


@pytest.mark.parametrize("name", ALL)
def test_a_block_of_embeddings_is_ready(name, tmp_path):
    with serving(ALL[name]()) as provider, Cache(tmp_path / "c") as cache:
        encoder = at(BLOCKS[name], "encoder", provider.url)
        embedder, meter = Embedder(encoder, cache), Meter()
        width = encoder.provenance.get("dimensions")
        for role, texts in (("document", TEXTS), ("query", TEXTS[:1])):
            prompt = encoder.provenance.get(f"{role}_prompt", "")
            expected = real_vectors([prompt + text for text in texts])[:, : int(width) if width else None]
            assert np.allclose(embedder.embed(texts, role, meter).vectors, expected, atol=1e-6)
        assert meter.counts("")["texts"] == 41
        assert sorted(set(provider.embedded)) == sorted(
            {encoder.provenance.get(f"{role}_prompt", "") + text
             for role, some in (("document", TEXTS), ("query", TEXTS[:1])) for text in some}
        )  # fmt: skip
        assert KEY not in str(described(encoder))


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


def cohere(provider, **more):
    return CohereEncoder("embed-v4.0", base_url=provider.url, api_key=KEY, **more)


def gemini(provider, **more):
    return GeminiEncoder("gemini-embedding-001", base_url=provider.url, api_key=KEY, **more)


NATIVE = {"cohere": (dialects.Cohere, cohere), "gemini": (dialects.Gemini, gemini)}


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize("fault", ["429", "429-after", "500", "503", "slow", "drop", "half", "garbage"])
def test_a_passing_fault_is_tried_again(kind, fault, tmp_path):
    fake, build = NATIVE[kind]
    with serving(fake([fault])) as provider, Cache(tmp_path / "c") as cache:
        own = build(provider, batch_size=20, concurrency=1, timeout=0.5 if fault == "slow" else 60)
        meter = Meter()
        assert np.allclose(Embedder(own, cache).embed(TEXTS, "document", meter).vectors, real_vectors(TEXTS))
        assert meter.counts("")["retries"] >= 1
        assert sorted(set(provider.embedded)) == sorted(TEXTS)


LASTING = ["few", "many", "narrow", "nan", "expired", "missing", "embedding-null", "embedding-empty",
           "embedding-words", "data-text", "data-null", *sorted(set(BROKEN_BODIES) - {"nothing", "deep"})]  # fmt: skip


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize("fault", LASTING)
def test_a_lasting_fault_is_one_message_and_what_was_paid_for_is_kept(kind, fault, tmp_path):
    fake, build = NATIVE[kind]
    with serving(fake(["", fault])) as provider, Cache(tmp_path / "c") as cache:
        own = build(provider, batch_size=20, concurrency=1, patience=0.1)
        with pytest.raises(BackendError) as caught:
            Embedder(own, cache).embed(TEXTS, "document", Meter())
        assert "\n" not in str(caught.value)
        assert KEY not in str(caught.value)
        assert len(provider.requests) == 2
        assert cache.info()[0].rows == 20
        assert np.allclose(Embedder(own, cache).embed(TEXTS, "document", Meter()).vectors, real_vectors(TEXTS))
        assert len(provider.requests) == 3


@pytest.mark.parametrize("kind", ["float", "base64", "int8", "uint8", "binary", "ubinary"])
def test_every_number_format_of_cohere_keeps_the_neighbours(kind):
    with serving(dialects.Cohere()) as provider:
        vectors = cohere(provider, embedding_type=kind).embed(TEXTS, "document", single_call()).vectors
    real = real_vectors(TEXTS)
    assert vectors.shape == real.shape
    if kind in {"float", "base64"}:
        assert np.array_equal(vectors, real)
    elif kind in {"int8", "uint8"}:
        assert np.array_equal(vectors, np.rint(real * 127).clip(-128, 127))
    else:
        assert np.array_equal(vectors, np.where(real > 0, 1, -1))


def test_cohere_and_gemini_are_told_the_role_and_the_dimensions():
    with serving(dialects.Cohere()) as provider:
        assert cohere(provider, dimensions=16).embed(["a"], "query", single_call()).vectors.shape == (1, 16)
        body = provider.requests[0]["body"]
        assert (body["input_type"], body["output_dimension"], body["truncate"]) == ("search_query", 16, "NONE")
    with serving(dialects.Gemini()) as provider:
        vectors = gemini(provider, dimensions=16).embed(["wing flow"], "query", single_call()).vectors
        assert np.linalg.norm(vectors) == pytest.approx(1)
        (one,) = provider.requests[0]["body"]["requests"]
        assert (one["taskType"], one["outputDimensionality"]) == ("RETRIEVAL_QUERY", 16)


def test_what_gemini_drops_without_a_word_is_counted():
    with serving(dialects.Gemini()) as provider:
        assert (
            gemini(provider, max_tokens=50).embed(["a", LONG], "document", single_call()).truncated_tokens.tolist()[0]
            == 0
        )
        assert gemini(provider, max_tokens=50).embed([LONG], "document", single_call()).truncated_tokens[0] >= 70


@pytest.mark.parametrize("make", [lambda: CohereEncoder("embed-v4.0"), lambda: GeminiEncoder("gemini-embedding-001"),
                                  lambda: HttpReranker("voyage", model="rerank-2.5")])  # fmt: skip
def test_a_missing_key_is_seen_before_the_run(make, monkeypatch):
    for name in ("CO_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="is not set in the environment"):
        make().check()


@pytest.mark.parametrize(
    ("make", "own"),
    [(lambda url: CohereEncoder("embed-v4.0", base_url=url), "https://api.cohere.com/"),
     (lambda url: GeminiEncoder("gemini-embedding-001", base_url=url), "https://generativelanguage.googleapis.com/v1beta/"),
     (lambda url: OpenAIEncoder("text-embedding-3-small", base_url=url), "https://API.openai.com/v1/"),
     (lambda url: HttpReranker("voyage", model="rerank-2.5", base_url=url), "https://api.voyageai.com/v1/")],
)  # fmt: skip
def test_a_providers_own_server_needs_its_key_however_it_is_written(make, own, monkeypatch):
    for name in ("CO_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="is not set in the environment"):
        make(own).check()
    make(own.replace("https", "http")).check()  # a key is not sent in the clear
    make("https://elsewhere.example.org").check()


def test_fingerprints_differ_where_vectors_do():
    made = [
        OpenAIEncoder("m"), OpenAIEncoder("m", document_extra={"input_type": "document"}),
        OpenAIEncoder("m", query_extra={"input_type": "query"}), CohereEncoder("m"), CohereEncoder("m", dimensions=8),
        CohereEncoder("m", embedding_type="int8"), GeminiEncoder("m"), GeminiEncoder("m", query_task=""),
    ]  # fmt: skip
    assert len({one.fingerprint for one in made}) == len(made)
    # As kept by caches from before there was anything to add to the body: retriever-harness 0.1.0 at commit 81ac002.
    assert OpenAIEncoder("text-embedding-3-small").fingerprint == "openai-text-embedding-3-small-792914b8b5799174"
    there = OpenAIEncoder("m", base_url="http://localhost:1/v1", dimensions=5, query_prompt="q")
    assert there.fingerprint == "openai-m-ab19acf2a03a6c0d"
    assert OpenAIEncoder("m", headers={"a": "b"}).fingerprint == OpenAIEncoder("m").fingerprint


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
    return CachedReranker(reranker(provider, **more), cache, contents).rerank_all(QUERIES, rankings, meter or Meter())


def expected():
    return [
        ranked(list(DOCUMENTS), [overlap(query.text, one.content) for one in DOCUMENTS.values()]) for query in QUERIES
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_reranks_and_is_asked_once(dialect, tmp_path):
    with serving(RerankProvider(dialect=dialect)) as provider, Cache(tmp_path / "c") as cache:
        meter = Meter()
        found = rerank(provider, cache, meter)
        assert [one.doc_ids for one in found] == [one.doc_ids for one in expected()]
        sent = len(provider.requests)
        assert sent == 3 + 3 * 2  # each list whole, and once in two halves
        assert meter.counts("")["companions_probed"] == 24
        assert "listwise" not in meter.counts("")
        assert rerank(provider, cache) == found
        shorter = [ranked(one.doc_ids[:4], one.scores[:4]) for one in RANKINGS]
        rerank(provider, cache, rankings=shorter)
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


def test_scores_that_depend_on_companions_are_kept_by_list(tmp_path):
    with serving(RerankProvider(dialect="vllm", companions=True)) as provider, Cache(tmp_path / "c") as cache:
        meter = Meter()
        found = rerank(provider, cache, meter)
        assert meter.counts("")["listwise"] == 1
        assert [one.doc_ids for one in found] == [one.doc_ids for one in expected()]
        sent = len(provider.requests)
        assert rerank(provider, cache) == found
        assert len(provider.requests) == sent
        shorter = [ranked(one.doc_ids[:4], one.scores[:4]) for one in RANKINGS]
        rerank(provider, cache, rankings=shorter)
        assert len(provider.requests) == sent + 3


def test_documents_are_cut_and_counted(tmp_path):
    with serving(RerankProvider(dialect="tei")) as provider, Cache(tmp_path / "c") as cache:
        meter = Meter()
        rerank(provider, cache, meter, max_tokens=5)
        assert max(tokens_of(document) for _, document in provider.scored) <= 5
        assert meter.counts("")["lost_tokens"] > 0
        assert meter.notes()["truncated-pair"] == ("q1", "q2", "q3")


def test_a_limit_of_documents_is_learnt_from_the_refusal():
    pairs = [("plane", one.content) for one in DOCUMENTS.values()]
    with serving(RerankProvider(dialect="tei", most=3)) as provider:
        own = reranker(provider)
        assert np.allclose(own.score(pairs, single_call()).scores, [overlap(*pair) for pair in pairs])
        assert [len(one["body"]["texts"]) for one in provider.requests] == [8, 3, 3, 2]
        own.score(pairs, single_call())
        assert [len(one["body"]["texts"]) for one in provider.requests[4:]] == [3, 3, 2]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", ["429", "503", "drop", "half", "garbage"])
def test_a_reranker_tries_again(dialect, fault, tmp_path):
    with serving(RerankProvider([fault], dialect=dialect)) as provider, Cache(tmp_path / "c") as cache:
        assert [one.doc_ids for one in rerank(provider, cache)] == [one.doc_ids for one in expected()]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", ["few", "many", "twice", "empty", "nan", "index-null", "score-null", "score-text",
                                   "expired", *sorted(set(BROKEN_BODIES) - {"nothing", "deep"})])  # fmt: skip
def test_a_reranker_that_fails_for_good_is_one_message(dialect, fault, tmp_path):
    with serving(RerankProvider(always=fault, dialect=dialect)) as provider, Cache(tmp_path / "c") as cache:
        with pytest.raises(BackendError) as caught:
            rerank(provider, cache, patience=0.1)
        assert "\n" not in str(caught.value)
        assert KEY not in str(caught.value)
        assert len(provider.requests) == 1
        assert cache.info() == ()


def test_searches_are_billed_and_capped(tmp_path):
    with serving(RerankProvider(dialect="cohere")) as provider, Cache(tmp_path / "c") as cache:
        meter = Meter(budget=Budget(5.5))
        with pytest.raises(OverBudget):
            rerank(provider, cache, meter, search_price=1000)
        assert meter.budget.spent == len(provider.requests) == 5


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
    assert OpenAIEncoder("text-embedding-3-small", base_url="https://api.openai.com/v1/").price.usd(10**6) == 0.02
    assert HttpReranker("cohere", model="m", search_price=2.0).price.usd(0, 500) == 1.0


PAID = """
name = "paid"
dataset = "{data}"
primary = "P@5"
measures = ["P@5"]
[[retrievers]]
name = "lexical"
kind = "bm25"
[[retrievers]]
name = "reranked"
of = "lexical"

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
    data = tmp_path / "data"
    data.mkdir()
    rows = [json.dumps({"_id": name, "text": one.content}) + "\n" for name, one in DOCUMENTS.items()]
    (data / "corpus.jsonl").write_text("".join(rows), encoding="utf-8")
    rows = [json.dumps({"_id": query.id, "text": query.text}) + "\n" for query in QUERIES]
    (data / "queries.jsonl").write_text("".join(rows), encoding="utf-8")
    (data / "qrels").mkdir()
    lines = ["query-id\tcorpus-id\tscore", *(f"{query.id}\td3\t1" for query in QUERIES)]
    (data / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paid.toml").write_text(PAID.format(data=data.as_posix(), **places), encoding="utf-8")
    return "paid.toml"


def call(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["harness", *words])
    with pytest.raises(SystemExit) as left:
        cli.main()
        raise SystemExit(0)
    return int(left.value.code or 0)


def test_a_paid_reranker_is_planned_and_billed_and_a_broken_server_fails_alone(tmp_path, monkeypatch):
    with serving(RerankProvider(dialect="cohere")) as provider, serving(dialects.Vllm(always="page")) as broken:
        file = experiment(tmp_path, monkeypatch, url=provider.url, broken=broken.url, price="search_price = 2.0")
        (row,) = [row for row in plan(file).rows if row.stage == "rerank"]
        assert call(monkeypatch, "run", file) == 3
        folder = tmp_path / "results" / "paid"
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        assert "is a page, not JSON" in manifest["retrievers"]["broken"]["error"]
        assert not manifest["retrievers"]["reranked"]["error"]
        costs = pd.read_csv(folder / "costs.csv")
        spent = costs[costs.stage == "rerank"].iloc[0]
        assert spent.usd == pytest.approx(0.002 * len(provider.requests))
        assert len(provider.requests) <= row.calls
        assert spent.usd <= row.usd + 1e-9
        assert (spent.texts, spent.cached) == (12, 0)
        assert costs_of(records.read(folder))["reranked"].usd_per_million > 0


def test_a_cap_without_a_price_is_refused(tmp_path, monkeypatch, capsys):
    places = {"url": "http://gpu.example.org", "broken": "https://models.example.org/v1", "price": "rpm = 0"}
    assert call(monkeypatch, "run", experiment(tmp_path, monkeypatch, **places), "--max-cost", "1") == 2
    told = capsys.readouterr().err
    assert "'reranked': rerank.price" in told
    assert "'broken': encoder.price" in told


@pytest.mark.parametrize("limit", ["nan", "-1"])
def test_a_cap_that_is_none_is_refused(tmp_path, monkeypatch, limit):
    places = {"url": "http://localhost:1", "broken": "http://localhost:1/v1", "price": "rpm = 0"}
    assert call(monkeypatch, "run", experiment(tmp_path, monkeypatch, **places), "--max-cost", limit) == 2
