"""The worst and the best value over the orders of tied documents, against trying every order."""

from __future__ import annotations

from itertools import groupby, permutations, product
from math import isnan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.measures import Claimed, Measure, parse, score, table, tie_ranges
from harness.measures.batch import Batch, Floats
from harness.measures.formulas import precision
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


def has_known_ends(name: str) -> bool:
    """What its row declares; groups have none, and nDCG with an ideal of what was retrieved not in every case."""
    return table.row_of(parse(name)).ties is not None and "groups" not in name and "ideal='retrieved')" not in name


def test_measures_whose_ends_are_not_known() -> None:
    # Were a row to lose or gain them by mistake, values would only be slower, or wrong.
    without = {name.split("@")[0] for name in forms() if not has_known_ends(name) and "groups" not in name}
    assert {name for name in without if "laim" not in name} == {"nDCG(ideal='retrieved')"}


judged = st.dictionaries(st.sampled_from((*DOCUMENTS, "not retrieved")), st.integers(-1, 3), min_size=1)
hits = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([0.1, 0.2, 0.3]), max_size=5)


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
@settings(max_examples=8, deadline=None)
@given(judged=judged, hits=hits)
def test_every_order(name: str, judged: dict[str, int], hits: dict[str, float]) -> None:
    (found,) = tie_ranges(parse(name), {"q": judged}, {"q": hits}, groups={"q": GROUPS}, claims={"q": CLAIMED})
    values = every_value(name, judged, hits)
    if isnan(values[0]):  # what came back is empty, and the measure is undefined for that
        assert not hits and isnan(found.worst)
        return
    assert found.worst == pytest.approx(min(values), abs=1e-12)
    assert found.best == pytest.approx(max(values), abs=1e-12)
    assert found.method in ({"none", "exact"} if has_known_ends(name) else {"none", "exact", "enumerated"})


def squared_precision(batch: Batch, measure: Measure) -> Floats:
    """(hits / k)^2: it does not add one term a place."""
    return precision(batch, measure) ** 2


def test_a_new_measure_has_its_ends_without_declaring_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    new = MeasureRow(squared_precision, "square of the precision", ("rel",), cutoff="must")
    monkeypatch.setattr(table, "MEASURES", {**MEASURES, "Squared": new})
    (few,) = tie_ranges(parse("Squared@2"), {"q": {"a": 1, "b": 1}}, {"q": dict.fromkeys("abcd", 1.0)})
    assert few == ("q", 0.0, 1.0, "enumerated")
    hits = {f"d{i:02}": 1.0 for i in range(20)}
    (many,) = tie_ranges(parse("Squared@2"), {"q": {"d00": 1, "d01": 1}}, {"q": hits})
    assert many == ("q", 0.0, 1.0, "sampled")
    assert tie_ranges(parse("Squared@2"), {"q": {"d00": 1, "d01": 1}}, {"q": hits}) == [many]


def test_a_thousand_tied_documents() -> None:
    hits = {f"d{i:04}": 1.0 for i in range(1000)}
    (found,) = tie_ranges(parse("P@100"), {"q": {f"d{i:04}": 1 for i in range(10)}}, {"q": hits})
    assert (found.worst, found.best, found.method) == (0.0, 0.1, "exact")


def test_scores_that_differ_in_64_bits_alone_are_no_tie() -> None:
    (found,) = tie_ranges(parse("RR"), {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0 + 1e-9}})
    assert (found.best, found.method) == (0.5, "none")


def test_a_query_that_the_run_lacks_has_no_ties() -> None:
    (found,) = tie_ranges(parse("P@5"), {"q": {"a": 1}}, {})
    assert found == ("q", 0, 0, "none")


def test_groups_must_be_given() -> None:
    with pytest.raises(InputError, match="no AND/OR groups"):
        tie_ranges(parse("R(groups='first')"), {"q": {"a": 1}}, {"q": {"a": 1.0}})
