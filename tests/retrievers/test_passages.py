"""Passages: by an encoder's tokens, by BM25, and in the context of their document, against brute force."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.pipeline import run
from harness.running.check import check
from harness.running.forecast import Options
from retrievers.bm25 import BM25
from retrievers.cache import Cache
from retrievers.chunking import Boundary, Chunk, in_context, passages
from retrievers.costs import Counts, Tokens
from retrievers.embedding import Embedder, distinct_passages
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder
from retrievers.encoders.voyage_context import VoyageContextEncoder
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter, single_call
from retrievers.types import Document, Query, ranked
from tests.support import small, tiny
from tests.support.dialects import KEY
from tests.support.servers import OpenAIProvider, Refusal, serving, tokens_of
from tests.support.small import planned

WORDS = ("retrieval", "a", "of", "tokenization", "x", "unbelievably", "文書を検索する。", "été", "\n\n", "  ")


def counted(encoder: Any) -> Any:
    def count(texts: Any) -> Counts:
        counts: Counts = encoder.lengths(texts, "document").counts
        return counts

    return count


def tokens(count: Any, size: int, overlap: int = 0, by: Boundary | None = None) -> Chunk:
    chunk = Chunk(size=size, overlap=overlap, unit="tokens", by=by)
    return chunk.counting(lambda texts, _: Tokens(count(texts), exact=True))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformerEncoder:
    folder = tiny.bi_encoder(tmp_path_factory.mktemp("tiny"), prompts={"document": "passage: "})
    return SentenceTransformerEncoder(folder.as_posix(), device="cpu")


@given(
    st.lists(st.sampled_from([*tiny.WORDS, "shock-wave", " ", "。"]), max_size=120),
    st.integers(8, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1))),
    st.sampled_from(["", "the title"]),
)
def test_no_passage_has_more_tokens_than_its_size(
    words: list[str], size_and_overlap: tuple[int, int], title: str
) -> None:
    """A word, a mark or a letter is a token here; the title counts, and two special tokens."""

    def count(texts: Any) -> Counts:
        return np.asarray([len(text.replace("-", " - ").replace("。", " 。 ").split()) + 2 for text in texts])

    size, overlap = size_and_overlap
    text = " ".join(words)
    parts = passages(Document("d", title, text), tokens(count, size, overlap))
    assert (count([part.content for part in parts]) <= size).all()
    covered = 0
    for part in parts:  # in order, and nothing left out
        begins = text.index(part.text, max(0, covered - len(part.text)) if overlap else covered)
        assert not text[covered:begins].strip()
        covered = max(covered, begins + len(part.text))
    assert not text[covered:].strip()


def test_a_passage_is_as_long_as_the_model_reads(model: SentenceTransformerEncoder) -> None:
    text = " ".join(tiny.WORDS[i % 14] for i in range(300))
    parts = passages(Document("d", "the title", text), tokens(counted(model), tiny.LIMIT))
    lengths = model.lengths([part.content for part in parts], "document").counts
    assert lengths.max() <= tiny.LIMIT == model.reads
    assert lengths[:-1].min() >= tiny.LIMIT - 2  # two words of the prompt, two of the title, two special tokens


def test_a_title_longer_than_a_passage_leaves_half_of_it_to_the_text() -> None:
    def count(texts: Any) -> Counts:
        return np.asarray([len(text.split()) for text in texts])

    parts = passages(Document("d", "w " * 30, "t " * 100), tokens(count, 10))
    assert {len(part.text.split()) for part in parts} == {5}


def test_without_a_tokenizer_tokens_are_estimated_from_above() -> None:
    encoder = OpenAIEncoder("m", base_url="http://127.0.0.1:9")
    text = " ".join(WORDS * 60)
    parts = passages(Document("d", "", text), tokens(counted(encoder), 100, 10))
    assert encoder.lengths([part.content for part in parts], "document").counts.max() <= 100
    assert len(parts) > 5


def words_counted(texts: Any) -> Counts:
    return np.asarray([len(text.split()) + 2 for text in texts])


@given(
    st.lists(st.sampled_from([*tiny.WORDS, "x. Next", "# Head", "\n\n", "end."]), max_size=80),
    st.integers(20, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1))),
    st.sampled_from(get_args(Boundary) if find_spec("semantic_text_splitter") else ("words",)),
    st.sampled_from([None, words_counted]),
)
def test_no_passage_begins_or_ends_within_a_word(
    words: list[str], size_and_overlap: tuple[int, int], by: Boundary, count: Any
) -> None:
    size, overlap = size_and_overlap
    text = " ".join(words)
    chunks = tokens(count, size, overlap, by) if count else Chunk(size=size, overlap=overlap, by=by)
    parts = [part.text for part in passages(Document("d", "", text), chunks)]
    assert set(re.findall(r"\w+", " ".join(parts))) == set(re.findall(r"\w+", text))
    assert sum(len(part.split()) for part in parts) >= len(text.split())
    assert max(count(parts) if count else map(len, parts)) <= size


def test_sentences_and_headings_stay_whole_where_they_fit() -> None:
    pytest.importorskip("semantic_text_splitter")
    text = "# One\n\nIt is short. It fits in here.\n\n# Two\n\nSo does this."
    assert [part.text for part in passages(Document("d", "", text), Chunk(size=40, by="heading"))] == [
        "# One\n\nIt is short. It fits in here.", "# Two\n\nSo does this.",
    ]  # fmt: skip
    parts = passages(Document("d", "", "It is short. It fits in here. So does this."), Chunk(size=30, by="sentence"))
    assert [part.text for part in parts] == ["It is short. It fits in here.", "So does this."]


def test_a_function_of_one_s_own_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    code = "def lines(text): return text.split('|')\ndef number(text): return [3]\n"
    (tmp_path / "own_cuts.py").write_text(code)
    document = Document("d", "t", "one|two")
    chunks = Chunk(call="own_cuts:lines")
    assert [part.text for part in passages(document, chunks)] == ["one", "two"]
    assert chunks.suffix([document]) != chunks.suffix([Document("d", "t", "one|three")])
    with pytest.raises(BackendError, match=r"own_cuts:number gave \[3\] for a text; give a list of texts"):
        passages(document, Chunk(call="own_cuts:number"))
    with pytest.raises(InputError, match=r"chunk\.call: 'own_cuts' has no function 'line' \(did you mean 'lines'"):
        Chunk(call="own_cuts:line").check()
    with pytest.raises(InputError, match="cuts by itself"):
        BM25(chunk={"call": "own_cuts:lines", "size": 10})
    blocks = '[[retrievers]]\nname = "b"\nkind = "bm25"\nchunk = { call = "own_cuts:lines" }\n'
    blocks += '[[retrievers]]\nname = "h"\nencoder = { kind = "hashing" }\nchunk = { size = 30, by = "words" }\n'
    path = small.experiment(tmp_path, retrievers=blocks)
    with pytest.raises(InputError, match="code"):
        check(path, code=False)
    results = run(path, Options(tmp_path / "out"))
    assert "passages=own_cuts:lines" in results.manifest.retrievers["b"].provenance["fingerprint"]
    assert set(results.rankings("h")) == set(results.rankings("b"))


def test_bm25_gives_a_document_the_score_of_its_best_passage() -> None:
    rng = np.random.default_rng(5)
    words = [f"w{number}" for number in range(40)]
    documents = [Document(f"d{number}", "", " ".join(rng.choice(words, rng.integers(1, 60)))) for number in range(80)]
    documents[7] = Document("d7", "", " … ")
    chunk = {"size": 40, "overlap": 10}
    cut, whole, meter = BM25(chunk=chunk), BM25(), Meter()
    cut.index(documents, meter)
    assert meter.notes() == {"empty": ("d7",)}
    assert cut.fingerprint != whole.fingerprint
    parts = [part for document in documents for part in passages(document, Chunk(size=40, overlap=10))]
    whole.index(parts, Meter())
    queries = [Query(f"q{number}", " ".join(rng.choice(words, 4))) for number in range(20)]
    everything = whole.search(queries, len(parts), Meter())
    for ranking, of_parts in zip(cut.search(queries, 10, Meter()), everything, strict=True):
        best: dict[str, float] = {}
        for part, score in of_parts:
            best.setdefault(part.partition("\x1f")[0], score)
        assert ranking == ranked(list(best), list(best.values()), 10)


def test_both_kinds_of_passages_in_one_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    folder = tiny.bi_encoder(tmp_path / "tiny").as_posix()
    encoder = f'{{ kind = "sentence-transformers", model = "{folder}", device = "cpu" }}'
    blocks = f'[[retrievers]]\nname = "m"\nencoder = {encoder}\nchunk = {{ size = 8, unit = "tokens" }}\n'
    blocks += '[[retrievers]]\nname = "b"\nkind = "bm25"\nchunk = { size = 20 }\n'
    path = small.experiment(tmp_path, retrievers=blocks)
    check(path)
    (texts,) = [row.texts for row in planned(path, results=tmp_path).rows if row.stage == "embed-documents"]
    results = run(path, Options(tmp_path / "out"))
    assert int(results.manifest.retrievers["m"].provenance["vectors"]) >= texts > len(small.TEXTS)
    assert not results.manifest.ledger.retrievers["m"].notes.get("truncated")
    assert "passages=20x0" in results.manifest.retrievers["b"].provenance["fingerprint"]
    for name in ("m", "b"):
        assert all(set(ranking.doc_ids) <= set(small.TEXTS) for ranking in results.rankings(name).values())


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
    from retrievers.dense import Dense

    with pytest.raises(InputError, match=r"chunk\.late: needs the vectors of a document's tokens"):
        Dense(encoder, chunk={"size": 100, "late": True})
