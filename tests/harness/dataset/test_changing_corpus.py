"""A corpus that changes while a run reads it: the run stops, and nothing is kept under a digest of other texts."""

import shutil
from pathlib import Path

import pytest

import harness
from harness import pipeline
from harness.build.build import build
from retrievers.errors import DataChanged
from tests.support import small
from tests.support.qdrant_fake import fake_qdrant

DENSE = '[[retrievers]]\nname = "dense"\nencoder = {{ kind = "hashing", dimensions = 64 }}\nstore = "{}"\n'


def rewrite(page: Path) -> None:
    page.write_text("# pear\n\nsomething else", encoding="utf-8")


def close(page: Path) -> None:
    page.unlink()
    page.mkdir()
    (page / "inner.md").write_bytes(b"\xff\xfe")


@pytest.mark.parametrize("store", ["edge", "server"])
@pytest.mark.parametrize("changing", [rewrite, Path.unlink, close])
def test_nothing_is_kept_or_finished_of_a_corpus_that_changed(
    tmp_path, monkeypatch, own_cache, store, changing
):
    data, prepare = small.dataset(tmp_path / "data"), build
    shutil.copytree(data, tmp_path / "kept")

    def prepared(*arguments, **options):
        found = prepare(
            *arguments, **options
        )  # the data are checked, and nothing is embedded
        changing(data / "pear.md")
        return found

    def ran(name: str, block: str) -> dict[str, tuple[str, ...]]:
        path = small.experiment(tmp_path, retrievers=block)
        found = harness.run(
            path, harness.RunOptions(results=tmp_path / name, fresh=True)
        ).rankings("dense")
        return {query: hits.doc_ids for query, hits in found.items()}

    with fake_qdrant() as server:
        block = DENSE.format(server.url if store == "server" else "edge")
        with monkeypatch.context() as patch, pytest.raises(DataChanged) as stopped:
            patch.setattr(pipeline, "build", prepared)
            ran("out", block)
        assert stopped.value.exit_code == 2
        assert not (tmp_path / "out" / "small").exists()
        kept = (
            path
            for path in (tmp_path / "cache" / "collections").glob("*")
            if path.is_dir()
        )
        assert all(path.name.endswith(".unfinished") for path in kept)
        assert not any(
            "metadata" in update for update in server.updates
        )  # which says that a collection is finished
        shutil.rmtree(data)
        shutil.copytree(tmp_path / "kept", data)
        right = ran("right", block)
        assert any("metadata" in update for update in server.updates) == (
            store == "server"
        )
    assert right == ran("exact", DENSE.format(":memory:"))
