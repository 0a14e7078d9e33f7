"""An addition on files of others, for who has them: no clone needs them.

They are looked for in the folder that HARNESS_TEST_DATA names, else in one called
`shared` beside the checkout; see tests/README.md. `pytest -m "not outside"` leaves them
out.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import harness
from harness.scoring.conventions import RunConventions
from harness.scoring.trec_runs import score_trec_runs
from retrievers import BM25
from tests.harness.measures.test_trec_eval import expected, printed

pytestmark = pytest.mark.outside

FOLDER = Path(
    os.environ.get("HARNESS_TEST_DATA") or Path(__file__).parents[2] / "shared"
)


def outside(part: str) -> Path:
    """A part of the outside folder, or a skip where it is absent."""
    if not (FOLDER / part).exists():
        pytest.skip(f"there is no {FOLDER / part}: an addition to the suite")
    return FOLDER / part


# trec_eval: NIST's own test files (9.0.8), and what the 9.0.8 and 10.0 binaries
# printed, gcc on x86-64.

MET = RunConventions(intersection=True)
ALL = RunConventions()
DOUBLE = RunConventions(precision="double")


@pytest.mark.parametrize(
    ("folder", "golden", "qrels", "ranking", "conventions", "rel", "rows"),
    [
        ("official", "out.test", "qrels.test", "results.test", MET, 1, 1),
        ("official", "out.test.a", "qrels.test", "results.test", MET, 1, 1),
        ("official", "out.test.aq", "qrels.test", "results.test", MET, 1, 4),
        ("official", "out.test.aqc", "qrels.test", "results.trunc", ALL, 1, 3),
        ("official", "out.test.aql", "qrels.rel_level", "results.test", MET, 2, 4),
        ("official", "out.test.meas_params", "qrels.test", "results.test", MET, 1, 4),
        (
            "cranfield_bm25",
            "expected_9.0.8.test.txt",
            "test.qrel",
            "run.bm25.top100.txt",
            MET,
            1,
            226,
        ),
        ("quirks", "expected_9.0.8_q.txt", "quirks.qrels", "quirks.run", MET, 1, 5),
        ("quirks", "expected_9.0.8_qc.txt", "quirks.qrels", "quirks.run", ALL, 1, 5),
        ("quirks", "expected_10.0_q.txt", "quirks.qrels", "quirks.run", DOUBLE, 1, 3),
        ("quirks", "expected_10.0_qc.txt", "quirks.qrels", "quirks.run", DOUBLE, 1, 6),
    ],
)
def test_every_value_of_trec_eval(
    folder, golden, qrels, ranking, conventions, rel, rows
):
    data = outside(f"data/trec_eval/{folder}")
    want = expected(data / golden, rel)
    measures = tuple(dict.fromkeys(measure for _, measure in want))
    # Every measure that both have is in each of the rows: queries, or their mean.
    assert len(want) == rows * len(measures)
    got = printed(
        score_trec_runs(
            data / qrels, [data / ranking], measures, conventions=conventions
        )
    )
    assert {cell: got[cell] for cell in want} == want


@pytest.mark.parametrize(
    ("k1", "b", "ndcg"),
    # Ours; published for the same constants, by implementation: 0.676 to 0.687
    # (bm25s, Lù 2024, table of BEIR).
    [(0.9, 0.4, 0.6817037324933621), (1.2, 0.75, 0.6843386689324039)],
)
def test_bm25_on_scifact_is_within_the_published_implementations(
    k1: float, b: float, ndcg: float
) -> None:
    retrievers = {"bm25": BM25(k1=k1, b=b)}
    folder = outside("data/scifact")
    results = harness.evaluate(folder, None, None, retrievers, measures=[])
    [mean] = results.summary["mean"]
    assert mean == pytest.approx(ndcg, abs=1e-12)
    assert 0.676 <= mean <= 0.687
