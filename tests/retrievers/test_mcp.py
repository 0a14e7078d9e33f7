"""Search tools of servers of the Model Context Protocol."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.experiment.parse import user_code_in
from harness.pipeline import run
from harness.running.options import RunOptions
from retrievers import McpTool
from retrievers.bm25 import BM25
from retrievers.cache import Cache
from retrievers.document import Document
from retrievers.errors import BackendError, InputError
from retrievers.meter import Meter
from retrievers.query import Query
from retrievers.resources import Corpus, Resources
from tests.support import small
from tests.support.small import told

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "tests.support.mcp_server")
QUERIES = [Query(name, text) for name, text, _ in small.QUERIES]
DOCUMENTS = [
    Document(name, name, f"# {name}\n\n{text}") for name, text in small.TEXTS.items()
]
SEARCH: dict[str, Any] = {
    "command": COMMAND,
    "env": {"PYTHONPATH": str(ROOT)},
    "tool": "search",
    "arguments": {"query": "{query}", "top_k": "{depth}"},
    "hits": "hits",
    "score": "score",
}


def tool(**options: Any) -> McpTool:
    retriever = McpTool(**{**SEARCH, **options})
    retriever.index(DOCUMENTS, Meter())
    return retriever


def with_cache(retriever: McpTool, cache: Cache, trial: int = 1) -> McpTool:
    corpus = Corpus(lambda: iter(()), 0, lambda ids: {})
    retriever.setup(Resources(corpus, cache, trial=trial))
    return retriever


def by_bm25(depth: int) -> list[Any]:
    bm25 = BM25()
    bm25.index(DOCUMENTS, Meter())
    return bm25.search(QUERIES, depth, Meter())


def failure(text: str, **options: Any) -> str:
    with pytest.raises(BackendError) as caught:
        tool(**options).search([Query("q", text)], 3, Meter())
    message = str(caught.value)
    assert "\n" not in message and len(message) < 900
    return message


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The server at an address of the loopback."""
    process = subprocess.Popen(
        [*COMMAND, "http"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_tool_over_bm25_ranks_as_bm25_to_the_last_digit(
    tmp_path: Path, cache: Cache
) -> None:
    asked = tmp_path / "asked"
    env = {"PYTHONPATH": str(ROOT), "ASKED_FILE": str(asked)}
    meter = Meter()
    rankings = with_cache(tool(env=env), cache).search(QUERIES, 3, meter)
    assert rankings == by_bm25(3)
    assert meter.counts("search")["calls"] == len(QUERIES)
    lines = asked.read_text().splitlines()
    assert len(lines) == len(QUERIES)
    # One session a run: one process answered all.
    assert len({line.split()[0] for line in lines}) == 1
    assert with_cache(tool(env=env), cache).search(QUERIES, 3, Meter()) == rankings
    assert len(asked.read_text().splitlines()) == len(QUERIES)
    with_cache(tool(env=env), cache, trial=2).search(QUERIES, 3, Meter())
    assert len(asked.read_text().splitlines()) == 2 * len(QUERIES)


def wait_until_listening(url: str) -> None:
    port = int(url.rpartition(":")[2].partition("/")[0])
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


def test_a_tool_at_an_address_ranks_the_same(address: str) -> None:
    wait_until_listening(address)
    retriever = tool(command=(), env=None, url=address)
    assert retriever.search(QUERIES, 3, Meter()) == by_bm25(3)


def test_texts_are_read_by_a_pattern_or_as_json(address: str) -> None:
    wait_until_listening(address)
    server = {"command": (), "env": None, "url": address}
    lines = tool(
        tool="grep",
        arguments={"query": "{query}"},
        hits="",
        pattern=r"^(?P<id>[^:]+):",
        **server,
    )
    [ranking] = lines.search([Query("q", "rails")], 3, Meter())
    # docs/train.md is matched with the document of that name.
    assert ranking.doc_ids == ("train",)
    texts = tool(tool="search_as_text", hits="[*]", id="@", score="", **server)
    ids = [ranking.doc_ids for ranking in texts.search(QUERIES, 3, Meter())]
    assert ids == [ranking.doc_ids for ranking in by_bm25(3)]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "die",
            {},
            "has ended, or closed the connection; its standard error ends: "
            ".*out of memory, good bye",
        ),
        ("raise", {}, "the tool 'search' failed: .*the index is locked"),
        ("hang", {"timeout": 3.0}, r"no answer within 3 s \(timeout\)"),
        (
            "rails",
            {
                "command": (sys.executable, "-c", "import time; time.sleep(600)"),
                "timeout": 1.0,
            },
            r"no answer within 1 s \(timeout\)",
        ),
        (
            "rails",
            {"command": (sys.executable, "-c", "raise SystemExit('no licence')")},
            "its standard error ends: 'no licence'",
        ),
        (
            "rails",
            {"command": (), "env": None, "url": "http://127.0.0.1:9/mcp"},
            "http://127.0.0.1:9/mcp: ",
        ),
    ],
)
def test_what_goes_wrong_with_a_server_is_one_sentence(
    text: str, options: dict[str, Any], message: str
) -> None:
    assert re.search(message, failure(text, **options))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("raise", {}, "the tool 'search' failed: .*the index is locked"),
        ("hang", {"timeout": 2.0}, r"no answer within 2 s \(timeout\)"),
        ("much", {}, r"returned 10,000,\d+ characters, and 4,000,000 are read at most"),
        ("unknown", {}, "1 of 1 hits have unknown ids, such as 'nobody'"),
        ("shapeless", {}, "`hits` finds no list in the answer"),
        ("rails", {"id": "name"}, "`id` finds no list of ids"),
        ("rails", {"score": "id"}, "`score` does not find one number for each"),
        ("rails", {"tool": "serch"}, "has no tool 'serch' .did you mean 'search'"),
        ("rails", {"tool": "grep", "arguments": {"query": "{query}"}}, "is not JSON"),
    ],
)
def test_an_answer_that_does_not_fit_is_one_sentence(
    address: str, text: str, options: dict[str, Any], message: str
) -> None:
    wait_until_listening(address)
    running = {"command": (), "env": None, "url": address}
    assert re.search(message, failure(text, **running, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "http://x/mcp"}, "needs a command that starts the server, or a url"),
        ({"command": ()}, "needs a command"),
        ({"command": (), "url": "ftp://x"}, "is an invalid URL"),
        ({"arguments": {"q": "x"}}, "{query} is missing"),
        ({"hits": ""}, "needs a path to the hits, or a pattern"),
        ({"hits": "hits["}, "is not JMESPath"),
        ({"hits": "", "pattern": "("}, "is not a regular expression"),
        ({"hits": "", "pattern": "a"}, "has no group `id`"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        McpTool(**{**SEARCH, **options})
    assert message in str(caught.value)


def test_a_server_that_does_not_run_is_told_as_of_other_services() -> None:
    tool = McpTool(
        url="http://127.0.0.1:9", tool="t", hits="a", arguments={"q": "{query}"}
    )
    with pytest.raises(BackendError, match=r"refused; is the service running\?"):
        tool.search([Query("q", "a text")], 2, Meter())


def test_a_program_that_is_not_there_is_found_by_the_check() -> None:
    with pytest.raises(InputError, match="there is no program 'not-there-at-all'"):
        tool(command=("not-there-at-all",)).check()


def test_what_was_answered_before_the_server_died_is_kept(
    tmp_path: Path, cache: Cache
) -> None:
    asked = tmp_path / "asked"
    env = {"PYTHONPATH": str(ROOT), "ASKED_FILE": str(asked)}
    queries = [*QUERIES, Query("last", "die")]
    with pytest.raises(BackendError, match="has ended"):
        with_cache(tool(env=env, concurrency=1), cache).search(queries, 3, Meter())
    retriever = with_cache(tool(env=env), cache)
    assert retriever.search(QUERIES, 3, Meter()) == by_bm25(3)
    assert len(asked.read_text().splitlines()) == len(queries)


TABLE = f"""
[[retrievers]]
name = "bm25"
kind = "bm25"

[[retrievers]]
name = "tool"
kind = "mcp"
command = ["{sys.executable}", "-m", "tests.support.mcp_server"]
env = {{ PYTHONPATH = "{ROOT}", ASKED_FILE = "ASKED_PLACE" }}
tool = "search"
arguments = {{ query = "{{query}}", top_k = "{{depth}}" }}
hits = "hits"
score = "score"
"""


def test_an_experiment_scores_the_tool_as_the_retriever_behind_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "asked"
    table = TABLE.replace("ASKED_PLACE", str(asked))
    experiment = small.experiment(tmp_path, retrievers=table)
    told(capsys, "check", experiment)
    assert not asked.exists()
    output = told(capsys, "check", experiment, "--no-code", code=2)
    assert "runs code: command = " in output
    results = run(experiment, RunOptions(tmp_path / "out"))
    first, second = results.rankings("bm25"), results.rankings("tool")
    assert first == second
    told(capsys, "check", experiment, "--online")


def test_a_command_is_code_also_in_a_part() -> None:
    part = {"kind": "mcp", "command": ["serve"]}
    assert user_code_in({"kind": "fusion", "of": [part]}) == "of[0].command = ['serve']"
    assert user_code_in({"kind": "mcp", "url": "http://x/mcp"}) == ""
