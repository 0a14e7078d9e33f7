"""No file holds what the environment holds: whoever it came from, `${NAME}` stands in its place."""

import json

import pytest

from harness.records import create
from retrievers.remote.redaction import from_environment, masked
from tests import small
from tests.servers import Answering, running
from tests.small import BM25, ended

SECRET = "open5esame-0123"
BESIDE = 'quo"ted\\and<angled>'
MODULE = """
import os

def raises(queries, depth):
    raise ValueError("refused: " + os.environ["THEIR_API_KEY"] + os.environ["THEIR_TOKEN"])

def answers(queries, depth):
    return [["apple", os.environ["THEIR_API_KEY"]] for _ in queries]
"""


def holding(place, *secrets) -> list[str]:
    """The files below a folder that hold one of these, whatever they are."""
    files = [file for file in place.rglob("*") if file.is_file()]
    assert files
    return [file.name for file in files if any(one.encode() in file.read_bytes() for one in secrets)]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder in which everything is written, but for what holds the secrets."""
    monkeypatch.setenv("THEIR_API_KEY", SECRET)
    monkeypatch.setenv("THEIR_TOKEN", BESIDE)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "written" / "cache"))
    (tmp_path / "written").mkdir()
    monkeypatch.chdir(tmp_path / "written")
    return tmp_path / "written"


@pytest.mark.parametrize(("name", "code"), [("raises", 3), ("answers", 0)])
def test_what_a_function_says_is_written_without_keys(tmp_path, place, monkeypatch, capsys, name, code):
    module = small.module(tmp_path, monkeypatch, MODULE)
    block = f'[[retrievers]]\nname = "theirs"\nkind = "python"\ncall = "{module}:{name}"\n'
    block += 'unknown_hits = "irrelevant"\n'
    path = small.experiment(tmp_path, retrievers=block + BM25, report=True)
    assert ended("run", path, "--debug") == code
    said = capsys.readouterr()
    assert not holding(place, SECRET, BESIDE, json.dumps(BESIDE)[1:-1])
    assert SECRET not in said.out + said.err
    written = (place / "results" / "small" / "manifest.json").read_text()
    written += (place / "results" / "small" / "rankings" / "theirs.jsonl").read_text() if name == "answers" else ""
    assert "${THEIR_API_KEY}" in written


class Mirror(Answering):
    """Finds the request's header."""

    def do_GET(self) -> None:
        self.send(200, json.dumps(["apple", self.headers["Authorization"]]).encode())


def test_an_endpoint_that_answers_with_its_key_leaves_it_in_no_file(tmp_path, place, monkeypatch, stack):
    monkeypatch.setenv("WORD", SECRET)  # its name says nothing
    monkeypatch.delenv("THEIR_API_KEY")
    server = stack.enter_context(running(Mirror))
    block = '[[retrievers]]\nname = "theirs"\nkind = "http"\nmethod = "GET"\nids = "[*]"\n'
    block += f'url = "http://127.0.0.1:{server.server_port}/?q={{query}}"\n'
    block += 'headers = { Authorization = "Bearer ${WORD}" }\nunknown_hits = "irrelevant"\n'
    path = small.experiment(tmp_path, retrievers=block + BM25, report=True)
    for _ in range(2):  # the second time from the cache
        assert ended("run", path) == 0
        assert not holding(place, SECRET)
    assert "Bearer ${WORD}" in (place / "results" / "small" / "rankings" / "theirs.jsonl").read_text()


def test_plain_words_that_nothing_used_stay_and_those_that_were_used_do_not(monkeypatch, tmp_path):
    monkeypatch.setenv("KEYCLOAK_REALM", "master")
    monkeypatch.setenv("PLAIN", "banana")
    assert masked("a master of the banana") == "a master of the banana"
    assert from_environment("PLAIN") == "banana"
    assert masked("a master of the banana") == "a master of the ${PLAIN}"
    with create(tmp_path / "some.txt") as file:
        file.writelines(f"{line}\n" for line in ("banana", SECRET, "rest"))
    assert (tmp_path / "some.txt").read_text() == "${PLAIN}\n${THEIR_API_KEY}\nrest\n"
