"""Rerankers on this machine, compared with sentence-transformers, and services."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.dense import Dense
from retrievers.errors import BackendError, InputError, OverBudget
from retrievers.local.local_model import LocalModel
from retrievers.meter import Budget, Meter, single_call
from retrievers.reranked import Reranked, rank_reranked_first
from retrievers.rerankers.http_reranker import HttpReranker
from retrievers.rerankers.local_rerankers import (
    CrossEncoderReranker,
    LateInteractionReranker,
)
from retrievers.types import Document, Query, ranked
from tests.support import tiny
from tests.support.dialects import KEY, RerankProvider, overlap
from tests.support.over_store import reranking
from tests.support.provider_blocks import BLOCKS, at
from tests.support.servers import serving, tokens_of

pytestmark = pytest.mark.usefixtures("keys")

TEXTS = {
    "d1": "the cat sits",
    "d2": "a dog runs fast",
    "d3": "shock wave of the wing",
    "d4": "heat flow",
    "d5": "slow body " * 8,
    "d6": "title of a passage",
}
QUERIES = [Query("q1", "cat"), Query("q2", "heat of the wing"), Query("q3", "dog")]
RANKINGS = [
    ranked(["d1", "d2", "d3", "d4", "d5"], [0.9, 0.8, 0.7, 0.6, 0.5]),
    ranked(["d5", "d4", "d1", "d6"], [4, 3, 2, 1]),
    ranked([], []),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.cross_encoder(tmp_path_factory.mktemp("cross"))


@pytest.fixture(scope="module")
def bi_encoder(tmp_path_factory):
    return tiny.bi_encoder(tmp_path_factory.mktemp("bi"))


@pytest.fixture(scope="module")
def colbert(tmp_path_factory):
    return tiny.colbert(tmp_path_factory.mktemp("colbert"))


@pytest.fixture(scope="module")
def older_pylate(tmp_path_factory):
    return tiny.pylate(tmp_path_factory.mktemp("pylate"), names_class=False)


def reranker(folder, cache, cls=CrossEncoderReranker, **more):
    model = cls(str(folder), **{"device": "cpu", "depth": 3, **more})
    return reranking(
        model,
        cache,
        lambda ids: {name: Document(name, "", TEXTS[name]) for name in ids},
    )


def late(folder, cache):
    return reranker(folder, cache, LateInteractionReranker, depth=5)


@pytest.mark.parametrize("prompt", ["", "passage of the body "])
def test_first_hits_are_in_the_librarys_order_and_others_stay(
    folder, cache, tmp_path, prompt
):
    """Models with an instruction, such as Qwen3-Reranker, have it in their files."""
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    plain = CrossEncoderReranker(str(folder), device="cpu")
    folder = (
        tiny.with_prompt(folder, tmp_path / "prompted", prompt) if prompt else folder
    )
    theirs = CrossEncoder(str(folder), device="cpu")
    rankings = reranker(folder, cache).rerank(QUERIES, RANKINGS, Meter())
    for query, before, after in zip(QUERIES[:2], RANKINGS, rankings, strict=False):
        pairs = [(query.text, TEXTS[name].strip()) for name in before.doc_ids[:3]]
        scores = theirs.predict(
            pairs, activation_fn=Identity(), show_progress_bar=False
        )
        order = np.argsort(-scores)
        assert after.doc_ids == (
            *[before.doc_ids[i] for i in order],
            *before.doc_ids[3:],
        )
        assert np.allclose(after.scores[:3], scores[order], atol=2e-5)
        assert (np.diff(after.scores) < 0).all()
    assert len(rankings[2]) == 0
    prompted = CrossEncoderReranker(str(folder), device="cpu")
    with_prompt, without = (
        each_model.score([("cat", "dog")], single_call()).tokens
        for each_model in (prompted, plain)
    )
    assert (with_prompt - without).tolist() == [len(prompt.split())]
    assert (prompted.fingerprint == plain.fingerprint) == (not prompt)


# Of the longest document 16 words and two marks are to be read, and 12 are.
COLD = {
    CrossEncoderReranker: {"tokens": 55, "lost_tokens": 11},
    LateInteractionReranker: {"tokens": 66, "lost_tokens": 6},
}


@pytest.mark.parametrize("cls", COLD)
def test_a_warm_run_loads_no_model_and_one_query_bypasses_the_cache(
    folder, bi_encoder, cache, monkeypatch, cls
):
    model_folder = folder if cls is CrossEncoderReranker else bi_encoder
    reranked = reranker(model_folder, cache, cls, batch_size=2)
    cold = Meter()
    warm = Meter()
    alone = [reranked.rerank_alone(QUERIES[i], RANKINGS[i], Meter()) for i in (0, 2)]
    assert cache.info() == ()
    first = reranked.rerank(QUERIES, RANKINGS, cold)
    assert [ranking.doc_ids for ranking in alone] == [first[0].doc_ids, ()]
    monkeypatch.setattr(
        LocalModel, "_load", lambda *_: pytest.fail("a model was loaded")
    )
    assert reranker(model_folder, cache, cls).rerank(QUERIES, RANKINGS, warm) == first
    assert cold.counts("") == {"texts": 6, "cached": 0, "calls": 3, **COLD[cls]}
    assert warm.counts("") == {
        "texts": 6,
        "cached": 6,
        "lost_tokens": COLD[cls]["lost_tokens"],
    }
    assert warm.notes() == cold.notes() == {"truncated-pair": ("q2",)}


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=10), st.integers(0, 90))
def test_lower_candidates_stay_in_their_order(scores, more):
    before = ranked(
        [f"d{i:03}" for i in range(len(scores) + more)],
        np.arange(len(scores) + more, 0, -1),
    )
    after = rank_reranked_first(before, np.asarray(scores))
    assert set(after.doc_ids[: len(scores)]) == set(before.doc_ids[: len(scores)])
    assert after.doc_ids[len(scores) :] == before.doc_ids[len(scores) :]


def max_sim(folder, query, text):
    """The same by sentence-transformers' own `encode`, one text at a time."""
    from sentence_transformers import SentenceTransformer

    encode = SentenceTransformer(str(folder), device="cpu").encode
    sides = [
        encode(side_text, output_value="token_embeddings").numpy()
        for side_text in (query, text)
    ]
    q, d = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    return (q @ d.T).max(axis=1).mean()


def of_its_own(folder, query, text):
    """The same by a model that was trained for it."""
    from sentence_transformers import MultiVectorEncoder

    model = MultiVectorEncoder(
        str(folder), device="cpu", similarity_fn_name="meanmaxsim"
    )
    return model.similarity(
        model.encode_query([query]), model.encode_document([text.strip()])
    )[0].item()


@pytest.mark.parametrize(
    ("model", "theirs"),
    [
        ("bi_encoder", max_sim),
        ("colbert", of_its_own),
        ("older_pylate", of_its_own),
    ],
)
def test_scores_by_token_vectors_equal_those_of_single_texts(
    request, cache, model, theirs
):
    folder = request.getfixturevalue(model)
    for query, ranking in zip(
        QUERIES[:2],
        late(folder, cache).rerank(QUERIES[:2], RANKINGS[:2], Meter()),
        strict=True,
    ):
        for hit in ranking:
            assert hit.score == pytest.approx(
                theirs(folder, query.text, TEXTS[hit.doc_id]), abs=3e-6
            )


def test_models_that_score_no_pairs_are_refused_and_tokens_counted(
    colbert, cache, tmp_path, monkeypatch
):
    reranked = reranker(tiny.cross_encoder(tmp_path / "two", outputs=2), cache)
    with pytest.raises(InputError, match="has 2 outputs"):
        reranked.rerank_alone(QUERIES[0], RANKINGS[0], Meter())
    with pytest.raises(InputError, match="has no vectors of tokens"):
        late(tiny.static(tmp_path / "static"), cache)
    model = LateInteractionReranker(str(colbert), device="cpu")
    # Its prompt, the words and two marks, of the longest document 10 of 19.
    assert model.count([text.strip() for text in TEXTS.values()]).counts.tolist() == [
        6,
        7,
        8,
        5,
        10,
        7,
    ]
    answers = iter(
        [False, True]
    )  # a model of the hub that turns out to be trained for it
    monkeypatch.setattr(
        LateInteractionReranker, "_is_trained", property(lambda self: next(answers))
    )
    with pytest.raises(InputError, match="run again"):
        model.score([("a", "b")], single_call())


def test_padding_at_the_left_is_no_token_of_a_text(tmp_path):
    folder = tiny.padding_before(tiny.bi_encoder(tmp_path / "left"))
    model = LateInteractionReranker(str(folder), device="cpu")
    pairs = [("cat", "a cat sat on the mat"), ("cat", ""), ("a cat sat here", "cat")]

    together = model.score(pairs, single_call()).scores

    alone = [model.score([pair], single_call()).scores[0] for pair in pairs]
    assert together == pytest.approx(alone, abs=1e-6)


def test_retrievers_outside_a_run_use_the_users_cache(folder, tmp_path, own_cache):
    dense = Dense({"kind": "hashing"})
    reranked = Reranked(dense, CrossEncoderReranker(str(folder), device="cpu"), depth=2)
    meter = Meter()
    documents = [Document(name, "", text) for name, text in TEXTS.items()]
    reranked.index(documents, meter)
    (before,), (after,) = (
        retriever.search(QUERIES[:1], 3, meter) for retriever in (dense, reranked)
    )
    assert (
        set(before.doc_ids) == set(after.doc_ids)
        and before.doc_ids[2] == after.doc_ids[2]
    )
    assert [*(tmp_path / "cache").glob("cache.sqlite")]


PLANES = {
    f"d{i}": Document(
        f"d{i}", "", f"{'the wing of' if i % 2 else 'a'} plane {i} " + "x " * i
    )
    for i in range(8)
}
ASKED = [Query("q1", "the wing"), Query("q2", "plane of x"), Query("q3", "plane 3")]
FOUND = [ranked(list(PLANES), range(8, 0, -1)) for _ in ASKED]
DIALECTS = {
    "cohere": "Cohere",
    "voyage": "Voyage",
    "jina": "Jina",
    "tei": "Text Embeddings Inference",
    "vllm": "vLLM",
}
PAIRS = [("plane of x", document.content) for document in PLANES.values()]


def service(provider, **more):
    options = {"depth": 8, "concurrency": 1, "patience": 60, "model": "r", **more}
    return HttpReranker(provider.dialect, base_url=provider.url, api_key=KEY, **options)


def rerank(provider, cache, meter=None, rankings=FOUND, **more):
    reranked = reranking(
        service(provider, **more),
        cache,
        lambda ids: {name: PLANES[name] for name in ids},
    )
    return reranked.rerank(ASKED, rankings, meter or Meter())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_reranks_and_gets_each_request_once(dialect, cache):
    with serving(RerankProvider(dialect=dialect)) as provider:
        rankings = rerank(provider, cache)
        for query, ranking in zip(ASKED, rankings, strict=True):
            scores = [
                overlap(query.text, document.content) for document in PLANES.values()
            ]
            assert ranking.doc_ids == ranked(list(PLANES), scores).doc_ids
        assert rerank(provider, cache) == rankings
        assert len(provider.requests) == 3
        with closing(sqlite3.connect(cache.path)) as database, database:
            database.execute("DELETE FROM rows WHERE rowid = 1")
        assert (
            rerank(provider, cache) == rankings
        )  # of a list that is not whole, all is asked again
        assert (len(provider.requests), len(provider.scored)) == (4, 4 * 8)
        shorter = [
            ranked(document.doc_ids[:4], document.scores[:4]) for document in FOUND
        ]
        rerank(
            provider, cache, rankings=shorter
        )  # scores that may depend on companions are kept by list
        assert len(provider.requests) == 7


def test_a_list_with_one_text_twice_is_paid_for_once(cache):
    same_texts = [Document(name, "", "the wing") for name in ("d1", "d2")]
    documents = {document.id: document for document in same_texts}
    candidates = [ranked(list(documents), [2, 1])]
    with serving(RerankProvider(dialect="tei")) as provider:
        reranked = reranking(
            service(provider),
            cache,
            lambda ids: {doc_id: documents[doc_id] for doc_id in ids},
        )
        first, second = (
            reranked.rerank(ASKED[:1], candidates, Meter()) for _ in range(2)
        )
    assert first == second
    assert len(provider.requests) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_block_of_a_reranker_is_ready(dialect):
    with serving(RerankProvider(dialect=dialect)) as provider:
        scored = at(
            BLOCKS[f"{DIALECTS[dialect]}, reranking"], "rerank", provider.url
        ).score(PAIRS, single_call())
        assert np.allclose(scored.scores, [overlap(*pair) for pair in PAIRS])
        assert scored.truncated_tokens.tolist() == [0] * 8


def test_documents_are_cut_and_counted_and_a_list_that_is_too_long_is_split(cache):
    with serving(RerankProvider(dialect="tei")) as provider:
        meter = Meter()
        rerank(provider, cache, meter, max_tokens=5)
        assert max(tokens_of(document) for _, document in provider.scored) <= 5
        assert meter.counts("")["lost_tokens"] > 0 and meter.notes()[
            "truncated-pair"
        ] == ("q1", "q2", "q3")
    with serving(RerankProvider(dialect="tei", most=3)) as provider:
        assert np.allclose(
            service(provider).score(PAIRS, single_call()).scores,
            [overlap(*pair) for pair in PAIRS],
        )
        assert [len(request["body"]["texts"]) for request in provider.requests] == [
            8,
            4,
            2,
            2,
            4,
            2,
            2,
        ]


@pytest.mark.parametrize(
    ("dialect", "fault"),
    [
        *(
            ("cohere", fault)
            for fault in (
                "few",
                "many",
                "twice",
                "empty",
                "nan",
                "expired",
            )
        ),
        *(
            (dialect, fault)
            for dialect in ("voyage", "tei")
            for fault in ("few", "unindexed")
        ),
    ],
)
def test_a_reranker_that_fails_for_good_is_asked_once(dialect, fault, cache):
    with serving(RerankProvider(always=fault, dialect=dialect)) as provider:
        message = refused_reranking(provider, cache)
        assert "(tried" not in message
        assert len(provider.requests) == 1


@pytest.mark.parametrize("dialect", ["cohere", "voyage", "tei"])
@pytest.mark.parametrize("fault", ["index-null", "score-text"])
def test_a_reranker_whose_fault_may_pass_is_asked_until_patience_ends(
    dialect, fault, cache
):
    with serving(RerankProvider(always=fault, dialect=dialect)) as provider:
        message = refused_reranking(provider, cache)
        assert f"(tried {len(provider.requests)} times in" in message


def refused_reranking(provider, cache):
    """Return the message of what is refused: one line, no key, and not kept."""
    with pytest.raises(BackendError) as caught:
        rerank(provider, cache, patience=0.1)
    message = str(caught.value)
    assert "\n" not in message
    assert KEY not in message
    assert cache.info() == ()
    return message


def test_searches_are_billed_and_capped(cache):
    with serving(RerankProvider(dialect="cohere")) as provider:
        meter = Meter(budget=Budget(2.5))
        with pytest.raises(OverBudget):
            rerank(provider, cache, meter, search_price=1000)
        assert meter.budget.spent == len(provider.requests) == 2
