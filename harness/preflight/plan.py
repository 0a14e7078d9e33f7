"""What a run takes."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.build.built_retriever import BuiltRetriever
from harness.dataset import Dataset
from harness.english import count_of
from harness.experiment import LoadedExperiment
from harness.preflight.embedding import has_user_chunker, import_stored_vectors
from harness.preflight.plan_rows import (
    PlanContext,
    PlanRow,
    embedding_rows,
    judging_rows,
    model_throughput,
    reranking_rows,
    verification_rows,
)
from harness.preflight.throughput import read_earlier_runs
from retrievers.cache import Cache, default_cache_path


class RunPlan(NamedTuple):
    """What a run would take."""

    rows: tuple[PlanRow, ...]
    notes: tuple[str, ...] = ()
    """Prices with their dates, and what the minutes consist of."""

    def total(self) -> dict[str, Any]:
        """The sums; None where a summand is unknown."""
        usd, minutes = (
            [getattr(row, name) for row in self.rows] for name in ("usd", "minutes")
        )
        return {
            **{
                name: sum(getattr(row, name) for row in self.rows)
                for name in ("texts", "cached", "calls", "tokens")
            },
            "exact": all(row.exact for row in self.rows),
            "usd": None if None in usd else math.fsum(usd),
            "minutes": None if None in minutes else math.fsum(minutes),
        }

    def sentence(self) -> str:
        """The sums in words."""
        total = self.total()
        tokens = _amount(total["tokens"], 0, "" if total["exact"] else "≈")
        usd, minutes = _amount(total["usd"], 4, ""), _amount(total["minutes"], 1, "≈")
        texts = f"{count_of(total['texts'], 'text')} ({total['cached']:,} cached)"
        return f"{texts}, {tokens} tokens, {usd} dollars, {minutes} minutes"

    def details(self) -> Iterator[str]:
        """The same for each retriever, then the notes."""
        for name in dict.fromkeys(row.retriever for row in self.rows):
            own = RunPlan(tuple(row for row in self.rows if row.retriever == name))
            yield f"  {name or 'judge'}: {own.sentence()}"
        yield from self.notes


def _amount(value: float | None, digits: int, mark: str) -> str:
    """An amount as people read it: "?" where it is unknown, never 0 for a little.

    >>> _amount(None, 1, "≈"), _amount(0, 1, "≈"), _amount(0.00002, 4, "≈"), _amount(1234.56, 1, "≈")
    ('?', '0', '<0.0001', '≈1,234.6')
    """
    if not value:
        return "?" if value is None else "0"
    return (
        f"<{10**-digits:.{digits}f}"
        if value < 10**-digits
        else f"{mark}{value:,.{digits}f}"
    )


def plan_run(
    loaded: LoadedExperiment,
    dataset: Dataset,
    built: Sequence[BuiltRetriever],
    results: Path,
) -> RunPlan:
    """Count what a run of an experiment would take; equal first stages count once.

    Tokens are exact where the model's tokenizer is on this machine, else estimated; those of a reranker's
    pairs are always estimated, since the pairs are only known when the first stage has answered. Minutes follow from
    the declared limits of an API, or from the speed of a local model in earlier runs.

    Args:
        loaded: the experiment.
        dataset: its data.
        built: its retrievers.
        results: where earlier runs are.

    Raises:
        InputError: the cache or the place of [vectors] cannot be read.
    """
    rows: list[PlanRow] = []
    notes: list[str] = []
    with Cache(default_cache_path()) as cache:
        elsewhere = loaded.experiment.vectors
        if elsewhere is not None and "://" in elsewhere.location:
            notes.append(
                f"check uses no network: vectors in {elsewhere.location} count as not embedded"
            )
        else:
            import_stored_vectors(elsewhere, built, cache)
        context = PlanContext(loaded, dataset, cache, tuple(read_earlier_runs(results)))
        for one in built:
            for dense in one.dense_parts:
                throughput, note = model_throughput(
                    "encoder", one, dense.encoder, context
                )
                rows += embedding_rows(one, dense, throughput, context)
                if not dense.reduction.derived_from:
                    notes.append(f"{one.name}: {note}")
                    notes += [
                        f"{one.name}: documents count uncut, since chunk.call is not run"
                    ] * has_user_chunker(dense)
                rows += verification_rows(one, dense, throughput, context)
            for reranker in one.rerankers:
                throughput, note = model_throughput("rerank", one, reranker, context)
                rows += reranking_rows(one.name, reranker, throughput, context)
                if reranker.limits is not None:
                    notes.append(f"{one.name}: reranker: {note}")
        judging, judged_by = judging_rows(context)
        rows += judging
        notes += judged_by
    if any(row.minutes is None for row in rows):
        notes.append(
            "?: how fast a local model is on this machine is not known before its first run"
        )
    if not all(row.exact for row in rows):
        notes.append(
            "≈: estimated, since the tokenizer is not on this machine, or pairs are not known yet; "
            "code, and writing that a tokenizer knows little of, may have three times as many"
        )
    return RunPlan(tuple(rows), tuple(notes))
