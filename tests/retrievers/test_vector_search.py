"""The retriever by vectors, and passages of documents, by brute force."""

from __future__ import annotations

import itertools
import re
import sys
from importlib.util import find_spec
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.pipeline import run
from harness.preflight.check import check_target
from harness.running.options import RunOptions
from retrievers import dense
from retrievers.bm25 import BM25
from retrievers.dense import Dense
from retrievers.embedder import Embedder, sort_distinct_passages
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.encoders.voyage_context import VoyageContextEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, single_call
from retrievers.stores.csr import CsrStore
from retrievers.stores.open import open_store
from retrievers.stores.options import StoreOptions
from retrievers.texts.chunking import (
    Chunk,
    PassageBoundary,
    cut_document,
    passages_in_context,
)
from retrievers.texts.passage_ranking import rank_by_best_passage
from retrievers.texts.token_estimate import Tokens
from retrievers.types import Document, Query, ranked
from retrievers.vector_reduction import VectorReduction
from tests.support import small, tiny
from tests.support.dialects import KEY
from tests.support.over_store import Numbers, OverStore
from tests.support.qdrant_fake import store_at
from tests.support.servers import OpenAIProvider, Refusal, serving, tokens_of


def vowels(text):
    """One dimension per vowel; other letters do not count: "xyz" has no direction."""
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
    retriever.index(
        [*documents("a", "aaae", "e", "ae"), Document("titled", "i", "e")], meter
    )
    assert retriever.search([], 10, meter) == []
    first, second = retriever.search([Query("q0", "aa"), Query("q1", "i")], 3, meter)
    assert first.doc_ids == ("d0", "d1", "d3")
    assert first.scores == pytest.approx([1, 3 / 10**0.5, 1 / 2**0.5], abs=1e-6)
    assert second.doc_ids[0] == "titled"
    assert second.scores[0] == pytest.approx(1 / 2**0.5, abs=1e-6)


def test_blank_documents_alone_are_refused(retriever, meter):
    with pytest.raises(InputError, match="no document with any content"):
        retriever.index(documents("", "  "), meter)


def test_blank_documents_and_those_without_direction_are_noted_and_never_retrieved(
    retriever, meter
):
    retriever.index(documents("a", " \n", "xyz", "e", "a long text"), meter)
    blank, _ = retriever.search(
        [Query("none", "xyz"), Query("long query", "long a")], 10, meter
    )
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


@pytest.mark.parametrize("fresh", [False, True])
def test_a_store_is_created_anew_only_for_fresh_runs(fresh, meter):
    class Told(CsrStore):
        def create(self, dimensions, *, anew=False):
            calls.append(anew)
            super().create(dimensions)

        def finish(self, notes):
            pass

    calls = []
    OverStore(letters(), lambda _: Told(None), fresh=fresh).index(documents("a"), meter)
    assert calls == [fresh]


def test_an_approximate_search_is_compared_with_the_exact_one(tmp_path, meter):
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    options = StoreOptions("edge", quantization="binary", oversampling=1.0)
    store = open_store(options, "letters", documents=1, folder=tmp_path, meter=Meter())
    retriever = OverStore(letters(), lambda _: store)
    words = [
        a * i + b * j
        for a, b, i, j in itertools.product("aeiou", "aeiou", range(1, 5), range(1, 5))
    ]
    retriever.index(documents(*words), meter)
    retriever.search(
        [Query(str(i), word + "a") for i, word in enumerate(words[::2])], 20, meter
    )
    store.close()
    counts = meter.stages()["search-exact"].counts
    assert counts["exact_hits"] == 20 * dense.MAX_COMPARED_QUERIES
    assert counts["exact_hits_at_10"] == 10 * dense.MAX_COMPARED_QUERIES
    # One bit a dimension cannot tell these apart.
    assert 0 < counts["shared_hits"] < counts["exact_hits"]


def indexed_in_passages(chunks, meter):
    """A retriever of four documents, of which the first is long."""
    corpus = documents(
        "sun sun sun sun moon moon moon moon star star star star",
        "moon moon sun",
        " ",
        "lng " * 10,
    )
    retriever = OverStore(letters(), lambda _: store_at(":memory:"), chunks=chunks)
    retriever.index(corpus, meter)
    return retriever


@pytest.mark.parametrize(
    ("chunks", "doc_ids"),
    [(None, ("d1", "d0")), (Chunk(size=16), ("d0", "d1"))],
    ids=["whole", "in passages"],
)
def test_a_long_document_is_found_by_one_of_its_passages(chunks, doc_ids, meter):
    retriever = indexed_in_passages(chunks, meter)
    [ranking] = retriever.search([Query("q", "moon")], 10, meter)
    assert ranking.doc_ids == doc_ids


def test_notes_on_passages_name_their_documents(meter):
    indexed_in_passages(Chunk(size=16), meter)
    assert meter.notes() == {
        "empty": ("d2",),
        "truncated": ("d3",),
        "zero-vector": ("d3",),
    }


def test_a_document_in_two_windows_is_noted_once(monkeypatch, meter):
    monkeypatch.setattr("retrievers.embedder.EMBEDDING_WINDOW", 2)
    long = Document("long", "", "one two three four five")
    retriever = Dense(lambda texts: np.zeros((len(texts), 2)), chunk=Chunk(size=5))
    retriever.index([long], meter)
    assert meter.notes() == {"zero-vector": ("long",)}


def test_progress_counts_passages_against_passages(monkeypatch):
    """Documents stood there before: "3,040 of 163", and so no time was left."""
    monkeypatch.setattr("retrievers.embedder.EMBEDDING_WINDOW", 7)
    progress = []
    watching = Meter(
        on_change=lambda m: progress.append(
            (m.counts(m.current).get("texts", 0), m.totals(m.current).total)
        )
    )
    # No two passages are the same text.
    texts = [f"{n:04}000000{n:04}000001{n:04}000002{n:04}000003" for n in range(10)]
    retriever = OverStore(
        Numbers(lambda _: [1, 1]), lambda _: store_at(":memory:"), chunks=Chunk(size=10)
    )
    retriever.index(documents(*texts, " "), watching)
    steps = [step for step in progress if step[0]]
    assert steps[-1] == (40, 40)
    assert all(
        texts <= expected and abs(expected - 40) <= 4 for texts, expected in steps
    )


def sizes(least, most):
    """A size and an overlap."""
    return st.integers(least, most).flatmap(
        lambda size: st.tuples(st.just(size), st.integers(0, size - 1))
    )


def tokens(count, size, overlap=0, by=None):
    """Passages by what counts the tokens of texts."""
    chunk = Chunk(size=size, overlap=overlap, unit="tokens", by=by)
    return chunk.with_token_counter(lambda texts, _: Tokens(count(texts), exact=True))


def counted(encoder):
    return lambda texts: encoder.count_whole(texts, "document").counts


def in_words(texts):
    """Words and marks, and two special tokens."""
    return np.asarray(
        [
            len(text.replace("-", " - ").replace("。", " 。 ").split()) + 2
            for text in texts
        ]
    )


@given(
    st.lists(st.sampled_from(["", "", "", " ", "。", "\n  "]), max_size=200),
    sizes(1, 60),
)
def test_passages_cover_the_text_in_order_and_are_never_too_long(
    gaps, size_and_overlap
):
    """All letters differ, so that each passage occurs once in the text."""
    text = "".join(chr(0x4E00 + offset) + gap for offset, gap in enumerate(gaps))
    chunks = Chunk(size=size_and_overlap[0], overlap=size_and_overlap[1])
    passages = cut_document(Document("d", "title", text), chunks)
    assert [passage.id for passage in passages] == [
        f"d\x1f{number}" for number in range(len(passages))
    ]
    assert all(
        len(passage.text) <= chunks.size and passage.title == "title"
        for passage in passages
    )
    covered = 0
    for passage in passages:
        begins = text.index(passage.text, max(0, covered - chunks.overlap))
        assert not text[covered:begins].strip()
        covered = max(covered, begins + len(passage.text))
    assert not text[covered:].strip()


@pytest.mark.parametrize(
    ("text", "size", "parts"),
    [
        (
            "a" + " " * 50 + "b",
            10,
            ["a", "b"],
        ),  # a gap longer than a passage makes no blank one
        (
            "これは一つ。これは二つ。これは三つ。",
            15,
            ["これは一つ。これは二つ。", "これは三つ。"],
        ),
        (
            "abcd efghijklmnop",
            10,
            ["abcd efghi", "jklmnop"],
        ),  # a gap in the first half is too early
        ("some words of a text", 12, ["some words", "of a text"]),
        ("x" * 25, 10, ["x" * 10, "x" * 10, "x" * 5]),
    ],
)
def test_a_passage_ends_where_a_sentence_or_a_word_does_if_there_is_any(
    text, size, parts
):
    assert [
        passage.text
        for passage in cut_document(Document("d", "", text), Chunk(size=size))
    ] == parts


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(-3, 3)), min_size=1, max_size=120
    ),
    st.integers(1, 6),
)
def test_documents_rank_by_their_best_passage(rows, depth):
    ids = [f"d{document}\x1f{number}" for number, (document, _) in enumerate(rows)]
    scores = [score / 3 for _, score in rows]
    best = {}
    for (document, _), score in zip(rows, scores, strict=True):
        best[f"d{document}"] = max(best.get(f"d{document}", -9), score)
    [ranking] = rank_by_best_passage(
        lambda vectors, limit: [ranked(ids, scores, limit) for _ in vectors],
        1,
        depth,
        lambda passages: None,
    )
    expected = ranked(list(best), list(best.values()), depth)
    assert ranking.doc_ids == expected.doc_ids
    assert ranking.scores == pytest.approx(expected.scores, abs=2e-6)


TEXTS = st.lists(
    st.sampled_from(
        [*tiny.WORDS, "shock-wave", " ", "。", "x. Next", "# Head", "\n\n", "end."]
    ),
    max_size=99,
).map(" ".join)
TITLES = st.sampled_from(["", "the title"])
BOUNDARIES = st.sampled_from(
    get_args(PassageBoundary) if find_spec("semantic_text_splitter") else ["words"]
)


def lengths_in_letters(parts):
    return [len(part.text) for part in parts]


def lengths_in_words(parts):
    return in_words([part.content for part in parts]).tolist()


def check_passages(text, parts, lengths, size):
    """None is too long, and no word is lost."""
    assert max(lengths(parts)) <= size
    assert len(joined_text(parts).split()) >= len(text.split())


def joined_text(parts):
    return " ".join(part.text for part in parts)


@given(TEXTS, sizes(8, 40), TITLES)
def test_no_passage_without_a_boundary_has_too_many_tokens(
    text, size_and_overlap, title
):
    size, overlap = size_and_overlap
    parts = cut_document(Document("d", title, text), tokens(in_words, size, overlap))
    check_passages(text, parts, lengths_in_words, size)


@given(TEXTS, sizes(20, 52), st.none() | BOUNDARIES, TITLES)
def test_no_passage_has_too_many_letters(text, size_and_overlap, by, title):
    size, overlap = size_and_overlap
    chunks = Chunk(size=size, overlap=overlap, by=by)
    parts = cut_document(Document("d", title, text), chunks)
    check_passages(text, parts, lengths_in_letters, size)


@given(TEXTS, sizes(20, 52), BOUNDARIES, TITLES)
def test_with_a_boundary_no_passage_has_too_many_tokens(
    text, size_and_overlap, by, title
):
    size, overlap = size_and_overlap
    chunks = tokens(in_words, size, overlap, by)
    parts = cut_document(Document("d", title, text), chunks)
    check_passages(text, parts, lengths_in_words, size)


@pytest.mark.parametrize("unit", ["letters", "tokens"])
@given(text=TEXTS, size_and_overlap=sizes(20, 52), by=BOUNDARIES, title=TITLES)
def test_with_a_boundary_no_word_that_fits_is_cut(
    unit, text, size_and_overlap, by, title
):
    size, overlap = size_and_overlap
    chunks = {
        "letters": Chunk(size=size, overlap=overlap, by=by),
        "tokens": tokens(in_words, size, overlap, by),
    }[unit]
    joined = joined_text(cut_document(Document("d", title, text), chunks))
    assert set(re.findall(r"\w+", joined)) == set(re.findall(r"\w+", text))


PROMPTED = {"document": "passage: "}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tiny.bi_encoder(tmp_path_factory.mktemp("tiny"), prompts=PROMPTED)
    return SentenceTransformerEncoder(folder.as_posix(), device="cpu")


def test_passages_fill_the_models_limit(model):
    text = " ".join(tiny.WORDS[i % 14] for i in range(300))
    parts = cut_document(
        Document("d", "the title", text), tokens(counted(model), tiny.LIMIT)
    )
    lengths = model.count_whole([part.content for part in parts], "document").counts
    assert lengths.max() <= tiny.LIMIT == model.token_limit
    # Two words of the prompt, two of the title, two special tokens.
    assert lengths[:-1].min() >= tiny.LIMIT - 2


def test_a_long_title_leaves_half_for_text():
    parts = cut_document(Document("d", "w " * 30, "t " * 100), tokens(in_words, 10))
    assert {len(part.text.split()) for part in parts} == {5}


@pytest.mark.parametrize(
    ("by", "size", "gap", "parts"),
    [
        (
            "heading",
            40,
            "\n\n",
            ["# One\n\nIt is short. It fits in here.", "# Two\n\nSo does this."],
        ),
        ("sentence", 30, " ", ["It is short. It fits in here.", "So does this."]),
    ],
)
def test_sentences_and_headings_stay_whole_where_they_fit(by, size, gap, parts):
    pytest.importorskip("semantic_text_splitter")
    document = Document("d", "", gap.join(parts))
    passages = cut_document(document, Chunk(size=size, by=by))
    assert [passage.text for passage in passages] == parts


@pytest.fixture
def own_cuts(tmp_path, monkeypatch):
    """A module of functions of a user, one of which cuts texts."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_cuts", raising=False)
    (tmp_path / "own_cuts.py").write_text(
        "def lines(text): return text.split('|')\n"
        "def number(text): return [3]\ndef text(text): return text\n"
    )
    yield "own_cuts"
    sys.modules.pop("own_cuts", None)


BARRED = Document("d", "t", "one|two")


def test_a_users_function_cuts_documents(own_cuts):
    chunks = Chunk(call=f"{own_cuts}:lines")
    assert [part.text for part in cut_document(BARRED, chunks)] == ["one", "two"]


def test_other_passages_of_a_users_function_are_another_index(own_cuts):
    chunks = Chunk(call=f"{own_cuts}:lines")
    changed = Document("d", "t", "one|three")
    assert chunks.suffix([BARRED]) != chunks.suffix([changed])


@pytest.mark.parametrize(
    ("function", "returned"), [("number", r"\[3\]"), ("text", ".*")]
)
def test_a_users_function_that_gives_no_texts_is_told_of(own_cuts, function, returned):
    message = f"own_cuts:{function} gave {returned} for a text; give a list of texts"
    with pytest.raises(BackendError, match=message):
        cut_document(BARRED, Chunk(call=f"{own_cuts}:{function}"))


def test_a_misspelt_function_of_a_user_is_named(own_cuts):
    message = r"chunk\.call: 'own_cuts' has no function 'line' \(did you mean 'lines'"
    with pytest.raises(InputError, match=message):
        Chunk(call=f"{own_cuts}:line").check()


def test_a_users_function_takes_no_size(own_cuts):
    with pytest.raises(InputError, match="cuts by itself"):
        BM25(chunk={"call": f"{own_cuts}:lines", "size": 10})


@pytest.fixture
def own_experiment(own_cuts, tmp_path):
    blocks = (
        '[[retrievers]]\nname = "b"\nkind = "bm25"\n'
        'chunk = { call = "own_cuts:lines" }\n'
    )
    return small.experiment(tmp_path, retrievers=blocks)


def test_a_users_function_is_code_that_may_be_refused(own_experiment):
    with pytest.raises(InputError, match=r"runs code: chunk\.call = own_cuts:lines"):
        check_target(own_experiment, allow_code=False)


def test_the_fingerprint_names_a_users_function(own_experiment, tmp_path):
    results = run(own_experiment, RunOptions(tmp_path / "out"))
    model = results.manifest.retrievers["b"].provenance.model
    assert "passages=own_cuts:lines" in model.fingerprint


def test_bm25_gives_a_document_the_score_of_its_best_passage():
    rng = np.random.default_rng(5)
    words = [f"w{number}" for number in range(40)]
    documents = [
        Document(f"d{number}", "", " ".join(rng.choice(words, rng.integers(1, 60))))
        for number in range(80)
    ]
    documents[7] = Document("d7", "", " … ")
    chunk = {"size": 40, "overlap": 10}
    cut = BM25(chunk=chunk)
    uncut = BM25()
    meter = Meter()
    cut.index(documents, meter)
    assert meter.notes() == {"empty": ("d7",)}
    assert cut.fingerprint != uncut.fingerprint
    parts = [
        part
        for document in documents
        for part in cut_document(document, Chunk(**chunk))
    ]
    uncut.index(parts, Meter())
    queries = [
        Query(f"q{number}", " ".join(rng.choice(words, 4))) for number in range(20)
    ]
    everything = uncut.search(queries, len(parts), Meter())
    for ranking, of_parts in zip(
        cut.search(queries, 10, Meter()), everything, strict=True
    ):
        best = {}
        for part, score in of_parts:
            best.setdefault(part.partition("\x1f")[0], score)
        documents = ranking.with_passages(None)
        assert documents == ranked(list(best), list(best.values()), 10)


# 6 words and two marks, of the 12 tokens that the model reads.
WHOLE = "the cat sits wing shock wave"
LONG = f"{WHOLE} dog runs fast heat flow the cat"


def by_transformers(folder, document, first, last):
    """The mean vector, at length 1, of some words of a document after its prompt."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(
            **tokenizer(f"passage: {document}", return_tensors="pt")
        )
    mean = states.last_hidden_state[0][3 + first : 3 + last].mean(0).numpy()
    return mean / np.linalg.norm(mean)


def test_a_passage_is_the_mean_of_its_tokens_in_its_document(model):
    parts = ["the cat sits", "wing shock wave"]
    embedded = model.embed_passages(parts, [WHOLE, WHOLE], single_call())
    expected = [
        by_transformers(model.provenance["model"], WHOLE, first, last)
        for first, last in ((0, 3), (3, 6))
    ]
    assert embedded.vectors == pytest.approx(np.stack(expected), abs=1e-6)
    assert embedded.truncated_tokens.tolist() == [0, 0]
    alone = model.embed(parts[1:], "document", single_call()).vectors
    assert not np.allclose(embedded.vectors[1], alone[0], atol=1e-3)


def test_a_passage_beyond_the_limit_is_embedded_alone_and_counted(model):
    beyond = "heat flow the cat"
    embedded = model.embed_passages(
        ["the cat sits", beyond], [LONG, LONG], single_call()
    )
    alone = model.embed([beyond], "document", single_call()).vectors
    assert embedded.vectors[1] == pytest.approx(alone[0], abs=1e-6)
    assert embedded.truncated_tokens.tolist() == [0, 6]


def test_a_document_that_has_only_a_title_is_embedded_by_it():
    late = passages_in_context(
        [Document("a", "the title", " ")], Chunk(size=9, late=True), contextual=False
    )
    assert [passage.text for passage in late] == ["the title"]


def test_late_chunking_with_a_tokenizer_written_in_python_is_one_sentence(model):
    loaded = model._loaded
    python = model.model_copy()
    python.__dict__["_loaded"] = loaded._replace(tokenizer=object())
    with pytest.raises(BackendError, match=r"leave out chunk\.late"):
        python.embed_passages(["the cat"], ["the cat sits"], single_call())


def test_late_chunking_reads_no_padding_before_a_text(tmp_path):
    folder = tiny.padding_before(tiny.bi_encoder(tmp_path / "left", prompts=PROMPTED))
    encoder = SentenceTransformerEncoder(folder.as_posix(), device="cpu")
    passages = ["the cat sits", "dog runs"]
    documents = [WHOLE, "dog runs fast"]

    together = encoder.embed_passages(passages, documents, single_call()).vectors

    for vector, passage, document in zip(together, passages, documents, strict=True):
        alone = encoder.embed_passages([passage], [document], single_call()).vectors
        np.testing.assert_allclose(vector, alone[0], atol=1e-6)


def test_the_cache_keeps_a_passage_by_its_document(model, cache):
    documents = [
        Document("a", "", WHOLE),
        Document("b", "", "the cat sits dog runs fast"),
    ]
    late = [
        *passages_in_context(
            documents, Chunk(size=14, by="words", late=True), contextual=False
        )
    ]
    texts = [passage.text for passage in late]
    wholes = [passage.context for passage in late]
    assert texts == [
        "the cat sits",
        "wing shock",
        "wave",
        "the cat sits",
        "dog runs fast",
    ]
    embedder = Embedder(model, cache)
    meter = Meter()
    again = Meter()
    first = embedder.embed(texts, "document", meter, wholes).vectors
    assert (
        meter.counts("")["tokens"] == 10 + 10
    )  # each document once, with its prompt and marks
    assert np.array_equal(
        embedder.embed(texts, "document", again, wholes).vectors, first
    )
    assert again.counts("") == {"texts": 5, "cached": 5}
    forecast = embedder.forecast_passages(
        sort_distinct_passages(zip(texts, wholes, strict=True)), "document"
    )
    assert (forecast.texts, forecast.cached, forecast.tokens) == (5, 5, 0)
    assert not np.allclose(
        first[0], first[3], atol=1e-3
    )  # the same words in two documents


class Voyage(OpenAIProvider):
    """POST /v1/contextualizedembeddings: vectors of each document, in any order."""

    def passage_vectors(self, passages):
        """Return the tokens, the number of passages and the position of each."""
        rows = []
        for n, text in enumerate(passages):
            embedding = [float(tokens_of(text)), float(len(passages)), float(n)]
            rows.append({"index": n, "embedding": embedding})
        return rows

    def answer(self, path, body, headers, fault):
        assert path == "/v1/contextualizedembeddings", path
        if headers.get("Authorization") != f"Bearer {KEY}" or body[
            "input_type"
        ] not in ("query", "document"):
            raise Refusal(401, "unauthorized", "invalid")
        groups = [
            {"index": index, "data": self.passage_vectors(passages)[::-1]}
            for index, passages in enumerate(body["inputs"])
        ]
        total = sum(tokens_of(text) for group in body["inputs"] for text in group)
        return {
            "data": groups[::-1],
            "model": "voyage-context-3",
            "usage": {"total_tokens": total},
        }, {}


def test_voyage_receives_passages_by_document_and_single_queries(cache):
    with serving(Voyage()) as provider:
        embedder = Embedder(
            VoyageContextEncoder(
                "voyage-context-3", base_url=provider.url, api_key=KEY
            ),
            cache,
        )
        embedded = embedder.embed(
            ["a b", "c", "d"], "document", Meter(), ["a b c", "a b c", "d"]
        ).vectors
        query_vectors = embedder.embed(["why now", "a"], "query", Meter()).vectors
    assert embedded[:, 1:].tolist() == [[2, 0], [2, 1], [1, 0]]
    assert query_vectors[:, 1:].tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize(
    "encoder", [{"kind": "hashing"}, {"kind": "openai", "model": "m"}]
)
def test_late_chunking_by_an_encoder_without_token_vectors_is_one_clear_error(encoder):
    with pytest.raises(
        InputError, match=r"chunk\.late: needs the vectors of a document's tokens"
    ):
        Dense(encoder, chunk={"size": 100, "late": True})


def test_a_dense_retriever_of_python_writes_all_of_its_options():
    hashing = {"kind": "hashing"}
    retriever = Dense(
        hashing,
        store=StoreOptions("edge"),
        conditions={"lang": "ja"},
        reduction=VectorReduction(dimensions=8, quantization="int8"),
    )
    assert retriever.to_config() == {
        "kind": "dense",
        "encoder": hashing,
        "store": {"location": "edge"},
        "filter": {"lang": ["ja"]},
        "dimensions": 8,
        "proof": False,
        "quantization": "int8",
    }
