"""Runs compared in a notebook.

`compare` scores runs in memory, `compare_folders` takes those of results folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.console.progress import progress_display
from harness.english import count_of
from harness.evaluation.evaluate import evaluate_scores
from harness.evaluation.join_folders import score_folders
from harness.evaluation.score_paths import (
    DEFAULT_TREC_MEASURES,
    missing_retriever_notes,
)
from harness.experiment import parse_statistics
from harness.measures import parse_measure_list
from harness.notebook.argument_types import check_text, measure_names
from harness.notebook.document_values import (
    grades_in_memory,
    parse_conditions,
    run_in_memory,
)
from harness.notebook.python_words import problems_without_options
from harness.scoring.declared_settings import read_declared_settings
from harness.scoring.scores import Scores
from harness.scoring.trec_runs import (
    ScoredRun,
    join_runs,
    refuse_unfit_measures,
    score_run_in_memory,
)
from harness.scoring.undeclared import undeclared_choices
from harness.stats.looks import settings_at_look
from harness.stats.settings import Settings, override_settings
from harness.wording.conclusion import conclusion_sentences
from harness.writing.evaluation_tables import comparison_rows, summary_rows
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.meter import Meter

if TYPE_CHECKING:
    import pandas as pd

SETTING_NAMES = ("test", "correction", "alpha", "margin", "seed")
"""The statistics that a call may choose.

Clusters, weights and looks need fields of the queries, or earlier runs.
"""
NAME_THE_RUNS = 'give each run its name: {"bm25": run, …}'


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparedRuns:
    """The comparison of several runs."""

    scores: pd.DataFrame
    """The columns of scores.csv: retriever, query_id, measure, value."""
    summary: pd.DataFrame
    """The columns of summary.csv."""
    comparisons: pd.DataFrame
    """The columns of comparisons.csv."""
    sentences: tuple[str, ...]
    """The verdict in words."""
    notes: tuple[str, ...]
    """What a reader of the scores must know, such as queries that a run lacks, ids that
    were matched, retrievers that failed, or folders that declare different statistics.
    """

    def __repr__(self) -> str:
        primary = str(self.summary["measure"].iloc[0])
        rows = self.summary[self.summary["measure"] == primary]
        rows = rows.sort_values("mean", ascending=False, kind="stable")
        means = ", ".join(
            f"{retriever} {mean:.4f}"
            for retriever, mean in zip(rows["retriever"], rows["mean"], strict=True)
        )
        leader_queries = count_of(int(rows["count"].iloc[0]), "query")
        return f"<{primary} over {leader_queries}: {means}>"

    def _repr_html_(self) -> str:
        """The means and the verdict, for notebooks."""
        from html import escape

        table = self.summary.pivot(index="retriever", columns="measure", values="mean")
        in_order = table[list(dict.fromkeys(self.summary["measure"]))]
        means = in_order.to_html(float_format="{:.4f}".format)
        paragraphs = [f"<p>{escape(sentence)}</p>" for sentence in self.sentences]
        return f"{means}{''.join(paragraphs)}"


def compare(
    runs: Mapping[str, Any],
    qrels: Any,
    measures: str | Sequence[str] = DEFAULT_TREC_MEASURES,
    *,
    baseline: str | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> ComparedRuns:
    """Score runs and compare them query by query, with tests and a verdict.

    Args:
        runs: by name: {query: {document: score}}, {query: [documents, best first]}, a
            frame with the columns query_id, doc_id and score (or qid and docno), or a
            TREC file.
        qrels: {query: {document: grade}}, {query: relevant documents}, a frame with
            query_id, doc_id and relevance, or a TREC file.
        measures: a name or several; the first decides.
        baseline: each other run is compared with it; without it, all pairs.
        where: the rows of `qrels`, if it is a frame, that count as labels: column ->
            the value, or values, that they have.
        progress: whether it is shown on standard error; by default in a terminal or a
            notebook.
        settings: `test`, `correction`, `alpha` and `margin`, as under [statistics] in
            an experiment file, and its `seed`.

    Returns:
        Frames as in a results folder, and the verdict in words. A run scores 0 on a
        judged query that it lacks.

    Raises:
        InputError: there are fewer than two runs, or a name is no text; runs or qrels
            cannot be read; no query, or no hit, of a run has labels; no run has the
            baseline's name; there is no measure; a measure or a setting is unknown, or
            a setting has an impossible value; a measure needs groups, or is Abstain.

    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> x = {"q1": ["a"], "q2": ["b"]}
    >>> y = {"q1": ["b", "a"], "q2": ["b"]}
    >>> compare({"x": x, "y": y}, qrels, ["RR"])
    <RR over 2 queries: x 1.0000, y 0.7500>
    """
    _check_runs(runs, baseline)
    grades = grades_in_memory(qrels, conditions=parse_conditions(where))
    parsed = parse_measure_list(measure_names(measures))
    if not parsed:
        raise InputError(Problem("measures", "names none", 'measures=["nDCG@10"]'))
    refuse_unfit_measures(parsed)
    parsed_settings = _override_settings(Settings(), settings)
    with problems_without_options(), progress_display(progress) as watch:
        # No retriever is at work: the stages are shown without a name.
        meter = Meter(on_change=lambda changed_meter: watch("", changed_meter))
        scored_runs: list[ScoredRun] = []
        with meter.stage("scoring", total=len(runs)):
            for name, run in runs.items():
                rankings = run_in_memory(run, f"runs[{name!r}]")
                scored_runs.append(score_run_in_memory(name, rankings, grades, parsed))
                meter.step()
        scores = join_runs(scored_runs, grades, parsed)
        return _compare_scores(scores, baseline, parsed_settings, meter)


def _check_runs(runs: Any, baseline: Any) -> None:
    """Check the names of the runs and of the baseline.

    Raises:
        InputError: there are fewer than two runs, a name is no text, or none is the
            baseline's.
    """
    if not isinstance(runs, Mapping):
        problem = f"is a {type(runs).__name__}"
        raise InputError(Problem("runs", problem, NAME_THE_RUNS))
    if len(runs) < 2:
        problem = "there is only one run" if runs else "there is no run"
        raise InputError(Problem("runs", problem, "give two or more"))
    for name in runs:
        check_text(name, "runs", NAME_THE_RUNS)
    if baseline is not None:
        check_text(baseline, "baseline", f"a name of a run: {', '.join(runs)}")
        if baseline not in runs:
            problem = f"no run is called {baseline!r}"
            raise InputError(Problem("baseline", problem, did_you_mean(baseline, runs)))


def compare_folders(
    folders: Sequence[Path], baseline: str | None, chosen_settings: Mapping[str, Any]
) -> ComparedRuns:
    """Compare the retrievers of several results folders on their common queries.

    If a setting other than the seed is not the one that the folders declare, the
    comparison is exploratory: it recommends no retriever, as in `harness compare`.

    Args:
        folders: one or more.
        baseline: each other retriever is compared with it; None: all pairs.
        chosen_settings: statistics that replace those which the folders declare.

    Raises:
        InputError: a folder cannot be read; there is no such baseline; a setting is
            unknown or impossible.
    """
    with problems_without_options():
        scores = score_folders(folders, measure_names=())  # all of the folders
    declared = read_declared_settings(folders)
    used = _override_settings(declared.settings, chosen_settings)
    folder_notes = [*missing_retriever_notes(folders), declared.note]
    scores = replace(scores, notes=(*filter(None, folder_notes), *scores.notes))
    return _compare_scores(
        scores,
        baseline,
        settings_at_look(used, scores.n),
        Meter(),
        undeclared=undeclared_choices(folders, scores.primary, declared.settings, used),
    )


def _compare_scores(
    scores: Scores,
    baseline: str | None,
    settings: Settings,
    meter: Meter,
    *,
    undeclared: Sequence[str] = (),
) -> ComparedRuns:
    """Compare retrievers by their scores.

    Args:
        scores: of each query.
        baseline: each other retriever is compared with it; None: all pairs.
        settings: the statistics.
        meter: shows the stage.
        undeclared: the choices that the folders do not declare, as text; with any, the
            comparison is exploratory.
    """
    import pandas as pd

    with meter.stage("comparing"):
        evaluation = evaluate_scores(scores, baseline=baseline, settings=settings)
    evaluation = evaluation.as_exploratory(undeclared)
    return ComparedRuns(
        scores=pd.DataFrame(list(scores.rows())),
        summary=pd.DataFrame(summary_rows(evaluation.summary)),
        comparisons=pd.DataFrame(comparison_rows(evaluation)),
        sentences=tuple(conclusion_sentences(evaluation)),
        notes=scores.notes,
    )


def _override_settings(
    declared: Settings, chosen_settings: Mapping[str, Any]
) -> Settings:
    """Return the declared settings with those that a call chooses.

    Raises:
        InputError: a setting is unknown, or its value is invalid; the problem has its
            name.
    """
    unknown = [name for name in chosen_settings if name not in SETTING_NAMES]
    if unknown:
        problem = f"unknown: {', '.join(unknown)}"
        raise InputError(
            Problem("settings", problem, f"use {', '.join(SETTING_NAMES)}")
        )
    statistics = dict(chosen_settings)
    # The seed is no key of [statistics], so that it is checked here.
    seed: Any = statistics.pop("seed", declared.seed)
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise InputError(Problem("seed", "is no whole number", "seed=1"))
    parsed = parse_statistics(statistics, "")
    chosen = {name: getattr(parsed, name) for name in statistics}
    return override_settings(declared, **chosen, seed=int(seed))
