"""Edges of scoring: names of folders, notes of queries, states without hits."""

from pathlib import Path

import numpy as np
import pytest

from harness.scoring.conventions import RunConventions, counting_queries
from harness.scoring.run_names import unique_folder_names
from harness.scoring.states import _mean
from harness.stats.differences import paired_differences
from harness.stats.paired_tests import PairObservations, decide_pair
from harness.stats.sign_flip import flip_signs
from harness.stats.signed_rank import signed_rank
from harness.stats.units import cluster_units
from retrievers.errors import InputError


def test_the_repeated_folder_is_named() -> None:
    with pytest.raises(InputError, match="/b: is named twice"):
        unique_folder_names([Path("/a"), Path("/b"), Path("/b")])
    assert unique_folder_names([Path("/a"), Path("/b/a")]) == ["/a", "b/a"]


def test_a_query_that_is_left_out_is_not_said_to_count() -> None:
    judged = {"a": {"x": 0}, "b": {"x": 1}}
    skipping = counting_queries(judged, {"b"}, RunConventions(skip_no_relevant=True))
    assert skipping.notes == [
        "judged queries without a relevant document: 1 (left out)"
    ]
    shared = counting_queries(judged, {"b"}, RunConventions(intersection=True))
    assert shared.notes == ["judged queries that the run lacks: 1 (left out)"]


def test_a_state_without_hits_is_not_unlabelled() -> None:
    assert _mean([]) == 1.0


def test_smallest_p_of_flips_follows_weights() -> None:
    a = np.tile([0.7, 0.3], 8)
    b = np.full(16, 0.5)
    names = [str(index // 2) for index in range(16)]
    units = cluster_units(names, np.tile([2.0, 1.0], 8))
    by_unit = paired_differences(units.means(a), units.means(b))
    flips = flip_signs(units.sums(a - b), 1e-10)
    pair = PairObservations(
        paired_differences(a, b), units, flips, signed_rank(by_unit)
    )
    outcome = decide_pair(pair, "randomization")
    assert outcome.p_minimum == outcome.p_value == 2 / 2**8
