"""A corpus that changes while a run reads it: the run stops, and nothing is kept under a digest of other texts."""

from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from harness import pipeline
from retrievers.errors import DataChanged
from tests.support import small
from tests.support.qdrant_fake import fake_qdrant

DENSE = """
[[retrievers]]
name = "edge"
encoder = { kind = "hashing", dimensions = 64 }
store = "edge"
"""


def rewrite(data: Path) -> None:
    (data / "pear.md").write_text("# pear\n\nsomething else", encoding="utf-8")


def remove(data: Path) -> None:
    (data / "pear.md").unlink()


def close(data: Path) -> None:
    (data / "pear.md").unlink()
    (data / "pear.md").mkdir()
    (data / "pear.md" / "inner.md").write_bytes(b"\xff\xfe")


def run_while(
    changing: Callable[[Path], None], place: Path, monkeypatch: pytest.MonkeyPatch, block: str = DENSE
) -> None:
    """Run an experiment whose data change after they were checked, before they are embedded."""
    prepare = pipeline.prepare

    def prepared(*arguments, **options):
        found = prepare(*arguments, **options)
        changing(place / "data")
        return found

    monkeypatch.setenv("HARNESS_CACHE", str(place / "cache"))
    monkeypatch.setattr(pipeline, "prepare", prepared)
    try:
        harness.run(small.experiment(place, retrievers=block), harness.Options(results=place / "out"))
    finally:
        monkeypatch.setattr(pipeline, "prepare", prepare)


@pytest.mark.parametrize("changing", [rewrite, remove])
def test_nothing_on_a_server_is_finished_under_the_digest_of_other_texts(tmp_path, monkeypatch, changing):
    page = small.dataset(tmp_path / "data") / "pear.md"
    text = page.read_text()
    with fake_qdrant() as server:
        block = DENSE.replace('"edge"\n', f'"{server.url}"\n', 2).replace(f'name = "{server.url}"', 'name = "edge"')
        with pytest.raises(DataChanged):
            run_while(changing, tmp_path, monkeypatch, block)
        assert not any("metadata" in update for update in server.updates)  # which says that a collection is finished
        page.write_text(text)
        path = small.experiment(tmp_path, retrievers=block)
        right = harness.run(path, harness.Options(results=tmp_path / "right")).rankings("edge")
        assert any("metadata" in update for update in server.updates)
    exact = harness.run(small.experiment(tmp_path, retrievers=DENSE), harness.Options(results=tmp_path / "edge"))
    assert {q: hits.doc_ids for q, hits in right.items()} == {
        q: hits.doc_ids for q, hits in exact.rankings("edge").items()
    }


@pytest.mark.parametrize("changing", [rewrite, remove, close])
def test_nothing_is_kept_of_a_corpus_that_changed(tmp_path, monkeypatch, changing):
    before = small.dataset(tmp_path / "data") / "pear.md"
    text = before.read_text()
    with pytest.raises(DataChanged) as stopped:
        run_while(changing, tmp_path, monkeypatch)
    assert stopped.value.exit_code == 2
    assert not (tmp_path / "out" / "small").exists()
    kept = [path.name for path in (tmp_path / "cache" / "collections").glob("*") if path.is_dir()]
    assert not [name for name in kept if not name.endswith(".unfinished")]
    if before.is_dir():
        (before / "inner.md").unlink()
        before.rmdir()
    before.write_text(text)
    path = small.experiment(tmp_path, retrievers=DENSE)
    right = harness.run(path, harness.Options(results=tmp_path / "right")).rankings("edge")
    again = harness.run(path, harness.Options(results=tmp_path / "again", fresh=True)).rankings("edge")
    assert right == again
