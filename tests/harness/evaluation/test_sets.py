"""One experiment on several data sets, and several experiments in one command."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import harness
from harness import several_sets
from harness.build.build import BuiltExperiment
from harness.console.several_runs import run_files
from harness.evaluation import gate
from harness.evaluation.compare_sets import (
    _strictest,
    compare_set_folders,
    compare_sets_of_folder,
)
from harness.evaluation.gate import GateArm, RetrieversFailed
from harness.evaluation.sets import PairOnSets, compare_over_sets
from harness.evaluation.verdict import Verdict
from harness.experiment import LoadedExperiment, load, load_sets
from harness.preflight.throughput import read_earlier_runs
from harness.records import Results
from harness.records.data_sets_csv import read_sets
from harness.report.results_listing import list_results
from harness.report.sets_page import _board_rows
from harness.reproduce import reproduce
from harness.running.options import RunOptions
from harness.scoring.scores import Scores
from harness.stats.settings import Settings
from harness.wording.sets import (
    few_sets_note,
    leads_sentence,
    sets_sentence,
    sets_sentences,
    sets_verdict,
)
from retrievers.errors import BackendError, InputError
from retrievers.meter import Budget
from tests.support import small
from tests.support.small import Call

pytestmark = pytest.mark.usefixtures("own_cache", "in_tmp")

KNOWN = (0.02, 0.05, -0.01, 0.04, 0.03, 0.06)
"""Mean differences of six sets, from the definitions."""


def several(
    folder: Path, *, name: str = "sets", entries: str = "", report: bool = False
) -> Path:
    """An experiment on three data sets, one with another name, one without a query."""
    for name_of_set in ("hr", "legal", "it"):
        if not (folder / name_of_set).exists():
            small.dataset(folder / name_of_set)
    rows = json.loads((folder / "it" / "queries.json").read_text(encoding="utf-8"))
    (folder / "it" / "queries.json").write_text(json.dumps(rows[:5]), encoding="utf-8")
    path = small.experiment(folder, name=name, report=report)
    listed = entries or '["hr", { path = "legal", name = "law" }, "it"]'
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text(
        "\n".join(
            f"dataset = {listed}" if line.startswith("dataset") else line
            for line in lines
        ),
        "utf-8",
    )
    return path


def scores_of(difference: float, n: int) -> Scores:
    noise = np.linspace(-0.1, 0.1, n)
    ids = tuple(f"{i:03}" for i in range(n))
    return Scores(
        ids=ids, values={"RR": {"a": 0.5 + difference + noise, "b": np.full(n, 0.5)}}
    )


def pair_over_six_sets(
    baseline: str = "b", settings: Settings | None = None
) -> PairOnSets:
    """The comparison of a and b on the six sets."""
    sets = {f"s{i}": scores_of(d, 11 + i) for i, d in enumerate(KNOWN)}
    (pair,) = compare_over_sets(sets, baseline, settings or Settings()).pairs
    return pair


def test_what_six_sets_say_is_the_known_answer() -> None:
    pair = pair_over_six_sets()
    assert pair.differences == pytest.approx(KNOWN)
    assert pair.verdict is Verdict.BETTER
    assert (
        "a is ahead of b on 5 of 6 sets, mean +0.032 (0.006 to 0.058); "
        "on a new set −0.037 to +0.101" in sets_sentence(pair)
    )


def test_the_test_over_new_sets_is_scipys_t_test_of_the_means() -> None:
    new_sets = pair_over_six_sets().new_sets
    theirs = stats.ttest_1samp(KNOWN, 0)
    assert new_sets is not None
    assert new_sets.t == pytest.approx(theirs.statistic)
    assert new_sets.p_value == pytest.approx(theirs.pvalue)


def test_spent_alpha_decides_nothing_over_sets() -> None:
    pair = pair_over_six_sets(settings=Settings(alpha_spent=True))
    assert pair.verdict is Verdict.UNDECIDED


def test_a_sentence_over_sets_is_the_same_however_the_pair_is_turned() -> None:
    turned = pair_over_six_sets(baseline="a")
    assert sets_sentence(turned) == sets_sentence(pair_over_six_sets())


def test_over_sets_every_other_is_compared_with_the_baseline() -> None:
    third = {"RR": {**scores_of(0.1, 11).values["RR"], "c": np.full(11, 0.4)}}
    three = {name: replace(scores_of(0.1, 11), values=third) for name in "st"}
    pairs = compare_over_sets(three, "b", Settings()).pairs
    assert [(pair.a, pair.b) for pair in pairs] == [("a", "b"), ("c", "b")]


BY_STRICTNESS = [
    Settings(alpha=0.05),
    Settings(alpha=0.01),
    Settings(alpha_spent=True),
    Settings(judged_by_people=False),
]


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_of_sets_at_different_looks_the_strictest_settings_hold(
    count: int, turn: int
) -> None:
    settings = BY_STRICTNESS[:count]
    assert _strictest(settings[::turn]) == settings[-1]


def test_each_set_counts_alike_and_three_say_nothing_about_others() -> None:
    comparison = compare_over_sets(
        {
            "large": scores_of(0.2, 400),
            "s": scores_of(-0.1, 12),
            "t": scores_of(-0.1, 12),
        },
        None,
        Settings(),
    )
    (pair,) = comparison.pairs
    # By queries it would be 0.18.
    assert pair.mean_difference == pytest.approx(0.0, abs=1e-9)
    assert pair.verdict is Verdict.UNDECIDED
    assert sets_sentences(comparison, 5)[-1] == few_sets_note(3)


def test_what_is_not_shown_over_sets_has_its_p_beside_it() -> None:
    undecided = replace(
        pair_over_six_sets(), verdict=Verdict.UNDECIDED, p_adjusted=0.00746
    )
    assert sets_sentence(undecided).endswith("not shown (p .007).")


def test_few_differences_of_very_many_queries_are_not_float_noise() -> None:
    many = {
        "a": np.where(np.arange(100_000) < 10, 0.6, 0.5),
        "b": np.full(100_000, 0.5),
    }
    scores = Scores(ids=tuple(map(str, range(100_000))), values={"RR": many})
    comparison = compare_over_sets({"s": scores, "t": scores}, None, Settings())
    # Ten of each set differ, all with one sign.
    assert comparison.pairs[0].p_value == 2 / 2**20


def test_every_set_has_a_folder_of_its_own_and_they_share_a_page(
    tmp_path: Path, call: Call
) -> None:
    path = several(tmp_path)
    assert list(harness.run_sets(path)) == ["hr", "law", "it"]
    folder = tmp_path / "results" / "sets"
    assert not (folder / "report.html").exists()  # report = false
    listed = list_results(tmp_path / "results")
    assert (sorted(entry.folder for entry in listed.entries), listed.skipped) == (
        ["sets/hr", "sets/it", "sets/law"],
        (),
    )
    sets = read_sets(folder)
    assert [
        (results.manifest.name, results.manifest.dataset.scored) for results in sets
    ] == [
        ("hr", 6),
        ("law", 6),
        ("it", 5),
    ]
    with (folder / "data_sets.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    pairs = compare_sets_of_folder(sets).pairs
    assert [float(row["mean_difference"]) for row in rows] == [
        pair.mean_difference for pair in pairs
    ]
    assert [row["t"] for row in rows] == [""] * 3  # of three pairs: three sets are few
    assert reproduce(folder / "law").differing_files == ()
    before = (folder / "hr" / "scores.csv").read_bytes()
    assert (
        len(json.loads(call("report", folder, "--json", code=0).out)["together"]) == 3
    )
    assert (folder / "report.html").exists()
    assert call("run", path, "--quiet") == (
        0,
        "",
        "",
    )  # again, as after a kill: what is done is cached
    assert (folder / "hr" / "scores.csv").read_bytes() == before


def test_a_folder_of_results_lists_the_verdict_over_the_sets(
    tmp_path: Path, call: Call
) -> None:
    harness.run_sets(several(tmp_path))
    printed = call("report", tmp_path / "results", code=0).out
    output = json.loads(call("report", tmp_path / "results", "--json", code=0).out)
    (page,) = output["sets"]
    comparison = compare_sets_of_folder(read_sets(tmp_path / "results" / "sets"))
    leader = comparison.ranked_retrievers[0]
    assert (page["folder"], page["sets"]) == ("sets", 3)
    assert page["retrievers"] == list(comparison.ranked_retrievers)
    assert page["mean"] == pytest.approx(
        sum(comparison.mean(name, leader) for name in comparison.sets) / 3
    )
    assert f"sets, over 3 data sets: {leader} " in printed


def test_the_terminal_says_the_verdict_on_all_sets_before_their_means(
    tmp_path: Path, call: Call
) -> None:
    harness.run_sets(several(tmp_path))
    printed = call("report", tmp_path / "results" / "sets", code=0).out
    comparison = compare_sets_of_folder(read_sets(tmp_path / "results" / "sets"))
    head, verdict, *table = printed.splitlines()
    assert head.endswith("on 3 data sets")
    assert verdict.startswith(sets_verdict(comparison).headline)
    leader = comparison.ranked_retrievers[0]
    assert any(line.startswith(leader) for line in table)


SETS = "results/sets"
TWO = "results/two"
GATE = "--baseline bm25 --challenger hybrid --margin"
SAID = [
    (
        f"gate {SETS} {GATE} 0.02 --margin law=0.9",
        1,
        [
            "law: passed: not worse by 0.9 on 6 queries",
            "it: not shown: with 5 queries a loss of 0.02 cannot be ruled out "
            "(149 needed)",
        ],
    ),
    (f"gate {SETS} {GATE} lw=0.9", 2, ["error: 4 problems"]),
    (
        f"gate {SETS} {GATE} 0.02 --corpus-changed",
        2,
        ["--corpus-changed: is for the results of one data set"],
    ),
    (
        f"compare {SETS} {TWO}",
        0,
        [
            f"Shared data sets: hr; law only in {SETS}; it only in {SETS}; "
            f"other only in {TWO}."
        ],
    ),
    (
        f"compare {SETS} {TWO} --baseline bm52",
        2,
        ["no retriever is called 'bm52' (did you mean 'bm25'?)"],
    ),
    (
        f"compare {SETS} {TWO} --margin 0.02",
        2,
        ["--margin: is for the results of one data set"],
    ),
    (
        f"compare {SETS} {TWO} --test t",
        2,
        ["--test: is for the results of one data set"],
    ),
    (
        f"compare {SETS} {SETS}/hr",
        2,
        [f"{SETS}/hr: holds no results of several data sets"],
    ),
    (
        f"compare {SETS}/hr {SETS}",
        2,
        [f"{SETS}: is not a results folder (give one that it holds, such as"],
    ),
]


def test_a_run_of_several_sets_tells_the_stages_of_each(
    tmp_path: Path, call: Call
) -> None:
    output = call("run", several(tmp_path), code=0)
    told_of = re.findall(r"^(\w+): bm25: index: ", output.err, re.MULTILINE)
    assert told_of == ["hr", "law", "it"]


@pytest.fixture(scope="module")
def results_of_sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results over three sets, and over two of which one is another."""
    folder = tmp_path_factory.mktemp("sets")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("HARNESS_CACHE", str(folder / "cache"))
        harness.run_sets(several(folder, report=True))
        other = '["hr", { path = "data", name = "other" }]'
        harness.run_sets(several(folder, name="two", entries=other))
    return folder


def test_the_page_of_several_sets_leads_to_each(results_of_sets: Path) -> None:
    page = (results_of_sets / SETS / "report.html").read_text(encoding="utf-8")
    assert few_sets_note(3) in page
    assert 'href="law/report.html"' in page


@pytest.mark.parametrize(("words", "code", "sentences"), SAID)
def test_the_sets_are_gated_and_compared_together(
    results_of_sets: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Call,
    words: str,
    code: int,
    sentences: list[str],
) -> None:
    monkeypatch.chdir(results_of_sets)
    output = call(*words.split(), code=code)
    printed = output.out + output.err
    assert [text for text in sentences if text not in printed] == []


def test_the_gate_of_sets_names_each_set_on_which_a_retriever_failed(
    results_of_sets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gate_retrievers(challenger: GateArm, *_: object, **__: object) -> None:
        if challenger.results.manifest.name != "law":
            raise RetrieversFailed("ours failed: no answer")

    monkeypatch.setattr(gate, "gate_retrievers", gate_retrievers)
    message = "hr: ours failed: no answer; it: ours failed: no answer"
    with pytest.raises(RetrieversFailed, match=message):
        gate.gate_sets(results_of_sets / SETS, "hybrid", "bm25", {"": 0.1})


def test_sets_that_a_model_alone_judged_pass_no_gate(
    results_of_sets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "people_judged", lambda _: False)
    gates = gate.gate_sets(results_of_sets / SETS, "hybrid", "bm25", {"": 0.9})
    assert {outcome.outcome for outcome in gates.values()} == {"not shown"}


def test_the_sets_are_exported_together(
    results_of_sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    shutil.copytree(results_of_sets / "results", tmp_path / "results")
    call("export", SETS, "--as", "mteb", code=0)
    file = tmp_path / SETS / "export" / "mteb" / "table.csv"
    header, *rows = file.read_text(encoding="utf-8").splitlines()
    assert header == "Model,Mean (Task),hr,law,it"
    assert len(rows) == 3
    assert list_results(tmp_path / "results").skipped == ()


def test_results_over_the_same_sets_are_compared_set_by_set(
    tmp_path: Path, call: Call
) -> None:
    harness.run_sets(several(tmp_path))
    fewer = several(tmp_path, name="two", entries='["hr", "it"]')
    text = fewer.read_text(encoding="utf-8")
    fewer.write_text(text.replace("dimensions = 64", "dimensions = 8"), "utf-8")
    call("run", fewer, "--quiet", code=0)
    exploratory = call("compare", SETS, TWO, "-m", "P@3", code=0).out
    first_sentence = " ".join(exploratory.split()).partition("Exploratory, by ")[2]
    assert first_sentence.startswith("measure P@3 (declared: nDCG@3): ")
    assert "Use " not in exploratory
    rows = json.loads(call("compare", SETS, TWO, "--json", code=0).out)["together"]
    # The same in both folders, and two that have one name.
    assert {("bm25", "sets/hashing"), ("sets/hashing", "two/hashing")} <= {
        (row["a"], row["b"]) for row in rows
    }


def test_a_retriever_that_failed_on_a_set_has_no_scores_of_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
def ours(queries, depth):
    return [["apple"]] * len(queries)
def theirs(queries, depth):
    assert len(queries) == 6, "down"
    return [["pear"]] * len(queries)
"""
    module = small.module(tmp_path, monkeypatch, code)
    for name in ("ours", "theirs"):
        path = several(tmp_path, name=name)
        tables = path.read_text(encoding="utf-8").partition("[[retrievers]]")[0]
        fn = f'[[retrievers]]\nname = "fn"\nkind = "python"\ncall = "{module}:{name}"\n'
        path.write_text(tables + small.BM25 + fn, encoding="utf-8")
        harness.run_sets(path)
    folders = [tmp_path / "results" / name for name in ("ours", "theirs")]
    comparison, _ = compare_set_folders(folders, [], None, Settings())
    assert comparison.retrievers == ("bm25", "ours/fn")
    assert [failure.retriever for failure in comparison.failed] == ["fn"]


def test_check_takes_several_data_sets(tmp_path: Path, call: Call) -> None:
    path = several(tmp_path)
    sets = json.loads(call("check", path, "--json", code=0).out)["data_sets"]
    assert [data_set["queries"] for data_set in sets] == [6, 6, 5]
    assert sum(data_set["total"]["texts"] for data_set in sets) == 3 * 6 + 6 + 6 + 5
    harness.run(
        small.experiment(tmp_path, name="hr")
    )  # the same data in another experiment
    call("run", path, "--quiet", code=0)
    earlier_runs = read_earlier_runs(Path("results"))
    assert [results.manifest.name for results in earlier_runs] == [
        "hr",
        "hr",
        "it",
        "law",
    ]
    sets = json.loads(call("check", path, "--json").out)["data_sets"]
    assert [data_set["total"]["calls"] for data_set in sets] == [0, 0, 0]
    assert "is a list of 3 data sets, and this takes one" in str(
        small.refusal(load, path)
    )
    shutil.rmtree(tmp_path / "it")
    assert "'it' does not exist" in call("check", path).err


def test_a_set_that_is_stopped_or_fails_leaves_the_others_whole(
    tmp_path, call, monkeypatch
):
    path = several(tmp_path)
    run_one_set = several_sets.run_built
    ends: dict[str, BaseException] = {"law": KeyboardInterrupt()}

    def run(
        loaded: LoadedExperiment,
        built: BuiltExperiment,
        options: RunOptions,
        budget: Budget,
    ) -> Results:
        error = ends.pop(loaded.experiment.name, None)
        if error is not None:
            raise error
        return run_one_set(loaded, built, options, budget)

    monkeypatch.setattr(several_sets, "run_built", run)
    assert "the same command continues" in call("run", path, code=130).err
    assert (tmp_path / "results" / "sets" / "hr" / "manifest.json").exists()
    ends["law"] = BackendError("nobody answered")
    assert (
        call("run", path, code=3).err.splitlines()[-1] == "error: law: nobody answered"
    )
    assert [
        results.manifest.name for results in read_sets(tmp_path / "results" / "sets")
    ] == [
        "hr",
        "it",
    ]
    assert call("run", path, "--quiet") == (0, "", "")
    assert len(read_sets(tmp_path / "results" / "sets")) == 3


@pytest.mark.parametrize("sets_per_file", [3, 1])
def test_what_a_failed_set_spent_is_taken_off_the_limit_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sets_per_file: int
) -> None:
    limits: list[float | None] = []

    def run(*_: object) -> Results:
        budget = _[-1]
        assert isinstance(budget, Budget)
        limits.append(budget.limit)
        budget.reserve(0.25)
        raise BackendError("nobody answered")

    monkeypatch.setattr(several_sets, "run_built", run)
    sets = load_sets(several(tmp_path))
    files = [sets[i : i + sets_per_file] for i in range(0, 3, sets_per_file)]
    with pytest.raises(BackendError, match="nobody answered"):
        run_files(files, RunOptions(tmp_path / "out", max_cost=1.0))
    assert limits == [1.0, 0.75, 0.5]


@pytest.mark.parametrize(
    ("entries", "told_of"),
    [
        ("[]", "is an empty list"),
        ('["hr", "other/HR"]', "'HR' occurs twice"),
        ('["hr", 3]', "dataset"),
        (
            '["hr", { path = "it", name = "../it" }]',
            "'../it' is not a name of a folder",
        ),
        (r'["hr", { path = "it", name = "it\n" }]', "is not a name of a folder"),
        ('["hr", { path = "it", name = "日本" }]', r"has letters \(A to Z\), digits"),
    ],
)
def test_a_list_that_cannot_be_is_refused(
    tmp_path: Path, entries: str, told_of: str
) -> None:
    with pytest.raises(InputError, match=told_of):
        load_sets(several(tmp_path, entries=entries))


def test_retrievers_that_float_noise_separates_lead_a_set_together() -> None:
    column = np.linspace(0.1, 0.9, 12)
    ids = tuple(f"{i:02}" for i in range(12))
    values = {"RR": {"a": column, "b": column + 1e-13}}
    sets = {name: Scores(ids=ids, values=values) for name in "st"}
    comparison = compare_over_sets(sets, None, Settings())
    assert [row.sets_won for row in _board_rows(comparison, "a")] == [2, 2]
    assert leads_sentence(comparison) == "a leads on both data sets, b on 2."


@pytest.mark.parametrize("order", [("hr", "plain"), ("plain", "hr")])
def test_sets_of_which_one_has_no_labels_have_a_line_each(
    tmp_path: Path, call: Call, order: tuple[str, str]
) -> None:
    small.dataset(tmp_path / "plain", labelled=False)
    path = several(tmp_path, entries=json.dumps(order))
    printed = call("run", path, "--results", tmp_path / "out", code=0).out
    assert "sets/plain: rankings without labels\n" in printed
    assert "sets/hr: " in printed


def test_several_experiments_run_in_turn_with_one_summary(
    tmp_path: Path, call: Call
) -> None:
    first, second = (
        small.experiment(tmp_path, name=name) for name in ("first", "second")
    )
    output = call("run", first, second, code=0).err
    assert "first: bm25: index: " in output
    assert "second: bm25: index: " in output


def test_one_experiment_named_twice_is_refused(tmp_path: Path, call: Call) -> None:
    first = small.experiment(tmp_path, name="first")
    refused = call("run", first, first, code=2).err
    assert "'first' is in two files (rename one)" in refused


def test_a_mistake_in_the_second_experiment_is_told_before_the_first_runs(
    tmp_path: Path, call: Call
) -> None:
    first, second = (
        small.experiment(tmp_path, name=name) for name in ("first", "second")
    )
    text = second.read_text(encoding="utf-8")
    second.write_text(text.replace('"nDCG@3"\n', '"nDCG@4"\n'), encoding="utf-8")
    refused = call("run", first, second, "--json", code=2)
    assert "nDCG@4 is not among the measures" in refused.err
    assert "first: bm25: index: " not in refused.err


def test_a_set_without_a_query_that_every_retriever_has_is_named() -> None:
    values = {"RR": {"a": np.full(11, np.nan), "b": np.full(11, 0.5)}}
    sets = {"hr": scores_of(0.1, 11), "law": replace(scores_of(0, 11), values=values)}
    with pytest.raises(InputError, match="law: has no query with a value of RR"):
        compare_over_sets(sets, None, Settings())


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (
            1,
            ["on the only set it", "on the only data set.", "of 1 set,"],
        ),
        (2, ["on the average of two sets it", "on both data sets.", "of 2 sets,"]),
        (3, ["on the average of three sets it", "on all 3 data sets.", "of 3 sets,"]),
    ],
)
def test_sets_are_counted_in_words(sets: int, words: list[str]) -> None:
    comparison = compare_over_sets(
        {f"s{i}": scores_of(0.3, 20) for i in range(sets)}, None, Settings()
    )
    text = " ".join(sets_sentences(comparison, 1)).lower()
    assert [part for part in words if part not in text] == []
