"""The retriever by vectors: what it embeds, leaves out, notes, and how it answers."""

import numpy as np
import pytest

from retrievers import vector_search
from retrievers.errors import InputError
from retrievers.meter import Meter
from retrievers.stores import StoreOptions, open_store
from retrievers.stores.matrices import CsrStore
from retrievers.types import Document, Embedded, Query
from retrievers.vector_search import Embeds, VectorRetriever
from tests.qdrant_fake import store_at

LOST = "long"


class Letters(Embeds):
    """One dimension a vowel; other letters weigh nothing, so that "xyz" has no direction."""

    def embed(self, texts, role, meter):
        assert all(text.strip() for text in texts)
        vectors = np.array([[text.count(vowel) for vowel in "aeiou"] for text in texts], dtype=np.float32)
        lost = np.array([3 if LOST in text else 0 for text in texts])
        return Embedded(vectors.reshape(-1, 5), np.full(len(texts), 4), lost)

    def one(self, text, role, meter):
        return self.embed([text], role, meter)


def documents(*contents):
    return [Document(f"d{i}", "", text) for i, text in enumerate(contents)]


def in_memory(meter):
    return store_at(":memory:")


@pytest.fixture
def retriever():
    return VectorRetriever(Letters(), in_memory)


@pytest.fixture
def meter():
    return Meter()


def test_the_nearest_by_cosine_come_first_and_depth_cuts(retriever, meter):
    retriever.index(documents("a", "aaae", "e", "ae", "i"), meter)
    first, second = retriever.search([Query("q0", "aa"), Query("q1", "e")], 3, meter)
    assert first.doc_ids == ("d0", "d1", "d3")
    assert first.scores == pytest.approx([1, 3 / 10**0.5, 1 / 2**0.5], abs=1e-6)
    assert second.doc_ids == ("d2", "d3", "d1")


def test_the_title_is_embedded_before_the_text(retriever, meter):
    retriever.index([Document("a", "e", "i"), Document("b", "", "i")], meter)
    [ranking] = retriever.search([Query("q", "e")], 2, meter)
    assert ranking.doc_ids == ("a", "b")


def test_blank_documents_and_those_without_direction_are_noted_and_never_retrieved(retriever, meter):
    retriever.index(documents("a", " \n", "xyz", "e", "a long text"), meter)
    blank, _ = retriever.search([Query("none", "xyz"), Query("long query", "long a")], 10, meter)
    assert len(blank) == 0
    [everything] = retriever.search([Query("q", "aeiou")], 10, meter)
    assert set(everything.doc_ids) == {"d0", "d3", "d4"}
    assert meter.notes() == {
        "empty": ("d1",),
        "truncated": ("d4",),
        "zero-vector": ("d2",),
        "truncated-query": ("long query",),
        "zero-vector-query": ("none",),
    }
    assert meter.stages()["embed-documents"].counts["lost_tokens"] == 3


def test_windows_do_not_change_the_answer(monkeypatch, meter):
    answers = []
    for window in (2, 1000):
        monkeypatch.setattr(vector_search, "WINDOW", window)
        retriever = VectorRetriever(Letters(), in_memory)
        retriever.index(iter(documents("", "a", "ae", "aei", "aeio", " ", "o", "uu")), meter)
        answers.append(retriever.search([Query("q", "aie"), Query("r", "u")], 4, meter))
    assert answers[0] == answers[1]


def test_a_corpus_without_content_is_the_users_mistake(retriever, meter):
    with pytest.raises(InputError, match="no document with any content"):
        retriever.index(documents("", "  "), meter)


def test_no_queries_give_no_rankings(retriever, meter):
    retriever.index(documents("a"), meter)
    assert retriever.search([], 10, meter) == []


def test_a_finished_collection_is_used_and_its_notes_are_told_again(tmp_path):
    def retrieve(embedder):
        meter = Meter()
        retriever = VectorRetriever(embedder, lambda _: store_at(str(tmp_path)))
        retriever.index(documents("a", "", "ae", "xyz", "a long e"), meter)
        rankings = retriever.search([Query("q", "a"), Query("r", "ee")], 10, meter)
        retriever.store.close()
        return rankings, meter.notes()

    class OnlyQueries(Letters):
        def embed(self, texts, role, meter):
            assert role == "query"
            return super().embed(texts, role, meter)

    assert retrieve(Letters()) == retrieve(OnlyQueries())


@pytest.mark.parametrize("fresh", [False, True])
def test_a_store_is_told_whether_all_is_made_anew(fresh, meter):
    class Told(CsrStore):
        def create(self, dimensions, *, anew=False):
            told.append(anew)
            super().create(dimensions)

        def finish(self, notes):
            pass

    told = []
    VectorRetriever(Letters(), lambda _: Told(None), fresh=fresh).index(documents("a"), meter)
    assert told == [fresh]


def test_the_texts_of_a_collection_are_counted_once(tmp_path, meter):
    seen = []

    def retrieve():
        store = store_at(str(tmp_path))
        retriever = VectorRetriever(
            Letters(), lambda _: store, describe=lambda extent, facts: seen.append(extent.texts) or {}
        )
        retriever.index(documents("a", "", "ae", "xyz"), meter)
        store.close()
        return retriever.provenance

    assert retrieve() == retrieve() == {}
    assert seen == [3, 3]  # a blank document is no text; one without direction is


def test_an_approximate_search_is_compared_with_the_exact_one(tmp_path):
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    options = StoreOptions("edge", quantization="binary", oversampling=1.0)
    store = open_store(options, "letters", documents=1, folder=tmp_path, meter=Meter())
    meter = Meter()
    retriever = VectorRetriever(Letters(), lambda _: store)
    words = [a * i + b * j for a in "aeiou" for b in "aeiou" for i in range(1, 5) for j in range(1, 5)]
    retriever.index(documents(*words), meter)
    retriever.search([Query(str(i), word + "a") for i, word in enumerate(words[::2])], 20, meter)
    store.close()
    counts = meter.stages()["search-exact"].counts
    assert counts["texts"] == vector_search.COMPARED
    assert (
        counts["exact_hits"] == 20 * vector_search.COMPARED
        and counts["exact_hits_at_10"] == 10 * vector_search.COMPARED
    )
    assert 0 < counts["shared_hits"] < counts["exact_hits"]  # one bit a dimension cannot tell these apart
