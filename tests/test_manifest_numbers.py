"""Texts in a manifest that are read as numbers: one that is none is a message with its name, and no traceback."""

from dataclasses import replace

import pytest

from harness import pipeline, records
from harness.running.options import Options
from retrievers.errors import InputError
from tests import small


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(place / "cache"))
        patch.setattr(pipeline, "write_report", lambda results: None)
        return pipeline.run(small.experiment(place), Options(place / "results")).folder


@pytest.mark.parametrize(
    ("retriever", "key", "value"),
    [
        ("hashing", "vector_bytes", "abc"),
        ("hashing", "vector_bytes", "nan"),
        ("hashing", "vector_bytes", "9" * 5000),
        ("hashing", "dimensions", "6.5"),
        ("hashing", "dimensions", "-64"),
        ("hashing", "vectors", ""),
        ("hashing", "usd_per_million_tokens", "-1"),
        ("bm25", "reranker usd_per_million_tokens", "-1"),
        ("hashing", "tokens_per_text", "3"),  # without that of queries
    ],
)
def test_a_size_or_a_price_that_is_no_number_is_refused(folder, retriever, key, value):
    manifest = records.read_manifest(folder)
    facts = manifest.retrievers[retriever]
    changed = replace(facts, provenance={**facts.provenance, key: value})
    edited = replace(manifest, retrievers={**manifest.retrievers, retriever: changed})
    try:
        records.write_manifest(folder, edited)
        with pytest.raises(InputError, match=rf"{retriever} (is no number|lacks)"):
            records.read_manifest(folder)
    finally:
        records.write_manifest(folder, manifest)


@pytest.mark.parametrize("depth", ["abc", "9" * 5000, "-1", ""])
def test_a_judge_that_read_to_no_depth_is_refused(folder, depth):
    manifest = records.read_manifest(folder)
    try:
        records.write_manifest(folder, replace(manifest, judge={"judge": "x", "prompt": "", "depth": depth}))
        with pytest.raises(InputError, match="judge: depth is neither"):
            records.read_manifest(folder)
    finally:
        records.write_manifest(folder, manifest)


def test_what_a_retriever_says_of_itself_may_have_any_form(folder):
    manifest = records.read_manifest(folder)
    own = replace(manifest.retrievers["bm25"], provenance={"vectors": "some", "dimensions": "many"})
    records.write_manifest(folder, replace(manifest, retrievers={**manifest.retrievers, "bm25": own}))
    assert records.read_manifest(folder).retrievers["bm25"] == own
    records.write_manifest(folder, manifest)
