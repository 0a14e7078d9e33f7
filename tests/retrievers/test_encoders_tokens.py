import hashlib
import re
import sys
from datetime import date
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers import costs
from retrievers.costs import PRICES, estimate, list_price, openai_tokens
from retrievers.embedding import Embedder
from retrievers.encoders.hashing import HashingEncoder
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.meter import Meter, single_call
from retrievers.model_files import PACKAGED, Weights, side_tokens
from tests.retrievers.test_embedding import Counting
from tests.support import tiny

DATASETS = Path(__file__).parents[2] / "datasets"
TEXTS = ["wing", "the cat sits", "shock wave of the wing", "a heat flow " * 5, "Unknown, words!"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.bi_encoder(tmp_path_factory.mktemp("tiny"), prompts={"query": "query: "})


@pytest.mark.parametrize("role", ["query", "document"])
def test_counts_without_the_model_are_the_models_own(folder, role):
    encoder = SentenceTransformerEncoder(str(folder), device="cpu", document_prompt="passage: ")
    counted = encoder.count(TEXTS, role)
    assert counted.exact
    assert np.array_equal(counted.counts, encoder.embed(TEXTS, role, single_call()).tokens)


def test_a_folder_without_a_tokenizer_is_estimated(tmp_path):
    found = side_tokens(tmp_path, "document", TEXTS)
    assert not found.exact
    assert np.array_equal(found.counts, estimate(TEXTS))


def test_a_model_that_is_not_on_this_machine_is_estimated(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    encoder = SentenceTransformerEncoder("intfloat/multilingual-e5-base")
    assert not encoder.at_hand
    found = Embedder(encoder, cache).forecast(["cat", "dog", "cat", " "], "document")
    # "passage: cat" is estimated at 4 tokens.
    assert found == (2, 0, 1, 8, False)


def test_the_estimate_is_nearly_always_above_a_real_tokenizer():
    model = Weights(PACKAGED).folder
    if model is None:
        pytest.skip("the offline package is not installed")
    from tokenizers import Tokenizer

    real = Tokenizer.from_file(str(model / "tokenizer.json"))
    real.no_truncation()
    real.no_padding()
    texts = [file.read_text(encoding="utf-8") for file in (DATASETS / "survey-templates-en").glob("*.md")]
    counted = np.array([len(encoding) for encoding in real.encode_batch(texts, add_special_tokens=False)])
    ratio = estimate(texts) / counted
    assert (ratio >= 1).mean() > 0.95
    assert np.median(ratio) < 1.6


@given(st.text())
def test_the_estimate_of_a_text_is_between_its_words_and_its_bytes(text):
    (found,) = estimate([text])
    words = len(re.findall(r"[A-Za-z]+", text))
    assert words <= found <= max(3 * len(text.encode("utf-8", "surrogatepass")), 0)


def test_tiktoken_is_used_only_where_its_vocabulary_lies_cached(tmp_path, monkeypatch):
    costs._cl100k.cache_clear()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    fake = ModuleType("tiktoken")
    fake.__spec__ = type(sys.__spec__)("tiktoken", None)
    fake.get_encoding = lambda name: type(
        "E", (), {"encode_ordinary_batch": lambda self, texts: [[1] * 7] * len(texts)}
    )()
    monkeypatch.setitem(sys.modules, "tiktoken", fake)
    assert not openai_tokens(["x"]).exact
    costs._cl100k.cache_clear()
    url = b"https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"
    (tmp_path / hashlib.sha1(url).hexdigest()).write_bytes(b"a vocabulary")
    assert not openai_tokens(["x"]).exact  # tiktoken would fetch it again
    costs._cl100k.cache_clear()
    monkeypatch.setattr(costs, "_CL100K_SHA256", hashlib.sha256(b"a vocabulary").hexdigest())
    found = openai_tokens(["x", "y"])
    assert found.exact
    assert found.counts.tolist() == [7, 7]
    costs._cl100k.cache_clear()


def test_the_forecast_is_what_the_run_then_does(cache):
    meter = Meter()
    encoder = HashingEncoder()
    embedder = Embedder(encoder, cache)
    embedder.embed(["a b c", "d"], "document", meter)
    texts = ["a b c", "longer", "d", "longer", " ", "e"] + [f"{i} times" for i in range(600)]
    forecast = embedder.forecast(texts, "document")
    with meter.stage("run"):
        embedder.embed([text for text in texts if text.strip()], "document", meter)
    counts = meter.stages()["run"].counts
    assert forecast == (counts["texts"], counts["cached"], counts["calls"], counts["tokens"], True)
    assert embedder.forecast(texts, "document") == (604, 604, 0, 0, True)


def test_an_encoder_that_cannot_count_is_estimated(cache):
    found = Embedder(Counting(), cache).forecast(["abc", "efgh", "efghi"], "query")
    assert found == (3, 0, 1, 4, False)


def test_every_price_says_when_and_where_it_was_read():
    for found in PRICES.values():
        assert 0 < found.usd_per_million_tokens < 10
        assert date.fromisoformat(found.source[-10:]) <= date.today()
        assert found.source.startswith("https://")
    assert list_price("openai", "bge-m3") is None


@pytest.mark.parametrize(
    ("provider", "model", "host", "usd"),
    [("openai", "text-embedding-3-small", "", 0.02), ("openai", "text-embedding-3-large", "", 0.13),
     ("openai", "text-embedding-3-small", "name.openai.azure.com", 0.02), ("cohere", "embed-v4.0", "", 0.12),
     ("openai", "mistral-embed", "api.mistral.ai", 0.1), ("google", "gemini-embedding-001", "", 0.15),
     ("aws", "amazon.titan-embed-text-v1", "", 0.1), ("aws", "us.amazon.titan-embed-text-v2:0", "", 0.02),
     ("openai", "voyage-4", "api.voyageai.com", 0.06)],
)  # fmt: skip
def test_list_prices(provider, model, host, usd):
    assert list_price(provider, model, host).usd_per_million_tokens == pytest.approx(usd)
