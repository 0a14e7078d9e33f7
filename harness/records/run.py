"""The outcome of one retriever, with its rankings file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic_core import from_json

from harness.records.jsonl import new_text_file
from retrievers.files import trec_files
from retrievers.files.trec_columns import encode_id
from retrievers.meter import StageTotals
from retrievers.types import Ranking


class StageLatency(NamedTuple):
    """How long one query took at one stage, over a sample of queries asked one at a time."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    measured_at: str


@dataclass(frozen=True, slots=True)
class Run:
    """What one retriever did."""

    retriever: str
    rankings: Mapping[str, Ranking]
    """Query id -> ranking; empty where the retriever failed."""
    stages: Mapping[str, StageTotals] = field(default_factory=dict)
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The integrity ledger: kind -> ids."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Model, revision, digest, store: what answered."""
    latency: Mapping[str, StageLatency] = field(default_factory=dict)
    error: str = ""
    """Why it failed, in one message."""

    def ranked_ids(self) -> dict[str, Sequence[str]]:
        """Query id -> document ids, best first."""
        return {query: ranking.doc_ids for query, ranking in self.rankings.items()}


def write_run_files(folder: Path, run: Run) -> None:
    """Keep one retriever's rankings, for reading back and for other tools; done as soon as it has answered."""
    tag, name = encode_id(run.retriever), run.retriever
    with (
        new_text_file(folder / "rankings" / f"{name}.jsonl") as rows,
        new_text_file(folder / "runs" / f"{name}.trec") as lines,
    ):
        for query, ranking in run.rankings.items():
            scores = trec_files.format_scores(ranking.scores)  # once for both
            row = json.dumps(
                {"query_id": query, "doc_ids": ranking.doc_ids}, ensure_ascii=False
            )
            rows.write(f'{row[:-1]}, "scores": [{", ".join(scores)}]}}\n')
            lines.write(trec_files.run_lines(query, ranking, scores, tag=tag))


def ranking_from_json(line: bytes) -> tuple[str, Ranking]:
    """Read a line of rankings/*.jsonl: (query id, ranking)."""
    row = from_json(
        line, cache_strings="keys"
    )  # looking up ids that were read before takes longer than making them
    scores = np.array(row["scores"], dtype=np.float64)
    scores.setflags(write=False)
    return row["query_id"], Ranking(tuple(row["doc_ids"]), scores)
