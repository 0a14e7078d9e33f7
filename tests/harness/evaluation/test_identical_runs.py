"""Runs that rank the same are recognised, and runs that only score the same are not taken for them."""

import pytest

from harness.evaluation.compare import compare
from harness.evaluation.runs import score_runs
from harness.measures import parse_all
from harness.stats.settings import Settings
from tests.support.scored import cell

QUERIES = [f"q{i}" for i in range(12)]


def verdict(folder, first, second, *, margin=None):
    """The verdict on two runs: each gives a query's hits, document -> score."""
    qrels = folder / "qrels.trec"
    qrels.write_text("".join(f"{query} 0 good 1\n" for query in QUERIES))
    paths = []
    for name, hits in (("first", first), ("second", second)):
        path = folder / f"{name}.run"
        path.write_text("".join(f"{q} Q0 {doc} 1 {score} t\n" for q in QUERIES for doc, score in hits.items()))
        paths.append(path)
    found = score_runs(qrels, paths, parse_all(["P@2"]))
    (row,) = compare(found, settings=Settings(margin=margin))
    return cell(row)


SAME = {"good": 3.0, "b": 2.0, "c": 1.0}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"good": 30.0, "b": 20.0, "d": 10.0}, "undecided: identical on these queries"),  # other scores; from rank 3 on
        ({"good": 3.0, "c": 2.0, "b": 1.0}, "undecided: no query differs"),
        ({"b": 3.0, "good": 2.0}, "undecided: no query differs"),
    ],
)
def test_rankings_are_identical_down_to_the_cutoff_or_not(tmp_path, other, said):
    assert verdict(tmp_path, SAME, other) == said


def test_identical_runs_are_equivalent_where_the_queries_are_enough(tmp_path):
    """Twelve queries exclude a loss of 0.3 (0.7^12 = 0.014), and none of 0.01: 299 are needed for that."""
    assert verdict(tmp_path, SAME, SAME, margin=0.3) == "equivalent: identical on these queries"
    assert verdict(tmp_path, SAME, SAME, margin=0.01) == "undecided: identical on these queries"


def test_scores_that_are_equal_as_32_bit_floats_are_ordered_by_id(tmp_path):
    ties = {"good": 1.0, "b": 1.0 + 1e-12}  # trec_eval 9.0.8 reads both as 1, and "good" comes after "b"
    assert verdict(tmp_path, {"good": 2.0, "b": 1.0}, ties) == "undecided: identical on these queries"
