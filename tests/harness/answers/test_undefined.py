"""Scores of any tool, undefined values, and comparisons on the defined ones."""

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


def test_queries_that_are_undefined_for_all_are_left_out() -> None:
    rows = BASE.copy()
    rows[:, ::3] = NAN
    without = np.delete(BASE, np.s_[::3], axis=1)
    assert compare(values(*rows)) == compare(values(*without))


@pytest.fixture
def undefined_rows():
    """Scores of a and b, some of which are undefined."""
    rows = BASE.copy()
    rows[0, :5] = NAN
    rows[1, 4:9] = NAN
    return values(*rows)


@pytest.mark.parametrize(
    ("a", "b", "n"), [("a", "b", 21), ("a", "c", 25), ("b", "c", 25)]
)
def test_a_pair_is_compared_on_the_queries_defined_for_both(undefined_rows, a, b, n):
    comparisons = {(row.a, row.b): row for row in compare(undefined_rows)}
    row = comparisons[a, b]
    scores_a = undefined_rows[a]
    scores_b = undefined_rows[b]
    both = ~np.isnan(scores_a) & ~np.isnan(scores_b)
    (alone,) = compare({a: scores_a[both], b: scores_b[both]})
    assert row.n == n
    assert row.w_plus == alone.w_plus
    assert row.w_minus == alone.w_minus
    assert row.p_value == alone.p_value
    expected = np.mean(scores_a[both] - scores_b[both])
    assert row.mean_difference == pytest.approx(expected)


def test_pairs_on_different_queries_are_corrected_together(undefined_rows):
    rows = sorted(compare(undefined_rows), key=lambda row: row.p_value)
    assert len(rows) == 3
    products = [min(1.0, (3 - step) * row.p_value) for step, row in enumerate(rows)]
    expected = np.maximum.accumulate(products)
    assert [row.p_adjusted for row in rows] == pytest.approx(expected)


def test_the_correction_counts_pairs_without_a_common_query() -> None:
    rows = BASE.copy()
    rows[0, 15:] = NAN
    rows[1, :15] = NAN
    comparisons = compare(values(*rows))
    assert {(row.a, row.b) for row in comparisons} == {("a", "c"), ("b", "c")}
    lowest = min(comparisons, key=lambda row: row.p_value)
    assert lowest.p_adjusted == pytest.approx(min(1.0, 3 * lowest.p_value))


def test_there_is_no_comparison_without_a_value() -> None:
    assert compare(values([NAN], [NAN])) == []


def write(path, *rows, header="retriever,query_id,measure,value"):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def foreign_scores(tmp_path):
    """The scores of a tool, some of which are undefined."""
    rows = [
        "a,007,faith,0.5",
        "a,8,faith,",
        "b,007,faith,NaN",
        "b,8,faith,1",
        "b,8,other,2",
    ]
    return read_score_file(write(tmp_path / "s.csv", *rows))


def test_scores_of_any_tool_are_read(foreign_scores) -> None:
    assert foreign_scores.ids == ("007", "8")
    assert foreign_scores.retrievers == ("a", "b")
    first, second = foreign_scores.values["faith"]["a"].tolist()
    assert first == 0.5
    assert math.isnan(second)
    assert ("a", "8", "faith", None) in list(foreign_scores.rows())


def test_undefined_scores_are_counted(foreign_scores) -> None:
    assert foreign_scores.undefined_counts() == {
        "faith": {"a": 1, "b": 1},
        "other": {"b": 1},
    }


def test_a_measure_and_queries_are_selected(foreign_scores) -> None:
    selected = foreign_scores.select(["other"], ["8"])
    assert selected.values["other"]["b"].tolist() == [2]
    message = str(refusal(foreign_scores.select, ["fiath"]))
    assert "did you mean 'faith'" in message


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
        (["a,1,m,1_0"], "'1_0' is not a score"),
        ([], "has no row below its first one"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path, lines, message) -> None:
    path = write(tmp_path / "s.csv", *lines)
    assert message in str(refusal(read_score_file, path))


def test_every_wrong_line_is_reported_at_once(tmp_path) -> None:
    path = write(tmp_path / "s.csv", "a,1,m,high", "a,2,m", "b,1,m,low")
    message = str(refusal(read_score_file, path))
    assert "s.csv:2: 'high' is not a score" in message
    assert "s.csv:3: 3 columns" in message
    assert "s.csv:4: 'low' is not a score" in message


def test_a_missing_file_is_refused(tmp_path) -> None:
    message = str(refusal(read_score_file, tmp_path / "absent.csv"))
    assert "cannot be read" in message


def test_a_file_without_a_column_is_refused(tmp_path) -> None:
    path = write(tmp_path / "t.csv", "a,1,2", header="retriever,query_id,value")
    assert "measure" in str(refusal(read_score_file, path))


@pytest.fixture
def hallucination_scores():
    rows = {}
    for i in range(12):
        rows["a", f"q{i:02}", "hallucination"] = 0.1
        rows["b", f"q{i:02}", "hallucination"] = 0.1 + 0.05 * (i + 1)
    return scores_from_rows(rows)


def test_if_low_is_good_the_verdict_is_reversed_and_the_numbers_stay(
    hallucination_scores,
) -> None:
    high = evaluate_scores(hallucination_scores, baseline=None, settings=Settings())
    low = evaluate_scores(
        hallucination_scores,
        baseline=None,
        settings=Settings(),
        low_is_good={"hallucination"},
    )
    (high_row,) = high.comparisons["hallucination"]
    (low_row,) = low.comparisons["hallucination"]
    assert high_row.verdict == Verdict.WORSE
    assert low_row.verdict == Verdict.BETTER
    assert high_row.mean_difference == low_row.mean_difference < 0
    assert (high.leader, high.shown_worse) == ("b", ("a",))
    assert (low.leader, low.shown_worse) == ("a", ("b",))
    assert lead_sentence(low) == (
        "Mean ahead of b by 0.325 (95 % CI of this pair alone: 0.210 to 0.440)."
    )
    (board_row,) = low.board.rows[1:]
    assert (board_row.retriever, board_row.wins, board_row.losses) == ("b", 0, 12)


def test_an_unknown_baseline_is_refused(hallucination_scores) -> None:
    error = refusal(
        evaluate_scores, hallucination_scores, baseline="z", settings=Settings()
    )
    assert "baseline" in str(error)


@pytest.fixture
def stars(tmp_path):
    rows = [f"{name},q{i},stars,{1 + i % 5}" for name in "ab" for i in range(40)]
    return write(tmp_path / "stars.csv", "a,q0,stars,1.1", *rows[1:])


@pytest.fixture
def faithfulness(tmp_path):
    """Scores of a and b, of which a has one undefined value."""
    rows = [f"a,q{i},faithfulness,{'' if i == 3 else 0.5}" for i in range(20)]
    rows += [f"b,q{i},faithfulness,{0.5 + i / 100}" for i in range(20)]
    return write(tmp_path / "ragas.csv", *rows)


def test_compare_takes_the_scores_of_any_tool(call, faithfulness) -> None:
    output = json.loads(call("compare", faithfulness, "--json", code=0).out)
    (row,) = output["comparisons"]
    assert (row["measure"], row["n"], row["verdict"]) == ("faithfulness", 19, "worse")
    assert "faithfulness" in call("compare", faithfulness, code=0).out


def test_compare_writes_a_page_of_scores(tmp_path, call, faithfulness) -> None:
    page = tmp_path / "page.html"
    call("compare", faithfulness, "--report", page, "--json", code=0)
    html = page.read_text(encoding="utf-8")
    assert "Content-Security-Policy" in html
    assert "<script" not in html
    assert "19" in html


@pytest.mark.parametrize(
    ("options", "verdict", "needs_range"),
    [
        pytest.param([], "undecided", True, id="without a range"),
        pytest.param(["--range", "1", "5"], "equivalent", False, id="with a range"),
    ],
)
def test_equivalence_needs_the_range_of_scores(
    call, stars, options, verdict, needs_range
) -> None:
    words = ["compare", stars, "--margin", "0.5", *options, "--json"]
    output = json.loads(call(*words, code=0).out)
    assert output["comparisons"][0]["verdict"].startswith(verdict)
    assert ("Give --range LOW HIGH" in " ".join(output["notes"])) == needs_range


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
def test_compare_refuses_options_that_do_not_apply_to_a_file_of_scores(
    call, stars, options, message
) -> None:
    assert message in call("compare", stars, *options, code=2).err


def test_compare_refuses_the_scores_of_a_single_retriever(tmp_path, call) -> None:
    path = write(tmp_path / "one.csv", "a,1,m,1")
    assert "only one" in call("compare", path, code=2).err
