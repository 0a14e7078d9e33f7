"""Saved runs in which each query is a success or a failure."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from tests.support import layouts

QUERIES = 40
MISSED = {
    "a": {0},
    "b": set(range(1, 9)),
    "c": set(range(9, 17)),
}
"""The queries on which a saved run ranks another document first.

Of "a" against either other retriever 8 queries are won, 1 is lost.
"""


def ran(
    folder: Path, missed: Mapping[str, AbstractSet[int]], **options: object
) -> Results:
    """Saved runs whose Success@1 is 1 but on the missed queries."""
    data = folder / "data"
    documents = [{"id": f"d{n}", "text": f"text {n}"} for n in range(QUERIES)]
    queries = [
        {"id": f"q{n:02}", "query": f"what {n}", "relevant": [f"d{n}"]}
        for n in range(QUERIES)
    ]
    layouts.jsonl(data / "documents.jsonl", documents)
    layouts.jsonl(data / "queries.jsonl", queries)
    retrievers = []
    for name, misses in missed.items():
        lines = [
            f"q{n:02} Q0 d{(n + 1) % QUERIES if n in misses else n} 1 1.0 {name}\n"
            for n in range(QUERIES)
        ]
        path = folder / f"{name}.trec"
        path.write_text("".join(lines), encoding="utf-8")
        retrievers.append({"name": name, "kind": "run", "path": str(path)})
    experiment = {
        "name": "chosen",
        "dataset": str(data),
        "primary": "Success@1",
        "retrievers": retrievers,
        **options,
    }
    return run(experiment, RunOptions(folder / "out"))
