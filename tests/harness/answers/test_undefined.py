"""Per-query scores of any tool, values that are undefined, and the comparisons over what both have."""

import json
import math

import numpy as np
import pytest

from harness.evaluation.evaluate import evaluate_scores
from harness.evaluation.verdict import Verdict
from harness.scoring.foreign_csv import read_score_file
from harness.scoring.score_table import scores_from_rows
from harness.stats.settings import Settings
from harness.wording.conclusion import lead_sentence
from tests.support.scored import compare
from tests.support.small import refusal

NAN = math.nan
BASE = np.random.default_rng(11).integers(0, 5, size=(3, 30)) / 4


def values(*rows):
    return {
        name: np.array(row, dtype=np.float64)
        for name, row in zip("abc", rows, strict=False)
    }


def test_a_pair_is_compared_where_both_are_defined() -> None:
    rows = BASE.copy()
    rows[:, ::3] = NAN  # undefined for all: left out as if they were not there
    assert compare(values(*rows)) == compare(
        values(*np.delete(BASE, np.s_[::3], axis=1))
    )
    rows = BASE.copy()
    rows[0, :5] = rows[1, 4:9] = NAN
    comparisons = {(row.a, row.b): row for row in compare(values(*rows))}
    assert {pair: row.n for pair, row in comparisons.items()} == {
        ("a", "b"): 21,
        ("a", "c"): 25,
        ("b", "c"): 25,
    }
    for (a, b), row in comparisons.items():
        x, y = rows["abc".index(a)], rows["abc".index(b)]
        both = ~np.isnan(x) & ~np.isnan(y)
        (alone,) = compare({a: x[both], b: y[both]})
        assert (row.w_plus, row.w_minus, row.p_value) == (
            alone.w_plus,
            alone.w_minus,
            alone.p_value,
        )
        assert row.mean_difference == pytest.approx(np.mean(x[both] - y[both]))
    order = sorted(comparisons.values(), key=lambda row: row.p_value)
    expected = np.maximum.accumulate(
        [min(1.0, (3 - step) * row.p_value) for step, row in enumerate(order)]
    )
    assert [row.p_adjusted for row in order] == pytest.approx(expected)


def test_the_correction_of_the_whole_family_counts_pairs_without_a_query_in_common() -> (
    None
):
    rows = BASE.copy()
    rows[0, 15:] = rows[1, :15] = NAN
    comparisons = {(row.a, row.b): row for row in compare(values(*rows))}
    assert comparisons.keys() == {("a", "c"), ("b", "c")}
    lowest = min(comparisons.values(), key=lambda row: row.p_value)
    assert lowest.p_adjusted == pytest.approx(min(1.0, 3 * lowest.p_value))
    assert compare(values([NAN], [NAN])) == []


def write(path, *rows, header="retriever,query_id,measure,value"):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_scores_of_any_tool_are_read(tmp_path) -> None:
    rows = [
        "a,007,faith,0.5",
        "a,8,faith,",
        "b,007,faith,NaN",
        "b,8,faith,1",
        "b,8,other,2",
    ]
    scores = read_score_file(write(tmp_path / "s.csv", *rows))
    assert scores.ids == ("007", "8") and scores.retrievers == ("a", "b")
    assert scores.values["faith"]["a"].tolist()[0] == 0.5 and math.isnan(
        scores.values["faith"]["a"][1]
    )
    assert scores.undefined_counts() == {"faith": {"a": 1, "b": 1}, "other": {"b": 1}}
    assert ("a", "8", "faith", None) in list(scores.rows())
    assert scores.select(["other"], ["8"]).values["other"]["b"].tolist() == [2]
    assert "did you mean 'faith'" in str(refusal(scores.select, ["fiath"]))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a,1,m,high"], "s.csv:2: 'high' is not a score"),
        (
            ["b,1,m,1", "a,1,m,1e101"],
            "s.csv:3: '1e101' is not a score (a number of at most 1e+100; empty",
        ),
        (["a,1,m,-1e308"], "is not a score"),  # its square is no number
        (["a,1,m,1", "a,1,m,2"], "two scores"),
        (["a,,m,1"], "lacks"),
        ([], "has no row below its first one"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path, lines, message) -> None:
    assert message in str(refusal(read_score_file, write(tmp_path / "s.csv", *lines)))
    assert "cannot be read" in str(refusal(read_score_file, tmp_path / "absent.csv"))
    assert "measure" in str(
        refusal(
            read_score_file,
            write(tmp_path / "t.csv", "a,1,2", header="retriever,query_id,value"),
        )
    )


def test_where_low_is_good_the_verdict_is_turned_round_and_the_numbers_stay() -> None:
    rows = {("a", f"q{i:02}", "hallucination"): 0.1 for i in range(12)}
    rows |= {
        ("b", f"q{i:02}", "hallucination"): 0.1 + 0.05 * (i + 1) for i in range(12)
    }
    scores = scores_from_rows(rows)
    plain = evaluate_scores(scores, baseline=None, settings=Settings())
    turned = evaluate_scores(
        scores, baseline=None, settings=Settings(), low_is_good={"hallucination"}
    )
    (before,), (after,) = (
        evaluation.comparisons["hallucination"] for evaluation in (plain, turned)
    )
    assert (before.verdict, after.verdict) == (Verdict.WORSE, Verdict.BETTER)
    assert before.mean_difference == after.mean_difference < 0
    assert (plain.leader, plain.shown_worse, turned.leader, turned.shown_worse) == (
        "b",
        ("a",),
        "a",
        ("b",),
    )
    assert lead_sentence(turned) == "Mean ahead of b by 0.325 (0.210 to 0.440)."
    assert [(row.retriever, row.wins, row.losses) for row in turned.board.rows[1:]] == [
        ("b", 0, 12)
    ]
    assert "baseline" in str(
        refusal(evaluate_scores, scores, baseline="z", settings=Settings())
    )


@pytest.fixture
def stars(tmp_path):
    rows = [f"{name},q{i},stars,{1 + i % 5}" for name in "ab" for i in range(40)]
    return write(tmp_path / "stars.csv", "a,q0,stars,1.1", *rows[1:])


def test_compare_takes_the_scores_of_any_tool_and_their_range(
    tmp_path, call, stars
) -> None:
    rows = [f"a,q{i},faithfulness,{'' if i == 3 else 0.5}" for i in range(20)]
    rows += [f"b,q{i},faithfulness,{0.5 + i / 100}" for i in range(20)]
    page, file = tmp_path / "page.html", write(tmp_path / "ragas.csv", *rows)
    (row,) = json.loads(call("compare", file, "--report", page, "--json", code=0).out)[
        "comparisons"
    ]
    assert (row["measure"], row["n"], row["verdict"]) == ("faithfulness", 19, "worse")
    html = page.read_text(encoding="utf-8")
    assert "Content-Security-Policy" in html and "<script" not in html and "19" in html
    assert "faithfulness" in call("compare", file, code=0).out
    for options, verdict in (([], "undecided"), (["--range", "1", "5"], "equivalent")):
        output = json.loads(
            call("compare", stars, "--margin", "0.5", *options, "--json", code=0).out
        )
        assert output["comparisons"][0]["verdict"].startswith(verdict)
        assert ("Give --range LOW HIGH" in " ".join(output["notes"])) == (not options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["run.trec"], ""),
        (["--grades", "binary"], ""),
        (["--skip-no-relevant"], ""),
        (["--margin", "0.5", "--range", "5", "1"], "5 to 1 is not a range"),
        (["--margin", "0.5", "--range", "1", "inf"], "is not a range"),
        (
            ["--margin", "0.5", "--range", "2", "4"],
            "scores reach from 1 to 5, outside 2 to 4",
        ),
    ],
)
def test_compare_refuses_what_does_not_go_with_a_file_of_scores(
    tmp_path, call, stars, options, message
) -> None:
    assert message in call("compare", stars, *options, code=2).err
    assert (
        "only one"
        in call("compare", write(tmp_path / "one.csv", "a,1,m,1"), code=2).err
    )
