"""Filters, queries that are documents, and labels that name pages: alike in BM25 and every store, as by brute force."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dataset import DatasetReference, load
from harness.pipeline import run
from harness.records import Results
from harness.running.check import check
from harness.running.forecast import Options
from retrievers.bm25 import BM25
from retrievers.chunking import Chunk
from retrievers.embedding import Embeds
from retrievers.errors import InputError
from retrievers.filters import Condition, FieldValues, Filtered
from retrievers.meter import Meter
from retrievers.stores.matrices import QuantizedStore
from retrievers.types import Document, Embedded, Query, Retriever, ranked, rounded
from tests.support import layouts
from tests.support.over_store import OverStore
from tests.support.store_places import LOCATIONS

pytestmark = pytest.mark.usefixtures("own_cache")

TEXTS = {
    "ja-1": ("ja", "cars drive on roads and have four wheels"),
    "ja-2": ("ja", "trains drive on rails and have many wheels"),
    "en-1": ("en", "cars and trains have wheels"),
    "en-2": ("en", "fish swim in water"),
    "de-1": ("de", "cars drive on roads"),
}
ASKED = {"q1": ("ja", "cars with wheels"), "q2": ("en", "cars with wheels"), "q3": ("fr", "cars with wheels")}
STORES = {"bm25": 'kind = "bm25"', "memory": 'store = ":memory:"', "edge": 'store = "edge"', "path": 'store = "{path}"',
          "int8": 'quantization = "int8"'}  # fmt: skip


def data(folder: Path) -> Path:
    layouts.jsonl(folder / "corpus.jsonl", [
        {"_id": id_, "text": text, "metadata": {"language": language}} for id_, (language, text) in TEXTS.items()
    ])  # fmt: skip
    layouts.jsonl(folder / "queries.jsonl", [
        {"_id": id_, "text": text, "speaks": language} for id_, (language, text) in ASKED.items()
    ])  # fmt: skip
    rows = [{"query-id": q, "corpus-id": d, "score": 1} for q in ASKED for d in ("ja-1", "en-1")]
    layouts.table(folder / "qrels" / "test.tsv", rows, delimiter="\t")
    return folder


def experiment(folder: Path, blocks: str, dataset: str = "") -> Path:
    path = folder / "e.toml"
    place = dataset or f'"{data(folder / "data").as_posix()}"'
    path.write_text(
        f'name = "e"\ndataset = {place}\nprimary = "RR"\nmeasures = ["RR"]\ndepth = 5\nreport = false\n{blocks}'
    )
    return path


def block(kind: str, folder: Path, more: str, *, name: str = "") -> str:
    said = STORES[kind].replace("{path}", (folder / "store").as_posix())
    encoder = "" if kind == "bm25" else 'encoder = { kind = "hashing", dimensions = 64 }\n'
    return f'[[retrievers]]\nname = "{name or kind}"\n{encoder}{said}\n{more}\n'


FILTERS = {"one": '"ja"', "two": '["ja", "de"]', "own": '{ query = "speaks" }'}


@pytest.fixture(scope="module")
def filtered(tmp_path_factory) -> Results:
    """One run with every filter in every store."""
    folder = tmp_path_factory.mktemp("filtered")
    blocks = [block(kind, folder, f"filter = {{ language = {said} }}", name=f"{kind}-{name}")
              for kind in STORES for name, said in FILTERS.items()]  # fmt: skip
    return run(experiment(folder, "".join(blocks)), Options(folder / "out"))


@pytest.mark.parametrize("kind", STORES)
def test_a_filter_leaves_only_the_documents_that_match(filtered, kind):
    for ranking in filtered.rankings(f"{kind}-one").values():
        assert ranking.doc_ids
        assert set(ranking.doc_ids) <= {"ja-1", "ja-2"}
    assert filtered.manifest.retrievers[f"{kind}-one"].provenance["filter"] == '{"language": ["ja"]}'
    assert {doc[:2] for r in filtered.rankings(f"{kind}-two").values() for doc in r.doc_ids} == {"ja", "de"}
    own = filtered.rankings(f"{kind}-own")
    assert {doc[:2] for doc in own["q1"].doc_ids} == {"ja"}
    assert {doc[:2] for doc in own["q2"].doc_ids} == {"en"}
    assert own["q3"].doc_ids == ()
    assert filtered.manifest.ledger.retrievers[f"{kind}-own"].notes["nothing-matches-query"] == ("q3",)


def test_the_corpus_is_indexed_once_whatever_queries_want_and_filters_on_a_field_share_a_collection(filtered):
    index = filtered.costs[filtered.costs["stage"] == "index"]
    texts = index["texts"].groupby(index["retriever"].str.partition("-")[0]).apply(list).to_dict()
    each, once = [len(TEXTS)] * len(FILTERS), [len(TEXTS), 0, 0]
    assert texts == {"bm25": each, "memory": each, "edge": once, "path": once, "int8": each}
    assert len(list((filtered.folder.parents[1] / "store").iterdir())) == 1


@pytest.mark.parametrize(
    ("said", "told"),
    [('filter = { langauge = "ja" }', "is a field of no document .did you mean 'language'"),
     ('filter = { language = { query = "speak" } }', "'speak' is a field of no query .did you mean 'speaks'"),
     ('filter = { language = "jaa" }', "filter.language: no document holds 'jaa' .did you mean 'ja'"),
     ('filter = { language = ["fr", "xx"] }', "no document holds 'fr' or 'xx' .known: de, en, ja"),
     ("filter = { language = 3 }", "filter")],
)  # fmt: skip
def test_filters_that_name_nothing(tmp_path, said, told):
    with pytest.raises(InputError, match=told):
        check(experiment(tmp_path, block("bm25", tmp_path, said)))


def test_a_system_with_its_own_index_cannot_be_filtered_from_here(tmp_path):
    said = '[[retrievers]]\nname = "a"\nkind = "run"\npath = "x"\nfilter = { language = "ja" }\n'
    with pytest.raises(InputError, match="of kind 'run' has its own index"):
        check(experiment(tmp_path, said))


def test_a_query_that_is_a_document_is_kept_out_of_its_own_results(tmp_path):
    folder = tmp_path / "self"
    rows = [{"_id": id_, "text": text} for id_, (_, text) in TEXTS.items()]
    layouts.jsonl(folder / "corpus.jsonl", rows)
    layouts.jsonl(folder / "queries.jsonl", rows[:2])
    layouts.table(folder / "qrels" / "test.tsv", [
        {"query-id": "ja-1", "corpus-id": "de-1", "score": 1}, {"query-id": "ja-2", "corpus-id": "en-1", "score": 1},
    ], delimiter="\t")  # fmt: skip
    both = {}
    for exclude in ("true", "false"):
        place = f'{{ path = "{folder.as_posix()}", exclude_self = {exclude} }}'
        path = experiment(tmp_path, "".join(block(kind, tmp_path, "") for kind in STORES), place)
        path.write_text(path.read_text().replace("depth = 5", "depth = 2").replace('name = "e"', f'name = "{exclude}"'))
        both[exclude] = run(path, Options(tmp_path / "out"))
    for kind in STORES:
        kept, left_out = both["false"].rankings(kind), both["true"].rankings(kind)
        for query in ("ja-1", "ja-2"):
            assert kept[query].doc_ids[0] == query
            assert query not in left_out[query].doc_ids
            assert len(left_out[query]) == 2


def chunks(folder: Path, match: object = None) -> Path:
    """Passages of pages, with labels that name the pages."""
    rows = [
        {"_id": "c1", "text": "cars drive", "metadata": {"file": "a.pdf", "page": 1}},
        {"_id": "c2", "text": "cars have wheels", "metadata": {"file": "a.pdf", "page": 2}},
        {"_id": "c3", "text": "four wheels on cars", "metadata": {"file": "a.pdf", "page": 2}},
        {"_id": "c4", "text": "fish swim", "metadata": {"file": "b.pdf", "page": 2}},
        {"_id": "c5", "text": "nothing is known of where this stood"},
    ]
    layouts.jsonl(folder / "documents.jsonl", rows)
    layouts.jsonl(folder / "queries.jsonl", [{"id": "q1", "query": "wheels on cars", "relevant": ["a.pdf#2"]}])
    return folder


def test_labels_that_name_pages_are_matched_to_whatever_is_indexed(tmp_path):
    folder = chunks(tmp_path / "data")
    found = load(DatasetReference(folder, match=("file", "page")))
    assert found.labels["q1"].ranked == ("c2",)
    assert found.same_as == {"c3": "c2"}
    assert found.ledger["document-without-key"] == ("c5",)
    again = tmp_path / "again"
    layouts.jsonl(again / "documents.jsonl", [
        {"_id": "whole", "text": "cars have four wheels", "metadata": {"file": "a.pdf", "page": 2}},
    ])  # fmt: skip
    (again / "queries.jsonl").write_bytes((folder / "queries.jsonl").read_bytes())
    assert load(DatasetReference(again, match=("file", "page"))).labels["q1"].ranked == ("whole",)


def test_passages_of_a_page_count_once(tmp_path):
    place = f'{{ path = "{chunks(tmp_path / "data").as_posix()}", match = ["file", "page"] }}'
    blocks = block("bm25", tmp_path, "") + '[[retrievers]]\nname = "both"\nkind = "fusion"\nof = ["bm25", "memory"]\n'
    blocks += block("memory", tmp_path, "")
    found = run(experiment(tmp_path, blocks, place), Options(tmp_path / "out"))
    assert found.rankings("bm25")["q1"].doc_ids == ("c2", "c1")
    assert sorted(found.rankings("both")["q1"].doc_ids) == ["c1", "c2", "c4", "c5"]
    counts = json.loads((tmp_path / "out" / "e" / "manifest.json").read_text())["ledger"]["bm25"]["counts"]
    assert counts["collapse"] == {"collapsed": 1}
    assert found.scores["value"].tolist()[0] == 1.0


@pytest.mark.parametrize(
    ("match", "told"),
    [(("pages",), "no document has 'pages' among its fields"), (("page",), "names document 'a.pdf#2'")],
)
def test_keys_that_match_nothing(tmp_path, match, told):
    with pytest.raises(InputError, match=told):
        load(DatasetReference(chunks(tmp_path / "data"), match=match))


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
