"""Mistakes in the arguments of Python, each in one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import harness
from harness import InputError
from harness.notebook.document_values import parse_conditions
from harness.notebook.retriever_tables import retriever_tables
from retrievers.dense import Dense
from retrievers.fused import Fused

RUN = {"q1": ["a", "b"]}
LABELS = {"q1": {"a": 1}}
COMPARED = {"runs": {"a": RUN, "b": RUN}, "qrels": LABELS}
TEXTS = {
    "documents": {"a": "a red apple", "b": "a green pear"},
    "queries": {"q1": "apple", "q2": "pear"},
    "qrels": {"q1": ["a"], "q2": ["b"]},
    "retrievers": {"bm25": "bm25"},
    "primary": "RR",
    "progress": False,
}
EVENTS = pd.DataFrame(
    [("q1", "a", "click"), ("q1", "b", "view"), ("q2", "b", "click")],
    columns=["query_id", "doc_id", "action"],
)
SCORES = pd.DataFrame(
    [("q1", "a", 2.0), ("q1", "b", 1.0)], columns=["query_id", "doc_id", "score"]
)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"qrels": "docs"}, "qrels: 'docs' is a folder"),
        ({"qrels": Path("docs")}, "qrels: 'docs' is a folder"),
        ({"qrels": "nope.trec"}, "qrels: there is no file 'nope.trec'"),
        ({"qrels": ""}, "qrels: there is no file ''"),
        ({"qrels": 3}, "qrels: cannot be read: it is of type int"),
        ({"runs": "docs"}, "runs: is a str"),
        ({"runs": {"a": "docs", "b": RUN}}, "runs['a']: 'docs' is a folder"),
        ({"runs": {"a": "nope", "b": RUN}}, "runs['a']: there is no file 'nope'"),
        ({"runs": {1: RUN, 2: RUN}}, "runs: is of type int"),
        ({"measures": 3}, "measures: is of type int"),
        ({"measures": ["RR", 3]}, "measures: is of type list"),
        ({"measures": []}, "measures: names none"),
        ({"qrels": []}, "qrels: there are no labels"),
        ({"qrels": EVENTS[:0]}, "qrels: there are no labels"),
        (
            {"runs": {"a": RUN, "b": SCORES[:0]}},
            "runs['b']: none of its queries is judged",
        ),
        (
            {"measures": "P(groups='first')@1"},
            "measure \"P(groups='first')@1\": there are no AND/OR groups in qrels",
        ),
        ({"baseline": 3}, "baseline: is of type int"),
        ({"baseline": "c"}, "baseline: no run is called 'c'"),
        ({"margin": "x"}, "margin: 'x'"),
        ({"margin": -1}, "margin: -1.0 is not a number above 0"),
        ({"margin": 5}, "margin: 5 is larger than the measure's range (0 to 1)"),
        ({"alpha": 3}, "alpha: 3.0 is not between 0.0001 and 0.5"),
        ({"test": "x"}, "test: 'x': should be 'wilcoxon', 'randomization' or 't'"),
        ({"correction": 3}, "correction: 3: should be 'holm', 'bonferroni' or 'bh'"),
        ({"seed": "x"}, "seed: is no whole number"),
        ({"seed": True}, "seed: is no whole number"),
        ({"where": {"action": "click"}}, "where: chooses rows of a table of labels"),
        ({"where": {"action": []}}, "where: 'action' has no values"),
        ({"qrels": EVENTS, "where": {"action": "x"}}, "where: no row has action = 'x'"),
        (
            {"qrels": pd.Series(["a", "b"], index=["q1", "q1"])},
            "qrels: the index has 'q1' twice",
        ),
        ({"qrels": EVENTS}, "qrels: 'action' has 'click' (2), 'view' (1)"),
        (
            {"cluster": "need", "alpha_spent": True},
            "settings: unknown: cluster, alpha_spent "
            "(use test, correction, alpha, margin, seed)",
        ),
        ({"weight": "traffic"}, "settings: unknown: weight"),
        ({"judged_by_people": False}, "settings: unknown: judged_by_people"),
    ],
)
def test_a_mistake_in_compare_is_one_sentence(changed: dict[str, Any], sentence: str):
    with pytest.raises(InputError) as refused:
        harness.compare(**{**COMPARED, **changed})
    (problem,) = refused.value.problems
    assert str(problem).startswith(sentence)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"qrels": "docs"}, "qrels: 'docs' is a folder"),
        ({"qrels": "nope"}, "qrels: there is no file 'nope'"),
        ({"queries": 3}, "queries: cannot be read: it is of type int"),
        ({"columns": "text"}, "columns: is of type str"),
        ({"where": "click"}, "where: is of type str"),
        ({"where": {"action": "click"}}, "where: chooses rows of a table of labels"),
        (
            {"qrels": EVENTS, "where": {"action": "x"}},
            "where: no row has action = 'x'",
        ),
        ({"documents": {}, "qrels": None}, "documents and queries in memory: the corp"),
        ({"dataset": "docs"}, "dataset: is not an argument"),
        ({"primary": 3}, "primary: is of type int"),
        ({"primary": "zz", "measures": []}, "primary: 'zz': there is no measure"),
        ({"measures": 3}, "measures: is of type int"),
        ({"retrievers": "bm25"}, "retrievers: is of type str"),
        ({"statistics": None}, "statistics: is of type NoneType"),
    ],
)
def test_a_mistake_in_evaluate_is_one_sentence(changed: dict[str, Any], sentence: str):
    with pytest.raises(InputError) as refused:
        harness.evaluate(**{**TEXTS, **changed})
    (problem,) = refused.value.problems
    assert str(problem).startswith(sentence)


@pytest.mark.parametrize("function", [harness.run, harness.run_sets])
def test_what_is_no_experiment_is_refused(function):
    with pytest.raises(InputError, match="experiment: is of type int"):
        function(3)


def test_what_is_no_folder_of_results_is_refused():
    with pytest.raises(InputError, match="folder: is of type int"):
        harness.open_results(3)  # type: ignore[arg-type]


def test_what_is_no_chart_and_no_results_is_refused():
    results = harness.evaluate(**TEXTS)
    with pytest.raises(InputError, match="chart: is of type int"):
        results.plot(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="others: is of type int"):
        results.compare(3)  # type: ignore[arg-type]


def test_what_is_no_path_or_name_is_refused():
    with pytest.raises(InputError, match="reference: is of type NoneType"):
        harness.load_dataset(None)  # type: ignore[arg-type]
    results = harness.evaluate(**TEXTS)
    with pytest.raises(InputError, match="path: is of type int"):
        results.report(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="folder: is of type int"):
        results.save(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="baseline: is of type int"):
        results.compare(baseline=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no retriever is called 3"):
        results.rankings(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown tracker 3"):
        results.log_to(3)  # type: ignore[arg-type]


def test_a_remedy_of_saving_names_no_option():
    results = harness.evaluate(**TEXTS)
    Path("file").touch()
    with pytest.raises(InputError, match=r"\(choose another folder of results\)$"):
        results.save("file/results")


def test_numbers_of_numpy_are_numbers():
    numbers = {"seed": np.int64(3), "margin": np.float32(0.5)}
    evaluated = harness.evaluate(
        **TEXTS,
        **numbers,
        depth=np.int32(20),
        report=np.bool_(True),
        statistics={"alpha": np.float64(0.01)},
    )
    resolved = evaluated.manifest.resolved
    assert (resolved.seed, resolved.depth, resolved.report) == (3, 20, True)
    assert resolved.statistics.margin == 0.5
    grades = {"q1": {"a": np.True_}, "q2": {"b": np.int8(1)}}
    assert len(harness.evaluate(**{**TEXTS, "qrels": grades}).scores) == 6
    compared = harness.compare(**COMPARED, **numbers)
    assert repr(compared) == repr(harness.compare(**COMPARED))


def test_measures_and_labels_may_be_a_generator_and_a_series():
    compared = harness.compare(
        {"a": pd.Series(RUN), "b": RUN},
        pd.Series({"q1": ["a"]}),
        (name for name in ["RR", "P@1"]),
    )
    assert set(compared.summary["measure"]) == {"RR", "P@1"}
    assert repr(compared).endswith("a 1.0000, b 1.0000>")


def test_two_functions_of_one_name_stay_two_parts():
    def ones(texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]

    def twos(texts: list[str]) -> list[list[float]]:
        return [[2.0] for _ in texts]

    twos.__qualname__ = ones.__qualname__
    retrievers = {"both": Fused([Dense(len), Dense(ones)]), "both-2": Dense(twos)}
    fused, dense = retriever_tables(retrievers)
    _, part = fused["of"]
    assert part["encoder"]["call"].value is ones
    assert dense["encoder"]["call"].value is twos
    assert part["encoder"]["call"] != dense["encoder"]["call"]


ROWS = EVENTS.to_dict("records")
QUERY_ROWS = [
    {"query": TEXTS["queries"][row["query_id"]], **row}  # type: ignore[index]
    for row in ROWS
]
WITH_LABELS = {
    "qrels": None,
    "columns": {"label_document": "doc_id"},
}


def label_count(results: harness.Results) -> int:
    return len((Path(results.folder) / "qrels.trec").read_text().splitlines())


@pytest.mark.parametrize(
    "changed",
    [
        {"qrels": EVENTS},
        {"qrels": ROWS},
        {"queries": pd.DataFrame(QUERY_ROWS), **WITH_LABELS},
        {"queries": QUERY_ROWS, **WITH_LABELS},
    ],
    ids=["frame", "dicts", "frame of queries", "dicts of queries"],
)
def test_rows_of_one_kind_are_labels_in_memory_too(changed: dict[str, Any]):
    given = {**TEXTS, **changed}
    with pytest.raises(InputError, match=r'where=\{"action": "click"\}'):
        harness.evaluate(**given)
    results = harness.evaluate(**given, where={"action": "click"})
    assert label_count(results) == 2
    both = harness.evaluate(**given, where={"action": ["click", "view"]})
    series = pd.Series(["click", "view"])
    assert parse_conditions({"action": series}) == {"action": ("click", "view")}
    assert label_count(both) == 3


def test_a_condition_that_no_row_meets_names_what_there_is():
    with pytest.raises(InputError, match=r"no row has action = 'clik'.*'click' \(2\)"):
        harness.evaluate(**{**TEXTS, "qrels": EVENTS}, where={"action": "clik"})


def test_compare_takes_rows_of_one_kind_as_labels():
    compared = harness.compare(
        {"a": {"q1": ["a"], "q2": ["b"]}, "b": {"q1": ["b"], "q2": ["b"]}},
        EVENTS,
        "RR",
        where={"action": "click"},
    )
    means = compared.summary.set_index("retriever")["mean"]
    assert means.to_dict() == {"a": 1.0, "b": 0.5}


GRADED = pd.DataFrame(
    [("q1", "a", 0, 2), ("q1", "b", 1, 0), ("q2", "b", 1, 1)],
    columns=["topic", "page", "relevance", "by_ann"],
)
GRADED_COLUMNS = {"label_query": "topic", "label_document": "page"}


def test_declared_columns_of_a_frame_of_labels_count():
    columns = {**GRADED_COLUMNS, "grade": "by_ann"}
    results = harness.evaluate(**{**TEXTS, "qrels": GRADED, "columns": columns})
    assert results.queries["q1"].labels.grades == {"a": 2, "b": 0}


def test_a_declared_column_that_a_frame_of_labels_lacks_is_refused():
    columns = {**GRADED_COLUMNS, "grade": "by_bob"}
    with pytest.raises(InputError, match="qrels:1: there is no column 'by_bob'"):
        harness.evaluate(**{**TEXTS, "qrels": GRADED, "columns": columns})
