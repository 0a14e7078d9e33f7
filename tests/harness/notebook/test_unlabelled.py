"""Results without labels whose data were in memory."""

from dataclasses import replace

import pytest

import harness
from harness import records
from harness.dataset import DatasetReference
from harness.experiment import DatasetConfig
from harness.labels.draw_pool import (
    PoolOptions,
    draw_pool,
    read_known_judgments,
    read_material,
)
from harness.report.page import first_screen_html
from retrievers.errors import InputError
from tests.support import small
from tests.support.small_texts import QUERIES, TEXTS

RETRIEVERS = {"bm25": {"kind": "bm25"}, "flat": {"kind": "bm25", "k1": 0.1}}


@pytest.fixture(scope="module")
def unlabelled():
    queries = {query_id: text for query_id, text, _ in QUERIES}
    return harness.evaluate(TEXTS, queries, None, RETRIEVERS)


def test_a_pool_is_drawn_from_the_texts_that_the_folder_keeps(unlabelled, tmp_path):
    folder = unlabelled.save(tmp_path / "kept")
    material = read_material([folder], depth=3)
    pool = draw_pool(material, PoolOptions(depth=3), read_known_judgments(material, ()))
    texts = {
        document.id: document.text
        for query in pool.queries
        for document in query.documents
    }
    assert len(pool.queries) == len(QUERIES)
    assert texts.items() <= TEXTS.items()


@pytest.mark.parametrize(
    "call",
    [
        lambda results: results.to_mteb(),
        lambda results: results.queries(lost_by="bm25", to="flat"),
    ],
    ids=["to_mteb", "queries"],
)
def test_what_needs_scores_is_refused_without_labels(unlabelled, call):
    assert "are rankings without scores" in str(small.refusal(call, unlabelled))


def test_ranks_whose_texts_are_not_kept_are_refused(unlabelled, tmp_path):
    folder = unlabelled.save(tmp_path / "kept")
    with pytest.raises(InputError, match="has no texts below rank 20"):
        read_material([folder], depth=21)


def test_the_next_step_of_a_temporary_folder_is_to_save_it(unlabelled, tmp_path):
    assert "results.save(FOLDER), then" in first_screen_html(unlabelled)
    saved = records.read_results(unlabelled.save(tmp_path / "kept"))
    assert "results.save" not in first_screen_html(saved)


def test_a_data_set_of_a_hub_is_found_by_its_name(unlabelled):
    manifest = unlabelled.manifest
    dataset = DatasetConfig(path="irds:vaswani")
    resolved = replace(manifest.resolved, dataset=dataset)
    moved = replace(unlabelled, manifest=replace(manifest, resolved=resolved))
    assert records.find_dataset(moved) == DatasetReference("irds:vaswani")


def test_queries_without_a_document_to_judge_are_counted(tmp_path, capsys):
    queries = {"1": "trees", "2": "zzz"}
    results = harness.evaluate(TEXTS, queries, None, RETRIEVERS)
    folder = results.save(tmp_path / "kept")
    output = tmp_path / "pool.jsonl"
    printed = small.told(capsys, "pool", folder, "--output", output)
    assert "2 of 2 queries" in printed
    assert "not in it: 1 query without a document to judge" in printed
