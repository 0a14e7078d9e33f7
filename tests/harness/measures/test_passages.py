"""Passages scored within a context, by documents and by characters.

The worked example was computed by hand; the properties compare with an enumeration of
every character.
"""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.measures import PassageLabels, measure_rankings, parse_measure
from harness.measures import measure_run as measure_saved_run
from harness.measures.passage_value import passage_value
from retrievers.passage import Passage, Span
from tests.support.small import refusal

PASSAGES = [
    Passage("a", 100, 200, 30, 5),
    Passage("x", 0, 100, 25, 4),
    Passage("a", 150, 250, 30, 3),
    Passage("b", 0, 50, 15, 2),
    Passage("c", 0, 90, 50, 1),
]
LABELS = PassageLabels(
    {"a": 1, "b": 3, "c": 2, "x": 0},
    [Span("a", 180, 260), Span("b", 0, 20), Span("x", 0, 9)],
)
DCG = 1 + 3 / log2(5)
"""a's first passage at rank 1, its second adds nothing, b at rank 4."""
IDEAL = 3 + 2 / log2(3) + 1 / 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # 30 + 25 + 30 + 15 = 100: the last passage, of 50 tokens, does not fit.
        ("R(tokens=100)", 2 / 3),
        ("R(tokens=99)", 1 / 3),
        ("R(tokens=29)", 0),
        ("R(rel=2, tokens=100)", 1 / 2),
        ("P(tokens=100)", 75 / 100),
        ("P(rel=2, tokens=100)", 15 / 100),
        ("P(tokens=29)", 0),
        ("nDCG(tokens=100)", DCG / IDEAL),
        (
            "nDCG(dcg='exp-log2', tokens=100)",
            (1 + 7 / log2(5)) / (7 + 3 / log2(3) + 1 / 2),
        ),
        # Labelled: 80 characters of a, 20 of b. The first three passages have 150
        # characters of a and 100 of x; 70 of a's are labelled.
        ("R(unit='chars')@3", 70 / 100),
        ("P(unit='chars')@3", 70 / 250),
        ("IoU@3", 70 / 280),
        ("R(tokens=100, unit='chars')", 90 / 100),
        ("P(tokens=100, unit='chars')", 90 / 300),
        ("IoU(tokens=100)", 90 / 310),
        ("IoU(rel=2)@5", 20 / 390),
    ],
)
def test_a_worked_example(name: str, value: float) -> None:
    scored = passage_value(parse_measure(name), LABELS, PASSAGES)
    assert scored == pytest.approx(value, abs=1e-15)


def test_the_first_passage_that_does_not_fit_ends_the_context() -> None:
    passages = [Passage("x", 0, 9, 90, 2), Passage("a", 0, 9, 20, 1)]
    short = Passage("b", 0, 9, 5, 0)
    measure = parse_measure("R(tokens=100)")
    assert passage_value(measure, LABELS, [*passages, short]) == 0


spans = st.builds(
    lambda document, start, length: Span(document, start, start + length),
    st.sampled_from("ab"),
    st.integers(0, 12),
    st.integers(1, 8),
)


@given(returned=st.lists(spans, max_size=6), labelled=st.lists(spans, min_size=1))
def test_characters_are_counted_as_by_enumeration(
    returned: list[Span], labelled: list[Span]
) -> None:
    def characters(some: list[Span]) -> set[tuple[str, int]]:
        return {
            (span.document, position)
            for span in some
            for position in range(span.start, span.end)
        }

    passages = [Passage(*span, 1, -rank) for rank, span in enumerate(returned)]
    labels = PassageLabels({"a": 1, "b": 1}, labelled)
    found = characters(returned)
    wanted = characters(labelled)
    both = len(found & wanted)
    expected = {
        "R(unit='chars')@9": both / len(wanted),
        "P(unit='chars')@9": both / len(found) if found else 0.0,
        "IoU@9": both / len(found | wanted),
    }
    assert {
        name: passage_value(parse_measure(name), labels, passages) for name in expected
    } == expected


@given(
    ranking=st.lists(st.sampled_from("abcdexyz"), unique=True),
    grades=st.dictionaries(st.sampled_from("abcde"), st.integers(0, 3), min_size=1),
    cutoff=st.integers(1, 6),
)
def test_passages_of_one_token_each_score_as_documents(
    ranking: list[str], grades: dict[str, int], cutoff: int
) -> None:
    names = {"R": f"R@{cutoff}", "nDCG": f"nDCG@{cutoff}"}
    passages = {"q": [Passage(doc, 0, 9, 1, -i) for i, doc in enumerate(ranking)]}
    by_tokens = [parse_measure(f"{name}(tokens={cutoff})") for name in names]
    by_documents = [parse_measure(name) for name in names.values()]
    scored = measure_rankings(
        [*by_tokens, *by_documents], {"q": grades}, {"q": ranking}, passages=passages
    ).values[:, 0]
    assert scored[:2] == pytest.approx(scored[2:], abs=1e-12)


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("recall(TOKENS=2000)", "R(tokens=2000)"),
        ("P(unit='CHARS')@5", "P(unit='chars')@5"),
        ("p(unit='chars', tokens=9)", "P(tokens=9, unit='chars')"),
        ("R(unit='documents')@5", "R@5"),
        ("iou@5", "IoU@5"),
        ("ndcg(tokens=9, dcg='exp-log2')", "nDCG(dcg='exp-log2', tokens=9)"),
    ],
)
def test_names_are_canonical(name: str, canonical: str) -> None:
    assert str(parse_measure(name)) == canonical


def test_a_declared_ideal_is_of_documents() -> None:
    measure = parse_measure("nDCG(tokens=9)", ideal="retrieved", gain="exponential")
    assert str(measure) == "nDCG(dcg='exp-log2', tokens=9)"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("R(tokens=2000)@5", "tokens take the place of the cutoff"),
        ("nDCG(tokens=9, ideal='retrieved')", "tokens have one ideal"),
        ("R(unit='chars')", "R needs a cutoff or tokens"),
        ("IoU", "IoU needs a cutoff or tokens"),
        ("R(tokens=0)", "a whole number from 1"),
        ("R(unit='words')@5", "unit cannot be 'words'"),
        ("nDCG(unit='chars')@5", "nDCG has no parameter 'unit'"),
        ("RR(tokens=9)", "RR has no parameter 'tokens'"),
    ],
)
def test_other_names_are_refused(name: str, message: str) -> None:
    assert message in str(refusal(parse_measure, name))


def test_a_query_without_spans_is_undefined_for_characters() -> None:
    measure = parse_measure("IoU@1")
    values = measure_rankings(
        [measure],
        {"q": {"a": 1}, "r": {"a": 1}},
        {},
        passages={"q": [Passage("a", 0, 9, 1, 1)]},
        spans={"q": [Span("a", 0, 9)]},
    )
    assert str(values.values.tolist()) == "[[1.0, nan]]"


def test_characters_without_any_span_are_refused() -> None:
    error = refusal(
        measure_rankings, [parse_measure("IoU@1")], {"q": {"a": 1}}, {}, passages={}
    )
    assert "IoU@1" in str(error)
    assert "no query has any" in str(error)


def test_a_run_file_has_no_passages() -> None:
    error = refusal(
        measure_saved_run, [parse_measure("R(tokens=9)")], {"q": {"a": 1}}, {}
    )
    assert "needs passages with their tokens" in str(error)
