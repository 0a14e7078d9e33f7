"""Queries without labels.

They are found by init, answered by run, drawn into a pool that hides its retrievers,
and judged.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import harness
from harness.dataset import DatasetReference, Labels, load_dataset, parse_reference
from harness.labels.draw_pool import (
    PoolMaterial,
    PoolOptions,
    draw_pool,
    read_material,
)
from harness.labels.judging_order import judging_order
from harness.labels.merge import merge_into_dataset
from harness.labels.pool import PooledQuery, pool_lines, read_pool, write_pool
from harness.report.write import write_report
from retrievers.errors import InputError
from tests.support import small
from tests.support.labels_small import as_person, judged, judgment, pool, write
from tests.support.small import refusal


@pytest.fixture
def folder(tmp_path):
    """The small data set without its labels."""
    return small.dataset(tmp_path / "data", labelled=False)


TEXTS = [text for _, text, _ in small.QUERIES]
ROWS = [{"id": id_, "query": text} for id_, text, _ in small.QUERIES]
FORMS = {
    "txt": "\n".join(TEXTS) + "\n\n",
    "csv": "\n".join(["query", *TEXTS]) + "\n",
    "jsonl": "\n".join(map(json.dumps, ROWS)),
    "json": json.dumps(ROWS),
}


@pytest.mark.parametrize("form", FORMS)
def test_questions_without_labels_are_a_beginning(folder, in_tmp, form, call):
    (folder / "queries.json").unlink()
    (folder / f"queries.{form}").write_text(FORMS[form], encoding="utf-8")
    output = call("init", "data", "--output", "begun.toml", code=0).out
    assert (
        "6 documents, 6 queries without labels" in output
        and "harness pool results/begun" in output
    )
    dataset = load_dataset(parse_reference(folder))
    assert [query.text for query in dataset.queries] == TEXTS and dataset.labels == {}


@pytest.fixture
def path_without_labels(folder, tmp_path) -> Path:
    """An experiment on queries without labels."""
    return small.experiment(tmp_path, report=True)


def test_a_run_without_labels_has_rankings_and_no_scores(
    path_without_labels, tmp_path, call
):
    results_folder = tmp_path / "results"

    output = call("run", path_without_labels, "--results", results_folder, code=0).out

    assert "bm25 and hashing:" in output and "next: harness pool" in output
    results = harness.records.read_results(results_folder / "small")
    assert not results.scored and len(results.queries) == 6
    assert all(len(results.rankings(name)) == 6 for name in results.retrievers)
    for name in ("scores", "summary", "comparisons", "tests"):
        table = (results.folder / f"{name}.csv").read_text(encoding="utf-8")
        assert len(table.splitlines()) == 1, name
    assert (results.folder / "qrels.trec").read_text() == ""


def test_the_report_of_a_run_without_labels_names_the_next_step(
    path_without_labels, tmp_path, call
):
    results_folder = tmp_path / "results"

    call("run", path_without_labels, "--results", results_folder, code=0)

    page = (results_folder / "small" / "report.html").read_text(encoding="utf-8")
    assert "No query has labels" in page and "harness pool" in page
    assert re.search(r"takes about \d+ minutes? \(\d+ query-document pairs\)", page)
    body = page.partition("</style>")[2].partition("<script>")[0]
    assert "shown" not in body
    report = (results_folder / "small" / "report.md").read_text(encoding="utf-8")
    assert "rank-biased overlap" in report


def test_a_run_without_labels_prints_no_scores_as_json(
    path_without_labels, tmp_path, call
):
    options = ("--results", tmp_path / "results", "--json")

    output = call("run", path_without_labels, *options, code=0).out

    assert json.loads(output)["scores"] == []


BY_PEOPLE = ("q-fruit", "q-wheels", "q-swim")
BY_MODEL = ("q-rails", "q-green", "q-drive")


@pytest.fixture
def judged_folder(folder) -> Path:
    """The data set with judgments of people for three queries, of a model for all."""
    by_model = judged(folder, [*BY_PEOPLE, *BY_MODEL], "m", "llm")
    by_people = judged(folder, BY_PEOPLE, inclusion=0.5)
    write(folder / "judgments.jsonl", [*by_people, *by_model])
    return folder


def test_judgments_beside_the_queries_are_their_labels(judged_folder):
    labels = load_dataset(parse_reference(judged_folder)).labels

    sources = {query_id: labels[query_id].source for query_id in labels}
    assert sources == {
        "q-fruit": "people",
        "q-wheels": "people",
        "q-swim": "people",
        "q-rails": "model",
        "q-green": "model",
        "q-drive": "model",
    }


def test_scores_use_the_queries_of_people(path_without_labels, judged_folder, tmp_path):
    options = harness.RunOptions(results=tmp_path / "results")

    results = harness.run(path_without_labels, options)

    assert set(results.scores["query_id"]) == set(BY_PEOPLE)
    # Those of the model are in labels.jsonl.
    assert all(len(results.rankings(name)) == 6 for name in results.retrievers)
    assert results.queries["q-rails"].labels.source == "model"
    assert results.queries["q-fruit"].labels.inclusion == 0.5
    write_report(results)


def test_a_text_that_changed_after_it_was_judged_is_noted(judged_folder):
    page = judged_folder / "apple.md"
    page.write_text("# apple\n\nanother text", encoding="utf-8")

    dataset = load_dataset(parse_reference(judged_folder))

    assert "q-fruit apple" in dataset.data_quality["changed-text"]


def test_a_judged_document_that_is_gone_is_refused(judged_folder):
    (judged_folder / "apple.md").unlink()

    message = "judges document 'apple' for query 'q-fruit', which does not exist"
    with pytest.raises(InputError, match=message):
        load_dataset(parse_reference(judged_folder))


def test_the_next_look_draws_what_it_lacks_and_the_looks_nest(folder, tmp_path, call):
    looks = "[statistics]\nlooks = { queries = [2, 4] }\n"
    path = small.experiment(tmp_path, more=looks)
    results_folder = tmp_path / "results"
    drawn = []
    outputs = []
    for look in (2, 4):
        outputs.append(call("run", path, "--results", results_folder, code=0).out)
        file = tmp_path / f"pool-{look}.jsonl"
        call("pool", results_folder / "small", "--next-look", "--output", file, code=0)
        pool = read_pool(file)
        drawn.append({query.query_id for query in pool.queries})
        with (folder / "judgments.jsonl").open("a", encoding="utf-8") as judgments:
            judgments.writelines(judgment.line() for judgment in as_person(pool))
    assert list(map(len, drawn)) == [2, 2] and not drawn[0] & drawn[1]
    outputs.append(call("run", path, "--results", results_folder, code=0).out)
    manifest = harness.records.read_results(results_folder / "small").manifest
    assert manifest.earlier_looks == (2,), "the sample grew, and no label changed"
    # none differs
    next_look = "Next look: 4 labelled queries (chance to decide unknown):"
    command = f"harness pool {(results_folder / 'small').as_posix()} --next-look"
    assert f"{next_look}\n{command}\n" in outputs[1]
    assert re.search(
        r"Undecided at the last look, with \d+ labels of 4 queries\.", outputs[2]
    )
    error_output = call(
        "pool",
        results_folder / "small",
        "--next-look",
        "--output",
        tmp_path / "p.jsonl",
        code=2,
    )
    assert "4 queries are scored, and the last look is planned at 4" in error_output.err


def test_a_look_counts_a_labelled_query_whatever_its_duplicate(tmp_path):
    looks = "[statistics]\nlooks = { queries = [1, 2] }\n"
    rows = [
        {"id": "labelled", "query": "apples"},
        {"id": "duplicate", "query": "Apples"},
        {"id": "other", "query": "cars"},
    ]
    small.dataset(tmp_path / "data")
    (tmp_path / "data" / "queries.json").write_text(json.dumps(rows), encoding="utf-8")
    results = small.ran(tmp_path, more=looks)
    unlabelled = read_material([results.folder], 3)
    labels = {"labelled": Labels({"apple": 1})}
    dataset = replace(unlabelled.dataset, labels=labels)
    material = replace(unlabelled, dataset=dataset)

    for seed in range(5):
        options = PoolOptions(depth=3, seed=seed, next_look=True)
        assert drawn_ids(material, options) == ["other"]


def drawn_ids(material: PoolMaterial, options: PoolOptions) -> list[str]:
    """Return the ids of the queries of a pool."""
    return [query.query_id for query in draw_pool(material, options).queries]


def document_ids(query: PooledQuery) -> list[str]:
    return [document.id for document in query.documents]


def test_the_union_of_the_tops_is_asked_in_an_order_that_tells_nothing(results):
    pool = draw_pool(read_material([results], 2), PoolOptions(depth=2, seed=3))
    results_read = harness.records.read_results(results)
    assert (
        pool.drawn.population
        == pool.drawn.sampled
        == len(pool.queries)
        == len(small.QUERIES)
    )
    for query in pool.queries:
        tops = {
            d
            for name in results_read.retrievers
            for d in results_read.rankings(name)[query.query_id].doc_ids[:2]
        }
        assert {document.id for document in query.documents} == tops
        assert query.inclusion == 1
        assert all(
            small.TEXTS[document.id] in document.text for document in query.documents
        )
    pooled_ids = [document_ids(query) for query in pool.queries]
    assert any(ids != sorted(ids) for ids in pooled_ids)
    text = "".join(pool_lines(pool))
    assert not [
        word for word in (*results_read.retrievers, "score", "rank") if word in text
    ]


def test_a_seed_draws_one_pool_and_a_larger_sample_holds_the_smaller(results):
    material = read_material([results], 5)
    orders = {
        tuple(drawn_ids(material, PoolOptions(seed=seed))) for seed in (1, 1, 2, 3, 4)
    }
    assert 1 < len(orders) < 5
    drawn = [
        set(drawn_ids(material, PoolOptions(sample=n, seed=4))) for n in range(1, 7)
    ]
    assert all(a < b for a, b in pairwise(drawn))
    assert {
        q.inclusion for q in draw_pool(material, PoolOptions(sample=3, seed=4)).queries
    } == {0.5}
    assert "--sample: 7 queries of 6" in str(
        refusal(draw_pool, material, PoolOptions(sample=7))
    )


def test_what_was_judged_is_not_asked_again(results):
    material = read_material([results], 2)
    first = draw_pool(material, PoolOptions(depth=2))
    everything = [
        judgment(query.query_id, document.id)
        for query in first.queries
        for document in query.documents
    ]
    first_id = first.queries[0].query_id
    judged = [label for label in everything if label.query_id == first_id]
    remaining_pool = draw_pool(material, PoolOptions(depth=2), judged)
    assert first.queries[0].query_id not in {
        query.query_id for query in remaining_pool.queries
    }
    assert remaining_pool.pair_count == first.pair_count - len(judged)
    # A model judges them, too: the combined estimate needs grades of both.
    assert (
        draw_pool(material, PoolOptions(depth=2, audience="llm"), judged).pair_count
        == first.pair_count
    )
    assert "nothing is left to judge" in str(
        refusal(draw_pool, material, PoolOptions(depth=2), everything)
    )


def test_several_folders_are_pooled_together_where_their_documents_are_the_same(
    results, tmp_path
):
    other = (
        '[[retrievers]]\nname = "other"\n'
        'encoder = { kind = "hashing", dimensions = 8 }\n'
    )
    path = small.experiment(tmp_path, retrievers=other)
    second = harness.run(path, harness.RunOptions(results=tmp_path / "same")).folder
    both = read_material([results, second], 1)
    single = read_material([results], 1)
    assert (
        all(
            both.top_documents[q] >= single.top_documents[q] for q in both.top_documents
        )
        and both.top_documents != single.top_documents
    )
    (tmp_path / "data" / "apple.md").write_text(
        "# apple\n\nsomething else", encoding="utf-8"
    )
    with pytest.raises(InputError, match="has other documents"):
        read_material(
            [
                results,
                harness.run(
                    path, harness.RunOptions(results=tmp_path / "changed")
                ).folder,
            ],
            2,
        )


POOLS = [
    (
        lambda text: text.replace("text 1 of 2", "text 9 of 2"),
        "was changed after it was made",
    ),
    (lambda text: "", "is not a pool"),
    (lambda text: text.replace('"pool": 1', '"pool": 9'), "version 1"),
    (lambda text: text.replace('"depth"', '"deep"'), "the pool is damaged"),
]


@pytest.mark.parametrize(("change", "message"), POOLS)
def test_a_pool_is_read_back_never_written_over_and_refused_where_it_was_changed(
    tmp_path, change, message
):
    path = tmp_path / "pool.jsonl"
    write_pool(path, pool())
    assert read_pool(path) == pool()
    assert "is there already" in str(refusal(write_pool, path, pool()))
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_pool(path)


def test_a_tenth_comes_again_later_and_in_no_fixed_place():
    order = judging_order(pool(20, 10))
    again = [pair for pair in order if pair.round == 2]
    assert (len(order), len(again)) == (220, 20)
    assert all(
        order.index(pair) > order.index(pair._replace(round=1)) for pair in again
    )
    assert len({pair.document for pair in again}) > 3
    assert order == judging_order(pool(20, 10))


def test_a_turn_is_judged_below_the_turns_before_it(tmp_path):
    (tmp_path / "a.md").write_text("text")
    talks = (["Is there a fee?", "Yes."], ["Is there a discount?", "No."], [])
    rows = [{"query": "Why?", "history": history} for history in talks]
    (tmp_path / "queries.json").write_text(json.dumps([*rows, {"query": "why?"}]))
    dataset = load_dataset(tmp_path)
    queries = {query.id: query for query in dataset.queries}
    top_documents = dict.fromkeys(queries, frozenset("a"))
    drawn = draw_pool(PoolMaterial(dataset, queries, top_documents), PoolOptions())
    assert sorted(query.query.casefold() for query in drawn.queries) == [
        "is there a discount?\nno.\nwhy?",
        "is there a fee?\nyes.\nwhy?",
        "why?",
    ]
    lines = [
        judgment(row.query_id, document.id, text=document.digest)
        for row in drawn.queries
        for document in row.documents
    ]
    judgments = write(tmp_path / "new.jsonl", lines)
    merge_into_dataset([judgments], DatasetReference(tmp_path))
    assert "changed-text" not in load_dataset(tmp_path).data_quality
