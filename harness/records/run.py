"""The outcome of one retriever, with its rankings file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field

from harness.experiment.retriever_config import MAX_TRIALS
from harness.records.jsonl import new_text_file, parse_record
from retrievers.files import trec_files
from retrievers.files.trec_columns import encode_id
from retrievers.meter import StageTotals
from retrievers.types import Passage, Ranking, RetrieverFacts, Trace

TRIAL_SEPARATOR = "~"
"""Separates a retriever's name from the number of a trial in names of files."""


class StageLatency(NamedTuple):
    """The time of one query at one stage, over queries that were sent one at a time."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    measured_at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of one retriever."""

    retriever: str
    rankings: Mapping[str, Ranking]
    """Query id -> ranking; empty if the retriever failed."""
    further_trials: tuple[Mapping[str, Ranking], ...] = ()
    """The rankings of each further trial, if the run repeated it."""
    stages: Mapping[str, StageTotals] = field(default_factory=dict)
    """Stage -> its seconds and counts."""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kind -> ids of documents or queries."""
    facts: RetrieverFacts = field(default_factory=RetrieverFacts)
    """Model, its revision, the digest of its files, store."""
    latency: Mapping[str, StageLatency] = field(default_factory=dict)
    """Stage -> the time of single queries; empty if they were not timed."""
    error: str = ""
    """Why it failed, in one message; "" if it finished."""

    @property
    def trials(self) -> tuple[Mapping[str, Ranking], ...]:
        """The rankings of every trial."""
        return (self.rankings, *self.further_trials)


def write_run_files(folder: Path, run: Run) -> None:
    """Write one retriever's rankings, for this program and for other tools."""
    name = run.retriever
    tag = encode_id(name)
    with new_text_file(folder / "rankings" / f"{name}.jsonl") as rows:
        for trial, rankings in enumerate(run.trials, 1):
            trec_name = name if trial == 1 else f"{name}{TRIAL_SEPARATOR}{trial}"
            with new_text_file(folder / "runs" / f"{trec_name}.trec") as lines:
                for query_id, ranking in rankings.items():
                    scores = trec_files.format_scores(ranking.scores)  # once for both
                    rows.write(_ranking_line(query_id, ranking, scores, trial))
                    lines.write(
                        trec_files.run_lines(query_id, ranking, scores, tag=tag)
                    )


def _ranking_line(
    query_id: str, ranking: Ranking, scores: Sequence[str], trial: int
) -> str:
    """Return a line of rankings/*.jsonl."""
    row = {"query_id": query_id, "doc_ids": ranking.doc_ids}
    row_text = json.dumps(row, ensure_ascii=False).removesuffix("}")
    line = f'{row_text}, "scores": [{", ".join(scores)}]'
    if ranking.passages is not None:
        passages = json.dumps(ranking.passages, ensure_ascii=False)
        line += f', "passages": {passages}'
    if ranking.trace is not None:
        trace = json.dumps(asdict(ranking.trace), ensure_ascii=False)
        line += f', "trace": {trace}'
    if trial > 1:
        line += f', "trial": {trial}'
    return f"{line}}}\n"


class QueryRanking(NamedTuple):
    """One query with its ranking."""

    query_id: str
    ranking: Ranking


class TrialRanking(NamedTuple):
    """One query with its ranking in one trial."""

    query_id: str
    ranking: Ranking
    trial: int


@dataclass(frozen=True, slots=True)
class RankingRow:
    """A line of rankings/*.jsonl."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        # Caching ids, too, takes longer than reading them again.
        cache_strings="keys",
        allow_inf_nan=False,
    )
    query_id: str
    doc_ids: tuple[str, ...]
    scores: tuple[float, ...]
    passages: tuple[Passage, ...] | None = None
    """Document, start, end, tokens and score of each, best first; None without any."""
    trial: Annotated[int, Field(ge=1, le=MAX_TRIALS)] = 1
    trace: Trace | None = None
    """What an agent did for the query."""

    def __post_init__(self) -> None:
        """Refuse a ranking without one score for each document, or impossible passages.

        A passage does not end before its start, and has no negative number of tokens.
        """
        if len(self.doc_ids) != len(self.scores):
            counts = f"{len(self.doc_ids)} documents and {len(self.scores)} scores"
            raise ValueError(f"a ranking has {counts}")
        for passage in self.passages or ():
            if passage.tokens < 0 or not 0 <= passage.start <= passage.end:
                raise ValueError(f"{list(passage)} is not a passage")


def ranking_from_json(line: bytes) -> TrialRanking:
    """Read a line of rankings/*.jsonl.

    Raises:
        ValueError: it is not a ranking.
    """
    row = parse_record(RankingRow, line)
    scores = np.array(row.scores, dtype=np.float64)
    scores.setflags(write=False)
    ranking = Ranking(row.doc_ids, scores, row.passages, row.trace)
    return TrialRanking(row.query_id, ranking, row.trial)
