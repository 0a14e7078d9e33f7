import re
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.costs import PRICES, estimate, list_price
from retrievers.embedding import Embedder
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.meter import single_call
from retrievers.model_files import PACKAGED, Weights
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


def test_every_price_says_when_and_where_it_was_read():
    for found in PRICES.values():
        assert 0 < found.usd_per_million_tokens < 10
        assert date.fromisoformat(found.source[-10:]) <= date.today()
        assert found.source.startswith("https://")
    assert list_price("openai", "bge-m3") is None
