"""What a run would take, before anything is sent: texts, tokens, calls, dollars, minutes. No network, no model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

from harness.experiment import Dense, Encoded, load, origin
from harness.running.check import prepare
from harness.running.dataset_summary import sample
from harness.running.forecast import source_of
from harness.running.pace import earlier_runs
from harness.running.plan_rows import (
    Planning,
    PlanRow,
    embedding_rows,
    judging_rows,
    pace_of,
    proof_rows,
    reranking_rows,
)
from harness.running.reach import Reach, reaches
from harness.running.runner import in_order
from retrievers.cache import Cache, default_path


class RunPlan(NamedTuple):
    """What a run would take."""

    rows: tuple[PlanRow, ...]
    notes: tuple[str, ...]
    """Prices with their dates, what the minutes are made of, and what would not be read."""
    reaches: tuple[Reach, ...] = ()
    """How far each encoder would read, of a sample."""

    def share(self, shards: int) -> dict[str, Any]:
        """What one of equal shares of the embedding would take, without process start and the loading of models."""
        rows = [row for row in self.rows if row.stage.startswith("embed-")]
        usd, minutes = ([getattr(row, name) for row in rows] for name in ("usd", "minutes"))
        return {
            "shards": shards,
            "texts": math.ceil(sum(row.texts - row.cached for row in rows) / shards),
            "usd": None if None in usd else math.fsum(usd) / shards,
            "minutes": None if None in minutes else math.fsum(minutes) / shards,
        }

    def total(self) -> dict[str, Any]:
        """The sums; None where a summand is unknown."""
        usd, minutes = ([getattr(row, name) for row in self.rows] for name in ("usd", "minutes"))
        return {
            "texts": sum(row.texts for row in self.rows),
            "cached": sum(row.cached for row in self.rows),
            "calls": sum(row.calls for row in self.rows),
            "tokens": sum(row.tokens for row in self.rows),
            "exact": all(row.exact for row in self.rows),
            "usd": None if None in usd else math.fsum(usd),
            "minutes": None if None in minutes else math.fsum(minutes),
        }


def plan(path: str | Path, *, results: Path = Path("results"), code: bool = True) -> RunPlan:
    """Count what a run of an experiment would take; equal first stages count once.

    Tokens are exact where the model's tokenizer is on this machine, else estimated from above; those of a reranker's
    pairs are always estimated, since the pairs are only known when the first stage has answered. Minutes follow from
    the declared limits of an API, or from the speed of a local model in earlier runs.

    Args:
        path: the experiment file.
        results: where earlier runs lie.
        code: whether the experiment may name code that is run.

    Raises:
        InputError: the experiment or its data are at fault.
    """
    loaded = load(path, code=code)
    dataset, _, components = prepare(loaded)
    rows: list[PlanRow] = []
    notes: list[str] = []
    with Cache(default_path()) as cache:
        context = Planning(loaded, dataset, cache, tuple(earlier_runs(results)), source_of(loaded.experiment))
        planned: set[str] = set()
        for block in in_order(loaded.experiment.retrievers):
            encoder, _, reranker, asked = components[block.name]
            if isinstance(block, Encoded) and encoder is not None:
                pace, note = pace_of("encoder", block.encoder, encoder, context)
                rows += embedding_rows(block, (encoder, pace), context, planned)
                if origin(block) is None:
                    notes.append(f"{block.name}: {note}")
                if asked is not None and isinstance(block, Dense):
                    rows += proof_rows(block, (asked, pace), context, planned)
            if block.rerank is not None and reranker is not None:
                pace, note = pace_of("rerank", block.rerank, reranker, context)
                rows += reranking_rows(block, (reranker, pace), context, rows)
                if reranker.limits is not None:
                    notes.append(f"{block.name}: reranker: {note}")
        judging, judged_by = judging_rows(context)
        rows += judging
        notes += judged_by
    if any(row.minutes is None for row in rows):
        notes.append("?: how fast a local model is on this machine is not known before its first run")
    if not all(row.exact for row in rows):
        notes.append("≈: estimated from above, since the tokenizer is not on this machine, or pairs are not known yet")
    documents = sample(dataset.documents(), seed=loaded.experiment.seed)
    far = tuple(reaches(loaded.experiment.retrievers, components, documents))
    unread = [reach.warning() for reach in far if reach.lost]
    return RunPlan(tuple(rows), (*notes, *unread), far)
