"""The command `compare`.

What its first path is decides what is compared: a .csv file of scores, results folders
(of one data set, or of several), or qrels followed by run files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.console import options as shared
from harness.console import results_text, several_runs
from harness.console.comparison_options import (
    BaselineOption,
    ComparisonPage,
    CorrectionName,
    DecidingTest,
    MarginOption,
    ScoreRange,
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
    from harness.scoring.declared_settings import DeclaredSettings
    from harness.scoring.scores import Scores
    from harness.stats.settings import Settings

PROGRESS_FROM_RETRIEVERS = 15
"""Retrievers from which on progress is shown: comparing fewer takes less than a second.
"""


def compare(
    *,
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
    """Compare runs query by query: differences, exact tests, a verdict. The first
    measure decides.

    Of several results folders, the retrievers of all are compared on the queries that
    all folders share. The per-query scores of any tool can be compared, too: a CSV file
    with retriever, query_id, measure, value.
    """  # noqa: D205
    from harness.console.listed_lines import read_listed_lines
    from harness.records.data_sets_csv import holds_sets
    from harness.scoring.declared_settings import read_declared_settings

    refuse_two_formats(form, as_json=as_json)
    paths = [qrels, *(runs or ())]
    if corpus_changed:
        without_effect = {
            "--measure": measure,
            "--baseline": baseline,
            "--margin": margin,
            "--test": test,
            "--correction": correction,
            "--grades": grades,
            "--queries": queries,
            "--skip-no-relevant": skip_no_relevant,
            "--range": range_,
            "--report": report,
            "--format csv": form == "csv",
            "--explain": explain,
        }
        shared.refuse_options(without_effect, "cannot go with --corpus-changed")
        _compare_states(paths, as_json=as_json)
        return
    declared = read_declared_settings(paths)
    settings = _override_settings(
        declared.settings, test=test, correction=correction, margin=margin
    )
    query_ids = read_listed_lines(queries, "query id") if queries else None
    label_options = {"--grades": grades, "--skip-no-relevant": skip_no_relevant}
    output = OutputOptions(form, as_json, explain, report)
    if qrels.suffix.lower() == ".csv":
        shared.refuse_options(
            {"RUN": runs, **label_options},
            f"does not go with a file of scores, as {qrels} is read by its suffix",
            "give runs after qrels in TREC's form, or a file of scores alone",
        )
        scores = _read_score_file(qrels, measure or (), query_ids, range_)
        _compare_score_file(qrels, scores, baseline, settings, output=output)
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
            **label_options,
            "--format csv": form == "csv",
            "--margin": margin,
            "--test": test,
            "--explain": explain,
        }
        shared.refuse_options(without_effect, "is for the results of one data set")
        several_runs.print_compared_sets(
            paths,
            measure or (),
            baseline,
            declared,
            used=settings,
            as_json=as_json,
        )
        return
    selection = RunSelection(measure or (), grades, skip_no_relevant, query_ids)
    _compare_runs(paths, selection, baseline, declared, used=settings, output=output)


class OutputOptions(NamedTuple):
    """How a comparison is printed."""

    form: str
    as_json: bool
    explain: bool
    page: Path | None


class RunSelection(NamedTuple):
    """How runs are scored."""

    measures: Sequence[str]
    grade_rule: str | None
    skip_no_relevant: bool
    query_ids: list[str] | None


def _override_settings(
    settings: Settings,
    *,
    test: str | None,
    correction: str | None,
    margin: float | None,
) -> Settings:
    """Return the settings with the options that were given."""
    from harness.stats.settings import override_settings

    options = {"test": test, "correction": correction, "margin": margin}
    given_options: dict[str, Any] = {
        key: option for key, option in options.items() if option is not None
    }
    return override_settings(settings, "--", **given_options)


def _compare_states(paths: Sequence[Path], *, as_json: bool) -> None:
    """Compare two runs over two states of a corpus."""
    from harness import records
    from harness.console.corpus_change_text import (
        changed_retriever_rows,
        corpus_change_lines,
    )
    from harness.evaluation.corpus_change import compare_corpus_states

    if len(paths) != 2:
        problem = "compares two results folders"
        remedy = "name the old and the new one"
        raise InputError(Problem("--corpus-changed", problem, remedy))
    change = compare_corpus_states(*map(records.read_results, paths))
    print_result(
        corpus_change_lines(change),
        as_json=as_json,
        measure=change.measure,
        cutoff=change.cutoff,
        documents=change.documents,
        queries=change.queries,
        retrievers=changed_retriever_rows(change),
    )


def _compare_score_file(
    path: Path,
    scores: Scores,
    baseline: str | None,
    settings: Settings,
    *,
    output: OutputOptions,
) -> None:
    """Compare the per-query scores of any tool."""
    from harness.writing.evaluation_tables import comparison_rows

    evaluation = _evaluate(scores, baseline, settings)
    notes = _undefined_notes(scores, settings)
    if output.form == "csv":
        print_csv(comparison_rows(evaluation))
    else:
        results_text.print_scores(
            scores, evaluation, notes, as_json=output.as_json, explain=output.explain
        )
    _write_page(output.page, path.name, evaluation, notes)


def _compare_runs(
    paths: Sequence[Path],
    selection: RunSelection,
    baseline: str | None,
    declared: DeclaredSettings,
    *,
    used: Settings,
    output: OutputOptions,
) -> None:
    """Compare TREC runs, or the retrievers of results folders.

    Args:
        paths: qrels and runs, or results folders.
        selection: how they are scored.
        baseline: the retriever with which the others are compared.
        declared: the statistics that the folders declare.
        used: those of this comparison.
        output: how it is printed.
    """
    from harness.evaluation.score_paths import missing_retriever_notes, score_paths
    from harness.scoring.conventions import RunConventions
    from harness.scoring.undeclared import undeclared_choices
    from harness.stats.looks import settings_at_look
    from harness.writing.evaluation_tables import comparison_rows

    qrels = paths[0]
    scores = score_paths(
        paths,
        selection.measures,
        grade_rule=selection.grade_rule,
        conventions=RunConventions(
            selection.skip_no_relevant, queries=selection.query_ids
        ),
    )
    if len(scores.retrievers) < 2:
        problem = Problem(str(qrels), "there is only one run", "give two or more")
        raise InputError(problem)
    refuse_unscored_runs(qrels, scores)
    missing_notes = missing_retriever_notes(paths)
    notes = [*missing_notes, *filter(None, [declared.note]), *scores.notes]
    print_warnings(*notes)
    evaluation = _evaluate(scores, baseline, settings_at_look(used, scores.n))
    if qrels.is_dir():
        choices = undeclared_choices(paths, scores.primary, declared.settings, used)
        evaluation = evaluation.as_exploratory(choices)
    if output.as_json:
        _print_comparison_json(scores, evaluation, baseline, notes)
    elif output.form == "csv":
        print_csv(comparison_rows(evaluation))
    else:
        print_to_fit(
            verdict_text,
            evaluation,
            explain=output.explain,
            complete=not missing_notes,
        )
    _write_page(output.page, qrels.name, evaluation, notes)
    fail_on_unmatched_runs(scores)


def _print_comparison_json(
    scores: Scores, evaluation: Evaluation, baseline: str | None, notes: Sequence[str]
) -> None:
    from harness.evaluation.pair_diagnostics import diagnose_pairs, pairs_to_inspect
    from harness.writing.evaluation_tables import comparison_rows, summary_rows

    pairs = pairs_to_inspect(list(evaluation.means), baseline, scores.n)
    diagnostics = diagnose_pairs(scores, pairs)
    print_json(
        summary=summary_rows(evaluation.summary),
        comparisons=comparison_rows(evaluation),
        evidence=[pair_diagnostics._asdict() for pair_diagnostics in diagnostics],
        notes=notes,
    )


def _write_page(
    path: Path | None, title: str, evaluation: Evaluation, notes: Sequence[str]
) -> None:
    """Write the page, if a path is given."""
    if path is None:
        return
    from harness.report.scores_page import write_scores_page

    write_scores_page(path, title, evaluation, notes)


def _evaluate(scores: Scores, baseline: str | None, settings: Settings) -> Evaluation:
    """Compare, with progress if there are many pairs."""
    from harness.console.progress import Progress
    from harness.evaluation.evaluate import evaluate_scores
    from retrievers.meter import Meter

    progress = Progress(
        open_console(stderr=True),
        quiet=len(scores.retrievers) < PROGRESS_FROM_RETRIEVERS,
    )
    meter = Meter(on_change=lambda meter: progress.watch("", meter))
    with progress, meter.stage("comparing"):
        return evaluate_scores(scores, baseline=baseline, settings=settings)


def _read_score_file(
    path: Path,
    measures: Sequence[str],
    query_ids: list[str] | None,
    range_: tuple[float, float] | None,
) -> Scores:
    """The per-query scores of any tool, with the range of the first measure."""
    from harness.scoring.foreign_csv import read_score_file
    from harness.stats.differences import ValueRange

    scores = read_score_file(path).select(measures, query_ids)
    if len(scores.retrievers) < 2:
        problem = "has the scores of only one retriever"
        raise InputError(Problem(str(path), problem, "give two or more"))
    if range_ is None:
        return scores
    low, high = range_
    if not -math.inf < low < high < math.inf:
        problem = f"{low:g} to {high:g} is not a range"
        remedy = "two numbers, the lower one first"
        raise InputError(Problem("--range", problem, remedy))
    return replace(scores, ranges={scores.primary: ValueRange(low, high)})


def _undefined_notes(scores: Scores, settings: Settings) -> list[str]:
    """The values that are undefined, and the verdicts that need a range."""
    notes: list[str] = []
    queries = count_queries(len(scores.ids))
    for measure, count_by_retriever in scores.undefined_counts().items():
        counts = ", ".join(
            f"{number} of {name}" for name, number in count_by_retriever.items()
        )
        notes.append(f"{measure} is undefined for some of {queries}: {counts}")
    if settings.margin and scores.range_of(scores.primary) is None:
        notes.append(
            f"Nothing can be shown to be equivalent: {scores.primary} has scores "
            "outside [0, 1], and its range is not known. Give --range LOW HIGH, the "
            "lowest and the highest possible score."
        )
    return notes
