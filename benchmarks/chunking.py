"""Recall, precision and IoU of characters beside Chroma's chunking evaluation.

    python -m benchmarks.chunking FOLDER

FOLDER has questions.csv of brandonstarxel/chunking_evaluation@d451fc4 (MIT), and
known.json: for each cut of the corpora the five retrieved windows of each question,
with the values of that project's own functions.
"""

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.measures import measure_rankings, parse_measure
from retrievers.passage import Passage, Span

MEASURES = {
    "precision": "P(unit='chars')@5",
    "recall": "R(unit='chars')@5",
    "iou": "IoU@5",
}
"""Name in known.json -> ours."""
TOLERANCE = 1e-12


def read_spans(file: Path) -> dict[str, list[Span]]:
    """Read the labelled spans of each question, in the file's order."""
    spans: dict[str, list[Span]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines)):
            references = json.loads(row["references"])
            spans[str(number)] = [
                Span(row["corpus_id"], reference["start_index"], reference["end_index"])
                for reference in references
            ]
    return spans


def score_windows(
    spans: Mapping[str, Sequence[Span]], rows: Sequence[Mapping[str, Any]]
) -> dict[str, list[float]]:
    """Score the retrieved windows of every question by our measures."""
    passages: dict[str, list[Passage]] = {}
    for row in rows:
        windows = row["retrieved"]
        passages[str(row["question"])] = [
            Passage(document, start, end, 0, float(-rank))
            for rank, (document, start, end) in enumerate(windows)
        ]
    grades = {
        question: {span.document: 1 for span in question_spans}
        for question, question_spans in spans.items()
    }
    measured = measure_rankings(
        [parse_measure(name) for name in MEASURES.values()],
        grades,
        {},
        passages=passages,
        spans=spans,
    )
    return dict(zip(MEASURES, measured.values.tolist(), strict=True))


def main(folder: Path) -> None:
    """Print each cut's means, theirs and ours, and how many questions agree."""
    spans = read_spans(folder / "questions.csv")
    known = json.loads((folder / "known.json").read_text(encoding="utf-8"))
    print(f"{len(spans)} questions; means: theirs, ours; questions that are equal")
    for cut, rows in known.items():
        ours = score_windows(spans, rows)
        for name in MEASURES:
            theirs = [row[name] for row in rows]
            pairs = zip(theirs, ours[name], strict=True)
            equal = sum(abs(their - our) <= TOLERANCE for their, our in pairs)
            their_mean = sum(theirs) / len(theirs)
            our_mean = sum(ours[name]) / len(rows)
            print(f"{cut:10}{name:10} {their_mean:.6f} {our_mean:.6f} {equal:4}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
