"""`harness prefer`: what people prefer, and what follows."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from harness.labels import preference_counts
from harness.labels.compared_rankings import ComparisonDesign
from harness.labels.preference_counts import label_agreement
from harness.scoring.scores import Scores
from harness.stats.proportion import (
    clopper_pearson,
    detectable_share,
    sign_test_level,
)
from harness.wording.preferences import preference_power_sentence
from tests.support import exported, small
from tests.support.small import told

PAIR = ("bm25", "hashing")


@pytest.fixture
def page(finished, tmp_path, capsys, monkeypatch):
    """Return the page of two retrievers on the six small queries."""
    monkeypatch.chdir(tmp_path)
    told(capsys, "prefer", finished.folder, *PAIR)
    return tmp_path / "prefer.html"


def rankings(finished, name):
    return {
        query: ranking.doc_ids[:5] for query, ranking in finished.rankings(name).items()
    }


def choosing(finished, page, name):
    """The side on which a retriever's list is."""
    data = exported.page_data(page)
    names = [row["title"] or row["text"] for row in data["documents"]]
    best = rankings(finished, name)

    def choose(query, round_):
        left_titles = tuple(names[number] for number in query["left"])
        titles = tuple(
            finished.documents[id_].title or finished.documents[id_].text
            for id_ in best[query["id"]]
        )
        side = "left" if left_titles == titles else "right"
        if round_ == 2:
            side = {"left": "right", "right": "left"}[side]
        return side

    return choose


def counted(capsys, finished, *files):
    options = [word for file in files for word in ("--from", file)]
    return told(capsys, "prefer", finished.folder, *PAIR, *options)


def test_the_page_says_how_many_queries_differ(finished, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    begun = told(capsys, "prefer", finished.folder, *PAIR)
    differing = sum(
        rankings(finished, "bm25")[query] != rankings(finished, "hashing")[query]
        for query in finished.queries
    )
    assert f"{differing} of {differing} queries whose first 5 differ" in begun
    assert "--from ~/Downloads/preferences.jsonl" in begun


@pytest.mark.parametrize("name", PAIR)
def test_sides_are_resolved_and_repeats_are_no_votes(finished, page, capsys, name):
    choose = choosing(finished, page, name)
    file = exported.preferences(page, page.with_name("p.jsonl"), choose)
    queries = len(exported.page_data(page)["queries"])
    printed = counted(capsys, finished, file)
    p = binomtest(queries, queries).pvalue
    assert f"{queries} of {queries} prefer {name}, 0 the same: p = " in printed
    assert f"{p:.3f}".removeprefix("0") in printed
    repeated = min(5, queries)
    assert f"the same answer to {repeated} of {repeated}." in printed
    assert "By the labels" in printed


def test_answers_that_follow_the_side_agree_with_nothing(finished, page, capsys):
    file = exported.preferences(page, page.with_name("p.jsonl"), lambda *_: "left")
    printed = counted(capsys, finished, file)
    assert "the same answer to 0 of " in printed
    assert "followed the side, not the list" in printed


def test_no_preference_at_all_is_undecided(finished, page, capsys):
    file = exported.preferences(page, page.with_name("p.jsonl"), lambda *_: "same")
    printed = counted(capsys, finished, file)
    assert "no query has a preference" in printed
    assert "Undecided" in printed


def test_each_further_file_is_a_look(finished, page, capsys):
    whole = exported.preferences(page, page.with_name("all.jsonl"), lambda *_: "left")
    first = page.with_name("first.jsonl")
    first.write_text("".join(whole.read_text().splitlines(keepends=True)[:3]))
    assert "This is look number 2 (before: 3 queries)" in counted(
        capsys, finished, first, whole
    )


def test_of_several_people_the_majority_counts(finished, page, capsys):
    files = [
        exported.preferences(
            page,
            page.with_name(f"{judge}.jsonl"),
            lambda *_, side=choice: side,
            judge=judge,
        )
        for judge, choice in (("ann", "same"), ("ben", "left"), ("cy", "right"))
    ]
    printed = counted(capsys, finished, *files)
    assert "3 people: for each query the majority counts." in printed
    assert "no query has a preference" in printed


def test_texts_can_be_left_out(finished, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told(capsys, "prefer", finished.folder, *PAIR, "--no-texts")
    data = exported.page_data(tmp_path / "prefer.html")
    assert all(row["text"] == row["id"] for row in data["queries"])
    assert {row["text"] for row in data["documents"]} == {""}
    assert {row["title"] for row in data["documents"]} <= set(small.TEXTS)


def test_a_larger_page_begins_with_the_smaller_one(
    finished, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    told(capsys, "prefer", finished.folder, *PAIR, "--queries", 3, "--output", "3.html")
    told(capsys, "prefer", finished.folder, *PAIR, "--output", "6.html")
    small_page = exported.page_data(tmp_path / "3.html")
    large_page = exported.page_data(tmp_path / "6.html")
    few_ids = [row["id"] for row in small_page["queries"]]
    all_ids = [row["id"] for row in large_page["queries"]]
    assert all_ids[:3] == few_ids
    assert small_page["page"] == large_page["page"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bm25", "bm25"], "bm25: is compared with itself"),
        (["bm25", "nothing"], "no retriever is called 'nothing'"),
        ([*PAIR, "--from", "no.jsonl"], "no.jsonl"),
        ([*PAIR, "--from", "bad.jsonl"], "bad.jsonl:1"),
        ([*PAIR, "--from", "none.jsonl"], "none.jsonl: holds no preference"),
        (["bm25", "hybrid", "--from", "p.jsonl"], "belongs to another comparison"),
        ([*PAIR, "--output", "notes.txt"], "notes.txt: exists, and is not a page"),
    ],
)
def test_mistakes_are_one_sentence(finished, page, capsys, words, message):
    exported.preferences(page, page.with_name("p.jsonl"), lambda *_: "left")
    page.with_name("bad.jsonl").write_text('{"query_id": "q", "choice": "up"}\n')
    page.with_name("none.jsonl").write_text("")
    page.with_name("notes.txt").write_text("my notes")
    refused = told(capsys, "prefer", finished.folder, *words, code=2)
    assert message in refused
    assert "Traceback" not in refused


def test_programs_read_the_same(finished, page, capsys):
    file = exported.preferences(
        page, page.with_name("p.jsonl"), choosing(finished, page, "bm25")
    )
    options = ("--from", file, "--json")
    printed = json.loads(told(capsys, "prefer", finished.folder, *PAIR, *options))
    assert printed["leader"] == "bm25"
    assert printed["for_b"] == 0


@pytest.mark.parametrize(
    ("successes", "trials"), [(0, 5), (5, 5), (17, 22), (1, 3), (250, 1000)]
)
def test_the_interval_is_that_of_scipy(successes, trials):
    oracle = binomtest(successes, trials).proportion_ci(method="exact")
    interval = clopper_pearson(successes, trials)
    assert interval == pytest.approx((oracle.low, oracle.high), abs=1e-12)


@pytest.mark.parametrize("n", [5, 6, 12, 25, 50])
def test_the_level_is_that_of_scipy(n):
    rejecting = [k for k in range(n + 1) if binomtest(k, n).pvalue <= 0.05]
    level = binom.pmf(rejecting, n, 0.5).sum()
    assert sign_test_level(n) == pytest.approx(level, abs=1e-12)


@pytest.mark.parametrize("n", [6, 12, 25, 50])
def test_a_detectable_share_has_the_power_of_80_percent_by_scipy(n):
    upper = [k for k in range(n // 2 + 1, n + 1) if binomtest(k, n).pvalue <= 0.05]
    power = binom.pmf(upper, n, detectable_share(n)).sum()
    assert 0.80 <= power < 0.81


def test_of_five_answers_no_share_is_detectable():
    """All five for one has a p of 2 in 32."""
    assert detectable_share(5) is None


def test_the_page_states_what_it_can_show(page):
    text = page.read_text(encoding="utf-8")
    queries = len(exported.page_data(page)["queries"])
    assert preference_power_sentence(queries) in text


def test_planned_looks_spend_the_level_as_for_labels(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = small.ran(tmp_path, more="[statistics]\nlooks = { queries = [3, 60] }")
    told(capsys, "prefer", results.folder, *PAIR, "--queries", 3)
    file = exported.preferences(Path("prefer.html"), Path("p.jsonl"), lambda *_: "left")
    printed = counted(capsys, results, file)
    assert "Look 1 (planned at 3, 60): level " in printed
    assert "Undecided" in printed
    options = ("--from", file, "--json")
    told_json = json.loads(told(capsys, "prefer", results.folder, *PAIR, *options))
    assert told_json["level"] < 1e-6


def test_labels_say_that_a_pair_without_the_baseline_is_not_tested(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    results = small.ran(tmp_path, more='baseline = "hybrid"')
    told(capsys, "prefer", results.folder, *PAIR)
    file = exported.preferences(Path("prefer.html"), Path("p.jsonl"), lambda *_: "left")
    assert "(not tested)" in counted(capsys, results, file)


def label_difference(finished, monkeypatch, first, second, weights=None):
    """The agreement with labels by other scores of bm25 and hashing, query by query."""
    values = {"bm25": np.array(first), "hashing": np.array(second)}
    scores = Scores(
        ids=tuple(f"q{number}" for number in range(1, len(first) + 1)),
        values={finished.manifest.resolved.primary: values},
        weights=weights,
    )
    monkeypatch.setattr(preference_counts, "stored_scores", lambda _: scores)
    design = ComparisonDesign(*PAIR, depth=5, seed=0)
    return label_agreement(finished, design, {"q1": 1, "q2": 1})


def test_labels_leave_out_queries_of_which_one_retriever_has_no_value(
    finished, monkeypatch
):
    agreement = label_difference(finished, monkeypatch, [0.5, 0.2], [math.nan, 0.2])
    assert (agreement.difference, agreement.both) == (0.0, 0)


def test_labels_differ_by_the_weighted_mean(finished, monkeypatch):
    agreement = label_difference(
        finished, monkeypatch, [1.0, 0.0], [0.0, 0.5], weights=(1.0, 3.0)
    )
    assert agreement.difference == pytest.approx(1 / 4 - 3 * 0.5 / 4)
    assert (agreement.both, agreement.agreeing) == (2, 1)


def test_labels_without_a_query_of_both_values_show_no_difference(
    finished, monkeypatch
):
    agreement = label_difference(finished, monkeypatch, [0.5], [math.nan])
    assert agreement.difference == 0.0
