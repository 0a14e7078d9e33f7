"""`harness init --output`: whatever the file is called, the next two commands that it prints work."""

import json
import shlex

import pytest

from tests.test_cli import Call, call

__all__ = ["call"]


@pytest.fixture(autouse=True)
def documents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "a.md").write_text("# A\nof apples\n", encoding="utf-8")
    (folder / "queries.json").write_text(json.dumps([{"query": "apples", "relevant_documents": ["a"]}]))


@pytest.mark.parametrize("name", ["my exp.toml", "-x.toml", "é.toml", "_.toml", "a" * 80 + ".toml"])
def test_what_init_writes_is_read_by_the_command_that_it_prints(call: Call, name):
    written = call("init", "mine", "--output", name)
    assert written.code == 0
    command = next(line for line in written.out.splitlines() if "harness check" in line)
    assert call(*shlex.split(command)[1:]).code == 0


@pytest.mark.parametrize("name", ["exp.txt", ".toml", "exp"])
def test_a_name_that_no_command_would_take_for_an_experiment_is_refused(tmp_path, call: Call, name):
    answer = call("init", "mine", "--output", name)
    assert (answer.code, "does not end in .toml" in answer.err) == (2, True)
    assert not (tmp_path / name).exists()


def test_nothing_is_written_through_a_link(tmp_path, call: Call):
    (tmp_path / "mine.toml").symlink_to(tmp_path / "elsewhere.toml")
    answer = call("init", "mine")
    assert (answer.code, "is there already" in answer.err) == (2, True)
    assert not (tmp_path / "elsewhere.toml").exists()
