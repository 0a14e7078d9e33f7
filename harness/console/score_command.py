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

DEFAULT_LEVEL = 0.95
"""Confidence of the intervals where no experiment declares another."""


ByQuery = Annotated[
    bool, typer.Option("--by-query", "-q", help="Print the score of every query.")
]


def score(
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
    """Score rankings: anyone's TREC files, or a results folder by other measures. Nothing is embedded."""
    from harness.evaluation.evaluate import summarize_retrievers
    from harness.evaluation.score_paths import missing_retriever_notes, score_paths
    from harness.scoring.conventions import RunConventions
    from harness.scoring.foreign_csv import read_query_ids
    from harness.writing.evaluation_tables import summary_rows

    refuse_two_formats(form, as_json=as_json)
    only = read_query_ids(queries) if queries else None
    conventions = RunConventions(
        skip_no_relevant, intersection, only, "double" if double else "single"
    )
    scores = score_paths(
        [qrels, *(runs or ())],
        measure or (),
        grade_rule=grades,
        conventions=conventions,
    )
    refuse_unscored_runs(qrels, scores)
    print_warnings(*missing_retriever_notes([qrels]), *scores.notes)
    summary = summary_rows(summarize_retrievers(scores, DEFAULT_LEVEL))
    rows = [row._asdict() for row in scores.rows()] if by_query else []
    if as_json:
        print_json(**({"scores": rows} if by_query else {}), summary=summary)
    elif form == "csv":
        print_csv(rows if by_query else summary)
    elif by_query:
        for name in scores.retrievers:
            print_to_fit(
                query_scores_table,
                [row for row in rows if row["retriever"] == name],
                name,
            )
    else:
        print_to_fit(means_table, summary)
    fail_on_unmatched_runs(scores)


def refuse_unscored_runs(path: Path, scores: Scores) -> None:  # noqa: D103
    if not scores.n:
        from harness.records import NO_SCORES

        raise InputError(Problem(str(path), *NO_SCORES))


def fail_on_unmatched_runs(scores: Scores) -> None:
    """End with 3 where runs had no scores: those of the others are printed."""
    if scores.unmatched:
        raise BackendError("\n".join(map(str, scores.unmatched)))
