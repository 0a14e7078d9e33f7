"""Power, queries that a difference needs, and alpha spent over planned looks."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate
from scipy import stats as scipy_stats

from harness.evaluation.gate_verdict import BASELINE_ARM, CHALLENGER_ARM, gate_scores
from harness.pipeline import run
from harness.records import LabelledQuery, earlier_scored_queries, read_results
from harness.running.options import RunOptions
from harness.stats.differences import paired_differences
from harness.stats.looks import current_look, look_levels, settings_at_look, spent_alpha
from harness.stats.power import (
    MAX_POWER_QUERIES,
    TARGET_POWER,
    detectable_effect,
    queries_for_effect,
    queries_needed,
    t_power,
)
from harness.stats.settings import Looks, Settings, Statistics
from harness.wording.conclusion import conclusion_headline
from harness.wording.looks import look_sentence
from harness.wording.verdicts import gate_sentence
from tests.support import small
from tests.support.scored import cell, compare, concluded, scored


def apart(values):
    return paired_differences(np.array(values, dtype=float), np.zeros(len(values)))


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 3, 0.05 / 190])
@pytest.mark.parametrize("effect", [0.05, 0.2, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("n", [5, 13, 50, 138, 2_000])
def test_the_power_of_the_t_test_is_that_of_statsmodels(n, effect, alpha):
    from statsmodels.stats.power import TTestPower

    theirs = TTestPower().power(effect, n, alpha)
    if math.isnan(theirs):  # SciPy's noncentral t gives up on the other tail
        edge = scipy_stats.t.isf(alpha / 2, n - 1)
        theirs = scipy_stats.nct.sf(edge, n - 1, effect * math.sqrt(n))
    assert t_power(effect, n, alpha) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("effect", [1e10, 1e300, math.inf])
@pytest.mark.parametrize("n", [2, 138])
def test_a_huge_effect_is_found(n, effect):
    assert t_power(effect, n, 0.05) == pytest.approx(1)


@pytest.mark.parametrize("alpha", [1e-12, 1e-20, 1e-50])
def test_an_effect_is_detectable_at_a_tiny_level(alpha):
    effect = detectable_effect(30, alpha)
    assert t_power(effect, 30, alpha) == pytest.approx(TARGET_POWER)


def test_the_power_has_no_step_where_scipy_gives_none():
    for n, low, high in ((2, 1e3, 1e14), (9, 10, 1e10)):
        effects = np.geomspace(low, high, 200)
        alpha = 1e-9
        powers = np.array([t_power(effect, n, alpha) for effect in effects])
        assert (np.diff(powers) > -1e-6).all()
        assert np.diff(powers).max() < 0.2


@pytest.mark.parametrize(("effect", "queries"), [(0.5, 34), (0.2, 199)])
def test_queries_needed_are_those_of_the_page_on_statistics(effect, queries):
    """docs/statistics.md, Enough queries?"""
    assert queries_for_effect(effect) == queries


@pytest.mark.parametrize("effect", [0.1, 0.35, 0.8, 2.0])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_queries_needed_are_those_of_statsmodels(effect, alpha):
    from statsmodels.stats.power import TTestPower

    theirs = math.ceil(
        TTestPower().solve_power(effect, alpha=alpha, power=TARGET_POWER)
    )
    assert queries_for_effect(effect, alpha) == max(theirs, 2)


@pytest.mark.parametrize("n", [2, 34, 20_000])
def test_a_detectable_effect_has_the_power_that_is_aimed_at(n):
    assert t_power(detectable_effect(n), n, 0.05) == pytest.approx(
        TARGET_POWER, abs=1e-6
    )


def test_an_effect_that_needs_too_many_queries_has_no_number_of_them():
    assert queries_for_effect(1e-4) is None


def test_an_effect_of_0_is_refused():
    with pytest.raises(ValueError, match="not above 0"):
        queries_for_effect(0.0)


@pytest.mark.parametrize(
    "values",
    [[0.1, -0.2] * 4 + [0.0] * 90, [0.3] * 40],
    ids=["eight differences", "equal differences"],
)
def test_few_or_equal_differences_are_no_ground_for_a_plan(values):
    assert queries_needed(apart(values), 0.02, 0.05) is None


SCATTERED = np.random.default_rng(1).normal(0, 0.2, 60)


@pytest.mark.parametrize("shift", [0.0, 0.3, -0.3])
def test_a_plan_depends_on_the_scatter_and_never_on_the_observed_mean(shift):
    expected = queries_for_effect(0.05 / float(np.std(SCATTERED, ddof=1)))
    assert queries_needed(apart(SCATTERED + shift), 0.05, 0.05) == expected


def test_a_plan_of_too_many_queries_ends_above_the_largest():
    assert queries_needed(apart(SCATTERED), 1e-7, 0.05) == MAX_POWER_QUERIES + 1


def test_a_corrected_level_needs_more_queries():
    alone, corrected = (
        queries_needed(apart(SCATTERED), 0.05, alpha) for alpha in (0.05, 0.05 / 3)
    )
    assert corrected > alone


def test_a_plan_counts_clusters():
    rng = np.random.default_rng(2)
    scores = {"a": 0.4 + rng.random(60) / 2, "b": 0.4 + rng.random(60) / 2}
    clusters = tuple(str(i // 3) for i in range(60))
    evaluation = concluded(
        scores, compare(scores, clusters=clusters), clusters=clusters
    )
    by_hand = apart((scores["a"] - scores["b"]).reshape(20, 3).mean(axis=1))
    assert [*evaluation.queries_needed.values()] == [
        queries_needed(by_hand, 0.05, 0.05)
    ]


AT_HALF = 0.003051
"""Of 0.05, by Lan and DeMets's function of O'Brien and Fleming: 0.025 in each tail."""


@pytest.mark.parametrize("share", [0.3, 0.5, 1.0])
def test_alpha_is_spent_as_o_brien_and_fleming_by_lan_and_demets(share):
    z = scipy_stats.norm.ppf(1 - 0.05 / 4)
    expected = 4 * scipy_stats.norm.sf(z / math.sqrt(share))
    assert spent_alpha(0.05, share) == pytest.approx(expected, rel=1e-12)


def test_at_half_of_the_queries_little_alpha_is_spent_and_at_the_end_all_of_it():
    assert spent_alpha(0.05, 0.5) == pytest.approx(AT_HALF, abs=5e-7)
    assert spent_alpha(0.05, 1.0) == pytest.approx(0.05)


def test_the_levels_of_two_looks_miss_in_alpha_together():
    first, second = look_levels(0.05, (75, 150))
    assert first == pytest.approx(AT_HALF, abs=5e-7)
    bounds = [scipy_stats.norm.isf(level / 2) for level in (first, second)]

    def missed(x):
        # The second statistic given the first: correlation sqrt(1/2).
        upper, lower = (
            scipy_stats.norm.cdf(s * bounds[1] / math.sqrt(0.5) - x) for s in (1, -1)
        )
        return scipy_stats.norm.pdf(x) * (upper - lower)

    never = integrate.quad(missed, -bounds[0], bounds[0])[0]
    assert 1 - never == pytest.approx(0.05, abs=1e-5)


def test_one_look_has_all_of_alpha():
    assert look_levels(0.05, (150,)) == pytest.approx((0.05,))


def test_the_levels_of_several_looks_overlap_and_sum_to_more_than_alpha():
    assert sum(look_levels(0.05, (50, 100, 150))) > 0.05


LOOKING_TWICE = Settings(looks=Looks((60, 150)))


@pytest.mark.parametrize(("n", "number"), [(60, 1), (150, 2)])
def test_a_planned_look_has_its_number_and_its_level(n, number):
    level = look_levels(0.05, (60, 150))[number - 1]
    assert current_look(LOOKING_TWICE, n).number == number
    assert settings_at_look(LOOKING_TWICE, n).alpha == level
    assert settings_at_look(LOOKING_TWICE, n).level == pytest.approx(1 - level)


def test_a_first_look_at_another_number_spends_the_alpha_of_its_share():
    alpha = settings_at_look(LOOKING_TWICE, 75).alpha
    assert alpha == pytest.approx(AT_HALF, abs=5e-7)


def test_a_look_after_another_spends_what_that_one_left():
    after = replace(LOOKING_TWICE, earlier=(60,))
    assert current_look(after, 75).number == 2
    assert settings_at_look(after, 75).alpha == look_levels(0.05, (60, 75), 150)[1]
    assert (
        spent_alpha(0.05, 0.4) + settings_at_look(after, 75).alpha
        > spent_alpha(0.05, 0.5)
        > settings_at_look(after, 75).alpha
    )


@pytest.mark.parametrize("earlier", [(), (2,)])
def test_a_look_long_before_the_end_has_a_level(earlier):
    settings = Settings(looks=Looks((1_000, 2_000)), earlier=earlier)
    at_look = settings_at_look(settings, 3)  # the chance of 3 in 2,000 is no float
    assert at_look.alpha == pytest.approx(1e-12, rel=1e-3)
    assert at_look.level < 1


def test_an_unplanned_look_counts_among_the_looks():
    after_two = replace(LOOKING_TWICE, earlier=(60, 100))
    assert current_look(after_two, 150).number == 3


def test_without_planned_looks_there_is_no_look():
    assert settings_at_look(Settings(), 60) == Settings()
    assert current_look(Settings(), 60) is None


def test_declared_looks_and_earlier_runs_are_settings():
    declared = Statistics(looks=Looks((60, 150)))
    expected = replace(LOOKING_TWICE, earlier=(60,))
    assert Settings.from_statistics(declared, earlier=(60,)) == expected


@pytest.mark.parametrize("numbers", [(), (60, 60), (0, 5)])
def test_looks_that_do_not_rise_are_refused(numbers):
    refused = small.refusal(Settings, looks=Looks(numbers))
    assert "rising numbers" in str(refused)


def test_beyond_the_last_look_nothing_is_claimed():
    rng = np.random.default_rng(1)
    b = rng.random(160) / 2
    scores = {"a": b + 0.3, "b": b}
    chosen = Settings(looks=Looks((60, 150)), margin=0.02)
    assert not settings_at_look(chosen, 150).alpha_spent
    late = settings_at_look(chosen, 160)
    assert late.alpha_spent
    rows = compare(scores, settings=late)
    assert [cell(row) for row in rows] == ["undecided: alpha is spent"]
    assert "alpha is spent, nothing is claimed" in look_sentence(
        current_look(chosen, 160), 160
    )
    evaluation = concluded(scores, rows, settings=late)
    assert conclusion_headline(evaluation) == "Undecided"
    refused = gate_scores(
        scored({CHALLENGER_ARM: b + 0.3, BASELINE_ARM: b}), margin=0.02, settings=late
    )
    assert not refused.passed
    assert gate_sentence(refused) == (
        "not shown: alpha is spent, "
        "160 queries are more than were planned for the last look"
    )


def ask(folder, queries, *, name="small", more="", retext="", primary="", report=False):
    """The earlier looks of a run with the first so many queries."""
    path = small.experiment(folder, name=name, more=more, report=report)
    if primary:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("nDCG@3", primary), encoding="utf-8")
    sentence = [
        {"id": id_, "query": text + retext, "relevant_documents": docs}
        for id_, text, docs in small.QUERIES[:queries]
    ]
    (folder / "data" / "queries.json").write_text(
        json.dumps(sentence), encoding="utf-8"
    )
    return run(path, RunOptions(folder / "out")).manifest.earlier_looks


@pytest.mark.parametrize(
    ("change", "looks"),
    [
        pytest.param({"inclusion": 0.5, "labelled_by": "ann"}, 1, id="a larger sample"),
        pytest.param({"grades": {"apple": 1}, "ranked": None}, 0, id="another label"),
    ],
)
def test_a_look_has_the_same_labels_whoever_gave_them(tmp_path, change, looks):
    ask(tmp_path, 3, name="first")
    ask(tmp_path, 4)
    later = read_results(tmp_path / "out" / "small")
    rows = [
        LabelledQuery(row.query, replace(row.labels, **change))
        for row in later.queries.values()
    ]
    earlier = earlier_scored_queries(later.folder, later.manifest, rows)
    assert len(list(earlier)) == looks


def test_a_run_with_more_queries_is_a_further_look_and_damaged_folders_are_ignored(
    tmp_path,
):
    report = tmp_path / "out" / "small" / "report.md"
    assert ask(tmp_path, 3, report=True) == ()
    assert "This is look number" not in report.read_text(encoding="utf-8")
    assert ask(tmp_path, 4, report=True) == (3,)
    assert "This is look number 2: earlier runs" in report.read_text(encoding="utf-8")
    assert ask(tmp_path, 4) == (3,), "the same again is no further look"
    assert ask(tmp_path, 3, name="first") == ()
    assert ask(tmp_path, 6, name="third") == (3, 4)
    assert ask(tmp_path, 6, name="baseline", more='baseline = "bm25"') == (3, 4)
    assert ask(tmp_path, 6, name="measure", primary="P@3") == (), "another measure"
    assert ask(tmp_path, 6, name="words", retext="?") == (), (
        "other queries with the same ids"
    )
    assert ask(tmp_path, 2, name="fewer") == ()
    for name in ("cut", "bare", "unread"):
        shutil.copytree(tmp_path / "out" / "fewer", tmp_path / "out" / name)
    (tmp_path / "out" / "cut" / "manifest.json").write_text("{", encoding="utf-8")
    (tmp_path / "out" / "unread" / "labels.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "out" / "bare" / "scores.csv").unlink()
    shutil.rmtree(tmp_path / "out" / "fewer")
    (tmp_path / "out" / "notes").mkdir()
    assert ask(tmp_path, 6, name="last") == (3, 4)
    (tmp_path / "data" / "apple.md").write_text(
        "# apple\n\nanother text\n", encoding="utf-8"
    )
    assert ask(tmp_path, 6, name="documents") == (), "other documents"
