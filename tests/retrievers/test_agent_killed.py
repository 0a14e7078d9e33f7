"""An agent's run that is killed: no reply is paid for twice."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from harness import pipeline
from harness.running.options import RunOptions
from tests.support import small
from tests.support.agent_fake import AgentProvider, once
from tests.support.mortal import forking
from tests.support.servers import serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL"),
]

CONCURRENCY = 2
AGENT = """
[[retrievers]]
name = "bm25"
kind = "bm25"

[[retrievers]]
name = "agent"
kind = "agent"
model = "scripted"
base_url = "{url}"
concurrency = {concurrency}
of = ["bm25"]
trials = 2
"""


def run(path: Path, results: Path, cache: Path) -> None:
    """Run in this process, with a cache of its own."""
    os.environ["HARNESS_CACHE"] = str(cache)
    pipeline.run(path, RunOptions(results))


def sent_requests(provider: AgentProvider) -> list[str]:
    """The requests since the last look, once none is under way."""
    while provider.at_once:
        time.sleep(0.01)
    requests = [
        json.dumps(request["body"], sort_keys=True) for request in provider.requests
    ]
    provider.requests.clear()
    return requests


@pytest.mark.parametrize("last_request", [1, 5, 13, 20])
def test_a_reply_that_was_stored_is_never_asked_for_again(
    tmp_path: Path, last_request: int
) -> None:
    script = once("search_bm25", "query")
    with serving(AgentProvider(script, latency=0.03)) as provider:
        retrievers = AGENT.format(url=provider.url, concurrency=CONCURRENCY)
        path = small.experiment(tmp_path, retrievers=retrievers)
        folders = (tmp_path / "results", tmp_path / "cache")
        process = forking().Process(target=run, args=(path, *folders))
        process.start()
        while len(provider.requests) < last_request and process.is_alive():
            time.sleep(0.002)
        process.kill()
        process.join()
        before = sent_requests(provider)
        process = forking().Process(target=run, args=(path, *folders))
        process.start()
        process.join(120)
        assert process.exitcode == 0
        after = sent_requests(provider)

    # Two requests a query in each of two trials; a trial's are those of the other.
    planned = 2 * 2 * len(small.QUERIES)
    assert last_request <= len(before) < planned
    under_way = CONCURRENCY + CONCURRENCY // 2
    assert planned <= len(before) + len(after) <= planned + under_way
