import numpy as np
import pytest

from retrievers.cache import Cache
from retrievers.errors import InputError
from retrievers.local.models import Setup
from retrievers.meter import Meter, single_call
from retrievers.rerankers.local_rerankers import LateInteractionReranker
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


def test_a_model_that_was_trained_for_it_reads_queries_and_documents_in_its_own_ways(cache, tmp_path):
    from sentence_transformers import MultiVectorEncoder

    colbert = tiny.colbert(tmp_path / "colbert")
    rankings = reranker(colbert, cache, depth=5).rerank_all(QUERIES, [RANKING, RANKING], Meter())
    theirs = MultiVectorEncoder(str(colbert), device="cpu", similarity_fn_name="meanmaxsim")
    documents = theirs.encode_document(TEXTS, show_progress_bar=False)
    for query, ranking in zip(QUERIES, rankings, strict=True):
        scores = theirs.similarity(theirs.encode_query([query.text], show_progress_bar=False), documents)[0].tolist()
        for hit in ranking:
            assert hit.score == pytest.approx(scores[list(DOCUMENTS).index(hit.doc_id)], abs=3e-6)


def test_its_tokens_are_counted_as_it_reads_them(tmp_path):
    colbert = LateInteractionReranker(str(tiny.colbert(tmp_path / "colbert")), device="cpu")
    # Its prompt, the words and two marks, of the longest document 10 of 19.
    assert colbert.count(TEXTS).counts.tolist() == [6, 7, 8, 4, 10]


def test_a_model_of_the_hub_that_turns_out_to_be_trained_for_it_is_not_read_as_another(cache, tmp_path, monkeypatch):
    colbert = tiny.colbert(tmp_path / "colbert")
    model = LateInteractionReranker(str(colbert), device="cpu")
    known = iter([False, True])
    monkeypatch.setattr(LateInteractionReranker, "_trained", property(lambda self: next(known)))
    with pytest.raises(InputError, match="run again"):
        model.score([("a", "b")], single_call())
