"""Every value that the real trec_eval printed for these files, to its 4 decimals.

The expected outputs are NIST's own test files (9.0.8) and what the 9.0.8 and 10.0 binaries printed, gcc on
x86-64; the data's README names the commands.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from harness.dataset.trec import read_qrels, read_run
from harness.measures import Measure, parse, score_run
from harness.scoring.trec_runs import Conventions, ScoredRun, score_runs
from retrievers.errors import InputError

DATA = Path(__file__).parents[1].parent / "shared" / "data" / "trec_eval"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"the trec_eval test data is not at {DATA}")

WHOLE = {
    "map": "AP",
    "recip_rank": "RR",
    "Rprec": "Rprec",
    "Rprec_mult_1.00": "Rprec",
    "bpref": "Bpref",
    "ndcg": "nDCG",
    "set_P": "SetP",
    "set_recall": "SetR",
    "set_F": "SetF",
    "set_map": "SetAP",
}
CUT = {"P": "P", "recall": "R", "map_cut": "AP", "ndcg_cut": "nDCG", "success": "Success"}


def ours(name: str, rel: int = 1) -> Measure | None:
    """The measure that trec_eval calls `name`, or None where only trec_eval has it."""
    if name in WHOLE:
        return parse(WHOLE[name], rel=rel)
    match = re.fullmatch(r"(\w+?)_(\d+)", name)
    return parse(f"{CUT[match[1]]}@{match[2]}", rel=rel) if match and match[1] in CUT else None


def expected(path: Path, rel: int = 1) -> dict[tuple[str, Measure], str]:
    """What a file of trec_eval says: (query or "all", measure) -> the value as it was printed."""
    lines = (line.split("\t") for line in path.read_text().splitlines() if line)
    named = ((query, ours(name.strip(), rel), value) for name, query, value in lines)
    return {(query, measure): value for query, measure, value in named if measure}


def printed(result: ScoredRun) -> dict[tuple[str, Measure], str]:
    scores = result.scores
    cells = {
        (query, measure): f"{value:.4f}"
        for measure, row in zip(scores.measures, scores.values, strict=True)
        for query, value in zip(scores.query_ids, row, strict=True)
    }
    return cells | {("all", measure): f"{mean:.4f}" for measure, mean in scores.means().items()}


MET = Conventions(intersection=True)
ALL = Conventions()
DOUBLE = Conventions(precision="double")


@pytest.mark.parametrize(
    ("folder", "golden", "qrels", "run", "conventions", "rel", "size"),
    [
        ("official", "out.test", "qrels.test", "results.test", MET, 1, 13),
        ("official", "out.test.a", "qrels.test", "results.test", MET, 1, 48),
        ("official", "out.test.aq", "qrels.test", "results.test", MET, 1, 192),
        ("official", "out.test.aqc", "qrels.test", "results.trunc", ALL, 1, 144),
        ("official", "out.test.aql", "qrels.rel_level", "results.test", MET, 2, 192),
        ("official", "out.test.meas_params", "qrels.test", "results.test", MET, 1, 44),
        ("cranfield_bm25", "expected_9.0.8.test.txt", "test.qrel", "run.bm25.top100.txt", MET, 1, 4294),
        ("quirks", "expected_9.0.8_q.txt", "quirks.qrels", "quirks.run", MET, 1, 65),
        ("quirks", "expected_9.0.8_qc.txt", "quirks.qrels", "quirks.run", ALL, 1, 65),
        ("quirks", "expected_10.0_q.txt", "quirks.qrels", "quirks.run", DOUBLE, 1, 39),
        ("quirks", "expected_10.0_qc.txt", "quirks.qrels", "quirks.run", DOUBLE, 1, 78),
    ],
)
def test_every_value_of_trec_eval(
    folder: str, golden: str, qrels: str, run: str, conventions: Conventions, rel: int, size: int
) -> None:
    want = expected(DATA / folder / golden, rel)
    assert len(want) == size
    measures = tuple(dict.fromkeys(measure for _, measure in want))
    (result,) = score_runs(DATA / folder / qrels, [DATA / folder / run], measures, conventions=conventions)
    got = printed(result)
    assert {cell: got[cell] for cell in want} == want


def test_every_value_of_trec_eval_with_no_more_than_100_documents_a_query() -> None:
    want = expected(DATA / "official/out.test.aqcM")
    assert len(want) == 144
    judgments, run = read_qrels(DATA / "official/qrels.test"), read_run(DATA / "official/results.trunc")
    first = {q: sorted(hits.items(), key=lambda hit: (np.float32(hit[1]), hit[0]))[-100:] for q, hits in run.items()}
    measures = tuple(dict.fromkeys(measure for _, measure in want))
    scores = score_run(measures, judgments, ((q, dict(hits)) for q, hits in first.items()))
    got = printed(ScoredRun("", scores, ()))
    assert {cell: got[cell] for cell in want} == want


def test_scores_that_part_only_beyond_32_bits_tie_in_9_0_8_and_not_in_10_0() -> None:
    judgments, run = read_qrels(DATA / "quirks/quirks.qrels"), read_run(DATA / "quirks/quirks.run")
    one = {"q3": judgments["q3"]}
    assert score_run([parse("AP")], one, run.items()).values[0, 0] == 1
    assert score_run([parse("AP")], one, run.items(), precision="double").values[0, 0] == pytest.approx(0.58333333)


def test_a_document_twice_stops_us_as_it_stops_trec_eval() -> None:
    with pytest.raises(InputError, match=r"dup\.qrels:2: document 'd1' is judged twice for query 'q1'"):
        read_qrels(DATA / "quirks/dup.qrels")
    with pytest.raises(InputError, match=r"dup\.run:2: document 'd1' is ranked twice for query 'q1'"):
        read_run(DATA / "quirks/dup.run")
