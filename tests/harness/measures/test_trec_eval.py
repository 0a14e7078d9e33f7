"""Every value that trec_eval gives for the files in tests/data/trec_eval, to the 4 decimals that it prints.

`tests/support/trec_golden.py` makes those files and says which program gave the values. What the real binaries print
for NIST's own files is compared in tests/test_outside.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from harness.dataset.trec import read_qrels
from harness.evaluation.runs import Conventions, score_runs
from harness.evaluation.scores import Scores
from harness.measures import Measure, MeasureValues, parse, score_run
from retrievers.errors import InputError
from retrievers.runs import read_run
from tests.support import trec_golden
from tests.support.scored import at_level
from tests.support.trec_golden import FOLDER

WHOLE = {
    "map": "AP", "recip_rank": "RR", "Rprec": "Rprec", "Rprec_mult_1.00": "Rprec", "bpref": "Bpref", "ndcg": "nDCG",
    "set_P": "SetP", "set_recall": "SetR", "set_F": "SetF", "set_map": "SetAP",
}  # fmt: skip
CUT = {"P": "P", "recall": "R", "map_cut": "AP", "ndcg_cut": "nDCG", "success": "Success"}


def ours(name: str, rel: int = 1) -> Measure | None:
    """The measure that trec_eval calls `name`, or None where only trec_eval has it."""
    if name in WHOLE:
        return at_level(WHOLE[name], rel)
    match = re.fullmatch(r"(\w+?)_(\d+)", name)
    return at_level(f"{CUT[match[1]]}@{match[2]}", rel) if match and match[1] in CUT else None


def expected(path: Path, rel: int = 1) -> dict[tuple[str, Measure], str]:
    """What a file of trec_eval says: (query or "all", measure) -> the value as it was printed."""
    lines = (line.split("\t") for line in path.read_text().splitlines() if line)
    named = ((query, ours(name.strip(), rel), value) for name, query, value in lines)
    return {(query, measure): value for query, measure, value in named if measure}


def printed(result: Scores | MeasureValues) -> dict[tuple[str, Measure], str]:
    """Every value as trec_eval prints it, and the means."""
    if isinstance(result, MeasureValues):
        values = dict(zip(map(str, result.measures), result.values, strict=True))
        ids: tuple[str, ...] = result.query_ids
    else:
        (run,) = result.retrievers
        values = {measure: of[run] for measure, of in result.values.items()}
        ids = result.ids
    cells = {
        (query, parse(measure)): f"{value:.4f}"
        for measure, row in values.items()
        for query, value in zip(ids, row, strict=True)
    }
    return cells | {("all", parse(measure)): f"{row[~np.isnan(row)].mean():.4f}" for measure, row in values.items()}


@pytest.mark.parametrize("rel", trec_golden.LEVELS)
@pytest.mark.parametrize(("option", "intersection", "size"), [("q", True, 18 * 39), ("c", False, 39)])
def test_every_value_of_trec_eval(option: str, intersection: bool, size: int, rel: int) -> None:
    want = expected(FOLDER / f"expected.l{rel}.{option}.txt", rel)
    assert len(want) == size
    measures = tuple(dict.fromkeys(measure for _, measure in want))
    result = score_runs(FOLDER / "drawn.qrels", [FOLDER / "drawn.run"], measures,
                           conventions=Conventions(intersection=intersection))  # fmt: skip
    got = printed(result)
    assert {cell: got[cell] for cell in want} == want


def test_the_files_are_those_that_trec_eval_made() -> None:
    for name, text in trec_golden.files().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{name}: run python -m tests.support.trec_golden"


# What trec_eval 9.0.8 and 10.0 printed (-q, built with gcc for x86-64) for query q3, whose three scores differ by 1e-8.
APART = {
    "map": ("1.0000", "0.5833"),
    "Rprec": ("1.0000", "0.5000"),
    "bpref": ("1.0000", "1.0000"),
    "recip_rank": ("1.0000", "0.5000"),
    "P_5": ("0.4000", "0.4000"),
    "recall_5": ("1.0000", "1.0000"),
    "ndcg": ("1.0000", "0.6199"),
    "ndcg_cut_3": ("1.0000", "0.6199"),
    "success_1": ("1.0000", "0.0000"),
    "success_5": ("1.0000", "1.0000"),
}


@pytest.mark.parametrize(("precision", "version"), [("single", 0), ("double", 1)])
def test_scores_that_part_only_beyond_32_bits_tie_in_9_0_8_and_not_in_10_0(precision: str, version: int) -> None:
    run = {"q3": {"d9": 1.00000001, "d1": 1.00000002, "d0": 1.00000003}}
    measures = {name: ours(name) for name in APART}
    scores = score_run(list(measures.values()), {"q3": {"d1": 1, "d9": 2}}, run.items(), precision=precision)
    got = dict(zip(scores.measures, scores.values[:, 0], strict=True))
    assert {name: f"{got[measure]:.4f}" for name, measure in measures.items()} == {
        name: values[version] for name, values in APART.items()
    }


def test_a_document_twice_stops_us_as_it_stops_trec_eval(tmp_path: Path) -> None:
    # Both versions end with code 4: "duplicate docs".
    qrels, run = tmp_path / "dup.qrels", tmp_path / "dup.run"
    qrels.write_text("q1 0 d1 1\nq1 0 d1 2\n")
    run.write_text("q1 Q0 d1 1 0.5 t\nq1 Q0 d1 2 0.4 t\n")
    with pytest.raises(InputError, match=r"dup\.qrels:2: document 'd1' is judged twice for query 'q1'"):
        read_qrels(qrels)
    with pytest.raises(InputError, match=r"dup\.run:2: document 'd1' is ranked twice for query 'q1'"):
        read_run(run)
