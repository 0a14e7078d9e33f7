"""`harness score`, `harness compare` and `harness gate`: rankings that are already there; nothing is embedded."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from harness.console import tables
from harness.console.options import (
    DOUBLE,
    INTERSECTION,
    Folder,
    Form,
    Grades,
    Json,
    Measures,
    NoRelevant,
    Qrels,
    Queries,
    Runs,
)
from harness.console.printing import print_csv, print_json, say, show, warn
from retrievers.errors import InputError, NotShown, Problem


def score(
    qrels: Qrels,
    runs: Runs = None,
    measure: Measures = None,
    by_query: Annotated[bool, typer.Option("--by-query", "-q", help="Print every query's score.")] = False,
    grades: Grades = None,
    queries: Queries = None,
    skip_no_relevant: NoRelevant = False,
    intersection: Annotated[bool, INTERSECTION] = False,
    double: Annotated[bool, DOUBLE] = False,
    form: Form = "table",
    as_json: Json = False,
) -> None:
    """Score rankings: anyone's TREC files, or a results folder by other measures. Nothing is embedded."""
    from harness.scoring import saved
    from harness.scoring.trec_runs import Conventions

    if as_json and form == "csv":
        raise InputError(Problem("--json", "cannot go with --format csv", "choose one of them"))
    only = saved.read_ids(queries) if queries else None
    conventions = Conventions(skip_no_relevant, intersection, only, "double" if double else "single")
    found = saved.score_rankings(qrels, runs or (), measure or (), rule=grades, conventions=conventions)
    warn(*(f"{one.name}: {note}" for one in found for note in one.notes))
    summary = list(saved.summary_rows(found))
    rows = [asdict(row) for one in found for row in one.rows()] if by_query else []
    if as_json:
        print_json(**({"scores": rows} if by_query else {}), summary=summary)
    elif form == "csv":
        print_csv(rows if by_query else summary)
    elif by_query:
        for one in found:
            show(tables.by_query, [row for row in rows if row["retriever"] == one.name], one.name)
    else:
        show(tables.scoreboard, summary)


def compare(
    qrels: Qrels,
    runs: Runs = None,
    measure: Measures = None,
    baseline: Annotated[str | None, typer.Option(help="Compare each other run with this one; else all pairs.")] = None,
    margin: Annotated[float | None, typer.Option(help="A difference of means that does not matter.")] = None,
    test: Annotated[str, typer.Option(help="What decides: wilcoxon, randomization, t, sign.")] = "wilcoxon",
    correction: Annotated[str, typer.Option(help="holm, hommel, bonferroni, bh, tukey.")] = "holm",
    grades: Grades = None,
    queries: Queries = None,
    skip_no_relevant: NoRelevant = False,
    form: Form = "table",
    as_json: Json = False,
) -> None:
    """Compare runs query by query: differences, exact tests, a verdict. The first measure decides."""
    from harness.scoring import saved
    from harness.scoring.trec_runs import Conventions
    from harness.stats import Settings

    if as_json and form == "csv":
        raise InputError(Problem("--json", "cannot go with --format csv", "choose one of them"))
    settings = Settings(test=test, correction=correction, margin=margin)  # type: ignore[arg-type]  # it checks them
    conventions = Conventions(skip_no_relevant, queries=saved.read_ids(queries) if queries else None)
    found = saved.score_rankings(qrels, runs or (), measure or (), rule=grades, conventions=conventions)
    if len(found) < 2:
        raise InputError(Problem(str(qrels), "there is only one run", "give two or more"))
    warn(*(f"{one.name}: {note}" for one in found for note in one.notes))
    compared = saved.compare_runs(found, baseline=baseline, settings=settings)
    rows = [asdict(row) for row in compared.rows]
    summary = list(saved.summary_rows(found))
    if as_json:
        print_json(summary=summary, comparisons=rows)
    elif form == "csv":
        print_csv(rows)
    else:
        show(tables.verdict, summary, rows, compared.whole, settings)


def gate(
    results: Folder,
    baseline: Annotated[str, typer.Option(help="The retriever in use.")],
    challenger: Annotated[str, typer.Option(help="The retriever that would replace it.")],
    margin: Annotated[float, typer.Option(help="The loss of the primary measure's mean that is still acceptable.")],
    as_json: Json = False,
) -> None:
    """Exit with 0 where a challenger is shown not to be worse by the margin, with 1 where it is not."""
    from harness import records
    from harness.scoring import saved
    from harness.scoring.grading import people_judged

    found = records.read(results)
    if not people_judged({query: labelled.labels for query, labelled in found.queries.items()}):
        raise NotShown("gate failed: no person judged these queries, and a model's labels alone show nothing")
    verdict = saved.gate_retrievers(found, challenger=challenger, baseline=baseline, margin=margin)
    if as_json:
        print_json(**asdict(verdict))
    if not verdict.passed:
        raise NotShown(f"gate failed: {verdict.reason}")
    if not as_json:
        say(f"gate passed: {verdict.reason}")
