"""The command `score`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.console import options as shared
from harness.console.options import refuse_two_formats
from harness.console.output import print_csv, print_json, print_to_fit, print_warnings
from harness.console.score_tables import means_table, query_scores_table
from retrievers.errors import BackendError, InputError, Problem

if TYPE_CHECKING:
    from harness.scoring.scores import Scores
    from harness.writing.evaluation_tables import CsvRows

ByQuery = Annotated[
    bool, typer.Option("--by-query", "-q", help="Print the score of every query.")
]


def score(
    *,
    qrels: shared.QrelsOrResults,
    runs: shared.RunFiles = None,
    measure: shared.MeasureNames = None,
    by_query: ByQuery = False,
    grades: shared.GradeRuleOption = None,
    queries: shared.QueryIdsFile = None,
    skip_no_relevant: shared.SkipNoRelevant = False,
    intersection: Annotated[bool, shared.INTERSECTION_OPTION] = False,
    double: Annotated[bool, shared.DOUBLE_OPTION] = False,
    form: shared.RowFormat = "table",
    as_json: shared.JsonOutput = False,
) -> None:
    """Score rankings: anyone's TREC files, or a results folder by other measures.
    Nothing is embedded.
    """  # noqa: D205
    from harness.console.listed_lines import read_listed_lines
    from harness.evaluation.evaluate import summarize_retrievers
    from harness.evaluation.score_paths import missing_retriever_notes, score_paths
    from harness.scoring.conventions import RunConventions
    from harness.scoring.declared_settings import read_declared_settings
    from harness.stats.looks import settings_at_look
    from harness.writing.evaluation_tables import summary_rows

    refuse_two_formats(form, as_json=as_json)
    conventions = RunConventions(
        skip_no_relevant,
        intersection,
        read_listed_lines(queries, "query id") if queries else None,
        "double" if double else "single",
    )
    paths = [qrels, *(runs or ())]
    scores = score_paths(
        paths,
        measure or (),
        grade_rule=grades,
        conventions=conventions,
    )
    refuse_unscored_runs(qrels, scores)
    print_warnings(*missing_retriever_notes([qrels]), *scores.notes)
    # The intervals have the level that results folders declare, as in summary.csv.
    declared = read_declared_settings(paths)
    settings = settings_at_look(declared.settings, scores.n)
    summary = summarize_retrievers(scores, settings.level)
    if by_query:
        _print_query_scores(scores, summary_rows(summary), form, as_json=as_json)
    elif as_json:
        print_json(summary=summary_rows(summary))
    elif form == "csv":
        print_csv(summary_rows(summary))
    else:
        print_to_fit(means_table, summary)
    fail_on_unmatched_runs(scores)


def _print_query_scores(
    scores: Scores, summary: CsvRows, form: str, *, as_json: bool
) -> None:
    """Print the score of every query."""
    rows = list(scores.rows())
    if as_json:
        print_json(scores=rows, summary=summary)
    elif form == "csv":
        print_csv([row._asdict() for row in rows])
    else:
        for retriever in scores.retrievers:
            retriever_rows = [row for row in rows if row.retriever == retriever]
            print_to_fit(query_scores_table, retriever_rows, retriever)


def refuse_unscored_runs(path: Path, scores: Scores) -> None:
    """Refuse runs without a score for any query."""
    if not scores.n:
        from harness.records import NO_SCORES

        raise InputError(Problem(str(path), *NO_SCORES))


def fail_on_unmatched_runs(scores: Scores) -> None:
    """Exit with 3 if runs have no scores; the scores of the others are printed."""
    if scores.unmatched:
        raise BackendError("\n".join(map(str, scores.unmatched)))
