import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.cache import Cache
from retrievers.errors import InputError
from retrievers.local.models import Setup
from retrievers.meter import Meter
from retrievers.rerankers.local_rerankers import CrossEncoderReranker
from retrievers.reranking import CachedReranker, above_the_rest
from retrievers.types import Document, Query, ranked
from tests import tiny

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


@pytest.fixture
def cache(tmp_path):
    with Cache(tmp_path / "c") as opened:
        yield opened


def reranker(folder, cache, **more):
    model = CrossEncoderReranker(str(folder), **{"device": "cpu", "depth": 3, **more})
    return CachedReranker(model, cache, content)


def logits(folder, pairs):
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    return CrossEncoder(str(folder), device="cpu").predict(pairs, activation_fn=Identity(), show_progress_bar=False)


def test_the_head_is_in_the_librarys_order_and_the_rest_stays(folder, cache):
    found = reranker(folder, cache).rerank_all(QUERIES, RANKINGS, Meter())
    for query, before, after in zip(QUERIES[:2], RANKINGS, found, strict=False):
        scores = logits(folder, [(query.text, DOCUMENTS[name].content) for name in before.doc_ids[:3]])
        order = np.argsort(-scores)
        assert after.doc_ids == (*[before.doc_ids[i] for i in order], *before.doc_ids[3:])
        assert np.allclose(after.scores[:3], scores[order], atol=2e-5)
        assert (np.diff(after.scores) < 0).all()
    assert len(found[2]) == 0


def test_a_warm_run_gives_the_same_and_loads_no_model(folder, cache, monkeypatch):
    cold, warm = Meter(), Meter()
    with cold.stage("rerank"):
        first = reranker(folder, cache, batch_size=2).rerank_all(QUERIES, RANKINGS, cold)
    monkeypatch.setattr(Setup, "load", lambda *_: pytest.fail("a model was loaded"))
    with warm.stage("rerank"):
        second = reranker(folder, cache).rerank_all(QUERIES, RANKINGS, warm)
    assert first == second
    assert cold.stages()["rerank"].counts == {"texts": 6, "cached": 0, "calls": 3, "tokens": 55, "lost_tokens": 11}
    assert warm.stages()["rerank"].counts == {"texts": 6, "cached": 6, "lost_tokens": 11}
    assert warm.notes() == cold.notes() == {"truncated-pair": ("q2",)}


def test_a_single_query_bypasses_the_cache(folder, cache):
    own = reranker(folder, cache)
    alone = own.rerank(QUERIES[0], RANKINGS[0], Meter())
    assert cache.info() == ()
    assert alone.doc_ids == own.rerank_all(QUERIES[:1], RANKINGS[:1], Meter())[0].doc_ids
    assert len(own.rerank(QUERIES[2], RANKINGS[2], Meter())) == 0


def test_scores_depend_on_the_side_on_which_a_text_stands(folder, cache):
    own = reranker(folder, cache)
    swapped = {"x": Document("x", "", "cat"), "y": Document("y", "", "the cat sits")}
    own._contents = lambda ids: {name: swapped[name] for name in ids}
    there = own.rerank_all([Query("q", "the cat sits")], [ranked(["x"], [1])], Meter())
    back = own.rerank_all([Query("q", "cat")], [ranked(["y"], [1])], Meter())
    assert cache.info()[0].rows == 2
    assert there[0].scores[0] != back[0].scores[0]


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
        reranker(tiny.cross_encoder(tmp_path, outputs=2), cache).rerank(QUERIES[0], RANKINGS[0], Meter())


@pytest.mark.parametrize("option", [{"depth": 0}, {"batch_size": 0}])
def test_options_out_of_range(cache, option):
    with pytest.raises(InputError, match=next(iter(option))):
        reranker("x", cache, **option)
