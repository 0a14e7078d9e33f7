"""A dense experiment against mteb: the same texts, model, process and threads.

From files to nDCG@10.

    pip install mteb==2.26.24
    python benchmarks/against_mteb.py DATASET [--model MODEL] [--documents N] [--rounds
    N]

DATASET is a folder in BEIR's format with English texts. Both sides read the files, load
the model, embed, search and score; the harness runs cold, cold with bfloat16, and with
all cached. Prints seconds, ratios and nDCG@10.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from overhead import harnessed, portion


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2")
    parser.add_argument(
        "--documents",
        type=int,
        help="only the first so many documents, and those that are judged",
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="the machine's speed varies"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = portion(arguments.dataset, Path(folder) / "data", arguments.documents)
        for turn in range(arguments.rounds):
            os.environ["HARNESS_CACHE"] = str(Path(folder) / f"cache{turn}")
            theirs, score = through_mteb(data, arguments.model)
            print(
                f"mteb                           {theirs:8.1f} s            nDCG@10 "
                f"{score:.5f}",
                flush=True,
            )
            for label, dtype in (
                ("cold", "float32"),
                ("cold, bfloat16", "bfloat16"),
                ("all cached", "float32"),
            ):
                ours, score = harnessed(data, Path(folder), arguments.model, dtype)
                print(
                    f"harness, {label:<21} {ours:8.1f} s   {ours / theirs:5.3f}   "
                    f"nDCG@10 {score:.5f}",
                    flush=True,
                )


def through_mteb(data: Path, name: str) -> tuple[float, float]:
    """Evaluate with mteb's own task class, reading the files in place of the hub's."""
    import mteb
    from mteb.abstasks.retrieval import AbsTaskRetrieval

    import datasets
    from retrievers.local.weights import Weights

    class Local(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = mteb.get_task("SciFact").metadata

        def load_data(self, **_: Any) -> None:
            texts = {
                kind: [
                    json.loads(line)
                    for line in (data / f"{kind}.jsonl").open(encoding="utf-8")
                ]
                for kind in ("corpus", "queries")
            }
            judged: dict[str, dict[str, int]] = {}
            for line in (
                (data / "qrels" / "test.tsv")
                .read_text(encoding="utf-8")
                .splitlines()[1:]
            ):
                query, document, grade = line.split("\t")
                judged.setdefault(query, {})[document] = int(grade)
            corpus = [
                {"id": row["_id"], "title": row["title"], "text": row["text"]}
                for row in texts["corpus"]
            ]
            queries = [
                {"id": row["_id"], "text": row["text"]}
                for row in texts["queries"]
                if row["_id"] in judged
            ]
            split = {
                "corpus": datasets.Dataset.from_list(corpus),
                "queries": datasets.Dataset.from_list(queries),
                "relevant_docs": judged,
                "top_ranked": None,
            }
            self.dataset = {"default": {"test": split}}
            self.data_loaded = True

    started = time.perf_counter()
    model = mteb.models.SentenceTransformerEncoderWrapper(
        str(Weights(name).folder or name), device="cpu"
    )
    result = mteb.evaluate(
        model, Local(), cache=None, show_progress_bar=False, co2_tracker=False
    )
    seconds = time.perf_counter() - started
    return seconds, float(result.task_results[0].scores["test"][0]["ndcg_at_10"])


if __name__ == "__main__":
    main()
