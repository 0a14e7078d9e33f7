from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.runs import Conventions, score_runs
from harness.measures import parse_all
from retrievers.external import SavedRun
from retrievers.meter import Meter
from retrievers.types import RESOLUTION, Document, Query, ranked, rounded

SCORES = st.one_of(
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, 0.5, 0.5 + 1e-9, 1.0, -1.0, 5e-324, 1e300, 1.7e9, 1.7e9 - 10]),
    st.floats(-1e-9, 1e-9),
)
HITS = st.dictionaries(st.text(min_size=1, max_size=3), SCORES, max_size=12)


@given(HITS)
def test_scores_fall_and_equals_stand_by_descending_id(hits: dict[str, float]) -> None:
    ranking = ranked(list(hits), list(hits.values()))
    assert sorted(ranking.doc_ids) == sorted(hits)
    pairs = list(zip(ranking.scores.tolist(), ranking.doc_ids, strict=True))
    assert pairs == sorted(pairs, reverse=True)


@given(HITS)
def test_ranking_keeps_every_score_as_it_was_given(hits: dict[str, float]) -> None:
    assert {hit.doc_id: hit.score for hit in ranked(list(hits), list(hits.values()))} == hits


@given(HITS)
def test_rounding_again_changes_nothing(hits: dict[str, float]) -> None:
    once = rounded(list(hits.values()))
    assert rounded(once).tolist() == once.tolist()


@given(HITS, st.randoms())
def test_the_order_of_arrival_does_not_matter(hits: dict[str, float], random: object) -> None:
    shuffled = list(hits.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert ranked([i for i, _ in shuffled], [s for _, s in shuffled]) == ranked(list(hits), list(hits.values()))


@given(HITS)
def test_scores_move_by_no_more_than_the_resolution(hits: dict[str, float]) -> None:
    scores = np.array(list(hits.values()))
    largest = np.abs(scores).max(initial=0.0)
    assert (np.abs(rounded(scores) - scores) <= 0.5000001 * RESOLUTION * largest + 5e-324).all()


def test_float_noise_between_engines_is_no_difference_of_ours_and_a_difference_of_others() -> None:
    assert ranked(["a", "b"], rounded([0.8000001, 0.8])).doc_ids == ("b", "a")
    assert ranked(["a", "b"], rounded([0.800001, 0.8])).doc_ids == ("a", "b")
    assert ranked(["a", "b"], [0.8000001, 0.8]).doc_ids == ("a", "b")


@given(st.lists(HITS.filter(bool), min_size=1, max_size=4))
def test_a_saved_run_is_ordered_as_score_double_orders_it(queries: list[dict[str, float]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "theirs.trec"
        ids = [{f"d{n}": score for n, score in enumerate(one.values())} for one in queries]
        lines = [f"q{n} Q0 {doc} 1 {score!r} t\n" for n, one in enumerate(ids) for doc, score in one.items()]
        path.write_text("".join(lines))
        retriever = SavedRun(path=str(path))
        retriever.index([Document(doc, "", "x") for one in ids for doc in one], Meter())
        asked = [Query(f"q{n}", "x") for n in range(len(ids))]
        ours = [list(ranking.doc_ids) for ranking in retriever.search(asked, 100, Meter())]
        qrels = Path(folder) / "qrels.trec"
        qrels.write_text("".join(f"{query.id} 0 d0 1\n" for query in asked))
        scored = score_runs(qrels, [path], parse_all(["RR"]), conventions=Conventions(precision="double"))
        assert ours == [scored.lists["theirs"]()[query.id] for query in asked]


def test_what_is_no_ranking_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        ranked(["a"], [float("nan")])
    with pytest.raises(ValueError, match="2 ids for 1 scores"):
        ranked(["a", "b"], [1.0])
    assert not ranked(["a"], [1.0]).scores.flags.writeable
    assert np.array_equal(ranked([], []).scores, [])
