"""A search tool that others wrote: `mcp-grep`, as its package comes."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from tests.support import small

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="its program is a script"),
]

PACKAGES = ("mcp-grep==0.2.1", "mcp==1.30.0")
"""The server needs the SDK's first edition, so that it has an environment of its own:
a server is a program, and its language and packages are its own affair."""
WORDS = ("trees", "wheels", "swim", "rails", "green", "drive on roads")
RETRIEVERS = """
[[retrievers]]
name = "bm25"
kind = "bm25"

[[retrievers]]
name = "grep"
kind = "mcp"
command = ["{program}"]
tool = "grep"
pattern = '"file\\\\*": \\\\*"(?P<id>[^"\\\\]+)'
timeout = 60

[retrievers.arguments]
pattern = "{{query}}"
paths = "{documents}"
recursive = true
file_pattern = "*.md"
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server, installed from the package index."""
    folder = tmp_path_factory.mktemp("server")
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    installed = subprocess.run([*pip, *PACKAGES], capture_output=True, text=True)
    if installed.returncode:
        last_line = installed.stderr.strip().rpartition("\n")[2]
        pytest.skip(f"the package index does not give {PACKAGES[0]}: {last_line}")
    return folder / "bin" / "mcp-grep-server"


@pytest.fixture(scope="module")
def results(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run whose queries are words of the documents."""
    folder = tmp_path_factory.mktemp("run")
    queries = [
        {"id": word, "query": word, "relevant": matching(word)} for word in WORDS
    ]
    documents = small.markdown(folder / "data", small.TEXTS, queries)
    retrievers = RETRIEVERS.format(program=program, documents=documents)
    path = small.experiment(folder, retrievers=retrievers)
    return run(path, RunOptions(folder / "out"))


def matching(word: str) -> list[str]:
    """The documents whose text has a word."""
    return [name for name, text in small.TEXTS.items() if word in text]


@pytest.mark.parametrize("word", WORDS)
def test_a_tool_of_others_finds_the_documents_that_have_the_word(
    results: Results, word: str
) -> None:
    hits = results.rankings("grep")[word].doc_ids
    assert sorted(hits) == sorted(matching(word))
