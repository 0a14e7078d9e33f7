"""What results and reports make of labels of people, of models, and of both."""

import json
import re

import pytest

import harness
from harness.dataset import DatasetReference, Labels, load_dataset
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.evaluation.warning_sentences import warning_sentences
from harness.experiment import RelevanceConfig
from harness.scoring.other_grades import labels_by_person, other_grades
from tests.support import small
from tests.support.labels_small import judged, write

ALL = [id_ for id_, _, _ in small.QUERIES]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Run the small experiment with judgments; `report` writes the report, too."""

    def run(output, questions=small.QUERIES, *, report=False):
        parent = tmp_path_factory.mktemp("judged")
        folder = small.dataset(parent / "data")
        rows = [{"id": id_, "query": text} for id_, text, _ in questions]
        (folder / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
        write(folder / "judgments.jsonl", output(folder))
        return harness.run(
            small.experiment(parent, report=report),
            harness.RunOptions(results=parent / "results"),
        )

    return run


def shown_text(results):
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", body)


def test_comparing_says_what_nobody_judged_as_a_run_does(ran, capsys):
    results = ran(lambda folder: judged(folder, ALL, depth=4))
    (caution,) = warning_sentences(read_or_evaluate(results).warnings)
    assert "documents without a label count as irrelevant" in caution
    assert caution in small.told(capsys, "compare", results.folder)


def test_where_no_person_judged_nothing_is_claimed(ran, capsys):
    results = ran(lambda folder: judged(folder, ALL, "m", "llm"), report=True)
    assert not read_or_evaluate(results).settings.judged_by_people
    assert set(results.comparisons["verdict"]) == {"undecided: judged by a model alone"}
    for text in (
        shown_text(results),
        (results.folder / "report.md").read_text(encoding="utf-8"),
    ):
        assert "shown" not in text.lower().replace("no person", "")
        assert "Only a model judged" in text
    gate = (
        "gate",
        results.folder,
        "--baseline",
        "bm25",
        "--challenger",
        "hashing",
        "--margin",
        "0.1",
    )
    assert "no person judged" in small.told(capsys, *gate, code=1)
    printed = json.loads(small.told(capsys, *gate, "--json", code=1))
    assert printed["outcome"] == "not shown"
    misspelt = [word.replace("hashing", "hashin") for word in map(str, gate)]
    refused = small.told(capsys, *misspelt, "--fail-if", "worse", code=2)
    assert "holds no retriever 'hashin'" in refused
    lenient = small.told(capsys, *gate, "--fail-if", "worse", "--format", "github")
    assert lenient.startswith("::notice title=Retrieval gate: not shown::")
    assert "shown" not in small.told(capsys, "report", results.folder)
    assert "Only a model judged" in small.told(capsys, "compare", results.folder)


def test_what_people_did_not_finish_makes_no_score(ran):
    results = ran(
        lambda folder: [
            *judged(folder, ALL[:3]),
            *judged(folder, ["q-green"])[:2],
            *judged(folder, ALL, "m", "llm"),
        ]
    )
    assert results.queries["q-green"].labels.source == "mixed"
    assert set(results.scores["query_id"]) == set(ALL[:3])


def test_a_labeller_of_lists_keeps_his_order_under_every_rule(project):
    folder = project / "datasets" / "survey-templates-en"
    labels = load_dataset(
        DatasetReference(folder, queries=("labels-a.json", "labels-b.json"))
    ).labels
    by_person = labels_by_person(labels)["a"]
    alone = load_dataset(DatasetReference(folder, queries=("labels-a.json",))).labels
    assert by_person.keys() == alone.keys()
    for query_id, query_labels in by_person.items():
        assert query_labels.ranked == alone[query_id].ranked
    readings = other_grades(labels, RelevanceConfig())
    assert {"linear", "by b"} <= set(readings) and readings["by a"] == other_grades(
        alone, RelevanceConfig()
    )["linear"]


def test_declared_binary_grades_are_compared_with_the_given_ones() -> None:
    labels = {"q": Labels(grades={"a": 3, "b": 0})}
    readings = other_grades(labels, RelevanceConfig(grades="binary"))
    assert list(readings.items()) == [
        ("binary", {"q": {"a": 1, "b": 0}}),
        ("as given", {"q": {"a": 3, "b": 0}}),
    ]
