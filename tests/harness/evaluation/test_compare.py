"""From scores to rows, verdicts and words: traps, symmetries, undefined values."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.evaluation import warnings
from harness.evaluation.compare import compare_retrievers as compare_table
from harness.evaluation.verdict import Finding, Reason, Verdict
from harness.evaluation.warning_sentences import warning_sentence
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
from tests.support import recompute
from tests.support.scored import cell, compare, concluded, finding, gate, scored

CORRECTED = {
    "p_value": "p_adjusted",
    "p_randomization": "p_randomization_adjusted",
    "p_wilcoxon": "p_wilcoxon_adjusted",
}
RANKS = Settings(test="wilcoxon")
MARGIN = Settings(margin=0.02)
T = Settings(test="t")


def noisy(seed, n=40, **shifts):
    """Return scores of several retrievers, each shifted by its number."""
    rng = np.random.default_rng(seed)
    base = rng.random(n) * 0.5
    return {
        name: np.round(base + rng.random(n) * 0.3 + shift, 2)
        for name, shift in shifts.items()
    }


def judged(scores, chosen=None, **expected):
    """The comparisons of scores and what follows from them."""
    rows = compare(scores, settings=chosen, **expected)
    return rows, concluded(scores, rows, settings=chosen, **expected)


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


def test_families_are_corrected_by_themselves_and_only_the_primary_is_confirmatory():
    first = noisy(3, x=0.0, y=0.05, z=0.1)
    second = noisy(4, x=0.0, y=0.0, z=0.0)
    assert [(r.a, r.b) for r in compare(first, baseline="y")] == [
        ("x", "y"),
        ("z", "y"),
    ]
    assert compare({"x": first["x"]}) == []
    both = Scores(
        ids=scored(first).ids,
        values={"P@5": first, "R@5": second, "RBP(residual=True)": first},
        declared_primary="R@5",
    )
    rows = compare_table(
        both, settings=MARGIN
    )  # a residual is no quality: nothing compares it
    assert [r.role for r in rows] == ["exploratory"] * 3 + ["confirmatory"] * 3
    assert rows[:3] == [
        replace(row, role="exploratory") for row in compare(first, measure="P@5")
    ]
    assert rows[3:] == compare(second, measure="R@5", settings=MARGIN)


def test_another_retriever_moves_no_other_number():
    scores = noisy(5, x=0.0, y=0.05, z=0.1)
    before, after = (
        compare({name: scores[name] for name in "xy"})[0],
        compare(scores)[0],
    )
    moved = {
        "p_adjusted",
        "p_minimum_adjusted",
        "p_randomization_adjusted",
        "p_wilcoxon_adjusted",
        "finding",
    }
    selected = [f.name for f in fields(before) if f.name not in moved]
    assert [getattr(before, name) for name in selected] == [
        getattr(after, name) for name in selected
    ]


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh"])
def test_every_p_is_corrected_alike_and_the_floor_is_in_the_place_of_its_own_p(
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
def test_the_rows_of_a_family_that_ever_could_be_significant(retrievers, needed):
    """Non-zero differences needed for 5 % under Bonferroni: DEFINITIONS."""
    for n in (needed - 1, needed):
        scores = {str(j): np.arange(n) / n + j for j in range(retrievers)}
        floor = compare(scores, settings=Settings(correction="bonferroni"))[
            0
        ].p_minimum_adjusted
        assert (floor <= 0.05) == (n == needed)


def test_above_a_thousand_pairs_only_the_primary_measure_is_compared():
    rng = np.random.default_rng(0)
    group = {
        f"r{j}": 0.1 + rng.random(60) / 50 + 0.8 * (j == 7) for j in range(102)
    }  # 1e-5 x 5151 > 0.05
    table = replace(
        scored(group, "m"), values={"m": group, "other": group}, declared_primary="m"
    )
    rows = compare_table(table, settings=Settings())
    assert ({row.measure for row in rows}, len(rows)) == ({"m"}, 5151)
    assert all(row.verdict.shows_difference for row in rows if "r7" in (row.a, row.b))


def test_the_smallest_p_of_the_exact_test_is_shown_where_it_is_above_the_level():
    values = {"a": np.array([0.9, 0.8, 0.7, 0.6]), "b": np.array([0.1, 0.2, 0.3, 0.2])}
    rows = concluded(values, compare(values)).board.rows
    assert [(row.retriever, row.p_wilcoxon, row.floor) for row in rows] == [
        ("a", None, None),
        ("b", 0.125, 0.125),
    ]


# Verdicts

RNG = np.random.default_rng(8)
BASE = 0.3 + RNG.random(200) / 2
CLOSE, TINY = BASE + RNG.normal(0, 0.01, 200), BASE + 0.004 + RNG.normal(0, 0.01, 200)
HALF = 0.5
SAME = {"identical": frozenset([frozenset("ab")])}
DISASTERS = HALF + np.array([0.02] * 40 + [-0.5] * 8)
RARE = HALF + np.array([0.05] * 80 + [-0.35] * 10 + [0.0] * 10)
NINETY = np.array([0.5] * 90 + [0.0] * 10)


@pytest.mark.parametrize(
    ("a", "b", "chosen", "reason", "verdict"),
    [
        (BASE, CLOSE, MARGIN, {}, "equivalent"),
        (BASE, TINY, MARGIN, {}, "worse but negligible"),
        (BASE, BASE - 0.2, MARGIN, {}, "better"),
        (BASE, CLOSE, None, {}, "undecided: no difference shown"),
        (BASE, TINY, None, {}, "worse"),
        (DISASTERS, HALF, None, {}, "worse"),
        (DISASTERS, HALF, RANKS, {}, "better"),
        (RARE, HALF, None, {}, "undecided: no difference shown"),
        (RARE, HALF, RANKS, {}, "better"),
        (NINETY, HALF, MARGIN, {}, "worse"),
        (np.full(1, HALF), HALF, None, {}, "undecided: no query differs"),
        (np.full(12, HALF), HALF, MARGIN, {}, "undecided: no query differs"),
        (
            np.full(148, HALF),
            HALF,
            MARGIN,
            SAME,
            "undecided: identical on these queries",
        ),
        (
            np.full(149, HALF),
            HALF,
            MARGIN,
            SAME,
            "equivalent: identical on these queries",
        ),
        (np.full(149, HALF), HALF, None, SAME, "undecided: identical on these queries"),
        (np.zeros(200), 0.0, MARGIN, SAME, "undecided: nothing was measured"),
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
            T,
            {},
            "undecided: undefined, all differences are equal",
        ),
    ],
)
def test_the_verdict_on_a_pair(a, b, chosen, reason, verdict):
    (row,) = compare(
        {"a": a, "b": np.broadcast_to(b, a.shape)}, settings=chosen, **reason
    )
    assert cell(row) == verdict
    if "undecided: no query differs" in verdict:
        assert (row.p_value, row.p_adjusted, row.p_randomization, row.effect_size) == (
            1.0,
            1.0,
            1.0,
            None,
        )
        assert (row.ci_low, row.ci_high, row.ci_method) == (None, None, "not estimable")


SAVED = {"good": 3.0, "b": 2.0, "c": 1.0}
ALIKE, UNLIKE = "undecided: identical on these queries", "undecided: no query differs"


@pytest.mark.parametrize(
    ("first", "second", "margin", "verdict"),
    [
        (
            SAVED,
            {"good": 30.0, "b": 20.0, "d": 10.0},
            None,
            ALIKE,
        ),  # other scores; and from rank 3 on
        (SAVED, {"good": 3.0, "c": 2.0, "b": 1.0}, None, UNLIKE),
        (SAVED, {"b": 3.0, "good": 2.0}, None, UNLIKE),
        # trec_eval 9.0.8 reads both scores of 32 bits as 1, and "good" comes after "b".
        ({"good": 2.0, "b": 1.0}, {"good": 1.0, "b": 1.0 + 1e-12}, None, ALIKE),
        # Twelve queries exclude a loss of 0.3 (0.7^12 = 0.014); one of 0.01 needs 299.
        (SAVED, SAVED, 0.3, "equivalent: identical on these queries"),
        (SAVED, SAVED, 0.01, ALIKE),
    ],
)
def test_saved_runs_that_rank_the_same_down_to_the_cutoff_are_recognised(
    tmp_path, first, second, margin, verdict
):
    family = [f"q{i}" for i in range(12)]
    (tmp_path / "qrels").write_text("".join(f"{query} 0 good 1\n" for query in family))
    for name, hits in (("first", first), ("second", second)):
        lines = [
            f"{query} Q0 {doc} 1 {score} t\n"
            for query in family
            for doc, score in hits.items()
        ]
        (tmp_path / name).write_text("".join(lines))
    evaluation = score_trec_runs(
        tmp_path / "qrels",
        [tmp_path / "first", tmp_path / "second"],
        parse_measure_list(["P@2"]),
    )
    assert [
        cell(row) for row in compare_table(evaluation, settings=Settings(margin=margin))
    ] == [verdict]


def test_trap_forty_small_gains_and_eight_large_losses_point_opposite_ways():
    """One test decides, and the exact Wilcoxon p is shown, too.

    RARE: the ranks are significant, the mean is not.
    """
    scores = {"a": RARE, "b": np.full(100, HALF)}
    (row,) = compare(scores, settings=None)
    (ranks,) = compare(scores, settings=RANKS)
    assert row.p_adjusted == row.p_randomization_adjusted > 0.5
    assert row.p_wilcoxon_adjusted == ranks.p_adjusted < 1e-6
    assert f"exact Wilcoxon p = {row.p_wilcoxon_adjusted:#.3g}" in pair_sentence(
        row, Settings()
    )
    assert "a is better than b on the typical query" in pair_sentence(ranks, RANKS)
    scores = {"a": DISASTERS, "b": np.full(48, HALF)}
    (row,) = compare(scores)
    assert row.w_plus > row.w_minus and row.mean_difference < 0
    p = f"{row.p_wilcoxon_adjusted:#.3g}"
    sentence = f"Yet on the typical query a is better than b (exact Wilcoxon p = {p})."
    assert opposite_warning([row], Settings()) == sentence
    (row,), evaluation = judged(scores, RANKS)
    p = f"{row.p_randomization_adjusted:#.3g}"
    assert (
        opposite_warning([row], RANKS) == f"Yet b's mean is higher (sign-flip p = {p})."
    )
    assert (evaluation.leader, evaluation.better_on_typical_query) == ("b", ("a",))
    assert (
        conclusion_headline(evaluation)
        == "b has the highest mean, but a is shown to be better on the typical query"
    )


def test_trap_ninety_ties_and_ten_losses_of_a_half_is_no_non_inferiority():
    b = np.full(100, HALF)
    assert (
        signed_rank(paired_differences(NINETY + 0.02, b)).p_value < 1e-9
    )  # what signed ranks of shifted differences say
    refused = gate(NINETY, b, margin=0.02)
    assert not refused.passed and refused.p_value > 0.9
    assert gate(NINETY, b, margin=0.15).passed  # by more than the loss of 0.05


def pairs_of_scores():
    grid = st.integers(0, 10).map(lambda x: x / 10)
    return st.integers(1, 14).flatmap(
        lambda n: st.tuples(
            *(st.lists(grid, min_size=n, max_size=n) for _ in range(3)),
            st.permutations(range(n)),
        )
    )


@settings(max_examples=25, deadline=None)
@given(
    pairs_of_scores(),
    st.sampled_from(["wilcoxon", "randomization", "t"]),
    st.floats(-1, 1),
)
def test_order_of_queries_names_and_a_shift_change_no_verdict(drawn, test, shift):
    *rows, order = drawn
    x, y, z = (np.array(row) for row in rows)
    scores = np.concatenate([x, y, z])
    assume(
        scores.any() and (scores + shift).any()
    )  # scores that are all 0 measured nothing: that is another verdict
    # One range for all: it decides what the worst loss is.
    how = {
        "settings": Settings(test=test, margin=0.25),
        "ranges": {"m": ValueRange(-4, 4)},
    }
    plain = compare({"x": x, "y": y, "z": z}, **how)
    mixed = compare({"x": x[order], "y": y[order], "z": z[order]}, **how)
    moved = compare({"x": x + shift, "y": y + shift, "z": z + shift}, **how)
    for other in (mixed, moved):
        assert [cell(r) for r in other] == [cell(r) for r in plain]
        assert [(r.w_plus, r.w_minus, r.ties) for r in other] == [
            (r.w_plus, r.w_minus, r.ties) for r in plain
        ]
        assert [r.p_value for r in other] == pytest.approx(
            [r.p_value for r in plain], rel=1e-6
        )
    turned = {
        frozenset((r.a, r.b)): r.swapped
        for r in compare({"z": z, "y": y, "x": x}, **how)
    }
    for row in plain:
        other = turned[frozenset((row.a, row.b))]
        assert (cell(other), other.wins, row.swapped.swapped) == (
            cell(row),
            row.wins,
            row,
        )
        assert other.mean_difference == pytest.approx(row.mean_difference, abs=1e-12)
        assert (other.ci_low, other.ci_high) == pytest.approx(
            (row.ci_low, row.ci_high), abs=1e-12
        )


# Evaluations


def test_the_three_sets_and_their_words():
    rng = np.random.default_rng(13)
    base = 0.5 + rng.random(300) / 4
    twin = base + rng.normal(-0.002, 0.04, 300)
    maybe = np.clip(base + rng.normal(-0.005, 0.3, 300), 0, 1)
    _, evaluation = judged(
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
    assert (
        judged({"a": np.full(6, 0.3), "b": np.full(6, 0.1 + 0.2)})[1].leader == "a"
    )  # b's is higher by 6e-17
    sentence = " ".join(conclusion_sentences(evaluation))
    assert (
        "as good as best within 0.02: twin." in sentence
        and "best leads. bad scores lower; twin is as good; maybe is undecided."
        in sentence
    )
    assert "queries reliably detect a difference of 0.02" in sentence


def test_a_baseline_that_does_not_lead_leaves_the_leader_s_other_pairs_to_all_pairs():
    scores = noisy(15, a=0.0, base=0.1, c=0.4)
    rows = compare(scores, baseline="base")
    evaluation = concluded(scores, rows)
    assert (
        evaluation.leader,
        set(evaluation.shown_worse),
        evaluation.leader_comparisons["base"],
    ) == (
        "c",
        {"a", "base"},
        rows[1],
    )
    assert evaluation.leader_comparisons["a"].p_minimum_adjusted == pytest.approx(
        3 * evaluation.leader_comparisons["a"].p_minimum
    )
    assert conclusion_headline(evaluation) == "Use c"


NOISE = np.random.default_rng(0).normal(0, 0.2, 100)


@pytest.mark.parametrize(
    ("scores", "chosen", "sentence", "unsaid"),
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
            "Label more queries.",
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
            T,
            "undefined, all differences are equal",
            "reliably detect",
        ),
        # The plan is for the pair that more queries may decide.
        (
            {
                "a": np.full(100, 0.8),
                "b": np.full(100, 0.3),
                "c": 0.799 + NOISE - NOISE.mean(),
            },
            T,
            "about 160 queries reliably detect",
            "Use",
        ),
    ],
)
def test_what_is_said_of_the_whole(scores, chosen, sentence, unsaid):
    rows, evaluation = judged(scores, chosen)
    text = " ".join(
        [
            *conclusion_sentences(evaluation),
            *(pair_sentence(row, evaluation.settings) for row in rows),
        ]
    )
    assert sentence in text and unsaid not in text


# Words

SCORES = {"a": np.linspace(0.2, 0.9, 30), "b": np.linspace(0.21, 0.85, 30)}


def test_every_verdict_and_reason_has_words():
    assert set(VERDICT_SIGNS) == set(Verdict)
    assert set(REASON_WORDS) == set(Reason)
    (row,) = compare(SCORES)
    assert len(set(REASON_WORDS.values())) == len(Reason)
    for reason, words in REASON_WORDS.items():
        sentence = pair_sentence(
            replace(row, finding=Finding(Verdict.UNDECIDED, reason)), Settings()
        )
        assert sentence.startswith(f"a and b: undecided, {words};")


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("reason", [None, *Reason])
@pytest.mark.parametrize("negligible", [False, True])
def test_a_cell_says_the_whole_finding(verdict, reason, negligible):
    expected = Finding(verdict, reason, negligible)
    assert finding(verdict_cell(expected)) == expected


WARNINGS = [
    warnings.Fragile("x", "y"),
    warnings.HalfRead(("x", "y"), 0.1, 0.2),
    warnings.UnknownHits("x", 1, 2, "d1"),
    warnings.MatchedIds("x", (1,), ("suffix",), "d1"),
    warnings.Unjudged("x", "y", 0.1, 0.2, 10),
    warnings.JudgedGap("x", "y", 0.2, 0.1),
    warnings.ClickLabels(2),
    warnings.ShortContexts("x", 2),
    warnings.WholeDocuments(("x",)),
    warnings.EstimatedTokens(),
    warnings.ChangedAnswers("x", 1, 2),
    warnings.UnknownRepeatability(("x",)),
    warnings.NoHits("x", 2, 3, "q2"),
    warnings.TiedRun("x", 2, 2),
    warnings.RisingScores("x", 40, 40),
    warnings.NoSharedWord(3, 40, ("q1", "q2", "q3")),
]


@pytest.mark.parametrize("warning", WARNINGS, ids=lambda warning: warning.kind.value)
def test_a_warning_is_read_back_from_its_stored_form(warning):
    assert warnings.read_warning(warnings.store_warning(warning)) == warning


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {},
        {"kind": "new"},
        {"kind": "clicks", "retrievers": [], "numbers": [], "words": []},
        {"kind": "clicks", "retrievers": [], "numbers": ["many"], "words": []},
        {"kind": "clicks", "retrievers": ["x"], "numbers": [1], "words": []},
        {"kind": "fragile", "retrievers": ["x"], "numbers": [], "words": []},
    ],
)
def test_a_damaged_warning_is_refused(stored):
    with pytest.raises(ValueError, match=r"warning|number|field"):
        warnings.read_warning(stored)


def test_every_kind_of_warning_has_its_own_sentence():
    sentences = {warning.kind: warning_sentence(warning) for warning in WARNINGS}
    assert sentences.keys() == set(warnings.WarningKind)
    assert len(set(sentences.values())) == len(warnings.WarningKind)


@pytest.mark.parametrize("by_people", [True, False])
@pytest.mark.parametrize("margin", [None, 0.02, 0.5])
@pytest.mark.parametrize("shift", [0.0, 0.001, 0.3])
def test_a_conclusion_says_who_leads_and_never_more_than_was_shown(
    by_people, margin, shift
):
    settings = Settings(margin=margin, judged_by_people=by_people)
    scores = {
        "a": SCORES["a"] / 2 + 0.3,
        "b": SCORES["a"] / 2 + 0.3 - shift,
        "c": SCORES["b"] / 2,
    }
    rows = compare(scores, settings=settings)
    result = concluded(scores, rows, settings=settings)
    words = " ".join(conclusion_sentences(result))
    line = conclusion_headline(result)
    assert result.leader in words
    assert result.leader in line or "no difference is shown" in line
    if not by_people:
        assert "decides nothing" in line
    if not result.as_good_as_leader[1:]:
        assert "as good as" not in words
    for other in result.queries_needed:
        assert f"worse than {result.leader}: {other}" not in words
