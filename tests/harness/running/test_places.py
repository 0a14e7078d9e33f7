"""Where results come to lie: never among the documents, never over others, and back
after a kill.
"""

import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

import harness
from harness import records
from retrievers.encoders.hashing import HashingEncoder
from retrievers.errors import BackendError, InputError
from tests.support import small

BM25 = '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n'
FAILS = (
    '[[retrievers]]\nname = "far"\nencoder = '
    '{ kind = "openai", model = "m", base_url = "http://127.0.0.1:9/v1" }\n'
)
"""Nothing listens there, which shows only in the run."""


def run(
    folder: Path, name: str = "small", retrievers: str = BM25, *, report: bool = False
) -> Path:
    return small.ran(folder, retrievers=retrievers, name=name, report=report).folder


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


def test_an_experiment_leaves_the_results_of_one_that_is_named_like_its_staging_folder(
    tmp_path,
):
    other = run(tmp_path, "small.unfinished")
    with pytest.raises(InputError, match="holds other results"):
        run(tmp_path)
    assert records.read_results(other).manifest.name == "small.unfinished"


HASHING = (
    '[[retrievers]]\nname = "hashing"\nencoder = '
    '{ kind = "hashing", dimensions = 16 }\n'
)


def test_a_rerun_keeps_earlier_results_whose_scores_are_not_among_its_own(
    tmp_path, monkeypatch
):
    lines = []
    path = small.experiment(tmp_path, retrievers=BM25 + HASHING)
    options = harness.RunOptions(tmp_path / "out", fresh=True, on_message=lines.append)
    with monkeypatch.context() as patch:
        patch.setattr(
            HashingEncoder, "embed", Mock(side_effect=BackendError("refused"))
        )
        assert harness.run(
            path, options
        ).manifest.failed  # the next one only adds to it
    folder = harness.run(path, options).folder
    first = (folder / "scores.csv").read_bytes()
    harness.run(path, options)
    assert not lines
    assert not folder.with_name("small.1").exists(), (
        "the same scores take the place of the same scores"
    )
    monkeypatch.setattr(HashingEncoder, "embed", moved)
    again = harness.run(path, options).folder
    assert lines == [f"{folder} held other scores: kept as {folder}.1"]
    assert (again / "scores.csv").read_bytes() != first
    assert (folder.with_name("small.1") / "scores.csv").read_bytes() == first
    assert records.read_results(folder.with_name("small.1")).rankings("hashing")


def moved(encoder, texts, role, call, embed=HashingEncoder.embed):
    """A model that changed behind its name: its vectors of queries point elsewhere."""
    embedded = embed(encoder, texts, role, call)
    return embedded._replace(vectors=-embedded.vectors) if role == "query" else embedded


class Killed(BaseException):
    """A process that was killed here."""


@pytest.mark.parametrize(
    ("report", "renames", "expected_names"),
    [(False, 0, False), (False, 0, True), (False, 1, False), (True, 1, True)],
)
def test_a_kill_between_the_renames_loses_nothing(
    tmp_path, monkeypatch, report, renames, expected_names
):
    run(tmp_path, report=report)
    if expected_names:
        monkeypatch.setattr(
            "harness.records.staging._what_would_be_lost",
            lambda earlier, newer: "other scores",
        )
    rename = Path.rename
    left = [renames]

    def killed(self: Path, target: Path) -> Path:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(Killed):
        run(tmp_path, report=report)
    monkeypatch.setattr(Path, "rename", rename)
    newest = (tmp_path / "out" / "small.unfinished" / "manifest.json").read_bytes()
    with pytest.raises(BackendError):
        run(tmp_path, retrievers=FAILS)
    assert (tmp_path / "out" / "small" / "manifest.json").read_bytes() == newest
    assert records.read_results(tmp_path / "out" / "small").rankings("bm25")
    assert (tmp_path / "out" / "small.1").exists() == expected_names


def test_results_that_a_kill_hid_come_back(tmp_path, monkeypatch):
    folder = run(tmp_path)
    folder.rename(folder.with_name(".small.old"))
    with pytest.raises(BackendError):
        run(tmp_path, retrievers=FAILS)
    assert records.read_results(folder).rankings("bm25")


@pytest.mark.parametrize("name", ["small", "small.unfinished"])
def test_two_runs_never_write_to_one_folder(tmp_path, name):
    (tmp_path / "out").mkdir()
    with (
        records.staging_folder(tmp_path / "out" / "small"),
        pytest.raises(InputError, match="another run"),
    ):
        run(tmp_path, name)
