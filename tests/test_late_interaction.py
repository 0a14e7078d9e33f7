import numpy as np
import pytest

from retrievers.cache import Cache
from retrievers.errors import InputError
from retrievers.local.models import Setup
from retrievers.meter import Meter
from retrievers.rerankers.late_interaction import LateInteractionReranker
from retrievers.reranking import CachedReranker
from retrievers.types import Document, Query, ranked
from tests import tiny

TEXTS = ["the cat sits", "a dog runs fast", "shock wave of the wing", "heat", "slow body " * 8]
DOCUMENTS = {f"d{number}": Document(f"d{number}", "", text) for number, text in enumerate(TEXTS)}
QUERIES = [Query("q1", "cat"), Query("q2", "heat of the wing")]
RANKING = ranked(list(DOCUMENTS), [0.9, 0.8, 0.7, 0.6, 0.5])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.bi_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def cache(tmp_path):
    with Cache(tmp_path / "c") as opened:
        yield opened


def reranker(folder, cache, **more):
    model = LateInteractionReranker(str(folder), **{"device": "cpu", "depth": 4, **more})
    return CachedReranker(model, cache, lambda ids: {name: DOCUMENTS[name] for name in ids})


def max_sim(folder, query, text):
    """The same by sentence-transformers' own `encode`, one text at a time."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    sides = [
        model.encode(one, output_value="token_embeddings", show_progress_bar=False).numpy() for one in (query, text)
    ]
    q, d = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    return (q @ d.T).max(axis=1).mean()


def test_scores_are_those_of_single_texts_whatever_they_are_padded_with(folder, cache):
    found = reranker(folder, cache, depth=5).rerank_all(QUERIES, [RANKING, RANKING], Meter())
    for query, ranking in zip(QUERIES, found, strict=True):
        for hit in ranking:
            assert hit.score == pytest.approx(max_sim(folder, query.text, DOCUMENTS[hit.doc_id].text), abs=3e-6)


def test_a_document_that_is_the_query_comes_first_and_the_rest_stays(folder, cache):
    (found,) = reranker(folder, cache).rerank_all([Query("q", "heat")], [RANKING], Meter())
    assert (found.doc_ids[0], found.doc_ids[4]) == ("d3", "d4")
    assert found.scores[0] == pytest.approx(1, abs=1e-5)


def test_a_warm_run_gives_the_same_and_loads_no_model(folder, cache, monkeypatch):
    cold, warm = Meter(), Meter()
    first = reranker(folder, cache, depth=5).rerank_all(QUERIES, [RANKING, RANKING], cold)
    monkeypatch.setattr(Setup, "load", lambda *_: pytest.fail("a model was loaded"))
    assert reranker(folder, cache, depth=5).rerank_all(QUERIES, [RANKING, RANKING], warm) == first
    assert warm.counts("")["cached"] == warm.counts("")["texts"] == 10
    # Of the longest document 16 words and two marks are to be read, and 12 are.
    assert warm.counts("")["lost_tokens"] == cold.counts("")["lost_tokens"] == 2 * 6
    assert warm.notes() == cold.notes() == {"truncated-pair": ("q1", "q2")}


def test_a_model_without_vectors_of_tokens_is_refused(cache, tmp_path):
    with pytest.raises(InputError, match="has no vectors of tokens"):
        reranker(tiny.static(tmp_path / "static"), cache).rerank(QUERIES[0], RANKING, Meter())
