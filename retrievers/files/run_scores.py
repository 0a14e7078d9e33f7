"""Scores of a run that contradict its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from retrievers.errors import InputError
from retrievers.files.trec_lines import read_blocks

MIN_TIED_SHARE = 0.1
"""Share of the queries with several hits from which on ties of all hits are no
chance."""
MIN_RISING_SHARE = 0.5
"""Share of the queries that are not tied above which rising scores make a run's order
suspect."""
RANK_FIELD = 3
"""Position of the rank among the fields of a line, from 0 on."""
RUN_FIELDS = 6
"""Fields of a line of a TREC run."""


@dataclass(slots=True)
class RunContradictions:
    """The queries whose scores all tie, or never fall from first hit to last."""

    query_count: int = 0
    """How many queries have several hits."""
    tied: list[str] = field(default_factory=list)
    """Queries whose hits all have the same score."""
    rising: list[str] = field(default_factory=list)
    """Queries whose scores never fall from the first hit to the last, but rise."""

    def add(self, query_id: str, scores: npt.ArrayLike) -> None:
        """Count a query by the scores of its hits, as they were given: best first."""
        in_order = np.asarray(scores, dtype=np.float64)
        steps = in_order[1:] - in_order[:-1]  # np.diff takes four times as long
        if not len(steps):
            return
        self.query_count += 1
        if not steps.any():
            self.tied.append(query_id)
        elif (steps >= 0).all():
            self.rising.append(query_id)

    def beyond_chance(self) -> RunContradictions:
        """Return only the contradictions that too many queries have for chance."""
        untied_count = self.query_count - len(self.tied)
        has_ties = len(self.tied) >= MIN_TIED_SHARE * self.query_count
        has_rises = len(self.rising) > MIN_RISING_SHARE * untied_count
        return RunContradictions(
            self.query_count,
            self.tied if has_ties else [],
            self.rising if has_rises else [],
        )


def find_contradictions(
    score_lists: Iterable[tuple[str, Sequence[float] | npt.ArrayLike]],
    path: Path | None = None,
) -> RunContradictions:
    """Return the queries of a run whose scores contradict its ranks.

    Ties of less than a tenth of the queries with several hits, and rises of at most
    half of the untied ones, are left out: they may be chance.

    Args:
        score_lists: query id and the scores of its hits, in the order in which they
            were given. For hits without an order, only `tied` means anything.
        path: a file of TREC lines. If its ranks say that its lines are worst first,
            scores that rise with the lines agree with them. None: hits were given best
            first.
    """
    contradictions = RunContradictions()
    for query_id, scores in score_lists:
        contradictions.add(query_id, scores)
    contradictions = contradictions.beyond_chance()
    if not contradictions.rising or path is None or not path.is_file():
        return contradictions
    if _is_worst_first(path):
        contradictions.rising = []
    return contradictions


def _is_worst_first(path: Path) -> bool:
    """Whether queries' ranks mostly fall from line to line in a file's first block."""
    falls = 0
    rises = 0
    try:
        _, block = next(iter(read_blocks(path, remedy="")))  # its error is not shown
    except (StopIteration, InputError):
        return False
    last_ranks: dict[bytes, int] = {}
    for line in block.split(b"\n"):
        columns = line.split()
        if len(columns) != RUN_FIELDS or not columns[RANK_FIELD].isdigit():
            continue
        rank = int(columns[RANK_FIELD])
        last_rank = last_ranks.get(columns[0], rank)
        falls += rank < last_rank
        rises += rank > last_rank
        last_ranks[columns[0]] = rank
    return falls > rises
