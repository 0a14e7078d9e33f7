import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrievers.types import RESOLUTION, ranked

SCORES = st.one_of(
    st.floats(-1e6, 1e6), st.sampled_from([0.0, 0.5, 0.5 + 1e-9, 1.0, -1.0, 5e-324, 1e300]), st.floats(-1e-9, 1e-9)
)
HITS = st.dictionaries(st.text(min_size=1, max_size=3), SCORES, max_size=12)


@given(HITS)
def test_scores_fall_and_equals_stand_by_descending_id(hits: dict[str, float]) -> None:
    ranking = ranked(list(hits), list(hits.values()))
    assert sorted(ranking.doc_ids) == sorted(hits)
    pairs = list(zip(ranking.scores.tolist(), ranking.doc_ids, strict=True))
    assert pairs == sorted(pairs, reverse=True)


@given(HITS)
def test_ranking_again_changes_nothing(hits: dict[str, float]) -> None:
    once = ranked(list(hits), list(hits.values()))
    assert ranked(once.doc_ids, once.scores) == once


@given(HITS, st.randoms())
def test_the_order_of_arrival_does_not_matter(hits: dict[str, float], random: object) -> None:
    shuffled = list(hits.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert ranked([i for i, _ in shuffled], [s for _, s in shuffled]) == ranked(list(hits), list(hits.values()))


@given(HITS)
def test_scores_move_by_no_more_than_the_resolution(hits: dict[str, float]) -> None:
    ranking = ranked(list(hits), list(hits.values()))
    largest = max(map(abs, hits.values()), default=0.0)
    for hit in ranking:
        assert abs(hit.score - hits[hit.doc_id]) <= 0.5000001 * RESOLUTION * largest + 5e-324


def test_float_noise_between_engines_is_no_difference() -> None:
    assert ranked(["a", "b"], [0.8000001, 0.8]).doc_ids == ("b", "a")
    assert ranked(["a", "b"], [0.800001, 0.8]).doc_ids == ("a", "b")


def test_what_is_no_ranking_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        ranked(["a"], [float("nan")])
    with pytest.raises(ValueError, match="2 ids for 1 scores"):
        ranked(["a", "b"], [1.0])
    assert not ranked(["a"], [1.0]).scores.flags.writeable
    assert np.array_equal(ranked([], []).scores, [])
