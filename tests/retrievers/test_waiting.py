"""What is waited for, how long, and what the screen says of it: one rule for every service."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import pytest

from harness import records
from retrievers import retrying
from retrievers.meter import Stop
from retrievers.retrying import RetryLoop, Transient
from tests.support import small
from tests.support.small import BM25, ended

HERE = "http://127.0.0.1:9"
"""Where nothing listens, on this machine."""
BLOCKS = {
    "openai": f'encoder = {{ kind = "openai", model = "m", base_url = "{HERE}/v1", dimensions = 4 }}',
    "cohere": f'encoder = {{ kind = "cohere", model = "m", base_url = "{HERE}" }}',
    "gemini": f'encoder = {{ kind = "gemini", model = "m", base_url = "{HERE}" }}',
    "bedrock": 'encoder = { kind = "bedrock", model = "amazon.titan-embed-text-v2:0", region = "eu-west-1", '
    f'endpoint_url = "{HERE}" }}',
    "reranker": f'of = "bm25"\nrerank = {{ kind = "http", dialect = "tei", base_url = "{HERE}" }}',
    "endpoint": f'kind = "http"\nids = "[*]"\nurl = "{HERE}/?q={{query}}"',
    "store": f'encoder = {{ kind = "hashing" }}\nstore = "{HERE}"',
}


def asked(retries: RetryLoop, *failures: Transient, on_retry: Callable[[], None] = lambda: None) -> int:
    """Ask a service that fails so before it answers, and return the number of tries."""
    left, tries = list(failures), []

    async def once() -> str:
        tries.append(1)
        if left:
            raise left.pop(0)
        return "answer"

    with suppress(Transient):
        assert asyncio.run(retries.ask(once, on_retry, Stop())) == "answer"
    return len(tries)


REFUSED = Transient("api.example.org: connection refused", enough=retrying.NOT_STARTED)
AWAY = Transient("api.example.org: connection refused")


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(retrying, "LONGEST_PAUSE", 0.002)


def test_servers_on_this_machine_that_were_not_started_are_final_after_two_tries(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0000000000000000")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "0123456789abcdefghijklmnopqrst")
    blocks = "".join(f'[[retrievers]]\nname = "{name}"\n{one}\n' for name, one in BLOCKS.items())
    assert ended("run", small.experiment(tmp_path, retrievers=BM25 + blocks)) == 3
    failed = records.read(tmp_path / "results" / "small").manifest.failed
    assert failed.keys() == BLOCKS.keys()
    for name, told in failed.items():
        assert "is it running?" in told
        assert "onnection refused" in told
        assert name == "store" or "gave up after 2 tries" in told
    waited = [one for one in caplog.records if "onnection refused, try 2 of 2" in one.getMessage()]
    assert len(waited) >= len(BLOCKS)


def test_one_that_never_answered_is_given_up_and_one_that_has_is_waited_for(hasty):
    retries = RetryLoop(300)
    assert [asked(retries, *[REFUSED] * 20) for _ in range(2)] == [retrying.NOT_STARTED] * 2
    assert [asked(retries, *some) for some in ([], [REFUSED] * 20)] == [1, 21]


def test_one_elsewhere_is_waited_for_and_a_line_says_so_now_and_then(hasty, monkeypatch, caplog):
    now = [0.0]
    monkeypatch.setattr(retrying.time, "monotonic", lambda: now[0])

    async def at_once(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(retrying.asyncio, "sleep", at_once)

    def passes() -> None:
        now[0] += retrying.SILENCE / 4

    with caplog.at_level(logging.WARNING, logger="retrievers"):
        assert asked(RetryLoop(300), *[AWAY] * 12, on_retry=passes) == 13
    assert [record.getMessage() for record in caplog.records] == [
        f"waiting for api.example.org: connection refused, try {number}, gives up in {left} s"
        for number, left in ((2, 300), (6, 290), (10, 280))
    ]
