"""AND/OR relevance groups in both readings; grade rules, from an ordered list of relevant documents to grades."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measures import parse, score
from harness.measures.grades import RULES, Buckets, Gain, gain_warning, grade
from harness.measures.groups import group_value
from retrievers.errors import InputError

GROUPS = [["a", "b"], ["c"], ["d", "e", "f"]]
DOCUMENTS = [*"abcdef", "x", "y", "z"]
NAMES = ["P@3", "SetP", "R@3", "SetR", "F1@3", "SetF", "RR", "RR@2", "AP", "AP@3", "nDCG", "nDCG@3"]
rankings = st.lists(st.sampled_from(DOCUMENTS), unique=True)


def grouped(name: str, reading: str) -> str:
    base, at, cutoff = name.partition("@")
    return f"{base}(groups='{reading}'){at}{cutoff}"


@pytest.mark.parametrize(
    ("name", "autorag", "first"),
    [("P@5", 4 / 5, 3 / 5),
     ("P@10", 4 / 5, 3 / 10),
     ("SetP", 4 / 5, 3 / 4),
     ("R@5", 1, 1),
     ("R@3", 1 / 3, 1 / 3),
     ("F1@5", 2 * 4 / 5 / (4 / 5 + 1), 6 / (5 + 3)),
     ("RR", (1 + 1 / 4 + 1 / 5) / 3, 1),
     ("AP", ((1 + 2 / 2) / 2 + 1 / 4 + 1 / 5) / 3, (1 + 2 / 3 + 3 / 4) / 3),
     ("AP@4", (1 + 1 / 4) / 3, (1 + 2 / 3) / 3),
     ("nDCG", (1 + 1 / log2(3) + 1 / log2(5) + 1 / log2(6)) / sum(1 / log2(i + 1) for i in range(1, 6)),
      (1 + 1 / log2(4) + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / log2(4))),
     ("nDCG@1", 1, 1)],
)  # fmt: skip
def test_by_hand(name: str, autorag: float, first: float) -> None:
    """a and b are alternatives: 'autorag' counts b as a further hit, 'first' passes it over, so that c stands third."""
    ranking = ["a", "b", "x", "c", "d"]
    assert group_value(parse(grouped(name, "autorag")), GROUPS, ranking) == pytest.approx(autorag, abs=1e-12)
    assert group_value(parse(grouped(name, "first")), GROUPS, ranking) == pytest.approx(first, abs=1e-12)


def test_a_document_in_several_groups_meets_them_all() -> None:
    groups = [["a", "b"], ["a", "c"]]
    assert group_value(parse("R(groups='first')"), groups, ["a"]) == 1
    assert group_value(parse("AP(groups='first')"), groups, ["x", "a", "b", "c"]) == 1 / 2
    assert group_value(parse("SetP(groups='first')"), groups, ["a", "b", "c"]) == 1
    assert group_value(parse("nDCG(groups='first')"), groups, ["a"]) == pytest.approx(1 / (1 + 1 / log2(3)))


@settings(deadline=None, max_examples=40)
@given(rankings, st.sampled_from([name for name in NAMES if name not in {"SetP", "SetF"}]))
def test_groups_of_one_are_plain_relevance_for_first(ranking: list[str], name: str) -> None:
    groups = [["a"], ["b"], ["c"]]
    plain = score([parse(name)], {"q": {"a": 1, "b": 1, "c": 1}}, {"q": ranking}).values[0, 0]
    assert group_value(parse(grouped(name, "first")), groups, ranking) == pytest.approx(plain, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(rankings)
def test_further_alternatives_count_neither_for_nor_against_first(ranking: list[str]) -> None:
    """Taking redundant alternatives out of the list changes no value that has no cutoff."""
    met: set[int] = set()
    lean = []
    for document in ranking:
        new = {i for i, group in enumerate(GROUPS) if document in group} - met
        if new or not any(document in group for group in GROUPS):
            lean.append(document)
        met |= new
    for name in ("SetP", "SetR", "SetF", "RR", "AP", "nDCG"):
        measure = parse(grouped(name, "first"))
        assert group_value(measure, GROUPS, lean) == group_value(measure, GROUPS, ranking)


def test_beside_plain_measures_in_the_order_asked_for() -> None:
    measures = [parse("R(groups='first')@1"), parse("R@1"), parse("R(groups='autorag')@1")]
    judgments = {"q1": {"a": 1, "b": 1, "c": 1}, "q2": {"x": 1, "y": 1, "z": 0}}
    scores = score(measures, judgments, {"q1": ["a"], "q2": ["x"]}, groups={"q1": [["a", "b"], ["c"]]})
    assert scores.values.tolist() == [[1 / 2, 1 / 2], [1 / 3, 1 / 2], [1 / 2, 1 / 2]]


def test_the_ideal_list_scores_one_for_first_and_nothing_retrieved_or_no_groups_zero() -> None:
    for name in NAMES:
        assert group_value(parse(grouped(name, "first")), GROUPS, ["e", "c", "a"]) == 1
        for reading in ("autorag", "first"):
            assert group_value(parse(grouped(name, reading)), GROUPS, []) == 0
            assert group_value(parse(grouped(name, reading)), [], ["a"]) == 0


LIST = list("abcdefghijkl")


@pytest.mark.parametrize(
    ("rule", "grades"),
    [("linear", [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
     ("binary", [1] * 12),
     ("reciprocal", [2520, 1260, 840, 630, 504, 420, 360, 315, 280, 252, 229, 210]),
     (Buckets([(1, 3), (3, 2), (10, 1)]), [3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0, 0])],
)  # fmt: skip
def test_the_rules(rule: str, grades: list[int]) -> None:
    assert grade(LIST, rule) == dict(zip(LIST, grades, strict=True))


@pytest.mark.parametrize("rule", RULES)
@settings(deadline=None, max_examples=40)
@given(documents=st.lists(st.sampled_from(LIST)))
def test_repetitions_are_taken_out_first_and_keep_their_best_place(rule: str, documents: list[str]) -> None:
    graded = grade(documents, rule)
    assert graded == grade(dict.fromkeys(documents), rule)
    assert list(graded) == list(dict.fromkeys(documents))
    values = list(graded.values())
    assert values == sorted(values, reverse=True)
    assert all(value >= 1 for value in values)


@pytest.mark.parametrize("buckets", [[], [(0, 1)], [(3, 2), (2, 1)], [(1, 2), (3, 2)], [(1, 2), (3, 3)], [(1, -1)]])
def test_buckets_out_of_order_are_refused(buckets: list[tuple[int, int]]) -> None:
    with pytest.raises(InputError, match="last places must rise"):
        grade(LIST, Buckets(buckets))


def test_an_unknown_rule_is_refused_and_reciprocal_never_falls_below_one() -> None:
    grades = grade([str(i) for i in range(6000)], "reciprocal")  # round(2520 / 5041) is 0
    assert grades["5040"] == grades["5999"] == 1
    with pytest.raises(InputError, match=r"no grade rule 'lineal' \(did you mean 'linear'\?\)"):
        grade(LIST, "lineal")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "largest", "gain", "said"),
    [("linear", 5, "exponential", ""),
     ("reciprocal", 2520, "linear", ""),
     ("linear", 6, "exponential", "grades = 'linear' reaches 6: with"),
     ("linear", 30, "exponential", "grades = 'linear' reaches 30: with"),
     ("linear", 31, "exponential", "error: [relevance]: grades = 'linear' reaches 31"),
     ("reciprocal", 2520, "exponential", "error: [relevance]: grades = 'reciprocal' goes with linear gain only")],
)  # fmt: skip
def test_steep_grades_are_told_or_refused(rule: str, largest: int, gain: Gain, said: str) -> None:
    try:
        told = gain_warning(rule, largest, gain)
    except InputError as error:
        told = f"error: {error}"
    assert told.startswith(said) and bool(told) == bool(said)
