"""Size of a big experiment's report, and the time to write and to open it.

    python benchmarks/report.py [QUERIES] [RETRIEVERS]

Made up: 20,000 documents of 60 words, BM25 with different parameters, 100 hits a query.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path

import harness
from harness import records
from harness.report.write import write_report

WORDS = 5_000
DOCUMENTS = 20_000
OPENED = """
    const [page] = performance.getEntriesByType('navigation');
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    return [paint.startTime, page.domContentLoadedEventEnd, page.loadEventEnd];
"""


def collection(folder: Path, queries: int) -> Path:
    rng = random.Random(0)
    words = [
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 10)))
        for _ in range(WORDS)
    ]

    def speak(count: int) -> str:
        return " ".join(
            words[min(WORDS - 1, int(rng.paretovariate(0.6)))] for _ in range(count)
        )

    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as handle:
        for i in range(DOCUMENTS):
            handle.write(
                json.dumps({"_id": f"doc-{i:06}", "title": speak(6), "text": speak(60)})
                + "\n"
            )
    rows = ["query-id\tcorpus-id\tscore"]
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as handle:
        for i in range(queries):
            handle.write(json.dumps({"_id": f"query-{i:04}", "text": speak(8)}) + "\n")
            rows += [
                f"query-{i:04}\tdoc-{doc:06}\t{rng.randint(1, 3)}"
                for doc in rng.sample(range(DOCUMENTS), 10)
            ]
    (folder / "qrels" / "test.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def experiment(folder: Path, data: Path, retrievers: int) -> Path:
    blocks = "".join(
        f'\n[[retrievers]]\nname = "bm25-{i}"\nkind = "bm25"\nk1 = '
        f"{0.3 + 0.2 * i:.1f}\nb = {i / retrievers:.2f}\n"
        for i in range(retrievers)
    )
    measures = '["P@5", "R@10", "R@100", "nDCG@10", "RR@10", "AP", "Success@10"]'
    path = folder / "big.toml"
    path.write_text(
        f'name = "big"\ndataset = "{data}"\nprimary = "nDCG@10"\nmeasures = '
        f"{measures}\n{blocks}"
    )
    return path


def opening(page: Path) -> list[float]:
    """Milliseconds to the first paint, a complete document, and the load event."""
    from tests.support.browser import chromium

    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as driver:
        driver.get(page.as_uri())
        time.sleep(3)
        found: list[float] = driver.execute_script(OPENED)
        return found


def main() -> None:
    queries, retrievers = (
        int(word) for word in (*sys.argv[1:], *("1000", "10")[len(sys.argv) - 1 :])
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = experiment(folder, collection(folder / "data", queries), retrievers)
        results = harness.run(path, harness.RunOptions(results=folder / "results"))
        read = records.read_results(results.folder)
        started = time.perf_counter()
        write_report(read)
        seconds = time.perf_counter() - started
        page = results.folder / "report.html"
        print(
            f"{retrievers} retrievers x {queries} queries x 100 hits: "
            f"{page.stat().st_size / 1e6:.1f} MB"
        )
        print(f"written in {seconds:.1f} s")
        paint, ready, load = opening(page)
        print(
            f"in Chromium: first paint {paint:.0f} ms, document complete {ready:.0f} "
            f"ms, loaded {load:.0f} ms"
        )


if __name__ == "__main__":
    main()
