"""Labels for other tools: people's alone unless a model's are asked for, and a model stays a model when read again."""

import json

import pytest

from harness.dataset import DatasetReference, load, trec
from harness.dataset.judgments import NAME
from harness.evaluation.grading import labels_that_count
from tests import small
from tests.labels_small import judgment, write


@pytest.fixture
def mixed(tmp_path, monkeypatch):
    """A person judged one question, a person began another, and a model judged three."""
    monkeypatch.chdir(tmp_path)
    data = small.dataset(tmp_path / "data", labelled=False)
    model = {"judge": "judge-1", "kind": "llm"}
    write(data / NAME, [
        judgment("q-fruit", "apple", 3, asked=1), judgment("q-fruit", "apple", 0, **model),
        judgment("q-swim", "fish", 2, asked=2), judgment("q-swim", "boat", 3, **model),
        judgment("q-rails", "train", 1, **model),
    ])  # fmt: skip
    return data


def export(capsys, *words):
    return small.told(capsys, "labels", "export", "data", *words)


def test_people_alone_are_exported_unless_a_model_is_asked_for(mixed, capsys):
    said = export(capsys, "--output", "q.trec")
    assert "labels of 1 questions; 2 that a model judged are left out (--with-model" in said
    assert trec.read_qrels("q.trec") == {"q-fruit": {"apple": 3}}
    said = export(capsys, "--output", "all.trec", "--with-model")
    assert "labels of 3 questions, 2 of them judged by a model, wholly or in part" in said
    assert set(trec.read_qrels("all.trec")) == {"q-fruit", "q-swim", "q-rails"}


def test_a_model_alone_is_exported_and_named(mixed, capsys):
    lines = (mixed / NAME).read_text(encoding="utf-8").splitlines(keepends=True)
    (mixed / NAME).write_text(lines[-1], encoding="utf-8")
    assert "labels of 1 questions, 1 of them judged by a model" in export(capsys, "--output", "q.trec")


def test_a_model_stays_a_model_when_the_export_is_read_again(mixed, capsys):
    export(capsys, "--output", "data/all.json", "--as", "json", "--with-model")
    rows = {row["id"]: row for row in json.loads((mixed / "all.json").read_text(encoding="utf-8"))}
    assert {id_: row["labelled_by"] for id_, row in rows.items()} == {
        "q-fruit": "ann", "q-swim": "ann, llm:judge-1", "q-rails": "llm:judge-1",
    }  # fmt: skip
    (mixed / NAME).unlink()
    labels = load(DatasetReference(mixed, queries=("all.json",))).labels
    assert {id_: given.source for id_, given in labels.items()} == {
        "q-fruit": "", "q-swim": "mixed", "q-rails": "model",
    }  # fmt: skip
    assert set(labels_that_count(labels)) == {"q-fruit"}


def test_a_model_is_merged_with_no_person_of_another_file(mixed):
    (mixed / NAME).unlink()
    for name, by, listed in (("a", "ann", ["apple"]), ("m", "llm:judge-1", ["pear"])):
        row = {"id": "q-fruit", "query": "fruit", "labelled_by": by, "relevant_documents": listed}
        (mixed / f"{name}.json").write_text(json.dumps([row]), encoding="utf-8")
    merged = load(DatasetReference(mixed, queries=("a.json", "m.json"))).labels["q-fruit"]
    assert (merged.ranked, merged.by, merged.source) == (("apple",), "ann", "")
