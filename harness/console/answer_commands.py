"""The commands for answers: check, judge, score."""

from pathlib import Path
from typing import Annotated

import typer

from harness.console.printing import print_result, print_scores
from harness.console.shared_options import HelpGroup, Json, MaxCost, NoCode

app = typer.Typer(
    cls=HelpGroup, help="Judge and score the answers of a generator: claims, verdicts, measures.", rich_markup_mode=None
)

EXPERIMENT = typer.Argument(metavar="EXPERIMENT", help="An experiment file, for its data set and [judge].")
ExperimentFile = Annotated[Path, EXPERIMENT]
ANSWERS = typer.Argument(metavar="ANSWERS", help="A folder with <system>.jsonl for each system, one answer a line.")
SystemFolder = Annotated[Path, ANSWERS]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Only print what a chat model would be asked; nothing is sent.")]
TOKENIZER = typer.Option("--tokenizer", help="Tokenizer of BLEU and ROUGE: 13a, char, ja-mecab, …")
TokenizerOption = Annotated[str | None, TOKENIZER]
MEASURE = typer.Option("--measure", "-m", help="A measure; may be repeated, the first decides.")
AnswerMeasures = Annotated[list[str] | None, MEASURE]
Baseline = Annotated[str | None, typer.Option(help="Compare every other system with this one; default: all pairs.")]
REPORT = typer.Option("--report", help="Write a page that shows where each claim was lost: retriever or generator.")
Page = Annotated[Path | None, REPORT]


@app.command("check")
def check_answers(
    experiment: ExperimentFile, folder: SystemFolder, no_code: NoCode = False, as_json: Json = False
) -> None:
    """List every problem in files of answers, and what will be counted."""
    from harness.answers.work import answer_counts, lines_of, read_inputs

    inputs = read_inputs(experiment, folder, code=not no_code)
    values = {"queries": len(inputs.queries), "without_reference": inputs.bare, "systems": answer_counts(inputs)}
    print_result(lines_of(inputs), as_json=as_json, **values)


@app.command("judge")
def judge_folder(
    experiment: ExperimentFile,
    folder: SystemFolder,
    max_cost: MaxCost = None,
    plan: PlanOnly = False,
    no_code: NoCode = False,
    as_json: Json = False,
) -> None:
    """Ask the judge for every verdict that the measures need; nothing is judged twice."""
    from harness.answers.work import forecast_judging, judge

    if plan:
        forecast = forecast_judging(experiment, folder, code=not no_code)
        print_result([forecast.sentence()], as_json=as_json, plan=forecast)
        return
    judged = judge(experiment, folder, max_cost=max_cost, code=not no_code)
    print_result(judged.lines(), as_json=as_json, **judged._asdict())


@app.command("score")
def score_folder(
    experiment: ExperimentFile,
    folder: SystemFolder,
    measure: AnswerMeasures = None,
    baseline: Baseline = None,
    tokenizer: TokenizerOption = None,
    report: Page = None,
    no_code: NoCode = False,
    as_json: Json = False,
) -> None:
    """Compute every measure from the verdicts, and compare the systems: scores.csv, summary.csv, comparisons.csv."""
    from harness.answers.work import AnswerOptions, score

    options = AnswerOptions(tuple(measure or ()), baseline, tokenizer)
    scored = score(experiment, folder, options, code=not no_code)
    print_scores(scored.scores, scored.evaluation, scored.notes, as_json=as_json)
    if report is not None:
        from harness.answers.cases import section_of
        from harness.report.html_page import write_scores

        section = section_of(scored.traced, scored.scores, scored.evaluation.settings.level)
        write_scores(report, folder.resolve().name, scored.evaluation, scored.notes, section)
