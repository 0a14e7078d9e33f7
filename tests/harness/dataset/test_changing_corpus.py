"""A corpus that changes while a run reads it.

The run stops, and nothing is stored under a digest of other texts.
"""

import shutil
from pathlib import Path

import pytest

import harness
from harness import pipeline
from harness.build.build import build
from retrievers.errors import DataChanged
from tests.support import small
from tests.support.qdrant_fake import fake_qdrant

DENSE = """[[retrievers]]
name = "dense"
encoder = {{ kind = "hashing", dimensions = 64 }}
store = "{}"
"""


def rewrite(page: Path) -> None:
    page.write_text("# pear\n\nsomething else", encoding="utf-8")


def replace_by_folder(page: Path) -> None:
    page.unlink()
    page.mkdir()
    (page / "inner.md").write_bytes(b"\xff\xfe")


def finished_collections(collections: Path, server) -> list[str]:
    """The folders of collections that are whole, and the metadata of those on a server.

    Metadata mean that a collection is finished.
    """
    folders = [
        path.name
        for path in collections.glob("*")
        if path.is_dir() and not path.name.endswith(".unfinished")
    ]
    return folders + [str(update) for update in server.updates if "metadata" in update]


@pytest.mark.parametrize("store", ["edge", "server"])
@pytest.mark.parametrize("change", [rewrite, Path.unlink, replace_by_folder])
def test_no_collection_is_finished_of_a_corpus_that_changed(
    tmp_path, monkeypatch, own_cache, store, change
):
    # Two documents are stored before the one that has changed is read.
    monkeypatch.setattr("retrievers.embedder.EMBEDDING_WINDOW", 2)
    collections = tmp_path / "cache" / "collections"
    corpus = small.dataset(tmp_path / "data")
    shutil.copytree(corpus, tmp_path / "original")

    def build_and_change(*arguments, **options):
        # The data are checked, and nothing is embedded.
        built = build(*arguments, **options)
        change(corpus / "pear.md")
        return built

    def run_dense(name: str, store: str) -> dict[str, tuple[str, ...]]:
        retrievers = DENSE.format(store)
        path = small.experiment(tmp_path, retrievers=retrievers)
        options = harness.RunOptions(results=tmp_path / name, fresh=True)
        rankings = harness.run(path, options).rankings("dense")
        return {query_id: ranking.doc_ids for query_id, ranking in rankings.items()}

    with fake_qdrant() as server:
        store_location = server.url if store == "server" else "edge"
        with monkeypatch.context() as patch, pytest.raises(DataChanged) as stopped:
            patch.setattr(pipeline, "build", build_and_change)
            run_dense("out", store_location)
        assert stopped.value.exit_code == 2
        assert not (tmp_path / "out" / "small").exists()
        begun = [*collections.glob("*.unfinished")]
        begun += server.engine.get_collections().collections
        assert len(begun) == 1
        assert finished_collections(collections, server) == []

        shutil.rmtree(corpus)
        shutil.copytree(tmp_path / "original", corpus)
        rankings = run_dense("right", store_location)
        assert len(finished_collections(collections, server)) == 1
    assert rankings == run_dense("exact", ":memory:")
