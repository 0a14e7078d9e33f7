"""How far half the bits change the answers.

One model in 32 bits and in bfloat16, on the same queries.

    python benchmarks/half.py DATASET [--model MODEL] [--documents N]

DATASET is a folder in BEIR's format. Prints the share of common hits, the differences
of scores and both nDCG@10; vectors come from the cache where they are there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from overhead import portion

import harness


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
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = portion(arguments.dataset, Path(folder) / "data", arguments.documents)
        file = Path(folder) / "half.toml"
        file.write_text(
            f'name = "half"\ndataset = {json.dumps(str(data))}\nprimary = "nDCG@10"\n'
            'measures = ["nDCG@10"]\n'
            + "".join(
                f'[[retrievers]]\nname = "{dtype}"\nencoder = '
                f'{{ kind = "sentence-transformers", '
                f'model = {json.dumps(arguments.model)}, dtype = "{dtype}" }}\n'
                for dtype in ("float32", "bfloat16")
            ),
            encoding="utf-8",
        )
        results = harness.run(file, harness.RunOptions(Path(folder) / "results"))
        whole, half = (results.rankings(dtype) for dtype in ("float32", "bfloat16"))
    for cut in (1, 10, 100):
        common = [
            len(set(hits.doc_ids[:cut]) & set(half[query].doc_ids[:cut]))
            for query, hits in whole.items()
        ]
        print(
            f"of the first {cut:3} hits the same: "
            f"{sum(common) / sum(len(r.doc_ids[:cut]) for r in whole.values()):.4f}"
        )
    differences = []
    for query, hits in whole.items():
        scores = dict(zip(half[query].doc_ids, half[query].scores, strict=True))
        pairs = zip(hits.doc_ids, hits.scores, strict=True)
        differences += [
            abs(score - scores[doc_id]) for doc_id, score in pairs if doc_id in scores
        ]
    print(
        f"scores of common hits differ by {np.mean(differences):.5f} on average, "
        f"{max(differences):.5f} at most"
    )
    for row in results.summary[results.summary["measure"] == "nDCG@10"].to_dict(
        "records"
    ):
        print(f"nDCG@10 {row['retriever']}: {row['mean']:.5f}")


if __name__ == "__main__":
    main()
