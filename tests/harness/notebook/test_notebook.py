"""`harness.evaluate` on what is in memory, and what its results can do."""

import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest

import harness
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.experiment import load
from harness.measures import measure_rankings, parse_measure
from harness.pipeline import run
from harness.running.options import RunOptions
from retrievers.bm25 import BM25
from retrievers.conditions import Condition
from retrievers.dense import Dense
from retrievers.encoders.hashing import HashingEncoder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.encoders.python_encoder import PythonEncoder
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


def letters(texts):
    return np.array(
        [
            [text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]
            for text in texts
        ],
        dtype=float,
    )


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
    bm25, dense = BM25(), Dense(letters)
    return evaluated(
        {"bm25": bm25, "letters": dense, "both": Fused([bm25, dense])}, baseline="bm25"
    )


def rows(table):
    return [{"doc_id": key, "text": text} for key, text in table.items()]


class Split(list):
    """As a data set of Hugging Face is asked: rows, and the names of their columns."""

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


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_the_same_data(results, shape):
    documents, queries, qrels = SHAPES[shape]
    evaluation = evaluated({"bm25": "bm25"}, documents, queries, qrels)
    if shape == "tables":
        assert evaluation.manifest.dataset.digest == results.manifest.dataset.digest
    bm25 = results.scores[results.scores["retriever"] == "bm25"]
    assert evaluation.scores["value"].tolist() == bm25["value"].tolist()
    labelled = pd.DataFrame(
        [{"qid": q, "query": QUERIES[q], "relevant": docs} for q, docs in QRELS.items()]
    )
    evaluation = evaluated(
        {"bm25": "bm25"}, documents, labelled, None, primary="RR"
    )  # queries may bring their labels
    assert (
        evaluation.scores["value"].tolist()
        == bm25[bm25["measure"] == "RR"]["value"].tolist()
    )


@pytest.mark.parametrize("shape", ["csv", "trec", "folder"])
def test_parts_may_be_files(results, tmp_path, shape):
    documents = tmp_path / "documents.csv"
    pd.DataFrame(rows(DOCUMENTS)).to_csv(documents, index=False)
    qrels = tmp_path / "qrels"
    qrels.write_text(
        "".join(f"{q} 0 {d} 1\n" for q, docs in QRELS.items() for d in docs),
        encoding="utf-8",
    )
    queries = tmp_path / "questions.csv"
    pd.DataFrame({"qid": QUERIES.keys(), "query": QUERIES.values()}).to_csv(
        queries, index=False
    )
    if shape == "csv":
        qrels = tmp_path / "labels.csv"
        frame = [(q, d, 1) for q, docs in QRELS.items() for d in docs]
        pd.DataFrame(frame, columns=["qid", "docno", "label"]).to_csv(
            qrels, index=False
        )
    parts = (
        (small.dataset(tmp_path / "data"), None, None)
        if shape == "folder"
        else (documents, str(queries), qrels)
    )
    evaluation = evaluated({"bm25": "bm25"}, *parts)
    assert evaluation.manifest.dataset.queries == len(QUERIES)
    assert (
        shape == "folder"
        or evaluation.manifest.dataset.digest
        == evaluated({"bm25": "bm25"}).manifest.dataset.digest
    )


def test_an_experiment_file_or_one_built_in_code_comes_to_the_same_figures(tmp_path):
    data, path = small.dataset(tmp_path / "data"), small.experiment(tmp_path)
    file_results = run(path, RunOptions(tmp_path / "out"))
    assert repr(file_results) == "<Results 'small': 3 retrievers, 6 queries>"
    retrievers = {
        "bm25": "bm25",
        "hashing": {"encoder": {"kind": "hashing", "dimensions": 64}},
        "hybrid": Fused([BM25(), Dense({"kind": "hashing", "dimensions": 64})]),
    }
    resolved, loaded = file_results.manifest.resolved, load(path)
    evaluation = harness.evaluate(
        data,
        None,
        None,
        retrievers,
        primary=resolved.primary,
        measures=resolved.measures,
        baseline=resolved.baseline,
        depth=resolved.depth,
        statistics=dict(resolved.statistics),
        relevance=dict(resolved.relevance),
    )
    sources = (loaded.experiment, dict(loaded.tables))
    for results in (
        evaluation,
        *(
            run(source, RunOptions(tmp_path / str(index)))
            for index, source in enumerate(sources)
        ),
    ):
        for name in ("scores", "summary", "comparisons"):
            pd.testing.assert_frame_equal(
                getattr(results, name), getattr(file_results, name)
            )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"qrels": {**QRELS, "q-rails": ["trane"], "q-swim": ["fish", "whale"]}},
            "qrels: query 'q-rails' names document 'trane', which does not exist (did you mean 'train'? correct the id, or "
            'set relevance={"dangling": "drop"})',
        ),
        (
            {"qrels": {**QRELS, "q-none": ["car"]}},
            "qrels: labels name query 'q-none', which does not exist",
        ),
        (
            {"qrels": {"q-rails": 3}},
            "qrels['q-rails']: is neither a dict nor a list ({document: grade}, or the relevant",
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
        ({"documents": "nowhere.csv"}, "nowhere.csv: no such folder"),
        ({"queries": None}, "queries: is None ({id"),
        (
            {"retrievers": {"my model": letters}},
            "retrievers['my model']: is not a name: letters, digits",
        ),
        ({"retrievers": ["bm25"]}, "retrievers: is of type list (give each a name: {"),
        (
            {"retrievers": {"a": 3}},
            "retrievers['a']: an object of type int is not a retriever (a name, an object",
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
            "measure 'ndgc@3': there is no measure 'ndgc' (did you mean 'nDCG'?)",
        ),
    ],
)
def test_mistakes_are_told_with_the_argument(changes, message):
    arguments = {
        "documents": DOCUMENTS,
        "queries": QUERIES,
        "qrels": QRELS,
        "retrievers": {"bm25": "bm25"},
        **MEASURES,
    }
    assert message in str(small.refusal(harness.evaluate, **{**arguments, **changes}))


def test_lists_are_named_by_their_places_and_judgments_of_absent_documents_may_be_left_out():
    qrels = [[int(NUMBERS[doc]) for doc in docs] for docs in QRELS.values()]
    evaluation = evaluated(
        {"bm25": "bm25"}, list(DOCUMENTS.values()), list(QUERIES.values()), qrels
    )
    assert sorted(set(evaluation.scores["query_id"])) == [
        str(number) for number in range(len(QUERIES))
    ]
    qrels = {**QRELS, "q-rails": ["train", "trane"]}
    evaluation = evaluated(
        {"bm25": "bm25"}, qrels=qrels, relevance={"dangling": "drop"}
    )
    assert evaluation.manifest.ledger.dataset["dangling-document"] == ("q-rails trane",)


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
        (lambda texts: 1 / 0, "ZeroDivisionError: division by zero (test_notebook.py:"),
        (
            lambda texts: np.full((len(texts), 2), np.nan),
            "a vector that is not finite came back",
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
def test_what_a_function_does_wrong_is_its_own_failure(encode, message):
    evaluation = evaluated({"bm25": "bm25", "mine": encode})
    assert evaluation.retrievers == ("bm25",)
    assert message in evaluation.manifest.failed["mine"]


def test_a_function_is_asked_once_for_each_text():
    embedded_texts, rows = [], np.zeros((6, 26), dtype=np.float32)

    def embed(texts, role):
        embedded_texts.extend(texts)
        rows[: len(texts)] = letters(texts)
        return rows[: len(texts)]  # the same array in every call

    first = evaluated({"mine": embed, "letters": letters})
    assert first.rankings("mine") == first.rankings("letters")
    assert sorted(embedded_texts) == sorted([*DOCUMENTS.values(), *QUERIES.values()])
    again = evaluated({"mine": embed, "bm25": "bm25"})
    assert again.rankings("mine") == first.rankings("mine")
    assert len(embedded_texts) == len(DOCUMENTS) + len(QUERIES)
    assert again.retrievers == ("mine", "bm25")


def test_a_model_that_was_trained_further_is_asked_anew():
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


def test_what_was_embedded_is_kept_where_a_cell_is_interrupted():
    batch_sizes = []

    def embed(texts):
        if len(batch_sizes) == 2:
            batch_sizes.append(None)
            raise KeyboardInterrupt
        batch_sizes.append(len(texts))
        return letters(texts)

    with pytest.raises(KeyboardInterrupt):
        evaluated({"mine": called(embed, batch_size=2)})
    evaluated({"mine": called(embed, batch_size=2)})
    assert sum(filter(None, batch_sizes)) == len(DOCUMENTS) + len(QUERIES)
    cached_counts = [
        evaluated({"mine": called(lambda texts: letters(texts), cache=name)})
        .costs["cached"]
        .sum()
        for name in ("letters-7", "letters-7", "", "")
    ]
    assert cached_counts == [
        0,
        len(DOCUMENTS) + len(QUERIES),
        0,
        0,
    ]  # a named version is kept on disk


def test_objects_are_asked_in_their_own_way(results):
    signs = {"query": -1, "document": 1, None: 1}
    table = {"encoder": {"kind": "python", "call": NamedObject.wrap(letters, "x")}}
    objects = {
        "role": lambda texts, role: letters(texts) * signs[role],
        "mteb": SimpleNamespace(
            encode=lambda texts, *, prompt_type=None: (
                letters(texts) * signs[prompt_type]
            )
        ),
        "two": SimpleNamespace(
            encode_query=lambda texts: -letters(texts), encode_document=letters
        ),
    }
    evaluation = evaluated({**objects, "table": table})
    worst = evaluation.rankings("role")
    assert evaluation.rankings("mteb") == evaluation.rankings("two") == worst
    assert evaluation.rankings("table") == results.rankings("letters") != worst
    assert (
        "usd_per_million_tokens"
        not in evaluation.manifest.retrievers["table"].provenance
    )  # nobody knows


def test_a_model_is_as_good_as_its_name(tmp_path):
    from sentence_transformers import CrossEncoder, SentenceTransformer

    folder = tiny.bi_encoder(
        tmp_path, prompts={"query": "query : ", "document": "passage : "}
    )
    model = SentenceTransformer(str(folder), device="cpu")
    evaluation = evaluated(
        {
            "object": model,
            "name": str(folder),
            "again": SentenceTransformer(str(folder), device="cpu"),
        }
    )
    assert evaluation.rankings("object") == evaluation.rankings("name")
    provenance = evaluation.manifest.retrievers["object"].provenance
    assert provenance["source"] == "object"
    assert provenance["query_prompt"] == "query : "
    embedded = evaluation.costs[
        evaluation.costs["stage"] == "embed-documents"
    ].set_index("retriever")
    assert embedded.loc["again", "cached"] == len(
        DOCUMENTS
    )  # the same weights, in another object
    assert embedded.loc["object", "tokens"] == embedded.loc["name", "tokens"] > 0
    model.prompts["query"] = "title : "
    changed = evaluated({"object": model}).manifest.retrievers["object"].provenance
    assert changed["sha256"] != provenance["sha256"]
    library = type(
        "SentenceTransformer",
        (),
        {"__module__": "sentence_transformers.x", "encode": lambda self: 1},
    )
    assert kind_of_library_model(library()) == "sentence-transformers"
    assert (
        kind_of_library_model(type("Own", (library,), {"encode": lambda self: 2})())
        == ""
    )  # what it does is left to it
    folder = tiny.cross_encoder(tmp_path / "cross")
    models = {"object": CrossEncoder(str(folder), device="cpu"), "name": str(folder)}
    evaluation = evaluated(
        {
            "bm25": "bm25",
            **{
                name: Reranked(BM25(), model, depth=3) for name, model in models.items()
            },
        }
    )
    assert (
        evaluation.rankings("object")
        == evaluation.rankings("name")
        != evaluation.rankings("bm25")
    )
    with pytest.raises(
        harness.InputError, match="reranker: a function is not a CrossEncoder"
    ):
        Reranked(BM25(), letters)


def first(grades, ranking):
    return float(grades.get(ranking[0], 0) > 0)


def test_a_measure_of_ones_own_is_tested_as_any_other(results, capsys, tmp_path):
    first_measure, wide_measure = (
        harness.measure("first", first),
        harness.measure("wide", lambda grades, ranking: -2.0, range=(-4, 2)),
    )
    evaluation = evaluated(
        {"bm25": "bm25", "letters": letters},
        measures=["P@1", first_measure, wide_measure],
    )
    values = evaluation.scores.pivot_table(
        index=["retriever", "query_id"], columns="measure", values="value"
    )
    assert values["own.first"].tolist() == values["P@1"].tolist()
    assert set(values["own.wide(high=2.0, low=-4.0)"]) == {-2.0}
    tests = evaluation.comparisons.set_index("measure")
    for column in ("p_value", "p_randomization", "ci_low", "ci_high"):
        assert tests.loc["own.first", column] == tests.loc["P@1", column]
    primary = evaluated(
        {"bm25": "bm25", "letters": letters}, primary=first_measure, measures=["P@1"]
    )
    folder = primary.save(tmp_path / "own")
    assert "own.first" in (folder / "report.md").read_text(encoding="utf-8")
    assert small.ended("score", folder) == 0
    assert (
        small.ended(
            "gate",
            folder,
            "--baseline",
            "bm25",
            "--challenger",
            "letters",
            "--margin",
            "0.1",
        )
        == 1
    )
    compared = harness.compare(
        {"a": {"q": ["x"]}, "b": {"q": ["y"]}}, {"q": {"x": 1, "y": 0}}, first_measure
    )
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
            "is a function of another process",
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
def test_what_is_wrong_with_a_measure_of_ones_own(call, message):
    assert message in str(small.refusal(call))


def test_results_are_looked_into(results):
    assert repr(results) == "<Results 'evaluation': 3 retrievers, 6 queries>"
    assert results.sentences
    lost = results.queries(lost_by="letters", to="bm25")
    values = results.scores[results.scores["measure"] == "nDCG@3"].pivot(
        index="query_id", columns="retriever", values="value"
    )
    expected = (values["letters"] - values["bm25"])[values["letters"] < values["bm25"]]
    assert (
        dict(zip(lost["query_id"], lost["difference"], strict=True))
        == expected.to_dict()
    )
    assert lost["difference"].is_monotonic_increasing
    assert lost["text"].tolist() == [QUERIES[query] for query in lost["query_id"]]
    assert results.queries["q-rails"].query.text == "rails"
    for pair, message in (
        (("letters", "bm52"), "to: there is no retriever 'bm52' (did you mean 'bm25'"),
        ((None, "bm25"), "lost_by: there is no retriever None"),
        (("bm25", "bm25"), "are the same retriever"),
    ):
        assert message in str(
            small.refusal(results.queries, lost_by=pair[0], to=pair[1])
        )
    unlabelled = evaluated({"bm25": "bm25", "letters": letters}, qrels=None)
    assert (unlabelled.scored, unlabelled.sentences) == (False, ())
    assert "No query has labels" in unlabelled._repr_html_()


def test_results_are_saved_for_every_command_drawn_and_handed_on(
    results, tmp_path, capsys
):
    assert (
        results.report(tmp_path / ".page")
        .read_text(encoding="utf-8")
        .startswith("<!doctype html>")
    )
    assert results.plot()._repr_svg_().startswith("<svg")
    assert "there is no chart 'x'" in str(small.refusal(results.plot, "x"))
    means = results.summary.set_index(["retriever", "measure"])["mean"]
    assert (
        results.to_mteb()["bm25"]["scores"]["test"][0]["main_score"]
        == means["bm25", "nDCG@3"]
    )
    folder = results.save(tmp_path / "weekly")
    saved = harness.open_results(folder)
    assert saved.manifest.name == "weekly"
    assert (folder / "report.html").is_file()
    for name in ("scores", "summary", "comparisons"):
        pd.testing.assert_frame_equal(getattr(saved, name), getattr(results, name))
    results.save(folder)
    assert "folder 'my results': is not a name" in str(
        small.refusal(results.save, tmp_path / "my results")
    )
    assert [
        path.name for path in tmp_path.iterdir() if not path.name.startswith(".")
    ] == ["weekly"]
    others = evaluated({"bm25": "bm25", "letters": lambda texts: letters(texts)[:, :9]})
    compared = others.compare(folder)
    assert {"evaluation/letters", "weekly/letters", "bm25", "both"} == set(
        compared.summary["retriever"]
    )
    output = small.told(capsys, "reproduce", folder, "--trust", code=2)
    assert (
        "used objects that only that process had: documents and queries in memory and letters (letters)"
        in output
    )


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


def test_results_are_logged_to_wandb_where_it_is(results, monkeypatch):
    wandb = MagicMock(run=None, Html=lambda page, inject: page)
    run = wandb.init.return_value.__enter__.return_value
    run.id, run.config = "w1", {}
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    assert results.log_to("wandb", project="p") == "w1"
    wandb.init.assert_called_once_with(name="evaluation", project="p")
    assert run.config["baseline"] == "bm25"
    assert run.log.call_args.args[0]["report"].startswith("<!doctype html>")
    wandb.init.return_value.__exit__.assert_called_once()
    incomplete_wandb = MagicMock(run=None)
    incomplete_wandb.init.side_effect = ModuleNotFoundError("x", name="alembic")
    for tracker, module, message in (
        ("mlfow", None, "did you mean 'mlflow'"),
        ("wandb", None, "needs the package wandb"),
        (
            "wandb",
            incomplete_wandb,
            "wandb needs the package alembic (pip install wandb",
        ),
    ):
        monkeypatch.setitem(sys.modules, "wandb", module)
        assert message in str(small.refusal(results.log_to, tracker))


def test_names_are_all_that_there_is():
    assert dir(harness) == sorted(harness.__all__)
    assert all(getattr(harness, name).__doc__ for name in harness.__all__)
    with pytest.raises(AttributeError, match=r"no attribute 'Fusion'"):
        harness.Fusion("a", "b")


def test_a_function_is_named_in_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mymodel.py").write_text(
        "def embed(texts):\n    return [[len(text), 1.0] for text in texts]\n"
    )
    blocks = '[[retrievers]]\nname = "mine"\nencoder = { kind = "python", call = "mymodel:embed" }\n'
    path = small.experiment(tmp_path, retrievers=blocks)
    assert run(path, RunOptions("out")).retrievers == ("mine",)
    assert "runs code: encoder.call = mymodel:embed" in small.told(
        capsys, "run", path, "--no-code", code=2
    )


def test_a_notebook_sees_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    monkeypatch.setattr("harness.console.progress.REFRESH_SECONDS", 0)
    evaluated({"mine": called(letters, batch_size=2)}, progress=None)
    output = capsys.readouterr().err
    assert "\rmine: search" in output or "\rmine: embed-documents" in output
    assert "\rmine: embed-documents: 6 texts in " in output
    assert "\x1b" not in output  # no control characters that notebooks would show


def test_retrievers_compose_and_equal_parts_are_asked_once():
    embedded_texts = []

    def embed(texts):
        embedded_texts.extend(texts)
        return letters(texts)

    bm25, dense = BM25(), Dense(embed)
    inner = Fused(
        [bm25, Fused([Dense(embed), BM25(b=0.7)], constant=5)], weights=[2, 1]
    )
    retrievers = {
        "words": bm25,
        "meaning": dense,
        "hybrid": Fused([bm25, dense]),
        "inner": inner,
    }
    evaluation = evaluated(retrievers)
    parts = {
        block["name"]: block.get("of")
        for block in evaluation.manifest.resolved.retrievers
    }
    assert list(parts["hybrid"]) == ["words", "meaning"]
    assert (
        parts["inner"][0],
        parts["inner"][1]["kind"],
        parts["inner"][1]["of"][0],
    ) == (
        "words",
        "fusion",
        "meaning",
    )
    assert (
        len(embedded_texts)
        == len(set(embedded_texts))
        == len(set(DOCUMENTS.values()) | set(QUERIES.values()))
    )
    for query in QUERIES:
        runs = [evaluation.rankings(name)[query] for name in ("words", "meaning")]
        assert (
            evaluation.rankings("hybrid")[query].doc_ids
            == Fused(()).fuse(runs, 100).doc_ids
        )


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
def test_a_retriever_says_how_it_would_be_written(retriever, table):
    assert retriever.to_config() == table


def test_a_retriever_that_does_not_say_how_it_is_written_is_one_message():
    class Foreign(Retriever):
        index = search = None

    with pytest.raises(
        harness.InputError, match="a Foreign does not say how it is written"
    ):
        evaluated({"mine": Foreign()})
    with pytest.raises(harness.InputError, match="an object of type int is no model"):
        evaluated({"mine": Dense(3)})


def test_an_empty_answer_is_not_unjudged():
    judged = read_or_evaluate(
        evaluated({"bm25": BM25(), "silent": Function(lambda text, depth: [])})
    ).judged_shares
    assert judged["silent"] == 1 > judged["bm25"]
