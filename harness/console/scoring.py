"""`harness score`, `harness compare` and `harness gate`: rankings that are already there; nothing is embedded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.console import printing, several, tables
from harness.console import shared_options as shared
from harness.english import count
from retrievers.errors import BackendError, InputError, NotShown, Problem

if TYPE_CHECKING:
    from harness.evaluation.evaluation import Evaluation
    from harness.evaluation.scores import Scores
    from harness.evaluation.verdict import Gate
    from harness.stats.settings import Settings

LEVEL = 0.95
"""Confidence of the intervals where no experiment declares another."""
MANY = 15
"""Retrievers from which on it is said that they are being compared: fewer take no second."""

ByQuery = Annotated[
    bool, typer.Option("--by-query", "-q", help="Print the score of every query.")
]


def score(
    qrels: shared.Qrels,
    runs: shared.Runs = None,
    measure: shared.Measures = None,
    by_query: ByQuery = False,
    grades: shared.GradeRule = None,
    queries: shared.Queries = None,
    skip_no_relevant: shared.NoRelevant = False,
    intersection: Annotated[bool, shared.INTERSECTION] = False,
    double: Annotated[bool, shared.DOUBLE] = False,
    form: shared.Form = "table",
    as_json: shared.Json = False,
) -> None:
    """Score rankings: anyone's TREC files, or a results folder by other measures. Nothing is embedded."""
    from harness.evaluation.csv_views import summary_rows
    from harness.evaluation.evaluate import summaries
    from harness.evaluation.folders import missing_retrievers, score_rankings
    from harness.evaluation.readers import read_ids
    from harness.evaluation.runs import Conventions

    _one_form(form, as_json=as_json)
    only = read_ids(queries) if queries else None
    conventions = Conventions(
        skip_no_relevant, intersection, only, "double" if double else "single"
    )
    scores = score_rankings(
        [qrels, *(runs or ())], measure or (), rule=grades, conventions=conventions
    )
    _refuse_unscored(qrels, scores)
    printing.warn(*missing_retrievers([qrels]), *scores.notes)
    summary = summary_rows(summaries(scores, LEVEL))
    rows = [row._asdict() for row in scores.rows()] if by_query else []
    if as_json:
        printing.print_json(**({"scores": rows} if by_query else {}), summary=summary)
    elif form == "csv":
        printing.print_csv(rows if by_query else summary)
    elif by_query:
        for name in scores.retrievers:
            printing.show(
                tables.by_query, [row for row in rows if row["retriever"] == name], name
            )
    else:
        printing.show(tables.scoreboard, summary)
    _fail_unmatched(scores)


BASELINE = "Compare every other run with this one; default: all pairs."
Baseline = Annotated[
    str | None, typer.Option(help=BASELINE, autocompletion=shared.retrievers_of_results)
]
MARGIN = (
    "A difference of means too small to matter; default: the margin of the folders."
)
Margin = Annotated[float | None, typer.Option(help=MARGIN)]
TEST = "The test that decides: randomization, wilcoxon, t; default: that of the folders, or randomization."
DecidingTest = Annotated[
    str | None, typer.Option(help=TEST, autocompletion=shared.tests)
]
CORRECTION = "holm, bonferroni, bh; default: the correction of the folders, or holm."
CorrectionName = Annotated[
    str | None, typer.Option(help=CORRECTION, autocompletion=shared.corrections)
]
RANGE = (
    "Lowest and highest value of the first measure of a file of scores; default: 0 1."
)
LowHigh = Annotated[
    tuple[float, float] | None, typer.Option("--range", metavar="LOW HIGH", help=RANGE)
]
Page = Annotated[
    Path | None, typer.Option(help="Write a page, of runs or of a file of scores.")
]


def compare(
    qrels: shared.Qrels,
    runs: shared.RunsOrFolders = None,
    measure: shared.Measures = None,
    baseline: Baseline = None,
    margin: Margin = None,
    test: DecidingTest = None,
    correction: CorrectionName = None,
    grades: shared.GradeRule = None,
    queries: shared.Queries = None,
    skip_no_relevant: shared.NoRelevant = False,
    range_: LowHigh = None,
    corpus_changed: shared.CorpusChanged = False,
    report: Page = None,
    form: shared.Form = "table",
    explain: shared.Explain = False,
    as_json: shared.Json = False,
) -> None:
    """Compare runs query by query: differences, exact tests, a verdict. The first measure decides.

    Of several results folders, the retrievers of all are compared on the queries that all folders share. The
    per-query scores of any tool can be compared, too: a CSV file with retriever, query_id, measure, value.
    """
    from harness.evaluation.across_sets import holds_sets
    from harness.evaluation.csv_views import comparison_rows, summary_rows
    from harness.evaluation.folders import (
        declared_settings,
        missing_retrievers,
        score_rankings,
    )
    from harness.evaluation.readers import read_ids
    from harness.evaluation.runs import Conventions
    from harness.stats.power import at_look

    _one_form(form, as_json=as_json)
    paths = [qrels, *(runs or ())]
    if corpus_changed:
        _compare_states(paths, as_json=as_json)
        return
    declared = declared_settings(paths)
    given: dict[str, Any] = {"test": test, "correction": correction, "margin": margin}
    settings = replace(
        declared.settings,
        **{name: value for name, value in given.items() if value is not None},
    )
    ids = read_ids(queries) if queries else None
    of_labels = {"--grades": grades, "--skip-no-relevant": skip_no_relevant}
    if qrels.suffix.lower() == ".csv":
        shared.refuse({"RUN": runs, **of_labels}, "does not go with a file of scores")
        scores = _scores_in(qrels, measure or (), ids, range_)
        evaluation = _evaluated(scores, baseline, settings)
        notes = _undefined_notes(scores, settings)
        if form == "csv":
            printing.print_csv(comparison_rows(evaluation))
        else:
            printing.print_scores(
                scores, evaluation, notes, as_json=as_json, explain=explain
            )
        _write_page(report, qrels, evaluation, notes)
        return
    shared.refuse({"--range": range_}, "is for a file of scores")
    if qrels.is_dir():
        shared.refuse(
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
        shared.refuse(
            {**without_effect, "--test": test, "--explain": explain},
            "is for the results of one data set",
        )
        several.print_compared(
            paths,
            measure or (),
            baseline,
            declared._replace(settings=settings),
            as_json=as_json,
        )
        return
    scores = score_rankings(
        paths,
        measure or (),
        rule=grades,
        conventions=Conventions(skip_no_relevant, queries=ids),
    )
    if len(scores.retrievers) < 2:
        raise InputError(
            Problem(str(qrels), "there is only one run", "give two or more")
        )
    _refuse_unscored(qrels, scores)
    lacking = missing_retrievers(paths)
    notes = [*lacking, *filter(None, [declared.note]), *scores.notes]
    printing.warn(*notes)
    evaluation = _evaluated(scores, baseline, at_look(settings, scores.n))
    if as_json:
        from harness.evaluation.evidence import evidence, pairs_by_weight

        looked_at = pairs_by_weight(list(evaluation.means), baseline, scores.n)
        beside = [one._asdict() for one in evidence(scores, looked_at)]
        rows = comparison_rows(evaluation)
        printing.print_json(
            summary=summary_rows(evaluation.summary),
            comparisons=rows,
            evidence=beside,
            notes=notes,
        )
    elif form == "csv":
        printing.print_csv(comparison_rows(evaluation))
    else:
        printing.show(tables.verdict, evaluation, explain=explain, complete=not lacking)
    _write_page(report, qrels, evaluation, notes)
    _fail_unmatched(scores)


def _one_form(form: str, *, as_json: bool) -> None:
    shared.refuse(
        {"--json": as_json and form not in ("table", "text")},
        f"cannot go with --format {form}",
        "choose one of them",
    )


def _compare_states(paths: Sequence[Path], *, as_json: bool) -> None:
    """Compare two runs over two states of a corpus."""
    from harness import records
    from harness.evaluation.gate import corpus_change

    if len(paths) != 2:
        raise InputError(
            Problem(
                "--corpus-changed",
                "compares two results folders",
                "name the old and the new one",
            )
        )
    change = corpus_change(*map(records.read, paths))
    printing.print_result(change.lines(), as_json=as_json, **change._asdict())


def _write_page(
    path: Path | None, of: Path, evaluation: Evaluation, notes: Sequence[str]
) -> None:
    if path is not None:
        from harness.report.html_page import write_scores

        write_scores(path, of.name, evaluation, notes)


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
    from harness.evaluation.evaluate import evaluate
    from retrievers.meter import Meter

    progress = Progress(
        printing.console_of(stderr=True), quiet=len(scores.retrievers) < MANY
    )
    with (
        progress,
        Meter(watch=lambda meter: progress.watch("", meter)).stage("comparing"),
    ):
        return evaluate(scores, baseline=baseline, settings=settings)


def _scores_in(
    path: Path,
    measures: Sequence[str],
    queries: list[str] | None,
    range_: tuple[float, float] | None,
) -> Scores:
    """The per-query scores of any tool, with the range of the first measure."""
    from harness.evaluation.readers import read_scores
    from harness.stats.differences import Range

    scores = read_scores(path).selected(measures, queries)
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
    return replace(scores, ranges={scores.primary: Range(low, high)})


def _undefined_notes(scores: Scores, settings: Settings) -> list[str]:
    """What has no value, and what cannot be shown without a range."""
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
    return notes


InUse = Annotated[
    str,
    typer.Option(
        help="The retriever in use.", autocompletion=shared.retrievers_of_results
    ),
]
CHALLENGER = "The retriever that would replace it."
Challenger = Annotated[
    str, typer.Option(help=CHALLENGER, autocompletion=shared.retrievers_of_results)
]
MARGINS = "Largest acceptable loss of the primary measure's mean; for several data sets, one for each."
Margins = Annotated[list[str], typer.Option(metavar="[SET=]NUMBER", help=MARGINS)]
SOURCE = "A folder of earlier results that holds the baseline; default: RESULTS."
Source = Annotated[Path | None, typer.Option("--from", metavar="FOLDER", help=SOURCE)]
GITHUB = "github writes an annotation and the summary of the job."
GateForm = Annotated[Literal["text", "github"], typer.Option("--format", help=GITHUB)]


def gate(
    results: shared.Folder,
    baseline: InUse,
    challenger: Challenger,
    margin: Margins,
    source: Source = None,
    corpus_changed: shared.CorpusChanged = False,
    form: GateForm = "text",
    as_json: shared.Json = False,
) -> None:
    """Exit 0 if the challenger is shown to lose less than MARGIN to the baseline; otherwise 1.

    A challenger that loses the whole margin passes in up to 8 % of cases.
    """
    from harness import records
    from harness.evaluation.across_sets import gate_sets, holds_sets
    from harness.evaluation.gate import GateArm, gate_retrievers, same_ground
    from harness.evaluation.grading import people_judged
    from harness.evaluation.wording import gate_cells, gate_sentence

    _one_form(form, as_json=as_json)
    margins = several.margins_of(margin)
    if holds_sets(results):
        shared.refuse(
            {"--from": source, "--format github": form == "github"},
            "is for the results of one data set",
        )
        _print_gates(gate_sets(results, challenger, baseline, margins), as_json=as_json)
        return
    shared.refuse(
        {"--margin": [*margins] != [""]},
        "names data sets, and there is one",
        "give a number, such as 0.02",
    )
    read = records.read(results)
    earlier = read if source is None else records.read(source)
    for one in (read, earlier):
        if not people_judged(
            {query: labelled.labels for query, labelled in one.queries.items()}
        ):
            raise NotShown(
                "gate failed: no person judged these queries, and a model's labels alone show nothing"
            )
    states = {"--corpus-changed": corpus_changed and source is None}
    shared.refuse(states, "is for two folders", "name the earlier by --from")
    sides = GateArm(read, challenger), GateArm(earlier, baseline)
    verdict = gate_retrievers(*sides, margin=margins[""], corpus_changed=corpus_changed)
    note = (
        ""
        if source is None
        else same_ground(read, earlier, corpus_changed=corpus_changed).sentence()
    )
    which = (
        read.which if source is None else f"{read.which}, against the {earlier.which}"
    )
    if as_json:
        printing.print_json(
            **gate_cells(verdict), which=which, **({"note": note} if note else {})
        )
    elif note:
        printing.warn(note)
    if form == "github":
        printing.tell_github(
            read, gate_sentence(verdict), passed=verdict.passed, which=which
        )
    if not verdict.passed:
        raise NotShown(f"gate failed: {gate_sentence(verdict)}; {which}")
    if not as_json and form == "text":
        printing.say(f"gate passed: {gate_sentence(verdict)}; {which}")


def _print_gates(gates: Mapping[str, Gate], *, as_json: bool) -> None:
    """Print the gate of each data set; raises NotShown unless all of them let the challenger pass."""
    from harness.evaluation.wording import gate_cells, gate_sentence

    passed = all(one.passed for one in gates.values())
    told = [f"{name}: {gate_sentence(one)}" for name, one in gates.items()]
    if as_json:
        printing.print_json(
            passed=passed,
            data_sets={name: gate_cells(one) for name, one in gates.items()},
        )
    if not passed:
        raise NotShown("\n".join(["gate failed:", *told]))
    if not as_json:
        printing.say("gate passed:", *told)
