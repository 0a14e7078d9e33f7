"""Several results folders in one comparison, and a gate across two folders."""

import json
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import records
from harness.evaluation.join_folders import score_folders
from harness.reproduce import reproduce
from harness.scoring.declared_settings import read_declared_settings
from harness.scoring.shared_queries import find_shared_queries
from harness.stats.settings import Settings
from retrievers.types import Span
from tests.support import small
from tests.support.small import Call

OTHER = (
    '[[retrievers]]\nname = "bm25"\nencoder = { kind = "hashing", dimensions = 3 }\n'
)
HASHING = """
[[retrievers]]
name = "hashing"
encoder = { kind = "hashing", dimensions = 64 }
"""


def run_small(folder: Path, name: str, **options: str) -> Path:
    """Return a results folder; its data set is created if there is none."""
    return harness.run(
        small.experiment(folder, name=name, **options),
        harness.RunOptions(folder / "out"),
    ).folder


def write_changed_queries(folder: Path) -> None:
    """Write the same documents with other queries.

    Of six queries one is gone, one is new, one has another text, one other labels.
    """
    small.dataset(folder / "data")
    rows = [
        {"id": id_, "query": text, "relevant_documents": docs}
        for id_, text, docs in small.QUERIES
    ]
    rows = [row for row in rows if row["id"] != "q-rails"]
    rows[0]["query"] = "fruit of trees"
    rows[1]["relevant_documents"] = ["car", "train"]
    rows.append(
        {"id": "q-new", "query": "what has fins", "relevant_documents": ["fish"]}
    )
    (folder / "data" / "queries.json").write_text(json.dumps(rows), encoding="utf-8")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a first experiment."""
    return run_small(tmp_path_factory.mktemp("first"), "first")


def test_folders_are_compared_on_the_queries_that_both_have(
    call: Call, tmp_path: Path, first: Path
) -> None:
    write_changed_queries(tmp_path / "y")
    second = run_small(tmp_path / "y", "second", retrievers=OTHER)
    shared = find_shared_queries(
        [records.read_results(first), records.read_results(second)]
    )
    assert shared == (("q-swim", "q-green", "q-drive"), 2, 1, 1)
    output = call("compare", first, second, "-m", "nDCG@3", "--json")
    printed = json.loads(output.out)
    assert printed["notes"][0] == (
        "Compared on the 3 queries that all folders share. Left out: "
        "2 that not every folder has, 1 with another text, 1 with other labels."
    )
    assert output.err.startswith(printed["notes"][0])


def test_a_query_with_other_labelled_spans_is_not_shared(first: Path) -> None:
    results = records.read_results(first)
    labelled = results.queries["q-swim"]
    labels = replace(labelled.labels, spans=(Span("fish", 0, 4),))
    queries = {**results.queries, "q-swim": labelled._replace(labels=labels)}
    shared = find_shared_queries([results, replace(results, queries=queries)])
    assert shared.relabelled == 1
    assert "q-swim" not in shared.ids


def test_a_query_after_another_conversation_is_not_shared(first: Path) -> None:
    results = records.read_results(first)
    labelled = results.queries["q-swim"]
    later = replace(labelled.query, history=("and fish?",))
    queries = {**results.queries, "q-swim": labelled._replace(query=later)}
    shared = find_shared_queries([results, replace(results, queries=queries)])
    assert shared.reworded == 1
    assert "q-swim" not in shared.ids


def test_trec_files_alone_give_the_same_comparison(
    call: Call, tmp_path: Path, first: Path
) -> None:
    write_changed_queries(tmp_path / "y")
    second = run_small(tmp_path / "y", "second", retrievers=OTHER)
    printed = json.loads(call("compare", first, second, "-m", "nDCG@3", "--json").out)
    (tmp_path / "ids").write_text("q-swim\nq-green\nq-drive\n", encoding="utf-8")
    runs = {
        "first/bm25": first / "runs/bm25.trec",
        "second/bm25": second / "runs/bm25.trec",
        "hybrid": first / "runs/hybrid.trec",
        "hashing": first / "runs/hashing.trec",
    }
    for name, run in runs.items():
        copy = tmp_path / "runs" / f"{name.replace('/', '~')}.trec"
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(run.read_bytes())
    plain = call(
        "compare",
        first / "qrels.trec",
        *sorted((tmp_path / "runs").iterdir()),
        "-m",
        "nDCG@3",
        "--queries",
        tmp_path / "ids",
        "--json",
    )
    rows = json.loads(plain.out)
    means = {row["retriever"].replace("~", "/"): row["mean"] for row in rows["summary"]}
    folder_means = {row["retriever"]: row["mean"] for row in printed["summary"]}
    assert folder_means == pytest.approx(means)
    assert p_by_pair(printed["comparisons"]) == p_by_pair(rows["comparisons"])


def p_by_pair(rows: list[dict[str, Any]]) -> dict[frozenset[str], float]:
    """Return the adjusted p of each pair; the names of files have ~ for /."""
    p_values: dict[frozenset[str], float] = {}
    for row in rows:
        pair = frozenset([row["a"].replace("~", "/"), row["b"].replace("~", "/")])
        p_values[pair] = row["p_adjusted"]
    return p_values


def test_a_retriever_with_the_same_results_in_two_folders_occurs_once(
    call: Call, tmp_path: Path
) -> None:
    third = run_small(tmp_path, "first")
    fourth = run_small(tmp_path, "second", retrievers=OTHER + HASHING)
    joined = score_folders([third, fourth], ["DCG@3", "AP"])
    assert list(joined.retrievers) == ["first/bm25", "hashing", "hybrid", "second/bm25"]
    assert list(joined.notes) == [
        "Compared on all 6 queries, the same in every folder.",
        "Found the same in more than one folder, and compared once: hashing.",
    ]
    alone = run_small(tmp_path, "alone", retrievers=OTHER)
    (tmp_path / "elsewhere").mkdir()
    twin = alone.rename(tmp_path / "elsewhere" / "alone")
    again = run_small(tmp_path, "alone", retrievers=OTHER)
    assert list(score_folders([twin, again], []).retrievers) == [
        "elsewhere/alone/bm25",
        "out/alone/bm25",
    ]
    assert "is named twice" in call("compare", third, third).err


def test_a_renamed_retriever_makes_no_pair_with_itself(
    tmp_path: Path, first: Path
) -> None:
    renamed = small.RETRIEVERS.replace('"bm25"', '"words"').replace(
        'kind = "words"', 'kind = "bm25"'
    )
    second = run_small(
        tmp_path, "second", retrievers=renamed.replace('"hybrid"', '"both"')
    )
    joined = score_folders([first, second], [])
    assert list(joined.retrievers) == ["bm25", "hashing", "hybrid"]
    assert joined.notes[1] == (
        "Found the same in more than one folder, and compared once: "
        "bm25 (called words in second), hashing and hybrid (called both in second)."
    )


def test_one_name_with_other_options_is_another_retriever_though_it_finds_the_same(
    tmp_path: Path, first: Path
) -> None:
    other = small.RETRIEVERS.replace(
        'kind = "fusion"', 'kind = "fusion"\nconstant = 61'
    )
    joined = score_folders([first, run_small(tmp_path, "second", retrievers=other)], [])
    assert list(joined.retrievers) == [
        "bm25",
        "hashing",
        "first/hybrid",
        "second/hybrid",
    ]
    assert joined.identical == {frozenset({"first/hybrid", "second/hybrid"})}


def test_what_differs_beside_the_retrievers_is_said(
    tmp_path: Path, first: Path
) -> None:
    small.dataset(tmp_path / "y" / "data")
    (tmp_path / "y" / "data" / "bird.md").write_text(
        "# bird\n\nbirds fly over water\n", encoding="utf-8"
    )
    path = small.experiment(tmp_path / "y", name="second")
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            'primary = "nDCG@3"', 'primary = "AP"'
        ),
        encoding="utf-8",
    )
    second = harness.run(path, harness.RunOptions(tmp_path / "y")).folder
    notes = list(score_folders([first, second], []).notes)
    assert notes[-2:] == [
        f"The experiments decide by different measures ({first} by nDCG@3 and "
        f"{second} by AP): nDCG@3 decides here.",
        f"The documents are not the same (6 in {first} and 7 in {second}): "
        "a difference may come from them.",
    ]


def test_folders_without_a_common_query_are_no_comparison(
    call: Call, tmp_path: Path, first: Path
) -> None:
    rows = [{"id": "other", "query": "fins", "relevant_documents": ["fish"]}]
    (small.dataset(tmp_path / "y" / "data") / "queries.json").write_text(
        json.dumps(rows), encoding="utf-8"
    )
    second = run_small(tmp_path / "y", "second")
    same = run_small(tmp_path, "same")
    small.dataset(tmp_path / "z" / "data", labelled=False)
    (tmp_path / "ids").write_text("q-rails\nq-unknown\n", encoding="utf-8")
    for words, message in (
        ((second,), "share no query with the same text and the same grades"),
        ((second, "--skip-no-relevant"), "--skip-no-relevant: is for TREC runs"),
        ((first.parent / "none",), "does not exist"),
        ((tmp_path,), "is not a results folder"),
        ((run_small(tmp_path / "z", "bare"),), "no query has labels"),
        ((same, "--queries", tmp_path / "ids"), "query 'q-unknown': is not a query"),
    ):
        output = call("compare", first, *words, code=2)
        assert output.out == "" and message in output.err


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the release in use."""
    return run_small(tmp_path_factory.mktemp("release"), "release")


@pytest.fixture(scope="module")
def new(release: Path) -> Path:
    """The results of the next one, on the same data."""
    return run_small(release.parents[1], "new", retrievers=OTHER)


GATE = ("--baseline", "bm25", "--challenger", "bm25", "--margin", "0.9")


def test_a_gate_takes_its_baseline_from_an_earlier_folder(
    call: Call, new: Path, release: Path
) -> None:
    output = call("gate", new, "--from", release, *GATE, code=0)
    assert output.out.startswith("passed: not worse by 0.9 on 6 queries (")
    assert output.err == "Compared on all 6 queries, the same in every folder.\n"
    printed = json.loads(call("gate", new, "--from", release, *GATE, "--json").out)
    means = [
        records.read_results(folder).summary.set_index(["retriever", "measure"])[
            "mean"
        ]["bm25", "nDCG@3"]
        for folder in (new, release)
    ]
    assert (printed["mean_difference"], printed["n"]) == (
        pytest.approx(means[0] - means[1]),
        6,
    )
    # Both in one folder give the same answer.
    both = (
        OTHER.replace('"bm25"', '"new"', 1)
        + '\n[[retrievers]]\nname = "old"\nkind = "bm25"\n'
    )
    inside = run_small(release.parents[1], "both", retrievers=both)
    words = ("--baseline", "old", "--challenger", "new", "--margin", "0.9", "--json")
    assert json.loads(call("gate", inside, *words).out)["p_value"] == printed["p_value"]


def test_a_gate_says_what_its_folders_share_and_refuses_a_baseline_on_other_ground(
    call, tmp_path, release
):
    path = small.dataset(tmp_path / "fewer" / "data") / "queries.json"
    path.write_text(
        json.dumps(json.loads(path.read_text(encoding="utf-8"))[:4]), encoding="utf-8"
    )
    output = call(
        "gate", run_small(tmp_path / "fewer", "new"), "--from", release, *GATE
    )
    note = (
        "Compared on the 4 queries that all folders share. "
        "Left out: 2 that not every folder has.\n"
    )
    assert output.err.startswith(note)
    write_changed_queries(tmp_path / "labels")
    (small.dataset(tmp_path / "documents" / "data") / "bird.md").write_text(
        "# bird\n\nbirds fly\n", encoding="utf-8"
    )
    path = small.experiment(tmp_path, name="by-ap")
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            'primary = "nDCG@3"', 'primary = "AP"'
        ),
        encoding="utf-8",
    )
    new = harness.run(path, harness.RunOptions(tmp_path / "out")).folder
    for folder, baseline, start, message in (
        (
            run_small(tmp_path / "labels", "new"),
            "bm25",
            release,
            "has 2 of the same queries with another text or other",
        ),
        (
            run_small(tmp_path / "documents", "new"),
            "bm25",
            release,
            "holds results on other documents than",
        ),
        (new, "bm25", release, "was decided by nDCG@3"),
        (new, "hash", release, "did you mean 'hashing'?"),
        (release, "bm25", release.parent, "is not a results folder"),
    ):
        output = call(
            "gate", folder, "--from", start, "--baseline", baseline, *GATE[2:], code=2
        )
        assert output.out == "" and message in output.err


def test_folders_are_compared_by_the_statistics_that_they_declare(
    call: Call, tmp_path: Path, release: Path
) -> None:
    declares = """
[statistics]
margin = 0.03
alpha = 0.2
correction = "bonferroni"
looks = { queries = [2, 6] }
"""
    first_declaring = run_small(tmp_path / "x", "x", more=declares)
    second_declaring = run_small(tmp_path / "y", "y", more=declares)
    declared, note = read_declared_settings([first_declaring, second_declaring])
    assert (declared.margin, declared.alpha, declared.correction, note) == (
        0.03,
        0.2,
        "bonferroni",
        "",
    )
    apart = (
        "declare different statistics (alpha, correction, looks and margin): "
        "the defaults count here."
    )
    assert read_declared_settings([first_declaring, release]) == (
        Settings(),
        f"The experiments {apart}",
    )
    assert read_declared_settings(
        [first_declaring, first_declaring / "qrels.trec"]
    ) == (Settings(), "")
    assert "0.03" in call("compare", first_declaring, second_declaring, "--explain").out
    assert apart in call("compare", first_declaring, release).err
    alone = json.loads(call("compare", first_declaring, "--json").out)["comparisons"]
    as_run = records.read_results(first_declaring).comparisons.to_dict("records")
    names = ("measure", "a", "b", "ci_low", "ci_high", "p_adjusted", "verdict")
    read = itemgetter(*names)
    compared = list(map(read, alone[:3]))
    assert compared == list(map(read, as_run[:3]))
    assert {row[0] for row in compared} == {"nDCG@3"}
    other = call(
        "compare", first_declaring, "--json", "--correction", "holm", "--test", "t"
    ).out
    assert json.loads(other)["comparisons"] != alone


def test_comparing_claims_nothing_once_the_planned_looks_have_spent_alpha(
    tmp_path: Path,
) -> None:
    over, again = (
        run_small(
            tmp_path / name, name, more="[statistics]\nlooks = { queries = [3] }\n"
        )
        for name in "ab"
    )
    verdicts = (
        harness.open_results(over).compare(again, alpha=0.5).comparisons["verdict"]
    )
    assert set(verdicts) == {"undecided: alpha is spent"}


@pytest.fixture
def relative_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results of an experiment whose paths are relative; another folder is current."""
    project = tmp_path / "project"
    small.dataset(project / "data")
    monkeypatch.chdir(project)
    experiment_file = small.experiment(project)
    text = experiment_file.read_text(encoding="utf-8")
    relative_text = text.replace((project / "data").as_posix(), "data")
    experiment_file.write_text(relative_text, encoding="utf-8")
    results = harness.run("small.toml", harness.RunOptions(Path("results")))
    elsewhere = tmp_path / "elsewhere" / "deeper"
    elsewhere.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    return project / results.folder


def test_a_folder_is_reproduced_from_any_working_directory(
    relative_results: Path,
) -> None:
    assert reproduce(relative_results).versions == ()
    results = records.read_results(relative_results)
    assert records.current_dataset(results).document_count == len(small.TEXTS)


def test_a_run_is_reproduced_with_its_looks_although_earlier_runs_are_elsewhere(
    tmp_path: Path,
) -> None:
    looks = "[statistics]\nlooks = { queries = [3, 6] }\n"
    small.dataset(tmp_path / "data")
    queries_file = tmp_path / "data" / "queries.json"
    rows = json.loads(queries_file.read_text(encoding="utf-8"))
    queries_file.write_text(json.dumps(rows[:4]), encoding="utf-8")
    run_small(tmp_path, "first", more=looks)
    queries_file.write_text(json.dumps(rows), encoding="utf-8")
    second = run_small(tmp_path, "second", more=looks)

    assert records.read_manifest(second).earlier_looks == (4,), "none that was planned"
    assert reproduce(second).differing_files == ()


@pytest.mark.parametrize("content", ["other documents", "no data set"])
def test_the_data_with_the_digest_of_the_run_are_found_not_others_of_that_name(
    relative_results: Path, tmp_path: Path, content: str
) -> None:
    other = tmp_path / "elsewhere" / "data"
    if content == "other documents":
        (small.dataset(other) / "bird.md").write_text("# bird\n\nbirds fly\n")
    else:
        other.mkdir()
    results = records.read_results(relative_results)
    assert records.find_dataset(results).folder.resolve() != other
    assert reproduce(relative_results).versions == ()
