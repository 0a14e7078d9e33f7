"""What is waited for, how long, and what the screen says of it: one rule for every service."""

import logging

import pytest

from harness import records
from retrievers import retrying
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


class Refused(Exception):
    """Nothing listens there."""


class Away(Exception):
    """Something went wrong on the way."""


def passing(failure: BaseException) -> Transient | None:
    if isinstance(failure, Refused | Away):
        return Transient(f"api.example.org: {failure}", refused_here=isinstance(failure, Refused))
    return None


class Service:
    """Fails as it is told, then answers."""

    def __init__(self, *failures: type[Exception]) -> None:
        self.failures = list(failures)
        self.tries = 0

    def __call__(self) -> str:
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)("connection refused")
        return "answer"


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


def test_one_that_has_answered_before_is_waited_for(hasty):
    retries = RetryLoop(passing, 300)
    service = Service()
    assert retries.ask(service) == "answer"
    service.failures += [Refused] * 20
    assert retries.ask(service) == "answer"
    assert service.tries == 22


def test_one_that_never_answered_is_not_waited_for_twice_over(hasty):
    retries = RetryLoop(passing, 300)
    for _ in range(2):
        service = Service(*[Refused] * 20)
        with pytest.raises(Refused):
            retries.ask(service)
        assert service.tries == retrying.NOT_STARTED


def test_one_elsewhere_is_waited_for_and_a_line_says_so_now_and_then(hasty, monkeypatch, caplog):
    now = [0.0]
    monkeypatch.setattr(retrying.time, "monotonic", lambda: now[0])
    service = Service(*[Away] * 12)

    def passes() -> None:
        now[0] += retrying.SILENCE / 4

    with caplog.at_level(logging.WARNING):
        assert RetryLoop(passing, 300).ask(service, on_retry=passes) == "answer"
    assert [record.getMessage() for record in caplog.records] == [
        f"waiting for api.example.org: connection refused, try {number}, gives up in {left} s"
        for number, left in ((2, 300), (6, 290), (10, 280))
    ]
