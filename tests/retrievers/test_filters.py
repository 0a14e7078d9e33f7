"""Filters, queries that are documents, and labels that name pages: alike in BM25 and every store, as by brute force."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from harness.dataset import DatasetReference, load_dataset
from harness.pipeline import run
from harness.preflight.check import check_target
from harness.running.options import RunOptions
from retrievers.bm25 import BM25
from retrievers.conditions import Condition
from retrievers.errors import InputError
from retrievers.filtered import Filtered
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
        {"query-id": q, "corpus-id": d, "score": 1}
        for q, some in relevant.items()
        for d in some
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
        asked = [
            {"_id": id_, "text": "cars with wheels", "speaks": tongue}
            for id_, tongue in SPEAKS.items()
        ]
        place = beir(
            folder / "data",
            corpus,
            asked,
            {query: ["ja-1", "en-1"] for query in SPEAKS},
        )
        dataset = f'"{place.as_posix()}"'
    path = folder / f"{name}.toml"
    head = f'name = "{name}"\ndataset = {dataset}\nprimary = "RR"\nmeasures = ["RR"]\ndepth = {depth}\nreport = false\n'
    path.write_text(head + blocks)
    return path


def block(kind: str, folder: Path, more: str, *, name: str = "") -> str:
    said = STORES[kind].replace("{path}", (folder / "store").as_posix())
    encoder = (
        "" if kind == "bm25" else 'encoder = { kind = "hashing", dimensions = 64 }\n'
    )
    return f'[[retrievers]]\nname = "{name or kind}"\n{encoder}{said}\n{more}\n'


FILTERS = {"one": '"ja"', "two": '["ja", "de"]', "own": '{ query = "speaks" }'}


def test_a_filter_leaves_only_the_documents_that_match_and_the_corpus_is_indexed_once(
    tmp_path,
):
    blocks = [
        block(
            kind, tmp_path, f"filter = {{ language = {said} }}", name=f"{kind}-{name}"
        )
        for kind in STORES
        for name, said in FILTERS.items()
    ]
    results = run(experiment(tmp_path, "".join(blocks)), RunOptions(tmp_path / "out"))
    for kind in STORES:
        found = [
            " ".join(
                sorted(
                    {doc[:2] for doc in results.rankings(f"{kind}-{name}")[q].doc_ids}
                )
            )
            for name in FILTERS
            for q in SPEAKS
        ]
        assert found == ["ja"] * 3 + ["de ja"] * 3 + ["ja", "en", ""]
        assert (
            results.manifest.retrievers[f"{kind}-one"].provenance["filter"]
            == '{"language": ["ja"]}'
        )
        assert results.manifest.ledger.retrievers[f"{kind}-own"].notes[
            "nothing-matches-query"
        ] == ("q3",)
    index = results.costs[results.costs["stage"] == "index"]
    texts = (
        index["texts"]
        .groupby(index["retriever"].str.partition("-")[0])
        .apply(list)
        .to_dict()
    )
    each, once = (
        [len(TEXTS)] * len(FILTERS),
        [len(TEXTS), 0, 0],
    )  # filters on a field share a collection
    assert texts == {
        "bm25": each,
        "memory": each,
        "edge": once,
        "path": once,
        "int8": each,
    }
    assert len(list((tmp_path / "store").iterdir())) == 1


@pytest.mark.parametrize(
    ("said", "told"),
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
def test_filters_that_name_nothing_or_ask_a_system_with_its_own_index(
    tmp_path, said, told
):
    kind = "" if "kind" in said else 'kind = "bm25"\n'
    with pytest.raises(InputError, match=told):
        check_target(
            experiment(tmp_path, f'[[retrievers]]\nname = "a"\n{kind}{said}\n')
        )


def test_a_query_that_is_a_document_is_kept_out_of_its_own_results(tmp_path):
    rows = [{"_id": id_, "text": text} for id_, (_, text) in TEXTS.items()]
    folder = beir(
        tmp_path / "self", rows, rows[:2], {"ja-1": ["de-1"], "ja-2": ["en-1"]}
    )
    blocks = "".join(block(kind, tmp_path, "") for kind in STORES)
    both = {}
    for exclude in ("true", "false"):
        place = f'{{ path = "{folder.as_posix()}", exclude_self = {exclude} }}'
        both[exclude] = run(
            experiment(tmp_path, blocks, place, name=exclude, depth=2),
            RunOptions(tmp_path / "out"),
        )
    for kind in STORES:
        kept, left_out = both["false"].rankings(kind), both["true"].rankings(kind)
        for query in ("ja-1", "ja-2"):
            assert kept[query].doc_ids[0] == query
            assert query not in left_out[query].doc_ids and len(left_out[query]) == 2


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


def test_labels_that_name_pages_are_matched_to_whatever_is_indexed_and_passages_of_a_page_count_once(
    tmp_path,
):
    folder = chunks(tmp_path / "data")
    found = load_dataset(DatasetReference(folder, match=("file", "page")))
    assert found.labels["q1"].ranked == ("c2",) and found.representatives == {
        "c3": "c2"
    }
    assert found.data_quality["document-without-key"] == ("c5",)
    place = f'{{ path = "{folder.as_posix()}", match = ["file", "page"] }}'
    blocks = (
        block("bm25", tmp_path, "")
        + '[[retrievers]]\nname = "both"\nkind = "fusion"\nof = ["bm25", "memory"]\n'
    )
    results = run(
        experiment(tmp_path, blocks + block("memory", tmp_path, ""), place),
        RunOptions(tmp_path / "out"),
    )
    assert results.rankings("bm25")["q1"].doc_ids == ("c2", "c1")
    assert sorted(results.rankings("both")["q1"].doc_ids) == ["c1", "c2", "c4", "c5"]
    counts = json.loads((tmp_path / "out" / "e" / "manifest.json").read_text())[
        "ledger"
    ]["bm25"]["counts"]
    assert (
        counts["collapse"] == {"collapsed": 1}
        and results.scores["value"].tolist()[0] == 1.0
    )
    for match, told in (
        (("pages",), "no document has 'pages' among its fields"),
        (("page",), "names document 'a.pdf"),
    ):
        with pytest.raises(InputError, match=told):
            load_dataset(DatasetReference(folder, match=match))
    whole = {
        "_id": "whole",
        "text": "cars have four wheels",
        "metadata": {"file": "a.pdf", "page": 2},
    }
    layouts.jsonl(folder / "documents.jsonl", [whole])
    assert load_dataset(DatasetReference(folder, match=("file", "page"))).labels[
        "q1"
    ].ranked == ("whole",)


ODD = "a.\"b\"[0] 'c'"
"""A name of a field that a path of Qdrant's could not hold."""
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
    """The rule itself, written anew."""
    for one in conditions:
        values = one.values or (
            [query.fields["speaks"]] if "speaks" in query.fields else []
        )
        if document.fields.get(one.field) not in values:
            return False
    return True


def cosine(document, query):
    a, b = (np.array(bag(text), np.float64) for text in (document.text, query.text))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def unmatched(documents, conditions):
    return tuple(
        q.id
        for q in QUERIES
        if not any(matches(one, q, conditions) for one in documents)
    )


def check_dense(retriever, documents, conditions, depth):
    meter = Meter()
    retriever.index(documents, meter)
    for place, (query, ranking) in enumerate(
        zip(QUERIES, retriever.search(QUERIES, depth, meter), strict=True)
    ):
        some = [one for one in documents if matches(one, query, conditions)]
        expected = ranked(
            [one.id for one in some],
            round_scores([cosine(one, query) for one in some]),
            depth,
        )
        assert ranking.doc_ids == expected.doc_ids
        assert ranking.scores == pytest.approx(expected.scores, abs=2e-6)
        assert (
            place % 5
            or retriever.answer(query, depth, Meter()).doc_ids == ranking.doc_ids
        )
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
def test_passages_are_narrowed_by_their_documents_fields(dense, location):
    conditions = CONDITIONS["the query's own"]
    whole = dense(
        location, conditions, chunks=Chunk(size=1_000)
    )  # each document is one passage
    check_dense(whole, corpus(60), conditions, 5)


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
def test_others_rank_as_without_a_filter_what_does_not_match_left_out(name, kind):
    documents, conditions, meter = corpus(200), CONDITIONS[name], Meter()
    whole, narrow = narrowed(kind, ()), narrowed(kind, conditions)
    whole.index(documents, Meter())
    narrow.index(documents, meter)
    by_id = {one.id: one for one in documents}
    everything = whole.search(QUERIES, len(documents), Meter())
    for query, all_of_it, ranking in zip(
        QUERIES, everything, narrow.search(QUERIES, 10, meter), strict=True
    ):
        kept = [
            hit for hit in all_of_it if matches(by_id[hit.doc_id], query, conditions)
        ][:10]
        assert ranking.doc_ids == tuple(hit.doc_id for hit in kept)
        assert ranking.scores == pytest.approx([hit.score for hit in kept], rel=2e-6)
    assert meter.notes().get("nothing-matches-query", ()) == unmatched(
        documents, conditions
    )


def test_a_server_is_told_to_index_the_fields_before_any_point(dense, server):
    before = len(server.indexed)
    dense("server", CONDITIONS["a value"]).index(corpus(20), Meter())
    [(_, field, _)] = server.indexed[before:]
    assert field == "fields"


class Foreign(Retriever):
    """A retriever of another package: it knows nothing of filters."""

    def index(self, documents, meter):
        self._documents = list(documents)

    def search(self, queries, depth, meter):
        ids = [one.id for one in self._documents]
        scores = [
            round_scores([cosine(one, query) for one in self._documents])
            for query in queries
        ]
        return [ranked(ids, some, depth) for some in scores]


@pytest.mark.parametrize("name", CONDITIONS)
def test_any_other_retriever_is_asked_for_more_until_enough_match(name):
    check_dense(
        Filtered(Foreign(), CONDITIONS[name]), corpus(140), CONDITIONS[name], 10
    )
