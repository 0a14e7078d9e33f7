"""Per-query scores of any tool, values that are undefined, and the comparisons over what both have."""

import json
import math

import numpy as np
import pytest

from harness.evaluation.conclusions import lead_sentence
from harness.evaluation.evaluate import evaluate
from harness.evaluation.readers import read_scores
from harness.evaluation.scores import scores_from_rows
from harness.evaluation.verdict import Verdict
from harness.stats.settings import Settings
from retrievers.errors import InputError
from tests.support.scored import compare
from tests.support.small import ended as harness
from tests.support.small import ends

NAN = math.nan
RNG = np.random.default_rng(11)
BASE = RNG.integers(0, 5, size=(3, 30)) / 4


def values(*rows):
    return {name: np.array(row, dtype=np.float64) for name, row in zip("abc", rows, strict=False)}


def test_queries_that_are_undefined_for_all_are_left_out_as_if_they_were_not_there() -> None:
    with_gaps = BASE.copy()
    with_gaps[:, ::3] = NAN
    ours = compare(values(*with_gaps))
    kept = values(*np.delete(BASE, np.s_[::3], axis=1))
    assert ours == compare(kept)
    assert {row.n for row in ours} == {20}


def test_a_pair_is_compared_where_both_are_defined() -> None:
    rows = BASE.copy()
    rows[0, :5] = NAN
    rows[1, 4:9] = NAN
    found = {(row.a, row.b): row for row in compare(values(*rows))}
    assert {pair: row.n for pair, row in found.items()} == {("a", "b"): 21, ("a", "c"): 25, ("b", "c"): 25}
    for (a, b), row in found.items():
        x, y = rows["abc".index(a)], rows["abc".index(b)]
        both = ~np.isnan(x) & ~np.isnan(y)
        (alone,) = compare({a: x[both], b: y[both]})
        assert (row.w_plus, row.w_minus, row.p_value) == (alone.w_plus, alone.w_minus, alone.p_value)
        assert row.mean_difference == pytest.approx(np.mean(x[both] - y[both]))
    order = sorted(found.values(), key=lambda row: row.p_value)
    expected, running = [], 0.0
    for step, row in enumerate(order):
        running = max(running, min(1.0, (3 - step) * row.p_value))
        expected.append(running)
    assert [row.p_adjusted for row in order] == pytest.approx(expected)


def test_the_correction_of_the_whole_family_can_take_a_verdict_back() -> None:
    up = np.r_[np.full(6, 0.25), np.zeros(14)]  # six wins: p = 0.03125 alone, 0.09375 among three
    rows = [BASE[0, :20] * 0, up, up * 0]
    rows[0][19], rows[1][18] = NAN, NAN
    found = {(row.a, row.b): row for row in compare(values(*rows))}
    alone = compare({name: row for name, row in values(*rows).items() if name != "c"})
    assert found["a", "b"].p_value == alone[0].p_value == 0.03125
    assert alone[0].verdict is Verdict.WORSE
    assert found["a", "b"].p_adjusted == pytest.approx(0.09375) and found["a", "b"].verdict is Verdict.UNDECIDED


def test_a_pair_without_a_query_in_common_has_no_row_and_counts_in_the_correction() -> None:
    rows = BASE[:2].copy()
    rows[0, 15:], rows[1, :15] = NAN, NAN
    third = BASE[2]
    found = compare(values(*rows, third))
    assert {(row.a, row.b) for row in found} == {("a", "c"), ("b", "c")}
    lowest = min(found, key=lambda row: row.p_value)
    assert lowest.p_adjusted == pytest.approx(min(1.0, 3 * lowest.p_value))
    assert compare(values([NAN], [NAN])) == []


def write(path, rows, header="retriever,query_id,measure,value"):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_scores_of_any_tool_are_read(tmp_path) -> None:
    file = write(tmp_path / "s.csv", ["a,007,faith,0.5", "a,8,faith,", "b,007,faith,NaN", "b,8,faith,1", "b,8,other,2"])
    found = read_scores(file)
    assert found.ids == ("007", "8") and found.retrievers == ("a", "b")
    assert found.values["faith"]["a"].tolist()[0] == 0.5 and math.isnan(found.values["faith"]["a"][1])
    assert found.undefined() == {"faith": {"a": 1, "b": 1}, "other": {"b": 1}}
    assert ("a", "8", "faith", None) in list(found.rows())
    assert found.selected(["other"], ["8"]).values["other"]["b"].tolist() == [2]
    with pytest.raises(InputError, match="did you mean 'faith'"):
        found.selected(["fiath"])


@pytest.mark.parametrize(
    ("rows", "what"),
    [(["a,1,m,high"], "not a score"), (["a,1,m,inf"], "not a score"), (["a,1,m,1", "a,1,m,2"], "two scores"),
     (["a,,m,1"], "lacks"), ([], r"has no row below its first one, .* \(write rows below it\)$"),
     (None, "cannot be read")],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_line(tmp_path, rows, what) -> None:
    with pytest.raises(InputError, match=what):
        read_scores(tmp_path / "absent.csv" if rows is None else write(tmp_path / "s.csv", rows))
    with pytest.raises(InputError, match="measure"):
        read_scores(write(tmp_path / "s.csv", ["a,1,2"], header="retriever,query_id,value"))


def test_where_low_is_good_the_verdict_is_turned_round_and_the_numbers_stay() -> None:
    rows = {("a", f"q{i:02}", "hallucination"): 0.1 for i in range(12)}
    rows |= {("b", f"q{i:02}", "hallucination"): 0.1 + 0.05 * (i + 1) for i in range(12)}
    found = scores_from_rows(rows)
    plain = evaluate(found, baseline=None, settings=Settings())
    turned = evaluate(found, baseline=None, settings=Settings(), low_is_good={"hallucination"})
    (before,), (after,) = (one.comparisons["hallucination"] for one in (plain, turned))
    assert (before.verdict, after.verdict) == (Verdict.WORSE, Verdict.BETTER)
    assert before.mean_difference == after.mean_difference < 0
    assert (plain.leader, plain.shown_worse) == ("b", ("a",))
    assert (turned.leader, turned.shown_worse) == ("a", ("b",))
    assert lead_sentence(turned) == "Mean ahead of b by 0.325 (0.210 to 0.440)."
    assert [(row.retriever, row.wins, row.losses) for row in turned.board.rows[1:]] == [("b", 0, 12)]
    with pytest.raises(InputError, match="baseline"):
        evaluate(found, baseline="z", settings=Settings())


def scores_file(tmp_path):
    rows = [f"a,q{i},faithfulness,{'' if i == 3 else 0.5}" for i in range(20)]
    rows += [f"b,q{i},faithfulness,{0.5 + i / 100}" for i in range(20)]
    return write(tmp_path / "ragas.csv", rows)


def test_compare_takes_the_scores_of_any_tool(tmp_path, capsys) -> None:
    page = tmp_path / "page.html"
    told = json.loads(ends(capsys, 0, "compare", scores_file(tmp_path), "--report", page, "--json").out)
    (row,) = told["comparisons"]
    assert (row["measure"], row["n"], row["verdict"]) == ("faithfulness", 19, "worse")
    html = page.read_text(encoding="utf-8")
    assert "Content-Security-Policy" in html and "<script" not in html and "19" in html
    out = ends(capsys, 0, "compare", scores_file(tmp_path)).out
    assert "faithfulness" in out and "b" in out


def test_compare_refuses_what_does_not_go_with_a_file_of_scores(tmp_path, capsys) -> None:
    for more in (["run.trec"], ["--grades", "binary"], ["--skip-no-relevant"]):
        assert harness("compare", scores_file(tmp_path), *more) == 2
    assert "only one" in ends(capsys, 2, "compare", write(tmp_path / "one.csv", ["a,1,m,1"])).err


def stars_file(tmp_path):
    rows = [f"{name},q{i},stars,{1 + i % 5}" for name in "ab" for i in range(40)]
    rows[0] = "a,q0,stars,1.1"
    return write(tmp_path / "stars.csv", rows)


@pytest.mark.parametrize(
    ("more", "verdict", "noted"), [([], "undecided", True), (["--range", "1", "5"], "equivalent", False)]
)
def test_scores_outside_0_and_1_are_equivalent_only_where_their_range_is_given(
    tmp_path, capsys, more, verdict, noted
) -> None:
    told = json.loads(ends(capsys, 0, "compare", stars_file(tmp_path), "--margin", "0.5", *more, "--json").out)
    assert told["comparisons"][0]["verdict"].startswith(verdict)
    assert ("Give --range LOW HIGH" in " ".join(told["notes"])) == noted


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (["5", "1"], "5 to 1 is not a range"),
        (["nan", "5"], "is not a range"),
        (["1", "inf"], "is not a range"),
        (["2", "4"], "scores reach from 1 to 5, outside 2 to 4"),
    ],
)
def test_a_range_that_is_none_or_too_narrow_is_refused(tmp_path, capsys, bounds, message) -> None:
    assert message in ends(capsys, 2, "compare", stars_file(tmp_path), "--margin", "0.5", "--range", *bounds).err
