import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import harness
from harness import records
from harness.pipeline import run
from harness.records import Results, staging_path
from harness.reproduce import reproduce
from harness.running.options import RunOptions
from retrievers.errors import BackendError, InputError
from tests.support import layouts, small, tiny
from tests.support.recompute import differences


def test_a_measure_of_groups_may_decide_a_run_with_a_report(tmp_path: Path) -> None:
    data = small.dataset(tmp_path / "data")
    rows = json.loads((data / "queries.json").read_text(encoding="utf-8"))
    for row in rows:
        row["relevant_documents"] = [["apple", "pear"], ["car"]]
    (data / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    path = small.experiment(tmp_path, report=True)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"nDCG@3"', "\"P(groups='first')@2\""), "utf-8")
    results = run(path, RunOptions(tmp_path / "out"))
    assert results.manifest.resolved.primary == "P(groups='first')@2"
    assert (results.folder / "report.html").is_file()


def digests(folder: Path) -> dict[str, str]:
    """The bytes of all that must be the same again."""
    files = [
        *folder.glob("rankings/*"),
        *folder.glob("runs/*"),
        *folder.glob("*.trec"),
        *folder.glob("*.jsonl"),
    ]
    files += [
        folder / f"{name}.csv" for name in ("scores", "summary", "comparisons", "tests")
    ]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_everything_is_in_the_folder_and_stands_up_to_recomputation(
    finished: Results,
) -> None:
    assert {file.name for file in finished.folder.iterdir()} >= {
        "manifest.json",
        "labels.jsonl",
        "documents.jsonl",
        "rankings",
        "runs",
        "qrels.trec",
        "qrels.gains.trec",
        "scores.csv",
        "summary.csv",
        "comparisons.csv",
        "tests.csv",
        "costs.csv",
        "report.html",
        "report.md",
    }
    assert finished.retrievers == ("bm25", "hashing", "hybrid")
    assert (len(finished.scores), len(finished.comparisons)) == (3 * 8 * 6, 3 * 8)
    assert not staging_path(finished.folder).exists()
    assert not differences(finished.folder)
    assert finished.queries["q-wheels"].labels.ranked == ("train", "car", "boat")
    assert finished.documents["train"].title == "train"
    assert finished.rankings("bm25")["q-rails"].doc_ids == ("train",)
    assert (finished.folder / "qrels.trec").read_text().splitlines()[:2] == [
        "q-fruit 0 apple 2",
        "q-fruit 0 pear 1",
    ]
    assert "q-wheels 0 train 7" in (finished.folder / "qrels.gains.trec").read_text()
    manifest = finished.manifest
    assert (
        manifest.experiment.text("name"),
        manifest.resolved.statistics.correction,
    ) == ("small", "holm")
    assert (manifest.dataset.documents, len(manifest.dataset.digest)) == (6, 64)
    assert manifest.version_of("numpy")
    report = (finished.folder / "report.md").read_text(encoding="utf-8")
    readings = report.partition("## Other grade rules")[2].partition("\n## ")[0]
    assert [
        readings.count(f"\n| {rule} | ") for rule in ("linear", "binary", "reciprocal")
    ] == [2, 2, 1]
    means = finished.summary[finished.summary["measure"] == "nDCG@3"]["mean"]
    first = next(
        line for line in readings.splitlines() if line.startswith("| linear | nDCG@3")
    )
    assert all(f"{mean:.3f}" in first for mean in means)


@pytest.mark.parametrize(
    "more",
    [
        'baseline = "bm25"',
        '[relevance]\ngain = "exponential"\nideal = "retrieved"',
        '[relevance]\ngrades = "binary"\n[statistics]\ntest = "t"',
        '[relevance]\ngrades = "reciprocal"\n[statistics]\ncorrection = "bonferroni"',
        "[relevance]\ngrades = [[1, 3], [2, 1]]",
        '[statistics]\ntest = "randomization"',
        "[statistics]\nmargin = 0.2",
    ],
)
def test_other_rules_stand_up_to_recomputation(tmp_path: Path, more: str) -> None:
    run(small.experiment(tmp_path, more=more), RunOptions(tmp_path / "out"))
    assert not differences(tmp_path / "out" / "small")


def test_the_same_again_is_the_same_to_the_byte_and_embeds_nothing(
    tmp_path: Path, finished: Results
) -> None:
    path = small.experiment(tmp_path)
    fresh = run(path, RunOptions(tmp_path / "out", fresh=True))
    assert digests(fresh.folder) == digests(finished.folder)
    costs = run(path, RunOptions(tmp_path / "out")).costs
    assert [
        folder.name for folder in (tmp_path / "out").iterdir() if folder.is_dir()
    ] == ["small"]
    embedding = costs[costs["stage"].str.startswith("embed-")]
    assert (embedding["cached"] == embedding["texts"]).all()
    assert (embedding["calls"] == 0).all()


def test_only_runs_some_and_takes_the_others(tmp_path: Path) -> None:
    path = small.experiment(tmp_path)
    before = digests(run(path, RunOptions(tmp_path / "out")).folder)
    results = run(path, RunOptions(tmp_path / "out", only=("hashing",)))
    assert digests(results.folder) == before
    assert set(results.costs["retriever"]) == {"bm25", "hashing", "hybrid"}
    for only, folder, message in (
        ("bm52", "out", "did you mean 'bm25'"),
        ("bm25", "elsewhere", "holds no results of this experiment"),
    ):
        assert message in str(
            small.refusal(run, path, RunOptions(tmp_path / folder, only=(only,)))
        )
    run(
        small.experiment(tmp_path, more="seed = 1"), RunOptions(tmp_path / "out")
    )  # another question
    assert (tmp_path / "out" / "small.1" / "manifest.json").exists()
    assert records.read_manifest(tmp_path / "out" / "small").resolved.seed == 1


def test_wrong_input_and_failures_of_every_retriever_leave_earlier_results_untouched(
    tmp_path, finished
):
    shutil.copytree(finished.folder, tmp_path / "out" / "small")
    before = digests(finished.folder)
    far = (
        '[[retrievers]]\nname = "far"\nencoder = { kind = "hashing" }\nstore = '
        '"http://127.0.0.1:9"\n'
    )
    with pytest.raises(BackendError, match="far: "):
        run(small.experiment(tmp_path, retrievers=far), RunOptions(tmp_path / "out"))
    assert not staging_path(
        tmp_path / "out" / "small"
    ).exists()  # nothing is in it to be judged
    assert digests(tmp_path / "out" / "small") == before
    path = small.experiment(tmp_path)
    path.write_text(path.read_text().replace('"Success@1"', "\"R(groups='first')@3\""))
    with pytest.raises(InputError, match="groups"):  # before anything is embedded
        run(path, RunOptions(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    absent = (
        '[[retrievers]]\nname = "m"\nencoder = '
        '{ kind = "sentence-transformers", model = "./no/such/folder" }\n'
    )
    with pytest.raises(InputError, match="retriever 'm'"):
        run(small.experiment(tmp_path, retrievers=absent), RunOptions(tmp_path / "out"))
    (tmp_path / "data" / "queries.json").write_text("[", encoding="utf-8")
    with pytest.raises(InputError, match=r"queries\.json:1: is not JSON"):
        run(small.experiment(tmp_path), RunOptions(tmp_path / "out"))
    assert digests(tmp_path / "out" / "small") == before


def test_a_reranked_retriever_has_its_uplift_with_a_ceiling(tmp_path: Path) -> None:
    model = tiny.cross_encoder(tmp_path / "model").as_posix()
    reranked = (
        '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n[[retrievers]]\nname = '
        '"better"\nof = "bm25"\n'
    )
    reranked += f'rerank = {{ kind = "cross-encoder", model = "{model}", depth = 3 }}\n'
    path = small.experiment(tmp_path, retrievers=reranked, more="[latency]\nsample = 2")
    results = run(path, RunOptions(tmp_path / "out"))
    for query, ranking in results.rankings("bm25").items():
        assert set(results.rankings("better")[query].doc_ids[:3]) == set(
            ranking.doc_ids[:3]
        )
        assert results.rankings("better")[query].doc_ids[3:] == ranking.doc_ids[3:]
    uplift = results.tests[results.tests["family"] == "rerank uplift"].iloc[0]
    assert (uplift["a"], uplift["b"]) == ("better", "bm25")
    best = float(uplift["note"].removeprefix("ceiling "))
    means = results.summary[results.summary["measure"] == "nDCG@3"].set_index(
        "retriever"
    )["mean"]
    assert best >= max(means) - 5e-5
    timed = results.costs[results.costs["p50_ms"].notna()]
    assert set(zip(timed["retriever"], timed["stage"], strict=True)) == {
        ("bm25", "search"),
        ("better", "rerank"),
    }
    again = run(path, RunOptions(tmp_path / "out"))
    assert list(again.costs["p50_ms"].dropna()) == list(timed["p50_ms"])
    assert not (again.costs["stage"] == "latency").any()


ODD = [
    "a b",
    "100%",
    "日本語",
    'say "hi"',
    "a,b",
    "=1+1",
    "NA",
    "1",
    "01",
    "1.0",
    "é",
    "🙂",
]


def test_odd_ids_pass_through_every_file(tmp_path: Path) -> None:
    words = {id_: f"word{number}" for number, id_ in enumerate(ODD)}
    documents = {id_: f"{word} common" for id_, word in words.items()}
    layouts.beir(
        tmp_path / "data",
        layouts.Collection(documents, words, {id_: {id_: 1} for id_ in ODD}),
    )
    judged = "".join(
        f"{id_}\t{id_}\t1\n" for id_ in ODD
    )  # as they are, where a table would quote one
    (tmp_path / "data" / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")
    results = run(small.experiment(tmp_path), RunOptions(tmp_path / "out"))
    right = results.scores[
        (results.scores["retriever"] == "bm25") & (results.scores["measure"] == "RR")
    ]
    assert sorted(right["query_id"]) == sorted(ODD)
    assert (right["value"] == 1).all()
    assert set(results.rankings("bm25")) == set(right["query_id"])
    assert not differences(results.folder)


def asked(folder: Path, *queries: tuple[str, list[str]]) -> None:
    """Replace the queries of the small data set."""
    labelled_queries = [
        {"query": text, "relevant_documents": docs} for text, docs in queries
    ]
    (small.dataset(folder / "data") / "queries.json").write_text(
        json.dumps(labelled_queries), encoding="utf-8"
    )


def test_one_query_is_undefined_rather_than_made_up(tmp_path: Path) -> None:
    asked(tmp_path, ("rails", ["train"]))
    results = run(small.experiment(tmp_path, report=True), RunOptions(tmp_path / "out"))
    assert (results.comparisons["p_value"] == 1).all()
    assert results.comparisons["verdict"].str.startswith("undecided").all()
    assert "not estimable" in (results.folder / "report.html").read_text(
        encoding="utf-8"
    )
    assert (results.folder / "report.md").read_text(encoding="utf-8").count(
        "| not estimable |"
    ) >= 3
    assert not differences(results.folder)


def test_empty_documents_and_queries_without_answers_score_zero_and_stay(
    tmp_path: Path,
) -> None:
    asked(tmp_path, ("rails", ["empty"]), ("zzz", ["train"]), ("x", []))
    (tmp_path / "data" / "empty.md").write_text("", encoding="utf-8")
    results = run(small.experiment(tmp_path), RunOptions(tmp_path / "out"))
    bm25 = results.scores[results.scores["retriever"] == "bm25"]
    assert set(bm25["query_id"]) == {"q0", "q1"}
    assert (bm25["value"] == 0).all()
    assert results.rankings("bm25")["q1"].doc_ids == ()
    assert results.manifest.ledger.dataset["no-relevant-document"] == ("q2",)
    assert results.manifest.ledger.retrievers["hashing"].notes["empty"] == ("empty",)
    assert not differences(results.folder)


def test_a_folder_that_was_copied_is_reproduced(
    tmp_path: Path, finished: Results
) -> None:
    folder = shutil.copytree(finished.folder, tmp_path / "small")
    assert reproduce(folder).differing_files == ()


@pytest.mark.parametrize(
    ("name", "column"),
    [("scores", "value"), ("summary", "mean"), ("comparisons", "p_adjusted")],
)
def test_a_folder_that_was_changed_is_not_reproduced(
    tmp_path: Path, finished: Results, name: str, column: str
) -> None:
    folder = shutil.copytree(finished.folder, tmp_path / "small")
    table = pd.read_csv(folder / f"{name}.csv", dtype={"query_id": str})
    records.write_table(folder, name, table.assign(**{column: 0.77}))
    with pytest.raises(InputError, match="changed or cut since it was written"):
        reproduce(folder)


@pytest.mark.parametrize("size", ["8k", "24k", "60k"])
def test_a_disk_that_is_full_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], size: str
) -> None:
    """It is a file of the results that cannot be written, and not standard output."""
    path = small.experiment(tmp_path)
    (disk := tmp_path / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk]
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("no small disk can be mounted here")
    try:
        assert small.ended("run", path, "--results", disk, "--quiet") == 2
    finally:
        subprocess.run(
            ["umount", "--lazy", disk], check=True
        )  # a stream that failed may not be closed yet
    assert re.search(
        r"error: \S*/disk/small\S*: cannot be written: No space left on device",
        capfd.readouterr().err,
    )


def test_a_measure_of_ones_own_has_no_ceiling_of_reranking(tmp_path: Path) -> None:
    def is_first_relevant(grades: dict[str, int], ranking: list[str]) -> float:
        return float(grades.get(ranking[0], 0) > 0)

    model = tiny.cross_encoder(tmp_path / "model").as_posix()
    results = harness.evaluate(
        {"a": "a red apple", "b": "a red pear"},
        {"q1": "red apple", "q2": "red pear"},
        {"q1": ["a"], "q2": ["b"]},
        {
            "bm25": "bm25",
            "better": {
                "of": "bm25",
                "rerank": {"kind": "cross-encoder", "model": model},
            },
        },
        primary=harness.measure("First", is_first_relevant, range=(0, 1)),
        progress=False,
    )
    [note] = results.tests[results.tests["family"] == "rerank uplift"]["note"]
    assert note == "no ceiling: grades alone do not decide the measure"
