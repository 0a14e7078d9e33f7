"""Grade rules: from an ordered list of relevant documents to grades."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measures.grades import RULES, Buckets, gain_of, gain_warning, grade
from retrievers.errors import InputError

LIST = list("abcdefghijkl")


@pytest.mark.parametrize(
    ("rule", "grades"),
    [
        ("linear", [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        ("binary", [1] * 12),
        ("reciprocal", [2520, 1260, 840, 630, 504, 420, 360, 315, 280, 252, 229, 210]),
        (Buckets([(1, 3), (3, 2), (10, 1)]), [3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0, 0]),
    ],
)
def test_the_rules(rule: str, grades: list[int]) -> None:
    assert grade(LIST, rule) == (dict(zip(LIST, grades, strict=True)), ())


@pytest.mark.parametrize("rule", RULES)
@settings(deadline=None, max_examples=40)
@given(documents=st.lists(st.sampled_from(LIST)))
def test_repetitions_are_taken_out_first_and_keep_their_best_place(rule: str, documents: list[str]) -> None:
    graded = grade(documents, rule)
    assert graded.grades == grade(dict.fromkeys(documents), rule).grades
    assert list(graded.grades) == list(dict.fromkeys(documents))
    assert len(graded.duplicates) == len(documents) - len(graded.grades)
    values = list(graded.grades.values())
    assert values == sorted(values, reverse=True)
    assert all(value >= 1 for value in values)


def test_reciprocal_never_falls_below_one() -> None:
    """round(2520 / 5041) is 0: far down the list a document is still relevant."""
    grades = grade([str(i) for i in range(6000)], "reciprocal").grades
    assert grades["5040"] == grades["5999"] == 1


@pytest.mark.parametrize("buckets", [[], [(0, 1)], [(3, 2), (2, 1)], [(1, 2), (3, 2)], [(1, 2), (3, 3)], [(1, -1)]])
def test_buckets_out_of_order_are_refused(buckets: list[tuple[int, int]]) -> None:
    with pytest.raises(InputError, match="last places must rise"):
        grade(LIST, Buckets(buckets))


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(InputError, match=r"no grade rule 'lineal' \(did you mean 'linear'\?\)"):
        grade(LIST, "lineal")  # type: ignore[arg-type]


def test_gains() -> None:
    assert [gain_of(g, "linear") for g in (-1, 0, 3)] == [0, 0, 3]
    assert [gain_of(g, "exponential") for g in (-1, 0, 3, 30)] == [0, 0, 7, 2**30 - 1]


def test_steep_grades_are_told_or_refused() -> None:
    assert gain_warning("linear", 5, "exponential") == ""
    assert gain_warning("reciprocal", 2520, "linear") == ""
    assert "grades = 'linear' reaches 6" in gain_warning("linear", 6, "exponential")
    assert gain_warning("linear", 30, "exponential") != ""
    with pytest.raises(InputError, match="grades = 'linear' reaches 31"):
        gain_warning("linear", 31, "exponential")
    with pytest.raises(InputError, match="'reciprocal' goes with linear gain only"):
        gain_warning("reciprocal", 2520, "exponential")
