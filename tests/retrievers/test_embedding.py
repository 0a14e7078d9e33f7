import hashlib
import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.hashing import HashingEncoder
from retrievers.errors import BackendError
from retrievers.meter import Meter, single_call
from retrievers.retrying import answers
from retrievers.types import Embedded, Encoder


class Counting(Encoder):
    """An encoder whose vector says which text it is of, and that remembers what it was sent."""

    def __init__(self, size=3, concurrency=1, spoil=None):
        self.size, self.spoil = size, spoil
        self._concurrency = concurrency
        self.sent = []

    @property
    def fingerprint(self):
        return "counting"

    @property
    def concurrency(self):
        return self._concurrency

    def batches(self, texts, role):
        return [range(i, min(i + self.size, len(texts))) for i in range(0, len(texts), self.size)]

    def embed(self, texts, role, call):
        self.sent.append(tuple(texts))
        self.stopped = call.stopped
        vectors = np.array([[len(text), sum(map(ord, text)), hash(text) % 997] for text in texts], dtype=np.float32)
        n = len(texts)
        call.meter.count(calls=1)
        whole = Embedded(vectors, np.full(n, 7), np.zeros(n, dtype=np.int64))
        return self.spoil(whole, texts) if self.spoil else whole

    def truth(self, texts):
        return np.array([[len(t), sum(map(ord, t)), hash(t) % 997] for t in texts], dtype=np.float32).reshape(-1, 3)


@settings(max_examples=50, deadline=None)
@given(first=st.lists(st.text(min_size=1)), second=st.lists(st.text(min_size=1)), width=st.integers(1, 4))
def test_every_text_gets_its_own_vector_and_is_sent_once(tmp_path_factory, first, second, width):
    encoder = Counting(concurrency=width)
    with Cache(tmp_path_factory.mktemp("c") / "c") as cache:
        for texts in (first, second, first + second):
            meter = Meter()
            found = Embedder(encoder, cache).embed(texts, "document", meter)
            assert np.array_equal(found.vectors.reshape(-1, 3), encoder.truth(texts))
            assert len(found.tokens) == len(found.truncated_tokens) == len(texts)
    sent = [text for request in encoder.sent for text in request]
    assert sorted(sent) == sorted({*first, *second})


def test_counts(cache):
    meter = Meter()
    encoder = Counting()
    embedder = Embedder(encoder, cache)
    with meter.stage("cold"):
        embedder.embed(["a", "b", "a", "c", "d"], "query", meter)
    with meter.stage("warm"):
        embedder.embed(["d", "a", "e"], "query", meter)
    assert meter.stages()["cold"].counts == {"texts": 4, "cached": 0, "calls": 2}
    assert meter.stages()["warm"].counts == {"texts": 3, "cached": 2, "cached_tokens": 14, "calls": 1}


def test_requests_are_planned_as_if_nothing_were_cached(cache):
    texts = [f"{i:02}" for i in range(12)]
    cold = Counting()
    Embedder(cold, cache).embed(texts[3:6], "document", Meter())
    warm = Counting()
    Embedder(warm, cache).embed(texts[::-1], "document", Meter())
    assert cold.sent == [("03", "04", "05")]
    assert warm.sent == [("00", "01", "02"), ("06", "07", "08"), ("09", "10", "11")]


def test_one_text_bypasses_the_cache(cache):
    encoder = Counting()
    embedder = Embedder(encoder, cache)
    for _ in range(2):
        assert np.array_equal(embedder.one("abc", "query", Meter()).vectors, encoder.truth(["abc"]))
    assert len(encoder.sent) == 2
    assert cache.info() == ()


SPOILT = {
    "2 vectors came back for 3": lambda whole, _: Embedded(whole.vectors[:2], whole.tokens, whole.truncated_tokens),
    "4 vectors came back for 3": lambda whole, _: Embedded(
        whole.vectors[[0, 1, 2, 2]], whole.tokens, whole.truncated_tokens
    ),
    "not finite": lambda whole, _: Embedded(whole.vectors * [[1], [np.nan], [1]], whole.tokens, whole.truncated_tokens),
    "2 dimensions where others have 3": lambda whole, texts: (
        whole if texts[0] == "a" else Embedded(whole.vectors[:, :2], whole.tokens, whole.truncated_tokens)
    ),
}


@pytest.mark.parametrize("message", SPOILT)
def test_spoilt_vectors_fail_and_are_not_stored(cache, message):
    encoder = Counting(spoil=SPOILT[message])
    with pytest.raises(BackendError, match=message):
        Embedder(encoder, cache).embed(list("abcdef"), "document", Meter())
    stored = sum(holding.rows for holding in cache.info())
    assert stored == (3 if "dimensions" in message else 0)


def test_vectors_of_another_dimension_than_the_cached_fail(cache):
    Embedder(Counting(), cache).embed(["a"], "document", Meter())
    narrower = Counting(spoil=lambda whole, _: Embedded(whole.vectors[:, :2], whole.tokens, whole.truncated_tokens))
    with pytest.raises(BackendError, match="2 dimensions where others have 3"):
        Embedder(narrower, cache).embed(["a", "b"], "document", Meter())


def test_what_was_under_way_when_another_failed_is_kept(cache):
    together = threading.Barrier(3)

    def spoil(whole, texts):
        if texts[0] in "abc":
            together.wait(300)
        if texts[0] == "b":
            raise BackendError("no credit")
        encoder.stopped.wait(300)  # answered after the failure was noticed
        return whole

    encoder = Counting(size=1, concurrency=3, spoil=spoil)
    with pytest.raises(BackendError, match="no credit"):
        Embedder(encoder, cache).embed(list("abcdefghi"), "document", Meter())
    assert set(encoder.sent) - {("d",)} == {("a",), ("b",), ("c",)}  # b's thread may have begun the next by then
    again = Counting(size=1)
    Embedder(again, cache).embed(["a", "b", "c"], "document", Meter())
    assert again.sent == [("b",)]


def test_an_interruption_waits_for_nothing_that_is_under_way():
    begun, ended, finished = threading.Event(), threading.Event(), []

    def ask(number, stopped):
        if number:
            begun.set()
            ended.wait(5)
            finished.append(number)

    stream = answers(ask, range(100), width=2)
    next(stream)
    assert begun.wait(300)
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt)
    assert finished == []
    ended.set()


def test_hashing_by_hand():
    expected = np.zeros(16)
    for gram in (" a", "ab", "b ", " ab", "ab ", " ab "):
        number = int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest(), "little")
        expected[number // 2 % 16] += 1 + math.log(2) if number % 2 else -1 - math.log(2)  # each occurs twice
    found = HashingEncoder(dimensions=16).embed(["Ab, ＡＢ!"], "query", single_call())
    assert np.allclose(found.vectors[0], expected / np.linalg.norm(expected), atol=1e-7)
    assert found.tokens.tolist() == [12]


@settings(max_examples=100)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_hashed_vectors_have_length_one_or_zero(texts):
    found = HashingEncoder().embed(texts, "document", single_call())
    lengths = np.linalg.norm(found.vectors, axis=1)
    assert np.all(np.isclose(lengths, 1, atol=1e-5) | (lengths == 0))
    assert np.array_equal(lengths == 0, found.tokens == 0)


def test_hashing_finds_like_texts_in_japanese_and_english():
    encoder = HashingEncoder()
    for query, near, far in (
        ("顧客満足度の調査", "顧客満足度アンケートのひな形", "商品の在庫を管理する方法"),
        ("employee engagement", "Survey of Employees' Engagement", "Opening hours of the shop"),
    ):
        a, b, c = encoder.embed([query, near, far], "query", single_call()).vectors
        assert a @ b > 3 * abs(a @ c)
