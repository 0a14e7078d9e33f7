"""The commands for answers: check, judge, score."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.console.groups import WholeSentences
from harness.console.options import Json, MaxCost, NoCode
from harness.console.printing import print_json, print_scores, say

app = typer.Typer(
    cls=WholeSentences,
    help="What the retrieved texts were worth to answers: claims, verdicts, measures.",
    rich_markup_mode=None,
)

ExperimentFile = Annotated[Path, typer.Argument(metavar="EXPERIMENT", help="An experiment file: data set and [judge].")]
SystemFolder = Annotated[Path, typer.Argument(metavar="ANSWERS", help="A folder of <system>.jsonl, one answer a line.")]
Repeat = Annotated[int, typer.Option(min=1, max=2, help="2: ask for every verdict twice, to see the judge's noise.")]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Only tell what a chat model would be asked; nothing is sent.")]
TokenizerOption = Annotated[str | None, typer.Option("--tokenizer", help="Of BLEU and ROUGE: 13a, char, ja-mecab, …")]
AnswerMeasures = Annotated[list[str] | None, typer.Option("--measure", "-m", help="A measure; the first decides.")]
Baseline = Annotated[str | None, typer.Option(help="Compare each other system with this one; else all pairs.")]
Page = Annotated[Path | None, typer.Option("--report", help="Write a page: retriever or generator?")]


@app.command("check")
def check_answers(
    experiment: ExperimentFile, folder: SystemFolder, no_code: NoCode = False, as_json: Json = False
) -> None:
    """Tell all that is wrong with files of answers, and what will be counted."""
    from harness.answers.inputs import counted, lines_of, read_inputs

    inputs = read_inputs(experiment, folder, code=not no_code)
    if as_json:
        systems = [one._asdict() for one in counted(inputs)]
        print_json(queries=len(inputs.queries), without_reference=inputs.bare, systems=systems)
    else:
        say(*lines_of(inputs))


@app.command("judge")
def judge_folder(
    experiment: ExperimentFile,
    folder: SystemFolder,
    repeat: Repeat = 1,
    max_cost: MaxCost = None,
    plan: PlanOnly = False,
    no_code: NoCode = False,
    as_json: Json = False,
) -> None:
    """Ask the judge for every verdict that the measures need; what was judged once is never judged again."""
    from harness.answers.work import judge, look_ahead

    if plan:
        forecast = look_ahead(experiment, folder, rounds=repeat, code=not no_code)
        print_json(plan=forecast._asdict()) if as_json else say(forecast.sentence())
        return
    judged = judge(experiment, folder, rounds=repeat, max_cost=max_cost, code=not no_code)
    if as_json:
        print_json(**judged.as_json())
    else:
        say(*judged.lines())


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
    print_scores(scored.scores, scored.compared, scored.notes, as_json=as_json)
    if report is not None:
        from harness.report.scores import write_scores

        write_scores(report, folder.resolve().name, scored.compared, scored.notes, scored.traced)
