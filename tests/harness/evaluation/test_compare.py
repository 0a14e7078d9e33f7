"""Comparisons, verdicts and sentences made from given scores."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from harness.english import p_text
from harness.evaluation.compare import compare_retrievers
from harness.evaluation.evaluate import evaluate_scores
from harness.evaluation.verdict import Finding, Reason, Verdict
from harness.measures import parse_measure_list
from harness.scoring.scores import Scores
from harness.scoring.trec_runs import score_trec_runs
from harness.stats.corrections import adjust_p_values
from harness.stats.differences import ValueRange, paired_differences
from harness.stats.settings import Settings
from harness.stats.signed_rank import signed_rank
from harness.wording.conclusion import conclusion_headline, conclusion_sentences
from harness.wording.verdicts import (
    REASON_WORDS,
    VERDICT_SIGNS,
    opposite_warning,
    pair_sentence,
    verdict_cell,
)
from harness.writing.evaluation_tables import row_cells
from retrievers.errors import InputError
from tests.support import recompute
from tests.support.scored import cell, compare, concluded, finding, gate, scored

CORRECTED = {
    "p_value": "p_adjusted",
    "p_randomization": "p_randomization_adjusted",
    "p_wilcoxon": "p_wilcoxon_adjusted",
}
RANKS = Settings(test="wilcoxon")
MARGIN = Settings(margin=0.02)
STUDENT = Settings(test="t")


def noisy(seed, n=40, **shifts):
    """Return scores of several retrievers, each shifted by its number."""
    rng = np.random.default_rng(seed)
    base = rng.random(n) * 0.5
    return {
        name: np.round(base + rng.random(n) * 0.3 + shift, 2)
        for name, shift in shifts.items()
    }


def compare_and_conclude(scores, settings=None, **score_fields):
    """Return the comparisons of scores and the evaluation that follows from them."""
    rows = compare(scores, settings=settings, **score_fields)
    return rows, concluded(scores, rows, settings=settings, **score_fields)


def test_an_independent_program_finds_the_same_digits_and_columns():
    scores = noisy(1, 60, x=0.0, y=0.03, z=0.1)
    rows = compare(scores, settings=RANKS)
    for row in rows:
        expected = recompute.expected_comparison(
            scores[row.a].tolist(), scores[row.b].tolist()
        )
        assert {name: getattr(row, name) for name in expected} == pytest.approx(
            expected, rel=1e-12, abs=1e-15
        )
        assert [*row_cells(row, "comparisons")][-6:] == [
            "p_randomization",
            "ci_method",
            "p_randomization_adjusted",
            "clusters",
            "p_wilcoxon",
            "p_wilcoxon_adjusted",
        ]
    expected = recompute.corrected([row.p_value for row in rows], "holm")
    assert [row.p_adjusted for row in rows] == pytest.approx(expected, rel=1e-12)


def test_with_a_baseline_every_other_is_compared_with_it_alone():
    rows = compare(noisy(3, x=0.0, y=0.05, z=0.1), baseline="y")
    assert [(row.a, row.b) for row in rows] == [("x", "y"), ("z", "y")]


def test_one_retriever_is_compared_with_nothing():
    assert compare(noisy(3, x=0.0)) == []


def test_families_are_corrected_by_themselves_and_only_the_primary_is_confirmatory():
    first = noisy(3, x=0.0, y=0.05, z=0.1)
    second = noisy(4, x=0.0, y=0.0, z=0.0)
    both = Scores(
        ids=scored(first).ids,
        values={"P@5": first, "R@5": second, "RBP(residual=True)": first},
        declared_primary="R@5",
    )
    # A residual does not measure quality: it has no family.
    rows = compare_retrievers(both, settings=MARGIN)
    assert [r.role for r in rows] == ["exploratory"] * 3 + ["confirmatory"] * 3
    assert rows[:3] == [
        replace(row, role="exploratory") for row in compare(first, measure="P@5")
    ]
    assert rows[3:] == compare(second, measure="R@5", settings=MARGIN)


def test_another_retriever_changes_only_the_corrected_numbers_of_a_pair():
    scores = noisy(5, x=0.0, y=0.05, z=0.1)
    alone = compare({name: scores[name] for name in "xy"})[0]
    with_another = compare(scores)[0]
    changed = {
        field.name
        for field in fields(alone)
        if getattr(alone, field.name) != getattr(with_another, field.name)
    }
    assert changed == {
        "p_adjusted",
        "p_minimum_adjusted",
        "p_randomization_adjusted",
        "p_wilcoxon_adjusted",
        "finding",  # 0.046 alone, above 0.05 corrected
    }


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh"])
def test_all_tests_have_one_correction_and_the_smallest_p_replaces_the_pair_s_own(
    correction,
):
    rows = compare(
        noisy(3, 12, x=0.0, y=0.05, z=0.1), settings=Settings(correction=correction)
    )
    for name, corrected_name in CORRECTED.items():
        p_values = [getattr(row, name) for row in rows]
        corrected = [getattr(row, corrected_name) for row in rows]
        assert corrected == list(adjust_p_values(p_values, correction))
    observed = [r.p_value for r in rows]
    for i, row in enumerate(rows):
        alone = adjust_p_values(
            [*observed[:i], row.p_minimum, *observed[i + 1 :]], correction
        )[i]
        assert row.p_minimum_adjusted == alone <= row.p_adjusted


@pytest.mark.parametrize(
    ("retrievers", "needed"), [(2, 6), (3, 7), (4, 8), (5, 9), (10, 11)]
)
def test_how_many_differing_queries_bonferroni_needs(retrievers, needed):
    """The smallest n with pairs x 2^(1 - n) <= 0.05: docs/statistics.md."""
    p_minima = []
    for n in (needed - 1, needed):
        scores = {str(j): np.arange(n) / n + j for j in range(retrievers)}
        first_row = compare(scores, settings=Settings(correction="bonferroni"))[0]
        p_minima.append(first_row.p_minimum_adjusted)
    assert p_minima[1] <= 0.05 < p_minima[0]


def test_above_a_thousand_pairs_only_the_primary_measure_is_compared():
    rng = np.random.default_rng(0)
    scores = {f"r{j}": 0.1 + rng.random(60) / 50 + 0.8 * (j == 7) for j in range(102)}
    table = replace(
        scored(scores, "m"), values={"m": scores, "other": scores}, declared_primary="m"
    )
    rows = compare_retrievers(table, settings=Settings())
    all_pairs = 102 * 101 // 2
    assert ({row.measure for row in rows}, len(rows)) == ({"m"}, all_pairs)
    different = [row for row in rows if row.verdict.shows_difference]
    # The eighth is far above all others.
    assert sum("r7" in (row.a, row.b) for row in different) == 101


def test_the_smallest_p_of_the_exact_test_is_shown_where_it_is_above_the_level():
    values = {"a": np.array([0.9, 0.8, 0.7, 0.6]), "b": np.array([0.1, 0.2, 0.3, 0.2])}
    rows = concluded(values, compare(values)).board.rows
    assert [(row.retriever, row.p_wilcoxon, row.floor) for row in rows] == [
        ("a", None, None),
        ("b", 0.125, 0.125),
    ]


def test_the_smallest_p_of_a_row_is_corrected_for_all_pairs():
    low = np.array([0.1, 0.2, 0.3, 0.2])
    values = {"a": low + 0.5, "b": low, "c": low / 2, "d": low / 4}
    rows = concluded(values, compare(values)).board.rows
    assert [row.floor for row in rows[1:]] == [0.75] * 3  # 6 pairs x 2^-3


# Verdicts

BASE = 0.3 + np.random.default_rng(8).random(200) / 2
SAME_MEAN = BASE + np.random.default_rng(9).normal(0, 0.01, 200)
"""The mean differs from that of BASE by less than 0.001."""
SLIGHTLY_HIGHER = BASE + 0.004 + np.random.default_rng(11).normal(0, 0.01, 200)
"""The mean is higher by 0.004: significant, and far below the margin of 0.02."""
HALF = 0.5
IDENTICAL_RANKINGS = {"identical": frozenset([frozenset("ab")])}
DISASTERS = HALF + np.array([0.02] * 40 + [-0.5] * 8)
"""Forty small gains and eight large losses: ranks say better, the mean says worse."""
RARE_LOSSES = HALF + np.array([0.05] * 80 + [-0.35] * 10 + [0.0] * 10)
"""Eighty gains of 0.05, ten losses of 0.35: ranks significant, the mean not."""
NINETY_TIES = np.array([0.5] * 90 + [0.0] * 10)
"""Ninety ties and ten losses of a half: a mean loss of 0.05."""


@pytest.mark.parametrize(
    ("a", "b", "settings", "score_fields", "verdict"),
    [
        (BASE, SAME_MEAN, MARGIN, {}, "equivalent"),
        (BASE, SLIGHTLY_HIGHER, MARGIN, {}, "worse but negligible"),
        (BASE, BASE - 0.2, MARGIN, {}, "better"),
        (BASE, SAME_MEAN, None, {}, "undecided: no difference shown"),
        (BASE, SLIGHTLY_HIGHER, None, {}, "worse"),
        (DISASTERS, HALF, None, {}, "worse"),
        (DISASTERS, HALF, RANKS, {}, "better"),
        (RARE_LOSSES, HALF, None, {}, "undecided: no difference shown"),
        (RARE_LOSSES, HALF, RANKS, {}, "better"),
        (NINETY_TIES, HALF, MARGIN, {}, "worse"),
        (np.full(1, HALF), HALF, None, {}, "undecided: no query differs"),
        (np.full(12, HALF), HALF, MARGIN, {}, "undecided: no query differs"),
        # 149 is the smallest n with 0.98^n <= 0.05, for the margin of 0.02.
        (
            np.full(148, HALF),
            HALF,
            MARGIN,
            IDENTICAL_RANKINGS,
            "undecided: identical on these queries",
        ),
        (
            np.full(149, HALF),
            HALF,
            MARGIN,
            IDENTICAL_RANKINGS,
            "equivalent: identical on these queries",
        ),
        (
            np.full(149, HALF),
            HALF,
            None,
            IDENTICAL_RANKINGS,
            "undecided: identical on these queries",
        ),
        (
            np.zeros(200),
            0.0,
            MARGIN,
            IDENTICAL_RANKINGS,
            "undecided: nothing was measured",
        ),
        (
            np.zeros(200),
            0.0,
            MARGIN,
            {"ranges": {"m": ValueRange(0.0, 0.0)}},
            "undecided: nothing was measured",
        ),
        (
            np.array([0.9, 0.8, 0.7, 0.9, 0.6]),
            0.0,
            None,
            {},
            "undecided: too few queries",
        ),
        (
            np.array([0.4]),
            0.1,
            STUDENT,
            {},
            "undecided: undefined, all differences are equal",
        ),
    ],
)
def test_the_verdict_on_a_pair(a, b, settings, score_fields, verdict):
    scores = {"a": a, "b": np.broadcast_to(b, a.shape)}
    (row,) = compare(scores, settings=settings, **score_fields)
    assert cell(row) == verdict


@pytest.mark.parametrize("queries", [1, 12])
def test_without_a_difference_p_is_1_and_no_interval_is_estimated(queries):
    scores = {"a": np.full(queries, HALF), "b": np.full(queries, HALF)}
    (row,) = compare(scores, settings=MARGIN)
    assert (row.p_value, row.p_adjusted, row.p_randomization) == (1.0, 1.0, 1.0)
    assert row.effect_size is None
    assert (row.ci_low, row.ci_high, row.ci_method) == (None, None, "not estimable")


SAVED = {"good": 3.0, "b": 2.0, "c": 1.0}
IDENTICAL = "undecided: identical on these queries"
NO_QUERY_DIFFERS = "undecided: no query differs"


@pytest.mark.parametrize(
    ("first", "second", "margin", "verdict"),
    [
        # Only the scores differ, and the document at rank 3, below the cutoff.
        (SAVED, {"good": 30.0, "b": 20.0, "d": 10.0}, None, IDENTICAL),
        (SAVED, {"good": 3.0, "c": 2.0, "b": 1.0}, None, NO_QUERY_DIFFERS),
        (SAVED, {"b": 3.0, "good": 2.0}, None, NO_QUERY_DIFFERS),
        # trec_eval 9.0.8 reads both scores of 32 bits as 1, and "good" comes after "b".
        ({"good": 2.0, "b": 1.0}, {"good": 1.0, "b": 1.0 + 1e-12}, None, IDENTICAL),
        # Twelve queries exclude a loss of 0.3 (0.7^12 = 0.014); one of 0.01 needs 299.
        (SAVED, SAVED, 0.3, "equivalent: identical on these queries"),
        (SAVED, SAVED, 0.01, IDENTICAL),
    ],
)
def test_saved_runs_that_rank_the_same_down_to_the_cutoff_are_recognised(
    tmp_path, first, second, margin, verdict
):
    query_ids = [f"q{i}" for i in range(12)]
    qrels = "".join(f"{query_id} 0 good 1\n" for query_id in query_ids)
    (tmp_path / "qrels").write_text(qrels)
    for name, hits in (("first", first), ("second", second)):
        lines = [
            f"{query_id} Q0 {doc_id} 1 {score} t\n"
            for query_id in query_ids
            for doc_id, score in hits.items()
        ]
        (tmp_path / name).write_text("".join(lines))
    scores = score_trec_runs(
        tmp_path / "qrels",
        [tmp_path / "first", tmp_path / "second"],
        parse_measure_list(["P@2"]),
    )
    rows = compare_retrievers(scores, settings=Settings(margin=margin))
    assert [cell(row) for row in rows] == [verdict]


def test_the_deciding_test_makes_the_verdict_and_the_other_p_stands_beside_it():
    scores = {"a": RARE_LOSSES, "b": np.full(100, HALF)}
    (row,) = compare(scores)
    (ranks,) = compare(scores, settings=RANKS)
    assert row.p_adjusted == row.p_randomization_adjusted > 0.5
    assert row.p_wilcoxon_adjusted == ranks.p_adjusted < 1e-6
    p = p_text(row.p_wilcoxon_adjusted)
    assert f"exact Wilcoxon p = {p}" in pair_sentence(row, Settings())
    assert "a is better than b on the typical query" in pair_sentence(ranks, RANKS)


def test_a_warning_says_that_ranks_point_to_the_other_retriever_than_the_mean():
    (row,) = compare({"a": DISASTERS, "b": np.full(48, HALF)})
    assert row.w_plus > row.w_minus and row.mean_difference < 0
    p = f"{row.p_wilcoxon_adjusted:#.3g}"
    sentence = f"Yet on the typical query a is better than b (exact Wilcoxon p = {p})."
    assert opposite_warning([row], Settings()) == sentence


def test_if_ranks_decide_the_warning_is_of_the_mean():
    scores = {"a": DISASTERS, "b": np.full(48, HALF)}
    (row,), evaluation = compare_and_conclude(scores, RANKS)
    p = f"{row.p_randomization_adjusted:#.3g}"
    sentence = f"Yet b's mean is higher (sign-flip p = {p})."
    assert opposite_warning([row], RANKS) == sentence
    assert (evaluation.leader, evaluation.better_on_typical_query) == ("b", ("a",))
    assert (
        conclusion_headline(evaluation)
        == "b has the highest mean, but a is shown to be better on the typical query"
    )


LOW_IS_GOOD = {"low_is_good": frozenset({"m"})}


def test_if_less_is_better_the_mean_that_warns_is_the_lower_one():
    scores = {"a": DISASTERS, "b": np.full(48, HALF)}
    (row,), evaluation = compare_and_conclude(scores, RANKS, **LOW_IS_GOOD)
    p = f"{row.p_randomization_adjusted:#.3g}"
    sentence = f"Yet a's mean is lower (sign-flip p = {p})."
    assert opposite_warning([row], RANKS, low_is_good=True) == sentence
    assert evaluation.leader == "a"
    assert (
        conclusion_headline(evaluation)
        == "a has the lowest mean, but b is shown to be better on the typical query"
    )


def test_if_less_is_better_the_ranks_that_warn_are_for_the_lower_scores():
    (row,) = compare({"a": DISASTERS, "b": np.full(48, HALF)}, **LOW_IS_GOOD)
    p = f"{row.p_wilcoxon_adjusted:#.3g}"
    sentence = f"Yet on the typical query b is better than a (exact Wilcoxon p = {p})."
    assert opposite_warning([row], Settings(), low_is_good=True) == sentence


def test_if_less_is_better_the_worse_ones_score_higher():
    rng = np.random.default_rng(13)
    base = 0.4 + rng.random(300) / 4
    maybe = np.clip(base + rng.normal(0.005, 0.3, 300), 0, 1)
    scores = {"best": base, "bad": base + 0.3, "maybe": maybe}
    _, evaluation = compare_and_conclude(scores, **LOW_IS_GOOD)
    assert evaluation.shown_worse == ("bad",)
    sentence = "bad scores higher; maybe is undecided."
    assert sentence in " ".join(conclusion_sentences(evaluation))


def test_trap_ninety_ties_and_ten_losses_of_a_half_is_no_non_inferiority():
    b = np.full(100, HALF)
    # Signed ranks of the differences plus the margin would call it not worse.
    shifted = paired_differences(NINETY_TIES + 0.02, b)
    assert signed_rank(shifted).p_value < 1e-9
    refused = gate(NINETY_TIES, b, margin=0.02)
    assert not refused.passed and refused.p_value is None
    # The mean loss is 0.05, which is far below this margin.
    assert gate(NINETY_TIES, b, margin=0.15).passed


@st.composite
def columns_and_orders(draw):
    """Scores of three retrievers on the same queries, and an order of the queries."""
    n = draw(st.integers(1, 14))
    tenths = st.integers(0, 10).map(lambda tenth: tenth / 10)
    columns = [draw(st.lists(tenths, min_size=n, max_size=n)) for _ in range(3)]
    scores = dict(zip("xyz", map(np.array, columns), strict=True))
    # Scores that are all 0 measure nothing: that is another verdict.
    assume(any(column.any() for column in scores.values()))
    return scores, draw(st.permutations(range(n)))


TESTS = st.sampled_from(["wilcoxon", "randomization", "t"])


def compare_in_range(scores, test):
    """Compare in one range, which decides how large the worst loss is."""
    return compare(
        scores,
        settings=Settings(test=test, margin=0.25),
        ranges={"m": ValueRange(-4, 4)},
    )


def assert_same_verdicts(rows, expected):
    assert [cell(row) for row in rows] == [cell(row) for row in expected]
    assert [(row.w_plus, row.w_minus, row.ties) for row in rows] == [
        (row.w_plus, row.w_minus, row.ties) for row in expected
    ]
    assert [row.p_value for row in rows] == pytest.approx(
        [row.p_value for row in expected], rel=1e-6
    )


@hypothesis_settings(max_examples=25, deadline=None)
@given(columns_and_orders(), TESTS)
def test_the_order_of_the_queries_changes_no_verdict(drawn, test):
    scores, order = drawn
    reordered = {name: column[order] for name, column in scores.items()}
    assert_same_verdicts(
        compare_in_range(reordered, test), compare_in_range(scores, test)
    )


@hypothesis_settings(max_examples=25, deadline=None)
@given(columns_and_orders(), TESTS, st.floats(-1, 1))
def test_a_shift_of_all_scores_changes_no_verdict(drawn, test, shift):
    scores, _ = drawn
    shifted = {name: column + shift for name, column in scores.items()}
    assume(any(column.any() for column in shifted.values()))
    assert_same_verdicts(
        compare_in_range(shifted, test), compare_in_range(scores, test)
    )


@hypothesis_settings(max_examples=25, deadline=None)
@given(columns_and_orders(), TESTS)
def test_the_order_of_the_retrievers_only_swaps_the_sides(drawn, test):
    scores, _ = drawn
    backwards = dict(reversed(scores.items()))
    swapped_rows = {
        frozenset((row.a, row.b)): row.swapped
        for row in compare_in_range(backwards, test)
    }
    for row in compare_in_range(scores, test):
        swapped = swapped_rows[frozenset((row.a, row.b))]
        assert (cell(swapped), swapped.wins) == (cell(row), row.wins)
        assert row.swapped.swapped == row
        assert swapped.mean_difference == pytest.approx(row.mean_difference, abs=1e-12)
        assert (swapped.ci_low, swapped.ci_high) == pytest.approx(
            (row.ci_low, row.ci_high), abs=1e-12
        )


# Evaluations


def test_the_retrievers_that_are_worse_equivalent_and_undecided_in_words():
    rng = np.random.default_rng(13)
    base = 0.5 + rng.random(300) / 4
    twin = base + rng.normal(-0.002, 0.04, 300)
    maybe = np.clip(base + rng.normal(-0.005, 0.3, 300), 0, 1)
    _, evaluation = compare_and_conclude(
        {"bad": base - 0.3, "best": base, "twin": twin, "maybe": maybe}, MARGIN
    )
    assert evaluation.leader == "best"
    assert evaluation.shown_worse == ("bad",)
    assert evaluation.as_good_as_leader == ("best", "twin")
    assert tuple(evaluation.queries_needed) == ("maybe",)
    standings = {row.retriever: row.standing for row in evaluation.board.rows}
    assert standings == {
        "best": "leader",
        "twin": "good",
        "maybe": "open",
        "bad": "worse",
    }
    sentence = " ".join(conclusion_sentences(evaluation))
    assert "as good as best within 0.02: twin." in sentence
    means = "m: best 0.628, twin 0.627, maybe 0.611, 1 more"
    assert (
        f"best leads ({means}). bad scores lower; twin is as good; maybe is undecided."
        in sentence
    )
    assert "queries reliably detect a difference of 0.02" in sentence


def test_float_noise_makes_no_leader():
    """The mean of b is higher by 6e-17; the first retriever leads."""
    scores = {"a": np.full(6, 0.3), "b": np.full(6, 0.1 + 0.2)}
    assert compare_and_conclude(scores)[1].leader == "a"


def test_pairs_of_the_leader_without_the_baseline_are_corrected_over_all_pairs():
    scores = noisy(15, a=0.0, base=0.1, c=0.4)
    rows = compare(scores, baseline="base")
    evaluation = concluded(scores, rows)
    assert evaluation.leader == "c"
    assert set(evaluation.shown_worse) == {"a", "base"}
    assert evaluation.leader_comparisons["base"] == rows[1]
    with_a = evaluation.leader_comparisons["a"]
    # Three retrievers have three pairs: Holm multiplies the smallest p by 3.
    assert with_a.p_minimum_adjusted == pytest.approx(3 * with_a.p_minimum)
    assert conclusion_headline(evaluation) == "Use c"


NOISE = np.random.default_rng(0).normal(0, 0.2, 100)


@pytest.mark.parametrize(
    ("scores", "settings", "sentence", "unsaid"),
    [
        (
            {"a": np.array([0.5, 0.6])},
            None,
            "a scores 0.550.",
            "Undecided",
        ),
        (
            {"a": np.array([0.5]), "b": np.array([0.6])},
            None,
            "Label more queries; too few differ to estimate how many.",
            "Use",
        ),
        (
            {"a": np.zeros(200), "b": np.zeros(200)},
            MARGIN,
            "every score of m is 0. Check that the labels",
            "Mean",
        ),
        (
            {"a": np.full(6, 0.5), "b": np.full(6, 0.5)},
            None,
            "undecided, no query differs",
            "reliably detect",
        ),
        (
            {name: 0.5 + np.roll(NOISE, i) for i, name in enumerate("abc")},
            None,
            "between the 3 retrievers",
            "Use",
        ),
        (
            {"a": np.ones(100), "b": np.full(100, 0.5)},
            STUDENT,
            "undefined, all differences are equal",
            "reliably detect",
        ),
        # b is decided already: the plan is for c, whose scatter of 0.2 needs about 160
        # queries to detect the default difference of 0.05.
        (
            {
                "a": np.full(100, 0.8),
                "b": np.full(100, 0.3),
                "c": 0.799 + NOISE - NOISE.mean(),
            },
            STUDENT,
            "about 160 queries reliably detect",
            "Use",
        ),
    ],
)
def test_what_is_said_of_the_whole(scores, settings, sentence, unsaid):
    rows, evaluation = compare_and_conclude(scores, settings)
    pair_sentences = [pair_sentence(row, evaluation.settings) for row in rows]
    text = " ".join([*conclusion_sentences(evaluation), *pair_sentences])
    assert sentence in text and unsaid not in text


# Words

SCORES = {"a": np.linspace(0.2, 0.9, 30), "b": np.linspace(0.21, 0.85, 30)}


def test_every_verdict_has_its_sign():
    assert set(VERDICT_SIGNS) == set(Verdict)


def test_every_reason_has_words_of_its_own():
    assert set(REASON_WORDS) == set(Reason)
    assert len(set(REASON_WORDS.values())) == len(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_the_sentence_of_an_undecided_pair_has_the_words_of_its_reason(reason):
    (row,) = compare(SCORES)
    undecided = replace(row, finding=Finding(Verdict.UNDECIDED, reason))
    sentence = pair_sentence(undecided, Settings())
    assert sentence.startswith(f"a and b: undecided, {REASON_WORDS[reason]};")


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("reason", [None, *Reason])
@pytest.mark.parametrize("negligible", [False, True])
def test_a_cell_says_the_whole_finding(verdict, reason, negligible):
    expected = Finding(verdict, reason, negligible)
    assert finding(verdict_cell(expected)) == expected


def shifted_evaluation(shift, settings):
    """Of a, of b that is lower by the shift on every query, and of a far lower c."""
    scores = {
        "a": SCORES["a"] / 2 + 0.3,
        "b": SCORES["a"] / 2 + 0.3 - shift,
        "c": SCORES["b"] / 2,
    }
    return concluded(scores, compare(scores, settings=settings), settings=settings)


@pytest.mark.parametrize(
    ("margin", "shift", "headline"),
    [
        (None, 0.0, "a leads"),
        (None, 0.001, "Use a"),
        (None, 0.3, "Use a"),
        (0.02, 0.0, "a leads"),
        (0.02, 0.001, "Use a"),
        (0.02, 0.3, "Use a"),
        (0.5, 0.0, "a and 2 others are equally good within 0.5"),
        (0.5, 0.001, "a and 2 others are equally good within 0.5"),
        (0.5, 0.3, "a and 2 others are equally good within 0.5"),
    ],
)
def test_a_headline_says_who_leads_and_no_more_than_was_shown(margin, shift, headline):
    evaluation = shifted_evaluation(shift, Settings(margin=margin))
    assert conclusion_headline(evaluation) == headline


@pytest.mark.parametrize("margin", [None, 0.02])
def test_of_equal_scores_the_one_further_down_is_undecided(margin):
    evaluation = shifted_evaluation(0.0, Settings(margin=margin))
    assert conclusion_sentences(evaluation)[1:] == ["c scores lower; b is undecided."]


@pytest.mark.parametrize("margin", [None, 0.02, 0.5])
@pytest.mark.parametrize("shift", [0.0, 0.001, 0.3])
def test_what_only_a_model_judged_decides_nothing(margin, shift):
    settings = Settings(margin=margin, judged_by_people=False)
    headline, advice = conclusion_sentences(shifted_evaluation(shift, settings))
    assert headline.startswith(
        "Only a model judged these queries, which decides nothing; a leads (m: a 0.575"
    )
    assert advice == "Let people judge a random part of these queries."


def test_a_residual_decides_nothing():
    scores = scored(noisy(1, a=0.1, b=0.0), "RBP(p=0.8, residual=True)")
    with pytest.raises(InputError, match="is no quality"):
        evaluate_scores(scores, baseline=None, settings=Settings())


def test_a_difference_that_reads_zero_has_no_minus():
    (row,) = compare({"a": np.full(9, 0.5), "b": np.full(9, 0.5)})
    sentence = pair_sentence(replace(row, mean_difference=-1e-6), Settings())
    assert "m +0.0000," in sentence
