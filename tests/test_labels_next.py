"""What to judge next: the order, the bounds, and that no test is made of labels chosen this way."""

import json

import pytest

import harness
from harness import records
from harness.dataset import DatasetReference, load
from harness.evaluation.unjudged import open_pairs
from harness.labels.merge_labels import merge_into
from harness.labels.next import Next, next_to_judge
from harness.labels.pool import gather
from harness.stats.unjudged_bounds import Bounds
from retrievers.errors import InputError
from tests import small
from tests.labels_small import judgment, write

RELEVANT = {id_: docs for id_, _, docs in small.QUERIES}


@pytest.fixture
def begun(tmp_path):
    data = small.dataset(tmp_path / "data")
    rows = [{"id": id_, "query": text} for id_, text, _ in small.QUERIES]
    (data / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    path = small.experiment(tmp_path)
    return data, path, tmp_path


def run(begun):
    _, path, place = begun
    return harness.run(path, harness.Options(results=place / "results"))


def judge(pool, judge="ann"):
    said = []
    for line in pool.queries:
        (shown,) = line.documents
        more = {"pool": pool.digest, "text": shown.digest, "design": pool.drawn.design, "asked": 1}
        said.append(judgment(line.query_id, shown.id, 3 if shown.id in RELEVANT[line.query_id] else 0, judge, **more))
    return said


def test_judging_what_matters_most_until_it_is_decided(begun):
    data, _, place = begun
    results = run(begun)
    rounds, width, decided = 0, float("inf"), False
    while not decided and rounds < 20:
        found = next_to_judge(results, gather([results.folder], 5), ("bm25", "hashing"), 12, "policy")
        assert found.bounds.width <= width
        width, decided = found.bounds.width, found.bounds.decided or found.pool is None
        if found.pool is None:
            break
        assert found.measure == "DCG@3"
        assert 1 <= found.pool.pairs <= 12
        assert all(len(line.documents) == 1 for line in found.pool.queries)
        write(place / f"{rounds}.jsonl", judge(found.pool))
        merge_into([place / f"{rounds}.jsonl"], DatasetReference(data))
        results = run(begun)
        rounds += 1
    assert decided or found.pool is None
    assert rounds > 1
    # The folder remembers: these labels bound the difference, and make no score and no test.
    assert not results.scored
    labels = load(DatasetReference(data)).labels
    assert all(given.chosen and given.grades is None for given in labels.values())


@pytest.mark.parametrize(
    ("bounds", "unjudged", "said"),
    [
        (Bounds(0.1, 0.2), 7, "between +0.1000 and +0.2000, decided, whatever is judged next"),
        (Bounds(-0.1, 0.2), 7, "between -0.1000 and +0.2000, with 7 documents in these rankings that could still "),
        (Bounds(-0.1, 0.2), 0, "between -0.1000 and +0.2000, open only by how many other documents are relevant"),
        (Bounds(0.0, 0.0), 0, "between +0.0000 and +0.0000, with 0 documents in these rankings that could still "),
    ],
)
def test_decided_is_said_only_where_the_bounds_say_so(bounds, unjudged, said):
    assert said in Next("a", "b", "nDCG@3", bounds, unjudged, None).sentence()


def test_the_largest_change_comes_first(begun):
    results = run(begun)
    found = open_pairs(results, "bm25", "hashing")
    pool = next_to_judge(results, gather([results.folder], 5), ("bm25", "hashing"), 3, "policy").pool
    most = sorted((one.most for one in found.changes), reverse=True)[:3]
    by_key = {(one.query_id, one.document_id): one.most for one in found.changes}
    assert [by_key[line.query_id, line.documents[0].id] for line in pool.queries] == most
    # One judgment narrows the bounds by exactly what it could change.
    assert found.bounds.width == pytest.approx(sum(one.most for one in found.changes))


def test_a_retriever_that_is_not_there_is_named(begun):
    results = run(begun)
    with pytest.raises(InputError, match="no retriever 'x'"):
        next_to_judge(results, gather([results.folder], 5), ("bm25", "x"), 3, "policy")


def with_primary(begun, name):
    _, path, place = begun
    text = path.read_text(encoding="utf-8").replace('primary = "nDCG@3"', f'primary = "{name}"')
    path.write_text(text.replace("measures = [", f'measures = ["{name}", '), encoding="utf-8")
    return records.read(harness.run(path, harness.Options(results=place / "results")).folder)


def test_a_measure_without_bounds_is_refused(begun):
    results = with_primary(begun, "ERR@3")
    with pytest.raises(InputError, match="has no bounds under unjudged documents"):
        next_to_judge(results, gather([results.folder], 5), ("bm25", "hashing"), 3, "policy")


def test_reciprocal_rank_has_bounds_and_what_could_move_them_comes_first(begun):
    results = with_primary(begun, "RR@3")
    upcoming = next_to_judge(results, gather([results.folder], 5), ("bm25", "hashing"), 3, "policy")
    assert upcoming.pool.pairs == 3 and upcoming.bounds.low < upcoming.bounds.high
    moves = [one.most for one in open_pairs(results, "bm25", "hashing").changes]
    assert len(moves) == upcoming.unjudged and min(moves) > 0
    # Before anything is judged, the first place of a list is worth most.
    first = upcoming.pool.queries[0]
    tops = {results.rankings(name)[first.query_id].doc_ids[0] for name in ("bm25", "hashing")}
    assert first.documents[0].id in tops
