"""What the harness costs above its model.

A dense experiment against SentenceTransformer.encode and a product.

    python benchmarks/overhead.py DATASET [--model MODEL] [--documents N]

DATASET is a folder in BEIR's format. Both sides embed the same texts with the same
model, in one process, one after the other; the harness also reads and checks the data,
indexes, searches, scores, compares and writes its report. Prints seconds of each, their
ratio, and nDCG@10 of both.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np


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
    parser.add_argument("--dtype", default="float32")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = portion(arguments.dataset, Path(folder) / "data", arguments.documents)
        os.environ["HARNESS_CACHE"] = str(Path(folder) / "cache")
        by_hand, right = plain(data, arguments.model, arguments.dtype)
        cold, found = harnessed(data, Path(folder), arguments.model, arguments.dtype)
        warm, again = harnessed(data, Path(folder), arguments.model, arguments.dtype)
    print(f"encode and product by hand   {by_hand:8.1f} s   nDCG@10 {right:.5f}")
    print(
        f"experiment, cold             {cold:8.1f} s   nDCG@10 {found:.5f}   ratio "
        f"{cold / by_hand:.3f}"
    )
    print(
        f"experiment, all cached       {warm:8.1f} s   nDCG@10 {again:.5f}   ratio to "
        f"cold {warm / cold:.3f}"
    )


def plain(data: Path, name: str, dtype: str) -> tuple[float, float]:
    """Embed, multiply and sort; loading the model is not timed."""
    import pytrec_eval
    import torch
    from sentence_transformers import SentenceTransformer

    from harness.dataset import DatasetReference, load_dataset
    from retrievers.local.weights import Weights

    dataset = load_dataset(DatasetReference(data))
    model = SentenceTransformer(
        str(Weights(name).folder or name),
        device="cpu",
        model_kwargs={"torch_dtype": getattr(torch, dtype)},
    )
    model.encode(["warm up"])
    documents = list(dataset.documents())
    started = time.perf_counter()
    vectors = model.encode(
        [document.content for document in documents], normalize_embeddings=True
    )
    queries = model.encode(
        [query.text for query in dataset.queries], normalize_embeddings=True
    )
    scores = queries.astype(np.float32) @ vectors.astype(np.float32).T
    best = np.argpartition(-scores, 99, axis=1)[:, :100]
    seconds = time.perf_counter() - started
    run = {
        query.id: {documents[i].id: float(scores[row, i]) for i in best[row]}
        for row, query in enumerate(dataset.queries)
    }
    qrels = {query: dict(said.grades or {}) for query, said in dataset.labels.items()}
    told = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"}).evaluate(run)
    return seconds, sum(values["ndcg_cut_10"] for values in told.values()) / len(told)


def harnessed(data: Path, folder: Path, model: str, dtype: str) -> tuple[float, float]:
    """Run the experiment from its file to its report; loading the model is timed."""
    import harness

    file = folder / "overhead.toml"
    file.write_text(
        f'name = "overhead"\ndataset = {json.dumps(str(data))}\nprimary = "nDCG@10"\n'
        'measures = ["nDCG@10", "R@100"]\n'
        '[[retrievers]]\nname = "dense"\n'
        f'encoder = {{ kind = "sentence-transformers", model = {json.dumps(model)}, '
        f'dtype = "{dtype}" }}\n'
    )
    started = time.perf_counter()
    results = harness.run(file, harness.RunOptions(folder / "results"))
    seconds = time.perf_counter() - started
    return seconds, float(
        results.summary.loc[results.summary["measure"] == "nDCG@10", "mean"].iloc[0]
    )


def portion(source: Path, target: Path, count: int | None) -> Path:
    """A copy of the data set with fewer documents.

    The data set itself where no number is given.
    """
    if count is None:
        return source.resolve()
    (target / "qrels").mkdir(parents=True)
    judged = (source / "qrels" / "test.tsv").read_text(encoding="utf-8")
    (target / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")
    (target / "queries.jsonl").write_text(
        (source / "queries.jsonl").read_text(encoding="utf-8"), encoding="utf-8"
    )
    named = {line.split("\t")[1] for line in judged.splitlines()[1:]}
    with (
        (source / "corpus.jsonl").open(encoding="utf-8") as rows,
        (target / "corpus.jsonl").open("w", encoding="utf-8") as kept,
    ):
        kept.writelines(
            row
            for number, row in enumerate(rows)
            if number < count or json.loads(row)["_id"] in named
        )
    return target


if __name__ == "__main__":
    main()
