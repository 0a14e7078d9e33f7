"""From scores to rows, verdicts and sentences: the traps, the symmetries and the undefined."""

import re
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.stats import (
    Comparison,
    Settings,
    adjust,
    compare,
    compare_all,
    differences,
    gate,
    letters,
    minimum_detectable,
    optimism,
    optimism_sentence,
    pair_family,
    pair_sentence,
    pairwise_families,
    queries_needed,
    rank_diagram,
    sakai_queries,
    signed_rank,
    significance_sentence,
    slice_family,
    small_slices,
    standings,
    swapped,
    whole,
    whole_sentences,
)
from harness.stats.comparison import family
from harness.stats.families import friedman_row, length_slices
from harness.stats.power import resampling_power
from harness.stats.words import format_p, judged_note
from retrievers.errors import InputError
from tests import recompute

COLUMNS = (
    "measure,a,b,n,zeros,wins,ties,losses,mean_difference,ci_low,ci_high,w_plus,w_minus,statistic,p_value,p_adjusted,"
    "p_minimum,method,effect_size,verdict,role,p_minimum_adjusted,p_randomization,ci_method"
)


def noisy(seed, n=40, **shifts):
    """Scores of several retrievers around the same queries, each shifted by its name's number."""
    rng = np.random.default_rng(seed)
    base = rng.random(n) * 0.5
    return {name: np.round(base + rng.random(n) * 0.3 + shift, 2) for name, shift in shifts.items()}


def test_the_fields_are_the_columns_of_comparisons_csv():
    assert ",".join(f.name for f in fields(Comparison)) == COLUMNS


def test_an_independent_program_finds_the_same_digits():
    for zeros in ("wilcox", "pratt"):
        scores = noisy(1, 60, x=0.0, y=0.03, z=0.1)
        rows = compare(scores, measure="P@5", settings=Settings(zeros=zeros))
        for row in rows:
            expected = recompute.expected_comparison(scores[row.a].tolist(), scores[row.b].tolist(), zeros)
            assert {name: getattr(row, name) for name in expected} == pytest.approx(expected, rel=1e-12, abs=1e-15)
        expected = recompute.corrected([row.p_value for row in rows], "holm")
        assert [row.p_adjusted for row in rows] == pytest.approx(expected, rel=1e-12)


def test_families_against_a_baseline_and_over_all_pairs():
    assert family(["x", "y", "z"], "x") == [("y", "x"), ("z", "x")]
    with pytest.raises(ValueError, match="baseline"):
        family(["x"], "y")
    scores = noisy(2, x=0.0, y=0.1, z=0.2)
    rows = compare(scores, measure="P@5", baseline="y")
    assert [(r.a, r.b) for r in rows] == [("x", "y"), ("z", "y")]
    assert compare({"x": scores["x"]}, measure="P@5") == []


def test_measures_are_families_of_their_own_and_only_the_primary_is_confirmatory():
    one, two = noisy(3, x=0.0, y=0.05, z=0.1), noisy(4, x=0.0, y=0.0, z=0.0)
    rows = compare_all({"P@5": one, "R@5": two}, primary="R@5")
    assert [r.role for r in rows] == ["exploratory"] * 3 + ["confirmatory"] * 3
    assert [r.p_adjusted for r in rows[:3]] == list(adjust([r.p_value for r in rows[:3]]))
    assert rows[:3] == compare(one, measure="P@5", role="exploratory")
    assert rows[3:] == compare(two, measure="R@5")


def test_another_retriever_moves_no_other_number():
    scores = noisy(5, x=0.0, y=0.05, z=0.1)
    before = compare({"x": scores["x"], "y": scores["y"]}, measure="P@5")[0]
    after = compare(scores, measure="P@5")[0]
    moved = {"p_adjusted", "p_minimum_adjusted", "verdict"}
    assert [getattr(before, f.name) for f in fields(before) if f.name not in moved] == [
        getattr(after, f.name) for f in fields(after) if f.name not in moved
    ]


@pytest.mark.parametrize("test", ["wilcoxon", "randomization", "t", "sign"])
@pytest.mark.parametrize("correction", ["holm", "hommel", "bonferroni", "bh", "tukey"])
def test_every_test_and_correction_finds_a_clear_difference(test, correction):
    rows = compare(noisy(6, x=0.0, y=0.3, z=0.0), measure="P@5", settings=Settings(test=test, correction=correction))
    assert [r.word for r in rows] == ["worse", "undecided", "better"]


@pytest.mark.parametrize(
    ("test", "n", "method"),
    [
        ("wilcoxon", 9, "exact"),
        ("randomization", 9, "enumerated"),
        ("randomization", 30, "draws"),
        ("t", 9, "t"),
        ("sign", 9, "sign"),
    ],
)
def test_the_method_names_how_p_was_found(test, n, method):
    row = compare(noisy(7, n, x=0.0, y=0.01), measure="P@5", settings=Settings(test=test))[0]
    assert row.method == method
    assert (row.p_minimum is None) == (test == "t")
    if test == "randomization":
        assert row.p_value == row.p_randomization


# The traps


def test_trap_forty_small_gains_and_eight_large_losses_is_a_disagreement():
    d = np.array([0.02] * 40 + [-0.5] * 8)
    row = compare({"a": 0.5 + d, "b": np.full(48, 0.5)}, measure="nDCG@10")[0]
    assert row.p_adjusted <= 0.05
    assert row.w_plus > row.w_minus
    assert row.mean_difference < 0
    assert row.verdict == "undecided: ranks and means disagree"


def test_trap_ninety_ties_and_ten_losses_of_a_half_is_no_non_inferiority():
    a, b = np.array([0.5] * 90 + [0.0] * 10), np.full(100, 0.5)
    # What a signed-rank test on shifted differences would say:
    assert signed_rank(a + 0.02, b, alternative="greater").p_value < 1e-9
    refused = gate(a, b, margin=0.02)
    assert not refused.passed
    assert refused.p_value > 0.9
    row = compare({"a": a, "b": b}, measure="nDCG@10", settings=Settings(margin=0.02))[0]
    assert row.verdict == "worse"
    # By half a point more than the loss of 0.05 the mean is within the margin.
    assert gate(a, b, margin=0.15).passed


# Verdicts


def test_the_verdicts_with_a_margin():
    rng = np.random.default_rng(8)
    base = rng.random(200)
    close = base + rng.normal(0, 0.01, 200)
    scores = {"base": base, "close": close, "tiny": base + 0.004 + rng.normal(0, 0.01, 200), "far": base - 0.2}
    rows = {(r.a, r.b): r for r in compare(scores, measure="x", settings=Settings(margin=0.02))}
    assert rows["base", "close"].verdict == "equivalent"
    assert rows["base", "tiny"].verdict == "worse but negligible"
    assert rows["base", "far"].verdict == "better"
    assert rows["base", "tiny"].reason == ""
    without = {(r.a, r.b): r for r in compare(scores, measure="x")}
    assert without["base", "close"].verdict == "undecided: no difference shown"
    assert without["base", "tiny"].verdict == "worse"
    exploratory = compare(scores, measure="x", settings=Settings(margin=0.02), role="exploratory")
    assert exploratory[0].verdict == "undecided: no difference shown"


@pytest.mark.parametrize("n", [1, 4, 5, 6, 12])
def test_equal_scores_are_p_one_and_equivalent_only_from_five_queries(n):
    scores = {"a": np.full(n, 0.5), "b": np.full(n, 0.5)}
    row = compare(scores, measure="x")[0]
    assert (row.p_value, row.p_adjusted, row.p_randomization, row.effect_size) == (1.0, 1.0, 1.0, None)
    assert (row.ci_low, row.ci_high, row.ci_method) == (0.0, 0.0, "not estimable")
    assert row.verdict == "undecided: no query differs"
    close = compare(scores, measure="x", settings=Settings(margin=0.02))[0]
    assert (close.verdict == "equivalent") == (n >= 5)


def test_too_few_queries_is_said_and_one_query_is_defined():
    scores = {"a": np.array([0.9, 0.8, 0.7, 0.9, 0.6]), "b": np.zeros(5)}
    row = compare(scores, measure="x")[0]
    assert (row.p_value, row.verdict) == (0.0625, "undecided: too few queries")
    one = compare({"a": np.array([0.4]), "b": np.array([0.1])}, measure="x", settings=Settings(test="t"))[0]
    assert (one.p_value, one.ci_method, one.method) == (1.0, "not estimable", "undefined")
    assert one.verdict == "undecided: undefined, all differences are equal"


def test_the_rows_of_a_family_that_ever_could_be_significant():
    # DEFINITIONS: n' needed for 5 %: 6 alone, 7 in 3 pairs, 8 in 6, 9 in 10, 11 in 45.
    for retrievers, needed in {2: 6, 3: 7, 4: 8, 5: 9, 10: 11}.items():
        for n in (needed - 1, needed):
            scores = {str(j): np.arange(n) / n + j for j in range(retrievers)}
            floor = compare(scores, measure="DCG@10")[0].p_minimum_adjusted
            assert (floor <= 0.05) == (n == needed)


def pairs_of_scores():
    grid = st.integers(0, 10).map(lambda x: x / 10)
    return st.integers(1, 14).flatmap(
        lambda n: st.tuples(*(st.lists(grid, min_size=n, max_size=n) for _ in range(3)), st.permutations(range(n)))
    )


@settings(max_examples=60, deadline=None)
@given(pairs_of_scores(), st.sampled_from(["wilcoxon", "randomization", "t", "sign"]), st.floats(-1, 1))
def test_order_of_queries_names_and_a_shift_change_no_verdict(drawn, test, shift):
    *rows, order = drawn
    x, y, z = (np.array(row) for row in rows)
    chosen = Settings(test=test, margin=0.25)
    plain = compare({"x": x, "y": y, "z": z}, measure="m", settings=chosen)
    mixed = compare({"x": x[order], "y": y[order], "z": z[order]}, measure="m", settings=chosen)
    moved = compare({"x": x + shift, "y": y + shift, "z": z + shift}, measure="m", settings=chosen)
    for other in (mixed, moved):
        assert [r.verdict for r in other] == [r.verdict for r in plain]
        assert [(r.w_plus, r.w_minus, r.ties) for r in other] == [(r.w_plus, r.w_minus, r.ties) for r in plain]
        assert [r.p_value for r in other] == pytest.approx([r.p_value for r in plain], rel=1e-6)
    turned = {frozenset((r.a, r.b)): r for r in compare({"z": z, "y": y, "x": x}, measure="m", settings=chosen)}
    for row in plain:
        other = turned[frozenset((row.a, row.b))]
        assert swapped(other).verdict == row.verdict
        assert swapped(other).wins == row.wins
        assert swapped(swapped(row)) == row
        assert swapped(other).mean_difference == pytest.approx(row.mean_difference, abs=1e-12)
        assert (swapped(other).ci_low, swapped(other).ci_high) == pytest.approx((row.ci_low, row.ci_high), abs=1e-12)


def test_settings_are_refused_all_at_once():
    with pytest.raises(InputError) as caught:
        Settings(test="wilcoxen", alpha=1.5, margin=-0.1)
    assert [p.where for p in caught.value.problems] == [
        "[statistics] test",
        "[statistics] alpha",
        "[statistics] margin",
    ]
    assert "did you mean 'wilcoxon'?" in str(caught.value)


# The gate


def test_the_gate_passes_and_says_why_in_one_line():
    rng = np.random.default_rng(9)
    b = rng.random(100)
    passed = gate(b + rng.normal(0, 0.01, 100), b, margin=0.02)
    assert passed.passed
    assert passed.reason.startswith("not worse by 0.02: shown on 100 queries (difference ")
    assert "\n" not in passed.reason
    failed = gate(b - 0.02, b, margin=0.02)
    assert not failed.passed
    assert failed.reason.startswith("not worse by 0.02: not shown")


def test_the_gate_says_that_four_queries_can_never_show_it():
    found = gate(np.ones(4), np.zeros(4), margin=0.02)
    assert not found.passed
    assert found.reason.startswith("4 queries can never show it: the smallest possible p is 0.0625, above 0.05")
    assert gate(np.ones(5), np.zeros(5), margin=0.02).passed
    assert gate(np.ones(1), np.zeros(1), margin=0.02).reason.startswith("1 query can never show it")


@pytest.mark.parametrize("margin", [-0.1, 0.0, float("nan"), float("inf")])
def test_a_margin_is_a_finite_number_above_0(margin):
    with pytest.raises(InputError, match="is not a finite number above 0"):
        gate(np.ones(5), np.zeros(5), margin=margin)
    with pytest.raises(InputError, match="is not a finite number above 0"):
        Settings(margin=margin)
    # Points of the measure: a DCG may well differ by more than 1.
    assert Settings(margin=1.5).margin == 1.5


# Power


def test_power_under_resampling_is_what_simulated_exact_tests_find():
    rng = np.random.default_rng(10)
    n, level = 60, 0.05 / 3
    b = rng.integers(0, 11, n) / 10
    a = np.clip(b + rng.integers(-2, 4, n) * (rng.random(n) < 0.6) / 10, 0, 1)
    d = differences(a, b)
    for zeros in ("wilcox", "pratt"):
        for size in (30, 80):
            draws = rng.integers(n, size=(800, size))
            simulated = np.mean([signed_rank(a[i], b[i], zeros=zeros).p_value <= level for i in draws])
            assert resampling_power(d.groups, np.array([size]), level, zeros)[0] == pytest.approx(simulated, abs=0.06)


def test_the_minimum_detectable_difference_has_the_power_that_it_claims():
    rng = np.random.default_rng(11)
    n = 40
    a = rng.integers(0, 11, n) / 10
    d = differences(a, rng.integers(0, 11, n) / 10)
    found = minimum_detectable(d, level=0.05)
    hits = 0
    for _ in range(600):
        sizes = np.abs(d.values)[rng.integers(n, size=n)]
        signs = np.where(rng.random(n) < found.theta, 1, -1)
        hits += signed_rank(sizes * signs, np.zeros(n)).p_value <= 0.05
    assert hits / 600 == pytest.approx(0.80, abs=0.06)
    assert found.difference == pytest.approx((2 * found.theta - 1) * np.abs(d.values).mean())
    assert minimum_detectable(d, level=0.05 / 45).difference > found.difference


def test_what_no_theta_and_no_number_of_queries_reaches():
    few = differences(np.array([0.1, 0.2, 0.3, 0.4, 0.5]), np.zeros(5))
    assert minimum_detectable(few, level=0.05) == (None, None)
    assert queries_needed(few, level=0.05) is None
    assert minimum_detectable(differences(np.ones(9), np.ones(9)), level=0.05) == (None, None)
    balanced = differences(np.array([0.1, -0.1] * 20), np.zeros(40))
    assert queries_needed(balanced, level=0.05).best_guess is None
    assert queries_needed(balanced, level=0.05).high is None


def test_queries_needed_come_with_their_interval():
    rng = np.random.default_rng(12)
    d = differences(rng.normal(0.03, 0.1, 50), np.zeros(50))
    low, high, guess = queries_needed(d, level=0.05)
    assert low <= guess
    assert high is None or guess <= high
    assert queries_needed(d, level=0.05) == (low, high, guess)
    assert queries_needed(d, level=0.01).best_guess > guess


def test_sakai_s_closed_form():
    # Sakai (2016), "Topic set size design", eq. for the paired t: n = ((z_a/2 + z_b) / effect)^2 + z_a/2^2 / 2.
    assert [sakai_queries(x) for x in (0.2, 0.5, 1.0)] == [199, 34, 10]
    with pytest.raises(ValueError, match="above 0"):
        sakai_queries(0.0)


# The whole


def test_the_three_sets_and_their_words():
    rng = np.random.default_rng(13)
    base = rng.random(120)
    scores = {
        "bad": base - 0.3,
        "best": base,
        "twin": base + rng.normal(-0.002, 0.01, 120),
        "maybe": base + rng.normal(-0.03, 0.3, 120),
    }
    chosen = Settings(margin=0.02)
    rows = compare(scores, measure="nDCG@10", settings=chosen)
    found = whole(scores, rows, measure="nDCG@10", settings=chosen)
    assert found.leader == "best"
    assert found.shown_worse == ("bad",)
    assert found.within_margin == ("best", "twin")
    assert tuple(found.unresolved) == ("maybe",)
    text = " ".join(whole_sentences(found, chosen))
    assert "Shown to be worse than best: bad." in text
    assert "Shown to be as good as best within 0.02: twin." in text
    assert "cannot tell best and maybe apart" in text
    assert "queries in all would be needed" in text
    assert "does not mean that there is none" in text


def test_absence_of_evidence_is_never_called_as_good_as():
    scores = noisy(14, 13, a=0.0, b=0.01, c=0.02)
    for chosen in (Settings(), Settings(margin=0.001)):
        rows = compare(scores, measure="P@5", settings=chosen)
        found = whole(scores, rows, measure="P@5", settings=chosen)
        assert len(found.within_margin) == 1
        text = " ".join(whole_sentences(found, chosen))
        assert "as good as" not in text
        assert "cannot tell" in text
    assert "significant at 5 %" in significance_sentence(rows, chosen)


def test_a_baseline_that_does_not_lead_leaves_the_leader_s_other_pairs_to_all_pairs():
    scores = noisy(15, a=0.0, base=0.1, c=0.4)
    rows = compare(scores, measure="P@5", baseline="base")
    found = whole(scores, rows, measure="P@5", settings=Settings())
    assert found.leader == "c"
    assert set(found.shown_worse) == {"a", "base"}
    assert found.against["base"] == rows[1]
    assert found.against["a"].p_minimum_adjusted == pytest.approx(3 * found.against["a"].p_minimum)
    assert "c is the best of the 3 on this measure." in whole_sentences(found, Settings())


def test_a_single_retriever_and_a_single_query_are_said_in_words():
    alone = whole({"a": np.array([0.5, 0.6])}, [], measure="P@5", settings=Settings())
    assert whole_sentences(alone, Settings())[-1] == "It ran alone: there is nothing to compare it with."
    scores = {"a": np.array([0.5]), "b": np.array([0.6])}
    rows = compare(scores, measure="P@5")
    text = " ".join(whole_sentences(whole(scores, rows, measure="P@5", settings=Settings()), Settings()))
    assert "This query cannot tell b and a apart; one is too few to say how many would be needed." in text
    assert "b and a: 1 of 1 query differs; that few could hardly have shown any difference." in text
    assert significance_sentence(rows, Settings()).startswith(
        "No difference in P@5 is significant at 5 %: 1 query could"
    )


def test_equals_share_the_lead():
    scores = {"a": np.full(6, 0.5), "b": np.full(6, 0.5)}
    found = whole(scores, compare(scores, measure="P@5"), measure="P@5", settings=Settings())
    words = whole_sentences(found, Settings())
    assert words[0] == "On P@5 over 6 queries, a and b share the highest mean, 0.5000."
    assert "a and b: no query of 6 tells them apart." in words
    assert "These 6 queries cannot tell a and b apart." in words


@pytest.mark.parametrize(
    ("a", "test", "reason"),
    [
        (np.ones(100), "t", "the t-test is undefined where all differences are equal"),
        (0.5 + np.array([0.02] * 90 + [-0.5] * 10), "wilcoxon", "ranks and means disagree"),
    ],
)
def test_no_queries_are_foretold_where_their_number_is_not_the_trouble(a, test, reason):
    chosen, scores = Settings(test=test), {"a": a, "b": np.full(100, 0.5)}
    found = whole(scores, compare(scores, measure="m", settings=chosen), measure="m", settings=chosen)
    text = " ".join(whole_sentences(found, chosen))
    assert " apart. " in text
    assert reason in text
    assert "would" not in text
    # Beside a pair that more queries may well tell apart, they are foretold of that pair alone.
    noise = np.random.default_rng(0).normal(0, 0.3, 100)
    scores["c"] = scores[found.leader] + noise - noise.mean() - 0.02
    found = whole(scores, compare(scores, measure="m", settings=chosen), measure="m", settings=chosen)
    text = " ".join(whole_sentences(found, chosen))
    assert re.search(rf"would be needed to tell {found.leader} from [abc][ ,;.]", text)


def test_pair_sentences_put_the_difference_before_p():
    rows = compare(noisy(6, x=0.0, y=0.3), measure="P@5")
    words = pair_sentence(rows[0], Settings())
    assert words.startswith("x is worse than y: mean difference in P@5 -0.")
    assert words.index("95 % interval") < words.index("adjusted p")
    few = compare({"a": np.array([0.9, 0.8]), "b": np.zeros(2)}, measure="P@5")[0]
    assert "too few queries (2 of 2 differ; the smallest adjusted p they could give is 0.5, above 0.05)" in (
        pair_sentence(few, Settings())
    )


def test_bca_intervals_on_request():
    scores = noisy(22, x=0.0, y=0.1)
    t, bca = (compare(scores, measure="m", settings=Settings(interval=kind))[0] for kind in ("t", "bca"))
    assert (t.ci_method, bca.ci_method) == ("t", "bca")
    assert (bca.ci_low, bca.ci_high) == pytest.approx((t.ci_low, t.ci_high), abs=0.02)


def test_p_is_written_for_people_and_never_as_zero():
    assert format_p(2.3e-308) == "< 1e-300"
    assert format_p(1.56e-9) == "1.56e-09"
    assert format_p(0.03125) == "0.0312"


# Letters, ranks, guards, slices


def test_letters_say_what_the_verdicts_say():
    scores = noisy(16, 60, low=0.0, mid=0.05, top=0.3)
    rows = compare(scores, measure="P@5")
    shown = letters(scores, rows)
    assert next(iter(shown)) == "top"
    for row in rows:
        separated = row.word in ("better", "worse")
        assert separated == (not set(shown[row.a]) & set(shown[row.b]))
    with pytest.raises(ValueError, match="every pair"):
        letters(scores, rows[:2])


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 6), st.data())
def test_letters_separate_exactly_the_separated(k, data):
    names = [f"r{j}" for j in range(k)]
    scores = {name: np.array([1.0 - j / 10, 0.5]) for j, name in enumerate(names)}
    rows = [
        replace(row, verdict=data.draw(st.sampled_from(["better", "undecided: no difference shown"])))
        for row in compare(scores, measure="m")
    ]
    shown = letters(scores, rows)
    for row in rows:
        assert (row.word == "better") == (not set(shown[row.a]) & set(shown[row.b]))


def test_the_rank_diagram_joins_what_is_not_separated():
    scores = noisy(17, 60, low=0.0, mid=0.0, top=0.3)
    diagram = rank_diagram(scores, compare(scores, measure="P@5"))
    assert next(iter(diagram.ranks)) == "top"
    assert sum(diagram.ranks.values()) == pytest.approx(6.0)
    assert [set(bar) for bar in diagram.bars] == [{"low", "mid"}]


def test_picking_the_best_of_equals_is_optimistic_by_what_it_gains():
    rng = np.random.default_rng(18)
    scores = {f"r{j}": rng.random(50) for j in range(8)}
    found = optimism(scores)
    # The expected largest of 8 independent standard normals is 1.42 standard errors.
    assert 0.3 < found.optimism / (np.sqrt(1 / 12) / np.sqrt(50)) < 2.0
    assert found.corrected == pytest.approx(found.mean - found.optimism)
    assert optimism({"one": scores["r0"], "far": scores["r0"] - 0.9}).optimism == pytest.approx(0.0, abs=2e-3)
    assert f"{found.winner} was picked as the best of 8" in optimism_sentence(found, 8)


def test_rank_stability():
    rows = standings({"a": np.full(20, 0.5), "b": np.full(20, 0.9), "c": np.full(20, 0.5)})
    assert [(r.name, r.rank, r.rank_low, r.rank_high) for r in rows] == [("b", 1, 1, 1), ("a", 2, 2, 2), ("c", 2, 2, 2)]
    assert [r.share_first for r in rows] == [1.0, 0.0, 0.0]
    shaky = standings(noisy(19, 13, a=0.0, b=0.0, c=0.0))
    assert sum(r.share_first for r in shaky) == pytest.approx(1.0)
    assert shaky[0].rank_high > 1


def test_slices_are_one_corrected_family_and_small_ones_are_named():
    scores = noisy(20, 45, a=0.0, b=0.3)
    labels = ["en"] * 20 + ["ja"] * 20 + ["fr"] * 4 + [""]
    rows = slice_family(scores, [("a", "b")], labels, name="field language", measure="P@5", settings=Settings())
    assert [(r.note, r.n) for r in rows] == [("en", 20), ("ja", 20)]
    assert [r.p_adjusted for r in rows] == list(adjust([r.p_value for r in rows]))
    assert rows[0].p_value == signed_rank(scores["a"][:20], scores["b"][:20]).p_value
    assert small_slices(labels) == {"fr": 4}
    (whole_row,) = pair_family(scores, [("a", "b")], name="rerank uplift", measure="P@5", settings=Settings())
    assert (whole_row.n, whole_row.note, whole_row.p_value) == (45, "", signed_rank(scores["a"], scores["b"]).p_value)
    assert slice_family(scores, [("a", "b")], ["x"] * 9 + [""] * 36, name="f", measure="m", settings=Settings()) == []
    assert sorted(set(length_slices(["a"] * 5 + ["bbb"] * 5 + ["ccccc"] * 5))) == [
        "long (4 or more)",
        "medium (2 to 3)",
        "short (up to 1)",
    ]


def test_the_other_families_go_to_tests_csv():
    scores = noisy(21, 20, a=0.0, b=0.05, c=0.3)
    rows = pairwise_families(scores, family(list(scores)), measure="P@5", settings=Settings(margin=0.05))
    assert [r.family for r in rows[::3]] == ["randomization", "t", "sign", "tukey", "equivalence"]
    for i in range(0, len(rows), 3):
        if rows[i].family != "tukey":
            assert [r.p_adjusted for r in rows[i : i + 3]] == list(adjust([r.p_value for r in rows[i : i + 3]]))
    assert pairwise_families(scores, [], measure="P@5", settings=Settings()) == []
    one = friedman_row(scores, measure="P@5")
    assert (one.family, one.a, one.b, one.method, one.p_adjusted) == ("friedman", "", "", "exact", one.p_value)


def test_unequal_judging_is_said():
    assert judged_note("a", "b", 0.9, 0.8) == ""
    assert judged_note("a", "b", 0.5, 0.9).endswith("which favours b.")
