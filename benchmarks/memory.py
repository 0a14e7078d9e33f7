"""Memory of a whole `harness run` as the corpus grows: hashed vectors, the edge store, documents of twelve words.

    python benchmarks/memory.py [DOCUMENTS ...]

Prints the peak of RssAnon (Linux) of a process of its own for each number of documents.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUERIES = 50


def corpus(folder: Path, count: int) -> None:
    chance = random.Random(1)
    words = [f"w{i}" for i in range(5000)]
    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as rows:
        for i in range(count):
            text = " ".join(chance.choices(words, k=12))
            rows.write(json.dumps({"_id": f"d{i}", "title": f"t{i}", "text": text}) + "\n")
    asked = [json.dumps({"_id": f"q{i}", "text": " ".join(chance.choices(words, k=5))}) for i in range(QUERIES)]
    (folder / "queries.jsonl").write_text("\n".join(asked), encoding="utf-8")
    judged = [f"q{i}\td{chance.randrange(count)}\t1" for i in range(QUERIES)]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged), encoding="utf-8")


def peak(folder: Path) -> float:
    """Return the largest RssAnon of a run, in MB, sampled every 50 ms."""
    file = folder / "memory.toml"
    file.write_text(
        f'name = "memory"\ndataset = {json.dumps(str(folder / "data"))}\nprimary = "nDCG@10"\nmeasures = ["nDCG@10"]\n'
        '[[retrievers]]\nname = "hashed"\nencoder = { kind = "hashing", dimensions = 64 }\nstore = "edge"\n',
        encoding="utf-8",
    )
    options = f"harness.Options(Path({str(folder)!r}))"
    code = f"from pathlib import Path; import harness; harness.run(Path({str(file)!r}), {options})"
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "HARNESS_CACHE": str(folder / "cache")})
    seen = [0.0]
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        if "RssAnon:" in status:
            seen.append(int(status.split("RssAnon:")[1].split()[0]) / 1024)
        time.sleep(0.05)
    if process.returncode:
        sys.exit(process.returncode)
    return max(seen)


if __name__ == "__main__":
    for count in map(int, sys.argv[1:] or ("50000", "200000")):
        with tempfile.TemporaryDirectory() as scratch:
            corpus(Path(scratch) / "data", count)
            print(f"{count:,} documents: {peak(Path(scratch)):.0f} MB", flush=True)
