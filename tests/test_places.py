"""Where results come to lie: never among the documents, never over others, and back after a kill."""

import shutil
from pathlib import Path

import pytest

import harness
from harness import records
from retrievers.errors import BackendError, InputError
from tests import small

BM25 = '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n'
FAILS = '[[retrievers]]\nname = "far"\nencoder = { kind = "sentence-transformers", model = "nobody/nothing" }\n'


def run(place: Path, name: str = "small", retrievers: str = BM25) -> Path:
    path = small.experiment(place, retrievers=retrievers, name=name)
    return harness.run(path, harness.Options(results=place / "out")).folder


def test_a_data_set_that_holds_its_own_results_stays_what_it_is(tmp_path, monkeypatch):
    folder = small.dataset(tmp_path / "data")
    path = small.experiment(tmp_path, retrievers=BM25)
    path.write_text(path.read_text().replace((tmp_path / "data").as_posix(), "."))
    monkeypatch.chdir(folder)
    first = harness.run(path).manifest.dataset
    shutil.copytree("results/small", "results/small.unfinished")
    (folder / "results/small.unfinished/manifest.json").unlink()
    second = harness.run(path).manifest.dataset
    assert first.documents == second.documents == len(small.TEXTS)
    assert first.digest == second.digest


def test_an_experiment_leaves_the_results_of_one_that_is_named_like_its_aside(tmp_path):
    other = run(tmp_path, "small.unfinished")
    before = (other / "manifest.json").read_bytes()
    run(tmp_path)
    assert (other / "manifest.json").read_bytes() == before
    assert records.read(other).manifest.name == "small.unfinished"


class Killed(BaseException):
    """A process that was killed here."""


@pytest.mark.parametrize("renames", [0, 1])
def test_a_kill_between_the_renames_loses_nothing(tmp_path, monkeypatch, renames):
    run(tmp_path)
    rename, left = Path.rename, [renames]

    def killed(self: Path, target: Path) -> Path:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(Killed):
        run(tmp_path)
    monkeypatch.setattr(Path, "rename", rename)
    newest = (tmp_path / "out" / "small.unfinished" / "manifest.json").read_bytes()
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(OSError("no network")))
    with pytest.raises(BackendError):
        run(tmp_path, retrievers=FAILS)
    assert (tmp_path / "out" / "small" / "manifest.json").read_bytes() == newest
    assert records.read(tmp_path / "out" / "small").rankings("bm25")


def test_results_that_a_kill_hid_come_back(tmp_path, monkeypatch):
    place = run(tmp_path)
    place.rename(place.with_name(".small.old"))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: (_ for _ in ()).throw(OSError("no network")))
    with pytest.raises(BackendError):
        run(tmp_path, retrievers=FAILS)
    assert records.read(place).rankings("bm25")


def test_two_runs_never_write_to_one_folder(tmp_path):
    (tmp_path / "out").mkdir()
    with records.writing_aside(tmp_path / "out" / "small"), pytest.raises(InputError, match="another run"):
        run(tmp_path, "small.unfinished")
