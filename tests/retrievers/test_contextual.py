"""Passages that know their document: late chunking against transformers itself, and Voyage's contextual endpoint."""

import numpy as np
import pytest

from retrievers.cache import Cache
from retrievers.chunking import Chunk, in_context
from retrievers.embedding import Embedder, distinct_passages
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.encoders.voyage_context import VoyageContextEncoder
from retrievers.errors import InputError
from retrievers.meter import Meter, single_call
from retrievers.types import Document
from tests.support import tiny
from tests.support.dialects import KEY
from tests.support.servers import OpenAIProvider, Refusal, serving, tokens_of

WHOLE = "the cat sits wing shock wave"  # 6 words and two marks, of the 12 tokens that the model reads
LONG = f"{WHOLE} dog runs fast heat flow the cat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.bi_encoder(tmp_path_factory.mktemp("tiny"), prompts={"document": "passage: "})


def by_transformers(folder, document, first, last):
    """The mean of the token vectors of some words of a document, of length 1; two tokens of the prompt, one mark."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(**tokenizer(f"passage: {document}", return_tensors="pt"))
    mean = states.last_hidden_state[0][3 + first : 3 + last].mean(0).numpy()
    return mean / np.linalg.norm(mean)


def test_a_passage_is_the_mean_of_its_tokens_in_its_document(folder):
    encoder = SentenceTransformerEncoder(folder.as_posix(), device="cpu")
    found = encoder.embed_passages(["the cat sits", "wing shock wave"], [WHOLE, WHOLE], single_call())
    for vector, (first, last) in zip(found.vectors, [(0, 3), (3, 6)], strict=True):
        assert np.allclose(vector, by_transformers(folder, WHOLE, first, last), atol=1e-6)
    assert not found.truncated_tokens.any()
    alone = encoder.embed(["wing shock wave"], "document", single_call()).vectors[0]
    assert not np.allclose(found.vectors[1], alone, atol=1e-3)


def test_what_the_model_does_not_read_in_its_document_is_embedded_alone_and_counted(folder):
    encoder = SentenceTransformerEncoder(folder.as_posix(), device="cpu")
    found = encoder.embed_passages(["the cat sits", "heat flow the cat"], [LONG, LONG], single_call())
    assert np.allclose(found.vectors[1], encoder.embed(["heat flow the cat"], "document", single_call()).vectors[0])
    assert found.truncated_tokens.tolist() == [0, 6]


def test_the_cache_keeps_a_passage_by_its_document(folder, tmp_path):
    encoder = SentenceTransformerEncoder(folder.as_posix(), device="cpu")
    documents = [Document("a", "", WHOLE), Document("b", "", "the cat sits dog runs fast")]
    late = [*in_context(documents, Chunk(size=14, by="words", late=True), contextual=False)]
    texts, wholes = [one.text for one, _ in late], [whole for _, whole in late]
    assert texts == ["the cat sits", "wing shock", "wave", "the cat sits", "dog runs fast"]
    with Cache(tmp_path / "cache.sqlite") as cache:
        embedder, meter = Embedder(encoder, cache), Meter()
        with meter.stage("embed"):
            first = embedder.embed(texts, "document", meter, wholes).vectors
        assert meter.counts("embed")["tokens"] == 10 + 10  # each document once, with its prompt and marks
        again = Meter()
        with again.stage("embed"):
            assert np.array_equal(embedder.embed(texts, "document", again, wholes).vectors, first)
        assert again.counts("embed") == {"texts": 5, "cached": 5}
        forecast = embedder.forecast_passages(distinct_passages(zip(texts, wholes, strict=True)), "document")
        assert (forecast.texts, forecast.cached, forecast.tokens) == (5, 5, 0)
    assert not np.allclose(first[0], first[3], atol=1e-3)  # the same words in two documents


class Voyage(OpenAIProvider):
    """POST /v1/contextualizedembeddings: a list of vectors for each document, in any order."""

    def answer(self, path, body, headers, fault):
        assert path == "/v1/contextualizedembeddings", path
        if headers.get("Authorization") != f"Bearer {KEY}" or body["input_type"] not in ("query", "document"):
            raise Refusal(401, "unauthorized", "invalid")
        groups = [
            {"index": place, "data": [{"index": n, "embedding": [float(tokens_of(text)), float(len(group)), float(n)]}
                                      for n, text in enumerate(group)][::-1]}
            for place, group in enumerate(body["inputs"])
        ]  # fmt: skip
        total = sum(tokens_of(text) for group in body["inputs"] for text in group)
        return {"data": groups[::-1], "model": "voyage-context-3", "usage": {"total_tokens": total}}, {}


def test_voyage_is_sent_the_passages_of_a_document_together_and_queries_alone(tmp_path):
    provider = Voyage()
    with serving(provider), Cache(tmp_path / "cache.sqlite") as cache:
        encoder = VoyageContextEncoder("voyage-context-3", base_url=provider.url, api_key=KEY)
        embedder, meter = Embedder(encoder, cache), Meter()
        documents = ["a b c", "a b c", "d"]
        with meter.stage("embed"):
            found = embedder.embed(["a b", "c", "d"], "document", meter, documents).vectors
            asked = embedder.embed(["why now", "a"], "query", meter).vectors
    assert found[:, 1:].tolist() == [[2, 0], [2, 1], [1, 0]]
    assert asked[:, 1:].tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize("encoder", [{"kind": "hashing"}, {"kind": "openai", "model": "m"}])
def test_late_chunking_by_an_encoder_without_token_vectors_is_one_clear_error(encoder):
    from retrievers import Dense

    with pytest.raises(InputError, match=r"chunk\.late: needs the vectors of a document's tokens"):
        Dense(encoder, chunk={"size": 100, "late": True})
