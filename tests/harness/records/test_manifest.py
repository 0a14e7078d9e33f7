"""The manifest: written and read in one place, checked as it is read."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from harness import records
from harness.evaluation.readers import primary_of
from harness.experiment import Experiment
from harness.stats.settings import Settings
from retrievers.errors import InputError
from tests.support import small
from tests.support.small import refusal


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small.ran(tmp_path_factory.mktemp("manifest")).folder


def changed(folder: Path, place: Path, change) -> Path:
    """A folder that holds a changed manifest alone."""
    content = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (place / "manifest.json").write_text(json.dumps(change(content)), encoding="utf-8")
    return place


def test_what_is_written_is_read_back_equal(folder, tmp_path):
    manifest = records.read_manifest(folder)
    records.write_manifest(tmp_path, manifest)
    assert records.read_manifest(tmp_path) == manifest
    assert (tmp_path / "manifest.json").read_bytes() == (folder / "manifest.json").read_bytes()


def test_it_keeps_the_whole_experiment():
    assert {field.name for field in fields(records.ResolvedExperiment)} == {
        name for name, field in Experiment.model_fields.items() if not field.exclude
    }


def test_it_has_the_digest_of_every_table(folder):
    assert records.read_manifest(folder).tables == records.file_digests(folder)


def test_a_folder_of_before_is_read(folder, tmp_path):
    def as_before(content):
        ties = {"bm25": {"queries": [], "worst": 0.1, "expected": 0.2, "best": 0.3}}
        content["resolved"]["cache"] = content["experiment"]["cache"] = {"probe": 3}
        return {**content, "ties": ties, "noise": {}, "waiting": []}

    before = changed(folder, tmp_path, as_before)
    assert records.read_manifest(before) == records.read_manifest(folder)


def test_a_folder_that_the_sign_test_decided_is_tested_by_the_default(folder, tmp_path):
    def decided(content):
        content["resolved"]["statistics"]["test"] = "sign"
        return content

    statistics = records.read_manifest(changed(folder, tmp_path, decided)).resolved.statistics
    assert Settings.of(statistics).test == Settings().test


def test_what_a_live_run_left_is_no_whole_folder(folder, tmp_path):
    with pytest.raises(InputError, match="is of a run that was stopped"):
        records.read_manifest(changed(folder, tmp_path, lambda content: {**content, "waiting": ["bm25"]}))


def test_a_folder_of_before_had_its_report(folder, tmp_path):
    manifest = records.read_manifest(folder)
    assert not manifest.resolved.report

    def without(content):
        return {**content, "resolved": {key: one for key, one in content["resolved"].items() if key != "report"}}

    before = changed(folder, tmp_path, without)
    assert records.read_manifest(before) == replace(manifest, resolved=replace(manifest.resolved, report=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: {**content, "schema": 99}, "is of version 99, and this program reads version 1"),
        (lambda content: [], "is of version None, and this program reads version 1"),
        (lambda content: {**content, "seconds": "long"}, "seconds: Input should be a valid number"),
        (lambda content: {k: v for k, v in content.items() if k != "dataset"}, "dataset: Field required"),
        (
            lambda content: {**content, "retrievers": {"bm25": {"error": ""}}},
            "retrievers.bm25.provenance: Field required",
        ),
        (lambda content: {**content, "ledger": []}, "ledger: Input should be"),
    ],
)
def test_what_is_wrong_with_it_is_one_message(folder, tmp_path, change, message):
    caught = refusal(records.read_manifest, changed(folder, tmp_path, change))
    assert message in str(caught)
    assert len(caught.problems) == 1


@pytest.mark.parametrize(
    ("table", "message"),
    [({}, "resolved.dataset.path: is missing"), ({"path": None}, "resolved.dataset.path: "),
     ({"path": "data", "columns": None}, "resolved.dataset.columns: "), ({"path": "data", "match": 5}, "match")],
)  # fmt: skip
def test_a_data_set_of_other_types_is_one_message(folder, table, message):
    results = records.read(folder)
    resolved = replace(results.manifest.resolved, dataset=table)
    with pytest.raises(InputError, match=message) as caught:
        records.data_reference(replace(results, manifest=replace(results.manifest, resolved=resolved)))
    assert str(folder / "manifest.json") in str(caught.value)


def test_relevance_that_says_nothing_is_what_it_is_by_default(folder):
    resolved = records.read_manifest(folder).resolved
    assert resolved.relevance["gain"] == "linear" and resolved.relevance["ideal"] == "judged"
    assert primary_of(replace(resolved, relevance={})) == primary_of(resolved)


def test_a_retriever_is_followed_to_all_its_parts(folder):
    tables = (
        {"name": "h", "kind": "rrf", "of": ["a", "b"]},
        {"name": "a", "kind": "bm25"},
        {"name": "b", "kind": "rerank", "of": "a"},
        {"name": "q", "kind": "qdrant-fusion", "of": ["a", "b"]},
    )
    resolved = replace(records.read_manifest(folder).resolved, retrievers=tables)
    assert resolved.parts("h") == ("h", "a", "b")
    assert resolved.parts("q") == ("q",)


@pytest.mark.parametrize(("key", "value"), [("zeros", "wilcox"), ("zeros", "pratt"), ("interval", "bca")])
def test_retired_statistics_of_earlier_folders_are_left_aside(folder, tmp_path, key, value):
    def add(content):
        content["resolved"]["statistics"][key] = value
        return content

    before = changed(folder, tmp_path, add)
    assert records.read_manifest(before).resolved == records.read_manifest(folder).resolved
