"""The max-T test of many pairs, beside that of their differences."""

from itertools import combinations

import numpy as np
import pytest

from harness.stats.max_t import max_t_family
from harness.stats.pair_families import max_t_pair_family


@pytest.mark.parametrize("units", [9, 60, 200])
@pytest.mark.parametrize("retrievers", [2, 5])
def test_it_is_the_test_of_the_differences(units, retrievers):
    random = np.random.default_rng(units + retrievers)
    scores = random.integers(0, 5, (units, retrievers)) / 4
    scores[:, -1] = scores[:, 0]  # a pair without a difference
    is_first = np.arange(units) < units // 2
    slices = [
        np.where(is_first[:, None], scores, 0.0),
        np.where(is_first[:, None], 0.0, scores),
    ]
    pairs = list(combinations(range(retrievers), 2))
    differences = np.column_stack(
        [part[:, a] - part[:, b] for part in slices for a, b in pairs]
    )
    expected = max_t_family(differences, seed=3)
    assert max_t_pair_family(slices, pairs, seed=3) == pytest.approx(expected, abs=1e-4)
