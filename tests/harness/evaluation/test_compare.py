"""From scores to rows, verdicts and sentences: the traps, the symmetries and the undefined."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.evaluation.compare import compare as compare_table
from harness.evaluation.compare import family
from harness.evaluation.gate import gate
from harness.evaluation.scores import Scores
from harness.evaluation.wording import (
    COMPARISON_COLUMNS,
    comparison_cells,
    opposite_warning,
    pair_sentence,
    read_comparison,
    significance_sentence,
)
from harness.stats.differences import Range
from harness.stats.multiplicity import adjust
from harness.stats.settings import Settings
from harness.stats.signed_rank import signed_rank
from retrievers.errors import InputError
from tests.support import recompute
from tests.support.scored import cell, compare, concluded, scored, sentences, word

COLUMNS = (
    "measure,a,b,n,zeros,wins,ties,losses,mean_difference,ci_low,ci_high,w_plus,w_minus,statistic,p_value,p_adjusted,"
    "p_minimum,method,effect_size,verdict,role,p_minimum_adjusted,p_randomization,ci_method,p_randomization_adjusted,"
    "clusters,p_wilcoxon,p_wilcoxon_adjusted"
)


def noisy(seed, n=40, **shifts):
    """Scores of several retrievers around the same queries, each shifted by its name's number."""
    rng = np.random.default_rng(seed)
    base = rng.random(n) * 0.5
    return {name: np.round(base + rng.random(n) * 0.3 + shift, 2) for name, shift in shifts.items()}


def test_the_fields_are_the_columns_of_comparisons_csv():
    assert ",".join(COMPARISON_COLUMNS) == COLUMNS
    for row in compare(noisy(1, x=0.0, y=0.1, z=0.1), settings=Settings(margin=0.02)):
        assert ",".join(comparison_cells(row)) == COLUMNS
        assert read_comparison(comparison_cells(row)) == row


def test_an_independent_program_finds_the_same_digits():
    scores = noisy(1, 60, x=0.0, y=0.03, z=0.1)
    rows = compare(scores, measure="P@5", settings=Settings(test="wilcoxon"))
    for row in rows:
        expected = recompute.expected_comparison(scores[row.a].tolist(), scores[row.b].tolist())
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
    both = Scores(ids=scored(one).ids, values={"P@5": one, "R@5": two}, decides="R@5")
    rows = compare_table(both, settings=Settings(margin=0.02))
    assert [r.role for r in rows] == ["exploratory"] * 3 + ["confirmatory"] * 3
    assert [r.p_adjusted for r in rows[:3]] == list(adjust([r.p_value for r in rows[:3]]))
    assert rows[:3] == [replace(row, role="exploratory") for row in compare(one, measure="P@5")]
    assert rows[3:] == compare(two, measure="R@5", settings=Settings(margin=0.02))


def test_another_retriever_moves_no_other_number():
    scores = noisy(5, x=0.0, y=0.05, z=0.1)
    before = compare({"x": scores["x"], "y": scores["y"]}, measure="P@5")[0]
    after = compare(scores, measure="P@5")[0]
    moved = {"p_adjusted", "p_minimum_adjusted", "p_randomization_adjusted", "p_wilcoxon_adjusted", "finding"}
    assert [getattr(before, f.name) for f in fields(before) if f.name not in moved] == [
        getattr(after, f.name) for f in fields(after) if f.name not in moved
    ]


@pytest.mark.parametrize("test", ["wilcoxon", "randomization", "t"])
@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh"])
def test_every_test_and_correction_finds_a_clear_difference(test, correction):
    rows = compare(noisy(6, x=0.0, y=0.3, z=0.0), measure="P@5", settings=Settings(test=test, correction=correction))
    assert [word(r) for r in rows] == ["worse", "undecided", "better"]


@pytest.mark.parametrize(
    ("test", "n", "method"),
    [
        ("wilcoxon", 9, "exact"),
        ("randomization", 9, "enumerated"),
        ("randomization", 30, "convolved"),
        ("t", 9, "t"),
    ],
)
def test_the_method_names_how_p_was_found(test, n, method):
    row = compare(noisy(7, n, x=0.0, y=0.01), measure="P@5", settings=Settings(test=test))[0]
    assert row.method == method
    assert (row.p_minimum is None) == (test == "t")
    if test == "randomization":
        assert row.p_value == row.p_randomization


# The traps


def test_trap_forty_small_gains_and_eight_large_losses_point_opposite_ways():
    d = np.array([0.02] * 40 + [-0.5] * 8)
    scores = {"a": 0.5 + d, "b": np.full(48, 0.5)}
    row = compare(scores, measure="nDCG@10")[0]
    assert row.p_wilcoxon_adjusted <= 0.05
    assert row.w_plus > row.w_minus
    assert row.mean_difference < 0
    assert cell(row) == "worse"
    p = f"{row.p_wilcoxon_adjusted:#.3g}"
    told = f"Yet on the typical query a is better than b (exact Wilcoxon p = {p})."
    assert opposite_warning([row], Settings()) == told
    ranks = Settings(test="wilcoxon")
    row = compare(scores, measure="nDCG@10", settings=ranks)[0]
    assert cell(row) == "better"
    assert opposite_warning([row], ranks) == (
        f"Yet the mean of b is higher (sign-flip p = {row.p_randomization_adjusted:#.3g})."
    )
    found = concluded(scores, [row], measure="nDCG@10", settings=ranks)
    assert (found.leader, found.ahead) == ("b", ("a",))
    assert "b has the highest mean, but a is shown to be better on the typical query." in sentences(found, ranks)


def test_trap_ninety_ties_and_ten_losses_of_a_half_is_no_non_inferiority():
    a, b = np.array([0.5] * 90 + [0.0] * 10), np.full(100, 0.5)
    # What a signed-rank test on shifted differences would say:
    assert signed_rank(a + 0.02, b).p_value < 1e-9
    refused = gate(a, b, margin=0.02)
    assert not refused.passed
    assert refused.p_value > 0.9
    row = compare({"a": a, "b": b}, measure="nDCG@10", settings=Settings(margin=0.02))[0]
    assert cell(row) == "worse"
    # By half a point more than the loss of 0.05 the mean is within the margin.
    assert gate(a, b, margin=0.15).passed


# Verdicts


def test_the_verdicts_with_a_margin():
    rng = np.random.default_rng(8)
    base = 0.3 + rng.random(200) / 2
    close = base + rng.normal(0, 0.01, 200)
    scores = {"base": base, "close": close, "tiny": base + 0.004 + rng.normal(0, 0.01, 200), "far": base - 0.2}
    rows = {(r.a, r.b): r for r in compare(scores, measure="x", settings=Settings(margin=0.02))}
    assert cell(rows["base", "close"]) == "equivalent"
    assert cell(rows["base", "tiny"]) == "worse but negligible"
    assert cell(rows["base", "far"]) == "better"
    assert rows["base", "tiny"].reason is None
    without = {(r.a, r.b): r for r in compare(scores, measure="x")}
    assert cell(without["base", "close"]) == "undecided: no difference shown"
    assert cell(without["base", "tiny"]) == "worse"


@pytest.mark.parametrize("n", [1, 4, 5, 6, 12])
def test_equal_scores_are_p_one_and_say_nothing_of_queries_that_were_not_asked(n):
    scores = {"a": np.full(n, 0.5), "b": np.full(n, 0.5)}
    row = compare(scores, measure="x")[0]
    assert (row.p_value, row.p_adjusted, row.p_randomization, row.effect_size) == (1.0, 1.0, 1.0, None)
    assert (row.ci_low, row.ci_high, row.ci_method) == (None, None, "not estimable")
    assert cell(row) == "undecided: no query differs"
    close = compare(scores, measure="x", settings=Settings(margin=0.02))[0]
    assert cell(close) == "undecided: no query differs"


@pytest.mark.parametrize(("n", "verdict"), [(148, "undecided"), (149, "equivalent")])
def test_identical_rankings_are_within_the_margin_where_enough_queries_were_asked(n, verdict):
    scores, same = {"a": np.full(n, 0.5), "b": np.full(n, 0.5)}, frozenset([frozenset("ab")])
    row = compare(scores, measure="x", settings=Settings(margin=0.02), identical=same)[0]
    assert cell(row) == f"{verdict}: identical on these queries"
    plain = compare(scores, measure="x", identical=same)[0]
    assert cell(plain) == "undecided: identical on these queries"


def test_a_measure_whose_scores_are_all_0_measured_nothing():
    scores = {name: np.zeros(200) for name in "ab"}
    chosen = Settings(margin=0.02)
    rows = compare(scores, measure="x", settings=chosen, identical=frozenset([frozenset("ab")]))
    assert cell(rows[0]) == "undecided: nothing was measured"
    ideal = {"x": Range(0.0, 0.0)}  # as CG has it, where nothing is relevant
    assert cell(compare(scores, measure="x", settings=chosen, ranges=ideal)[0]) == "undecided: nothing was measured"
    assert significance_sentence(rows, chosen) == "Every score of x is 0: nothing was measured."
    found = concluded(scores, rows, measure="x", settings=chosen)
    assert [*sentences(found, chosen)] == [
        "Nothing was measured: every score of x is 0 over 200 queries. Look whether the labels name documents by the "
        "ids that the retrievers return."
    ]
    assert (found.within_margin, found.shown_worse) == (("a",), ())


def test_scores_that_are_no_finite_numbers_are_refused():
    with pytest.raises(InputError, match="x of a: 1 scores are not finite"):
        compare({"a": np.array([np.inf, 0.5]), "b": np.array([0.5, 0.5])}, measure="x")
    with pytest.raises(InputError, match="x: b has scores of 3 queries, not of 2"):
        compare({"a": np.array([0.4, 0.5]), "b": np.array([0.5, 0.5, 0.5])}, measure="x")
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="not finite"):
            gate(np.array([bad, 0.5]), np.array([0.5, 0.5]), margin=0.1)


def test_one_test_decides_and_the_exact_wilcoxon_p_is_beside_it():
    """Eight in ten gain 0.05, one in ten loses 0.35: the ranks are sure, the mean is not."""
    d = np.array([0.05] * 80 + [-0.35] * 10 + [0.0] * 10)
    scores = {"a": 0.5 + d, "b": np.full(100, 0.5)}
    row = compare(scores, measure="x")[0]
    assert row.p_adjusted == row.p_randomization_adjusted > 0.5
    assert row.p_wilcoxon_adjusted < 1e-6
    assert cell(row) == "undecided: no difference shown"
    assert f"exact Wilcoxon p = {row.p_wilcoxon_adjusted:#.3g}" in pair_sentence(row, Settings())
    ranks = compare(scores, measure="x", settings=Settings(test="wilcoxon"))[0]
    assert (cell(ranks), ranks.p_adjusted) == ("better", row.p_wilcoxon_adjusted)
    assert "a is better than b on the typical query" in pair_sentence(ranks, Settings(test="wilcoxon"))


def test_above_a_thousand_pairs_only_the_primary_measure_is_compared_and_far_ahead_is_shown():
    rng = np.random.default_rng(0)
    group = {f"r{j}": 0.1 + rng.random(60) / 50 for j in range(102)}
    group["r7"] = group["r7"] + 0.8
    scores = replace(scored(group, "m"), values={"m": group, "other": group}, decides="m")
    rows = compare_table(scores, settings=Settings())
    assert {row.measure for row in rows} == {"m"}
    assert len(rows) == 5151
    assert all(row.verdict.separates for row in rows if "r7" in (row.a, row.b))


def test_a_residual_is_no_quality_and_has_no_comparison():
    group = noisy(3, x=0.0, y=0.1)
    scores = replace(
        scored(group, "RBP(p=0.8)"), values=dict.fromkeys(("RBP(p=0.8)", "RBP(p=0.8, residual=True)"), group)
    )
    assert {row.measure for row in compare_table(scores, settings=Settings())} == {"RBP(p=0.8)"}


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh"])
def test_every_p_is_corrected_alike_and_the_floor_stands_in_the_place_of_its_own_p(correction):
    rows = compare(noisy(3, 12, x=0.0, y=0.05, z=0.1), measure="m", settings=Settings(correction=correction))
    means = adjust([r.p_randomization for r in rows], correction)
    assert [r.p_randomization_adjusted for r in rows] == list(means)
    assert [r.p_wilcoxon_adjusted for r in rows] == list(adjust([r.p_wilcoxon for r in rows], correction))
    observed = [r.p_value for r in rows]
    for i, row in enumerate(rows):
        alone = adjust([*observed[:i], row.p_minimum, *observed[i + 1 :]], correction)[i]
        assert row.p_minimum_adjusted == alone
        assert row.p_minimum_adjusted <= row.p_adjusted
        if correction == "bonferroni":
            assert alone == min(1.0, 3 * row.p_minimum)


def test_too_few_queries_is_said_and_one_query_is_defined():
    scores = {"a": np.array([0.9, 0.8, 0.7, 0.9, 0.6]), "b": np.zeros(5)}
    row = compare(scores, measure="x")[0]
    assert (row.p_value, cell(row)) == (0.0625, "undecided: too few queries")
    one = compare({"a": np.array([0.4]), "b": np.array([0.1])}, measure="x", settings=Settings(test="t"))[0]
    assert (one.p_value, one.ci_method, one.method) == (1.0, "not estimable", "undefined")
    assert cell(one) == "undecided: undefined, all differences are equal"


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


@settings(max_examples=25, deadline=None)
@given(pairs_of_scores(), st.sampled_from(["wilcoxon", "randomization", "t"]), st.floats(-1, 1))
def test_order_of_queries_names_and_a_shift_change_no_verdict(drawn, test, shift):
    *rows, order = drawn
    x, y, z = (np.array(row) for row in rows)
    scores = np.concatenate([x, y, z])
    assume(scores.any() and (scores + shift).any())  # scores that are all 0 measured nothing: that is another verdict
    chosen = Settings(test=test, margin=0.25)
    ranges = {"m": Range(-4, 4)}  # one range for all: it decides what the worst loss is
    plain = compare({"x": x, "y": y, "z": z}, measure="m", settings=chosen, ranges=ranges)
    mixed = compare({"x": x[order], "y": y[order], "z": z[order]}, measure="m", settings=chosen, ranges=ranges)
    moved = compare({"x": x + shift, "y": y + shift, "z": z + shift}, measure="m", settings=chosen, ranges=ranges)
    for other in (mixed, moved):
        assert [cell(r) for r in other] == [cell(r) for r in plain]
        assert [(r.w_plus, r.w_minus, r.ties) for r in other] == [(r.w_plus, r.w_minus, r.ties) for r in plain]
        assert [r.p_value for r in other] == pytest.approx([r.p_value for r in plain], rel=1e-6)
    turned = {
        frozenset((r.a, r.b)): r for r in compare({"z": z, "y": y, "x": x}, measure="m", settings=chosen, ranges=ranges)
    }
    for row in plain:
        other = turned[frozenset((row.a, row.b))]
        assert cell(other.swapped) == cell(row)
        assert other.swapped.wins == row.wins
        assert row.swapped.swapped == row
        assert other.swapped.mean_difference == pytest.approx(row.mean_difference, abs=1e-12)
        assert (other.swapped.ci_low, other.swapped.ci_high) == pytest.approx((row.ci_low, row.ci_high), abs=1e-12)


# The whole


def test_the_three_sets_and_their_words():
    rng = np.random.default_rng(13)
    base = 0.5 + rng.random(300) / 4
    scores = {
        "bad": base - 0.3,
        "best": base,
        "twin": base + rng.normal(-0.002, 0.04, 300),
        "maybe": np.clip(base + rng.normal(-0.005, 0.3, 300), 0, 1),
    }
    chosen = Settings(margin=0.02)
    rows = compare(scores, measure="nDCG@10", settings=chosen)
    found = concluded(scores, rows, measure="nDCG@10", settings=chosen)
    assert found.leader == "best"
    assert found.shown_worse == ("bad",)
    assert found.within_margin == ("best", "twin")
    assert tuple(found.unresolved) == ("maybe",)
    text = " ".join(sentences(found, chosen))
    assert "Shown to be worse on average than best: bad." in text
    assert "Shown to be as good as best within 0.02: twin." in text
    assert "best against maybe" in text
    assert "To reliably find a true difference of 0.02 from maybe takes about" in text
    assert "does not mean that there is none" in text


def test_absence_of_evidence_is_never_called_as_good_as():
    scores = noisy(14, 13, a=0.0, b=0.01, c=0.02)
    for chosen in (Settings(), Settings(margin=0.001)):
        rows = compare(scores, measure="P@5", settings=chosen)
        found = concluded(scores, rows, measure="P@5", settings=chosen)
        assert len(found.within_margin) == 1
        text = " ".join(sentences(found, chosen))
        assert "as good as" not in text
        assert "Undecided on these 13 queries" in text
    assert "significant at 5 %" in significance_sentence(rows, chosen)


def test_a_baseline_that_does_not_lead_leaves_the_leader_s_other_pairs_to_all_pairs():
    scores = noisy(15, a=0.0, base=0.1, c=0.4)
    rows = compare(scores, measure="P@5", baseline="base")
    found = concluded(scores, rows, measure="P@5", settings=Settings())
    assert found.leader == "c"
    assert set(found.shown_worse) == {"a", "base"}
    assert found.against["base"] == rows[1]
    assert found.against["a"].p_minimum_adjusted == pytest.approx(3 * found.against["a"].p_minimum)
    assert "c is the best of the 3 on this measure." in sentences(found, Settings())


def test_a_single_retriever_and_a_single_query_are_said_in_words():
    alone = concluded({"a": np.array([0.5, 0.6])}, [], measure="P@5", settings=Settings())
    assert sentences(alone, Settings())[-1] == "It ran alone: there is nothing to compare it with."
    scores = {"a": np.array([0.5]), "b": np.array([0.6])}
    rows = compare(scores, measure="P@5")
    text = " ".join(sentences(concluded(scores, rows, measure="P@5", settings=Settings()), Settings()))
    assert "Undecided on this query: b against a. One query is too few to say how many would be needed." in text
    assert significance_sentence(rows, Settings()).startswith(
        "No difference in P@5 is significant at 5 %: 1 query could"
    )


def test_equals_share_the_lead():
    scores = {"a": np.full(6, 0.5), "b": np.full(6, 0.5)}
    found = concluded(scores, compare(scores, measure="P@5"), measure="P@5", settings=Settings())
    words = sentences(found, Settings())
    assert words[0] == "On P@5 over 6 queries, a and b share the highest mean, 0.5000."
    assert "a and b: no query of 6 tells them apart." in words
    assert "Undecided on these 6 queries: a against b." in words
    noisy = {"a": np.full(6, 0.3), "b": np.full(6, 0.1 + 0.2)}  # b's mean is higher by 6e-17
    assert concluded(noisy, compare(noisy), settings=Settings()).leader == "a"


def test_no_queries_are_foretold_where_their_number_is_not_the_trouble():
    chosen, scores = Settings(test="t"), {"a": np.ones(100), "b": np.full(100, 0.5)}
    found = concluded(scores, compare(scores, measure="m", settings=chosen), measure="m", settings=chosen)
    text = " ".join(sentences(found, chosen))
    assert "the t-test is undefined where all differences are equal" in text
    assert "reliably find" not in text
    # Beside a pair that more queries may well tell apart, a plan is made for that pair alone.
    noise = np.random.default_rng(0).normal(0, 0.2, 100)
    scores["c"] = np.clip(0.98 + noise - noise.mean(), 0, 1)
    found = concluded(scores, compare(scores, measure="m", settings=chosen), measure="m", settings=chosen)
    if "c" in found.unresolved:
        assert "difference of 0.05 from c" in " ".join(sentences(found, chosen))


def test_pair_sentences_put_the_difference_before_p():
    rows = compare(noisy(6, x=0.0, y=0.3), measure="P@5")
    words = pair_sentence(rows[0], Settings())
    assert words.startswith(
        "By the sign-flip test of the mean, the mean of y is higher than that of x: mean difference in P@5 −0."
    )
    assert words.index("95 % interval") < words.index("adjusted p")
    few = compare({"a": np.array([0.9, 0.8]), "b": np.zeros(2)}, measure="P@5")[0]
    assert (
        "too few queries (2 of 2 queries differ; the smallest adjusted p that they could give is 0.500, above 0.05)"
        in (pair_sentence(few, Settings()))
    )
