"""What parting the work costs: the texts of an experiment embedded by one process, then by N one after another.

    python benchmarks/shards.py DATASET [--model MODEL] [--documents N] [--shards 16] [--rounds 2]

DATASET is a folder in BEIR's format. Prints processor seconds of whole processes. What each of them takes to start and
to load the model is measured in it and told apart: all until it has embedded a data set of one document, and loading
the model once more for its share. The rest reads and checks the data, plans, embeds and writes. Each round embeds anew,
with caches of its own, the one process before and after the shares.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from overhead import portion

from harness.running.embed_shards import Shard, embed
from retrievers.encoders.sentence_transformers import SentenceTransformerEncoder

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue


class Seconds(NamedTuple):
    """Processor seconds of one process, or of several together."""

    start: float
    """To start the interpreter, import what is needed, and load the model."""
    rest: float


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


def share(files: tuple[Path, Path], folder: Path, shard: Shard, answers: SimpleQueue[Seconds]) -> None:
    """Embed the smaller experiment, then a share of the other, in this process, which was begun for them."""
    os.environ["HARNESS_CACHE"] = str(folder / f"cache-{shard.number}")
    embed(files[0], str(folder / f"start-{shard.number}"))
    started = time.process_time()
    whole, loading = SentenceTransformerEncoder.concurrency, [0.0]

    def loaded(encoder: SentenceTransformerEncoder) -> int:
        before = time.process_time()
        count: int = whole.__get__(encoder)
        loading[0] += time.process_time() - before
        return count

    SentenceTransformerEncoder.concurrency = property(loaded)  # type: ignore[assignment, method-assign]
    embed(files[1], str(folder / "parts"), shard=shard)
    start = started + loading[0]
    answers.put(Seconds(start, time.process_time() - start))


def embedded(files: tuple[Path, Path], folder: Path, count: int) -> Seconds:
    """Embed the larger experiment in `count` processes, one after another."""
    context = multiprocessing.get_context("spawn")
    answers: SimpleQueue[Seconds] = context.SimpleQueue()
    every = []
    for number in range(1, count + 1):
        process = context.Process(target=share, args=(files, folder, Shard(number, count), answers))
        process.start()
        every.append(answers.get())
        process.join()
    return Seconds(sum(one.start for one in every), sum(one.rest for one in every))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument("--documents", type=int, help="only the first so many documents, and those that are judged")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = portion(arguments.dataset, folder / "data", arguments.documents)
        least = experiment(smallest(folder / "smallest"), arguments.model, folder / "smallest.toml")
        files = (least, experiment(data, arguments.model, folder / "all.toml"))
        for number in range(arguments.rounds):
            before, many, after = (
                embedded(files, folder / f"{number}-{step}", count)
                for step, count in enumerate((1, arguments.shards, 1))
            )
            one = (before.rest + after.rest) / 2
            print(
                f"start and loading: {before.start:.1f} and {after.start:.1f} s, {many.start:.1f} s in "
                f"{arguments.shards}; the rest: {before.rest:.1f} and {after.rest:.1f} s in one, {many.rest:.1f} s in "
                f"{arguments.shards}, ratio {many.rest / one:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
