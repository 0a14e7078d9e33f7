"""A few cached texts are embedded again before others, so that a model that has changed does not mix in silence."""

import numpy as np

import harness
from harness.experiment import unexpanded
from retrievers.cache import Cache, keys
from retrievers.embedding import Embedder
from retrievers.encoders.hashing import HashingEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.meter import Meter
from retrievers.types import Embedded
from tests import small
from tests.servers import OpenAIProvider, serving

TEXTS = [f"text number {i}" for i in range(20)]


def embed(provider, cache, texts, meter=None, **more):
    meter = meter or Meter()
    encoder = OpenAIEncoder("m", base_url=provider.url, **more)
    Embedder(encoder, cache, probe=3).embed(texts, "document", meter)
    return meter.counts("")


def test_three_cached_texts_are_asked_again_before_new_ones(tmp_path):
    with serving(OpenAIProvider()) as provider:
        with Cache(tmp_path / "c") as before:
            assert "probed" not in embed(provider, before, TEXTS[:10])
        cache = Cache(tmp_path / "c")
        counts = embed(provider, cache, TEXTS)
        assert (counts["probed"], counts["moved"]) == (3, 0)
        assert set(provider.requests[1]["body"]["input"]) < set(TEXTS[:10])
        assert counts["calls"] == 2
        sent = len(provider.requests)
        assert "probed" not in embed(provider, cache, TEXTS)
        assert len(provider.requests) == sent
        cache.close()


def test_a_moved_vector_is_counted_and_stays_as_it_was(tmp_path):
    with serving(OpenAIProvider()) as provider:
        fingerprint = OpenAIEncoder("m", base_url=provider.url).fingerprint
        old = Embedded(np.ones((10, 128), dtype=np.float32), np.ones(10, dtype=int), np.zeros(10, dtype=int))
        with Cache(tmp_path / "c") as before:
            before.put(fingerprint, keys(fingerprint, "document", TEXTS[:10]), old)
        with Cache(tmp_path / "c") as cache:
            counts = embed(provider, cache, TEXTS)
            kept = cache.get(keys(fingerprint, "document", TEXTS[:1]))[1].vectors
        assert (counts["probed"], counts["moved"]) == (3, 3)
        assert np.array_equal(kept, old.vectors[:1])


def test_a_model_on_this_machine_is_not_probed(tmp_path):
    with Cache(tmp_path / "c") as cache:
        meter = Meter()
        for texts in (TEXTS[:10], TEXTS):
            Embedder(HashingEncoder(), cache, probe=3).embed(texts, "document", meter)
        assert "probed" not in meter.counts("")


def test_a_probe_is_paid_from_the_budget(tmp_path):
    with serving(OpenAIProvider()) as provider:
        with Cache(tmp_path / "c") as before:
            embed(provider, before, TEXTS[:10])
        with Cache(tmp_path / "c") as cache:
            assert embed(provider, cache, TEXTS, price=1e6)["usd"] == sum(3 for _ in TEXTS[10:]) + 3 * 3


BLOCKS = """
[[retrievers]]
name = "remote"
encoder = { kind = "openai", model = "m", base_url = "${EMB_URL}" }
store = ":memory:"

[[retrievers]]
name = "bm25"
kind = "bm25"
"""


def run(tmp_path, monkeypatch, provider):
    """A run of which three documents are cached already, as another model gave them."""
    url = provider.url.replace("://", "://me:canary-word@")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMB_URL", url)
    fingerprint = OpenAIEncoder("m", base_url=url).fingerprint
    texts = [f"{name} # {name}\n\n{text}" for name, text in small.TEXTS.items()][:3]
    with Cache(tmp_path / "cache" / "cache.sqlite") as cache:
        old = Embedded(np.ones((3, 128), dtype=np.float32), *np.ones((2, 3), dtype=int))
        cache.put(fingerprint, keys(fingerprint, "document", texts), old)
    path = small.experiment(tmp_path, retrievers=BLOCKS, report=True)
    return harness.run(path, harness.Options(tmp_path / "results")).folder


def test_a_cache_of_two_models_is_news_on_the_first_screen_and_no_address_is_written(tmp_path, monkeypatch):
    with serving(OpenAIProvider()) as provider:
        folder = run(tmp_path, monkeypatch, provider)
    page = (folder / "report.md").read_text(encoding="utf-8")
    news = "remote mixes vectors of two models: 3 of 3 cached texts came back different"
    assert 0 < page.index(news) < page.index("\n## ", page.index("\n## ") + 1)
    for file in folder.rglob("*"):
        if file.is_file():
            assert b"canary-word" not in file.read_bytes(), file
            assert str(provider.url.rpartition(":")[2]).encode() not in file.read_bytes(), file
    assert "${EMB_URL}" in (folder / "manifest.json").read_text(encoding="utf-8")


def test_a_message_holds_the_name_of_a_variable_and_not_its_value(tmp_path, monkeypatch):
    written = {"encoder": {"options": {"model": "${MODEL}/x", "depth": 3, "headers": {"a": "${SHORT}"}}}}
    monkeypatch.setenv("MODEL", "/home/canary/models")
    monkeypatch.setenv("SHORT", "abc")
    assert unexpanded("/home/canary/models/x is no abc folder", written) == "${MODEL}/x is no abc folder"
