"""How long reading takes.

Three million judgments, and a million short documents as `harness check` reads them.

    python -m benchmarks.loading judgments | documents

Each is run in a process of its own, so that the peak of memory is its own. The
collections are made from a seed.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path


class Clock:
    """Seconds that went by, and seconds of a processor.

    On a machine that others use the second figure counts.
    """

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def read(self) -> str:
        """Return both."""
        wall, processor = (
            time.perf_counter() - self._wall,
            time.process_time() - self._processor,
        )
        return f"{wall:.1f} s, {processor:.1f} s of a processor"


def judgments(folder: Path) -> str:
    """30,000 queries with 100 judgments each, over 1,000,000 documents."""
    from harness.dataset import DatasetReference, Labels
    from harness.dataset.choose_reader import open_source
    from harness.dataset.read_problems import ReadProblems

    path, draw = folder / "qrels" / "test.tsv", random.Random(0)
    path.parent.mkdir()
    for name in ("corpus.jsonl", "queries.jsonl"):
        (folder / name).touch()
    with path.open("w", encoding="utf-8") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for query in range(30_000):
            some = draw.sample(range(1_000_000), 100)
            file.writelines(
                f"q{query}\td{document}\t{document % 4}\n" for document in some
            )
    clock, found = Clock(), ReadProblems()
    _, source = open_source(DatasetReference(folder))
    held: dict[str, Labels] = {
        query: labels for _, query, labels in source.labels(found)
    }
    told = clock.read()
    assert (
        not found
        and sum(len(labels.documents) for labels in held.values()) == 3_000_000
    )
    return f"3,000,000 judgments of 30,000 queries: {told}"


def documents(folder: Path) -> str:
    """Check 1,000,000 documents of 12 words, as `harness check` does.

    With 1,000 queries of 3 judgments each.
    """
    from harness.preflight.check import check_target

    draw = random.Random(0)
    words = [f"word{number}" for number in range(5_000)]
    (folder / "qrels").mkdir()
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for number in range(1_000_000):
            text = " ".join(draw.choices(words, k=12))
            file.write(
                json.dumps({"_id": f"d{number}", "title": "", "text": text}) + "\n"
            )
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"_id": f"q{n}", "text": " ".join(draw.choices(words, k=5))})
            + "\n"
            for n in range(1_000)
        )
    with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        file.writelines(
            f"q{n}\td{d}\t1\n"
            for n in range(1_000)
            for d in draw.sample(range(1_000_000), 3)
        )
    clock = Clock()
    report = list(check_target(folder).lines())
    told = clock.read()
    assert report[-1] == "nothing is wrong"
    return f"1,000,000 documents, checked: {told}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        told = {"judgments": judgments, "documents": documents}[sys.argv[1]](
            Path(place)
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{told}, peak {peak:,.0f} MiB")
