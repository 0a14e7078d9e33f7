"""Runs and judgments at hand in Python, and several results, scored and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.console.progress import progress_shown
from harness.english import counted
from harness.evaluation.compare import keys_of
from harness.evaluation.conclusions import sentences
from harness.evaluation.csv_views import comparison_rows, summary_rows
from harness.evaluation.evaluate import evaluate
from harness.evaluation.folders import USUAL, declared_settings, score_folders
from harness.evaluation.runs import joined_runs, scored_run
from harness.evaluation.scores import Scores
from harness.experiment import statistics_of
from harness.measures import parse_all
from harness.notebook.in_memory import judgments_of, run_of
from harness.stats.power import at_look
from harness.stats.settings import Settings
from retrievers.errors import InputError, Problem
from retrievers.meter import Meter

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparedRuns:
    """Some runs against each other."""

    scores: pd.DataFrame
    """The columns of scores.csv: retriever, query_id, measure, value."""
    summary: pd.DataFrame
    """The columns of summary.csv."""
    comparisons: pd.DataFrame
    """The columns of comparisons.csv."""
    sentences: tuple[str, ...]
    """The result in words."""
    notes: tuple[str, ...]
    """What a reader of the numbers must know: queries that are missing or unjudged."""

    def __repr__(self) -> str:
        primary = str(self.summary["measure"].iloc[0])
        rows = self.summary[self.summary["measure"] == primary].sort_values("mean", ascending=False, kind="stable")
        means = ", ".join(f"{name} {mean:.4f}" for name, mean in zip(rows["retriever"], rows["mean"], strict=True))
        return f"<{primary} over {counted(int(rows['count'].iloc[0]), 'query')}: {means}>"

    def _repr_html_(self) -> str:
        """The means and the verdict, for notebooks."""
        from html import escape

        table = self.summary.pivot(index="retriever", columns="measure", values="mean")
        paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        in_order = table[list(dict.fromkeys(self.summary["measure"]))]
        return f"{in_order.to_html(float_format='{:.4f}'.format)}{paragraphs}"


def compare(
    runs: Mapping[str, Any],
    qrels: Any,
    measures: str | Sequence[str] = USUAL,
    *,
    baseline: str | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> ComparedRuns:
    """Score runs and compare them query by query, with exact tests and a verdict.

    Args:
        runs: by name: {query: {document: score}}, {query: [documents, best first]}, a frame with the columns query_id,
            doc_id and score (or qid and docno), or a TREC file.
        qrels: {query: {document: grade}}, {query: relevant documents}, a frame with query_id, doc_id and relevance, or
            a TREC file.
        measures: what is computed, one name or several; the first one decides.
        baseline: each other run is compared with it; left out, all pairs.
        progress: whether it is shown on standard error; left out, in a terminal or a notebook.
        settings: of the statistics: test, correction, alpha, margin, seed.

    Returns:
        Frames as in a results folder, and the verdict in words.

    Raises:
        InputError: fewer than two runs, a shape that is none of these, an unknown measure or setting.

    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> compare({"x": {"q1": ["a"], "q2": ["b"]}, "y": {"q1": ["b", "a"], "q2": ["b"]}}, qrels, ["RR"])
    <RR over 2 queries: x 1.0000, y 0.7500>
    """
    if not isinstance(runs, Mapping):
        raise InputError(Problem("runs", f"is a {type(runs).__name__}", 'give each run its name: {"bm25": run, …}'))
    if len(runs) < 2:
        raise InputError(Problem("runs", "there is only one run" if runs else "there is no run", "give two or more"))
    judgments = judgments_of(qrels)
    parsed = parse_all([measures] if isinstance(measures, str) else measures)
    chosen = _settings(settings)
    with progress_shown(progress) as watch:
        meter, scored = Meter(watch=lambda meter: watch("", meter)), []
        with meter.stage("scoring", total=len(runs)):
            for name, run in runs.items():
                scored.append(scored_run(name, run_of(run, f"runs[{name!r}]"), judgments, parsed))
                meter.step()
        return _compared(joined_runs(scored, judgments, parsed), baseline, chosen, meter)


def compare_folders(folders: Sequence[Path], baseline: str | None, settings: Mapping[str, Any]) -> ComparedRuns:
    """Compare the retrievers of several results folders on the queries that they share, as `harness compare` does."""
    scores, declared = score_folders(folders, ()), declared_settings(folders)
    chosen = at_look(_settings(settings, declared.settings), scores.n)
    scores = replace(scores, notes=(*filter(None, [declared.note]), *scores.notes))
    return _compared(scores, baseline, chosen, Meter())


def _compared(scores: Scores, baseline: str | None, settings: Settings, meter: Meter) -> ComparedRuns:
    import pandas as pd

    with meter.stage("comparing", total=sum(map(len, keys_of(scores, baseline).values()))):
        evaluation = evaluate(scores, baseline=baseline, settings=settings, step=meter.step)
    return ComparedRuns(
        pd.DataFrame(list(scores.rows())),
        pd.DataFrame(summary_rows(evaluation.summary)),
        pd.DataFrame(comparison_rows(evaluation)),
        tuple(sentences(evaluation)),
        scores.notes,
    )


def _settings(given: Mapping[str, Any], declared: Settings = Settings()) -> Settings:  # noqa: B008 - frozen
    try:
        statistics_of({key: value for key, value in given.items() if key == "alpha"}, "settings")
        return replace(declared, **given)
    except TypeError as error:
        message = str(error).partition(") ")[2] or str(error)
        raise InputError(Problem("settings", message, "test, correction, alpha, margin, seed")) from None
