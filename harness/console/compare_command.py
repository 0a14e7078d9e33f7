"""The command `compare`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.console import options as shared
from harness.console import results_text, several_runs
from harness.console.completion import (
    complete_corrections,
    complete_results_retrievers,
    complete_tests,
)
from harness.console.options import refuse_two_formats
from harness.console.output import (
    open_console,
    print_csv,
    print_json,
    print_result,
    print_to_fit,
    print_warnings,
)
from harness.console.results_text import verdict_text
from harness.console.score_command import fail_on_unmatched_runs, refuse_unscored_runs
from harness.english import count_queries
from retrievers.errors import InputError, Problem

if TYPE_CHECKING:
    from harness.evaluation.evaluation import Evaluation
    from harness.scoring.scores import Scores
    from harness.stats.settings import Settings

PROGRESS_FROM_RETRIEVERS = 15
"""Retrievers from which on it is said that they are being compared: fewer take no second."""


BASELINE_HELP = "Compare every other run with this one; default: all pairs."
BaselineOption = Annotated[
    str | None,
    typer.Option(help=BASELINE_HELP, autocompletion=complete_results_retrievers),
]
MARGIN_HELP = (
    "A difference of means too small to matter; default: the margin of the folders."
)
MarginOption = Annotated[float | None, typer.Option(help=MARGIN_HELP)]
TEST_HELP = "The test that decides: randomization, wilcoxon, t; default: that of the folders, or randomization."
DecidingTest = Annotated[
    str | None, typer.Option(help=TEST_HELP, autocompletion=complete_tests)
]
CORRECTION_HELP = (
    "holm, bonferroni, bh; default: the correction of the folders, or holm."
)
CorrectionName = Annotated[
    str | None, typer.Option(help=CORRECTION_HELP, autocompletion=complete_corrections)
]
RANGE_HELP = (
    "Lowest and highest value of the first measure of a file of scores; default: 0 1."
)
ScoreRange = Annotated[
    tuple[float, float] | None,
    typer.Option("--range", metavar="LOW HIGH", help=RANGE_HELP),
]
ComparisonPage = Annotated[
    Path | None, typer.Option(help="Write a page, of runs or of a file of scores.")
]


def compare(
    qrels: shared.QrelsOrResults,
    runs: shared.RunsOrFolders = None,
    measure: shared.MeasureNames = None,
    baseline: BaselineOption = None,
    margin: MarginOption = None,
    test: DecidingTest = None,
    correction: CorrectionName = None,
    grades: shared.GradeRuleOption = None,
    queries: shared.QueryIdsFile = None,
    skip_no_relevant: shared.SkipNoRelevant = False,
    range_: ScoreRange = None,
    corpus_changed: shared.CorpusChanged = False,
    report: ComparisonPage = None,
    form: shared.RowFormat = "table",
    explain: shared.ExplainOption = False,
    as_json: shared.JsonOutput = False,
) -> None:
    """Compare runs query by query: differences, exact tests, a verdict. The first measure decides.

    Of several results folders, the retrievers of all are compared on the queries that all folders share. The
    per-query scores of any tool can be compared, too: a CSV file with retriever, query_id, measure, value.
    """
    from harness.evaluation.score_paths import missing_retriever_notes, score_paths
    from harness.records.data_sets_csv import holds_sets
    from harness.scoring.conventions import RunConventions
    from harness.scoring.declared_settings import read_declared_settings
    from harness.scoring.foreign_csv import read_query_ids
    from harness.stats.looks import settings_at_look
    from harness.writing.evaluation_tables import comparison_rows, summary_rows

    refuse_two_formats(form, as_json=as_json)
    paths = [qrels, *(runs or ())]
    if corpus_changed:
        _compare_states(paths, as_json=as_json)
        return
    declared = read_declared_settings(paths)
    given: dict[str, Any] = {"test": test, "correction": correction, "margin": margin}
    settings = replace(
        declared.settings,
        **{name: value for name, value in given.items() if value is not None},
    )
    ids = read_query_ids(queries) if queries else None
    of_labels = {"--grades": grades, "--skip-no-relevant": skip_no_relevant}
    if qrels.suffix.lower() == ".csv":
        shared.refuse_options(
            {"RUN": runs, **of_labels}, "does not go with a file of scores"
        )
        scores = _scores_in(qrels, measure or (), ids, range_)
        evaluation = _evaluated(scores, baseline, settings)
        notes = _undefined_notes(scores, settings)
        if form == "csv":
            print_csv(comparison_rows(evaluation))
        else:
            results_text.print_scores(
                scores, evaluation, notes, as_json=as_json, explain=explain
            )
        _write_page(report, qrels, evaluation, notes)
        return
    shared.refuse_options({"--range": range_}, "is for a file of scores")
    if qrels.is_dir():
        shared.refuse_options(
            {"--report": report},
            "is for runs or a file of scores",
            "harness report RESULTS writes the page",
        )
    if holds_sets(qrels):
        without_effect = {
            "--queries": queries,
            **of_labels,
            "--format csv": form == "csv",
            "--margin": margin,
        }
        shared.refuse_options(
            {**without_effect, "--test": test, "--explain": explain},
            "is for the results of one data set",
        )
        several_runs.print_compared_sets(
            paths,
            measure or (),
            baseline,
            declared._replace(settings=settings),
            as_json=as_json,
        )
        return
    scores = score_paths(
        paths,
        measure or (),
        grade_rule=grades,
        conventions=RunConventions(skip_no_relevant, queries=ids),
    )
    if len(scores.retrievers) < 2:
        raise InputError(
            Problem(str(qrels), "there is only one run", "give two or more")
        )
    refuse_unscored_runs(qrels, scores)
    lacking = missing_retriever_notes(paths)
    notes = [*lacking, *filter(None, [declared.note]), *scores.notes]
    print_warnings(*notes)
    evaluation = _evaluated(scores, baseline, settings_at_look(settings, scores.n))
    if as_json:
        from harness.evaluation.pair_diagnostics import diagnose_pairs, pairs_to_inspect

        looked_at = pairs_to_inspect(list(evaluation.means), baseline, scores.n)
        beside = [one._asdict() for one in diagnose_pairs(scores, looked_at)]
        rows = comparison_rows(evaluation)
        print_json(
            summary=summary_rows(evaluation.summary),
            comparisons=rows,
            evidence=beside,
            notes=notes,
        )
    elif form == "csv":
        print_csv(comparison_rows(evaluation))
    else:
        print_to_fit(verdict_text, evaluation, explain=explain, complete=not lacking)
    _write_page(report, qrels, evaluation, notes)
    fail_on_unmatched_runs(scores)


def _compare_states(paths: Sequence[Path], *, as_json: bool) -> None:
    """Compare two runs over two states of a corpus."""
    from harness import records
    from harness.evaluation.corpus_change import compare_corpus_states

    if len(paths) != 2:
        raise InputError(
            Problem(
                "--corpus-changed",
                "compares two results folders",
                "name the old and the new one",
            )
        )
    change = compare_corpus_states(*map(records.read_results, paths))
    print_result(change.lines(), as_json=as_json, **change._asdict())


def _write_page(
    path: Path | None, of: Path, evaluation: Evaluation, notes: Sequence[str]
) -> None:
    if path is not None:
        from harness.report.scores_page import write_scores_page

        write_scores_page(path, of.name, evaluation, notes)


def _evaluated(scores: Scores, baseline: str | None, settings: Settings) -> Evaluation:
    """Compare, with progress where there are many pairs."""
    from harness.console.progress import Progress
    from harness.evaluation.evaluate import evaluate_scores
    from retrievers.meter import Meter

    progress = Progress(
        open_console(stderr=True),
        quiet=len(scores.retrievers) < PROGRESS_FROM_RETRIEVERS,
    )
    with (
        progress,
        Meter(on_change=lambda meter: progress.watch("", meter)).stage("comparing"),
    ):
        return evaluate_scores(scores, baseline=baseline, settings=settings)


def _scores_in(
    path: Path,
    measures: Sequence[str],
    queries: list[str] | None,
    range_: tuple[float, float] | None,
) -> Scores:
    """The per-query scores of any tool, with the range of the first measure."""
    from harness.scoring.foreign_csv import read_score_file
    from harness.stats.differences import ValueRange

    scores = read_score_file(path).select(measures, queries)
    if len(scores.retrievers) < 2:
        raise InputError(
            Problem(
                str(path), "has the scores of only one retriever", "give two or more"
            )
        )
    if range_ is None:
        return scores
    low, high = range_
    if not -math.inf < low < high < math.inf:
        raise InputError(
            Problem(
                "--range",
                f"{low:g} to {high:g} is not a range",
                "two numbers, the lower one first",
            )
        )
    return replace(scores, ranges={scores.primary: ValueRange(low, high)})


def _undefined_notes(scores: Scores, settings: Settings) -> list[str]:
    """What has no value, and what cannot be shown without a range."""
    notes = [
        f"{measure} is undefined for some of {count_queries(len(scores.ids))}: "
        + ", ".join(f"{number} of {name}" for name, number in of.items())
        for measure, of in scores.undefined_counts().items()
    ]
    if settings.margin and scores.range_of(scores.primary) is None:
        notes.append(
            f"Nothing can be shown to be equivalent: {scores.primary} has scores outside [0, 1], and its range is not "
            "known. Give --range LOW HIGH, the lowest and the highest possible score."
        )
    return notes
