"""The retriever by vectors: what it embeds, leaves out, notes and answers; a document is worth its best passage."""

from __future__ import annotations

import pytest

from retrievers import dense
from retrievers.cache import Cache
from retrievers.chunking import Chunk
from retrievers.dense import Dense
from retrievers.encoders.hashing import HashingEncoder
from retrievers.errors import InputError
from retrievers.meter import Meter
from retrievers.resources import Corpus, Resources
from retrievers.stores import StoreOptions, open_store
from retrievers.stores.matrices import CsrStore
from retrievers.types import Document, Query
from tests.support.over_store import Numbers, OverStore
from tests.support.qdrant_fake import store_at


def vowels(text):
    """One dimension a vowel; other letters weigh nothing, so that "xyz" has no direction."""
    return [text.count(vowel) for vowel in "aeiou"]


def letters():
    return Numbers(vowels, lost=lambda text: 3 if "ng" in text else 0)


def documents(*contents):
    return [Document(f"d{i}", "", text) for i, text in enumerate(contents)]


@pytest.fixture
def retriever():
    return OverStore(letters(), lambda _: store_at(":memory:"))


@pytest.fixture
def meter():
    return Meter()


def test_the_nearest_by_cosine_come_first_and_depth_cuts(retriever, meter):
    retriever.index([*documents("a", "aaae", "e", "ae"), Document("titled", "i", "e")], meter)
    assert retriever.search([], 10, meter) == []
    first, second = retriever.search([Query("q0", "aa"), Query("q1", "i")], 3, meter)
    assert first.doc_ids == ("d0", "d1", "d3")
    assert first.scores == pytest.approx([1, 3 / 10**0.5, 1 / 2**0.5], abs=1e-6)
    assert second.doc_ids[0] == "titled" and second.scores[0] == pytest.approx(1 / 2**0.5, abs=1e-6)


def test_blank_documents_and_those_without_direction_are_noted_and_never_retrieved(retriever, meter):
    with pytest.raises(InputError, match="no document with any content"):
        retriever.index(documents("", "  "), Meter())
    retriever.index(documents("a", " \n", "xyz", "e", "a long text"), meter)
    blank, _ = retriever.search([Query("none", "xyz"), Query("long query", "long a")], 10, meter)
    assert len(blank) == 0
    [everything] = retriever.search([Query("q", "aeiou")], 10, meter)
    assert set(everything.doc_ids) == {"d0", "d3", "d4"}
    assert meter.notes() == {"empty": ("d1",), "truncated": ("d4",), "zero-vector": ("d2",),
                             "truncated-query": ("long query",), "zero-vector-query": ("none",)}  # fmt: skip
    assert meter.stages()["embed-documents"].counts["lost_tokens"] == 3


def test_windows_do_not_change_the_answer(monkeypatch, meter):
    answers = []
    for window in (2, 1000):
        monkeypatch.setattr("retrievers.embedding.WINDOW", window)
        retriever = OverStore(letters(), lambda _: store_at(":memory:"))
        retriever.index(iter(documents("", "a", "ae", "aei", "aeio", " ", "o", "uu")), meter)
        answers.append(retriever.search([Query("q", "aie"), Query("r", "u")], 4, meter))
    assert answers[0] == answers[1]


def test_a_finished_collection_is_used_and_its_notes_are_told_again(tmp_path):
    def retrieve():
        meter = Meter()
        retriever = OverStore(letters(), lambda _: store_at(str(tmp_path)))
        retriever.index(documents("a", "", "ae", "xyz", "a long e"), meter)
        rankings = retriever.search([Query("q", "a"), Query("r", "ee")], 10, meter)
        retriever._collection.close()
        return rankings, meter.notes(), meter.counts("embed-documents").get("texts", 0)

    first, again = retrieve(), retrieve()
    assert first[:2] == again[:2] and (first[2], again[2]) == (4, 0)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_store_is_told_whether_all_is_made_anew(fresh, meter):
    class Told(CsrStore):
        def create(self, dimensions, *, anew=False):
            told.append(anew)
            super().create(dimensions)

        def finish(self, notes):
            pass

    told = []
    OverStore(letters(), lambda _: Told(None), fresh=fresh).index(documents("a"), meter)
    assert told == [fresh]


def test_the_texts_of_a_collection_are_counted_once(tmp_path, meter):
    corpus = documents("a", "", "ae", "- -")

    def retrieve():
        retriever, stores = Dense(HashingEncoder(dimensions=8), store=f"{tmp_path}/there"), {}
        with Cache(tmp_path / "cache.sqlite") as cache:
            retriever.use(Resources(Corpus(lambda: iter(corpus), 4, dict), cache, fresh=False, stores=stores))
            retriever.index(corpus, meter)
            retriever.search([Query("q", "a")], 1, meter)
        facts = retriever.provenance
        for store in stores.values():
            store.close()
        return facts["vectors"]

    assert retrieve() == retrieve() == "3"  # a blank document is not text; one without direction is


def test_an_approximate_search_is_compared_with_the_exact_one(tmp_path, meter):
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    options = StoreOptions("edge", quantization="binary", oversampling=1.0)
    store = open_store(options, "letters", documents=1, folder=tmp_path, meter=Meter())
    retriever = OverStore(letters(), lambda _: store)
    words = [a * i + b * j for a in "aeiou" for b in "aeiou" for i in range(1, 5) for j in range(1, 5)]
    retriever.index(documents(*words), meter)
    retriever.search([Query(str(i), word + "a") for i, word in enumerate(words[::2])], 20, meter)
    store.close()
    counts = meter.stages()["search-exact"].counts
    assert counts["exact_hits"] == 20 * dense.COMPARED and counts["exact_hits_at_10"] == 10 * dense.COMPARED
    assert 0 < counts["shared_hits"] < counts["exact_hits"]  # one bit a dimension cannot tell these apart


def test_a_long_document_is_found_by_one_of_its_passages():
    corpus = documents("sun sun sun sun moon moon moon moon star star star star", "moon moon sun", " ", "lng " * 10)
    for chunks, first in ((None, ("d1", "d0")), (Chunk(size=16), ("d0", "d1"))):
        meter, retriever = Meter(), OverStore(letters(), lambda _: store_at(":memory:"), chunks=chunks)
        retriever.index(corpus, meter)
        assert retriever.search([Query("q", "moon")], 10, meter)[0].doc_ids == first
    assert meter.notes() == {"empty": ("d2",), "truncated": ("d3",), "zero-vector": ("d3",)}


@pytest.mark.parametrize("window", [7, 16_384])
def test_progress_counts_passages_against_passages(window, monkeypatch):
    """Documents stood there before: "3,040 of 163", and so no time was left."""
    monkeypatch.setattr("retrievers.embedding.WINDOW", window)
    seen = []
    counted = Meter(
        watch=lambda m: seen.append((m.current, m.counts(m.current).get("texts", 0), m.expected(m.current)))
    )
    texts = ["".join(f"{n:04}{part:06}" for part in range(4)) for n in range(10)]  # no two passages are the same text
    retriever = OverStore(Numbers(lambda _: [1, 1]), lambda _: store_at(":memory:"), chunks=Chunk(size=10))
    retriever.index(documents(*texts, " "), counted)
    for stage in ("embed-documents", "index"):
        steps = [(texts, expected) for current, texts, expected in seen if current == stage and texts]
        assert steps[-1] == (40, 40)
        assert all(texts <= expected and abs(expected - 40) <= 4 for texts, expected in steps)
