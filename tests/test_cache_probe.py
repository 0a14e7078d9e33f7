"""A few cached texts are embedded again before others, so that a model that has changed does not mix in silence."""

import json

import numpy as np
import pytest

from harness import cli
from harness.experiment import unexpanded
from retrievers.cache import Cache, keys
from retrievers.embedding import Embedder
from retrievers.encoders.hashing import HashingEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.meter import Meter
from retrievers.types import Embedded
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


EXPERIMENT = """
name = "probed"
dataset = "{data}"
primary = "P@5"
measures = ["P@5"]
[[retrievers]]
name = "remote"
encoder = {{ kind = "openai", model = "m", base_url = "${{EMB_URL}}" }}
store = ":memory:"
[[retrievers]]
name = "lexical"
kind = "bm25"
{more}
"""


def run(tmp_path, monkeypatch, provider, more=""):
    data = tmp_path / "data"
    data.mkdir()
    rows = [{"_id": f"d{i}", "text": text} for i, text in enumerate(TEXTS)]
    (data / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (data / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": f"q{i}", "text": f"number {i}"}) + "\n" for i in range(4)), encoding="utf-8"
    )
    (data / "qrels").mkdir()
    lines = ["query-id\tcorpus-id\tscore", *(f"q{i}\td{i}\t1" for i in range(4))]
    (data / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    file = tmp_path / "probed.toml"
    file.write_text(EXPERIMENT.format(data=data.as_posix(), more=more), encoding="utf-8")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMB_URL", provider.url.replace("://", "://me:canary-word@"))
    monkeypatch.chdir(tmp_path)
    fingerprint = OpenAIEncoder("m", base_url=provider.url.replace("://", "://me:canary-word@")).fingerprint
    with Cache(tmp_path / "cache" / "cache.sqlite") as cache:
        old = Embedded(np.ones((10, 128), dtype=np.float32), np.ones(10, dtype=int), np.zeros(10, dtype=int))
        cache.put(fingerprint, keys(fingerprint, "document", TEXTS[:10]), old)
    monkeypatch.setattr("sys.argv", ["harness", "run", str(file)])
    with pytest.raises(SystemExit) as left:
        cli.main()
        raise SystemExit(0)
    assert not left.value.code
    return tmp_path / "results" / "probed"


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
