"""The worst, best and expected value over the orders of tied documents, against trying every order."""

from __future__ import annotations

from itertools import groupby, permutations, product
from math import fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measures import parse, score, tie_ranges
from retrievers.errors import InputError

DOCUMENTS = tuple("abcdefghi")
GROUPS = [["a", "b"], ["c"], ["b", "d"]]
EXACT = [
    "P@3", "R@3", "Rcap@2", "F1@3", "Success@2", "Success", "RR", "RR@2", "AP", "AP@3", "Rprec", "SetP@3", "SetR@2",
    "SetF@3", "SetAP@3", "SetAP", "CG@3", "DCG@2", "DCG(dcg='exp-log2')", "nDCG", "nDCG@3", "nDCG(dcg='exp-log2')@2",
    "nDCG(ideal='retrieved-all')@3", "nDCG(ideal='retrieved')", "RBP(p=0.5)", "RBP(residual=True)@3", "Judged@3",
    "ContextPrecision", "ContextPrecision@3", "ContextPrecision(rel=2)@2", "IDContextRecall@2", "IDContextPrecision@2",
    "AP(rel=2)@4", "P(rel=2)@1",
]  # fmt: skip
ENUMERATED = [
    "ERR", "ERR@3", "Bpref", "Bpref(rel=2)", "nDCG(ideal='retrieved')@3", "nDCG(groups='autorag')@3",
    "AP(groups='first')", "P(groups='first')@2",
]  # fmt: skip

judged = st.dictionaries(st.sampled_from((*DOCUMENTS, "not retrieved")), st.integers(-1, 3), min_size=1)
hits = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([0.1, 0.2, 0.3]), max_size=7)


def every_value(name: str, judged: dict[str, int], hits: dict[str, float]) -> list[float]:
    """The measure for every order of the tied documents."""
    falling = sorted(hits, key=lambda d: (-hits[d], d))
    blocks = [list(block) for _, block in groupby(falling, key=hits.__getitem__)]
    orders = product(*(permutations(block) for block in blocks))
    rankings = {str(i): [d for block in order for d in block] for i, order in enumerate(orders)}
    judgments = dict.fromkeys(rankings, judged)
    return score([parse(name)], judgments, rankings, groups=dict.fromkeys(rankings, GROUPS)).values[0].tolist()


@pytest.mark.parametrize("name", [*EXACT, *ENUMERATED])
@settings(max_examples=20, deadline=None)
@given(judged=judged, hits=hits)
def test_every_order(name: str, judged: dict[str, int], hits: dict[str, float]) -> None:
    (found,) = tie_ranges(parse(name), {"q": judged}, {"q": hits}, groups={"q": GROUPS})
    values = every_value(name, judged, hits)
    assert found.worst == pytest.approx(min(values), abs=1e-12)
    assert found.best == pytest.approx(max(values), abs=1e-12)
    assert found.expected == pytest.approx(fsum(values) / len(values), abs=1e-12)
    assert found.method in ({"none", "exact"} if name in EXACT else {"none", "exact", "enumerated"})


def test_many_tied_documents_are_sampled_the_same_way_each_time() -> None:
    hits = {f"d{i:02}": 1.0 for i in range(20)}
    judgments = {"q": {f"d{i:02}": i % 4 for i in range(20)}}
    (first,) = tie_ranges(parse("ERR@5"), judgments, {"q": hits})
    assert first == tie_ranges(parse("ERR@5"), judgments, {"q": hits})[0]
    assert first.method == "sampled"
    assert first.worst < first.expected < first.best
    assert first.expected == pytest.approx(
        tie_ranges(parse("ERR@5"), judgments, {"q": hits}, seed=1)[0].expected, abs=0.01
    )


def test_the_large_closed_form() -> None:
    """1,000 tied documents of which 10 are relevant: P@100 expects 0.01, AP by the sum over places."""
    hits = {f"d{i:04}": 1.0 for i in range(1000)}
    judgments = {"q": {f"d{i:04}": 1 for i in range(10)}}
    (precision,) = tie_ranges(parse("P@100"), judgments, {"q": hits})
    assert (precision.worst, precision.best) == (0.0, 0.1)
    assert precision.expected == pytest.approx(0.01, abs=1e-12)
    (ap,) = tie_ranges(parse("AP"), judgments, {"q": hits})
    assert ap.expected == pytest.approx(sum((1 + (j - 1) * 9 / 999) / j for j in range(1, 1001)) / 1000, rel=1e-12)


def test_scores_tie_as_32_bit_floats_unless_doubles_are_asked_for() -> None:
    run, judgments = {"q": {"a": 1.0, "b": 1.0 + 1e-9}}, {"q": {"a": 1}}
    assert tie_ranges(parse("RR"), judgments, run)[0].best == 1
    assert tie_ranges(parse("RR"), judgments, run, precision="double")[0].best == 0.5


def test_a_query_that_the_run_lacks_has_no_ties() -> None:
    (found,) = tie_ranges(parse("P@5"), {"q": {"a": 1}}, {})
    assert found == ("q", 0, 0, 0, "none")


def test_groups_must_be_given() -> None:
    with pytest.raises(InputError, match="no AND/OR groups"):
        tie_ranges(parse("R(groups='first')"), {"q": {"a": 1}}, {"q": {"a": 1.0}})
