"""Throughput against a provider on the loopback, in another process, that takes 100 ms a call.

Targets: 90 % of concurrency / latency; with a limit of requests a minute, 90 % of the limit and at most 1 % of the
calls answered 429.

python -m benchmarks.embedding_api
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from retrievers.cache import Cache
from retrievers.embedding import Embedder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.meter import Meter, single_call
from tests.servers import OpenAIProvider, serving

LATENCY = 0.1


class LimitedProvider(OpenAIProvider):
    """Answers 429 to every request beyond `rpm` in the minute before it; 0 is no limit."""

    def __init__(self, rpm: int) -> None:
        super().__init__(latency=LATENCY)
        self.rpm = rpm
        self.refused = 0
        self.taken: deque[float] = deque()

    def admit(self, body: dict[str, Any], headers: Mapping[str, str]) -> str:
        """Note a request and return its fault, that of the limit where it is passed."""
        fault: str = super().admit(body, headers)
        now = time.monotonic()
        with self.lock:
            while self.taken and self.taken[0] < now - 60:
                self.taken.popleft()
            if self.rpm and len(self.taken) >= self.rpm:
                self.refused += 1
                return "429-after"
            self.taken.append(now)
        return fault


def serve(pipe: Connection, rpm: int) -> None:
    with serving(LimitedProvider(rpm)) as provider:
        pipe.send(provider.url)
        pipe.recv()
        pipe.send(provider.refused / max(len(provider.requests), 1))


@contextmanager
def provider(rpm: int = 0) -> Iterator[tuple[str, Connection]]:
    """Serve in another process; the pipe tells the share of refused calls when asked."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there, rpm))
    process.start()
    yield here.recv(), here
    process.join()


def timed(url: str, calls: int, **options: float) -> float:
    """Embed one text a call and return the seconds, the first call (which loads the SDK) left out."""
    encoder = OpenAIEncoder("benchmark", base_url=url, batch_size=1, **options)
    encoder.embed(["warm"], "query", single_call())
    with tempfile.TemporaryDirectory() as folder, Cache(Path(folder) / "c") as cache:
        embedder = Embedder(encoder, cache)
        started = time.perf_counter()
        embedder.embed([f"text number {i}" for i in range(calls)], "document", Meter())
        return time.perf_counter() - started


def main() -> None:
    for concurrency in (1, 4, 8, 16, 32):
        calls = 40 * concurrency
        with provider() as (url, pipe):
            seconds = timed(url, calls, concurrency=concurrency)
            pipe.send("how many?")
        share = calls / seconds / (concurrency / LATENCY)
        print(f"concurrency {concurrency:2}: {calls / seconds:6.1f} calls/s, {share:.1%} of concurrency / latency")
    for rpm in (600, 3000):
        calls = rpm // 4  # 15 seconds
        with provider(rpm) as (url, pipe):
            seconds = timed(url, calls, concurrency=16, rpm=rpm)
            pipe.send("how many?")
            refused = pipe.recv()
        share = calls / seconds * 60 / rpm
        print(f"limit of {rpm} requests a minute: {share:.1%} of it, {refused:.2%} answered 429")


if __name__ == "__main__":
    main()
