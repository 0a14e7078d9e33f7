"""What is drawn into a pool and what it hides, and what becomes of one that was changed."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

import harness
from harness.labels.judging_page import in_order
from harness.labels.pool import Drawing, draw, gather, lines_of, read_pool, write_pool
from retrievers.errors import InputError
from tests.support import small
from tests.support.labels_small import judgment, pool


def test_the_union_of_the_tops_is_asked_in_an_order_that_tells_nothing(results):
    found = draw(gather([results], 2), Drawing(depth=2, seed=3))
    assert found.drawn.population == found.drawn.sampled == len(found.queries) == len(small.QUERIES)
    read = harness.records.read(results)
    for query in found.queries:
        tops = {d for name in read.retrievers for d in read.rankings(name)[query.query_id].doc_ids[:2]}
        assert {document.id for document in query.documents} == tops
        assert query.inclusion == 1
        for document in query.documents:
            assert small.TEXTS[document.id] in document.text
    text = "".join(lines_of(found))
    assert not [name for name in read.retrievers if name in text]
    assert "score" not in text
    assert "rank" not in text


def test_a_seed_draws_one_pool_and_a_larger_sample_holds_the_smaller(results):
    material = gather([results], 5)
    orders = {tuple(q.query_id for q in draw(material, Drawing(seed=seed)).queries) for seed in (1, 1, 2, 3, 4)}
    assert 1 < len(orders) < 5
    drawn = [{q.query_id for q in draw(material, Drawing(sample=n, seed=4)).queries} for n in range(1, 7)]
    assert all(a < b for a, b in pairwise(drawn))
    assert {q.inclusion for q in draw(material, Drawing(sample=3, seed=4)).queries} == {0.5}
    with pytest.raises(InputError, match="--sample: 7 queries of 6"):
        draw(material, Drawing(sample=7))


def test_what_was_judged_is_not_asked_again(results):
    material = gather([results], 2)
    first = draw(material, Drawing(depth=2))
    one = first.queries[0]
    known = [judgment(one.query_id, document.id) for document in one.documents]
    rest = draw(material, Drawing(depth=2), known)
    assert one.query_id not in {query.query_id for query in rest.queries}
    assert rest.pairs == first.pairs - len(known)
    # A model is still asked: its grades beside people's are what the combined estimate rests on.
    assert draw(material, Drawing(depth=2, audience="llm"), known).pairs == first.pairs
    everything = [judgment(query.query_id, document.id) for query in first.queries for document in query.documents]
    with pytest.raises(InputError, match="nothing is left to judge"):
        draw(material, Drawing(depth=2), everything)


def test_several_folders_are_pooled_together(results, tmp_path):
    other = '[[retrievers]]\nname = "other"\nencoder = { kind = "hashing", dimensions = 8 }\n'
    data = results.parents[1] / "data"
    path = small.experiment(tmp_path, retrievers=other, name="other")
    path.write_text(path.read_text(encoding="utf-8").replace((tmp_path / "data").as_posix(), data.as_posix()))
    second = harness.run(path, harness.Options(results=tmp_path / "results")).folder
    both = gather([results, second], 1)
    assert all(both.tops[q] >= gather([results], 1).tops[q] for q in both.tops)


def test_results_over_other_documents_are_refused(results, tmp_path):
    path = small.experiment(tmp_path)
    (tmp_path / "data" / "apple.md").write_text("# apple\n\nsomething else", encoding="utf-8")
    other = harness.run(path, harness.Options(results=tmp_path / "results")).folder
    with pytest.raises(InputError, match="has other documents"):
        gather([results, other], 2)


def test_a_pool_is_read_back_and_never_written_over(tmp_path):
    write_pool(tmp_path / "pool.jsonl", pool())
    assert read_pool(tmp_path / "pool.jsonl") == pool()
    with pytest.raises(InputError, match="is there already"):
        write_pool(tmp_path / "pool.jsonl", pool())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("text 1 of 2", "text 9 of 2"), "was changed after it was made"),
        (lambda text: "\n".join(text.split("\n")[:-2]) + "\n", "was changed after it was made"),
        (lambda text: text[:-20], "is not JSON"),
        (lambda text: "", "is not a pool"),
        (lambda text: text.replace('"pool": 1', '"pool": 9'), "version 1"),
        (lambda text: text.replace('"depth"', '"deep"'), "the pool is damaged"),
    ],
)
def test_a_pool_that_was_changed_is_refused(tmp_path, change, message):
    path = tmp_path / "pool.jsonl"
    path.write_text(change("".join(lines_of(pool()))), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_pool(path)


def test_a_tenth_comes_again_later_and_in_no_fixed_place():
    made = pool(20, 10)
    order = in_order(made)
    again = [one for one in order if one.round == 2]
    assert len(order) == 220
    assert len(again) == 20
    for one in again:
        assert order.index(one) > order.index(one._replace(round=1))
    assert len({one.document for one in again}) > 3
    assert [one for one in in_order(made, repeated=0) if one.round == 2] == []
    assert json.dumps(order) == json.dumps(in_order(made))
