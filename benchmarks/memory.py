"""Memory of a whole `harness run`, report and all.

As the corpus grows, and as the queries do.

    python benchmarks/memory.py [DOCUMENTS ...]
        hashed vectors, the edge store, 50 queries
    python benchmarks/memory.py --queries 20000 100000
        two BM25 retrievers, 5,000 documents, 100 hits a query

Documents of twelve words. Prints, for each number, the peaks of a process of its own
(Linux): RssAnon, sampled every 50 ms, and VmHWM, the most that was ever resident,
mapped files with it; and the time that the run took.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

QUERIES, DOCUMENTS = 50, 5_000
HASHED = """
[[retrievers]]
name = "hashed"
encoder = { kind = "hashing", dimensions = 64 }
store = "edge"
"""
WORDS = """
[[retrievers]]
name = "bm25"
kind = "bm25"
[[retrievers]]
name = "flat"
kind = "bm25"
b = 0.0
"""


class Peak(NamedTuple):
    """What one run took: megabytes, megabytes, seconds."""

    anonymous: float
    resident: float
    seconds: float


def corpus(folder: Path, count: int, queries: int) -> None:
    chance = random.Random(1)
    words = [f"w{i}" for i in range(5000)]
    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as rows:
        for i in range(count):
            text = " ".join(chance.choices(words, k=12))
            rows.write(
                json.dumps({"_id": f"d{i}", "title": f"t{i}", "text": text}) + "\n"
            )
    asked = [
        json.dumps({"_id": f"q{i}", "text": " ".join(chance.choices(words, k=5))})
        for i in range(queries)
    ]
    (folder / "queries.jsonl").write_text("\n".join(asked), encoding="utf-8")
    judged = [f"q{i}\td{chance.randrange(count)}\t1" for i in range(queries)]
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "\n".join(judged), encoding="utf-8"
    )


def experiment(folder: Path, retrievers: str) -> Path:
    """Write an experiment over the data set in a folder."""
    file = folder / "memory.toml"
    file.write_text(
        f'name = "memory"\ndataset = {json.dumps(str(folder / "data"))}\nprimary = '
        '"nDCG@10"\nmeasures = ["nDCG@10"]\n'
        f"{retrievers}",
        encoding="utf-8",
    )
    return file


def whole_run(file: Path) -> str:
    """Python that runs an experiment."""
    options = f"harness.RunOptions(Path({str(file.parent)!r}))"
    return (
        f"from pathlib import Path; import harness; harness.run(Path({str(file)!r}), "
        f"{options})"
    )


def peak(code: str, cache: Path) -> Peak:
    """Run Python in a process of its own."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "HARNESS_CACHE": str(cache)}
    )
    anonymous = resident = 0.0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        if "RssAnon:" in status:
            anonymous = max(anonymous, _megabytes(status, "RssAnon:"))
            resident = _megabytes(status, "VmHWM:")
        time.sleep(0.05)
    if process.returncode:
        sys.exit(process.returncode)
    return Peak(anonymous, resident, time.perf_counter() - start)


def _megabytes(status: str, key: str) -> float:
    return int(status.split(key)[1].split()[0]) / 1024


def show(what: str, one: Peak) -> None:
    print(
        f"{what}: {one.anonymous:.0f} MB, resident {one.resident:.0f} MB, "
        f"{one.seconds:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "documents", type=int, nargs="*", default=[50_000, 200_000], metavar="DOCUMENTS"
    )
    parser.add_argument("--queries", type=int, nargs="+", metavar="QUERIES")
    given = parser.parse_args()
    for count in given.queries or given.documents:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            documents, queries = (
                (DOCUMENTS, count) if given.queries else (count, QUERIES)
            )
            corpus(folder / "data", documents, queries)
            file = experiment(folder, WORDS if given.queries else HASHED)
            show(
                f"{documents:,} documents, {queries:,} queries",
                peak(whole_run(file), folder / "cache"),
            )
