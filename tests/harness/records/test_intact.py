"""Results folders that are damaged, cut, hostile or of before: one message and exit code 2, or read as today."""

import json
import shutil
from dataclasses import fields, replace
from pathlib import Path

import pytest

from harness import records
from harness.evaluation.evaluation_file import (
    EVALUATION_FILE,
    read_evaluation,
    read_or_evaluate,
)
from harness.experiment import Experiment
from harness.report.index import list_results
from harness.scoring.stored_scores import stored_scores
from tests.support import small
from tests.support.small import ends, refusal

GATE = ("--baseline", "bm25", "--challenger", "hashing", "--margin", "0.5")


@pytest.fixture
def folder(finished, tmp_path):
    return Path(shutil.copytree(finished.folder, tmp_path / "results"))


def gone(path):
    path.unlink()


def cut(path):
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.rstrip("\n").rfind("\n") + 1], encoding="utf-8")


def last_cell(value):
    """The last cell that holds anything holds something else."""

    def change(path):
        text = path.read_text(encoding="utf-8")
        last = text.rstrip("\n,")
        path.write_text(
            last[: last.rfind(",") + 1] + value + text[len(last) :], encoding="utf-8"
        )

    return change


def of_another(path):
    path.write_bytes((path.parent / "hashing.jsonl").read_bytes())


def manifest(change):
    """The manifest says something else."""

    def changed(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(change(content)), encoding="utf-8")

    return changed


def called(name):
    """A manifest in which the retriever bm25 has another name."""
    return manifest(
        lambda content: json.loads(
            json.dumps(content).replace('"bm25"', json.dumps(name))
        )
    )


def saying(**more):
    return manifest(lambda content: {**content, **more})


CHANGED, MANIFEST = "cannot be read whole", "manifest.json"


@pytest.mark.parametrize(
    ("command", "name", "change", "told"),
    [
        ("gate", "scores.csv", cut, f"scores.csv: {CHANGED}: it was changed or cut"),
        ("gate", "summary.csv", last_cell(""), f"summary.csv: {CHANGED}"),
        ("gate", "comparisons.csv", last_cell("inf"), f"comparisons.csv: {CHANGED}"),
        (
            "gate",
            "rankings/bm25.jsonl",
            of_another,
            f"bm25.jsonl: {CHANGED}: it was changed or cut",
        ),
        ("gate", "rankings/bm25.jsonl", gone, "rankings"),
        *(
            ("report", name, gone, f"{name}: is missing")
            for name in ("labels.jsonl", "scores.csv")
        ),
        *(
            ("report", name, cut, "changed or cut")
            for name in (
                "labels.jsonl",
                "documents.jsonl",
                "rankings/bm25.jsonl",
                "qrels.trec",
            )
        ),
        *(
            ("report", MANIFEST, called(name), "String should match pattern")
            for name in (
                "../../escaped",
                "/tmp/escaped",
                "a/b",
                "..",
                "",
                "a\nb",
                "x" * 65,
                "a\\b",
            )
        ),
        (
            "report",
            MANIFEST,
            saying(schema=99),
            "is of version 99, and this program reads version 1",
        ),
        (
            "report",
            MANIFEST,
            manifest(lambda content: []),
            "is of version None, and this program reads version 1",
        ),
        (
            "report",
            MANIFEST,
            saying(seconds="long"),
            "seconds: Input should be a valid number",
        ),
        (
            "report",
            MANIFEST,
            saying(retrievers={"bm25": {"error": ""}}),
            "retrievers.bm25.provenance: Field required",
        ),
        ("report", MANIFEST, saying(file_digests={}), f"labels.jsonl: {CHANGED}"),
    ],
)
def test_a_folder_that_is_not_whole_is_one_message(
    folder, capsys, command, name, change, told
):
    change(folder / name)
    said = ends(capsys, 2, command, folder, *(GATE if command == "gate" else ()))
    assert said.out == "" and told in said.err


@pytest.mark.parametrize(
    "name",
    [
        "report.html",
        "report.md",
        "tables",
        "figures",
        "scores.csv",
        "rankings/bm25.jsonl",
    ],
)
def test_a_link_in_the_folder_is_refused_and_never_written_through(
    folder, tmp_path, name, capsys
):
    target, original = tmp_path / "precious", folder / name
    original.rename(target)
    original.symlink_to(target)
    before = sorted(target.rglob("*")) if target.is_dir() else target.read_bytes()
    assert f"{name}: is a link" in ends(capsys, 2, "report", folder).err
    assert (
        sorted(target.rglob("*")) if target.is_dir() else target.read_bytes()
    ) == before


def test_what_does_not_follow_from_the_manifest_is_refused(folder, tmp_path):
    results = records.read_results(folder)
    for table, told in (
        ({}, "resolved.dataset.path: is missing"),
        ({"path": None}, "resolved.dataset.path: "),
        ({"path": "data", "columns": None}, "resolved.dataset.columns: "),
        ({"path": "data", "match": 5}, "match"),
    ):
        resolved = replace(results.manifest.resolved, dataset=table)
        other = replace(results, manifest=replace(results.manifest, resolved=resolved))
        error = str(refusal(records.find_dataset, other))
        assert told in error and str(folder / "manifest.json") in error
    resolved = replace(results.manifest.resolved, primary="RR@7")
    error = refusal(
        stored_scores,
        replace(results, manifest=replace(results.manifest, resolved=resolved)),
    )
    assert "scores.csv: has no scores of RR@7" in str(error)


# The manifest and the evaluation, as they are and as they were


def test_what_is_written_is_read_back_equal_with_the_whole_experiment_and_the_digest_of_every_table(
    folder, tmp_path
):
    found = records.read_manifest(folder)
    records.write_manifest(tmp_path, found)
    assert records.read_manifest(tmp_path) == found
    assert (tmp_path / "manifest.json").read_bytes() == (
        folder / "manifest.json"
    ).read_bytes()
    assert found.file_digests == records.file_digests(folder)
    assert {field.name for field in fields(records.ResolvedExperiment)} == {
        name for name, field in Experiment.model_fields.items() if not field.exclude
    }


def resolved(**more):
    """The manifest's resolved experiment has more, or other, keys: statistics among its statistics."""

    def change(content):
        statistics = {**content["resolved"]["statistics"], **more.get("statistics", {})}
        return {
            **content,
            "resolved": {**content["resolved"], **more, "statistics": statistics},
        }

    return manifest(change)


def without_report(content):
    return {
        **content,
        "resolved": {
            key: one for key, one in content["resolved"].items() if key != "report"
        },
    }


TIES = {"bm25": {"queries": [], "worst": 0.1, "expected": 0.2, "best": 0.3}}


@pytest.mark.parametrize(
    "change",
    [
        saying(ties=TIES, noise={}, waiting=[]),
        resolved(cache={"probe": 3}),
        manifest(without_report),
        *(resolved(statistics={"zeros": one}) for one in ("wilcox", "pratt")),
        resolved(statistics={"interval": "bca"}),
    ],
)
def test_a_folder_of_before_is_read_as_one_of_today(folder, change):
    before = records.read_manifest(folder)
    change(folder / MANIFEST)
    assert records.read_manifest(folder) == before


def test_a_retriever_is_followed_to_all_its_parts_and_known_again_where_its_table_has_more_keys(
    folder,
):
    tables = (
        {"name": "h", "kind": "rrf", "of": ["a", "b"]},
        {"name": "a", "kind": "bm25"},
        {"name": "b", "kind": "rerank", "of": "a"},
        {"name": "q", "kind": "qdrant-fusion", "of": ["a", "b"]},
    )
    whole = records.read_manifest(folder)
    found = replace(whole.resolved, retrievers=tables)
    assert (found.retriever_with_parts("h"), found.retriever_with_parts("q")) == (
        ("h", "a", "b"),
        ("q",),
    )
    more = [
        {**block, "filter": {}, "proof": True, "color": "#0b6e4f"}
        for block in whole.resolved.retrievers
    ]
    for tables in (
        more,
        [{key: block[key] for key in block if key != "chunk"} for block in more],
    ):
        newer = replace(
            whole, resolved=replace(whole.resolved, retrievers=tuple(tables))
        )
        assert [newer.retriever_identity(name) for name in newer.finished] == [
            whole.retriever_identity(name) for name in whole.finished
        ]


@pytest.fixture
def today(tmp_path: Path) -> Path:
    """A folder of today, whose statistics declare all that an evaluation can hold."""
    return small.ran(
        tmp_path, more="[statistics]\nmargin = 0.9\nlooks = { queries = [3, 6] }\n"
    ).folder


def test_an_evaluation_is_read_back_equal_and_is_what_follows_from_the_scores(today):
    results = records.read_results(today)
    written = read_evaluation(today, results.manifest)
    assert written == read_or_evaluate(results)
    without = {
        name: digest
        for name, digest in results.manifest.file_digests.items()
        if name != EVALUATION_FILE
    }
    again = read_or_evaluate(
        replace(results, manifest=replace(results.manifest, file_digests=without))
    )
    assert (
        again.recomputed and again.model_copy(update={"recomputed": False}) == written
    )
    content = json.loads((today / EVALUATION_FILE).read_text(encoding="utf-8"))
    assert [row["retriever"] for row in content["board"]["rows"]] == list(written.means)
    assert (
        content["comparisons"]["nDCG@3"][0]["finding"]["verdict"]
        == written.comparisons["nDCG@3"][0].verdict.value
    )


@pytest.mark.parametrize(
    ("content", "known"),
    [
        (None, True),
        ("", True),
        ("{}", True),
        ("[1]", True),
        ('{"measure": 3}', True),
        ("{}", False),
        ("\x00", False),
    ],
)
def test_one_that_is_missing_damaged_or_changed_is_computed_again_and_that_is_said(
    today, content, known, capsys
):
    before, path = (
        read_or_evaluate(records.read_results(today)),
        today / EVALUATION_FILE,
    )
    path.unlink() if content is None else path.write_text(content, encoding="utf-8")
    if known:
        small.signed_anew(today)
    again = read_or_evaluate(records.read_results(today))
    assert again.recomputed and again.comparisons == before.comparisons
    assert len({entry.verdict for entry in list_results(today.parent).entries}) == 1
    said = (
        ends(capsys, 0, "report", today).out,
        (today / "report.html").read_text(encoding="utf-8"),
    )
    assert all(
        "its comparisons are computed again" in " ".join(one.split()) for one in said
    )
