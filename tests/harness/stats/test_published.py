"""Tests of statistics against figures that others published."""

import csv
from pathlib import Path

import numpy as np
import pytest

from harness.stats.differences import paired_differences
from harness.stats.paired_tests import paired_t_test
from harness.stats.sign_flip import flip_signs
from harness.stats.signed_rank import signed_rank

PUBLISHED = Path(__file__).parents[2] / "data" / "published"


@pytest.fixture
def trec_8_runs() -> tuple[np.ndarray, np.ndarray]:
    with (PUBLISHED / "adhoc8_ap_125_126.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return (
        np.array([float(row["run125"]) for row in rows]),
        np.array([float(row["run126"]) for row in rows]),
    )


def test_the_t_test_of_two_trec_runs_is_that_of_urbano_lima_and_hanjalic(trec_8_runs):
    # Their published p; R's t.test(x, y, paired = TRUE) gives the same.
    result = paired_t_test(paired_differences(*trec_8_runs))
    assert result.p_value == pytest.approx(0.0013193972, abs=1e-10)


def test_exact_flips_of_two_trec_runs_are_within_the_draws_of_urbano(trec_8_runs):
    first, second = trec_8_runs
    test = flip_signs(first - second, 1e-10)
    # Ours, counted exactly: the scores have four decimals. Theirs was drawn: .001188.
    assert test.method == "convolved"
    assert test.two_sided == pytest.approx(0.00119149, abs=5e-9)
    assert abs(test.two_sided - 0.001188) < 5e-6


def test_the_exact_signed_rank_test_of_two_trec_runs(trec_8_runs):
    # Ours, by counting all patterns; no published figure is exact.
    result = signed_rank(paired_differences(*trec_8_runs))
    assert result.p_value == pytest.approx(0.0028211, abs=5e-8)


def test_the_depression_data_of_hollander_and_wolfe():
    # As R prints them: wilcox.test(x, y, paired = TRUE, alternative = "greater").
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    result = signed_rank(paired_differences(np.array(before), np.array(after)))
    assert result.w_plus == 40
    assert result.p_value / 2 == 0.01953125
