"""The shapes that `harness.compare` takes, and its progress."""

from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import harness
from harness.evaluation.compare import compare_retrievers
from harness.measures import parse_measure_list
from harness.scoring.trec_runs import score_trec_runs
from harness.stats.settings import Settings
from retrievers.errors import InputError
from retrievers.files.trec_files import write_trec_run
from retrievers.types import ranked
from tests.support import small

QRELS = {
    "q1": {"d1": 2, "d2": 0},
    "q2": {"d2": 1},
    "q3": {"d3": 1},
    "q4": {"d1": 1, "d3": 3},
}
A = {
    "q1": {"d1": 3.0, "d2": 1.0},
    "q2": {"d1": 2.0, "d2": 1.5},
    "q3": {"d3": 1.0},
    "q4": {"d3": 4.0, "d1": 1.0},
}
B = {
    "q1": {"d2": 3.0, "d1": 1.0},
    "q2": {"d2": 2.0},
    "q3": {"d1": 2.0, "d3": 1.0},
    "q4": {"d2": 1.0},
}
MEASURES = ["nDCG@10", "RR", "P@1"]
TWICE = pd.DataFrame(
    {
        "query_id": ["q1", "q1"],
        "doc_id": ["d1", "d1"],
        "score": [1, 0],
        "relevance": [1, 0],
    }
)


def frame(run, columns=("query_id", "doc_id", "score")):
    return pd.DataFrame(
        [(q, d, s) for q, hits in run.items() for d, s in hits.items()],
        columns=list(columns),
    )


@pytest.fixture
def files(tmp_path):
    from retrievers.files.trec_files import write_trec_qrels

    write_trec_qrels(tmp_path / "qrels", QRELS)
    for name, hits_of in (("a", A), ("b", B)):
        rankings = {
            query: ranked(list(hits), list(hits.values()))
            for query, hits in hits_of.items()
        }
        write_trec_run(tmp_path / f"{name}.run", rankings, tag=name)
    return tmp_path


def by_score(hits):
    """The documents of a query, best first."""
    return sorted(hits, key=lambda doc: -hits[doc])


def shapes(files):
    """The runs and the labels in every shape."""
    labels = ("query_id", "doc_id", "relevance")
    return {
        "dicts": ({"a": A, "b": B}, QRELS),
        "lists": (
            {
                "a": {query_id: by_score(hits) for query_id, hits in A.items()},
                "b": {query_id: by_score(hits) for query_id, hits in B.items()},
            },
            QRELS,
        ),
        "frames": ({"a": frame(A), "b": frame(B)}, frame(QRELS, labels)),
        "pyterrier": (
            {"a": frame(A, ("qid", "docno", "score")), "b": B},
            frame(QRELS, ("qid", "docno", "label")),
        ),
        "files": ({"a": files / "a.run", "b": str(files / "b.run")}, files / "qrels"),
    }


@pytest.mark.parametrize("shape", ["dicts", "lists", "frames", "pyterrier", "files"])
def test_every_shape_scores_as_the_command_does(files, shape):
    runs, qrels = shapes(files)[shape]
    compared = harness.compare(runs, qrels, MEASURES)
    scored = score_trec_runs(
        files / "qrels",
        [files / "a.run", files / "b.run"],
        parse_measure_list(MEASURES),
    )
    assert list(compared.scores.itertuples(index=False, name=None)) == [
        tuple(row) for row in scored.rows()
    ]
    rows = compare_retrievers(scored, settings=Settings())
    assert compared.comparisons["p_value"].tolist() == [row.p_value for row in rows]
    assert compared.sentences and "<table" in compared._repr_html_()
    assert harness.compare(runs, qrels, "RR").scores["measure"].unique().tolist() == [
        "RR"
    ]


@pytest.mark.parametrize(
    ("runs", "qrels", "message"),
    [
        ({"a": A}, QRELS, "there is only one run"),
        ({"a": A, "b": {"x": {"d": 1.0}}}, QRELS, "none of its queries is judged"),
        (
            {"a": A, "b": {"q1": "d1"}},
            QRELS,
            r"runs\['b'\]\['q1'\]: is neither a list nor a dict",
        ),
        ([A, B], QRELS, "runs: is a list"),
        ({"a": A, "b": {"q1": {"d1", "d2"}}}, QRELS, "is neither a list nor a dict"),
        ({"a": A, "b": B}, {"q1": [("d1", 1)]}, r"\('d1', 1\) is not an id"),
        (
            {"a": A, "b": frame({None: {"d1": 1.0}, "q1": {"d1": 1.0}})},
            QRELS,
            r"\['query_id'\]: a row is without an id",
        ),
        ({"a": A, "b": 5}, QRELS, "it is of type int"),
        ({"a": A, "b": pd.DataFrame({"x": [1]})}, QRELS, "its columns are _id, x"),
        ({"a": A, "b": B}, {}, "no labels"),
        ({"a": A, "b": B}, {"q1": {"d1": 0.5}}, "is not a whole number"),
        (
            {"a": A, "b": B},
            {"q1": {"d1": 10**400}},
            r"is not a whole number .a grade is a whole number below 2\^31",
        ),
        ({"a": A, "b": {"q1": {"d1": "x"}}}, {"q1": {"d1": 1}}, "'x' is not a score"),
        ({"a": A, "b": B}, {"q1": 3}, "is neither a dict nor a list"),
        (
            {"a": A, "b": {1: {"d1": 1.0}, "1": {"d1": 2.0}}},
            QRELS,
            r"runs\['b'\]: query '1' occurs twice",
        ),
        (
            {"a": A, "b": TWICE},
            QRELS,
            r"runs\['b'\]\['q1'\]: document 'd1' occurs twice",
        ),
        ({"a": A, "b": B}, TWICE, r"qrels\['q1'\]: document 'd1' occurs twice"),
        (
            {"a": A, "b": B},
            {1: {"d": 1}, "1": {"d": 0}},
            "qrels: query '1' occurs twice",
        ),
    ],
)
def test_a_run_or_labels_of_another_shape_are_refused(runs, qrels, message):
    with pytest.raises(InputError, match=message):
        harness.compare(runs, qrels, ["RR"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"measures": ["nDGC@10"]}, "nDCG"), ({"alfa": 0.1}, "alfa")],
    ids=["a measure", "a setting"],
)
def test_an_unknown_measure_or_setting_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        harness.compare({"a": A, "b": B}, QRELS, **arguments)


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small.experiment(tmp_path)


def test_progress_is_not_shown_outside_of_a_terminal(experiment, capsys):
    harness.run(experiment, harness.RunOptions(results="out"))
    harness.compare({"a": A, "b": B}, QRELS)
    assert capsys.readouterr().err == ""


def test_progress_is_shown_on_request(experiment, capsys):
    harness.run(experiment, harness.RunOptions(results="out"), progress=True)
    assert "bm25: search: 6 texts" in capsys.readouterr().err


def test_a_function_of_progress_replaces_the_display(experiment, capsys):
    names = []
    options = harness.RunOptions(
        results="out", on_progress=lambda name, meter: names.append(name)
    )
    harness.run(experiment, options, progress=True)
    assert "bm25" in names
    assert capsys.readouterr().err == ""


def test_progress_is_shown_in_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    harness.compare({"a": A, "b": B}, QRELS)
    assert "comparing: " in capsys.readouterr().err


def test_results_that_a_later_run_replaced_are_refused(experiment):
    earlier = harness.run(experiment, harness.RunOptions(results="out"))
    saved = earlier.save("saved")
    earlier.report()
    later = harness.run(experiment, harness.RunOptions(results="out"))
    uses = (
        earlier.report,
        earlier.plot,
        earlier.to_mteb,
        partial(earlier.save, "again"),
        partial(earlier.compare, saved),
        partial(harness.open_results(saved).compare, earlier),
    )
    folder = str(later.folder)
    message = (
        f"{folder}: a later run replaced these results "
        f"(open its results: harness.open_results({folder!r}))"
    )
    assert [str(small.refusal(use)) for use in uses] == [message] * len(uses)
    assert not list(Path().glob("again*"))
    assert later.report() == later.folder / "report.html"
