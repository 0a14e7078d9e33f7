"""The command `check`: problems, the data as they were read, and forecasts."""

import json
import shlex
from pathlib import Path

import pytest

from harness.console.check_text import (
    check_lines,
    check_object,
    detectable_sentence,
    warning_text,
)
from harness.dataset import load_dataset, parse_reference
from harness.experiment import load
from harness.pipeline import run
from harness.preflight import passages
from harness.preflight.check import check_target
from harness.preflight.dataset_summary import summarise_dataset
from harness.preflight.detectable import DetectableDifference
from harness.report.decision_alerts import decision_alerts
from harness.report.view import build_view
from harness.running.options import RunOptions
from tests.support import layouts, small, tiny
from tests.support.small import ended, ends, refusal

pytestmark = pytest.mark.usefixtures("own_cache")


BAD_EXPERIMENT = """name = "e"
dataset = "{dataset}"
primary = "nDGC@10"
measure = ["P@5"]
measures = ["nDGC@10", "Precission@5", "R@10", "Suces@1"]
[[retrievers]]
name = "a"
kind = "bm52"
[[retrievers]]
name = "b"
kind = "bm25"
k2 = 1
"""


@pytest.fixture
def bad_experiment(tmp_path):
    """An experiment with a mistake in every part."""
    folder = layouts.beir(tmp_path / "data")
    (folder / "corpus.jsonl").write_text("not json\n")
    path = tmp_path / "e.toml"
    path.write_text(BAD_EXPERIMENT.format(dataset=folder.as_posix()))
    return path


@pytest.mark.parametrize(
    "problem",
    [
        "unknown key 'measure' (did you mean 'measures'?)",
        "'nDGC@10'",
        "'Precission@5'",
        "'Suces@1'",
        "unknown kind 'bm52'",
        "did you mean 'bm25'?",
        "unknown key 'k2'",
        "corpus.jsonl:1: is not JSON",
    ],
)
def test_all_problems_are_listed_at_once(bad_experiment, problem):
    assert problem in str(refusal(check_target, bad_experiment))


def test_a_misspelt_data_set_gets_the_nearest_folder(tmp_path):
    layouts.beir(tmp_path / "data")
    assert "did you mean 'data'" in str(refusal(check_target, tmp_path / "dta"))


CLUSTERED_WITHOUT_LABELS = """[
    {"id": "1", "query": "fruit", "relevant_documents": ["apple"]},
    {"id": "2", "query": "wheels", "topic": "cars"}
]"""


@pytest.mark.parametrize(
    ("change", "queries_json", "problems"),
    [
        pytest.param(
            ('name = "bm25"\n', 'name = "dataset"\n'),
            "",
            ["is used for the data set"],
            id="a reserved name",
        ),
        pytest.param(
            ("/data", "/dat"),
            "",
            ["does not exist", "did you mean 'data'"],
            id="a misspelt folder",
        ),
        pytest.param(
            ('kind = "bm25"', 'kind = "bm25"\nstemming = "klingon"'),
            "[3]",
            ["queries.json[0]: is not an object", "unknown language 'klingon'"],
            id="in the data and in a retriever",
        ),
        pytest.param(
            ("report = false", '[statistics]\ncluster = "neat"\nweight = "neat"'),
            "",
            [
                "cluster: 'neat' is a field of no query",
                "weight: 'neat' is a field of no query",
            ],
            id="unknown fields",
        ),
        pytest.param(
            ("report = false", '[statistics]\ncluster = "topic"'),
            CLUSTERED_WITHOUT_LABELS,
            ["cluster: 'topic' is a field of no query"],
            id="a cluster that only a query without labels has",
        ),
        pytest.param(
            ("report = false", '[statistics]\ncluster = "topc"\nweight = "weigth"'),
            '[{"id": "1", "query": "fruit", "topic": "food", "weight": "3"}]',
            [
                "cluster: 'topc' is a field of no query",
                "weight: 'weigth' is a field of no query",
                "did you mean 'weight'?",
            ],
            id="misspelt fields before there are labels",
        ),
        pytest.param(
            ("report = false", "[statistics]\nmargin = 5"),
            "",
            ["margin: 5 is larger than the measure's range (0 to 1)"],
            id="a large margin",
        ),
    ],
)
def test_each_problem_is_listed_with_the_others(
    tmp_path, change, queries_json, problems
):
    path = small.experiment(tmp_path, retrievers=small.BM25)
    path.write_text(path.read_text().replace(*change))
    if queries_json:
        (tmp_path / "data" / "queries.json").write_text(queries_json)
    message = str(refusal(check_target, path))
    assert [problem for problem in problems if problem not in message] == []


def test_check_describes_a_data_set(tmp_path):
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
    assert summary.quoted == ("q1",)
    assert summary.grades == ((0, 1), (2, 1))
    assert summary.per_query == (1, 1, 1)
    assert summary.labelled == 2
    assert dict(summary.languages)["japanese"] == 1
    report_text = "\n".join(check_lines(check_target(folder)))
    assert "enough queries? No: 1 query and 1 comparison" in report_text
    json.dumps(check_object(check_target(folder)))


def test_the_median_of_two_queries_is_between_them(tmp_path):
    grades = {"q1": {"car": 1}, "q2": {"boat": 1, "fish": 1}}
    layouts.beir(tmp_path / "data", layouts.SMALL._replace(grades=grades))
    lines = "\n".join(check_lines(check_target(tmp_path / "data")))
    assert "labels: 1 to 2 relevant documents per query (median 1.5)" in lines


@pytest.mark.parametrize(("comparisons", "alpha"), [(1, 0.05), (3, 0.01)])
def test_the_detectable_difference_is_that_of_statsmodels(comparisons, alpha):
    """Against the power of the paired t-test."""
    from statsmodels.stats.power import TTestPower

    detectable = DetectableDifference(
        60, comparisons=comparisons, alpha=alpha, range_of=2.0
    )
    effect = TTestPower().solve_power(nobs=60, alpha=alpha / comparisons, power=0.8)
    expected = 0.2 * 2.0 * effect
    assert detectable.difference() == pytest.approx(expected, rel=1e-4)


def test_every_query_of_a_quoted_text_is_named(tmp_path):
    text = "which things have wheels"
    layouts.jsonl(tmp_path / "corpus.jsonl", [{"_id": "a", "text": f"so: {text}?"}])
    layouts.jsonl(
        tmp_path / "queries.jsonl",
        [{"_id": "q1", "text": text}, {"_id": "q2", "text": text.upper()}],
    )
    summary = summarise_dataset(load_dataset(parse_reference(tmp_path)))
    assert summary.quoted == ("q1", "q2")


def test_a_tiny_alpha_needs_many_queries():
    assert DetectableDifference(5, alpha=1e-40).units_needed() == 134


@pytest.mark.parametrize(
    ("test", "correction", "needed"),
    [("randomization", "holm", 8), ("wilcoxon", "bh", 6), ("t", "holm", 2)],
)
def test_the_queries_needed_depend_on_the_test_and_the_correction(
    test, correction, needed
):
    detectable = DetectableDifference(
        1, comparisons=6, test=test, correction=correction
    )
    assert detectable.units_needed() == needed


def test_a_t_test_of_few_queries_is_said_to_detect_a_difference(tmp_path):
    loaded = load(
        {
            "name": "x",
            "dataset": str(tmp_path),
            "primary": "RR",
            "retrievers": [{"name": "a", "kind": "bm25"}],
            "statistics": {"test": "t", "correction": "bonferroni"},
        }
    )
    layouts.jsonl(tmp_path / "documents.jsonl", [{"id": "d", "text": "a word"}])
    rows = [{"id": f"{i}", "query": f"q {i}", "relevant": ["d"]} for i in range(5)]
    layouts.jsonl(tmp_path / "queries.jsonl", rows)
    detectable = check_target(loaded).detectable
    assert (detectable.test, detectable.correction) == ("t", "bonferroni")
    assert "detect a difference" in detectable_sentence(detectable)


def test_the_detectable_difference_of_few_queries_in_words():
    sentence = detectable_sentence(DetectableDifference(5))
    assert sentence.startswith("enough queries? No: 5 queries and 1 comparison")


def test_the_detectable_difference_of_enough_queries_in_words():
    sentence = detectable_sentence(DetectableDifference(60))
    assert sentence == (
        "enough queries? 60 queries reliably detect a difference of about 0.074"
    )


@pytest.mark.parametrize("command", ["check", "init"])
@pytest.mark.parametrize("name", ["my results", "small.unfinished"])
def test_a_results_folder_is_refused_as_a_data_set(
    tmp_path, monkeypatch, capsys, name, command
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.report.index.write_index", lambda folder: None)
    path = small.experiment(tmp_path, retrievers=small.BM25)
    run(path, RunOptions(tmp_path)).folder.rename(name)
    errors = ends(capsys, 2, command, name).err
    assert f"{name}: is a results folder, no data set" in errors
    assert f"harness report {shlex.quote(name)} shows what it says" in errors


@pytest.fixture
def repeated(tmp_path):
    """An experiment on three queries with ten ids each, and another query.

    Without clusters, p was 0.002, and the gate passed.
    """
    rows = []
    for i in range(30):
        _, text, documents = small.QUERIES[i % 3 if i < 29 else 3]
        row = {
            "id": f"q{i:02}",
            "query": f"  {text.upper()}" if i % 2 else text,
            "relevant_documents": documents,
        }
        rows.append(row)
    queries_path = small.dataset(tmp_path / "data") / "queries.json"
    queries_path.write_text(json.dumps(rows), encoding="utf-8")
    encoder = '{ kind = "hashing", dimensions = 64 }'
    hashing = f'[[retrievers]]\nname = "hash"\nencoder = {encoder}\n'
    return small.experiment(
        tmp_path,
        retrievers=small.BM25 + hashing,
        more="[statistics]\nalpha = 0.04\n",
        report=True,
    )


def test_check_counts_repeated_queries_once(repeated):
    report = check_target(repeated)
    assert "30 queries (4 clusters)" in check_lines(report)[0]
    assert report.detectable[:4] == (4, True, 1, 0.04)


@pytest.fixture
def repeated_results(repeated, tmp_path):
    return run(repeated, RunOptions(tmp_path / "out"))


def test_a_run_counts_repeated_queries_once(repeated_results):
    assert set(repeated_results.comparisons["clusters"]) == {4}
    assert repeated_results.comparisons["p_value"].min() >= 0.125


def test_the_report_counts_repeated_queries_once(repeated_results):
    markdown = (repeated_results.folder / "report.md").read_text(encoding="utf-8")
    assert "30 queries (4 clusters)" in markdown


def test_a_gate_counts_repeated_queries_once(repeated_results, capsys):
    words = ("--baseline", "bm25", "--challenger", "hash", "--margin", "0.2")
    assert ended("gate", repeated_results.folder, *words) == 1
    output = "".join(capsys.readouterr())
    sentence = "with 30 queries (4 clusters) a loss of 0.2 cannot be ruled out"
    assert f"not shown: {sentence} (15 clusters needed)" in output


FUSION = '[[retrievers]]\nname = "{}"\nkind = "fusion"\nof = ["bm25", "{}"]\n'


def test_check_forecasts_the_truncations_that_the_run_counts(tmp_path: Path) -> None:
    prompts = {"document": "passage: "}
    model = tiny.bi_encoder(tmp_path / "tiny", prompts=prompts).as_posix()
    options = f'kind = "sentence-transformers", model = "{model}", device = "cpu"'
    dense = f'[[retrievers]]\nname = "m"\nencoder = {{ {options} }}\n'
    dense += "derive = { dimensions = [8] }\n"
    fusions = FUSION.format("hybrid", "m") + FUSION.format("again", "hybrid")
    path = small.experiment(tmp_path, retrievers=dense + small.BM25 + fusions)
    for name, words in (("long", 40), ("longer", 70)):
        text = " ".join(["wing"] * words)
        (tmp_path / "data" / f"{name}.md").write_text(text, encoding="utf-8")
    (truncation,) = check_target(path, results=tmp_path).summary.reaches
    assert truncation.exact
    assert truncation.retriever == "m"
    assert truncation.limit == tiny.LIMIT
    assert truncation.others == ("m-8", "hybrid", "again")
    warnings = map(warning_text, check_target(path).warnings)
    (warning,) = [text for text in warnings if "start" in text]
    assert warning.startswith(
        f"m reads only the start of {truncation.beyond} of 8 documents (12 tokens); "
        f"{truncation.lost} of "
    )
    assert warning.endswith("use a model that reads more; m-8, hybrid and again use it")
    results = run(path, RunOptions(tmp_path / "out"))
    qualities = results.manifest.ledger.retrievers
    lost_tokens = qualities["m"].counts["embed-documents"]["lost_tokens"]
    assert len(qualities["m"].notes["truncated"]) == truncation.beyond >= 2
    assert lost_tokens == truncation.lost > 0
    assert qualities["m-8"].notes["truncated"] == qualities["m"].notes["truncated"]
    alerts = decision_alerts(build_view(results))
    assert [alert for alert in alerts if "only the start" in alert] == [
        "m and 3 others read only the start of all documents. Add chunk."
    ]


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
        pytest.param(OPENAI.format("timeout = inf"), "", id="infinite"),
        pytest.param(OPENAI.format("patience = nan"), "", id="nan"),
        pytest.param(OPENAI.format("dimensions = 2147483648"), "", id="2^31"),
        pytest.param(
            HASHING.format(", dimensions = 2147483648", ""), "", id="hashing: 2^31"
        ),
        pytest.param(
            HASHING.format(
                "", 'store = { location = "edge", m = 99999999999999999999 }'
            ),
            "",
            id="store",
        ),
        pytest.param(
            small.BM25 + HASHING.format("", "") + FUSED, "", id="fusion: infinite"
        ),
        pytest.param(small.BM25, f"seed = {'9' * 5000}", id="5000 digits"),
        pytest.param(
            small.BM25, "[latency]\nsample = 99999999999999999999", id="latency"
        ),
        pytest.param(small.BM25, "x = " + "[" * 3000 + "]" * 3000, id="nested"),
    ],
)
def test_numbers_and_nesting_beyond_all_limits_are_refused(
    tmp_path, capsys, monkeypatch, retrievers, more
):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    path = small.experiment(tmp_path, retrievers=retrievers, more=more)
    message = small.told(capsys, "run", path, "--results", tmp_path / "out", code=2)
    assert len(message) < 1000


@pytest.mark.parametrize(
    ("count", "folded"), [(16, None), (18, "  and 2 more retrievers")]
)
def test_a_check_prints_every_line_and_folds_many_retrievers(tmp_path, count, folded):
    retrievers = "".join(
        f'[[retrievers]]\nname = "h{i}"\n'
        f'encoder = {{ kind = "hashing", dimensions = {8 + i} }}\n'
        for i in range(count)
    )
    path = small.experiment(tmp_path, retrievers=retrievers)
    lines = check_lines(check_target(path))
    planned = [line for line in lines if line.startswith("  h")]
    assert len(planned) == 16
    assert (folded in lines) is (folded is not None)
    assert not [line for line in lines if "--json" in line]
    assert lines[-1] == "nothing is wrong"


SWEEP = """
[sweep]
default = "bm25"
of = "bm25"
"chunk.size" = {sizes}
"""


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ("[0, 20]", "2 configurations, the default bm25 among them: bm25, bm25[20]"),
        ("[20, 40]", "2 configurations, besides the default bm25: bm25[20], bm25[40]"),
    ],
)
def test_a_check_says_whether_a_sweep_counts_the_default(tmp_path, sizes, count):
    sweep = SWEEP.format(sizes=sizes)
    path = small.experiment(tmp_path, retrievers=small.BM25 + sweep)
    assert f"the sweep has {count}" in check_lines(check_target(path))


def test_a_check_counts_the_passages_that_a_run_searches(tmp_path):
    sweep = SWEEP.format(sizes="[0, 20]")
    path = small.experiment(tmp_path, retrievers=small.BM25 + sweep)
    report = check_target(path)
    (count,) = report.passages
    costs = run(path, RunOptions(tmp_path / "out")).costs
    is_index = (costs["retriever"] == "bm25[20]") & (costs["stage"] == "index")
    assert [count.passages] == costs[is_index]["texts"].to_list()
    line = f"bm25[20]: {count.passages} passages of at most 20 characters"
    assert line in check_lines(report)
    assert check_object(report)["passages"] == [
        {
            "retrievers": ("bm25[20]",),
            "size": 20,
            "passages": count.passages,
            "exact": True,
        }
    ]


def test_the_passages_of_many_documents_are_estimated(tmp_path, monkeypatch):
    monkeypatch.setattr(passages, "PASSAGE_SAMPLE", 2)
    sweep = SWEEP.format(sizes="[0, 1000]")
    path = small.experiment(tmp_path, retrievers=small.BM25 + sweep)
    report = check_target(path)
    documents = report.dataset.document_count
    # Each document of the sample is one passage.
    line = f"bm25[1000]: about {documents} passages of at most 1,000 characters"
    assert line in check_lines(report)
