"""From scores to rows, verdicts and sentences: the traps, the symmetries and the undefined."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.stats import (
    Comparison,
    Facts,
    Range,
    Settings,
    adjust,
    compare,
    compare_all,
    gate,
    interval_note,
    letters,
    optimism,
    optimism_sentence,
    pair_family,
    pair_sentence,
    pairwise_families,
    rank_diagram,
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
from harness.stats.families import friedman_row
from harness.stats.slices import length_slices
from harness.stats.words import format_p, judged_note
from retrievers.errors import InputError
from tests import recompute

COLUMNS = (
    "measure,a,b,n,zeros,wins,ties,losses,mean_difference,ci_low,ci_high,w_plus,w_minus,statistic,p_value,p_adjusted,"
    "p_minimum,method,effect_size,verdict,role,p_minimum_adjusted,p_randomization,ci_method,p_randomization_adjusted,"
    "clusters"
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
    moved = {"p_adjusted", "p_minimum_adjusted", "p_randomization_adjusted", "verdict"}
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
    base = 0.3 + rng.random(200) / 2
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
def test_equal_scores_are_p_one_and_say_nothing_of_queries_that_were_not_asked(n):
    scores = {"a": np.full(n, 0.5), "b": np.full(n, 0.5)}
    row = compare(scores, measure="x")[0]
    assert (row.p_value, row.p_adjusted, row.p_randomization, row.effect_size) == (1.0, 1.0, 1.0, None)
    assert (row.ci_low, row.ci_high, row.ci_method) == (None, None, "not estimable")
    assert row.verdict == "undecided: no query differs"
    close = compare(scores, measure="x", settings=Settings(margin=0.02))[0]
    assert close.verdict == "undecided: no query differs"


@pytest.mark.parametrize(("n", "verdict"), [(4, "undecided"), (5, "equivalent")])
def test_identical_rankings_count_as_within_the_margin_from_five_queries(n, verdict):
    scores, same = {"a": np.full(n, 0.5), "b": np.full(n, 0.5)}, Facts(identical=frozenset([frozenset("ab")]))
    row = compare(scores, measure="x", settings=Settings(margin=0.02), facts=same)[0]
    assert row.verdict == f"{verdict}: identical on these queries"
    plain = compare(scores, measure="x", facts=same)[0]
    assert plain.verdict == "undecided: identical on these queries"


def test_a_measure_whose_scores_are_all_0_measured_nothing():
    scores = {name: np.zeros(200) for name in "ab"}
    chosen = Settings(margin=0.02)
    rows = compare(scores, measure="x", settings=chosen, facts=Facts(identical=frozenset([frozenset("ab")])))
    assert rows[0].verdict == "undecided: nothing was measured"
    assert significance_sentence(rows, chosen) == "Every score of x is 0: nothing was measured."
    found = whole(scores, rows, measure="x", settings=chosen)
    assert [*whole_sentences(found, chosen)] == [
        "Nothing was measured: every score of x is 0 over 200 queries. Look whether the labels name documents by the "
        "ids that the retrievers return."
    ]
    assert (found.within_margin, found.shown_worse) == (("a",), ())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_finite_numbers_are_refused(bad):
    with pytest.raises(InputError, match="x of a: 1 scores are not finite"):
        compare({"a": np.array([bad, 0.5]), "b": np.array([0.5, 0.5])}, measure="x")
    with pytest.raises(InputError, match="not finite"):
        gate(np.array([bad, 0.5]), np.array([0.5, 0.5]), margin=0.1)


def test_better_needs_both_adjusted_p_values():
    """Eight in ten gain 0.05, one in ten loses 0.35: the ranks are sure, the mean is not."""
    d = np.array([0.05] * 80 + [-0.35] * 10 + [0.0] * 10)
    row = compare({"a": 0.5 + d, "b": np.full(100, 0.5)}, measure="x")[0]
    assert row.mean_difference > 0
    assert row.p_adjusted < 1e-6
    assert row.p_randomization_adjusted > 0.5
    assert row.verdict == "undecided: ranks and means disagree"
    assert "the deciding test finds a difference, the test of the mean does not" in pair_sentence(row, Settings())


@pytest.mark.parametrize("correction", ["holm", "hommel", "bonferroni", "bh"])
def test_both_p_are_corrected_alike_and_the_floor_stands_in_the_place_of_its_own_p(correction):
    rows = compare(noisy(3, 12, x=0.0, y=0.05, z=0.1), measure="m", settings=Settings(correction=correction))
    means = adjust([r.p_randomization for r in rows], correction)
    assert [r.p_randomization_adjusted for r in rows] == list(means)
    observed = [r.p_value for r in rows]
    for i, row in enumerate(rows):
        alone = adjust([*observed[:i], row.p_minimum, *observed[i + 1 :]], correction)[i]
        assert row.p_minimum_adjusted == alone
        assert row.p_minimum_adjusted <= row.p_adjusted
        if correction == "bonferroni":
            assert alone == min(1.0, 3 * row.p_minimum)


def test_under_tukey_there_is_no_floor_and_one_p():
    chosen = Settings(correction="tukey")
    rows = compare(noisy(3, 12, x=0.0, y=0.05, z=0.1), measure="m", settings=chosen)
    assert all(r.p_minimum_adjusted is None and r.p_randomization_adjusted == r.p_adjusted for r in rows)
    assert "for the mean" not in pair_sentence(rows[0], chosen)


def test_too_few_queries_is_said_and_one_query_is_defined():
    scores = {"a": np.array([0.9, 0.8, 0.7, 0.9, 0.6]), "b": np.zeros(5)}
    row = compare(scores, measure="x")[0]
    assert (row.p_value, row.verdict) == (0.0625, "undecided: too few queries")
    one = compare({"a": np.array([0.4]), "b": np.array([0.1])}, measure="x", settings=Settings(test="t"))[0]
    assert (one.p_value, one.ci_method, one.method) == (1.0, "not estimable", "undefined")
    assert one.verdict == "undecided: undefined, all differences are equal"


def test_the_rows_of_a_family_that_ever_could_be_significant():
    # Non-zero differences needed for 5 %: 6 alone, 7 in 3 pairs, 8 in 6, 9 in 10, 11 in 45.
    for retrievers, needed in {2: 6, 3: 7, 4: 8, 5: 9, 10: 11}.items():
        for n in (needed - 1, needed):
            scores = {str(j): np.arange(n) / n + j for j in range(retrievers)}
            chosen = Settings(correction="bonferroni")
            floor = compare(scores, measure="DCG@10", settings=chosen)[0].p_minimum_adjusted
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
    scores = np.concatenate([x, y, z])
    assume(scores.any() and (scores + shift).any())  # scores that are all 0 measured nothing: that is another verdict
    chosen = Settings(test=test, margin=0.25)
    facts = Facts(ranges={"m": Range(-4, 4)})  # one range for all: it decides what the worst loss is
    plain = compare({"x": x, "y": y, "z": z}, measure="m", settings=chosen, facts=facts)
    mixed = compare({"x": x[order], "y": y[order], "z": z[order]}, measure="m", settings=chosen, facts=facts)
    moved = compare({"x": x + shift, "y": y + shift, "z": z + shift}, measure="m", settings=chosen, facts=facts)
    for other in (mixed, moved):
        assert [r.verdict for r in other] == [r.verdict for r in plain]
        assert [(r.w_plus, r.w_minus, r.ties) for r in other] == [(r.w_plus, r.w_minus, r.ties) for r in plain]
        assert [r.p_value for r in other] == pytest.approx([r.p_value for r in plain], rel=1e-6)
    turned = {
        frozenset((r.a, r.b)): r for r in compare({"z": z, "y": y, "x": x}, measure="m", settings=chosen, facts=facts)
    }
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


# The whole


def test_the_three_sets_and_their_words():
    rng = np.random.default_rng(13)
    base = 0.5 + rng.random(120) / 4
    scores = {
        "bad": base - 0.3,
        "best": base,
        "twin": base + rng.normal(-0.002, 0.04, 120),
        "maybe": np.clip(base + rng.normal(-0.03, 0.3, 120), 0, 1),
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
    assert "To find a true difference of 0.02 between best and maybe four times in five, you need" in text
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
    assert "This query cannot tell b and a apart. One query is too few to say how many would be needed." in text
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


def test_no_queries_are_foretold_where_their_number_is_not_the_trouble():
    chosen, scores = Settings(test="t"), {"a": np.ones(100), "b": np.full(100, 0.5)}
    found = whole(scores, compare(scores, measure="m", settings=chosen), measure="m", settings=chosen)
    text = " ".join(whole_sentences(found, chosen))
    assert "the t-test is undefined where all differences are equal" in text
    assert "four times in five" not in text
    # Beside a pair that more queries may well tell apart, a plan is made for that pair alone.
    noise = np.random.default_rng(0).normal(0, 0.2, 100)
    scores["c"] = np.clip(0.98 + noise - noise.mean(), 0, 1)
    found = whole(scores, compare(scores, measure="m", settings=chosen), measure="m", settings=chosen)
    if "c" in found.unresolved:
        assert "between a and c four times in five" in " ".join(whole_sentences(found, chosen))


@pytest.mark.parametrize(("n", "enough"), [(90, True), (20, False)])
def test_as_many_queries_as_the_plan_wants_are_said_to_have_been_asked(n, enough):
    chosen, scores = Settings(), noisy(4, n, a=0.0, b=0.0)
    found = whole(scores, compare(scores, measure="m", settings=chosen), measure="m", settings=chosen)
    (state,) = found.unresolved.values()
    assert (state.plan.high <= n) is enough
    text = " ".join(whole_sentences(found, chosen))
    assert ("if queries gain and lose like these. That many were asked. (No margin" in text) is enough


def test_interval_and_corrected_p_that_seem_to_disagree_are_explained():
    rows = compare(noisy(4, 40, x=0.0, y=0.05, z=0.02), measure="m")
    odd = replace(rows[0], verdict="undecided: no difference shown", ci_low=0.01, ci_high=0.09)
    assert "seem to disagree on x and y: each interval is of one comparison alone" in interval_note([odd])
    assert interval_note([replace(odd, p_randomization_adjusted=odd.p_adjusted)]).endswith("goes by the corrected p.")
    denied = replace(odd, p_adjusted=0.0463, p_randomization_adjusted=0.0741)
    assert interval_note([denied]).endswith("goes by the corrected p of both tests.")
    assert interval_note([replace(odd, ci_low=-0.01)]) == ""
    assert interval_note([replace(odd, ci_low=None, ci_high=None)]) == ""


def test_pair_sentences_put_the_difference_before_p():
    rows = compare(noisy(6, x=0.0, y=0.3), measure="P@5")
    words = pair_sentence(rows[0], Settings())
    assert words.startswith("x is worse than y: mean difference in P@5 -0.")
    assert words.index("95 % interval") < words.index("adjusted p")
    few = compare({"a": np.array([0.9, 0.8]), "b": np.zeros(2)}, measure="P@5")[0]
    assert (
        "too few queries (2 of 2 queries differ; the smallest adjusted p that they could give is 0.500, above 0.05)"
        in (pair_sentence(few, Settings()))
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
    # Nothing scatters, so that nothing tells how firm a rank is.
    assert [(r.name, r.rank, r.rank_low, r.rank_high) for r in rows] == [
        ("b", 1, None, None), ("a", 2, None, None), ("c", 2, None, None),
    ]  # fmt: skip
    assert [r.share_first for r in rows] == [1.0, 0.0, 0.0]
    apart = standings({"a": np.linspace(0, 0.1, 20), "b": np.linspace(0.8, 0.8, 20)})
    assert [(r.name, r.rank_low, r.rank_high) for r in apart] == [("b", 1, 1), ("a", 2, 2)]
    shaky = standings(noisy(19, 13, a=0.0, b=0.0, c=0.0))
    assert sum(r.share_first for r in shaky) == pytest.approx(1.0)
    assert shaky[0].rank_high > 1


def test_slices_are_one_corrected_family_and_small_ones_are_named():
    scores = noisy(20, 45, a=0.0, b=0.3)
    labels = ["en"] * 20 + ["ja"] * 20 + ["fr"] * 4 + [""]
    rows = slice_family(scores, [("a", "b")], labels, names=("field language", "P@5"), settings=Settings())
    assert [(r.note, r.n) for r in rows] == [("en", 20), ("ja", 20)]
    assert [r.p_adjusted for r in rows] == list(adjust([r.p_value for r in rows]))
    assert rows[0].p_value == signed_rank(scores["a"][:20], scores["b"][:20]).p_value
    assert small_slices(labels) == {"fr": 4}
    (whole_row,) = pair_family(scores, [("a", "b")], names=("rerank uplift", "P@5"), settings=Settings())
    assert (whole_row.n, whole_row.note, whole_row.p_value) == (45, "", signed_rank(scores["a"], scores["b"]).p_value)
    assert slice_family(scores, [("a", "b")], ["x"] * 9 + [""] * 36, names=("f", "m"), settings=Settings()) == []
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
