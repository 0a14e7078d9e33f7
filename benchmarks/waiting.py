"""How long people wait for commands.

Seconds, and each row against something measured in the same run.

    python -m benchmarks.waiting
        commands, a cached run of the quickstart, indexing, scoring
    python -m benchmarks.waiting --large
        also many retrievers, many queries, many documents: some 20 minutes

Seconds by the clock, and of the processor: on a shared machine the second are the ones
to compare. Commands are processes of their own, the best of three each. They are
compared with the start of an interpreter, a run with `import qdrant_client`, indexing
with `upload_collection` in memory, scoring with pytrec_eval, large comparisons with
pandas' parser, which reads the same lines, large searches with a product of BLAS. `make
demo` and `make test`, which install packages, are timed by hand.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks import memory, report, scoring

PROJECT = Path(__file__).parents[1]
QUICKSTART = str(PROJECT / "experiments" / "quickstart.toml")
COUNT, DIMENSIONS = 50_000, 384
MEASURES = ["nDCG@10", "P@5", "R@10", "R@100", "RR@10", "AP", "Success@10"]


class Took(NamedTuple):
    """Seconds of the best of some rounds."""

    wall: float
    processor: float
    """Of this process and of those that it started."""


def seconds(act: Callable[[], object], rounds: int = 3, first: int = 1) -> Took:
    """The best of some rounds, after one that is not counted.

    Files are then at hand, and compiled.
    """
    times = []
    for _ in range(rounds + first):
        started, before = time.perf_counter(), sum(os.times()[:4])
        act()
        times.append(Took(time.perf_counter() - started, sum(os.times()[:4]) - before))
    return min(times[first:])


def python(*words: str) -> None:
    subprocess.run(
        [sys.executable, *words], cwd=PROJECT, check=True, capture_output=True
    )


def command(*words: object) -> None:
    python("-m", "harness", *map(str, words))


def row(what: str, took: Took, against: str, theirs: Took, *, note: str = "") -> None:
    share = took.processor / theirs.processor
    print(
        f"{what:44} {took.wall:8.2f} s {took.processor:8.2f} s {share:8.2f} of "
        f"{against} ({theirs.wall:.2f} s, "
        f"{theirs.processor:.2f} s) {note}",
        flush=True,
    )


def commands(folder: Path) -> None:
    start = seconds(partial(python, "-c", "pass"))
    client = seconds(partial(python, "-c", "import qdrant_client"))
    results = folder / "results"
    of_start = partial(row, against="an interpreter's start", theirs=start)
    of_start("harness --help", seconds(partial(command, "--help")))
    made = folder / "new.toml"

    def init() -> None:
        made.unlink(missing_ok=True)
        command("init", PROJECT / "datasets" / "survey-templates-en", "--output", made)

    of_start("harness init", seconds(init))
    of_start(
        "harness check",
        seconds(partial(command, "check", QUICKSTART, "--results", results)),
    )
    run = seconds(partial(command, "run", QUICKSTART, "--results", results))
    page = (results / "quickstart" / "report.html").stat().st_size / 1e6
    row(
        "quickstart, all cached",
        run,
        "import qdrant_client",
        client,
        note=f"page {page:.2f} MB",
    )
    saved = results / "quickstart"
    of_start("harness score RESULTS", seconds(partial(command, "score", saved)))
    of_start(
        "harness score QRELS RUN",
        seconds(
            partial(command, "score", saved / "qrels.trec", saved / "runs/bm25.trec")
        ),
    )
    of_start("harness report", seconds(partial(command, "report", saved)))


def indexing(folder: Path) -> None:
    from qdrant_client import QdrantClient, models

    from retrievers.meter import Meter
    from retrievers.stores.open import open_store
    from retrievers.stores.options import StoreOptions

    vectors = (
        np.random.default_rng(0).normal(size=(COUNT, DIMENSIONS)).astype(np.float32)
    )
    ids, payload = list(range(COUNT)), [{"id": f"d{i}"} for i in range(COUNT)]

    def upload() -> None:
        client = QdrantClient(":memory:")
        client.create_collection(
            "c", models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client.upload_collection("c", vectors=vectors, ids=ids, payload=payload)

    def ours(place: str) -> None:
        store = open_store(
            StoreOptions(place),
            "c",
            documents=COUNT,
            folder=folder,
            meter=Meter(),
            form="dense",
        )
        store.create(DIMENSIONS, anew=True)
        store.upsert([f"d{i}" for i in ids], vectors)
        store.finish({})
        store.close()

    theirs = seconds(upload, 2)
    for place in ("edge", ":memory:"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row(
                f"indexing {COUNT:,} x {DIMENSIONS}, {place}",
                seconds(partial(ours, place), 2),
                "upload_collection",
                theirs,
            )


def measures() -> None:
    data = scoring.data()
    theirs = seconds(partial(scoring.pytrec_eval, *data))
    row(
        "27 measures, 2,000 queries x 100",
        seconds(partial(scoring.ours, *data)),
        "pytrec_eval",
        theirs,
    )


def saved(folder: Path, queries: int, retrievers: int) -> Path:
    """An experiment of runs that other programs saved.

    The better a run, the less noise moves judged documents down.
    """
    data = report.collection(folder / "data", queries)
    rng, judged = np.random.default_rng(0), judgments(data / "qrels" / "test.tsv")
    blocks = []
    for i in range(retrievers):
        lines = []
        for query, grades in judged.items():
            fill = [
                f"doc-{number:06}"
                for number in rng.choice(report.DOCUMENTS, 100, replace=False).tolist()
            ]
            scores = rng.normal(size=100) + 2
            known = dict(zip(fill, scores.tolist(), strict=True))
            known |= {
                doc: grade + float(rng.normal()) * (1 + i / retrievers)
                for doc, grade in grades.items()
            }
            best = sorted(known.items(), key=lambda item: -item[1])[:100]
            lines += [
                f"{query} Q0 {doc} {rank} {score:.4f} r{i}"
                for rank, (doc, score) in enumerate(best, start=1)
            ]
        run = folder / f"r{i}.trec"
        run.write_text("\n".join(lines) + "\n", encoding="utf-8")
        blocks.append(
            f'\n[[retrievers]]\nname = "r{i}"\nkind = "run"\npath = "{run}"\n'
        )
    path = folder / "saved.toml"
    head = (
        f'name = "saved"\nreport = false\ndataset = "{data}"\nprimary = "nDCG@10"\n'
        f"measures = {MEASURES}\n"
    )
    path.write_text(head + "".join(blocks), encoding="utf-8")
    return path


def judgments(path: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, doc, grade = line.split("\t")
        found.setdefault(query, {})[doc] = int(grade)
    return found


def large(folder: Path) -> None:
    """Saved runs: comparisons without their report, and the reports alone.

    Pandas reads the lines of the runs.
    """
    for queries, retrievers in ((2_000, 20), (200, 200)):
        path = saved(folder / f"{retrievers}", queries, retrievers)
        lines = partial(parsed, [path.parent / f"r{i}.trec" for i in range(retrievers)])
        theirs = seconds(lines, 1)
        what, results = (
            f"{retrievers} x {queries:,} x {len(MEASURES)}",
            path.parent / "results",
        )
        took = seconds(partial(command, "run", path, "--results", results), 1, 0)
        row(
            f"comparing {what}",
            took,
            "pandas",
            theirs,
            note=f"largest process so far {peak_of_children():.2f} GB",
        )
        took = seconds(partial(command, "report", results / "saved"), 1, 0)
        size = (results / "saved" / "report.html").stat().st_size / 1e6
        row(f"reporting {what}", took, "pandas", theirs, note=f"page {size:.1f} MB")


def parsed(paths: list[Path]) -> None:
    for path in paths:
        pd.read_csv(path, sep=" ", header=None)


def peak_of_children() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6


def searching(folder: Path) -> None:
    """Exact search in Edge, and BLAS with a sort of the best.

    Queries in blocks of 256.
    """
    from retrievers.meter import Meter
    from retrievers.stores.open import open_store
    from retrievers.stores.options import StoreOptions

    rng, limit = np.random.default_rng(0), 100
    vectors, queries = (
        rng.normal(size=(n, 256)).astype(np.float32) for n in (20_000, 100_000)
    )
    store = open_store(
        StoreOptions("edge"),
        "s",
        documents=20_000,
        folder=folder,
        meter=Meter(),
        form="dense",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store.create(256, anew=True)
        store.upsert([f"d{i}" for i in range(len(vectors))], vectors)
        store.finish({})
    store.search(queries[:1], limit)

    def product() -> None:
        for start in range(0, len(queries), 256):
            np.argpartition(queries[start : start + 256] @ vectors.T, -limit, axis=1)

    theirs = seconds(product, 1, 0)
    row(
        "searching 100,000 in 20,000 x 256",
        seconds(partial(store.search, queries, limit), 1, 0),
        "BLAS",
        theirs,
    )
    store.close()


def documents(folder: Path) -> None:
    """A million documents by hashing, the report with it: its memory."""
    memory.corpus(folder / "data", 1_000_000, memory.QUERIES)
    file = memory.experiment(folder, memory.HASHED)
    memory.show(
        "1,000,000 documents by hashing",
        memory.peak(memory.whole_run(file), folder / "cache"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["HARNESS_CACHE"] = str(folder / "cache")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(
            folder / "compiled"
        )  # nobody compiles his packages at each start
        os.environ["PYTHONPATH"] = str(PROJECT)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        commands(folder)
        indexing(folder / "stores")
        measures()
        if arguments.large:
            large(folder)
            searching(folder)
            documents(folder)


if __name__ == "__main__":
    main()
