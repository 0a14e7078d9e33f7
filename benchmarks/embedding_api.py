"""Throughput of the OpenAI encoder with its cache.

Against twenty lines of asyncio and the `openai` SDK.

The provider is on the loopback, in another process, and takes 50 ms a request of 32
texts. Targets: at least 0.95 of the plain SDK at 1, 8 and 32 requests at once; at least
0.8 where one answer in ten is 429 with `Retry-After: 1`; with a limit of requests a
minute, 90 % of the limit.

python -m benchmarks.embedding_api
"""

from __future__ import annotations

import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from retrievers.cache import Cache
from retrievers.embedder import Embedder
from retrievers.encoders.openai import OpenAIEncoder
from retrievers.meter import Meter
from tests.support.servers import OpenAIProvider, serving

LATENCY = 0.05
SIZE = 32
ROUNDS = 5
"""Of which the median counts: ours and the plain SDK in turns."""


class SteadyProvider(OpenAIProvider):
    """Answers at once and alike, so that the clients are measured.

    `refused` of ten requests get a 429.
    """

    def __init__(self, refused: int) -> None:
        super().__init__(latency=LATENCY)
        self.refused = refused
        self.vector = np.linspace(-1, 1, 384, dtype=np.float32)

    def admit(self, body: dict[str, Any], headers: Mapping[str, str]) -> str:
        """Note a request and return its fault."""
        fault: str = super().admit(body, headers)
        return (
            "429-after"
            if self.refused and len(self.requests) % 10 < self.refused
            else fault
        )

    def vectors(self, texts: list[str], fault: str) -> np.ndarray:
        """The same vector for every text."""
        return np.tile(self.vector, (len(texts), 1))


def serve(pipe: Connection, refused: int) -> None:
    with serving(SteadyProvider(refused)) as provider:
        pipe.send(provider.url)
        pipe.recv()


@contextmanager
def provider(refused: int = 0) -> Iterator[str]:
    """Serve in another process."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(there, refused)
    )
    process.start()
    yield here.recv()
    here.send("enough")
    process.join()


def batches(count: int) -> list[list[str]]:
    return [
        [f"text number {i * SIZE + j:06}" for j in range(SIZE)] for i in range(count)
    ]


def plain(url: str, requests: int, concurrency: int) -> float:
    """Embed with nothing but the SDK and return the seconds."""
    import openai

    async def all_of_them() -> float:
        async with openai.AsyncOpenAI(
            base_url=url, api_key="none", max_retries=20
        ) as client:
            await client.embeddings.create(model="m", input=["warm"])
            gate = asyncio.Semaphore(concurrency)

            async def one(texts: list[str]) -> list[Any]:
                async with gate:
                    answer = await client.embeddings.create(model="m", input=texts)
                    return [row.embedding for row in answer.data]

            started = time.perf_counter()
            rows = await asyncio.gather(*map(one, batches(requests)))
            np.asarray([row for some in rows for row in some], dtype=np.float32)
            return time.perf_counter() - started

    return asyncio.run(all_of_them())


def ours(url: str, requests: int, concurrency: int, **options: float) -> float:
    """Embed through the encoder and its cache, and return the seconds."""
    encoder = OpenAIEncoder(
        "m", base_url=url, batch_size=SIZE, concurrency=concurrency, **options
    )
    with tempfile.TemporaryDirectory() as folder, Cache(Path(folder) / "c") as cache:
        embedder = Embedder(encoder, cache)
        embedder.embed(["warm"], "query", Meter())
        texts = [text for some in batches(requests) for text in some]
        started = time.perf_counter()
        embedder.embed(texts, "document", Meter())
        return time.perf_counter() - started


def main() -> None:
    for refused, widths in ((0, (1, 8, 32)), (1, (8, 32))):
        for concurrency in widths:
            requests = 40 * max(concurrency, 2)
            seconds: dict[str, list[float]] = {"plain": [], "ours": []}
            with provider(refused) as url:
                for _ in range(ROUNDS if not refused else 3):
                    seconds["plain"].append(plain(url, requests, concurrency))
                    seconds["ours"].append(ours(url, requests, concurrency))
            theirs, own = (
                float(np.median(seconds[name])) for name in ("plain", "ours")
            )
            said = f"{refused * 10:2} % refused, {concurrency:2} at once"
            print(
                f"{said}: {requests * SIZE / own:7.0f} texts/s, {theirs / own:.2f} of "
                "asyncio + openai"
            )
    with provider() as url:
        seconds_limited = ours(url, 150, 16, rpm=600)
    print(
        f"limit of 600 requests a minute: {150 / seconds_limited * 60 / 600:.1%} of it"
    )


if __name__ == "__main__":
    main()
