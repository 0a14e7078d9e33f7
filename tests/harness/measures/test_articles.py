"""AND/OR relevance groups, grade rules, and every example of the five articles.

Where an article is wrong, both numbers are tested.
"""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measures import measure_ranking, measure_rankings, parse_measure
from harness.measures.grade_rules import (
    NAMED_RULES,
    Gain,
    GradeBuckets,
    gain_warning,
    grade_documents,
)
from harness.measures.group_value import group_value
from retrievers.errors import InputError

GROUPS = [["a", "b"], ["c"], ["d", "e", "f"]]
DOCUMENTS = [*"abcdef", "x", "y", "z"]
NAMES = [
    "P@3",
    "SetP",
    "R@3",
    "SetR",
    "F1@3",
    "SetF",
    "RR",
    "RR@2",
    "AP",
    "AP@3",
    "nDCG",
    "nDCG@3",
]
rankings = st.lists(st.sampled_from(DOCUMENTS), unique=True)


def grouped(name: str, reading: str) -> str:
    base, at, cutoff = name.partition("@")
    return f"{base}(groups='{reading}'){at}{cutoff}"


@pytest.mark.parametrize(
    ("name", "autorag", "first"),
    [
        ("P@5", 4 / 5, 3 / 5),
        ("P@10", 4 / 5, 3 / 10),
        ("SetP", 4 / 5, 3 / 4),
        ("R@5", 1, 1),
        ("R@3", 1 / 3, 1 / 3),
        ("F1@5", 2 * 4 / 5 / (4 / 5 + 1), 6 / (5 + 3)),
        ("RR", (1 + 1 / 4 + 1 / 5) / 3, 1),
        ("AP", ((1 + 2 / 2) / 2 + 1 / 4 + 1 / 5) / 3, (1 + 2 / 3 + 3 / 4) / 3),
        ("AP@4", (1 + 1 / 4) / 3, (1 + 2 / 3) / 3),
        (
            "nDCG",
            (1 + 1 / log2(3) + 1 / log2(5) + 1 / log2(6))
            / sum(1 / log2(i + 1) for i in range(1, 6)),
            (1 + 1 / log2(4) + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / log2(4)),
        ),
        ("nDCG@1", 1, 1),
    ],
)
def test_by_hand(name: str, autorag: float, first: float) -> None:
    """a and b are alternatives: 'autorag' counts b as another hit.

    'first' ignores it, so that c is third.
    """
    ranking = ["a", "b", "x", "c", "d"]
    assert group_value(
        parse_measure(grouped(name, "autorag")), GROUPS, ranking
    ) == pytest.approx(autorag, abs=1e-12)
    assert group_value(
        parse_measure(grouped(name, "first")), GROUPS, ranking
    ) == pytest.approx(first, abs=1e-12)


def test_a_document_in_several_groups_meets_them_all() -> None:
    groups = [["a", "b"], ["a", "c"]]
    assert group_value(parse_measure("R(groups='first')"), groups, ["a"]) == 1
    assert group_value(parse_measure("F1(groups='first')"), groups, ["x"]) == 0
    assert (
        group_value(parse_measure("AP(groups='first')"), groups, ["x", "a", "b", "c"])
        == 1 / 2
    )
    assert (
        group_value(parse_measure("SetP(groups='first')"), groups, ["a", "b", "c"]) == 1
    )
    assert group_value(
        parse_measure("nDCG(groups='first')"), groups, ["a"]
    ) == pytest.approx(1 / (1 + 1 / log2(3)))


@settings(deadline=None, max_examples=40)
@given(
    rankings, st.sampled_from([name for name in NAMES if name not in {"SetP", "SetF"}])
)
def test_groups_of_one_are_plain_relevance_for_first(
    ranking: list[str], name: str
) -> None:
    groups = [["a"], ["b"], ["c"]]
    plain = measure_rankings(
        [parse_measure(name)], {"q": {"a": 1, "b": 1, "c": 1}}, {"q": ranking}
    ).values[0, 0]
    assert group_value(
        parse_measure(grouped(name, "first")), groups, ranking
    ) == pytest.approx(plain, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(rankings)
def test_further_alternatives_count_neither_for_nor_against_first(
    ranking: list[str],
) -> None:
    """Without redundant alternatives, values without a cutoff are the same."""
    met: set[int] = set()
    lean = []
    for document in ranking:
        new = {i for i, group in enumerate(GROUPS) if document in group} - met
        if new or not any(document in group for group in GROUPS):
            lean.append(document)
        met |= new
    for name in ("SetP", "SetR", "SetF", "RR", "AP", "nDCG"):
        measure = parse_measure(grouped(name, "first"))
        assert group_value(measure, GROUPS, lean) == group_value(
            measure, GROUPS, ranking
        )


def test_beside_plain_measures_in_the_order_asked_for() -> None:
    measures = [
        parse_measure("R(groups='first')@1"),
        parse_measure("R@1"),
        parse_measure("R(groups='autorag')@1"),
    ]
    judgments = {"q1": {"a": 1, "b": 1, "c": 1}, "q2": {"x": 1, "y": 1, "z": 0}}
    scores = measure_rankings(
        measures,
        judgments,
        {"q1": ["a"], "q2": ["x"]},
        groups={"q1": [["a", "b"], ["c"]]},
    )
    assert scores.values.tolist() == [[1 / 2, 1 / 2], [1 / 3, 1 / 2], [1 / 2, 1 / 2]]


@pytest.mark.parametrize("name", NAMES)
def test_the_ideal_list_scores_one_for_first(name: str) -> None:
    measure = parse_measure(grouped(name, "first"))
    assert group_value(measure, GROUPS, ["e", "c", "a"]) == 1


@pytest.mark.parametrize("reading", ["autorag", "first"])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_retrieved_or_no_groups_score_zero(name: str, reading: str) -> None:
    measure = parse_measure(grouped(name, reading))
    assert group_value(measure, GROUPS, []) == 0
    assert group_value(measure, [], ["a"]) == 0


LIST = list("abcdefghijkl")


@pytest.mark.parametrize(
    ("rule", "grades"),
    [
        ("linear", [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        ("binary", [1] * 12),
        ("reciprocal", [2520, 1260, 840, 630, 504, 420, 360, 315, 280, 252, 229, 210]),
        (GradeBuckets([(1, 2), (10**12, 1)]), [2] + [1] * 11),
        (GradeBuckets([(1, 3), (3, 2), (10, 1)]), [3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0, 0]),
    ],
)
def test_the_rules(rule: str, grades: list[int]) -> None:
    assert grade_documents(LIST, rule) == dict(zip(LIST, grades, strict=True))


@pytest.mark.parametrize("rule", NAMED_RULES)
@settings(deadline=None, max_examples=40)
@given(documents=st.lists(st.sampled_from(LIST)))
def test_repetitions_are_taken_out_first_and_keep_their_best_place(
    rule: str, documents: list[str]
) -> None:
    graded = grade_documents(documents, rule)
    assert graded == grade_documents(dict.fromkeys(documents), rule)
    assert list(graded) == list(dict.fromkeys(documents))
    values = list(graded.values())
    assert values == sorted(values, reverse=True)
    assert all(value >= 1 for value in values)


@pytest.mark.parametrize(
    "buckets",
    [[], [(0, 1)], [(3, 2), (2, 1)], [(1, 2), (3, 2)], [(1, 2), (3, 3)], [(1, -1)]],
)
def test_buckets_out_of_order_are_refused(buckets: list[tuple[int, int]]) -> None:
    with pytest.raises(InputError, match="last places must rise"):
        grade_documents(LIST, GradeBuckets(buckets))


def test_reciprocal_never_falls_below_one() -> None:
    grades = grade_documents(
        [str(i) for i in range(6000)], "reciprocal"
    )  # round(2520 / 5041) is 0
    assert grades["5040"] == grades["5999"] == 1


@pytest.mark.parametrize(
    ("rule", "largest", "gain", "expected"),
    [
        ("linear", 5, "exponential", ""),
        ("reciprocal", 2520, "linear", ""),
        ("linear", 6, "exponential", "grades = 'linear' reaches 6: with"),
        ("linear", 30, "exponential", "grades = 'linear' reaches 30: with"),
        (
            "linear",
            31,
            "exponential",
            "error: [relevance]: grades = 'linear' reaches 31",
        ),
        (
            "reciprocal",
            2520,
            "exponential",
            "error: [relevance]: grades = 'reciprocal' goes with linear gain only",
        ),
    ],
)
def test_steep_grades_are_told_or_refused(
    rule: str, largest: int, gain: Gain, expected: str
) -> None:
    try:
        warning = gain_warning(rule, largest, gain)
    except InputError as error:
        warning = f"error: {error}"
    assert warning.startswith(expected) and bool(warning) == bool(expected)


GRADES = [3, 2, 3, 0, 1]
"""The list that the Japanese basics and the Russian article work with."""
EXPONENTIAL = "'exp-log2'"
RETRIEVED = "'retrieved-all'"


def listed(name: str, grades: list[int]) -> float:
    """A measure of a list whose grades are all the judgments there are."""
    documents = [f"d{i}" for i in range(len(grades))]
    return measure_ranking(name, dict(zip(documents, grades, strict=True)), documents)


# AutoRAG: "1. AutoRAG속 Retrieval Metric 파해치기" (autorag-retrieval-metrics.ko)

AUTORAG = [["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"]


@pytest.mark.parametrize(
    ("name", "expected", "first"),
    [
        ("P", 0.5, 1 / 4),
        ("R", 0.5, 1 / 2),
        ("F1", 0.5, 1 / 3),
        ("RR", 0.5, 1),
        ("AP", 0.41666666666666663, 1 / 2),
        ("nDCG", 0.7039180890341347, 1 / (1 + 1 / log2(3))),
    ],
)
def test_autorag_comes_out_digit_for_digit_and_reads_otherwise_by_first(
    name, expected, first
):
    """The article prints nDCG to 16 digits; AP is 5/12 as its program adds it."""
    assert group_value(parse_measure(f"{name}(groups='autorag')"), *AUTORAG) == expected
    assert (
        group_value(parse_measure(f"{name}(groups='autorag')@4"), *AUTORAG) == expected
    )
    assert group_value(
        parse_measure(f"{name}(groups='first')@4"), *AUTORAG
    ) == pytest.approx(first, abs=1e-15)


def test_autorags_ndcg_wants_every_alternative() -> None:
    """test-1 and test-3 satisfy both groups, but the ideal has test-2, too: 0.77."""
    satisfied = ["test-1", "test-3", "pred-1"]
    assert group_value(parse_measure("R(groups='autorag')"), AUTORAG[0], satisfied) == 1
    assert group_value(
        parse_measure("nDCG(groups='autorag')"), AUTORAG[0], satisfied
    ) == pytest.approx(0.7654, abs=5e-5)
    assert (
        group_value(parse_measure("nDCG(groups='first')"), AUTORAG[0], satisfied) == 1
    )


# iDEAKITT: "RAGにおけるRetriverの性能評価に関して" (ideakitt-experiment.ja)


def test_ideakitts_example_of_an_ideal_order() -> None:
    """[2, 0, 1, 3, 0], exponential gain, against [3, 2, 1, 0, 0].

    The article prints no value; it is 0.6936.
    """
    score = listed("nDCG(dcg='exp-log2', ideal='retrieved')@5", [2, 0, 1, 3, 0])
    assert score == pytest.approx(
        (3 + 1 / 2 + 7 / log2(5)) / (7 + 3 / log2(3) + 1 / 2), abs=1e-15
    )
    assert f"{score:.4f}" == "0.6936"


BEST_ONLY = ["r0", *"abcdefghi"]
"""The best of ten at rank 1, and nothing else."""
ALL_BUT_BEST = [f"r{i}" for i in range(1, 10)]
"""The nine others in order."""


@pytest.mark.parametrize(
    ("name", "ranking", "expected"),
    [
        ("nDCG(dcg='exp-log2', ideal='retrieved')@10", BEST_ONLY, 1),
        ("nDCG(ideal='retrieved')@10", BEST_ONLY, 1),
        ("nDCG@10", BEST_ONLY, 0.3337),
        ("nDCG(dcg='exp-log2')@10", BEST_ONLY, 0.6510),
        ("nDCG(dcg='exp-log2')@10", ALL_BUT_BEST, 0.4986),
        ("nDCG@10", ALL_BUT_BEST, 0.8484),
    ],
)
def test_ideakitts_ideal_is_always_attained_and_its_grades_depend_on_one_document(
    name: str, ranking: list[str], expected: float
) -> None:
    """With exponential gain one document is 65 % of the ideal DCG."""
    judged = grade_documents([f"r{i}" for i in range(10)], "linear")
    assert measure_ranking(name, judged, ranking) == pytest.approx(expected, abs=5e-5)


# The Japanese basics: "RAG評価指標基礎" (rag-metrics-basics.ja)


@pytest.mark.parametrize(
    ("k", "dcg", "linear", "exponential"),
    [
        (1, "3.0000", "1.0000", "1.0000"),
        (2, "4.2619", "0.8710", "0.7789"),
        (3, "5.7619", "0.9778", "0.9595"),
        (4, "5.7619", "0.9112", "0.9285"),
        (5, "6.1487", "0.9724", "0.9575"),
    ],
)
def test_the_worked_list(k: int, dcg: str, linear: str, exponential: str) -> None:
    """Also the Russian article's list.

    Its code and the Japanese code sort the whole list (retrieved-all). Its code prints
    6.1487, 6.3235 and 0.9724 for DCG@5, IDCG@5 and NDCG@5.
    """
    assert f"{listed(f'DCG@{k}', GRADES):.4f}" == dcg
    assert f"{listed(f'nDCG@{k}', GRADES):.4f}" == linear
    assert f"{listed(f'nDCG(dcg={EXPONENTIAL})@{k}', GRADES):.4f}" == exponential
    more = dict(zip("abcde", GRADES, strict=True)) | {"not retrieved": 3}
    linear_name = f"nDCG(ideal={RETRIEVED})@{k}"
    exponential_name = f"nDCG(dcg={EXPONENTIAL}, ideal={RETRIEVED})@{k}"
    ranking = list("abcde")
    assert f"{measure_ranking(linear_name, more, ranking):.4f}" == linear
    assert f"{measure_ranking(exponential_name, more, ranking):.4f}" == exponential


def test_the_basics_mrr_and_hit_rate() -> None:
    """First hits at ranks 1, 3 and 2: MRR 0.611. Seven of ten with a hit: 0.7."""
    rankings = (["r"], ["x0", "x1", "r"], ["x0", "r"])
    total = sum(measure_ranking("RR", {"r": 1}, ranking) for ranking in rankings)
    assert f"{total / 3:.3f}" == "0.611"
    first_hits = ["r"] * 7 + ["x"] * 3
    hits = [measure_ranking("Success@1", {"r": 1}, [first]) for first in first_hits]
    assert sum(hits) / 10 == 0.7


# The Russian article: "Некоторые градированные меры" (graded-measures.ru)


def test_the_russian_zero_is_not_disorder() -> None:
    """ "0 is a complete lack of order": the worst order of its list scores 0.65.

    0 means that nothing is relevant.
    """
    worst = sorted(GRADES)
    assert listed("nDCG(ideal='retrieved-all')@5", worst) == pytest.approx(
        0.6458, abs=5e-5
    )
    assert listed("nDCG(ideal='retrieved-all')@5", [0, 0, 0, 0, 0]) == 0


def test_the_russian_ideal_is_no_upper_bound() -> None:
    """ "IDCG@k is always at least any DCG@k".

    One list's own ideal is 1, another list's DCG is 3.
    """
    judged = {"good": 3, "poor": 1}
    assert measure_ranking("nDCG(ideal='retrieved-all')@1", judged, ["poor"]) == 1
    assert measure_ranking("DCG@1", judged, ["poor"]) == 1
    assert measure_ranking("DCG@1", judged, ["good"]) == 3
    assert measure_ranking("nDCG@1", judged, ["poor"]) == 1 / 3


# The Korean notes: "정보 검색 평가 지표 ( + RAGAS)" (ir-metrics-and-ragas.ko)


def test_the_korean_binary_list() -> None:
    """[1, 0, 1, 0, 1] with no other relevant document."""
    assert listed("P@2", [1, 0, 1, 0, 1]) == 1 / 2
    assert listed("R@2", [1, 0, 1, 0, 1]) == 1 / 3
    assert listed("F1@2", [1, 0, 1, 0, 1]) == pytest.approx(
        2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3), abs=1e-15
    )
    assert listed("AP", [1, 0, 1, 0, 1]) == pytest.approx(
        (1 + 2 / 3 + 3 / 5) / 3, abs=1e-15
    )


def test_the_korean_context_precision_falls_when_more_is_found() -> None:
    """RAGAS divides by the hits: [1, 0] scores 1, and [1, 0, 1] only 0.83. AP rises."""
    judged = {"a": 1, "b": 1}
    less = ["a", "x"]
    more = ["a", "x", "b"]
    assert measure_ranking("ContextPrecision", judged, less) == 1
    assert measure_ranking("ContextPrecision", judged, more) == pytest.approx(
        (1 + 2 / 3) / 2, abs=1e-15
    )
    assert measure_ranking("AP", judged, less) < measure_ranking("AP", judged, more)
