"""The worst, best and expected value over the orders of tied documents, against trying every order."""

from __future__ import annotations

from itertools import groupby, permutations, product
from math import fsum, isnan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measures import Claimed, Measure, parse, score, table, tie_ranges
from harness.measures.batch import Batch, Floats
from harness.measures.binary import precision
from harness.measures.names import CHOICES
from harness.measures.table import MEASURES, MeasureRow
from retrievers.errors import InputError

DOCUMENTS = tuple("abcdefghi")
GROUPS = [["a", "b"], ["c"], ["b", "d"]]
CLAIMED = Claimed(("x", "y"), {document: (document in "bc", document == "d") for document in DOCUMENTS})


def forms() -> list[str]:
    """Every measure of the table with every parameter, without a cutoff and with two."""
    texts = []
    values = {**CHOICES, "rel": (2,), "p": (0.5,), "residual": (True,)}
    for name, row in MEASURES.items():
        for inside in ["", *(f"({key}={value!r})" for key in row.options for value in values[key])]:
            texts += [f"{name}{inside}"] if row.cutoff != "must" else []
            texts += [f"{name}{inside}@{cutoff}" for cutoff in (2, 3)] if row.cutoff != "never" else []
    return list(dict.fromkeys(str(parse(text)) for text in texts))


def has_closed_form(name: str) -> bool:
    """What its row declares; groups have none, and nDCG with an ideal of what was retrieved not in every case."""
    ties = table.row_of(parse(name)).ties
    return ties is not None and ties.mean is not None and "groups" not in name and "ideal='retrieved')" not in name


def test_measures_without_a_closed_form() -> None:
    # Were a row to lose or gain one by mistake, values would only be slower, or wrong.
    without = {name.split("@")[0] for name in forms() if not has_closed_form(name) and "groups" not in name}
    claimed = {name for name in without if "Claim" in name or "claims" in name}
    assert without - claimed == {"ERR", "Bpref", "Bpref(rel=2)", "nDCG(ideal='retrieved')"}


judged = st.dictionaries(st.sampled_from((*DOCUMENTS, "not retrieved")), st.integers(-1, 3), min_size=1)
hits = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([0.1, 0.2, 0.3]), max_size=7)


def every_value(name: str, judged: dict[str, int], hits: dict[str, float]) -> list[float]:
    """The measure for every order of the tied documents."""
    falling = sorted(hits, key=lambda d: (-hits[d], d))
    blocks = [list(block) for _, block in groupby(falling, key=hits.__getitem__)]
    orders = product(*(permutations(block) for block in blocks))
    rankings = {str(i): [d for block in order for d in block] for i, order in enumerate(orders)}
    judgments = dict.fromkeys(rankings, judged)
    more = {"groups": dict.fromkeys(rankings, GROUPS), "claims": dict.fromkeys(rankings, CLAIMED)}
    return score([parse(name)], judgments, rankings, **more).values[0].tolist()


@pytest.mark.parametrize("name", forms())
@settings(max_examples=15, deadline=None)
@given(judged=judged, hits=hits)
def test_every_order(name: str, judged: dict[str, int], hits: dict[str, float]) -> None:
    (found,) = tie_ranges(parse(name), {"q": judged}, {"q": hits}, groups={"q": GROUPS}, claims={"q": CLAIMED})
    values = every_value(name, judged, hits)
    if isnan(values[0]):  # what came back is empty, and the measure is undefined for that
        assert not hits and isnan(found.worst) and isnan(found.expected)
        return
    assert found.worst == pytest.approx(min(values), abs=1e-12)
    assert found.best == pytest.approx(max(values), abs=1e-12)
    assert found.expected == pytest.approx(fsum(values) / len(values), abs=1e-12)
    assert found.method in ({"none", "exact"} if has_closed_form(name) else {"none", "exact", "enumerated"})


def squared_precision(batch: Batch, measure: Measure) -> Floats:
    """(hits / k)^2: it does not add one term a place."""
    return precision(batch, measure) ** 2


def test_a_new_measure_has_its_right_expected_value_without_declaring_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four tied documents two are relevant; of the six pairs that can stand first, one has both and four have one.

    (1 + 4/4) / 6 = 1/3. As if it added one term a place, it would be 3/8.
    """
    new = MeasureRow(squared_precision, "square of the precision", ("rel",), cutoff="must")
    monkeypatch.setattr(table, "MEASURES", {**MEASURES, "Squared": new})
    hits = dict.fromkeys("abcd", 1.0)
    (found,) = tie_ranges(parse("Squared@2"), {"q": {"a": 1, "b": 1}}, {"q": hits})
    assert found == ("q", 0.0, 1.0, pytest.approx(1 / 3, abs=1e-12), "enumerated")


def test_many_tied_documents_of_a_new_measure_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    new = MeasureRow(squared_precision, "square of the precision", ("rel",), cutoff="must")
    monkeypatch.setattr(table, "MEASURES", {**MEASURES, "Squared": new})
    hits = {f"d{i:02}": 1.0 for i in range(20)}
    (found,) = tie_ranges(parse("Squared@2"), {"q": {"d00": 1, "d01": 1}}, {"q": hits})
    # One of both: 36/190 of the pairs, a quarter each; both: 1/190. 10,000 draws: standard error 0.0013.
    assert found.expected == pytest.approx((36 / 4 + 1) / 190, abs=0.007)
    assert found.method == "sampled"


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


def test_scores_that_differ_in_64_bits_alone_are_no_tie() -> None:
    (found,) = tie_ranges(parse("RR"), {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0 + 1e-9}})
    assert (found.best, found.method) == (0.5, "none")


def test_a_query_that_the_run_lacks_has_no_ties() -> None:
    (found,) = tie_ranges(parse("P@5"), {"q": {"a": 1}}, {})
    assert found == ("q", 0, 0, 0, "none")


def test_groups_must_be_given() -> None:
    with pytest.raises(InputError, match="no AND/OR groups"):
        tie_ranges(parse("R(groups='first')"), {"q": {"a": 1}}, {"q": {"a": 1.0}})
