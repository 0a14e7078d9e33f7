"""Two labellers' lists of the same queries: merged as the survey templates were, and each kept as a reading."""

import json

import pytest

from harness.dataset import DatasetReference, load
from harness.evaluation.grading import alternatives
from harness.experiment import Relevance
from retrievers.errors import InputError

BOTH = ("labels-a.json", "labels-b.json")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_shipped_lists_are_merged_as_their_readme_says(project, language):
    """queries-extended.json was merged by another program, by the rule in the README of the data set."""
    folder = project / "datasets" / f"survey-templates-{language}"
    merged = load(DatasetReference(folder, queries=BOTH))
    rows = json.loads((folder / "queries-extended.json").read_text(encoding="utf-8"))
    published = {row["id"]: tuple(row["relevant_documents"]) for row in rows}
    assert len(merged.queries) == 50
    assert {query: labels.ranked for query, labels in merged.labels.items()} == {
        query: published[query] for query in merged.labels
    }
    assert {labels.by for labels in merged.labels.values()} == {"a, b"}


def test_each_labeller_is_another_reading_of_the_results(project):
    folder = project / "datasets" / "survey-templates-en"
    readings = alternatives(load(DatasetReference(folder, queries=BOTH)).labels, Relevance())
    assert {"linear", "by a", "by b"} <= set(readings)
    alone = load(DatasetReference(folder, queries=("labels-a.json",))).labels
    rule = alternatives(alone, Relevance())["linear"]
    assert readings["by a"] == rule


def test_the_same_labeller_twice_is_still_a_repeated_query(project, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "x.md").write_text("# X\n\ntext", encoding="utf-8")
    rows = [{"id": "1", "query": "x", "labelled_by": "a", "relevant_documents": ["x"]}]
    for name in ("one.json", "two.json"):
        (folder / name).write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(InputError, match="query id '1' stands twice"):
        load(DatasetReference(folder, queries=("one.json", "two.json")))
