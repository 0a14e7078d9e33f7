"""Killed at twenty random points: nothing is paid for twice, and the results are those
of an undisturbed run.
"""

import os
import random
import sys
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from harness import pipeline
from harness.running.options import RunOptions
from tests.harness.running.test_run import digests
from tests.support import layouts
from tests.support.mortal import NEVER, forking, live
from tests.support.servers import OpenAIProvider, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL"),
]

DOCUMENTS, QUERIES = 240, 24
BATCH, CONCURRENCY = 4, 2
UNSTORED = CONCURRENCY + CONCURRENCY // 2
"""Requests that may be under way, or answered and not yet stored, when the process is
killed (retrievers.services.caller).
"""
WORDS = (
    "wing",
    "flow",
    "heat",
    "shock",
    "wave",
    "wheel",
    "river",
    "garden",
    "bread",
    "window",
    "piano",
    "winter",
)


def corpus(folder: Path, documents: int = DOCUMENTS, queries: int = QUERIES) -> None:
    """Documents and queries of a few words each, all different."""
    chance = random.Random(6)
    drawn = [
        f"{' '.join(chance.sample(WORDS, 4))} {number}"
        for number in range(documents + queries)
    ]
    texts, asked = (
        {f"{kind}{n}": text for n, text in enumerate(kind_of_texts)}
        for kind, kind_of_texts in (("c", drawn[:documents]), ("q", drawn[documents:]))
    )
    layouts.beir(
        folder,
        layouts.Collection(
            texts, asked, {q: {f"c{chance.randrange(documents)}": 1} for q in asked}
        ),
    )


def experiment(folder: Path, url: str) -> Path:
    options = (
        f'model = "m", base_url = "{url}", batch_size = {BATCH}, concurrency = '
        f"{CONCURRENCY}"
    )
    path = folder / "killed.toml"
    path.write_text(
        f'name = "killed"\ndataset = "{(folder / "data").as_posix()}"\nprimary = '
        '"nDCG@10"\n'
        'measures = ["nDCG@10", "RR@10"]\nreport = false\n'
        '[[retrievers]]\nname = "control"\nencoder = { kind = "hashing" }\n'
        f'[[retrievers]]\nname = "api"\nencoder = {{ kind = "openai", {options} }}\n'
        '[[retrievers]]\nname = "hybrid"\nkind = "fusion"\nof = ["control", "api"]\n',
        encoding="utf-8",
    )
    return path


def run(path: Path, results: Path, cache: Path, last_call: int | None) -> None:
    """Run in this process, killed at a call if one is given."""
    os.environ["HARNESS_CACHE"] = str(cache)
    if last_call is None:
        pipeline.run(path, RunOptions(results))
    else:
        calls = live(lambda: pipeline.run(path, RunOptions(results)), last_call)
        (results / "calls").write_text(str(calls))


def test_killed_twenty_times(tmp_path: Path) -> None:
    context = forking()
    corpus(tmp_path / "data")

    def start(folder_name: str, last_call: int | None = None) -> BaseProcess:
        folders = [tmp_path / folder_name / name for name in ("results", "cache")]
        process = context.Process(target=run, args=(path, *folders, last_call))
        process.start()
        return process

    def finish(folder_name: str, last_call: int | None = None) -> dict[str, str]:
        process = start(folder_name, last_call)
        process.join(600)
        assert process.exitcode == 0
        return digests(tmp_path / folder_name / "results" / "killed")

    with serving(OpenAIProvider(latency=0.03)) as provider:
        path = experiment(tmp_path, provider.url)
        undisturbed = finish("undisturbed")
        planned = Counter(asked(provider))
        assert set(planned.values()) == {1}
        assert {len(texts) for texts in planned} == {BATCH}

        assert finish("undisturbed", NEVER) == undisturbed
        calls = int((tmp_path / "undisturbed" / "results" / "calls").read_text())
        assert not asked(provider)

        # In turns when the server gets any of the next requests, and at any call of a
        # function that a warm run makes:
        # kills must fall into the embedding for this to show anything, so that the
        # first turns are of the first kind.
        chance = random.Random(20)
        lives = []
        for turn in range(20):
            if turn < 4 or turn % 2:
                process = start("killed")
                last = chance.randint(1, 6)
                while len(provider.requests) < last and process.is_alive():
                    time.sleep(0.002)
                process.kill()
            else:
                process = start("killed", chance.randrange(1, calls))
            process.join()
            lives.append(asked(provider))
        assert finish("killed") == undisturbed
        lives.append(asked(provider))

    assert sum(map(bool, lives)) > 2
    for number, requests in enumerate(lives):
        later = {texts for life in lives[number + 1 :] for texts in life}
        assert len(set(requests)) == len(requests)
        assert len(later & set(requests)) <= UNSTORED
    assert {texts for life in lives for texts in life} == set(planned)


def asked(provider: OpenAIProvider) -> list[tuple[str, ...]]:
    """The texts of each request since the last look, once none is under way."""
    while provider.at_once:
        time.sleep(0.01)
    requested_texts = [tuple(request["body"]["input"]) for request in provider.requests]
    provider.requests.clear()
    return requested_texts
