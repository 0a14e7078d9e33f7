"""Filters against brute force: every document scored, those that match kept, in the one order."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.bm25 import BM25
from retrievers.chunking import Chunk
from retrievers.embedding import Embeds
from retrievers.filters import Condition, FieldValues, Filtered
from retrievers.meter import Meter
from retrievers.stores.matrices import QuantizedStore
from retrievers.types import Document, Embedded, Query, Retriever, ranked, rounded
from tests.support.over_store import OverStore
from tests.support.store_places import LOCATIONS

ODD = "a.\"b\"[0] 'c'"
"""A name of a field that a path of Qdrant's could not hold."""
WORDS = ("sun", "moon", "star", "sea", "hill")


def corpus(count):
    """Documents of few words, so that many tie, with fields that some of them lack."""
    chance = np.random.default_rng(7)
    documents = []
    for number in range(count):
        text = " ".join(chance.choice(WORDS, size=chance.integers(1, 5)))
        fields = {"language": str(chance.choice(["ja", "en", "de"])), ODD: str(chance.integers(0, 20))}
        if number % 7 == 0:
            del fields["language"]
        documents.append(Document(f"d{number}", "", text, fields))
    return documents


QUERIES = [
    Query(f"q{n}", f"{a} {b}", {"speaks": speaks} if speaks else {})
    for n, ((a, b), speaks) in enumerate(zip(itertools.permutations(WORDS, 2), itertools.cycle(["ja", "en", "fr", ""])))
]
CONDITIONS = {
    "a value": [Condition("language", ("ja",))],
    "two values": [Condition("language", ("de", "ja"))],
    "an odd name": [Condition(ODD, ("3",))],
    "two fields": [Condition("language", ("en",)), Condition(ODD, tuple("0123456789"))],
    "the query's own": [Condition("language", query_field="speaks")],
    "nothing": [Condition("language", ("xx",))],
}


class Bag(Embeds):
    """One dimension a word."""

    def embed(self, texts, role, meter, documents=()):
        vectors = np.array([[text.split().count(word) for word in WORDS] for text in texts], np.float32)
        return Embedded(vectors, np.ones(len(texts), np.int64), np.zeros(len(texts), np.int64))

    def one(self, text, role, meter):
        return self.embed([text], role, meter)


@pytest.fixture
def dense(places):
    """Makes a retriever over a store of its own."""
    made = []

    def make(location, conditions, *, options=None, **more):
        content = f"{places.content}-{len(made)}"
        made.append(OverStore(
            Bag(), lambda meter: places(location, documents=200, content=content, **(options or {})),
            conditions=conditions, **more,
        ))  # fmt: skip
        return made[-1]

    return make


def matches(document, query, conditions):
    """The rule itself, written anew."""
    for one in conditions:
        values = one.values or ([query.fields["speaks"]] if "speaks" in query.fields else [])
        if document.fields.get(one.field) not in values:
            return False
    return True


def cosine(document, query):
    a, b = (np.array([text.split().count(word) for word in WORDS], np.float64) for text in (document.text, query.text))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def check_dense(retriever, documents, conditions, depth):
    meter = Meter()
    retriever.index(documents, meter)
    answers = retriever.search(QUERIES, depth, meter)
    for query, ranking in zip(QUERIES, answers, strict=True):
        some = [one for one in documents if matches(one, query, conditions)]
        expected = ranked([one.id for one in some], rounded([cosine(one, query) for one in some]), depth)
        assert ranking.doc_ids == expected.doc_ids
        assert ranking.scores == pytest.approx(expected.scores, abs=2e-6)
    for query, ranking in list(zip(QUERIES, answers, strict=True))[::5]:
        assert retriever.answer(query, depth, Meter()).doc_ids == ranking.doc_ids
    unmatched = [q.id for q in QUERIES if not any(matches(one, q, conditions) for one in documents)]
    assert list(meter.notes().get("nothing-matches-query", ())) == unmatched


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("location", LOCATIONS)
def test_every_store_ranks_as_brute_force_does(dense, location, name):
    documents = corpus(40 if location == "folder" else 90)
    check_dense(dense(location, CONDITIONS[name]), documents, CONDITIONS[name], 10)


@pytest.mark.parametrize("location", [":memory:", "edge", "server"])
def test_passages_are_narrowed_by_their_documents_fields(dense, location):
    documents, conditions = corpus(60), CONDITIONS["the query's own"]
    whole = dense(location, conditions, chunks=Chunk(size=1_000))  # each document is one passage
    check_dense(whole, documents, conditions, 5)


def filtered_bm25(conditions):
    retriever = BM25()
    retriever.set_filter(conditions)
    return retriever


@pytest.mark.parametrize("kind", ["int8", "binary", "binary-dot", "bm25"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_others_rank_as_without_a_filter_what_does_not_match_left_out(name, kind):
    documents, conditions, meter = corpus(200), CONDITIONS[name], Meter()
    whole, narrow = (
        filtered_bm25(some) if kind == "bm25"
        else OverStore(Bag(), lambda meter: QuantizedStore(kind), conditions=some)
        for some in ((), conditions)
    )  # fmt: skip
    whole.index(documents, Meter())
    narrow.index(documents, meter)
    by_id = {one.id: one for one in documents}
    everything = whole.search(QUERIES, len(documents), Meter())
    for query, all_of_it, ranking in zip(QUERIES, everything, narrow.search(QUERIES, 10, meter), strict=True):
        kept = [hit for hit in all_of_it if matches(by_id[hit.doc_id], query, conditions)][:10]
        assert ranking.doc_ids == tuple(hit.doc_id for hit in kept)
        assert ranking.scores == pytest.approx([hit.score for hit in kept], rel=2e-6)
    unmatched = [q.id for q in QUERIES if not any(matches(one, q, conditions) for one in documents)]
    assert list(meter.notes().get("nothing-matches-query", ())) == unmatched


def test_an_approximate_search_is_narrowed_in_the_graph(dense):
    conditions = CONDITIONS["the query's own"]
    retriever, meter, documents = dense("edge", conditions, options={"m": 8}), Meter(), corpus(200)
    retriever.index(documents, meter)
    by_id = {one.id: one for one in documents}
    for query, ranking in zip(QUERIES, retriever.search(QUERIES, 10, meter), strict=True):
        assert all(matches(by_id[doc], query, conditions) for doc in ranking.doc_ids)
    counts = meter.counts("search-exact")
    assert counts["exact_hits"] == counts["shared_hits"] > 0  # so few points are all looked at


def test_a_server_is_told_to_index_the_fields_before_any_point(dense, servers):
    before = len(servers.rest.indexed)
    dense("server", CONDITIONS["a value"]).index(corpus(20), Meter())
    [(_, field, _)] = servers.rest.indexed[before:]
    assert field == "fields"


class Foreign(Retriever):
    """A retriever of another package: it knows nothing of filters, and never gives more than 150 hits."""

    def index(self, documents, meter):
        self._documents = list(documents)

    def search(self, queries, depth, meter):
        depth = min(depth, 150)
        return [
            ranked([d.id for d in self._documents], rounded([cosine(d, query) for d in self._documents]), depth)
            for query in queries
        ]


@pytest.mark.parametrize("name", CONDITIONS)
def test_any_other_retriever_is_asked_for_more_until_enough_match(name):
    documents, conditions = corpus(140), CONDITIONS[name]
    check_dense(Filtered(Foreign(), conditions), documents, conditions, 10)


def test_a_retriever_that_gives_no_more_is_not_asked_for_ever():
    documents, conditions = corpus(400), CONDITIONS["an odd name"]
    retriever = Filtered(Foreign(), conditions)
    retriever.index(documents, Meter())
    [ranking] = retriever.search(QUERIES[:1], 100, Meter())
    assert ranking.doc_ids == retriever.answer(QUERIES[0], 100, Meter()).doc_ids
    assert all(matches(documents[int(doc[1:])], QUERIES[0], conditions) for doc in ranking.doc_ids)


@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=30),
    st.dictionaries(st.sampled_from("ab"), st.lists(st.sampled_from("wxyz"), max_size=3).map(tuple), min_size=1),
)
def test_the_mask_is_the_rule_for_any_fields(fields, asked):
    values = FieldValues(asked)
    for own in fields:
        values.add(own)
    mask = values.matching(tuple(sorted(asked.items())))
    assert mask.tolist() == [all(own.get(name) in some for name, some in asked.items()) for own in fields]
