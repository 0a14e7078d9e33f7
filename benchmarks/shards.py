"""What parting the work costs: the texts of an experiment embedded by one process, then by N one after another.

    python benchmarks/shards.py DATASET [--model MODEL] [--documents N] [--shards 16] [--rounds 2]

DATASET is a folder in BEIR's format. Prints processor seconds (user and system) of whole processes. What a process
takes to start and to load the model is had from one that embeds a single document, and told apart. Each round embeds
anew, with a cache of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from overhead import portion

STARTS = 4
"""Processes a round that embed one document: their median is what starting and loading take."""


def experiment(data: Path, model: str, file: Path) -> Path:
    """Write an experiment of one local model over the data set."""
    file.write_text(
        f'name = "shards"\ndataset = {json.dumps(str(data))}\nprimary = "nDCG@10"\nmeasures = ["nDCG@10"]\n'
        '[[retrievers]]\nname = "local"\n'
        f'encoder = {{ kind = "sentence-transformers", model = {json.dumps(model)} }}\n',
        encoding="utf-8",
    )
    return file


def smallest(folder: Path) -> Path:
    """Write a data set of one document and one query."""
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "d", "text": "one document"}\n', encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "one query"}\n', encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n", encoding="utf-8")
    return folder


def seconds(file: Path, folder: Path, count: int) -> list[float]:
    """Processor seconds of each of `count` processes that embed one share of the experiment, one after another."""
    taken = []
    for number in range(1, count + 1):
        command = ["embed", str(file), "--to", str(folder / "parts"), "--shard", f"{number}/{count}", "--quiet"]
        cache = {**os.environ, "HARNESS_CACHE": str(folder / f"cache-{number}")}
        process = subprocess.Popen([Path(sys.executable).with_name("harness"), *command], env=cache)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"shard {number} of {count} failed")
        taken.append(used.ru_utime + used.ru_stime)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--documents", type=int, help="only the first so many documents, and those that are judged")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    starts, wholes, shares = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = portion(arguments.dataset, folder / "data", arguments.documents)
        file = experiment(data, arguments.model, folder / "all.toml")
        least = experiment(smallest(folder / "smallest"), arguments.model, folder / "smallest.toml")
        for number in range(arguments.rounds):
            for attempt in range(STARTS):
                starts += seconds(least, folder / f"start-{number}-{attempt}", 1)
            wholes += seconds(file, folder / f"one-{number}", 1)
            shares.append(sum(seconds(file, folder / f"many-{number}", arguments.shards)))
            print(f"round {number + 1}: one {wholes[-1]:.1f} s, {arguments.shards} shards {shares[-1]:.1f} s")
    start, whole, many = median(starts), median(wholes), median(shares)
    alone, parted = whole - start, many - arguments.shards * start
    print(f"start and loading: {start:.1f} s a process ({min(starts):.1f} to {max(starts):.1f})")
    print(f"without them: one {alone:.1f} s, {arguments.shards} shards {parted:.1f} s, ratio {parted / alone:.2f}")
    print(f"with them: ratio {many / whole:.2f}")


if __name__ == "__main__":
    main()
