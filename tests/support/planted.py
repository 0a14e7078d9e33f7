"""Two saved runs; one loses on queries that have something in common."""

from pathlib import Path
from typing import Any

import numpy as np

from harness.pipeline import run
from harness.records import Results
from harness.running.options import RunOptions
from retrievers.files.trec_files import write_trec_run
from retrievers.types import ranked
from tests.support import small

QUERIES = 130
QUOTED = 26
"""Every fifth query has quotation marks."""


def word(number: int) -> str:
    """A word of letters for a number."""
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:04}")


def planted_experiment(
    folder: Path, *, queries: int = QUERIES, loss: int = 4, report: bool = False
) -> Path:
    """Two saved runs: `bad` has the relevant document of quoted queries `loss` lower.

    Otherwise both have it at one of the first two ranks, drawn.
    """
    rng = np.random.default_rng(0)
    texts = {f"d{i}": f"page about {word(i)} in full" for i in range(queries)}
    rows: list[dict[str, object]] = []
    runs: dict[str, list[tuple[str, list[str]]]] = {"good": [], "bad": []}
    for i in range(queries):
        is_quoted = i % 5 == 0
        ending = " now" * (i % 3)
        text = f'"{word(i)}"{ending}' if is_quoted else f"{word(i)} ,{ending}"
        rows.append(
            {
                "id": f"q{i}",
                "query": text,
                "relevant_documents": [f"d{i}"],
                "half": "first" if i % 2 else "second",
            }
        )
        others = [f"d{(i + step) % queries}" for step in range(1, 9)]
        for name, hits in runs.items():
            rank = int(rng.integers(0, 2)) + (
                loss if is_quoted and name == "bad" else 0
            )
            hits.append((f"q{i}", [*others[:rank], f"d{i}", *others[rank:]]))
    small.markdown(folder / "data", texts, rows)
    blocks: list[str] = []
    for name, hits in runs.items():
        write_trec_run(
            folder / f"{name}.run",
            {q: ranked(docs, np.arange(len(docs), 0, -1.0)) for q, docs in hits},
            tag=name,
        )
        path = (folder / f"{name}.run").as_posix()
        blocks.append(f'[[retrievers]]\nname = "{name}"\nkind = "run"\npath = "{path}"')
    return small.experiment(folder, retrievers="\n".join(blocks), report=report)


def planted_results(folder: Path, **options: Any) -> Results:
    """The results of such an experiment."""
    return run(planted_experiment(folder, **options), RunOptions(folder / "out"))
