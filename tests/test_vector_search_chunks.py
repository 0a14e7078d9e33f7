"""Long documents in passages: how they are cut, and that a document is worth its best passage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.chunking import Chunks, best_passages, passages
from retrievers.errors import InputError
from retrievers.meter import Meter
from retrievers.types import Document, Embedded, Query, ranked
from retrievers.vector_search import Embeds, VectorRetriever
from tests.qdrant_fake import store_at

sizes = st.integers(1, 60).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


@given(st.lists(st.sampled_from(["", "", "", " ", "。", "\n  "]), max_size=200), sizes)
def test_passages_cover_the_text_in_order_and_are_never_too_long(gaps, size_and_overlap):
    """Every letter differs, so that a passage has one place in the text, and a mark alone the next one."""
    text = "".join(chr(0x4E00 + place) + gap for place, gap in enumerate(gaps))
    chunks = Chunks(*size_and_overlap)
    found = passages(Document("d", "title", text), chunks)
    assert [passage.id for passage in found] == [f"d\x1f{number}" for number in range(len(found))]
    assert all(len(passage.text) <= chunks.size and passage.title == "title" for passage in found)
    covered = 0
    for passage in found:
        begins = text.index(passage.text, max(0, covered - chunks.overlap))
        assert not text[covered:begins].strip()
        covered = max(covered, begins + len(passage.text))
    assert not text[covered:].strip()


def test_a_gap_longer_than_a_passage_makes_no_blank_one():
    found = passages(Document("d", "", "a" + " " * 50 + "b"), Chunks(10))
    assert [passage.text for passage in found] == ["a", "b"]


def test_a_passage_ends_where_a_sentence_or_a_word_does():
    japanese = passages(Document("d", "", "これは一つ。これは二つ。これは三つ。"), Chunks(15))
    assert [passage.text for passage in japanese] == ["これは一つ。これは二つ。", "これは三つ。"]
    english = passages(Document("d", "", "some words of a text"), Chunks(12))
    assert [passage.text for passage in english] == ["some words", "of a text"]


def test_a_text_without_a_place_to_break_is_broken_anyway():
    assert [p.text for p in passages(Document("d", "", "x" * 25), Chunks(10))] == ["x" * 10, "x" * 10, "x" * 5]


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (5, 5), (5, -1)])
def test_chunks_that_make_no_sense_are_refused(size, overlap):
    with pytest.raises(InputError, match="size"):
        Chunks(size, overlap)


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(-3, 3)), min_size=1, max_size=120),
    st.integers(1, 6),
)
def test_documents_rank_by_their_best_passage(rows, depth):
    ids = [f"d{document}\x1f{number}" for number, (document, _) in enumerate(rows)]
    scores = [score / 3 for _, score in rows]
    best = {}
    for (document, _), score in zip(rows, scores, strict=True):
        best[f"d{document}"] = max(best.get(f"d{document}", -9), score)

    def search(vectors, limit):
        return [ranked(ids, scores, limit) for _ in vectors]

    [ranking] = best_passages(search, 1, depth)
    expected = ranked(list(best), list(best.values()), depth)
    assert ranking.doc_ids == expected.doc_ids
    assert ranking.scores == pytest.approx(expected.scores, abs=2e-6)


class Words(Embeds):
    """One dimension a word."""

    def embed(self, texts, role, meter):
        vectors = np.array([[text.count(word) for word in ("sun", "moon", "star")] for text in texts], np.float32)
        return Embedded(vectors, np.ones(len(texts), np.int64), np.array([int("long" in text) for text in texts]))


def test_a_long_document_is_found_by_one_of_its_passages():
    documents = [
        Document("mixed", "", "sun sun sun sun moon moon moon moon star star star star"),
        Document("mostly moon", "", "moon moon sun"),
        Document("void", "", " "),
        Document("nothing", "", "long " * 10),
    ]
    whole, cut = (
        VectorRetriever(Words(), lambda meter: store_at(":memory:"), chunks=chunks) for chunks in (None, Chunks(16))
    )
    first = {}
    for name, retriever in (("whole", whole), ("cut", cut)):
        meter = Meter()
        retriever.index(documents, meter)
        [ranking] = retriever.search([Query("q", "moon")], 10, meter)
        first[name] = ranking.doc_ids
    assert first == {"whole": ("mostly moon", "mixed"), "cut": ("mixed", "mostly moon")}
    assert meter.notes() == {"empty": ("void",), "truncated": ("nothing",), "zero-vector": ("nothing",)}


class Ones(Embeds):
    """Embeds every text as one vector, and counts it as an encoder does."""

    def embed(self, texts, role, meter):
        meter.count(texts=len(texts))
        none = np.zeros(len(texts), dtype=np.int64)
        return Embedded(np.ones((len(texts), 2), dtype=np.float32), none, none)


@pytest.mark.parametrize("window", [7, 16_384])
def test_progress_counts_passages_against_passages(window, monkeypatch):
    """Documents stood there before: "3,040 of 163", and so no time was left."""
    monkeypatch.setattr("retrievers.vector_search.WINDOW", window)
    seen = []
    counted = Meter(
        watch=lambda m: seen.append((m.current, m.counts(m.current).get("texts", 0), m.expected(m.current)))
    )
    texts = ["".join(f"{n:04}{part:06}" for part in range(4)) for n in range(10)]  # no two passages are the same text
    corpus = [Document(f"d{n}", "", text) for n, text in enumerate(texts)] + [Document("blank", "", " ")]
    retriever = VectorRetriever(Ones(), lambda _: store_at(":memory:"), chunks=Chunks(10))
    retriever.index(corpus, counted)
    for stage in ("embed-documents", "index"):
        steps = [(texts, expected) for current, texts, expected in seen if current == stage and texts]
        assert steps[-1] == (40, 40)
        assert all(texts <= expected for texts, expected in steps)
        assert all(abs(expected - 40) <= 4 for _, expected in steps)
