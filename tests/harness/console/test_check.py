"""What `harness check` tells: everything that is wrong at once, what is right, and what a model would not read."""

import json
import shlex
from pathlib import Path

import pytest
from statsmodels.stats.power import TTestPower

from harness.dataset import load_dataset, parse_reference
from harness.pipeline import run
from harness.preflight.check import check_target
from harness.preflight.dataset_summary import summarise_dataset
from harness.preflight.detectable import DetectableDifference
from harness.report.sections.decision import decision_alerts
from harness.report.view import build_view
from harness.running.options import RunOptions
from tests.support import layouts, small, tiny
from tests.support.small import ended, ends, refusal

pytestmark = pytest.mark.usefixtures("own_cache")


def test_everything_that_is_wrong_at_once(tmp_path):
    folder = layouts.beir(tmp_path / "data")
    (folder / "corpus.jsonl").write_text("not json\n")
    path = tmp_path / "e.toml"
    path.write_text(
        f'name = "e"\ndataset = "{folder.as_posix()}"\nprimary = "nDGC@10"\nmeasure = ["P@5"]\n'
        f'measures = ["nDGC@10", "Precission@5", "R@10", "Suces@1"]\n[[retrievers]]\nname = "a"\nkind = "bm52"\n'
        f'[[retrievers]]\nname = "b"\nkind = "bm25"\nk2 = 1\n'
    )
    message = str(refusal(check_target, path))
    for problem in (
        "unknown key 'measure' (did you mean 'measures'?)",
        "'nDGC@10'",
        "'Precission@5'",
        "'Suces@1'",
        "unknown kind 'bm52'",
        "did you mean 'bm25'?",
        "unknown key 'k2'",
        "corpus.jsonl:1: is not JSON",
    ):
        assert problem in message, f"{problem} is not in\n{message}"
    assert "did you mean 'data'" in str(refusal(check_target, tmp_path / "dta"))


@pytest.mark.parametrize(
    ("change", "queries_json", "problems"),
    [
        (('name = "bm25"\n', 'name = "dataset"\n'), "", ["is used for the data set"]),
        (("/data", "/dat"), "", ["does not exist", "did you mean 'data'"]),
        (
            ('kind = "bm25"', 'kind = "bm25"\nstemming = "klingon"'),
            "[3]",
            ["queries.json[0]: is not an object", "unknown language 'klingon'"],
        ),
        (
            ("report = false", '[statistics]\ncluster = "neat"\nweight = "neat"'),
            "",
            ["cluster: 'neat' is a field of no query", "without a number above 0 in"],
        ),
        (
            ("report = false", "[statistics]\nmargin = 5"),
            "",
            ["margin: 5 is larger than the measure's range, 1"],
        ),
    ],
)
def test_each_problem_is_told_with_the_others(tmp_path, change, queries_json, problems):
    path = small.experiment(tmp_path, retrievers=small.BM25)
    path.write_text(path.read_text().replace(*change))
    if queries_json:
        (tmp_path / "data" / "queries.json").write_text(queries_json)
    message = str(refusal(check_target, path))
    assert [problem for problem in problems if problem not in message] == [], message


def test_the_page(tmp_path):
    folder = tmp_path / "data"
    words = " ".join(f"word{i}" for i in range(60))
    texts = {
        "a": words,
        "b": f"{words} more",
        "c": "休暇は一年に二十五日あります。",
        "d": f"so: which things have wheels? {words[::-1]}",
    }
    layouts.jsonl(
        folder / "corpus.jsonl",
        [{"_id": id_, "text": text} for id_, text in texts.items()],
    )
    layouts.jsonl(
        folder / "queries.jsonl", [{"_id": "q1", "text": "Which things have  wheels?"}]
    )
    layouts.table(
        folder / "qrels" / "test.tsv",
        [
            {"query-id": "q1", "corpus-id": "a", "score": 2},
            {"query-id": "q1", "corpus-id": "b", "score": 0},
        ],
        delimiter="\t",
    )
    summary = summarise_dataset(load_dataset(parse_reference(folder)))
    assert summary.near_duplicates == ("b",)
    assert summary.quoted == ("q1",)
    assert summary.grades == ((0, 1), (2, 1))
    assert summary.per_query == (1, 1, 1)
    assert summary.labelled == 2
    assert dict(summary.languages)["japanese"] == 1
    report_text = "\n".join(check_target(folder).lines())
    assert "near-duplicates: 1 (b)" in report_text
    assert "enough queries? No: 1 query and 1 comparison" in report_text
    json.dumps(check_target(folder).as_json())


def test_what_so_many_queries_detect_before_a_run():
    """Against statsmodels' power of the paired t-test."""
    for comparisons, alpha in ((1, 0.05), (3, 0.01)):
        detectable = DetectableDifference(
            60, comparisons=comparisons, alpha=alpha, range_of=2.0
        )
        effect = TTestPower().solve_power(nobs=60, alpha=alpha / comparisons, power=0.8)
        assert detectable.difference() == pytest.approx(0.2 * 2.0 * effect, rel=1e-4)
    assert (
        DetectableDifference(5)
        .sentence()
        .startswith("enough queries? No: 5 queries and 1 comparison")
    )
    assert (
        DetectableDifference(60).sentence()
        == "enough queries? 60 queries reliably detect a difference of about 0.074"
    )


@pytest.mark.parametrize("name", ["my results", "small.unfinished"])
def test_a_results_folder_is_called_so_and_no_data_set(
    tmp_path, monkeypatch, capsys, name
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.report.index.write_index", lambda folder: None)
    run(
        small.experiment(tmp_path, retrievers=small.BM25), RunOptions(tmp_path)
    ).folder.rename(name)
    for command in ("check", "init"):
        errors = ends(capsys, 2, command, name).err
        assert f"{name}: is a results folder, no data set" in errors
        assert f"harness report {shlex.quote(name)} shows what it says" in errors


def test_repeated_questions_are_counted_once_by_check_run_gate_and_report(
    tmp_path, capsys
):
    """Three questions under ten ids each, and one more: p was 0.002, and the gate passed."""
    rows = [
        {
            "id": f"q{i:02}",
            "query": f"  {text.upper()}" if i % 2 else text,
            "relevant_documents": docs,
        }
        for i in range(30)
        for _, text, docs in [small.QUERIES[i % 3 if i < 29 else 3]]
    ]
    (small.dataset(tmp_path / "data") / "queries.json").write_text(
        json.dumps(rows), encoding="utf-8"
    )
    blocks = '[[retrievers]]\nname = "hash"\nencoder = { kind = "hashing", dimensions = 64 }\n'
    path = small.experiment(
        tmp_path,
        retrievers=small.BM25 + blocks,
        more="[statistics]\nalpha = 0.04\n",
        report=True,
    )
    assert "30 queries (4 clusters)" in check_target(path).lines()[0] and check_target(
        path
    ).detectable[:4] == (4, True, 1, 0.04)
    results = run(path, RunOptions(tmp_path / "out"))
    assert set(results.comparisons["clusters"]) == {4}
    assert results.comparisons["p_value"].min() >= 0.125
    assert "30 queries (4 clusters)" in (results.folder / "report.md").read_text(
        encoding="utf-8"
    )
    words = ("--baseline", "bm25", "--challenger", "hash", "--margin", "0.2")
    assert ended("gate", results.folder, *words) == 1
    assert "30 queries (4 clusters), at least 15" in "".join(capsys.readouterr())


FUSION = '[[retrievers]]\nname = "{}"\nkind = "fusion"\nof = ["bm25", "{}"]\n'


def test_what_is_told_before_is_what_the_run_counts(tmp_path: Path) -> None:
    model = tiny.bi_encoder(
        tmp_path / "tiny", prompts={"document": "passage: "}
    ).as_posix()
    encoder = f'encoder = {{ kind = "sentence-transformers", model = "{model}", device = "cpu" }}'
    retriever = (
        f'[[retrievers]]\nname = "m"\n{encoder}\nderive = {{ dimensions = [8] }}\n'
    )
    others = (
        small.BM25 + FUSION.format("hybrid", "m") + FUSION.format("again", "hybrid")
    )
    path = small.experiment(tmp_path, retrievers=retriever + others)
    for name, words in (("long", 40), ("longer", 70)):
        (tmp_path / "data" / f"{name}.md").write_text(
            " ".join(["wing"] * words), encoding="utf-8"
        )
    (truncation,) = check_target(path, results=tmp_path).summary.reaches
    assert truncation.exact
    assert (truncation.retriever, truncation.limit, truncation.others) == (
        "m",
        tiny.LIMIT,
        ("m-8", "hybrid", "again"),
    )
    results = run(path, RunOptions(tmp_path / "out"))
    ledger = results.manifest.ledger.retrievers
    assert len(ledger["m"].notes["truncated"]) == truncation.beyond >= 2
    assert ledger["m"].counts["embed-documents"]["lost_tokens"] == truncation.lost > 0
    assert ledger["m-8"].notes["truncated"] == ledger["m"].notes["truncated"]
    expected_start = f"m reads only the start of {truncation.beyond} of 8 documents (12 tokens); {truncation.lost} of "
    (warning,) = [
        sentence for sentence in check_target(path).warnings if "start" in sentence
    ]
    assert warning.startswith(expected_start)
    assert warning.endswith("use a model that reads more; m-8, hybrid and again use it")
    (alert,) = [
        sentence
        for sentence in decision_alerts(build_view(results))
        if "truncated" in sentence
    ]
    assert alert == "m and 3 others: 100 % of documents truncated; add chunk."


# Numbers, names and nesting beyond all measure

HASHING = '[[retrievers]]\nname = "a"\nencoder = {{ kind = "hashing" {} }}\n{}\n'
OPENAI = (
    '[[retrievers]]\nname = "a"\nencoder = {{ kind = "openai", model = "m", {} }}\n'
)
FUSED = (
    '[[retrievers]]\nname = "c"\nkind = "fusion"\nof = ["bm25", "a"]\nconstant = inf\n'
)


@pytest.mark.parametrize(
    ("retrievers", "more"),
    [
        (OPENAI.format("timeout = inf"), ""),
        (OPENAI.format("patience = nan"), ""),
        (OPENAI.format("dimensions = 2147483648"), ""),
        (HASHING.format(", dimensions = 2147483648", ""), ""),
        (
            HASHING.format(
                "", 'store = { location = "edge", m = 99999999999999999999 }'
            ),
            "",
        ),
        (small.BM25 + HASHING.format("", "") + FUSED, ""),
        (small.BM25, f"seed = {'9' * 5000}"),
        (small.BM25, "[latency]\nsample = 99999999999999999999"),
        (small.BM25, "x = " + "[" * 3000 + "]" * 3000),
    ],
)
def test_an_experiment_beyond_measure_is_refused(
    tmp_path, capsys, monkeypatch, retrievers, more
):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    path = small.experiment(tmp_path, retrievers=retrievers, more=more)
    assert (
        len(small.told(capsys, "run", path, "--results", tmp_path / "out", code=2))
        < 1000
    )
