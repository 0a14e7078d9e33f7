"""Filters, queries that are documents, and labels of pages, by brute force."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from harness.dataset import Dataset, DatasetReference, load_dataset
from harness.pipeline import run
from harness.preflight.check import check_target
from harness.running.options import RunOptions
from retrievers.bm25 import BM25
from retrievers.conditions import Condition
from retrievers.errors import InputError
from retrievers.filtered import Filtered
from retrievers.fused import Fused
from retrievers.meter import Meter
from retrievers.stores.quantized import QuantizedStore
from retrievers.texts.chunking import Chunk
from retrievers.types import Document, Query, Retriever, ranked, round_scores
from tests.support import layouts
from tests.support.over_store import Numbers, OverStore
from tests.support.store_places import LOCATIONS

pytestmark = pytest.mark.usefixtures("own_cache")

TEXTS = {
    "ja-1": ("ja", "cars drive on roads and have four wheels"),
    "ja-2": ("ja", "trains drive on rails and have many wheels"),
    "en-1": ("en", "cars and trains have wheels"),
    "en-2": ("en", "fish swim in water"),
    "de-1": ("de", "cars drive on roads"),
}
SPEAKS = {"q1": "ja", "q2": "en", "q3": "fr"}
STORES = {
    "bm25": 'kind = "bm25"',
    "memory": 'store = ":memory:"',
    "edge": 'store = "edge"',
    "path": 'store = "{path}"',
    "int8": 'quantization = "int8"',
}


def beir(
    folder: Path,
    corpus: layouts.Rows,
    queries: layouts.Rows,
    relevant: dict[str, list[str]],
) -> Path:
    layouts.jsonl(folder / "corpus.jsonl", corpus)
    layouts.jsonl(folder / "queries.jsonl", queries)
    rows = [
        {"query-id": query, "corpus-id": document, "score": 1}
        for query, documents in relevant.items()
        for document in documents
    ]
    layouts.table(folder / "qrels" / "test.tsv", rows, delimiter="\t")
    return folder


def experiment(
    folder: Path, blocks: str, dataset: str = "", *, name: str = "e", depth: int = 5
) -> Path:
    if not dataset:
        corpus = [
            {"_id": id_, "text": text, "metadata": {"language": tongue}}
            for id_, (tongue, text) in TEXTS.items()
        ]
        queries = [
            {"_id": id_, "text": "cars with wheels", "speaks": tongue}
            for id_, tongue in SPEAKS.items()
        ]
        data_folder = beir(
            folder / "data",
            corpus,
            queries,
            {query: ["ja-1", "en-1"] for query in SPEAKS},
        )
        dataset = f'"{data_folder.as_posix()}"'
    path = folder / f"{name}.toml"
    head = (
        f'name = "{name}"\ndataset = {dataset}\nprimary = "RR"\nmeasures = ["RR"]\n'
        f"depth = {depth}\nreport = false\n"
    )
    path.write_text(head + blocks)
    return path


def block(kind: str, folder: Path, more: str, *, name: str = "") -> str:
    store = STORES[kind].replace("{path}", (folder / "store").as_posix())
    encoder = (
        "" if kind == "bm25" else 'encoder = { kind = "hashing", dimensions = 64 }\n'
    )
    return f'[[retrievers]]\nname = "{name or kind}"\n{encoder}{store}\n{more}\n'


FILTERS = {"one": '"ja"', "two": '["ja", "de"]', "own": '{ query = "speaks" }'}
"""The name of a filter in the names of retrievers -> its table."""


@pytest.fixture(scope="module")
def filtered_run(tmp_path_factory):
    """The folder and the results of a run with every filter in every store."""
    folder = tmp_path_factory.mktemp("filters")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("HARNESS_CACHE", str(folder / "cache"))
        blocks = [
            block(
                kind,
                folder,
                f"filter = {{ language = {table} }}",
                name=f"{kind}-{name}",
            )
            for kind, (name, table) in itertools.product(STORES, FILTERS.items())
        ]
        path = experiment(folder, "".join(blocks))
        return folder, run(path, RunOptions(folder / "out"))


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("one", {"q1": {"ja"}, "q2": {"ja"}, "q3": {"ja"}}),
        ("two", {"q1": {"de", "ja"}, "q2": {"de", "ja"}, "q3": {"de", "ja"}}),
        ("own", {"q1": {"ja"}, "q2": {"en"}, "q3": set()}),
    ],
)
@pytest.mark.parametrize("kind", STORES)
def test_a_filter_leaves_only_the_documents_that_match(
    filtered_run, kind, name, languages
):
    _, results = filtered_run
    rankings = results.rankings(f"{kind}-{name}")
    assert {query: languages_of(rankings[query]) for query in languages} == languages


def languages_of(ranking):
    """The languages of its documents, with which their ids begin."""
    return {doc_id[:2] for doc_id in ranking.doc_ids}


@pytest.mark.parametrize("kind", STORES)
def test_the_manifest_has_the_filter_and_queries_that_match_nothing(filtered_run, kind):
    _, results = filtered_run
    manifest = results.manifest
    provenance = manifest.retrievers[f"{kind}-one"].provenance
    assert provenance.conditions == '{"language": ["ja"]}'
    notes = manifest.ledger.retrievers[f"{kind}-own"].notes
    assert notes["nothing-matches-query"] == ("q3",)


def test_lasting_collections_are_indexed_once_for_all_filters_on_a_field(filtered_run):
    folder, results = filtered_run
    index_rows = results.costs[results.costs["stage"] == "index"]
    kinds = index_rows["retriever"].str.partition("-")[0]
    indexed_texts = index_rows["texts"].groupby(kinds).apply(list).to_dict()
    every_time = [len(TEXTS)] * len(FILTERS)
    once = [len(TEXTS), 0, 0]
    assert indexed_texts == {
        "bm25": every_time,
        "memory": every_time,
        "edge": once,
        "path": once,
        "int8": every_time,
    }
    assert len(list((folder / "store").iterdir())) == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            'filter = { langauge = "ja" }',
            "is a field of no document .did you mean 'language'",
        ),
        (
            'filter = { language = { query = "speak" } }',
            "'speak' is a field of no query .did you mean 'speaks'",
        ),
        ("filter = { language = 3 }", "filter"),
        ('kind = "run"\npath = "x"\nfilter = { language = "ja" }', "own index"),
    ],
)
def test_filters_of_unknown_fields_or_external_systems_are_refused(
    tmp_path, table, message
):
    kind = "" if "kind" in table else 'kind = "bm25"\n'
    with pytest.raises(InputError, match=message):
        check_target(
            experiment(tmp_path, f'[[retrievers]]\nname = "a"\n{kind}{table}\n')
        )


@pytest.fixture(scope="module")
def runs_of_documents(tmp_path_factory):
    """Two runs of every store with queries that are documents.

    They are left in the first, and removed in the second.
    """
    folder = tmp_path_factory.mktemp("self")
    rows = [{"_id": id_, "text": text} for id_, (_, text) in TEXTS.items()]
    corpus_folder = beir(
        folder / "data", rows, rows[:2], {"ja-1": ["de-1"], "ja-2": ["en-1"]}
    )
    blocks = "".join(block(kind, folder, "") for kind in STORES)
    results = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("HARNESS_CACHE", str(folder / "cache"))
        for exclude in ("false", "true"):
            dataset = (
                f'{{ path = "{corpus_folder.as_posix()}", exclude_self = {exclude} }}'
            )
            path = experiment(folder, blocks, dataset, name=exclude, depth=2)
            results.append(run(path, RunOptions(folder / "out")))
    return results


@pytest.mark.parametrize("query", ["ja-1", "ja-2"])
@pytest.mark.parametrize("kind", STORES)
def test_a_query_that_is_a_document_is_removed_from_its_results(
    runs_of_documents, kind, query
):
    with_self, left_out = (
        results.rankings(kind)[query] for results in runs_of_documents
    )
    assert with_self.doc_ids[0] == query
    assert query not in left_out.doc_ids
    assert len(left_out) == 2


def chunks(folder: Path) -> Path:
    """Passages of pages, with labels that name the pages."""
    texts = {
        "c1": ("cars drive", "a.pdf", 1),
        "c2": ("cars have wheels", "a.pdf", 2),
        "c3": ("four wheels on cars", "a.pdf", 2),
        "c4": ("fish swim", "b.pdf", 2),
    }
    rows = [
        {"_id": id_, "text": text, "metadata": {"file": file, "page": page}}
        for id_, (text, file, page) in texts.items()
    ]
    layouts.jsonl(
        folder / "documents.jsonl",
        [*rows, {"_id": "c5", "text": "nothing is known of where this stood"}],
    )
    layouts.jsonl(
        folder / "queries.jsonl",
        [{"id": "q1", "query": "wheels on cars", "relevant": ["a.pdf#2"]}],
    )
    return folder


def load_by_page(folder: Path) -> Dataset:
    return load_dataset(DatasetReference(folder, match=("file", "page")))


def test_labels_of_pages_are_matched_to_their_first_passage(tmp_path):
    dataset = load_by_page(chunks(tmp_path / "data"))
    assert dataset.labels["q1"].ranked == ("c2",)
    assert dataset.representatives == {"c3": "c2"}
    assert dataset.data_quality["document-without-key"] == ("c5",)


def test_passages_of_a_page_count_once_in_rankings(tmp_path):
    folder = chunks(tmp_path / "data")
    reference = f'{{ path = "{folder.as_posix()}", match = ["file", "page"] }}'
    fusion = '[[retrievers]]\nname = "both"\nkind = "fusion"\nof = ["bm25", "memory"]\n'
    blocks = block("bm25", tmp_path, "") + fusion + block("memory", tmp_path, "")
    path = experiment(tmp_path, blocks, reference)
    results = run(path, RunOptions(tmp_path / "out"))
    assert results.rankings("bm25")["q1"].doc_ids == ("c2", "c1")
    assert sorted(results.rankings("both")["q1"].doc_ids) == ["c1", "c2", "c4", "c5"]
    manifest = json.loads((tmp_path / "out" / "e" / "manifest.json").read_text())
    counts = manifest["ledger"]["bm25"]["counts"]
    assert counts["collapse"] == {"collapsed": 1}
    assert results.scores["value"].tolist()[0] == 1.0


@pytest.mark.parametrize(
    ("match", "message"),
    [
        (("pages",), "no document has 'pages' among its fields"),
        (("page",), "names document 'a.pdf"),
    ],
)
def test_fields_that_do_not_match_labels_are_refused(tmp_path, match, message):
    folder = chunks(tmp_path / "data")
    with pytest.raises(InputError, match=message):
        load_dataset(DatasetReference(folder, match=match))


def test_labels_of_pages_are_matched_to_whole_pages(tmp_path):
    folder = chunks(tmp_path / "data")
    page = {
        "_id": "whole",
        "text": "cars have four wheels",
        "metadata": {"file": "a.pdf", "page": 2},
    }
    layouts.jsonl(folder / "documents.jsonl", [page])
    assert load_by_page(folder).labels["q1"].ranked == ("whole",)


ODD = "a.\"b\"[0] 'c'"
"""A name of a field that is invalid as a path in Qdrant."""
WORDS = ("sun", "moon", "star", "sea", "hill")


def corpus(count):
    """Documents of few words, so that many tie, with fields that some of them lack."""
    chance = np.random.default_rng(7)
    documents = []
    for number in range(count):
        text = " ".join(chance.choice(WORDS, size=chance.integers(1, 5)))
        fields = {
            "language": str(chance.choice(["ja", "en", "de"])),
            ODD: str(chance.integers(0, 20)),
        }
        if number % 7 == 0:
            del fields["language"]
        documents.append(Document(f"d{number}", "", text, fields))
    return documents


QUERIES = [
    Query(f"q{n}", f"{a} {b}", {"speaks": speaks} if speaks else {})
    for n, ((a, b), speaks) in enumerate(
        zip(itertools.permutations(WORDS, 2), itertools.cycle(["ja", "en", "fr", ""]))
    )
]
CONDITIONS = {
    "a value": [Condition("language", ("ja",))],
    "two values": [Condition("language", ("de", "ja"))],
    "an odd name": [Condition(ODD, ("3",))],
    "two fields": [Condition("language", ("en",)), Condition(ODD, tuple("0123456789"))],
    "the query's own": [Condition("language", query_field="speaks")],
    "nothing": [Condition("language", ("xx",))],
}


def bag(text):
    """One dimension a word."""
    return [text.split().count(word) for word in WORDS]


@pytest.fixture
def dense(places):
    """Makes a retriever over a store of its own."""
    numbers = itertools.count()

    def make(location, conditions, *, options=None, **more):
        content = f"{places.content}-{next(numbers)}"

        def opened(meter):
            return places(location, documents=200, content=content, **(options or {}))

        return OverStore(Numbers(bag), opened, conditions=conditions, **more)

    return make


def matches(document, query, conditions):
    """Return whether a document matches, by a second implementation of the rule."""
    for condition in conditions:
        values = condition.values
        if not values and "speaks" in query.fields:
            values = (query.fields["speaks"],)
        if document.fields.get(condition.field) not in values:
            return False
    return True


def cosine(document, query):
    a, b = (np.array(bag(text), np.float64) for text in (document.text, query.text))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def unmatched(documents, conditions):
    """Return the ids of queries that no document matches."""
    return tuple(
        query.id
        for query in QUERIES
        if not any(matches(document, query, conditions) for document in documents)
    )


def check_dense(retriever, documents, conditions, depth):
    meter = Meter()
    retriever.index(documents, meter)
    rankings = retriever.search(QUERIES, depth, meter)
    for query, ranking in zip(QUERIES, rankings, strict=True):
        matching = [
            document for document in documents if matches(document, query, conditions)
        ]
        expected = ranked(
            [document.id for document in matching],
            round_scores([cosine(document, query) for document in matching]),
            depth,
        )
        assert ranking.doc_ids == expected.doc_ids
        assert ranking.scores == pytest.approx(expected.scores, abs=2e-6)
    alone = [retriever.answer(query, depth, Meter()) for query in QUERIES[::5]]
    assert [ranking.doc_ids for ranking in alone] == [
        ranking.doc_ids for ranking in rankings[::5]
    ]
    assert meter.notes().get("nothing-matches-query", ()) == unmatched(
        documents, conditions
    )


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("location", LOCATIONS)
def test_every_store_ranks_as_brute_force_does(dense, location, name):
    check_dense(
        dense(location, CONDITIONS[name]),
        corpus(40 if location == "folder" else 90),
        CONDITIONS[name],
        10,
    )


@pytest.mark.parametrize("location", [":memory:", "edge", "server"])
def test_passages_are_filtered_by_their_documents_fields(dense, location):
    conditions = CONDITIONS["the query's own"]
    retriever = dense(
        location, conditions, chunks=Chunk(size=1_000)
    )  # each document is one passage
    check_dense(retriever, corpus(60), conditions, 5)


def narrowed(kind, conditions):
    if kind != "bm25":
        return OverStore(
            Numbers(bag), lambda meter: QuantizedStore(kind), conditions=conditions
        )
    retriever = BM25()
    retriever.set_filter(conditions)
    return retriever


@pytest.mark.parametrize("kind", ["int8", "binary", "binary-dot", "bm25"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_filtered_rankings_equal_unfiltered_ones_without_other_documents(name, kind):
    documents = corpus(200)
    conditions = CONDITIONS[name]
    meter = Meter()
    unfiltered = narrowed(kind, ())
    filtered = narrowed(kind, conditions)
    unfiltered.index(documents, Meter())
    filtered.index(documents, meter)
    by_id = {document.id: document for document in documents}
    everything = unfiltered.search(QUERIES, len(documents), Meter())
    for query, all_hits, ranking in zip(
        QUERIES, everything, filtered.search(QUERIES, 10, meter), strict=True
    ):
        expected = [
            hit for hit in all_hits if matches(by_id[hit.doc_id], query, conditions)
        ][:10]
        assert ranking.doc_ids == tuple(hit.doc_id for hit in expected)
        assert ranking.scores == pytest.approx(
            [hit.score for hit in expected], rel=2e-6
        )
    assert meter.notes().get("nothing-matches-query", ()) == unmatched(
        documents, conditions
    )


def test_the_index_of_fields_is_created_before_any_point(dense, server):
    before = len(server.indexed)
    dense("server", CONDITIONS["a value"]).index(corpus(20), Meter())
    [(_, field, _)] = server.indexed[before:]
    assert field == "fields"


class Foreign(Retriever):
    """A retriever of another package, without filters."""

    def index(self, documents, meter):
        self._documents = list(documents)

    def search(self, queries, depth, meter):
        ids = [document.id for document in self._documents]
        rankings = []
        for query in queries:
            scores = [cosine(document, query) for document in self._documents]
            rankings.append(ranked(ids, round_scores(scores), depth))
        return rankings


@pytest.mark.parametrize("name", CONDITIONS)
def test_any_other_retriever_is_searched_until_enough_hits_match(name):
    check_dense(
        Filtered(Foreign(), CONDITIONS[name]), corpus(140), CONDITIONS[name], 10
    )


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"a": 5}, r"^filter\.a: 5 is no condition \(give a text, several texts, or"),
        ({"a": [1, "b"]}, r"^filter\.a: \[1, 'b'\] is no condition"),
        ({"a": []}, r"^filter\.a: \[\] is no condition"),
        ({"a": {"field": "b"}}, r"^filter\.a: {'field': 'b'} is no condition"),
        (None, "^filter: None is no table of fields"),
        ("ja", "^filter: 'ja' is no table of fields"),
        (
            [Condition("a", ("b", "c")), Condition("a", query_field="d")],
            r"^filter\.a: has 2 conditions \(give one\)$",
        ),
    ],
)
def test_odd_conditions_in_python_are_one_sentence(conditions, message):
    with pytest.raises(InputError, match=message):
        Filtered(Foreign(), conditions)


def test_a_filter_over_combined_retrievers_has_no_table():
    filtered = Filtered(Fused([BM25(), BM25()]), {"language": "ja"})
    with pytest.raises(InputError, match="filter each part"):
        filtered.to_config()


def test_a_filter_of_a_filtered_retriever_is_refused():
    """The table of an experiment file has one filter."""
    filtered = Filtered(Foreign(), {"language": "ja"})
    with pytest.raises(InputError, match=r"^filter: the retriever has one \(name all"):
        Filtered(filtered, {"kind": "a"})
