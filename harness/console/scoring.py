"""`harness score`, `harness compare` and `harness gate`: rankings that are already there; nothing is embedded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from harness.console import several, shared_options, tables
from harness.console.printing import (
    console_of,
    print_csv,
    print_json,
    print_result,
    print_scores,
    say,
    show,
    tell_github,
    warn,
)
from harness.console.shared_options import (
    DOUBLE,
    INTERSECTION,
    CorpusChanged,
    Explain,
    Folder,
    Form,
    GradeRule,
    Json,
    Measures,
    NoRelevant,
    Qrels,
    Queries,
    Runs,
    RunsOrFolders,
    refuse,
)
from harness.english import count
from retrievers.errors import BackendError, InputError, NotShown, Problem

if TYPE_CHECKING:
    from harness.evaluation.evaluation import Evaluation
    from harness.evaluation.scores import Scores
    from harness.evaluation.verdict import Gate
    from harness.stats.differences import Range
    from harness.stats.settings import Settings

LEVEL = 0.95
"""Confidence of the intervals where no experiment declares another."""
MANY = 100
"""Comparisons from which on progress is shown: fewer take no second."""


def score(
    qrels: Qrels,
    runs: Runs = None,
    measure: Measures = None,
    by_query: Annotated[bool, typer.Option("--by-query", "-q", help="Print the score of every query.")] = False,
    grades: GradeRule = None,
    queries: Queries = None,
    skip_no_relevant: NoRelevant = False,
    intersection: Annotated[bool, INTERSECTION] = False,
    double: Annotated[bool, DOUBLE] = False,
    form: Form = "table",
    as_json: Json = False,
) -> None:
    """Score rankings: anyone's TREC files, or a results folder by other measures. Nothing is embedded."""
    from harness.evaluation.csv_views import summary_rows
    from harness.evaluation.evaluate import summaries
    from harness.evaluation.folders import missing_retrievers, score_rankings
    from harness.evaluation.readers import read_ids
    from harness.evaluation.runs import Conventions

    refuse({"--json": as_json and form == "csv"}, "cannot go with --format csv", "choose one of them")
    only = read_ids(queries) if queries else None
    conventions = Conventions(skip_no_relevant, intersection, only, "double" if double else "single")
    scores = score_rankings([qrels, *(runs or ())], measure or (), rule=grades, conventions=conventions)
    _refuse_unscored(qrels, scores)
    warn(*missing_retrievers([qrels]), *scores.notes)
    summary = summary_rows(summaries(scores, LEVEL))
    rows = [row._asdict() for row in scores.rows()] if by_query else []
    if as_json:
        print_json(**({"scores": rows} if by_query else {}), summary=summary)
    elif form == "csv":
        print_csv(rows if by_query else summary)
    elif by_query:
        for name in scores.retrievers:
            show(tables.by_query, [row for row in rows if row["retriever"] == name], name)
    else:
        show(tables.scoreboard, summary)
    _fail_unmatched(scores)


def compare(
    qrels: Qrels,
    runs: RunsOrFolders = None,
    measure: Measures = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Compare every other run with this one; default: all pairs.",
            autocompletion=shared_options.retrievers_of_results,
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(help="A difference of means too small to matter; default: the margin of the folders."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            help="The test that decides: randomization, wilcoxon, t; default: that of the folders, or randomization.",
            autocompletion=shared_options.tests,
        ),
    ] = None,
    correction: Annotated[
        str | None,
        typer.Option(
            help="holm, bonferroni, bh; default: the correction of the folders, or holm.",
            autocompletion=shared_options.corrections,
        ),
    ] = None,
    grades: GradeRule = None,
    queries: Queries = None,
    skip_no_relevant: NoRelevant = False,
    range_: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--range",
            metavar="LOW HIGH",
            help="Lowest and highest value of the first measure of a file of scores; default: 0 1.",
        ),
    ] = None,
    corpus_changed: CorpusChanged = False,
    report: Annotated[Path | None, typer.Option(help="Write a page, of runs or of a file of scores.")] = None,
    form: Form = "table",
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Compare runs query by query: differences, exact tests, a verdict. The first measure decides.

    Of several results folders, the retrievers of all are compared on the queries that all folders share. The
    per-query scores of any tool can be compared, too: a CSV file with retriever, query_id, measure, value.
    """
    from harness.evaluation.csv_views import comparison_rows, summary_rows
    from harness.evaluation.folders import declared_settings, missing_retrievers, score_rankings
    from harness.evaluation.readers import read_ids
    from harness.evaluation.runs import Conventions
    from harness.evaluation.set_folders import compared_sets, holds_sets
    from harness.stats.power import at_look

    refuse({"--json": as_json and form == "csv"}, "cannot go with --format csv", "choose one of them")
    paths = [qrels, *(runs or ())]
    if corpus_changed:
        from harness import records
        from harness.evaluation.corpus_change import corpus_change

        if len(paths) != 2:
            raise InputError(
                Problem("--corpus-changed", "compares two results folders", "name the old and the new one")
            )
        change = corpus_change(records.read(paths[0]), records.read(paths[1]))
        print_result(change.lines(), as_json=as_json, **change._asdict())
        return
    declared = declared_settings(paths)
    given: dict[str, Any] = {"test": test, "correction": correction, "margin": margin}
    settings = replace(declared.settings, **{name: value for name, value in given.items() if value is not None})
    ids = read_ids(queries) if queries else None
    if qrels.suffix.lower() == ".csv":
        without_effect = {"RUN": runs, "--grades": grades, "--skip-no-relevant": skip_no_relevant}
        refuse(without_effect, "does not go with a file of scores")
        wanted = ScoresWanted(qrels, tuple(measure or ()), ids, baseline, report, range_)
        _compare_scores(wanted, settings, form, None if as_json else explain)
        return
    refuse({"--range": range_}, "is for a file of scores")
    if qrels.is_dir():
        refuse({"--report": report}, "is for runs or a file of scores", "harness report RESULTS writes the page")
    if holds_sets(qrels):
        of_one: dict[str, object] = {"--queries": queries, "--grades": grades, "--skip-no-relevant": skip_no_relevant}
        of_one |= {"--format csv": form == "csv", "--margin": margin, "--test": test}
        refuse({**of_one, "--explain": explain}, "is for the results of one data set")
        found, notes = compared_sets(paths, measure or (), baseline, settings)
        notes = [*filter(None, [declared.note]), *notes]
        warn(*notes)
        if as_json:
            print_json(together=found.rows(), notes=notes)
        else:
            show(several.table, found)
        return
    conventions = Conventions(skip_no_relevant, queries=ids)
    scores = score_rankings(paths, measure or (), rule=grades, conventions=conventions)
    if len(scores.retrievers) < 2:
        raise InputError(Problem(str(qrels), "there is only one run", "give two or more"))
    _refuse_unscored(qrels, scores)
    lacking = missing_retrievers(paths)
    notes = [*lacking, *filter(None, [declared.note]), *scores.notes]
    warn(*notes)
    settings = at_look(settings, scores.n)
    evaluation = _evaluated(scores, baseline, settings)
    if as_json:
        from harness.evaluation.evidence import evidence, pairs_by_weight

        looked_at = pairs_by_weight(list(evaluation.means), baseline, scores.n)
        beside = [one._asdict() for one in evidence(scores, looked_at)]
        rows = comparison_rows(evaluation)
        print_json(summary=summary_rows(evaluation.summary), comparisons=rows, evidence=beside, notes=notes)
    elif form == "csv":
        print_csv(comparison_rows(evaluation))
    else:
        told = tables.VerdictNotes(explain, complete=not lacking)
        show(tables.verdict, evaluation, told)
    if report is not None:
        from harness.report.other_pages import write_scores

        write_scores(report, qrels.name, evaluation, notes)
    _fail_unmatched(scores)


def _refuse_unscored(path: Path, scores: Scores) -> None:
    if not scores.n:
        from harness.records import UNSCORED

        raise InputError(Problem(str(path), *UNSCORED))


def _fail_unmatched(scores: Scores) -> None:
    """End with 3 where runs had no scores: those of the others are printed."""
    if scores.unmatched:
        raise BackendError("\n".join(map(str, scores.unmatched)))


def _evaluated(scores: Scores, baseline: str | None, settings: Settings) -> Evaluation:
    """Compare, with progress where there are many pairs."""
    from harness.console.progress import Progress
    from harness.evaluation.compare import keys_of
    from harness.evaluation.evaluate import evaluate
    from retrievers.meter import Meter

    pairs = sum(map(len, keys_of(scores, baseline).values()))
    with Progress(console_of(stderr=True), quiet=pairs < MANY) as progress:
        meter = Meter(watch=lambda meter: progress.watch("", meter))
        with meter.stage("comparing", total=pairs):
            return evaluate(scores, baseline=baseline, settings=settings, step=meter.step)


class ScoresWanted(NamedTuple):
    """What is to be compared of a file of scores."""

    path: Path
    measures: tuple[str, ...]
    queries: list[str] | None
    baseline: str | None
    report: Path | None
    range: tuple[float, float] | None


def _compare_scores(wanted: ScoresWanted, settings: Settings, form: str, explain: bool | None) -> None:
    """Compare the per-query scores of any tool; where `explain` is None, print one JSON object."""
    from harness.evaluation.csv_views import comparison_rows
    from harness.evaluation.readers import read_scores

    scores = read_scores(wanted.path).selected(wanted.measures, wanted.queries)
    if len(scores.retrievers) < 2:
        raise InputError(Problem(str(wanted.path), "has the scores of only one retriever", "give two or more"))
    if wanted.range is not None:
        scores = replace(scores, ranges={scores.primary: _range(*wanted.range)})
    evaluation = _evaluated(scores, wanted.baseline, settings)
    notes = [
        f"{measure} is undefined for some of {count(len(scores.ids))}: "
        + ", ".join(f"{number} of {name}" for name, number in of.items())
        for measure, of in scores.undefined().items()
    ]
    if settings.margin and scores.range_of(scores.primary) is None:
        notes.append(
            f"Nothing can be shown to be equivalent: {scores.primary} has scores outside [0, 1], and its range is not "
            "known. Give --range LOW HIGH, the lowest and the highest possible score."
        )
    if form == "csv":
        print_csv(comparison_rows(evaluation))
    else:
        print_scores(scores, evaluation, notes, as_json=explain is None, explain=bool(explain))
    if wanted.report is not None:
        from harness.report.other_pages import write_scores

        write_scores(wanted.report, wanted.path.name, evaluation, notes)


def _range(low: float, high: float) -> Range:
    from harness.stats.differences import Range

    if not -math.inf < low < high < math.inf:
        raise InputError(Problem("--range", f"{low:g} to {high:g} is not a range", "two numbers, the lower one first"))
    return Range(low, high)


def gate(
    results: Folder,
    baseline: Annotated[
        str, typer.Option(help="The retriever in use.", autocompletion=shared_options.retrievers_of_results)
    ],
    challenger: Annotated[
        str,
        typer.Option(help="The retriever that would replace it.", autocompletion=shared_options.retrievers_of_results),
    ],
    margin: Annotated[
        list[str],
        typer.Option(
            metavar="[SET=]NUMBER",
            help="Largest acceptable loss of the primary measure's mean; for several data sets, one for each.",
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FOLDER", help="A folder of earlier results that holds the baseline; default: RESULTS."
        ),
    ] = None,
    corpus_changed: CorpusChanged = False,
    form: Annotated[
        Literal["text", "github"],
        typer.Option("--format", help="github writes an annotation and the summary of the job."),
    ] = "text",
    as_json: Json = False,
) -> None:
    """Exit 0 if the challenger is shown to lose less than MARGIN to the baseline; otherwise 1.

    A challenger that loses the whole margin passes in up to 8 % of cases.
    """
    from harness import records
    from harness.evaluation.gate import Side, gate_retrievers, same_ground
    from harness.evaluation.grading import people_judged
    from harness.evaluation.set_folders import gate_sets, holds_sets
    from harness.evaluation.wording import gate_cells, gate_sentence

    refuse({"--json": as_json and form == "github"}, "cannot go with --format github", "choose one of them")
    margins = several.margins_of(margin)
    if holds_sets(results):
        refuse({"--from": source, "--format github": form == "github"}, "is for the results of one data set")
        _gate_sets(gate_sets(results, challenger, baseline, margins), as_json=as_json)
        return
    refuse({"--margin": [*margins] != [""]}, "names data sets, and there is one", "give a number, such as 0.02")
    read = records.read(results)
    earlier = read if source is None else records.read(source)
    for one in (read, earlier):
        if not people_judged({query: labelled.labels for query, labelled in one.queries.items()}):
            raise NotShown("gate failed: no person judged these queries, and a model's labels alone show nothing")
    refuse({"--corpus-changed": corpus_changed and source is None}, "is for two folders", "name the earlier by --from")
    sides = Side(read, challenger), Side(earlier, baseline)
    verdict = gate_retrievers(*sides, margin=margins[""], corpus_changed=corpus_changed)
    note = "" if source is None else same_ground(read, earlier, corpus_changed=corpus_changed).sentence()
    which = read.which if source is None else f"{read.which}, against the {earlier.which}"
    if as_json:
        print_json(**gate_cells(verdict), which=which, **({"note": note} if note else {}))
    elif note:
        warn(note)
    if form == "github":
        tell_github(read, gate_sentence(verdict), passed=verdict.passed, which=which)
    if not verdict.passed:
        raise NotShown(f"gate failed: {gate_sentence(verdict)}; {which}")
    if not as_json and form == "text":
        say(f"gate passed: {gate_sentence(verdict)}; {which}")


def _gate_sets(gates: Mapping[str, Gate], *, as_json: bool) -> None:
    """Tell the gate of each data set; raises NotShown unless all of them let the challenger pass."""
    from harness.evaluation.wording import gate_cells, gate_sentence

    passed = all(one.passed for one in gates.values())
    told = [f"{name}: {gate_sentence(one)}" for name, one in gates.items()]
    if as_json:
        print_json(passed=passed, data_sets={name: gate_cells(one) for name, one in gates.items()})
    if not passed:
        raise NotShown("\n".join(["gate failed:", *told]))
    if not as_json:
        say("gate passed:", *told)
