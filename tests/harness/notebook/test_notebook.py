"""`harness.evaluate` on data in memory, and its results."""

import sys
from dataclasses import asdict
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest

import harness
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.experiment import load
from harness.measures import measure_rankings, parse_measure
from harness.notebook.results import LabelledQueries
from harness.pipeline import run
from harness.running.options import RunOptions
from retrievers.bm25 import BM25
from retrievers.conditions import Condition
from retrievers.dense import Dense
from retrievers.encoders.hashing import HashingEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.encoders.python_encoder import PythonEncoder
from retrievers.errors import BackendError
from retrievers.filtered import Filtered
from retrievers.function import Function
from retrievers.fused import Fused
from retrievers.options.python_objects import kind_of_library_model
from retrievers.options.user_code import NamedObject
from retrievers.reranked import Reranked
from retrievers.rerankers.http_reranker import HttpReranker
from retrievers.saved_run import SavedRun
from retrievers.search_endpoint import Endpoint
from retrievers.types import Retriever
from tests.support import small, tiny

DOCUMENTS = small.TEXTS
QUERIES = {id_: text for id_, text, _ in small.QUERIES}
QRELS = {id_: docs for id_, _, docs in small.QUERIES}
MEASURES = {"primary": "nDCG@3", "measures": ["RR"]}


ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letters(texts):
    """A model: the number of each letter."""
    return np.array([list(map(text.count, ALPHABET)) for text in texts], dtype=float)


def evaluated(retrievers, documents=DOCUMENTS, queries=QUERIES, qrels=QRELS, **more):
    return harness.evaluate(
        documents, queries, qrels, retrievers, **{**MEASURES, **more}
    )


def called(function, **options):
    """A function that embeds, with options of its kind."""
    return Dense(
        {"kind": "python", "call": NamedObject.wrap(function, "mine"), **options}
    )


@pytest.fixture(scope="module")
def results():
    bm25 = BM25()
    dense = Dense(letters)
    retrievers = {"bm25": bm25, "letters": dense, "both": Fused([bm25, dense])}
    return evaluated(retrievers, baseline="bm25")


def rows(table):
    return [{"doc_id": key, "text": text} for key, text in table.items()]


class Split(list):
    """The rows of a data set of Hugging Face, with the names of their columns."""

    column_names = ("doc_id", "text")


NUMBERS = {name: str(number) for number, name in enumerate(DOCUMENTS)}
SHAPES = {
    "frames": (
        pd.DataFrame(rows(DOCUMENTS)),
        pd.Series(QUERIES),
        pd.DataFrame(
            [(q, d, 1) for q, docs in QRELS.items() for d in docs],
            columns=["qid", "docno", "label"],
        ),
    ),
    "index": (
        pd.Series(DOCUMENTS, name="text").to_frame(),
        QUERIES,
        pd.DataFrame(
            [(q, d) for q, docs in QRELS.items() for d in docs],
            columns=["query_id", "doc_id"],
        ),
    ),
    "rows": (
        rows(DOCUMENTS),
        [{"qid": q, "query": text} for q, text in QUERIES.items()],
        QRELS,
    ),
    "hub": (
        Split(rows(DOCUMENTS)),
        QUERIES,
        {q: set(docs) for q, docs in QRELS.items()},
    ),
    "tables": (
        {d: {"title": "", "text": text} for d, text in DOCUMENTS.items()},
        QUERIES,
        {q: dict.fromkeys(docs, 1) for q, docs in QRELS.items()},
    ),
}


def scores_of_bm25(results):
    return results.scores[results.scores["retriever"] == "bm25"]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_the_same_data(results, shape):
    documents, queries, qrels = SHAPES[shape]
    evaluation = evaluated({"bm25": "bm25"}, documents, queries, qrels)
    expected = scores_of_bm25(results)["value"].tolist()
    assert evaluation.scores["value"].tolist() == expected


def test_a_table_of_titles_and_texts_has_the_same_digest(results):
    documents, queries, qrels = SHAPES["tables"]
    evaluation = evaluated({"bm25": "bm25"}, documents, queries, qrels)
    assert evaluation.manifest.dataset.digest == results.manifest.dataset.digest


def test_queries_may_have_their_labels(results):
    rows = [
        {"qid": query_id, "query": QUERIES[query_id], "relevant": documents}
        for query_id, documents in QRELS.items()
    ]
    evaluation = evaluated(
        {"bm25": "bm25"}, DOCUMENTS, pd.DataFrame(rows), None, primary="RR"
    )
    scores = scores_of_bm25(results)
    expected = scores[scores["measure"] == "RR"]["value"].tolist()
    assert evaluation.scores["value"].tolist() == expected


@pytest.fixture
def part_files(tmp_path):
    """The documents and the queries as files."""
    documents = tmp_path / "documents.csv"
    pd.DataFrame(rows(DOCUMENTS)).to_csv(documents, index=False)
    queries = tmp_path / "questions.csv"
    frame = pd.DataFrame({"qid": QUERIES.keys(), "query": QUERIES.values()})
    frame.to_csv(queries, index=False)
    return documents, str(queries)


def label_rows():
    return [(q, doc) for q, documents in QRELS.items() for doc in documents]


def check_same_data(documents, queries, qrels):
    evaluation = evaluated({"bm25": "bm25"}, documents, queries, qrels)
    expected = evaluated({"bm25": "bm25"}).manifest.dataset
    assert evaluation.manifest.dataset.queries == len(QUERIES)
    assert evaluation.manifest.dataset.digest == expected.digest


def test_labels_may_be_a_table_in_a_file(part_files, tmp_path):
    qrels = tmp_path / "labels.csv"
    frame = pd.DataFrame(label_rows(), columns=["qid", "docno"]).assign(label=1)
    frame.to_csv(qrels, index=False)
    check_same_data(*part_files, qrels)


def test_labels_may_be_a_trec_file(part_files, tmp_path):
    qrels = tmp_path / "qrels"
    lines = [f"{query_id} 0 {doc} 1\n" for query_id, doc in label_rows()]
    qrels.write_text("".join(lines), encoding="utf-8")
    check_same_data(*part_files, qrels)


def test_the_data_set_may_be_a_folder(tmp_path):
    folder = small.dataset(tmp_path / "data")
    evaluation = evaluated({"bm25": "bm25"}, folder, None, None)
    assert evaluation.manifest.dataset.queries == len(QUERIES)


TABLES = ("scores", "summary", "comparisons")


@pytest.fixture(scope="module")
def experiment_file(tmp_path_factory):
    return small.experiment(tmp_path_factory.mktemp("experiment"))


@pytest.fixture(scope="module")
def file_results(experiment_file, tmp_path_factory):
    """The results of an experiment file."""
    return run(experiment_file, RunOptions(tmp_path_factory.mktemp("out")))


def check_same_tables(results, expected):
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(results, table), getattr(expected, table))


def test_the_results_of_a_file_have_a_short_repr(file_results):
    assert repr(file_results) == "<Results 'small': 3 retrievers, 6 queries>"


def test_an_evaluation_has_the_figures_of_an_experiment_file(
    experiment_file, file_results
):
    hashing = {"kind": "hashing", "dimensions": 64}
    retrievers = {
        "bm25": "bm25",
        "hashing": {"encoder": hashing},
        "hybrid": Fused([BM25(), Dense(hashing)]),
    }
    resolved = file_results.manifest.resolved
    evaluation = harness.evaluate(
        experiment_file.parent / "data",
        None,
        None,
        retrievers,
        primary=resolved.primary,
        measures=resolved.measures,
        baseline=resolved.baseline,
        depth=resolved.depth,
        statistics=asdict(resolved.statistics),
        relevance=dict(resolved.relevance),
    )
    check_same_tables(evaluation, file_results)


def test_an_experiment_object_has_the_figures_of_its_file(
    experiment_file, file_results, tmp_path
):
    experiment = load(experiment_file).experiment
    check_same_tables(run(experiment, RunOptions(tmp_path)), file_results)


def test_the_tables_of_an_experiment_have_the_figures_of_its_file(
    experiment_file, file_results, tmp_path
):
    tables = dict(load(experiment_file).tables.options)
    check_same_tables(run(tables, RunOptions(tmp_path)), file_results)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"qrels": {**QRELS, "q-rails": ["trane"], "q-swim": ["fish", "whale"]}},
            "qrels: query 'q-rails' names document 'trane', which does not exist "
            "(did you mean 'train'? correct the id, or "
            'set relevance={"dangling": "drop"})',
        ),
        (
            {"qrels": {**QRELS, "q-none": ["car"]}},
            "qrels: labels name query 'q-none', which does not exist",
        ),
        (
            {"qrels": {"q-rails": 3}},
            (
                "qrels['q-rails']: is neither a dict nor a list ({document: grade}, or "
                "the relevant"
            ),
        ),
        (
            {"documents": {"a": 3}},
            'documents[\'a\']: is not text but 3 (a text, or {"title": …, "text": …})',
        ),
        (
            {"documents": pd.DataFrame({"id": ["a"], "name": ["b"]})},
            "documents:1: 'text' is missing",
        ),
        (
            {"documents": pd.DataFrame([["a", "b"]], columns=["id"] * 2)},
            "documents: the column 'id' occurs twice",
        ),
        ({"documents": "nowhere.csv"}, "nowhere.csv: no such file"),
        ({"queries": None}, "queries: is None ({id"),
        (
            {"retrievers": {"my model": letters}},
            "retrievers['my model']: is not a name: letters, digits",
        ),
        ({"retrievers": ["bm25"]}, "retrievers: is of type list (give each a name: {"),
        (
            {"retrievers": {"a": 3}},
            (
                "retrievers['a']: an object of type int is not a retriever (a name, an "
                "object"
            ),
        ),
        (
            {"retrievers": {"a": {"kind": "bm52"}}},
            "retrievers['a']: unknown kind 'bm52' (did you mean 'bm25'?)",
        ),
        (
            {"retrievers": {"a": "bm25", "b": {"kind": "bm25", "k3": 1}}},
            "retrievers['b'].k3: unknown key 'k3'",
        ),
        (
            {"retrievers": {"a": {"kind": "fusion", "of": ["b", "c"]}}},
            "retriever 'a' uses unknown",
        ),
        ({"baseline": "b"}, "baseline 'b' is not a retriever"),
        ({"margn": 1}, "margn: unknown key 'margn'"),
        (
            {"primary": "ndgc@3"},
            "primary: 'ndgc@3': there is no measure 'ndgc' (did you mean 'nDCG'?)",
        ),
    ],
)
def test_a_mistake_is_refused_with_its_argument(changes, message):
    arguments = {
        "documents": DOCUMENTS,
        "queries": QUERIES,
        "qrels": QRELS,
        "retrievers": {"bm25": "bm25"},
        **MEASURES,
    }
    assert message in str(small.refusal(harness.evaluate, **{**arguments, **changes}))


def numbers_of(documents):
    return [int(NUMBERS[document]) for document in documents]


def test_entries_of_lists_have_their_positions_as_ids():
    qrels = [numbers_of(documents) for documents in QRELS.values()]
    texts = list(DOCUMENTS.values())
    evaluation = evaluated({"bm25": "bm25"}, texts, list(QUERIES.values()), qrels)
    expected = [str(number) for number in range(len(QUERIES))]
    assert sorted(set(evaluation.scores["query_id"])) == expected


def test_labels_of_missing_documents_may_be_dropped():
    qrels = {**QRELS, "q-rails": ["train", "trane"]}
    relevance = {"dangling": "drop"}
    evaluation = evaluated({"bm25": "bm25"}, qrels=qrels, relevance=relevance)
    dropped = evaluation.manifest.ledger.dataset["dangling-document"]
    assert dropped == ("q-rails trane",)


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (
            lambda texts: letters(texts)[0],
            "array of shape (26,) for 6 texts: it has to be (6, dimensions)",
        ),
        (
            lambda texts, role: letters(texts)[:, : 5 if role == "query" else 9],
            "has 5 dimensions where others have 9",
        ),
        (
            lambda query: [("train", 1.0)],
            "a search, which returns document ids, is Function(search)",
        ),
        (lambda texts: 1 / 0, "ZeroDivisionError: division by zero (test_notebook.py:"),
        (
            lambda texts: np.full((len(texts), 2), np.nan),
            "has NaN or infinity",
        ),
        (Function(lambda query, depth: 3), "TypeError: 'int' object is not iterable"),
        (
            Function(
                lambda query, depth: [(i, n) for n, i in enumerate("abcdefghijkl")]
            ),
            "as distances do",
        ),
        (
            Function(lambda query, depth: {"train": 1, "car": 2}),
            "the hits of query 'q-fruit' cannot be read",
        ),
    ],
)
def test_a_function_that_fails_is_a_failed_retriever(encode, message):
    evaluation = evaluated({"bm25": "bm25", "mine": encode})
    assert evaluation.retrievers == ("bm25",)
    assert message in dict(evaluation.manifest.failed)["mine"]
    assert message in str(evaluation)


def test_a_function_is_called_once_for_each_text():
    embedded_texts = []
    array = np.zeros((6, 26), dtype=np.float32)

    def embed(texts, role):
        embedded_texts.extend(texts)
        array[: len(texts)] = letters(texts)
        return array[: len(texts)]  # the same array in every call

    first = evaluated({"mine": embed, "letters": letters})
    assert first.rankings("mine") == first.rankings("letters")
    expected = sorted([*DOCUMENTS.values(), *QUERIES.values()])
    assert sorted(embedded_texts) == expected
    second = evaluated({"mine": embed, "bm25": "bm25"})
    assert second.rankings("mine") == first.rankings("mine")
    assert sorted(embedded_texts) == expected
    assert second.retrievers == ("mine", "bm25")


def test_a_model_with_other_weights_embeds_again():
    import torch

    class Trained(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(26))

        def encode(self, texts):
            return torch.tensor(letters(texts)) * self.scale

    model = Trained()
    before = evaluated({"mine": model})
    assert evaluated({"mine": model}).rankings("mine") == before.rankings("mine")
    model.scale.data[0] = -9.0
    assert evaluated({"mine": model}).rankings("mine") != before.rankings("mine")


def test_after_an_interrupt_only_the_other_texts_are_embedded():
    batch_sizes = []

    def embed(texts):
        if len(batch_sizes) == 2:
            batch_sizes.append(0)
            raise KeyboardInterrupt
        batch_sizes.append(len(texts))
        return letters(texts)

    with pytest.raises(KeyboardInterrupt):
        evaluated({"mine": called(embed, batch_size=2)})
    evaluated({"mine": called(embed, batch_size=2)})
    assert sum(batch_sizes) == len(DOCUMENTS) + len(QUERIES)


def cached_texts(cache):
    """The number of texts that came from the cache."""
    dense = called(lambda texts: letters(texts), cache=cache)
    return evaluated({"mine": dense}).costs["cached"].sum()


def test_the_vectors_of_a_named_function_are_cached():
    assert cached_texts("letters-7") == 0
    assert cached_texts("letters-7") == len(DOCUMENTS) + len(QUERIES)


def test_the_vectors_of_an_unnamed_function_are_not_cached():
    assert cached_texts("") == 0
    assert cached_texts("") == 0


SIGNS = {"query": -1, "document": 1, None: 1}


@pytest.mark.parametrize(
    "model",
    [
        lambda texts, role: letters(texts) * SIGNS[role],
        SimpleNamespace(
            encode=lambda texts, *, prompt_type=None: (
                letters(texts) * SIGNS[prompt_type]
            )
        ),
        SimpleNamespace(
            encode_query=lambda texts: -letters(texts), encode_document=letters
        ),
    ],
    ids=["a role", "mteb", "two methods"],
)
def test_an_object_is_told_queries_from_documents(results, model):
    evaluation = evaluated({"mine": model})
    negated = evaluated({"mine": lambda texts, role: letters(texts) * SIGNS[role]})
    assert evaluation.rankings("mine") == negated.rankings("mine")
    assert evaluation.rankings("mine") != results.rankings("letters")


def test_a_table_may_name_a_function(results):
    encoder = {"kind": "python", "call": NamedObject.wrap(letters, "x")}
    evaluation = evaluated({"table": {"encoder": encoder}})
    assert evaluation.rankings("table") == results.rankings("letters")
    # The price of a function is unknown.
    provenance = evaluation.manifest.retrievers["table"].provenance
    assert provenance.model.price is None


@pytest.fixture
def bi_encoder(tmp_path):
    """The folder of a tiny model with prompts."""
    prompts = {"query": "query : ", "document": "passage : "}
    return str(tiny.bi_encoder(tmp_path, prompts=prompts))


def test_a_model_object_is_the_same_as_its_name(bi_encoder):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(bi_encoder, device="cpu")
    copy = SentenceTransformer(bi_encoder, device="cpu")
    evaluation = evaluated({"object": model, "name": bi_encoder, "again": copy})
    assert evaluation.rankings("object") == evaluation.rankings("name")
    provenance = evaluation.manifest.retrievers["object"].provenance
    assert provenance.model.source == "object"
    assert ("query_prompt", "query : ") in provenance.model.settings
    costs = evaluation.costs
    costs = costs[costs["stage"] == "embed-documents"].set_index("retriever")
    # Another object has the same weights.
    assert costs.loc["again", "cached"] == len(DOCUMENTS)
    assert costs.loc["object", "tokens"] == costs.loc["name", "tokens"] > 0


def test_another_prompt_changes_the_digest_of_a_model(bi_encoder):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(bi_encoder, device="cpu")
    before = evaluated({"object": model}).manifest.retrievers["object"].provenance
    model.prompts["query"] = "title : "
    after = evaluated({"object": model}).manifest.retrievers["object"].provenance
    assert after.model.sha256 != before.model.sha256


def test_a_subclass_with_its_own_encode_is_no_library_model():
    library = type(
        "SentenceTransformer",
        (),
        {"__module__": "sentence_transformers.x", "encode": lambda self: 1},
    )
    subclass = type("Own", (library,), {"encode": lambda self: 2})
    assert kind_of_library_model(library()) == "sentence-transformers"
    assert kind_of_library_model(subclass()) == ""


def test_a_reranker_object_is_the_same_as_its_name(tmp_path):
    from sentence_transformers import CrossEncoder

    folder = str(tiny.cross_encoder(tmp_path / "cross"))
    model = CrossEncoder(folder, device="cpu")
    retrievers = {
        "bm25": "bm25",
        "object": Reranked(BM25(), model, depth=3),
        "name": Reranked(BM25(), folder, depth=3),
    }
    evaluation = evaluated(retrievers)
    assert evaluation.rankings("object") == evaluation.rankings("name")
    assert evaluation.rankings("object") != evaluation.rankings("bm25")


def test_a_function_is_no_reranker():
    message = "reranker: a function is not a CrossEncoder"
    with pytest.raises(harness.InputError, match=message):
        Reranked(BM25(), letters)


def first(grades, ranking):
    return float(grades.get(ranking[0], 0) > 0)


def test_an_own_measure_is_tested_like_any_other():
    first_measure = harness.measure("first", first)
    wide = harness.measure("wide", lambda grades, ranking: -2.0, range=(-4, 2))
    retrievers = {"bm25": "bm25", "letters": letters}
    evaluation = evaluated(retrievers, measures=["P@1", first_measure, wide])
    scores = evaluation.scores.pivot_table(
        index=["retriever", "query_id"], columns="measure", values="value"
    )
    assert scores["own.first"].tolist() == scores["P@1"].tolist()
    assert set(scores["own.wide(high=2.0, low=-4.0)"]) == {-2.0}
    tests = evaluation.comparisons.set_index("measure")
    for column in ("p_value", "p_randomization", "mean_difference"):
        assert tests.loc["own.first", column] == tests.loc["P@1", column]
    for column in ("ci_method", "ci_low", "ci_high"):
        assert tests.loc["own.first", column] == tests.loc["P@1", column]


@pytest.fixture
def own_primary(tmp_path):
    """Saved results whose primary is an own measure."""
    evaluation = evaluated(
        {"bm25": "bm25", "letters": letters},
        primary=harness.measure("first", first),
        measures=["P@1"],
    )
    return evaluation.save(tmp_path / "own")


def test_an_own_measure_of_0_and_1_has_the_intervals_of_such_measures(own_primary):
    results = harness.open_results(own_primary)
    summary = results.summary.set_index("measure")["ci_method"]
    pairs = results.comparisons.set_index("measure")["ci_method"]
    assert summary["own.first"].tolist() == summary["P@1"].tolist()
    assert pairs["own.first"] == pairs["P@1"]


def test_results_by_an_own_measure_have_a_report(own_primary):
    assert "own.first" in (own_primary / "report.md").read_text(encoding="utf-8")


def test_results_by_an_own_measure_are_scored_and_gated(own_primary, capsys):
    assert small.ended("score", own_primary) == 0
    words = ["--baseline", "bm25", "--challenger", "letters", "--margin", "0.1"]
    assert small.ended("gate", own_primary, *words) == 1


def test_runs_are_compared_by_an_own_measure():
    runs = {"a": {"q": ["x"]}, "b": {"q": ["y"]}}
    first_measure = harness.measure("first", first)
    compared = harness.compare(runs, {"q": {"x": 1, "y": 0}}, first_measure)
    assert compared.summary["mean"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: harness.measure("a b", first),
            "name: 'a b' is not a name of a measure",
        ),
        (
            lambda: harness.measure("a", first, range=(1, 1)),
            "range: (1, 1) is not a range",
        ),
        (
            lambda: measure_rankings(
                [parse_measure("own.x")], {"q": {"d": 1}}, {"q": ["d"]}
            ),
            "is a Python function, which only its own process has",
        ),
        (
            lambda: measure_rankings(
                [parse_measure(harness.measure("x", lambda g, r: 7))],
                {"q": {"d": 1}},
                {"q": ["d"]},
            ),
            "measure 'own.x', query 'q': gave 7.0, which is not between 0 and 1",
        ),
        (
            lambda: measure_rankings(
                [parse_measure(harness.measure("x", lambda g, r: r[9]))],
                {"q": {"d": 1}},
                {"q": ["d"]},
            ),
            "failed: IndexError",
        ),
    ],
)
def test_an_invalid_own_measure_is_refused(call, message):
    assert message in str(small.refusal(call))


def test_results_have_a_short_repr_sentences_and_queries(results):
    assert repr(results) == "<Results 'evaluation': 3 retrievers, 6 queries>"
    assert results.sentences
    assert results.queries["q-rails"].query.text == "rails"


def test_the_queries_on_which_a_retriever_loses(results):
    lost = results.queries(lost_by="letters", to="bm25")
    scores = results.scores[results.scores["measure"] == "nDCG@3"]
    scores = scores.pivot(index="query_id", columns="retriever", values="value")
    differences = scores["letters"] - scores["bm25"]
    expected = differences[differences < 0].to_dict()
    assert dict(zip(lost["query_id"], lost["difference"], strict=True)) == expected
    assert lost["difference"].is_monotonic_increasing
    assert lost["text"].tolist() == [QUERIES[query] for query in lost["query_id"]]


def test_float_noise_is_no_loss(results):
    """Averages of the same trials in another order differ in the last digit."""
    rows = [("a", "q-rails", "nDCG@3", 1 / 3), ("b", "q-rails", "nDCG@3", 1 - 2 / 3)]
    noisy = SimpleNamespace(
        queries=results.queries,
        scores=pd.DataFrame(rows, columns=results.scores.columns),
        retrievers=("a", "b"),
        manifest=results.manifest,
    )
    assert LabelledQueries(noisy)(lost_by="a", to="b").empty


@pytest.mark.parametrize(
    ("lost_by", "to", "message"),
    [
        ("letters", "bm52", "to: there is no retriever 'bm52' (did you mean 'bm25'"),
        (None, "bm25", "lost_by: there is no retriever None"),
        ("bm25", "bm25", "are the same retriever"),
    ],
    ids=["a misspelt name", "no name", "the same name"],
)
def test_two_known_retrievers_are_needed(results, lost_by, to, message):
    assert message in str(small.refusal(results.queries, lost_by=lost_by, to=to))


def test_results_without_labels_have_no_sentences():
    unlabelled = evaluated({"bm25": "bm25", "letters": letters}, qrels=None)
    assert unlabelled.scored is False
    assert unlabelled.sentences == ()
    assert "No query has labels" in unlabelled._repr_html_()


def test_columns_that_were_recognised_by_name_are_said_once():
    documents = pd.DataFrame({"doc_id": ["a", "b"], "body": ["red", "green"]})
    queries = pd.DataFrame({"qid": ["q"], "question": ["red"]})
    labels = {"q": ["a"]}
    results = harness.evaluate(documents, queries, labels, {"bm25": "bm25"})
    lines = (
        "queries: qid -> the query's id, question -> the query's text",
        "documents: doc_id -> the document's id, body -> the document's text",
    )
    assert str(results).endswith("\n".join(lines))
    plain = harness.evaluate({"a": "red", "b": "blue"}, {"q": "red"}, labels, BM25_ONLY)
    assert plain.column_lines == ()


BM25_ONLY = {"bm25": "bm25"}


def test_the_page_of_data_in_memory_names_no_command_that_cannot_work(
    results, tmp_path
):
    saved = harness.open_results(results.save(tmp_path / "saved"))
    for page in (results.report(), saved.report()):
        assert "harness reproduce" not in page.read_text(encoding="utf-8")


def test_the_report_is_written_to_a_file(results, tmp_path):
    page = results.report(tmp_path / ".page")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_chart_is_drawn(results):
    assert results.plot()._repr_svg_().startswith("<svg")
    assert "there is no chart 'x'" in str(small.refusal(results.plot, "x"))


def test_results_are_converted_for_mteb(results):
    means = results.summary.set_index(["retriever", "measure"])["mean"]
    (test_split,) = results.to_mteb()["bm25"]["scores"]["test"]
    assert test_split["main_score"] == means["bm25", "nDCG@3"]


@pytest.fixture
def weekly(results, tmp_path):
    """The folder of saved results."""
    return results.save(tmp_path / "weekly")


def test_saved_results_have_the_same_tables(results, weekly):
    saved = harness.open_results(weekly)
    assert saved.manifest.name == "weekly"
    assert (weekly / "report.html").is_file()
    check_same_tables(saved, results)


def test_results_saved_twice_are_in_one_folder(results, weekly):
    results.save(weekly)
    names = [path.name for path in weekly.parent.iterdir()]
    assert [name for name in names if not name.startswith(".")] == ["weekly"]


def test_results_are_not_saved_under_an_invalid_name(results, tmp_path):
    error = small.refusal(results.save, tmp_path / "my results")
    assert "folder 'my results': is not a name" in str(error)


def test_results_are_compared_with_saved_ones(weekly):
    others = evaluated({"bm25": "bm25", "letters": lambda texts: letters(texts)[:, :9]})
    compared = others.compare(weekly)
    retrievers = set(compared.summary["retriever"])
    assert retrievers == {"evaluation/letters", "weekly/letters", "bm25", "both"}


def test_a_comparison_notes_the_retrievers_that_failed():
    def down(texts):
        raise OSError("down")

    compared = evaluated({"bm25": "bm25", "mine": down}).compare()
    assert "Incomplete: without mine" in compared.notes[0]


@pytest.mark.parametrize(
    ("options", "choice"),
    [
        ({"margin": 0.3}, "margin 0.3 (declared: none)"),
        ({"alpha": 0.2}, "alpha 0.2 (declared: 0.05)"),
        ({"test": "t"}, "test t (declared: randomization)"),
    ],
)
def test_a_comparison_by_undeclared_settings_chooses_nothing(weekly, options, choice):
    compared = evaluated({"other": "bm25"}).compare(weekly, **options)
    assert compared.sentences[0].startswith(f"Exploratory, by {choice}: ")


def test_a_comparison_by_an_undeclared_margin_reads_as_in_the_terminal(
    results, weekly, tmp_path, capsys
):
    other = evaluated({"other": "bm25"}).save(tmp_path / "other")
    output = small.told(capsys, "compare", weekly, other, "--margin", "0.3")
    compared = harness.open_results(weekly).compare(other, margin=0.3)
    (sentence,) = (line for line in compared.sentences if "declared: none" in line)
    headline, _, means = sentence.partition(" (nDCG@3: ")
    assert f"{headline}." in " ".join(output.split())
    assert means.startswith("bm25 1.000, both 1.000, ")


def test_results_of_objects_are_not_reproduced_in_another_process(weekly, capsys):
    output = small.told(capsys, "reproduce", weekly, "--trust", code=2)
    assert (
        "used objects that only that process had: "
        "documents and queries in memory and letters (letters)"
    ) in output


def test_results_are_logged_to_mlflow(results, tmp_path, monkeypatch):
    mlflow = pytest.importorskip(
        "mlflow", reason="MLflow is not installed: pip install mlflow-skinny"
    )
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    run_id = results.log_to("mlflow")
    data = mlflow.get_run(run_id).data
    means = results.summary.set_index(["retriever", "measure"])["mean"]
    assert data.metrics["letters/nDCG_at_3"] == means["letters", "nDCG@3"]
    assert data.params["baseline"] == "bm25"
    (page,) = tmp_path.rglob("report.html")
    assert page.stat().st_size > 10_000
    with mlflow.start_run() as active:
        assert results.log_to("mlflow") == active.info.run_id


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no server\nsee the log", "no server"),
        ("\n no server", "no server"),
        ("", "Error"),
    ],
)
def test_a_failure_of_a_tracker_is_one_sentence(results, monkeypatch, text, reason):
    failure = type("Error", (Exception,), {"__module__": "wandb.errors"})
    wandb = MagicMock(run=None)
    wandb.init.side_effect = failure(text)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    with pytest.raises(BackendError, match=rf"^wandb: {reason}$"):
        results.log_to("wandb")
    wandb.init.side_effect = TypeError("an unknown option")
    with pytest.raises(TypeError):
        results.log_to("wandb", unknown=1)


def test_a_sweep_is_logged_to_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip(
        "mlflow", reason="MLflow is not installed: pip install mlflow-skinny"
    )
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    experiment = {
        "name": "swept",
        "dataset": "datasets/survey-templates-en",
        "primary": "RR",
        "measures": ["RR"],
        "sweep": {"of": "bm25", "default": "bm25", "k1": [0.9, 1.2]},
        "retrievers": [{"name": "bm25", "kind": "bm25"}],
    }
    swept = harness.run(experiment, RunOptions(tmp_path), progress=False)
    data = mlflow.get_run(swept.log_to("mlflow")).data
    assert "bm25_1.2_.model" not in data.params, "BM25 has no model"
    assert "bm25_1.2_/RR" in data.metrics


def test_results_are_logged_to_wandb(results, monkeypatch):
    wandb = MagicMock(run=None, Html=lambda page, inject: page)
    active = wandb.init.return_value.__enter__.return_value
    active.id = "w1"
    active.config = {}
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    assert results.log_to("wandb", project="p") == "w1"
    wandb.init.assert_called_once_with(name="evaluation", project="p")
    assert active.config["baseline"] == "bm25"
    assert active.log.call_args.args[0]["report"].startswith("<!doctype html>")
    wandb.init.return_value.__exit__.assert_called_once()


def incomplete_wandb():
    """wandb without one of its packages."""
    wandb = MagicMock(run=None)
    wandb.init.side_effect = ModuleNotFoundError("x", name="alembic")
    return wandb


@pytest.mark.parametrize(
    ("tracker", "module", "message"),
    [
        ("mlfow", None, "did you mean 'mlflow'"),
        ("wandb", None, "needs the package wandb"),
        (
            "wandb",
            incomplete_wandb(),
            "wandb needs the package alembic (pip install wandb",
        ),
    ],
    ids=["a misspelt tracker", "no wandb", "an incomplete wandb"],
)
def test_a_tracker_that_is_not_installed_is_refused(
    results, monkeypatch, tracker, module, message
):
    monkeypatch.setitem(sys.modules, "wandb", module)
    assert message in str(small.refusal(results.log_to, tracker))


def test_the_package_has_only_documented_names():
    assert dir(harness) == sorted(harness.__all__)
    assert all(getattr(harness, name).__doc__ for name in harness.__all__)
    with pytest.raises(AttributeError, match=r"no attribute 'Fusion'"):
        harness.Fusion("a", "b")


def test_an_experiment_file_may_name_a_function(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mymodel.py").write_text(
        "def embed(texts):\n    return [[len(text), 1.0] for text in texts]\n"
    )
    blocks = (
        '[[retrievers]]\nname = "mine"\nencoder = { kind = "python", call = '
        '"mymodel:embed" }\n'
    )
    path = small.experiment(tmp_path, retrievers=blocks)
    assert run(path, RunOptions("out")).retrievers == ("mine",)
    assert "runs code: encoder.call = mymodel:embed" in small.told(
        capsys, "run", path, "--no-code", code=2
    )


@pytest.mark.parametrize("run_any", [harness.run, harness.run_sets])
def test_code_that_is_not_allowed_is_not_imported(run_any, tmp_path, monkeypatch):
    code = "raise RuntimeError('it ran')"
    call = f"{small.module(tmp_path, monkeypatch, code)}:search"
    block = f'[[retrievers]]\nname = "tool"\nkind = "python"\ncall = "{call}"\n'
    path = small.experiment(tmp_path, retrievers=block)
    options = RunOptions(tmp_path / "out", allow_code=False)
    assert "runs code" in str(small.refusal(run_any, path, options))


def test_a_notebook_shows_progress_in_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    monkeypatch.setattr("harness.console.progress.REFRESH_SECONDS", 0)
    evaluated({"mine": called(letters, batch_size=2)}, progress=None)
    output = capsys.readouterr().err
    assert "\rmine: embed-documents: 6 texts in " in output
    assert "\x1b" not in output  # no control characters that notebooks would show


@pytest.fixture(scope="module")
def embedded_texts():
    """The texts that the model of `composed` embedded."""
    return []


@pytest.fixture(scope="module")
def composed(embedded_texts):
    """The results of fusions with equal parts."""

    def embed(texts):
        embedded_texts.extend(texts)
        return letters(texts)

    words = BM25()
    meaning = Dense(embed)
    nested = Fused([Dense(embed), BM25(b=0.7)], constant=5)
    retrievers = {
        "words": words,
        "meaning": meaning,
        "hybrid": Fused([words, meaning]),
        "inner": Fused([words, nested], weights=[2, 1]),
    }
    return evaluated(retrievers)


def test_parts_that_are_retrievers_are_named(composed):
    retrievers = composed.manifest.resolved.retrievers
    parts = {retriever.name: retriever.table.get("of") for retriever in retrievers}
    first_part, second_part = parts["inner"]
    assert list(parts["hybrid"]) == ["words", "meaning"]
    assert first_part == "words"
    assert second_part["kind"] == "fusion"
    assert second_part["of"][0] == "meaning"


def test_the_texts_of_equal_parts_are_embedded_once(composed, embedded_texts):
    texts = set(DOCUMENTS.values()) | set(QUERIES.values())
    assert sorted(embedded_texts) == sorted(texts)


@pytest.mark.parametrize("query_id", QUERIES)
def test_a_fusion_fuses_the_rankings_of_its_parts(composed, query_id):
    rankings = [composed.rankings(name)[query_id] for name in ("words", "meaning")]
    expected = Fused(()).fuse(rankings, 100).doc_ids
    assert composed.rankings("hybrid")[query_id].doc_ids == expected


@pytest.mark.parametrize(
    ("retriever", "table"),
    [
        (
            Dense(OpenAIEncoder("text-embedding-3-small", batch_size=8)),
            {
                "kind": "dense",
                "encoder": {
                    "kind": "openai",
                    "batch_size": 8,
                    "model": "text-embedding-3-small",
                },
            },
        ),
        (
            Dense(HashingEncoder(dimensions=64), store="edge"),
            {
                "kind": "dense",
                "encoder": {"kind": "hashing", "dimensions": 64},
                "store": "edge",
            },
        ),
        (
            Dense(PythonEncoder(letters, cache="1")),
            {
                "kind": "dense",
                "encoder": {
                    "kind": "python",
                    "cache": "1",
                    "call": "object:part (letters)",
                },
            },
        ),
        (
            Reranked(
                BM25(),
                HttpReranker(model="m", base_url="http://x", dialect="tei"),
                depth=5,
            ),
            {
                "kind": "rerank",
                "of": {"kind": "bm25"},
                "rerank": {
                    "kind": "http",
                    "depth": 5,
                    "base_url": "http://x",
                    "dialect": "tei",
                    "model": "m",
                },
            },
        ),
        (
            Filtered(SavedRun("a.trec"), [Condition("language", query_field="speaks")]),
            {
                "kind": "run",
                "path": "a.trec",
                "filter": {"language": {"query": "speaks"}},
            },
        ),
        (
            Endpoint("http://x?q={query}", ids="hits", method="GET"),
            {
                "kind": "http",
                "ids": "hits",
                "method": "GET",
                "url": "http://x?q={query}",
            },
        ),
    ],
)
def test_a_retriever_object_has_its_table(retriever, table):
    assert retriever.to_config() == table


def test_a_retriever_without_a_table_is_refused():
    class Foreign(Retriever):
        index = search = None

    message = "a Foreign does not say how it is written"
    with pytest.raises(harness.InputError, match=message):
        evaluated({"mine": Foreign()})


def test_a_number_is_no_model():
    with pytest.raises(harness.InputError, match="an object of type int is no model"):
        evaluated({"mine": Dense(3)})


def test_an_empty_ranking_is_judged():
    # From five queries on, a function that returns nothing has failed.
    queries = dict(list(QUERIES.items())[:4])
    qrels = {query_id: QRELS[query_id] for query_id in queries}
    retrievers = {"bm25": BM25(), "silent": Function(lambda text, depth: [])}
    results = evaluated(retrievers, queries=queries, qrels=qrels)
    judged = read_or_evaluate(results).judged_shares
    assert judged["silent"] == 1 > judged["bm25"]
