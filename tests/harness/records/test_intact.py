"""Results folders that are damaged, cut, hostile or old.

One message and exit code 2, or read as today.
"""

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
from harness.records.resolved_tables import RetrieverRecord
from harness.report.results_listing import list_results
from harness.scoring.stored_scores import stored_scores
from retrievers.errors import InputError
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
    ("command", "name", "change", "message"),
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
            "was made by a later version (`harness run",
        ),
        (
            "report",
            MANIFEST,
            manifest(lambda content: []),
            "was made by another version (`harness run` again: the cache",
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
    folder, capsys, command, name, change, message
):
    change(folder / name)
    output = ends(capsys, 2, command, folder, *(GATE if command == "gate" else ()))
    assert output.out == "" and message in output.err


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


def test_a_link_to_itself_in_the_folder_is_allowed(folder, capsys):
    (folder / "loop").symlink_to("loop")
    assert ends(capsys, 0, "report", folder).err == ""


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "resolved.dataset: Value error, path: is missing"),
        ({"path": None}, "resolved.dataset: Value error, path: "),
        (
            {"path": "data", "columns": None},
            "resolved.dataset: Value error, columns: ",
        ),
        ({"path": "data", "match": 5}, "resolved.dataset: Value error, match"),
        ("data", "resolved.dataset: Value error, is 'data', not a table"),
    ],
)
def test_a_manifest_with_another_table_of_the_data_set_is_refused(
    folder, table, message
):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["resolved"]["dataset"] = table
    path.write_text(json.dumps(manifest), encoding="utf-8")

    error = str(refusal(records.read_manifest, folder))

    assert message in error and str(path) in error


def test_what_does_not_follow_from_the_manifest_is_refused(folder, tmp_path):
    results = records.read_results(folder)
    resolved = replace(results.manifest.resolved, primary="RR@7")
    error = refusal(
        stored_scores,
        replace(results, manifest=replace(results.manifest, resolved=resolved)),
    )
    assert "scores.csv: has no scores of RR@7" in str(error)


# The manifest and the evaluation, as they are and as they were


def test_a_manifest_is_read_back_equal(folder, tmp_path):
    manifest = records.read_manifest(folder)
    records.write_manifest(tmp_path, manifest)
    assert records.read_manifest(tmp_path) == manifest
    assert (tmp_path / "manifest.json").read_bytes() == (
        folder / "manifest.json"
    ).read_bytes()
    assert manifest.file_digests == records.file_digests(folder)
    assert {field.name for field in fields(records.ResolvedExperiment)} == {
        name for name, field in Experiment.model_fields.items() if not field.exclude
    }


def resolved(**more):
    """The manifest's resolved experiment has other keys, also in its statistics."""

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
            key: row for key, row in content["resolved"].items() if key != "report"
        },
    }


TIES = {"bm25": {"queries": [], "worst": 0.1, "expected": 0.2, "best": 0.3}}


@pytest.mark.parametrize(
    "change",
    [
        saying(ties=TIES, noise={}, waiting=[]),
        resolved(cache={"probe": 3}),
        manifest(without_report),
    ],
)
def test_keys_that_are_unknown_or_have_a_default_change_nothing(folder, change):
    before = records.read_manifest(folder)
    change(folder / MANIFEST)
    assert records.read_manifest(folder) == before


@pytest.mark.parametrize("schema", [1, 0, -3])
def test_a_folder_of_an_earlier_version_names_the_command_that_makes_it_anew(
    folder, schema
):
    saying(schema=schema, experiment_file="my tests/a.toml")(folder / MANIFEST)
    with pytest.raises(InputError) as error:
        records.read_manifest(folder)
    remedy = "(`harness run 'my tests/a.toml'` again: the cache makes it free)"
    assert str(error.value) == f"{folder}: was made by an earlier version {remedy}"


def test_a_folder_opens_without_the_packages_of_its_kinds_and_is_written_as_it_was(
    folder, tmp_path
):
    path = folder / MANIFEST
    content = json.loads(path.read_text(encoding="utf-8"))
    resolved = content["resolved"]
    resolved["retrievers"][0] |= {"kind": "absent", "strength": 3}
    resolved["retrievers"][1]["encoder"] = {"kind": "absent", "layers": [1, 2]}
    resolved["judge"] = {"kind": "absent", "temper": {"calm": True}}
    resolved["vectors"] = {"from": "s3://vectors"}
    path.write_text(json.dumps(content), encoding="utf-8")
    manifest = records.read_manifest(folder)
    assert manifest.resolved.retrievers[0].kind == "absent"
    assert manifest.resolved.retrievers[1].encoder.options == {"layers": [1, 2]}
    records.write_manifest(tmp_path, manifest)
    again = json.loads((tmp_path / MANIFEST).read_text(encoding="utf-8"))
    assert again == content


def test_keys_of_a_later_version_in_vectors_are_ignored(folder):
    path = folder / MANIFEST
    content = json.loads(path.read_text(encoding="utf-8"))
    content["resolved"]["vectors"] = {"from": "vectors", "since": "2027"}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert records.read_manifest(folder).resolved.vectors.location == "vectors"


def test_limits_of_threads_are_stored_and_stand_in_the_report(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    folder = small.ran(tmp_path).folder
    content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    limits = {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "1"}
    assert {**content["machine"]["threads"], **limits} == content["machine"]["threads"]
    assert small.ended("report", folder) == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "threads OMP_NUM_THREADS=2, MKL_NUM_THREADS=1" in page


def test_a_retriever_is_followed_to_all_its_parts(folder):
    tables = (
        {"name": "h", "kind": "rrf", "of": ["a", "b"]},
        {"name": "a", "kind": "bm25"},
        {"name": "b", "kind": "rerank", "of": "a"},
        {"name": "q", "kind": "qdrant-fusion", "of": ["a", "b"]},
    )
    manifest = records.read_manifest(folder)
    retrievers = tuple(map(RetrieverRecord.read, tables))
    resolved = replace(manifest.resolved, retrievers=retrievers)
    assert resolved.retriever_with_parts("h") == ("h", "a", "b")
    assert resolved.retriever_with_parts("q") == ("q",)


@pytest.mark.parametrize("has_chunk", [True, False])
def test_keys_with_defaults_change_no_identity_of_a_retriever(folder, has_chunk):
    manifest = records.read_manifest(folder)
    retrievers = []
    for retriever in manifest.resolved.retrievers:
        newer_table = {**retriever.table.options, "filter": {}, "proof": True}
        if not has_chunk:
            newer_table.pop("chunk", None)
        retrievers.append(RetrieverRecord.read(newer_table))
    resolved = replace(manifest.resolved, retrievers=tuple(retrievers))
    newer = replace(manifest, resolved=resolved)
    assert [newer.retriever_identity(name) for name in newer.finished] == [
        manifest.retriever_identity(name) for name in manifest.finished
    ]


def test_a_reranker_of_another_retriever_without_a_name_is_another_one(folder):
    manifest = records.read_manifest(folder)
    name = manifest.finished[0]
    identities = []
    for k1 in (0.9, 1.2):
        part = {"kind": "bm25", "k1": k1}
        table = {"name": name, "kind": "rerank", "of": part}
        retrievers = (RetrieverRecord.read(table),)
        resolved = replace(manifest.resolved, retrievers=retrievers)
        reranked = replace(manifest, resolved=resolved)
        identities.append(reranked.retriever_identity(name))
    assert identities[0] != identities[1]


@pytest.fixture
def today(tmp_path: Path) -> Path:
    """A folder of today, whose statistics declare all that an evaluation can hold."""
    return small.ran(
        tmp_path, more="[statistics]\nmargin = 0.9\nlooks = { queries = [3, 6] }\n"
    ).folder


def test_an_evaluation_is_read_back_equal_and_is_what_follows_from_the_scores(today):
    results = records.read_results(today)
    stored = read_evaluation(today, results.manifest)
    assert stored == read_or_evaluate(results)
    digests = [
        stored
        for stored in results.manifest.file_digests
        if stored.path != EVALUATION_FILE
    ]
    manifest = replace(results.manifest, file_digests=tuple(digests))
    again = read_or_evaluate(replace(results, manifest=manifest))
    assert again.recomputed
    assert again.model_copy(update={"recomputed": False}) == stored
    content = json.loads((today / EVALUATION_FILE).read_text(encoding="utf-8"))
    assert [row["retriever"] for row in content["board"]["rows"]] == list(stored.means)
    finding = content["comparisons"]["nDCG@3"][0]["finding"]
    assert finding["verdict"] == stored.comparisons["nDCG@3"][0].verdict.value


@pytest.mark.parametrize(
    ("content", "is_signed_again"),
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
    today, content, is_signed_again, capsys
):
    before = read_or_evaluate(records.read_results(today))
    path = today / EVALUATION_FILE
    if content is None:
        path.unlink()
    else:
        path.write_text(content, encoding="utf-8")
    if is_signed_again:
        small.signed_anew(today)
    again = read_or_evaluate(records.read_results(today))
    assert again.recomputed and again.comparisons == before.comparisons
    assert len({entry.verdict for entry in list_results(today.parent).entries}) == 1
    printed = " ".join(ends(capsys, 0, "report", today).out.split())
    page = " ".join((today / "report.html").read_text(encoding="utf-8").split())
    assert "its comparisons are computed again" in printed
    assert "its comparisons are computed again" in page
